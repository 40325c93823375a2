/* The keys of a field: see field.h. */
#include "cpu/field/rule.h"
#include "cpu/duration.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct hk_field_rule hk_field_default(void)
{
  return (struct hk_field_rule){ .neighbours = HK_FIELD_AUTO,
                                 .q = 8,
                                 .refit = 24,
                                 .blame = 96,
                                 .wait = 4,
                                 .members = 1024,
                                 .interval = 1000000000,
                                 .forget = 0.999,
                                 .clip = 3.75,
                                 .adapt = 0.002,
                                 .hold = 10 };
}

static int set_whole(uint32_t *out, uint32_t least, uint32_t most, const char *key, const char *value, char *error, size_t size)
{
  char *end;
  errno = 0;
  const unsigned long number = strtoul(value, &end, 10);
  if (*value < '0' || *value > '9' || *end || errno != 0 || number < least || number > most) {
    snprintf(error, size, "%s = %s: not a whole number from %u to %u", key, value, least, most);
    return -EINVAL;
  }
  *out = (uint32_t)number;
  return 0;
}

static int set_real(double *out, double least, double most, const char *key, const char *value, char *error, size_t size)
{
  char *end;
  const double number = strtod(value, &end);
  if (end == value || *end || !(number >= least && number <= most)) {
    snprintf(error, size, "%s = %s: not a number from %g to %g", key, value, least, most);
    return -EINVAL;
  }
  *out = number;
  return 0;
}

static int set_file(struct hk_field_rule *r, const char *key, const char *value, char *error, size_t size)
{
  if (value[0] == 0 || strlen(value) >= sizeof r->file) {
    snprintf(error, size, "%s: a path of 1 to %zu bytes is needed", key, sizeof r->file - 1);
    return -EINVAL;
  }
  snprintf(r->file, sizeof r->file, "%s", value);
  return 0;
}

static int set_operator(struct hk_field_rule *r, const char *value, char *error, size_t size)
{
  if (strcmp(value, "residual") != 0 && strcmp(value, "model") != 0) {
    snprintf(error, size, "operator = %s: neither residual nor model", value);
    return -EINVAL;
  }
  r->kind = strcmp(value, "model") == 0 ? HK_FIELD_MODEL : HK_FIELD_RESIDUAL;
  return 0;
}

/* Records that a key that only one operator has was given. */
static void note_operator(struct hk_field_rule *r, const char *key)
{
  static const struct {
    const char *name;
    enum hk_field_operator of;
  } keys[] = { { "neighbours", HK_FIELD_RESIDUAL }, { "positions", HK_FIELD_RESIDUAL }, { "q", HK_FIELD_RESIDUAL },
               { "refit", HK_FIELD_RESIDUAL },      { "blame", HK_FIELD_RESIDUAL },     { "forget", HK_FIELD_RESIDUAL },
               { "file", HK_FIELD_MODEL },          { "adapt", HK_FIELD_MODEL },        { "hold", HK_FIELD_MODEL } };
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    if (strcmp(key, keys[i].name) == 0)
      r->given |= 1u << keys[i].of;
}

static int set_neighbours(struct hk_field_rule *r, const char *value, char *error, size_t size)
{
  r->neighbours = strcmp(value, "auto") == 0 ? HK_FIELD_AUTO : strcmp(value, "nearest") == 0 ? HK_FIELD_NEAREST : HK_FIELD_GRAPH;
  return r->neighbours == HK_FIELD_GRAPH ? set_file(r, "neighbours", value, error, size) : 0;
}

int hk_field_set(struct hk_field_rule *r, const char *key, const char *value, char *error, size_t size)
{
  const struct {
    const char *name;
    uint32_t *out, least, most;
  } wholes[] = { { "q", &r->q, 2, HK_RESIDUAL_NEIGHBOURS_MAX },
                 { "refit", &r->refit, 1, 4096 },
                 { "blame", &r->blame, 4, 4096 },
                 { "wait", &r->wait, 1, HK_FIELD_WAIT_MAX },
                 { "members", &r->members, 3, HK_FIELD_MEMBERS_MAX },
                 { "hold", &r->hold, 0, HK_MODEL_HOLD_MAX } };
  note_operator(r, key);
  if (strcmp(key, "operator") == 0)
    return set_operator(r, value, error, size);
  for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++)
    if (strcmp(key, wholes[i].name) == 0)
      return set_whole(wholes[i].out, wholes[i].least, wholes[i].most, key, value, error, size);
  if (strcmp(key, "forget") == 0)
    return set_real(&r->forget, 0.9, 0.99999, key, value, error, size);
  if (strcmp(key, "clip") == 0)
    return set_real(&r->clip, 1, 1000, key, value, error, size);
  if (strcmp(key, "adapt") == 0)
    return set_real(&r->adapt, 0, 0.1, key, value, error, size);
  if (strcmp(key, "interval") == 0) {
    int64_t interval;
    if (hk_duration_parse(value, &interval) == 0 && interval >= HK_FIELD_INTERVAL_MIN) {
      r->interval = interval;
      return 0;
    }
    snprintf(error, size, "%s = %s: not a duration such as 250ms or 5m, at least 1us", key, value);
    return -EINVAL;
  }
  if (strcmp(key, "neighbours") == 0)
    return set_neighbours(r, value, error, size);
  if (strcmp(key, "file") == 0) {
    r->modelled = true;
    return set_file(r, key, value, error, size);
  }
  if (strcmp(key, "positions") == 0) {
    r->placed = true;
    return set_file(r, key, value, error, size);
  }
  snprintf(error, size, "%s: there is no such key of a field", key);
  return -EINVAL;
}

/* Checks the keys of the operator, and that none of the other operator was given. */
static int check_operator(const struct hk_field_rule *r, char *error, size_t size)
{
  const bool model = r->kind == HK_FIELD_MODEL;
  if (r->given & ~(1u << r->kind)) {
    snprintf(error, size, "operator = %s has no %s", model ? "model" : "residual",
             model ? "neighbours, positions, q, refit, blame and forget" : "file, adapt and hold, which operator = model has");
    return -EINVAL;
  }
  if (model && !r->modelled) {
    snprintf(error, size, "operator = model needs file = FILE, which says what the line of pipes is (hankeld-model(7))");
    return -EINVAL;
  }
  return 0;
}

int hk_field_check(const struct hk_field_rule *r, char *error, size_t size)
{
  const bool limits = r->kind <= HK_FIELD_MODEL && r->adapt >= 0 && r->adapt <= 0.1 && r->hold <= HK_MODEL_HOLD_MAX &&
                      r->neighbours <= HK_FIELD_NEAREST && r->q >= 2 && r->q <= HK_RESIDUAL_NEIGHBOURS_MAX && r->refit >= 1 &&
                      r->refit <= 4096 && r->blame >= 4 && r->blame <= 4096 && r->wait >= 1 && r->wait <= HK_FIELD_WAIT_MAX &&
                      r->members >= 3 && r->members <= HK_FIELD_MEMBERS_MAX && r->interval >= HK_FIELD_INTERVAL_MIN &&
                      r->forget >= 0.9 && r->forget <= 0.99999 && r->clip >= 1 && r->clip <= 1000;
  const bool filed = (r->neighbours == HK_FIELD_NEAREST) == r->placed && (r->neighbours == HK_FIELD_AUTO) == !r->file[0];
  if (limits && check_operator(r, error, size) != 0)
    return -EINVAL;
  if (limits && r->kind == HK_FIELD_MODEL)
    return 0;
  if (limits && filed && (r->neighbours != HK_FIELD_AUTO || r->members <= HK_FIELD_AUTO_MAX))
    return 0;
  if (limits && !filed)
    snprintf(error, size, "neighbours = nearest needs positions = FILE, and nothing else has them");
  else if (limits)
    snprintf(error, size, "members = %u: with neighbours = auto at most %u, for each is compared with all others", r->members,
             HK_FIELD_AUTO_MAX);
  else
    snprintf(error, size, "a key of a field is out of its limits");
  return -EINVAL;
}

/* Removes leading and trailing blanks. */
static char *trimmed(char *text)
{
  while (*text == ' ')
    text++;
  for (size_t n = strlen(text); n > 0 && text[n - 1] == ' ';)
    text[--n] = 0;
  return text;
}

int hk_field_parse(const char *text, struct hk_field_rule *out, char *error, size_t size)
{
  char copy[2048], *rest = copy, *token;
  *out = hk_field_default();
  if (strlen(text) >= sizeof copy) {
    snprintf(error, size, "the keys are longer than %zu bytes", sizeof copy - 1);
    return -EINVAL;
  }
  memcpy(copy, text, strlen(text) + 1);
  while (*text && (token = strsep(&rest, ","))) {
    char *value = strchr(token, '=');
    if (!value) {
      snprintf(error, size, "%s: not key=value", token);
      return -EINVAL;
    }
    *value++ = 0;
    if (hk_field_set(out, trimmed(token), trimmed(value), error, size) < 0)
      return -EINVAL;
  }
  return hk_field_check(out, error, size);
}

struct hk_residual_rule hk_field_residual_rule(const struct hk_field_rule *r)
{
  return (struct hk_residual_rule){ .neighbours = r->q,
                                    .refit = r->refit,
                                    .forget = r->forget,
                                    .clip = (float)r->clip,
                                    .fast = 3 / (float)r->blame,
                                    .slow = 1 / (8 * (float)r->blame) };
}

struct hk_model_rule hk_field_model_rule(const struct hk_field_rule *r)
{
  return (struct hk_model_rule){ .interval = (double)r->interval / 1e9, .adapt = r->adapt, .clip = r->clip, .hold = r->hold };
}
