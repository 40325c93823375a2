/* hankel token: makes a token for the daemon's token file. The token itself goes to standard output and nowhere else; the line
 * for the file holds its hash, and goes to the file (--add) or, to be copied there, to standard error. */
#include "daemon/cli/commands.h"
#include "daemon/cli/options.h"
#include "daemon/config/listener_rules.h"
#include "daemon/config/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char token_help[] =
    "usage: hankel token [OPTION...] NAME SCOPES\n\n"
    "Makes a token and prints it. SCOPES: feed, subscribe, admin, or several with commas.\n\n"
    "  --add FILE    append its line to the daemon's token file; otherwise the line is printed\n"
    "                on standard error, to be copied there\n"
    "  --feeds GLOB  reserve feeds for this token: it may use no others, and no other token may use these\n\n"
    "examples:\n"
    "  hankel token --add /etc/hankeld/tokens pump-7 feed >pump-7.token\n"
    "  chgrp hankeld /etc/hankeld/tokens      if root has created it: the service must be able to read it\n"
    "  systemctl reload hankeld\n"
    "  hankel feed --to daemon.example:7410 --tls --token-file pump-7.token pump.csv\n";

/* In one write, so that the daemon never reads half of it. The file's last line may lack its end. */
static int token_append(char **argv, const char *path, const char *line)
{
  char text[512], last = '\n';
  const int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
  if (fd < 0)
    return hk_failed(argv, "%s: %s", path, strerror(errno));
  const off_t end = lseek(fd, 0, SEEK_END);
  int fault = end < 0 || (end > 0 && pread(fd, &last, 1, end - 1) != 1) ? errno : 0;
  const int length = snprintf(text, sizeof text, "%s%s\n", last == '\n' ? "" : "\n", line);
  if (fault == 0 && write(fd, text, (size_t)length) != length)
    fault = errno ? errno : EIO;
  if (fault == 0 && fsync(fd) != 0)
    fault = errno;
  close(fd);
  return fault == 0 ? 0 : hk_failed(argv, "%s: %s", path, strerror(fault));
}

int hk_command_token(int argc, char **argv)
{
  static const struct option options[] = {
    { "add", required_argument, NULL, 'a' },
    { "feeds", required_argument, NULL, 'f' },
    { "help", no_argument, NULL, 'h' },
    { 0 },
  };
  const char *path = NULL, *feeds = NULL;
  uint32_t scopes;
  char token[HK_TOKEN_LENGTH + 1], line[HK_TOKEN_NAME_MAX + HK_TOKEN_FEEDS_MAX + 128];
  int option;
  while ((option = hk_option_next(argc, argv, options)) != HK_OPTION_END) {
    switch (option) {
    case 'a':
      path = optarg;
      break;
    case 'f':
      feeds = optarg;
      break;
    case HK_OPTION_HELP:
      fputs(token_help, stdout);
      return hk_finish_output(argv, HK_EXIT_DONE);
    default:
      return HK_EXIT_USAGE;
    }
  }
  if (argc - optind != 2)
    return hk_usage(argv, "NAME and SCOPES are required");
  if (hk_scopes_parse(argv[optind + 1], &scopes) != 0)
    return hk_usage(argv, "%s: want a list of feed, subscribe, admin with commas between them", argv[optind + 1]);
  const int status = hk_token_make(argv[optind], scopes, feeds, token, line, sizeof line);
  if (status == -EINVAL)
    return hk_usage(argv, "%s: a name has 1 to 63 printable characters of ASCII, no blanks, and no # in front%s", argv[optind],
                    feeds ? "; a glob of feeds 1 to 128 bytes without blanks" : "");
  if (status != 0)
    return hk_failed(argv, "no token can be made: %s",
                     status == -ENOSYS ? "this hankel was built without OpenSSL" : strerror(-status));
  const int code = path ? token_append(argv, path, line) : 0;
  if (code != 0)
    return code;
  if (!path)
    fprintf(stderr, "for the daemon's token file:\n%s\n", line);
  puts(token);
  return hk_finish_output(argv, HK_EXIT_DONE);
}
