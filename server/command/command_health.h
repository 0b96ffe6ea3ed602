/* command_health: `attend health [URL]`: asks a running server whether it works, for containers
 * without another client. */
#ifndef SERVER_COMMAND_HEALTH_H
#define SERVER_COMMAND_HEALTH_H

/* `url` is `http://host:port[/path]`, the path /healthz if there is none; NULL: /healthz at
 * `listen`, the address that has it, where 0.0.0.0 becomes 127.0.0.1. Returns the exit status: 0 if
 * the answer is 200 within three seconds, 1 if not, with a line on standard error, 2 if the address
 * cannot be read. */
int health_main(const char *url, const char *listen);

#endif
