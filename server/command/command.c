/* command: messages and help of the commands of `attend`. */
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

int command_help(const char *setting) {
  struct error e = {0};
  if (setting)
    return config_help_setting(setting, stdout, &e) ? command_fail(&e) : command_written(true);
  fputs("attend: HTTP inference server for Transformer models and attention layers on CPUs\n"
        "\n"
        "  attend [serve] [SETTING...]   serve models; SIGTERM stops, SIGHUP reloads\n"
        "  attend run MODEL [FILE]       compute one request without a server: JSON from\n"
        "                                FILE or standard input, to standard output\n"
        "  attend run MODEL --encode     embeddings or hidden states of texts\n"
        "  attend run MODEL --classify   classify texts, or rerank pairs of texts\n"
        "  attend run MODEL --score      log-probabilities of target tokens (decoder or\n"
        "                                encoder-decoder)\n"
        "  attend run MODEL --generate   generate text (decoder) or translate\n"
        "                                (encoder-decoder)\n"
        "  attend run MODEL --tokenize   turn text into token IDs\n"
        "  attend run MODEL --detokenize\n"
        "                                turn token IDs back into text\n"
        "  attend run MODEL --render     render a conversation with the chat template\n"
        "  attend run MODEL --heads      measure the attention heads\n"
        "  attend run MODEL --binary     request and response are safetensors, not JSON\n"
        "  attend run MODEL --lines      each input line is a request (JSON Lines)\n"
        "  attend check [SETTING...]     check settings and models, and print them\n"
        "  attend inspect FILE           list tensors and models of a checkpoint (a file\n"
        "                                or its folder)\n"
        "  attend inspect FILE --check   also look for numbers that are not finite\n"
        "  attend inspect FILE --models  print only the models, as a configuration\n"
        "  attend inspect FILE -o NEW    write that configuration to the new file NEW\n"
        "  attend inspect FILE --heads N\n"
        "                                number of heads, if the checkpoint lacks it\n"
        "  attend health [URL]           exit status 0 if URL returns 200 (default:\n"
        "                                /healthz at admin_listen or listen)\n"
        "  attend help [SETTING]         describe a setting in full, or print this text\n"
        "  attend help settings          describe all settings in full\n"
        "  attend --help                 print this text\n"
        "  attend --version              print the version\n"
        "\n"
        "SETTING is --name VALUE or --name=VALUE; in the environment ATTEND_NAME=VALUE;\n"
        "in the file \"name\": VALUE, with _ for -. The command line overrides the\n"
        "environment, which overrides the file.\n"
        "\n",
        stdout);
  config_help(stdout);
  return command_written(true);
}

int command_version(void) {
  printf("attend %s (%s)\n", version_number(), version_commit());
  return command_written(true);
}
