/* command_health: `attend health [URL]`: asks a running server whether it works, in containers that
 * have no other client. */
#ifndef SERVER_COMMAND_HEALTH_H
#define SERVER_COMMAND_HEALTH_H

/* `url` is `http://host:port[/path]`; without a path it is /healthz. NULL: /healthz at `listen`,
 * the address of the door that has it, with 127.0.0.1 in place of 0.0.0.0. Returns the exit status:
 * 0 if the answer is 200 within three seconds; 1 if not, with a line on standard error; 2 if the
 * URL is wrong. */
int command_health(const char *url, const char *listen);

#endif
