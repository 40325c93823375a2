/* Reads configurations. inih parses the grammar; the reader that supplies it with lines determines what inih does not report
 * (line numbers, empty sections, unreadable lines, several faults).
 * config_section_kinds.c has the sections and their keys. */
#include "daemon/config/config_reader.h"

#include "cpu/lapack.h"
#include "cpu/suggest.h"
#include "daemon/base/address.h"
#include "daemon/base/read_line.h"
#include "daemon/config/config_section_kinds.h"
#include "daemon/config/daemon_keys.h"
#include "daemon/config/field_section.h"
#include "daemon/config/group_section.h"
#include "proto/wire/secret_file.h"

#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define FILE_MOST (16u << 20) /* bytes */

/* inih's handler: one key. */
static int take_key(void *arg, const char *section, const char *name, const char *value)
{
  struct hk_config_reading *r = arg;
  (void)section; /* the reader knows it, complete and with its line */
  r->expected = false;
  if (r->section && hk_config_seen(r, name)) {
    hk_config_complain(r, r->line, "`%.64s` is already in this section", name);
    return 1;
  }
  if (r->n_seen < HK_CONFIG_KEYS_MAX)
    snprintf(r->seen[r->n_seen++], sizeof r->seen[0], "%s", name);
  if (strstr(value, " #") || strstr(value, "\t#")) { /* a glob or a path would include it */
    hk_config_complain(r, r->line, "%.64s = %.64s: a comment after a value begins with ; and one with # needs a line of its own",
                       name, value);
    return 1;
  }
  if (r->section)
    r->section->key(r, name, value);
  else if (!r->bad)
    hk_config_complain(r, r->line, "`%.64s` is before the first section", name);
  return 1;
}

static void section_end(struct hk_config_reading *r)
{
  if (r->section && r->section->end)
    r->section->end(r);
  r->section = NULL;
  r->bad = false;
}

/* text: the part between the brackets. [daemon] and [cluster] have no name, [incidents] may have one, all others have one. */
static void no_such_section(struct hk_config_reading *r, const char *word)
{
  size_t n = 0;
  while (hk_config_kinds[n].word)
    n++;
  const char *meant = hk_suggest(word, &hk_config_kinds[0].word, n, sizeof *hk_config_kinds);
  hk_config_complain(
      r, r->line,
      "no such section%s%s%s there are [daemon], [listen NAME], [detector NAME], [group NAME], [field NAME], "
      "[maintenance NAME], [notify NAME], [mqtt NAME], [pictures NAME], [incidents], [incidents NAME] and [cluster]",
      meant ? "; did you mean [" : "", meant ? meant : "", meant ? "]?" : ";");
}

static void section_begin(struct hk_config_reading *r, char *text)
{
  section_end(r);
  r->section_line = r->line;
  r->faults_before = r->faults;
  r->n_seen = 0;
  char *name = text + strcspn(text, " \t");
  if (*name)
    *name++ = 0;
  name += strspn(name, " \t");
  const struct hk_config_kind *kind = hk_config_kinds;
  while (kind->word && (strcmp(kind->word, text) != 0 || (kind == hk_config_kinds && *name)))
    kind++;
  if (!kind->word)
    no_such_section(r, text);
  else if (kind->begin(r, name))
    r->section = kind;
  r->bad = !r->section;
}

static void check_taken(struct hk_config_reading *r)
{
  if (r->expected)
    hk_config_complain(r, r->line, "not understood; a line is `key = value`, `[section]`, or a comment that begins with # or ;");
  r->expected = false;
}

/* inih's reader: returns the next line, without leading blanks (they would join it to the line before). */
static char *config_next_line(char *out, int size, void *arg)
{
  struct hk_config_reading *r = arg;
  check_taken(r);
  bool nul;
  const size_t length = hk_read_line(r->file, out, (size_t)size, &nul);
  if (length == 0)
    return NULL;
  r->line++;
  if (length + 1 == (size_t)size && out[length - 1] != '\n') {
    int c = getc(r->file);
    if (c != EOF && c != '\n') {
      hk_config_complain(r, r->line, "longer than %d bytes", size - 1);
      while (c != EOF && c != '\n')
        c = getc(r->file);
      out[0] = 0;
      return out;
    }
  }
  if (nul) { /* not an empty line: its text may have restricted access */
    hk_config_complain(r, r->line, "a NUL byte: this is not text; the file is damaged");
    out[0] = 0;
    return out;
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
      r->bad = true;
      hk_config_complain(r, r->line, "a section ends with ]");
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

/* systemd sets it to the unit's StateDirectory=, of which the first counts if there are several. */
static void find_state(struct hk_config_reading *r)
{
  struct hk_config *c = r->config;
  const char *folders = getenv("STATE_DIRECTORY");
  const size_t length = folders ? strcspn(folders, ":") : 0;
  if (c->state[0] == 0 && length > 0 && length < sizeof c->state)
    snprintf(c->state, sizeof c->state, "%.*s", (int)length, folders);
  if (c->durability != HK_DURABILITY_NONE && c->state[0] == 0)
    hk_config_complain(r, 0, "durability = %s needs state = FOLDER (or StateDirectory= of the service)",
                       hk_durability_name(c->durability));
  if (c->durability != HK_DURABILITY_NONE && c->cluster.role == HK_CLUSTER_GATEWAY)
    hk_config_complain(r, 0, "[cluster] role = gateway needs durability = none: the broker keeps its points");
  if (c->durability != HK_DURABILITY_NONE && c->cluster.state[0])
    hk_config_complain(r, 0, "[cluster] state = shared:%s needs durability = none: the shared folder keeps the state",
                       c->cluster.state);
  if (c->durability == HK_DURABILITY_NONE && c->incidents.n > 0 && !hk_cluster_shares_events(&c->cluster))
    hk_config_complain(r, 0, "[incidents] needs the event log: durability = snapshot or journal");
  for (uint32_t i = 0; i < c->n_notify && c->n_groups == 0; i++)
    if (c->notify[i].group == HK_NOTIFY_MACHINE)
      hk_config_complain(r, 0, "[notify %s]: group_by = machine needs a [group NAME] section", c->notify[i].name);
  if (c->durability == HK_DURABILITY_NONE && c->n_notify > 0 && !hk_cluster_shares_events(&c->cluster))
    hk_config_complain(r, 0, "[notify %s] needs the event log: durability = snapshot or journal, and state = FOLDER",
                       c->notify[0].name);
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

/* Scores of the singular values, and the reference, need LAPACK: on a GPU, too, which the CPU may have to replace. */
static void check_lapack(struct hk_config_reading *r)
{
  const struct hk_config *c = r->config;
  const struct hk_config_detector *d = c->detectors, *end = d + c->n_detectors;
  char why[HK_LIBRARY_WHY];
  while (d < end && d->detector.algorithm != HK_ALGORITHM_SVD)
    d++;
  const bool needed = c->cluster.role != HK_CLUSTER_GATEWAY && (d < end || c->backend == HK_BACKEND_REFERENCE);
  if (!needed || hk_lapack_load(why, sizeof why) == 0)
    return;
  if (d < end)
    hk_config_complain(r, 0, "[detector %s]: algorithm = svd: %s", d->name, why);
  else
    hk_config_complain(r, 0, "backend = reference: %s", why);
}

int hk_config_read(struct hk_config *out, FILE *file, const char *name, hk_config_fault *fault, void *arg)
{
  struct hk_config_reading *r = calloc(1, sizeof *r);
  *out = (struct hk_config){ 0 };
  out->listeners = calloc(HK_CONFIG_LISTENERS_MAX, sizeof *out->listeners);
  out->detectors = calloc(HK_CONFIG_DETECTORS_MAX, sizeof *out->detectors);
  out->groups = calloc(HK_CONFIG_GROUPS_MAX, sizeof *out->groups);
  out->fields = calloc(HK_CONFIG_FIELDS_MAX, sizeof *out->fields);
  out->maintenance = calloc(HK_CONFIG_MAINTENANCE_MAX, sizeof *out->maintenance);
  out->notify = calloc(HK_CONFIG_NOTIFY_MAX, sizeof *out->notify);
  out->mqtt.rule = calloc(HK_CONFIG_MQTT_MAX, sizeof *out->mqtt.rule);
  out->pictures.rule = calloc(HK_CONFIG_PICTURES_MAX, sizeof *out->pictures.rule);
  if (!r || !out->pictures.rule || !out->notify || !out->mqtt.rule || !out->listeners || !out->detectors || !out->groups ||
      !out->fields || !out->maintenance) {
    fault(arg, "no memory to read the configuration");
    free(r);
    hk_config_free(out);
    return -ENOMEM;
  }
  hk_keys_default(out);
  *r = (struct hk_config_reading){ .config = out, .file = file, .name = name, .fault = fault, .arg = arg };
  (void)ini_parse_stream(config_next_line, r, take_key, r); /* its status adds nothing to the reported faults */
  check_taken(r);
  section_end(r);
  if (ferror(file))
    hk_config_complain(r, 0, "could not be read to its end; it must be a file");
  else if (out->n_detectors == 0)
    hk_config_complain(r, 0, "no [detector NAME] section; `[detector all]` with `match = *` is one for every sensor");
  else if (r->faults == 0)
    hk_config_add_groups(r);
  if (r->faults == 0)
    hk_config_add_fields(r);
  if (r->faults == 0)
    check_lapack(r);
  if ((uint64_t)out->backlog < 2 * (out->max_frame / 8 + 1))
    hk_config_complain(r, 0,
                       "backlog = %u: too small for max_frame; it must be at least max_frame / 4, room for two frames of points",
                       out->backlog);
  find_state(r);
  out->follows.max_connections_per_address = out->max_connections_per_address == 0;
  out->follows.on_device_failure = out->on_device_failure == HK_DEVICE_FAILURE_AUTO;
  hk_config_follow(out, out);
  int status = r->faults > 0 ? -EINVAL : 0;
  out->follows.listeners = out->n_listeners == 0;
  if (status == 0 && out->follows.listeners)
    status = default_listeners(out);
  free(r);
  if (status != 0)
    hk_config_free(out);
  return status;
}

int hk_config_load(struct hk_config *out, const char *path, int patience, hk_config_fault *fault, void *arg)
{
  char *data, why[HK_SECRET_WHY], message[512];
  size_t size;
  int status = hk_secret_read(path, FILE_MOST, patience, &data, &size, why);
  if (status != 0) {
    snprintf(message, sizeof message, "%.255s: %s", path, why);
    fault(arg, message);
    return status;
  }
  if (size == 0) { /* fmemopen may refuse it */
    snprintf(message, sizeof message, "%.255s: it is empty", path);
    fault(arg, message);
    hk_secret_free(data, size);
    return -EINVAL;
  }
  FILE *file = fmemopen(data, size, "r");
  if (file) {
    status = hk_config_read(out, file, path, fault, arg);
    fclose(file);
    if (status == 0 && (status = hk_config_read_graphs(out, fault, arg)) != 0)
      hk_config_free(out);
  } else {
    status = -ENOMEM;
    fault(arg, "no memory to read the configuration");
  }
  hk_secret_free(data, size);
  return status;
}
