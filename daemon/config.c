/* Reading the configuration. inih does the grammar; what it does not tell (line numbers, empty sections, lines that it
 * cannot read, several faults) is found out by the reader that hands it the lines.
 *
 * The keys of [daemon] are a table in keys.c. Detectors have their own keys in cpu/detector.c. */
#include "daemon/config.h"

#include "daemon/keys.h"
#include "daemon/maintenance.h"
#include "proto/line.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define KEYS_MAX 128 /* different keys of one section */

static const char *const protocols[] = { "binary", "line", "text", NULL };
static const char *const transports[] = { "tcp", "udp", NULL };
const char *hk_protocol_name(enum hk_protocol protocol)
{
  return protocols[protocol];
}
const char *hk_transport_name(enum hk_transport transport)
{
  return transports[transport];
}

enum section { SECTION_NONE, SECTION_DAEMON, SECTION_LISTEN, SECTION_DETECTOR, SECTION_GROUP, SECTION_MAINTENANCE, SECTION_BAD };

struct reading {
  struct hk_config *config;
  FILE *file;
  const char *name;
  hk_config_fault *fault;
  void *arg;
  uint32_t line, faults;
  enum section section;
  uint32_t section_line;
  bool expected; /* the line given to inih must come back as a key */
  bool any_daemon;
  char seen[KEYS_MAX][24]; /* keys of this section */
  uint32_t n_seen;
  struct hk_detectors_draft draft;
};

static void complain(struct reading *r, uint32_t line, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void complain(struct reading *r, uint32_t line, const char *format, ...)
{
  char message[768];
  const int at = line > 0 ? snprintf(message, sizeof message, "%.255s:%u: ", r->name, line)
                          : snprintf(message, sizeof message, "%.255s: ", r->name);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message + at, sizeof message - (size_t)at, format, arguments);
  va_end(arguments);
  r->faults++;
  r->fault(r->arg, message);
}

static void daemon_key(struct reading *r, const char *name, const char *value)
{
  char error[512];
  if (hk_key_set(r->config, name, value, error, sizeof error) != 0)
    complain(r, r->line, "%s", error);
}

static void listen_key(struct reading *r, const char *name, const char *value)
{
  struct hk_config_listener *l = &r->config->listeners[r->config->n_listeners - 1];
  uint32_t word;
  char error[256];
  const int status = hk_rules_set(&l->rules, name, value, error, sizeof error);
  if (status < 0) {
    complain(r, r->line, "%s", error);
  } else if (status == 0) {
    return;
  } else if (strcmp(name, "protocol") == 0) {
    if (hk_word_find(protocols, value, &word) != 0)
      complain(r, r->line, "protocol = %.64s: not one of binary, line, text", value);
    else
      l->protocol = (enum hk_protocol)word;
  } else if (strcmp(name, "transport") == 0) {
    if (hk_word_find(transports, value, &word) != 0)
      complain(r, r->line, "transport = %.64s: not one of tcp, udp", value);
    else
      l->transport = (enum hk_transport)word;
  } else if (strcmp(name, "address") == 0) {
    if (hk_address_parse(value, &l->address) != 0)
      complain(r, r->line, "address = %.128s: not a numeric address and port such as 127.0.0.1:7410 or [::1]:7410", value);
  } else if (strcmp(name, "precision") == 0) {
    l->precision = hk_precision_parse(value);
    if (l->precision == 0)
      complain(r, r->line, "precision = %.64s: not one of ns, us, ms, s", value);
  } else {
    complain(r, r->line, "[listen] has no key `%.64s`; hankeld.conf(5) lists them", name);
  }
}

static void detector_key(struct reading *r, const char *name, const char *value)
{
  struct hk_config_detector *d = &r->config->detectors[r->config->n_detectors - 1];
  if (strcmp(name, "match") == 0) {
    if (value[0] == 0 || strlen(value) >= sizeof d->match)
      complain(r, r->line, "match: a glob of 1 to %zu bytes is needed; * matches every sensor", sizeof d->match - 1);
    else
      snprintf(d->match, sizeof d->match, "%s", value);
    return;
  }
  char error[256];
  if (hk_detectors_set(&r->draft, name, value, error, sizeof error) != 0)
    complain(r, r->line, "%s", error);
}

static void maintenance_key(struct reading *r, const char *name, const char *value)
{
  char error[256];
  if (hk_maintenance_key(&r->config->maintenance[r->config->n_maintenance - 1], name, value, error, sizeof error) != 0)
    complain(r, r->line, "%s", error);
}

static void group_key(struct reading *r, const char *name, const char *value)
{
  struct hk_config_group *g = &r->config->groups[r->config->n_groups - 1];
  char error[256];
  if (strcmp(name, "match") != 0) {
    if (hk_group_set(&g->rule, name, value, error, sizeof error) != 0)
      complain(r, r->line, "%s", error);
    return;
  }
  const char *capture = strstr(value, "(*)");
  if (!capture || strlen(value) >= sizeof g->match || strcspn(value, "()") != (size_t)(capture - value) || strpbrk(capture + 3, "()")) {
    complain(r, r->line, "match = %.64s: a glob with one capture, (*), is needed, such as plant/(*)/*; what that stands for names the machine",
             value);
    return;
  }
  snprintf(g->match, sizeof g->match, "%s", value);
  g->capture = (uint32_t)(capture - value);
}

static bool seen(const struct reading *r, const char *name)
{
  for (uint32_t i = 0; i < r->n_seen; i++)
    if (strcmp(r->seen[i], name) == 0)
      return true;
  return false;
}

/* inih's handler: one key. */
static int take_key(void *arg, const char *section, const char *name, const char *value)
{
  struct reading *r = arg;
  (void)section; /* the reader knows it, whole and with its line */
  r->expected = false;
  if (seen(r, name)) {
    complain(r, r->line, "`%.64s` stands in this section already", name);
    return 1;
  }
  if (r->n_seen < KEYS_MAX)
    snprintf(r->seen[r->n_seen++], sizeof r->seen[0], "%s", name);
  if (strstr(value, " #") || strstr(value, "\t#")) { /* a glob or a path would take it for a part of itself */
    complain(r, r->line, "%.64s = %.64s: a comment behind a value begins with ; and with # it stands on a line of its own", name,
             value);
    return 1;
  }
  switch (r->section) {
  case SECTION_NONE:
    complain(r, r->line, "`%.64s` stands before the first section", name);
    break;
  case SECTION_DAEMON:
    daemon_key(r, name, value);
    break;
  case SECTION_LISTEN:
    listen_key(r, name, value);
    break;
  case SECTION_DETECTOR:
    detector_key(r, name, value);
    break;
  case SECTION_MAINTENANCE:
    maintenance_key(r, name, value);
    break;
  case SECTION_GROUP:
    group_key(r, name, value);
    break;
  case SECTION_BAD:
    break;
  }
  return 1;
}

static void listen_fault(void *arg, const char *message)
{
  struct reading *r = arg;
  complain(r, r->section_line, "[listen %s]: %s", r->config->listeners[r->config->n_listeners - 1].name, message);
}

/* Each algorithm behind the first becomes a detector of its own, which stands behind its section's. */
static void detector_end(struct reading *r, struct hk_config_detector *d)
{
  struct hk_config *c = r->config;
  struct hk_detector made[HK_ALGORITHMS];
  char error[256];
  const int n = hk_detectors_finish(&r->draft, made, error, sizeof error);
  if (n < 0) {
    complain(r, r->section_line, "[detector %s]: %s", d->name, error);
    return;
  }
  d->detector = made[0];
  for (int i = 1; i < n; i++) {
    const char *algorithm = hk_algorithm_name(made[i].algorithm);
    if (c->n_detectors == HK_CONFIG_DETECTORS_MAX) {
      complain(r, r->section_line, "over %d detectors, with those of further algorithms", HK_CONFIG_DETECTORS_MAX);
      return;
    }
    struct hk_config_detector *companion = &c->detectors[c->n_detectors];
    *companion = *d;
    const int length = snprintf(companion->name, sizeof companion->name, "%s%c%s", d->name, HK_DERIVED_MARK, algorithm);
    if (length >= (int)sizeof companion->name)
      complain(r, r->section_line, "[detector %s]: its name is too long for one with %c%s behind it", d->name, HK_DERIVED_MARK,
               algorithm);
    companion->detector = made[i];
    companion->number = c->n_detectors++;
    companion->derived = true;
  }
}

/* What can only be said when a section is whole. */
static void section_end(struct reading *r)
{
  if (r->section == SECTION_LISTEN) {
    struct hk_config_listener *l = &r->config->listeners[r->config->n_listeners - 1];
    if (!seen(r, "protocol"))
      complain(r, r->section_line, "[listen %s] needs a protocol: binary, line or text", l->name);
    if (!seen(r, "address"))
      complain(r, r->section_line, "[listen %s] needs an address such as 127.0.0.1:7410", l->name);
    if (l->protocol == HK_PROTOCOL_TEXT && l->transport == HK_TRANSPORT_UDP)
      complain(r, r->section_line, "[listen %s]: the text protocol needs transport = tcp", l->name);
    if (l->protocol != HK_PROTOCOL_LINE && seen(r, "precision"))
      complain(r, r->section_line, "[listen %s]: precision is for protocol = line", l->name);
    if (l->address.ss_family != 0)
      hk_rules_finish(&l->rules, &l->address, l->transport == HK_TRANSPORT_UDP, l->protocol == HK_PROTOCOL_BINARY, listen_fault,
                      r);
  } else if (r->section == SECTION_DETECTOR) {
    struct hk_config_detector *d = &r->config->detectors[r->config->n_detectors - 1];
    if (!seen(r, "match"))
      complain(r, r->section_line, "[detector %s] needs match = GLOB, the sensors that it is for; * is all of them", d->name);
    detector_end(r, d);
  } else if (r->section == SECTION_MAINTENANCE) {
    struct hk_maintenance_rule *m = &r->config->maintenance[r->config->n_maintenance - 1];
    char error[256];
    if (hk_maintenance_finish(m, error, sizeof error) != 0)
      complain(r, r->section_line, "[maintenance %s]: %s", m->name, error);
  } else if (r->section == SECTION_GROUP) {
    const struct hk_config_group *g = &r->config->groups[r->config->n_groups - 1];
    char error[256];
    if (!seen(r, "match"))
      complain(r, r->section_line, "[group %s] needs match = GLOB with one capture, such as plant/(*)/*", g->name);
    if (hk_group_check(&g->rule, error, sizeof error) != 0)
      complain(r, r->section_line, "[group %s]: %s", g->name, error);
  }
  r->section = SECTION_NONE;
}

static int name_copy(struct reading *r, char out[HK_CONFIG_NAME_MAX], const char *kind, const char *name)
{
  if (name[0] == 0 || strlen(name) >= HK_CONFIG_NAME_MAX) {
    complain(r, r->line, "[%s NAME]: a name of 1 to %d bytes is needed", kind, HK_CONFIG_NAME_MAX - 1);
    return -EINVAL;
  }
  snprintf(out, HK_CONFIG_NAME_MAX, "%s", name);
  return 0;
}

static void listen_begin(struct reading *r, const char *name)
{
  struct hk_config *c = r->config;
  struct hk_config_listener made = { .precision = 1 };
  if (name_copy(r, made.name, "listen", name) != 0)
    return;
  for (uint32_t i = 0; i < c->n_listeners; i++)
    if (strcmp(c->listeners[i].name, name) == 0) {
      complain(r, r->line, "there is a [listen %s] already", name);
      return;
    }
  if (c->n_listeners == HK_CONFIG_LISTENERS_MAX) {
    complain(r, r->line, "over %d listeners", HK_CONFIG_LISTENERS_MAX);
    return;
  }
  c->listeners[c->n_listeners++] = made;
  r->section = SECTION_LISTEN;
}

static void detector_begin(struct reading *r, const char *name)
{
  struct hk_config *c = r->config;
  struct hk_config_detector made = { 0 };
  if (name_copy(r, made.name, "detector", name) != 0)
    return;
  if (strchr(name, HK_DERIVED_MARK)) {
    complain(r, r->line, "[detector %s]: %c stands in the names of further algorithms, NAME%cgraph, and in no other", name,
             HK_DERIVED_MARK, HK_DERIVED_MARK);
    return;
  }
  for (uint32_t i = 0; i < c->n_detectors; i++)
    if (strcmp(c->detectors[i].name, name) == 0) {
      complain(r, r->line, "there is a [detector %s] already", name);
      return;
    }
  if (c->n_detectors == HK_CONFIG_DETECTORS_MAX) {
    complain(r, r->line, "over %d detectors", HK_CONFIG_DETECTORS_MAX);
    return;
  }
  made.number = c->n_detectors;
  c->detectors[c->n_detectors++] = made;
  r->draft = (struct hk_detectors_draft){ 0 };
  r->section = SECTION_DETECTOR;
}

static void maintenance_begin(struct reading *r, const char *name)
{
  struct hk_config *c = r->config;
  struct hk_maintenance_rule made = { 0 };
  if (name_copy(r, made.name, "maintenance", name) != 0)
    return;
  for (uint32_t i = 0; i < c->n_maintenance; i++)
    if (strcmp(c->maintenance[i].name, name) == 0) {
      complain(r, r->line, "there is a [maintenance %s] already", name);
      return;
    }
  if (c->n_maintenance == HK_CONFIG_MAINTENANCE_MAX) {
    complain(r, r->line, "over %d maintenance windows", HK_CONFIG_MAINTENANCE_MAX);
    return;
  }
  c->maintenance[c->n_maintenance++] = made;
  r->section = SECTION_MAINTENANCE;
}

static void group_begin(struct reading *r, const char *name)
{
  struct hk_config *c = r->config;
  struct hk_config_group made = { .rule = hk_group_default() };
  if (name_copy(r, made.name, "group", name) != 0)
    return;
  if (strchr(name, HK_DERIVED_MARK) || strlen(name) >= HK_CONFIG_NAME_MAX - 1) {
    complain(r, r->line, "[group %s]: a name has no %c, and is at most %d bytes long", name, HK_DERIVED_MARK, HK_CONFIG_NAME_MAX - 2);
    return;
  }
  for (uint32_t i = 0; i < c->n_groups; i++)
    if (strcmp(c->groups[i].name, name) == 0) {
      complain(r, r->line, "there is a [group %s] already", name);
      return;
    }
  if (c->n_groups == HK_CONFIG_GROUPS_MAX) {
    complain(r, r->line, "over %d groups", HK_CONFIG_GROUPS_MAX);
    return;
  }
  c->groups[c->n_groups++] = made;
  r->section = SECTION_GROUP;
}

/* The detectors of the groups' series: they are there, and compute nothing. */
static void add_group_detectors(struct reading *r)
{
  struct hk_config *c = r->config;
  char error[256];
  for (uint32_t i = 0; i < c->n_groups; i++) {
    if (c->n_detectors == HK_CONFIG_DETECTORS_MAX) {
      complain(r, 0, "over %d detectors, with those of groups", HK_CONFIG_DETECTORS_MAX);
      return;
    }
    struct hk_config_detector *d = &c->detectors[c->n_detectors];
    *d = (struct hk_config_detector){ .number = c->n_detectors, .derived = true, .group = true };
    d->name[0] = HK_DERIVED_MARK;
    snprintf(d->name + 1, sizeof d->name - 1, "%.*s", HK_CONFIG_NAME_MAX - 2, c->groups[i].name);
    snprintf(d->match, sizeof d->match, "%s", c->groups[i].match);
    if (hk_detector_parse("window=4,gap=1,rank=1,krylov=2,products=2,stride=65536,alert=off", &d->detector, error, sizeof error) != 0)
      complain(r, 0, "[group %s]: %s", c->groups[i].name, error);
    c->n_detectors++;
  }
}

/* text: what stands between the brackets. */
static void section_begin(struct reading *r, char *text)
{
  section_end(r);
  r->section = SECTION_BAD;
  r->section_line = r->line;
  r->n_seen = 0;
  char *name = text + strcspn(text, " \t");
  if (*name)
    *name++ = 0;
  name += strspn(name, " \t");
  if (strcmp(text, "daemon") == 0 && *name == 0) {
    if (r->any_daemon)
      complain(r, r->line, "there is a [daemon] section already");
    r->any_daemon = true;
    r->section = SECTION_DAEMON;
  } else if (strcmp(text, "listen") == 0) {
    listen_begin(r, name);
  } else if (strcmp(text, "detector") == 0) {
    detector_begin(r, name);
  } else if (strcmp(text, "group") == 0) {
    group_begin(r, name);
  } else if (strcmp(text, "maintenance") == 0) {
    maintenance_begin(r, name);
  } else {
    complain(r, r->line, "no such section; there are [daemon], [listen NAME], [detector NAME], [group NAME] and [maintenance NAME]");
  }
}

static void check_taken(struct reading *r)
{
  if (r->expected)
    complain(r, r->line, "not understood; a line is `key = value`, `[section]`, or a comment that begins with # or ;");
  r->expected = false;
}

/* inih's reader: hands out the next line, without blanks at its start (they would join it to the line before). */
static char *next_line(char *out, int size, void *arg)
{
  struct reading *r = arg;
  check_taken(r);
  if (!fgets(out, size, r->file))
    return NULL;
  r->line++;
  const size_t length = strlen(out);
  if (length + 1 == (size_t)size && out[length - 1] != '\n') {
    int c = getc(r->file);
    if (c != EOF && c != '\n') {
      complain(r, r->line, "longer than %d characters", size - 2);
      while (c != EOF && c != '\n')
        c = getc(r->file);
      out[0] = 0;
      return out;
    }
  }
  if (r->line == 1 && strncmp(out, "\xef\xbb\xbf", 3) == 0)
    memmove(out, out + 3, length - 2);
  const size_t blanks = strspn(out, " \t\r\n\f\v");
  memmove(out, out + blanks, strlen(out) - blanks + 1);
  if (out[0] == '[') {
    char text[512];
    const char *end = strchr(out, ']');
    if (!end) {
      section_end(r);
      r->section = SECTION_BAD;
      complain(r, r->line, "a section ends with ]");
      out[0] = 0;
    } else {
      snprintf(text, sizeof text, "%.*s", (int)(end - out - 1), out + 1);
      section_begin(r, text);
    }
  } else if (out[0] != 0 && out[0] != '#' && out[0] != ';') {
    r->expected = true;
  }
  return out;
}

/* systemd names the unit's StateDirectory=, the first of them where there are several. */
static void find_state(struct reading *r)
{
  struct hk_config *c = r->config;
  const char *folders = getenv("STATE_DIRECTORY");
  const size_t length = folders ? strcspn(folders, ":") : 0;
  if (c->state[0] == 0 && length > 0 && length < sizeof c->state)
    snprintf(c->state, sizeof c->state, "%.*s", (int)length, folders);
  if (c->durability != HK_DURABILITY_NONE && c->state[0] == 0)
    complain(r, 0, "durability = %s needs state = FOLDER, where it is kept (or StateDirectory= of the service)",
             hk_durability_name(c->durability));
}

static int default_listeners(struct hk_config *c)
{
  static const struct {
    const char *name;
    enum hk_protocol protocol;
    enum hk_transport transport;
    uint16_t port;
  } standard[] = {
    { "binary", HK_PROTOCOL_BINARY, HK_TRANSPORT_TCP, 7410 }, { "binary-udp", HK_PROTOCOL_BINARY, HK_TRANSPORT_UDP, 7410 },
    { "line", HK_PROTOCOL_LINE, HK_TRANSPORT_TCP, 7411 },     { "line-udp", HK_PROTOCOL_LINE, HK_TRANSPORT_UDP, 7411 },
    { "text", HK_PROTOCOL_TEXT, HK_TRANSPORT_TCP, 7412 },
  };
  for (size_t i = 0; i < COUNT(standard); i++) {
    struct hk_config_listener *l = &c->listeners[c->n_listeners++];
    char address[32];
    *l = (struct hk_config_listener){
      .protocol = standard[i].protocol, .transport = standard[i].transport, .precision = 1, .rules = { .scopes = HK_SCOPE_ALL }
    };
    snprintf(l->name, sizeof l->name, "%s", standard[i].name);
    snprintf(address, sizeof address, "127.0.0.1:%u", standard[i].port);
    const int status = hk_address_parse(address, &l->address);
    if (status != 0)
      return status;
  }
  return 0;
}

int hk_config_read(struct hk_config *out, FILE *file, const char *name, hk_config_fault *fault, void *arg)
{
  struct reading *r = calloc(1, sizeof *r);
  *out = (struct hk_config){ 0 };
  out->listeners = calloc(HK_CONFIG_LISTENERS_MAX, sizeof *out->listeners);
  out->detectors = calloc(HK_CONFIG_DETECTORS_MAX, sizeof *out->detectors);
  out->groups = calloc(HK_CONFIG_GROUPS_MAX, sizeof *out->groups);
  out->maintenance = calloc(HK_CONFIG_MAINTENANCE_MAX, sizeof *out->maintenance);
  if (!r || !out->listeners || !out->detectors || !out->groups || !out->maintenance) {
    fault(arg, "no memory to read the configuration");
    free(r);
    hk_config_free(out);
    return -ENOMEM;
  }
  hk_keys_default(out);
  *r = (struct reading){ .config = out, .file = file, .name = name, .fault = fault, .arg = arg };
  (void)ini_parse_stream(next_line, r, take_key, r); /* its status says no more than what was told by now */
  check_taken(r);
  section_end(r);
  if (ferror(file))
    complain(r, 0, "could not be read to its end; is it a file?");
  else if (out->n_detectors == 0)
    complain(r, 0, "no [detector NAME] section; `[detector all]` with `match = *` is one for every sensor");
  else if (r->faults == 0)
    add_group_detectors(r);
  if ((uint64_t)out->backlog < 2 * (out->max_frame / 8 + 1))
    complain(r, 0, "backlog = %u: too small for max_frame; it must be at least max_frame / 4, room for two frames of points",
             out->backlog);
  find_state(r);
  if (out->max_connections_per_address == 0)
    out->max_connections_per_address = out->max_connections - out->max_connections / 2;
  if (out->on_device_failure == HK_DEVICE_FAILURE_AUTO) /* whoever insists on the GPU wants to know that it is gone */
    out->on_device_failure = out->backend == HK_BACKEND_CUDA ? HK_DEVICE_FAILURE_STOP : HK_DEVICE_FAILURE_CPU;
  int status = r->faults > 0 ? -EINVAL : 0;
  if (status == 0 && out->n_listeners == 0)
    status = default_listeners(out);
  free(r);
  if (status != 0)
    hk_config_free(out);
  return status;
}

int hk_config_load(struct hk_config *out, const char *path, hk_config_fault *fault, void *arg)
{
  FILE *file = fopen(path, "re");
  if (!file) {
    char message[512];
    const int status = -errno;
    snprintf(message, sizeof message, "%.255s: %s", path, strerror(-status));
    fault(arg, message);
    return status;
  }
  const int status = hk_config_read(out, file, path, fault, arg);
  fclose(file);
  return status;
}

void hk_config_free(struct hk_config *config)
{
  free(config->listeners);
  free(config->detectors);
  free(config->maintenance);
  free(config->groups);
  config->groups = NULL;
  config->listeners = NULL;
  config->detectors = NULL;
  config->maintenance = NULL;
  config->n_listeners = config->n_detectors = config->n_groups = config->n_maintenance = 0;
}
