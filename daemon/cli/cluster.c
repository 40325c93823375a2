/* hankel cluster: prints which machine of a cluster has which partitions, by their reports, and moves partitions. */
#include "daemon/cli/commands.h"

#include "daemon/cli/daemon_link.h"
#include "daemon/cli/format.h"
#include "daemon/cli/options.h"
#include "daemon/cli/tls_options.h"

#include <cjson/cJSON.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NODES 256u
#define PARTITIONS 1024u
#define PATIENCE 90 /* s for partitions to move */
#define WHY 256

static const char cluster_help[] =
    "usage: hankel cluster status [OPTION...]\n"
    "       hankel cluster drain [--undo] [OPTION...] MACHINE\n"
    "       hankel cluster move [OPTION...] PARTITION MACHINE\n\n"
    "Shows for each machine of a cluster ([cluster] of the configuration) whether it is connected to the broker and\n"
    "which one is the leader, and for each partition its scorer, since when, its epoch and how far behind it is.\n"
    "Any machine knows the others by what they tell every 2 s over the broker (RabbitMQ). Exits with 3 if a machine\n"
    "does not answer, is away or not connected, or if none of them scores a partition.\n\n"
    "drain: before maintenance, MACHINE (HOST:PORT of its binary listener) gives its partitions to other machines,\n"
    "each after a snapshot, and takes none until it is restarted. The command waits until MACHINE has none.\n"
    "move: MACHINE takes over a partition; the command waits until it has it. Shares stay even, so MACHINE may give\n"
    "another partition away.\n\n"
    "  --undo             with drain: MACHINE takes its share again\n"
    "  --from HOST:PORT   with status: the machine to ask, or several with commas (default " HK_LINK_ADDRESS ")\n"
    "  --json             with status: prints an object: machines, what each says, and unscored partitions\n" HK_SECURE_HELP "\n"
    "examples:\n"
    "  hankel cluster status --from gateway:7410\n"
    "  hankel cluster drain scorer1:7410\n"
    "  hankel cluster move 17 scorer2:7410\n";

/* Of a partition. */
struct row {
  const char *node;
  const cJSON *held;
};

/* A machine: asked, or one of the others that those know. */
struct node {
  const char *name;
  const cJSON *cluster;       /* what it says of itself; NULL: `silent` applies, or, for a machine that was asked, `answers` */
  bool answers, away, scores; /* scores: as a scorer it told so, even if it is away now */
  double silent;              /* s, of one that is away */
};

struct table {
  struct hankel_options link;
  cJSON *report[NODES];
  struct node node[2 * NODES];
  uint32_t n, nodes, of, scorers; /* n: reports; of: partitions; 0: not known */
  struct row row[PARTITIONS];
  bool wrong;
};

static double cluster_number_of(const cJSON *object, const char *name)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
  return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static const char *cluster_text_of(const cJSON *object, const char *name)
{
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
  return text ? text : "";
}

/* Gets the report of a machine; NULL after a message. */
static cJSON *cluster_ask(struct table *t, char **argv, const char *address)
{
  hankel *h;
  char *text = NULL;
  struct hankel_options link = t->link;
  cJSON *report = NULL;
  if (hk_link_open(&h, argv, address, &link) != 0)
    return NULL;
  if (hankel_status(h, &text, HK_LINK_WAIT) < 0)
    (void)hk_failed(argv, "no report from the daemon at %s: %s", address, hk_link_error(h, address));
  else if (!(report = cJSON_Parse(text)))
    (void)hk_failed(argv, "the report of the daemon at %s cannot be read", address);
  free(text);
  hankel_close(h);
  return report;
}

/* Whether it is connected to the broker: both to score and to publish, with role = all. */
static bool cluster_is_connected(const cJSON *cluster)
{
  const cJSON *publishing = cJSON_GetObjectItemCaseSensitive(cluster, "publishing");
  return strcmp(cluster_text_of(cluster, "state"), "connected") == 0 &&
         (!publishing || strcmp(cluster_text_of(publishing, "state"), "connected") == 0);
}

/* Whether a machine is a scorer, by what it says of itself; NULL: it says nothing. */
static bool cluster_scores(const cJSON *cluster)
{
  return cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(cluster, "held")); /* a gateway has none */
}

static void print_node(const char *address, const cJSON *cluster)
{
  const cJSON *publishing = cJSON_GetObjectItemCaseSensitive(cluster, "publishing"); /* of role = all, in addition */
  const bool gateway = strcmp(cluster_text_of(cluster, "role"), "gateway") == 0;
  const bool scores = strcmp(cluster_text_of(cluster, "state"), "connected") == 0;
  printf("%-28s %-8s %-10s %10.0f", address, cluster_text_of(cluster, "role"), cluster_text_of(cluster, "state"),
         cluster_number_of(cluster, "partitions"));
  if (gateway)
    printf("  %.0f points, %.0f messages not confirmed", cluster_number_of(cluster, "points"),
           cluster_number_of(cluster, "waiting"));
  else
    printf("  %.0f points, %.0f partitions have come", cluster_number_of(cluster, "points"), cluster_number_of(cluster, "moves"));
  if (publishing)
    printf("; %.0f points published, %.0f messages not confirmed", cluster_number_of(publishing, "points"),
           cluster_number_of(publishing, "waiting"));
  const bool leads = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(cluster, "leads"));
  printf("%s\n", leads ? "; leads: sends the alerts of all" : "");
  if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(cluster, "draining")))
    printf("%-28s draining: its partitions go to others, and it takes none\n", "");
  if (!cluster_is_connected(cluster))
    printf("%-28s %s\n", "", cluster_text_of(scores ? publishing : cluster, "why"));
}

/* If two machines report the same partition, one has lost it without knowing: the one with the later epoch has it. */
static void cluster_take_held(struct table *t, const char *address, const cJSON *cluster)
{
  const cJSON *held;
  cJSON_ArrayForEach(held, cJSON_GetObjectItemCaseSensitive(cluster, "held"))
  {
    const double partition = cluster_number_of(held, "partition");
    if (partition < 0 || partition >= PARTITIONS)
      continue;
    struct row *row = &t->row[(uint32_t)partition];
    if (!row->held || cluster_number_of(row->held, "epoch") < cluster_number_of(held, "epoch"))
      *row = (struct row){ address, held };
  }
  if (cluster_number_of(cluster, "of") <= PARTITIONS)
    t->of = (uint32_t)cluster_number_of(cluster, "of");
}

/* Whether a machine was asked, or is known already. */
static bool cluster_is_known(const struct table *t, const char *machine)
{
  for (uint32_t i = 0; i < t->nodes; i++)
    if (strcmp(t->node[i].name, machine) == 0 || strcmp(cluster_text_of(t->node[i].cluster, "machine"), machine) == 0)
      return true;
  return false;
}

static void cluster_add(struct table *t, const struct node *node)
{
  const bool wrong = !node->cluster || !cluster_is_connected(node->cluster);
  if (t->nodes == 2 * NODES)
    return;
  t->node[t->nodes++] = *node;
  t->wrong |= wrong;
  t->scorers += node->scores;
  if (node->cluster)
    cluster_take_held(t, node->name, node->cluster);
}

/* The machines that were not asked, as those that were asked know them. */
static void cluster_add_others(struct table *t)
{
  const cJSON *one;
  for (uint32_t i = 0; i < t->n; i++) {
    const cJSON *cluster = cJSON_GetObjectItemCaseSensitive(t->report[i], "cluster");
    cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(cluster, "others"))
    {
      struct node node = { .name = cluster_text_of(one, "machine"), .answers = true };
      node.away = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(one, "away"));
      node.silent = cluster_number_of(one, "silent");
      node.cluster = node.away ? NULL : cJSON_GetObjectItemCaseSensitive(one, "says");
      node.scores = cluster_scores(cJSON_GetObjectItemCaseSensitive(one, "says"));
      if (!cluster_is_known(t, node.name))
        cluster_add(t, &node);
    }
  }
}

static void cluster_print_nodes(const struct table *t)
{
  printf("%-28s %-8s %-10s %10s\n", "machine", "role", "broker", "partitions");
  for (uint32_t i = 0; i < t->nodes; i++) {
    const struct node *node = &t->node[i];
    if (node->cluster)
      print_node(node->name, node->cluster);
    else if (node->away)
      printf("%-28s away: has told nothing for %.0f s\n", node->name, node->silent);
    else
      printf("%-28s %s\n", node->name, node->answers ? "has no [cluster]" : "does not answer");
  }
}

/* A partition whose next message its scorer cannot read. Returns the version that it needs; 0: it is none. */
static double cluster_needs(const struct row *row)
{
  return row->held ? cluster_number_of(row->held, "needs_version") : 0;
}

static void cluster_print_partitions(const struct table *t)
{
  uint32_t missing = 0;
  if (t->scorers == 0)
    return;
  printf("\n%-10s %-28s %10s %-20s %12s %6s\n", "partition", "scored by", "epoch", "since", "message", "lag");
  for (uint32_t i = 0; i < t->of; i++) {
    const struct row *row = &t->row[i];
    if (row->held)
      printf("%-10u %-28s %10.0f %-20s %12.0f %4.0f s\n", i, row->node, cluster_number_of(row->held, "epoch"),
             cluster_text_of(row->held, "since"), cluster_number_of(row->held, "next"),
             cluster_number_of(row->held, "lag_seconds"));
    if (cluster_needs(row) > 0)
      printf("%-10s waits: that message is of version %.0f, which %s does not read; upgrade it\n", "", cluster_needs(row),
             row->node);
    missing += !row->held;
  }
  if (missing > 0)
    printf("\nscored by none of these machines:");
  for (uint32_t i = 0; i < t->of && missing > 0; i++)
    if (!t->row[i].held)
      printf(" %u", i);
  if (missing > 0)
    printf("\n");
}

/* Prints all of it as one object. Returns an exit code. */
static int cluster_print_json(const struct table *t, char **argv)
{
  cJSON *out = cJSON_CreateObject(), *machines = cJSON_AddArrayToObject(out, "machines");
  for (uint32_t i = 0; i < t->nodes; i++) {
    const struct node *node = &t->node[i];
    cJSON *one = cJSON_CreateObject();
    (void)cJSON_AddStringToObject(one, "name", node->name);
    (void)cJSON_AddBoolToObject(one, "away", node->away || !node->answers);
    cJSON *says = node->cluster ? cJSON_Duplicate(node->cluster, true) : cJSON_CreateNull();
    cJSON_DeleteItemFromObjectCaseSensitive(says, "others"); /* are machines of their own here */
    (void)cJSON_AddItemToObject(one, "says", says);
    (void)cJSON_AddItemToArray(machines, one);
  }
  cJSON *unscored = t->scorers > 0 ? cJSON_AddArrayToObject(out, "unscored") : cJSON_AddNullToObject(out, "unscored");
  for (uint32_t i = 0; i < t->of && t->scorers > 0; i++)
    if (!t->row[i].held)
      (void)cJSON_AddItemToArray(unscored, cJSON_CreateNumber(i));
  char *text = cJSON_PrintUnformatted(out);
  cJSON_Delete(out);
  if (!text)
    return hk_failed(argv, "no memory");
  puts(text);
  cJSON_free(text);
  return 0;
}

/* addresses: this function cuts it at its commas. */
static int cluster_show(struct table *t, char **argv, char *addresses, bool json)
{
  char *rest = NULL;
  int code = 0;
  for (char *a = strtok_r(addresses, ", ", &rest); a && t->n < NODES; a = strtok_r(NULL, ", ", &rest)) {
    cJSON *report = cluster_ask(t, argv, a);
    t->report[t->n++] = report;
    const cJSON *cluster = cJSON_GetObjectItemCaseSensitive(report, "cluster");
    const struct node node = { a, cluster, .answers = report != NULL, .scores = cluster_scores(cluster) };
    cluster_add(t, &node);
  }
  if (t->n == 0)
    return hk_usage(argv, "--from names no machine");
  cluster_add_others(t);
  for (uint32_t i = 0; i < t->of; i++)
    t->wrong |= cluster_needs(&t->row[i]) > 0 || (t->scorers > 0 && !t->row[i].held);
  if (json) {
    code = cluster_print_json(t, argv);
  } else {
    cluster_print_nodes(t);
    cluster_print_partitions(t);
  }
  for (uint32_t i = 0; i < t->n; i++)
    cJSON_Delete(t->report[i]);
  return code != 0 ? code : t->wrong ? HK_EXIT_WRONG : HK_EXIT_DONE;
}

/* --- moving partitions ------------------------------------------------------------------------------------------------------ */

/* What a machine says of the last request to move a partition to it; NULL: nothing. */
static const cJSON *cluster_request(const cJSON *cluster, uint32_t partition)
{
  const cJSON *one;
  cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(cluster, "wanted")) if (cluster_number_of(one, "partition") ==
                                                                                   partition) return one;
  return NULL;
}

/* Whether a machine is in the requested state: it has the partition, or had it already since; or, for UINT32_MAX, no partition.
 */
static bool cluster_is_done(const cJSON *cluster, uint32_t partition)
{
  const cJSON *held;
  if (partition == UINT32_MAX)
    return cluster_number_of(cluster, "partitions") == 0;
  cJSON_ArrayForEach(held, cJSON_GetObjectItemCaseSensitive(cluster, "held")) if (cluster_number_of(held, "partition") ==
                                                                                  partition) return true;
  return strcmp(cluster_text_of(cluster_request(cluster, partition), "state"), "done") == 0;
}

/* Keeps what stands in the way of a request. Returns whether it came to nothing. */
static bool cluster_is_over(const cJSON *cluster, uint32_t partition, char why[WHY])
{
  const cJSON *wanted = partition == UINT32_MAX ? NULL : cluster_request(cluster, partition);
  const char *state = cluster_text_of(wanted, "state");
  if (partition == UINT32_MAX)
    snprintf(why, WHY, ": it still has %.0f partitions", cluster_number_of(cluster, "partitions"));
  else if (wanted)
    snprintf(why, WHY, ": %.200s", cluster_text_of(wanted, "why"));
  return strcmp(state, "overruled") == 0 || strcmp(state, "over") == 0;
}

/* Waits until a machine is in the requested state. */
static int cluster_await(struct table *t, char **argv, const char *machine, uint32_t partition)
{
  const struct timespec moment = { 0, 300000000 };
  const time_t begun = time(NULL);
  char why[WHY] = "";
  for (bool done = false, over = false; !done && !over && time(NULL) - begun < PATIENCE;) {
    cJSON *report = cluster_ask(t, argv, machine);
    const cJSON *cluster = report ? cJSON_GetObjectItemCaseSensitive(report, "cluster") : NULL;
    const double others = cluster_number_of(cluster, "scorers");
    done = cluster_is_done(cluster, partition);
    over = cluster_is_over(cluster, partition, why);
    cJSON_Delete(report);
    if (!report)
      return HK_EXIT_FAILED;
    if (done && partition == UINT32_MAX)
      printf("%s has no partitions%s\n", machine,
             others > 0 ? ": it may be stopped" : "; there is no other scorer, so points wait at the broker");
    else if (done)
      printf("partition %u is scored by %s\n", partition, machine);
    if (done)
      return HK_EXIT_DONE;
    (void)nanosleep(&moment, NULL);
  }
  return hk_failed(argv, "not done after %.0f s%s; hankel cluster status and the log of %s say more", difftime(time(NULL), begun),
                   why, machine);
}

static int cluster_move(struct table *t, char **argv, const char *machine, int what, uint32_t partition)
{
  hankel *h;
  char *text = NULL;
  int code = hk_link_open(&h, argv, machine, &t->link);
  if (code != 0)
    return code;
  const int status = hankel_cluster(h, what, partition, "", &text, HK_LINK_WAIT);
  code = hk_link_answered(h, argv, machine, status, text);
  if (code != 0 || what == HANKEL_UNDRAIN)
    return code;
  (void)fflush(stdout);
  return cluster_await(t, argv, machine, what == HANKEL_MOVE ? partition : UINT32_MAX);
}

enum subcommand { STATUS, DRAIN, MOVE };

static const char *const subcommands[] = { "status", "drain", "move", NULL };

/* from: the machine to ask; NULL: none was given. Returns an exit code. */
static int cluster_run(struct table *t, int argc, char **argv, int what, const char *from, bool undo, bool json)
{
  static const char *const wanted[] = {
    [DRAIN] = "drain wants one MACHINE, HOST:PORT", [MOVE] = "move wants PARTITION and MACHINE, as in: move 17 scorer2:7410"
  };
  char **arguments = argv + optind + 1;
  const int n = argc - optind - 1;
  uint64_t partition = 0;
  if (what == STATUS) {
    if (n > 0)
      return hk_usage(argv, "%s: unexpected argument; --from HOST:PORT names another machine", arguments[0]);
    char *addresses = strdup(from ? from : HK_LINK_ADDRESS);
    const int code = addresses ? cluster_show(t, argv, addresses, json) : hk_failed(argv, "out of memory");
    free(addresses);
    return code;
  }
  if (n != (what == DRAIN ? 1 : 2))
    return hk_usage(argv, "%s", wanted[what]);
  if (from)
    return hk_usage(argv, "--from goes with status: %s asks MACHINE itself", subcommands[what]);
  if (what == DRAIN)
    return cluster_move(t, argv, arguments[0], undo ? HANKEL_UNDRAIN : HANKEL_DRAIN, 0);
  const int code = hk_option_whole(argv, "partition", arguments[0], 0, PARTITIONS - 1, &partition);
  return code != 0 ? code : cluster_move(t, argv, arguments[1], HANKEL_MOVE, (uint32_t)partition);
}

int hk_command_cluster(int argc, char **argv)
{
  static const struct option options[] = {
    { "from", required_argument, NULL, 'f' }, { "undo", no_argument, NULL, 'u' },
    { "json", no_argument, NULL, 'j' },       HK_SECURE_OPTIONS,
    { "help", no_argument, NULL, 'h' },       { 0 },
  };
  static struct table table;
  const char *from = NULL;
  bool undo = false, json = false;
  int option;
  table.link = (struct hankel_options)HANKEL_OPTIONS_DEFAULT;
  table.link.once = 1;
  while ((option = hk_option_next(argc, argv, options)) != HK_OPTION_END) {
    if (option == 'f') {
      from = optarg;
    } else if (option == 'u') {
      undo = true;
    } else if (option == 'j') {
      json = true;
    } else if (option == HK_OPTION_HELP) {
      fputs(cluster_help, stdout);
      return hk_finish_output(argv, HK_EXIT_DONE);
    } else if (hk_secure_take(&table.link.security, option, optarg) != 0) {
      return HK_EXIT_USAGE;
    }
  }
  int what;
  if (hk_option_subcommand(argc, argv, subcommands, &what) != 0)
    return HK_EXIT_USAGE;
  if (undo && what != DRAIN)
    return hk_usage(argv, "--undo goes with drain");
  if (json && what != STATUS)
    return hk_usage(argv, "--json goes with status");
  return hk_finish_output(argv, cluster_run(&table, argc, argv, what, from, undo, json));
}
