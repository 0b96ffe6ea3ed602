/* activation: listening sockets that a supervisor has opened and hands to the process: systemd's
 * LISTEN_FDS. It keeps them while the process is restarted, so that no connection is refused. */
#ifndef SERVER_ACTIVATION_H
#define SERVER_ACTIVATION_H

#include "core/run/status.h"
#include "server/http/server.h"

enum { ACTIVATION_NONE = -1 };

/* The descriptor for each door, or ACTIVATION_NONE. A socket named `admin` is for the admin door;
 * one named `attend`, or the first of any other name, is for the main one. The environment stays as
 * it is: a program that starts itself again finds them again. STATUS_CONFIG: there are more sockets
 * than doors, or the variables are no numbers. */
enum status activation_find(int fd[DOOR_COUNT], struct error *e);

#endif
