/* command_inspect: `attend inspect FILE [--models] [-o FILE] [--heads N] [--check]`: lists what a
 * checkpoint holds. */
#ifndef SERVER_COMMAND_INSPECT_H
#define SERVER_COMMAND_INSPECT_H

/* `words`: the words after `inspect`, up to a NULL. There are no settings among them: only the file
 * and those beside it are read. Returns the exit status. */
int command_inspect(char *const *words);

#endif
