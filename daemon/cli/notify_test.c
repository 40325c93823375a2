/* hankel notify test: sends one message to a receiver of the configuration, as the daemon would, and shows what it answers. Works
 * without the daemon. */
#include "daemon/cli/notify_test.h"
#include "daemon/cli/commands.h"

#include "daemon/base/log.h"
#include "daemon/cli/options.h"
#include "daemon/config/config_reader.h"
#include "daemon/notify/message.h"
#include "daemon/notify/send.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define REPEAT                                                                                                                   \
  12000000000ll /* ns: an Alertmanager considers an alert over if it receives nothing about it for five times as long */

static void notify_test_print_fault(void *arg, const char *message)
{
  (void)arg;
  fprintf(stderr, "%s\n", message);
}

static const struct hk_notify_rule *notify_test_rule_of(const struct hk_config *config, const char *name)
{
  for (uint32_t i = 0; i < config->n_notify; i++)
    if (strcmp(config->notify[i].name, name) == 0)
      return &config->notify[i];
  return NULL;
}

/* There is no such receiver: says which there are. */
static int notify_test_lacks(char **argv, const char *path, const struct hk_config *config, const char *name)
{
  char all[256] = "";
  uint32_t n = 0;
  for (size_t used = 0; n < config->n_notify && used + HK_CONFIG_NAME_MAX + 3 < sizeof all; n++)
    used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", n > 0 ? ", " : "", config->notify[n].name);
  return hk_failed(argv, "%s has no [notify %s]; %s%s%s", path, name, *all ? "it has " : "it has no receiver at all", all,
                   n < config->n_notify ? ", and others" : "");
}

static int notify_test_make(struct hk_notify_message *message, const struct hk_notify_rule *rule, uint64_t id,
                            enum hk_paging paging)
{
  static const char name[] = "hankeld-test";
  const int64_t now = hk_wall();
  const struct hk_notice notice = { .test = true,
                                    .logged = { .name = { name, sizeof name - 1 },
                                                .event = { .kind = HK_EVENT_RAISED,
                                                           .channel = HANKEL_SCORE,
                                                           .number = 1,
                                                           .time = now,
                                                           .from = now,
                                                           .instant = now,
                                                           .score = 1,
                                                           .margin = 1,
                                                           .after = 1 } } };
  const struct hk_notice *all[] = { &notice };
  const struct hk_told_of what = { .notice = all, .n = 1, .group = "", .id = id, .now = now, .paging = paging };
  return hk_message_make(message, rule, &what);
}

/* Sends one message, and prints the answer. */
static int send_one(char **argv, struct hk_sender *sender, const struct hk_notify_rule *rule, uint64_t id, enum hk_paging paging)
{
  struct hk_notify_message message = { 0 };
  struct hk_answer answer = { 0 };
  int code = HK_EXIT_FAILED;
  if (notify_test_make(&message, rule, id, paging) != 0) {
    (void)hk_failed(argv, "no memory");
  } else {
    const enum hk_sent sent = hk_sender_send(sender, rule, &message, &answer);
    if (sent == HK_SENT) {
      printf("%s took %s: %s\n", rule->name, paging == HK_PAGE_RESOLVE ? "its end" : "the message", answer.text);
      code = HK_EXIT_DONE;
    } else {
      (void)hk_failed(argv, "%s did not take the message (%s): %s", rule->name,
                      sent == HK_SENT_LATER ? "the daemon would try again" : "the daemon would set it aside", answer.text);
    }
  }
  hk_message_free(&message);
  return code;
}

/* Clears the alert at once, because the test message may page someone. */
static int send_test(char **argv, const struct hk_notify_rule *found)
{
  struct hk_notify_rule rule = *found;
  struct hk_sender *sender = NULL;
  uint64_t id;
  rule.repeat = REPEAT;
  if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id)
    id = (uint64_t)hk_wall();
  if (hk_sender_new(&sender, NULL) != 0)
    return hk_failed(argv, "no memory");
  int code = send_one(argv, sender, &rule, id, HK_PAGE_TRIGGER);
  if (code == HK_EXIT_DONE && rule.type == HK_NOTIFY_PAGERDUTY)
    code = send_one(argv, sender, &rule, id, HK_PAGE_RESOLVE);
  hk_sender_free(sender);
  return code;
}

int hk_command_notify(int argc, char **argv)
{
  static const struct option options[] = { { "config", required_argument, NULL, 'c' },
                                           { "help", no_argument, NULL, 'h' },
                                           { 0 } };
  const char *path = NULL;
  struct hk_config config;
  int option;
  while ((option = hk_option_next(argc, argv, options)) != HK_OPTION_END) {
    if (option == HK_OPTION_HELP) {
      fputs(HK_NOTIFY_HELP, stdout);
      return HK_EXIT_DONE;
    }
    if (option != 'c')
      return HK_EXIT_USAGE;
    path = optarg;
  }
  static const char *const words[] = { "test", NULL };
  int word;
  if (hk_option_subcommand(argc, argv, words, &word) != 0)
    return HK_EXIT_USAGE;
  if (argc - optind != 2)
    return hk_usage(argv, "want test NAME, the NAME of [notify NAME]");
  if (!path)
    return hk_usage(argv, "-c FILE, the daemon's configuration, is needed");
  if (hk_config_load(&config, path, HK_CONFIG_PIPE, notify_test_print_fault, NULL) != 0)
    return HK_EXIT_FAILED; /* each fault was printed */
  const struct hk_notify_rule *rule = notify_test_rule_of(&config, argv[optind + 1]);
  const int code = rule ? send_test(argv, rule) : notify_test_lacks(argv, path, &config, argv[optind + 1]);
  hk_config_free(&config);
  return hk_finish_output(argv, code);
}
