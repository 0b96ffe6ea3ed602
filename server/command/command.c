/* command: what the commands of `attend` share. */
#include "server/command/command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/settings/config.h"
#include "server/watch/version.h"

int command_fail(const struct error *e) {
  fprintf(stderr, "attend: %s\n", e->detail);
  return e->status == STATUS_CONFIG ? COMMAND_MISUSED : COMMAND_FAILED;
}

int command_misuse(const char *format, const char *word) {
  fputs("attend: ", stderr);
  fprintf(stderr, format, word);
  fputs("; see attend --help\n", stderr);
  return COMMAND_MISUSED;
}

int command_written(bool well) {
  if (well && !fflush(stdout)) return COMMAND_DONE;
  fprintf(stderr, "attend: cannot write to standard output: %s\n", strerror(errno));
  return COMMAND_FAILED;
}

enum status command_write(int out, const struct iovec *piece, size_t pieces, struct error *e) {
  for (size_t i = 0; i < pieces; i++) {
    const char *text = piece[i].iov_base;
    size_t left = piece[i].iov_len;
    while (left > 0) {
      ssize_t n = write(out, text, left);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return error_set(e, STATUS_SYSTEM, "cannot write the answer: %s", strerror(errno));
      text += n;
      left -= (size_t)n;
    }
  }
  return STATUS_OK;
}

int command_help(void) {
  fputs(
      "attend: attention layers and whole models over HTTP\n"
      "\n"
      "  attend [serve] [settings]     serve until SIGTERM or SIGINT; SIGHUP reads models and keys "
      "again\n"
      "  attend run MODEL [FILE]       answer one request, from FILE or standard input to "
      "standard\n"
      "                                output; its words and settings stand in any order\n"
      "  attend run MODEL --heads      measure the model's heads instead\n"
      "  attend run MODEL --encode     encode tokens: MODEL is a whole model\n"
      "  attend run MODEL --classify   classify tokens: MODEL is an encoder with a classifier\n"
      "  attend run MODEL --score      score targets: MODEL is a decoder, or has one\n"
      "  attend run MODEL --generate   go on from texts, or translate them: likewise\n"
      "  attend run MODEL --tokenize   the tokens of texts: MODEL has a tokenizer\n"
      "  attend run MODEL --detokenize the text of tokens: likewise\n"
      "  attend run MODEL --binary     request and answer are safetensors, not JSON; measures are "
      "JSON\n"
      "  attend run MODEL --lines      each line is a request of JSON, and gets its answer as a "
      "line\n"
      "  attend check [settings]       check settings and models, and print them\n"
      "  attend inspect FILE           list the tensors of a checkpoint, a file or its folder, "
      "and\n"
      "                                the models in it\n"
      "  attend inspect FILE --check   read the numbers of the tensors, too\n"
      "  attend inspect FILE --models  print these models alone, as a configuration file\n"
      "  attend inspect FILE -o NEW    write that configuration to the file NEW\n"
      "  attend inspect FILE --heads N\n"
      "                                take N for the number of heads where the checkpoint does\n"
      "                                not tell it\n"
      "  attend health [URL]           exit 0 if URL answers 200; without URL, /healthz at\n"
      "                                admin_listen or, if that is not set, at listen\n"
      "  attend help | --help          this text\n"
      "  attend --version              the version\n"
      "\n"
      "Settings come from defaults, then the file (--config FILE or ATTEND_CONFIG), then\n"
      "ATTEND_NAME in the environment, then --name VALUE or --name=VALUE:\n"
      "\n",
      stdout);
  config_help(stdout);
  return command_written(true);
}

int command_version(void) {
  printf("attend %s (%s)\n", version_number(), version_commit());
  return command_written(true);
}
