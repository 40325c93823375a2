/* The state of a field: see state.h. Open rows are written in order; everything that is read is checked before use. */
#include "cpu/field/state.h"
#include "cpu/field/arma.h"
#include "cpu/field/field_internal.h"
#include "cpu/field/hoelder.h"

#include <errno.h>

/* Numbers have the representation of memory, little-endian. */
struct head {
  uint16_t neighbours, layout;
  uint32_t q, refit, blame, wait, members;
  uint32_t n_members, top;
  int64_t interval;
  double forget, clip;
  int64_t next, newest;
  uint32_t kept, mark;
};
_Static_assert(sizeof(struct head) == 80, "no padding");

/* Of everything here, for all operators: add one if any of it is changed. A state with another one is not damaged: its field
 * begins anew. */
#define LAYOUT 0u

/* A model has MODEL for `neighbours`, a focus FOCUS, and so on, and `kept` is how many times 8 bytes its state is; q, refit,
 * blame and clip, and of a model forget, are as in any rule, and of no use; but q of a filter is its samples. */
#define MODEL 3u
#define FOCUS 4u
#define DESPIKE 5u
#define MEDIAN 6u
#define HOELDER 7u
#define ARMA 8u

/* Whether the state is not that of a residual. */
static bool is_attached(const struct head *h)
{
  return h->neighbours >= MODEL && h->neighbours <= ARMA;
}

/* Whether its operator looks at each sensor alone. */
static bool is_alone(const struct head *h)
{
  return h->neighbours >= DESPIKE && h->neighbours <= ARMA;
}

static bool is_filter(const struct head *h)
{
  return h->neighbours == DESPIKE || h->neighbours == MEDIAN;
}

/* Behind it: the members of all numbers, the points of the rows from `next` to `newest` by row and number; and the residual's
 * columns (residual.h), and z of the rows that are kept, from the oldest to the newest, by row and number; or the state of
 * the model (cpu/model/model.h), of the line (focus.h), or what is known of each number alone (filter.h; hoelder.h, and behind
 * them all arma.h). */
struct point {
  int64_t time;
  double value; /* NaN: none */
};

/* Number of open rows with points. */
static uint32_t open_rows(int64_t next, int64_t newest)
{
  return next == HK_FIELD_NEVER ? 0 : (uint32_t)(newest - next + 1);
}

/* floats of the ring, padded to 8 bytes */
static size_t ring_size(const struct head *h)
{
  return ((size_t)h->kept * h->top * sizeof(float) + 7) / 8 * 8;
}

static size_t size_of(const struct head *h)
{
  const struct hk_residual_rule rule = { .neighbours = h->q };
  const size_t rows =
      sizeof *h + h->top * sizeof(struct hk_field_member) + (size_t)open_rows(h->next, h->newest) * h->top * sizeof(struct point);
  return is_attached(h) ? rows + 8 * (size_t)h->kept : rows + hk_residual_state_size(&rule, h->top) + ring_size(h);
}

/* Bytes of what an operator knows of each sensor alone. */
static size_t alone_size(uint32_t kind)
{
  return kind == HK_FIELD_HOELDER ? sizeof(struct hk_hoelder)
         : kind == HK_FIELD_ARMA  ? sizeof(struct hk_hoelder) + sizeof(struct hk_arma)
                                  : sizeof(struct hk_filter);
}

static struct head head_of(const struct hk_field *f)
{
  static const uint32_t code_of[] = { [HK_FIELD_MODEL] = MODEL,   [HK_FIELD_FOCUS] = FOCUS,     [HK_FIELD_DESPIKE] = DESPIKE,
                                      [HK_FIELD_MEDIAN] = MEDIAN, [HK_FIELD_HOELDER] = HOELDER, [HK_FIELD_ARMA] = ARMA };
  const uint32_t kind = f->rule.kind;
  const size_t attached = kind == HK_FIELD_MODEL   ? f->model.size
                          : kind == HK_FIELD_FOCUS ? f->line.size
                                                   : f->top * alone_size(f->rule.kind);
  return (struct head){ .neighbours = (uint16_t)(kind == HK_FIELD_RESIDUAL ? f->rule.neighbours : code_of[kind]),
                        .layout = LAYOUT,
                        .q = hk_field_filters(&f->rule) ? hk_field_filter_rule(&f->rule).samples : f->rule.q,
                        .refit = f->rule.refit,
                        .blame = f->rule.blame,
                        .wait = f->rule.wait,
                        .members = f->rule.members,
                        .n_members = f->n_members,
                        .top = f->top,
                        .interval = f->rule.interval,
                        .forget = f->rule.forget,
                        .clip = f->rule.clip,
                        .next = f->next,
                        .newest = f->newest,
                        .kept = kind == HK_FIELD_RESIDUAL ? f->kept : (uint32_t)(attached / 8),
                        .mark = f->rule.mark };
}

size_t hk_field_state_size(const struct hk_field *f)
{
  const struct head head = head_of(f);
  return size_of(&head);
}

/* --- writing --------------------------------------------------------------------------------------------------------- */

static uint8_t *put(uint8_t *at, const void *data, size_t size)
{
  memcpy(at, data, size);
  return at + size;
}

/* The ring's row that is `back` rows before the next one. */
static float *ring_row(const struct hk_field *f, uint32_t back)
{
  return f->ring + (size_t)((f->at + HK_FIELD_RESIDENT - back) % HK_FIELD_RESIDENT) * f->residual.room;
}

/* Writes what is known of each sensor alone. */
static void write_alone(const struct hk_field *f, uint8_t *at)
{
  if (f->top > 0 && f->filter)
    at = put(at, f->filter, f->top * sizeof *f->filter);
  if (f->top > 0 && f->hoelder)
    at = put(at, f->hoelder, f->top * sizeof *f->hoelder);
  if (f->top > 0 && f->arma)
    (void)put(at, f->arma, f->top * sizeof *f->arma);
}

void hk_field_write(const struct hk_field *f, void *state)
{
  const struct head head = head_of(f);
  uint8_t *at = put(state, &head, sizeof head);
  memset(at, 0, size_of(&head) - sizeof head);
  if (f->top > 0)
    at = put(at, f->member, f->top * sizeof *f->member);
  for (uint32_t row = 0; row < open_rows(f->next, f->newest); row++) {
    const struct hk_field_open *open = hk_field_open_row(f, f->next + row);
    for (uint32_t i = 0; i < f->top; i++) {
      const struct point point = { isnan(open->value[i]) ? 0 : open->time[i], open->value[i] };
      at = put(at, &point, sizeof point);
    }
  }
  if (f->rule.kind == HK_FIELD_MODEL) {
    hk_field_model_write(&f->model, at);
    return;
  }
  if (f->rule.kind == HK_FIELD_FOCUS) {
    hk_offload_look(f->offload);
    hk_field_line_write(&f->line, at);
    return;
  }
  if (hk_field_alone(&f->rule)) {
    write_alone(f, at);
    return;
  }
  hk_offload_look(f->offload);
  hk_residual_write(&f->residual, f->top, at);
  at += hk_residual_state_size(&f->residual.rule, f->top);
  for (uint32_t back = f->kept; back > 0; back--)
    at = put(at, ring_row(f, back), f->top * sizeof(float));
}

/* --- reading --------------------------------------------------------------------------------------------------------- */

static const uint8_t *get(const uint8_t *at, void *data, size_t size)
{
  memcpy(data, at, size);
  return at + size;
}

static bool is_row(int64_t interval, int64_t row)
{
  return row >= INT64_MIN / interval - 1 && row <= INT64_MAX / interval;
}

static struct hk_field_rule rule_of(const struct head *h)
{
  static const uint32_t kind_of[] = { [MODEL] = HK_FIELD_MODEL,   [FOCUS] = HK_FIELD_FOCUS,     [DESPIKE] = HK_FIELD_DESPIKE,
                                      [MEDIAN] = HK_FIELD_MEDIAN, [HOELDER] = HK_FIELD_HOELDER, [ARMA] = HK_FIELD_ARMA };
  const bool model = h->neighbours == MODEL, focus = h->neighbours == FOCUS;
  return (struct hk_field_rule){
    .kind = is_attached(h) ? kind_of[h->neighbours] : HK_FIELD_RESIDUAL,
    .neighbours = focus             ? HK_FIELD_LINE
                  : !is_attached(h) ? h->neighbours
                                    : HK_FIELD_AUTO,
    .focus = { .speed = { 1 }, .speeds = 1, .reach = 1, .threshold = 1, .block = 1, .places = 1 }, /* any */
    .modelled = model,
    .placed = h->neighbours == HK_FIELD_NEAREST || focus,
    .mark = h->mark,
    .file = { h->neighbours == HK_FIELD_AUTO || is_alone(h) ? 0 : '-' }, /* only whether there is a file matters */
    .q = is_filter(h) ? 8 : h->q,
    .samples = is_filter(h) ? h->q : 0,
    .spike = 4, /* any */
    .refit = h->refit,
    .blame = h->blame,
    .wait = h->wait,
    .members = h->members,
    .interval = h->interval,
    .forget = h->forget,
    .clip = h->clip
  };
}

/* Whether a head is valid. */
static bool is_good(const struct head *h, size_t size)
{
  const struct hk_field_rule rule = rule_of(h);
  char error[128];
  if (hk_field_check(&rule, error, sizeof error) != 0 || (is_filter(h) && h->q == 0) || h->top > h->members ||
      h->n_members > h->top ||
      h->kept > (is_attached(h)                   ? UINT32_MAX
                 : h->neighbours == HK_FIELD_AUTO ? HK_FIELD_RESIDENT
                                                  : 0))
    return false;
  if (h->next == HK_FIELD_NEVER)
    return h->newest == HK_FIELD_NEVER && (h->kept == 0 || is_attached(h)) && size == size_of(h);
  return is_row(h->interval, h->newest) && is_row(h->interval, h->next - 1) && h->newest - h->next >= -1 &&
         h->newest - h->next < h->wait && size == size_of(h);
}

static bool is_member(const struct hk_field *f, const struct hk_field_member *m)
{
  const bool silent = m->last == HK_FIELD_NEVER;
  return m->status <= HK_FIELD_LEFT && silent == (m->from == INT64_MAX) &&
         (silent || (m->last <= f->newest && is_row(f->rule.interval, m->last)));
}

static int read_members(struct hk_field *f, const struct head *h, const uint8_t **at)
{
  struct hk_field_member member;
  if (h->top == 0)
    return 0;
  if (hk_field_add(f, h->top - 1) != 0) /* allocates for all */
    return -ENOMEM;
  f->n_members = f->n_left = 0;
  for (uint32_t i = 0; i < h->top; i++) {
    *at = get(*at, &member, sizeof member);
    if (!is_member(f, &member))
      return -EBADMSG;
    f->member[i] = member;
    f->n_members += member.status == HK_FIELD_MEMBER;
    f->n_left += member.status == HK_FIELD_LEFT;
  }
  return f->n_members == h->n_members ? 0 : -EBADMSG;
}

static int read_open(struct hk_field *f, const uint8_t **at)
{
  struct point point;
  for (uint32_t row = 0; row < open_rows(f->next, f->newest); row++) {
    const struct hk_field_open *open = hk_field_open_row(f, f->next + row);
    for (uint32_t i = 0; i < f->top; i++) {
      *at = get(*at, &point, sizeof point);
      const bool none = isnan(point.value);
      if (none ? point.time != 0 : !(fabs(point.value) <= HK_FIELD_VALUE_MAX) || f->member[i].status != HK_FIELD_MEMBER)
        return -EBADMSG;
      open->value[i] = point.value;
      open->time[i] = point.time;
      f->waiting += !none;
    }
  }
  return 0;
}

static int read_filters(struct hk_field *f, const struct head *h, const uint8_t *at)
{
  const struct hk_filter_rule rule = hk_field_filter_rule(&f->rule);
  const int64_t newest = h->next == HK_FIELD_NEVER ? HK_FIELD_NEVER : h->next - 1;
  struct hk_filter filter;
  if (8 * (size_t)h->kept != f->top * sizeof filter)
    return -EBADMSG;
  for (uint32_t i = 0; i < f->top; i++) {
    at = get(at, &filter, sizeof filter);
    if (!hk_filter_valid(&filter, &rule, newest) ||
        (filter.last.n > 0 && (!is_row(h->interval, filter.last.row) || f->member[i].status != HK_FIELD_MEMBER)))
      return -EBADMSG;
    f->filter[i] = filter;
  }
  return 0;
}

static int read_exponents(struct hk_field *f, const struct head *h, const uint8_t *at)
{
  const int64_t newest = h->next == HK_FIELD_NEVER ? HK_FIELD_NEVER : h->next - 1;
  if (8 * (size_t)h->kept != f->top * alone_size(f->rule.kind))
    return -EBADMSG;
  for (uint32_t i = 0; i < f->top; i++) {
    at = get(at, &f->hoelder[i], sizeof *f->hoelder);
    if (!hk_hoelder_valid(&f->hoelder[i], newest) ||
        (f->hoelder[i].last.n > 0 && (!is_row(h->interval, f->hoelder[i].last.row) || f->member[i].status != HK_FIELD_MEMBER)))
      return -EBADMSG;
  }
  for (uint32_t i = 0; i < f->top && f->arma; i++) {
    at = get(at, &f->arma[i], sizeof *f->arma);
    if (!hk_arma_valid(&f->arma[i], hk_field_arma_rows(&f->rule)) || (f->hoelder[i].last.n == 0 && f->arma[i].n > 0))
      return -EBADMSG;
  }
  return 0;
}

static int read_all(struct hk_field *f, const struct head *h, const uint8_t *at)
{
  f->next = h->next;
  f->newest = h->newest;
  int status = read_members(f, h, &at);
  if (status == 0)
    status = read_open(f, &at);
  if (status == 0 && h->neighbours == MODEL)
    return hk_field_model_keep(&f->model, at, 8 * (size_t)h->kept); /* until its plan is known */
  if (status == 0 && h->neighbours == FOCUS)
    return hk_field_line_keep(&f->line, at, 8 * (size_t)h->kept); /* until the positions are known */
  if (status == 0 && is_filter(h))
    return read_filters(f, h, at);
  if (status == 0 && is_alone(h))
    return read_exponents(f, h, at);
  if (status == 0 && !hk_residual_read(&f->residual, f->top, at))
    status = -EBADMSG;
  if (status != 0)
    return status;
  at += hk_residual_state_size(&f->residual.rule, f->top);
  f->kept = f->top > 0 ? h->kept : 0;
  f->at = h->kept % HK_FIELD_RESIDENT;
  for (uint32_t back = f->kept; back > 0; back--)
    at = get(at, ring_row(f, back), f->top * sizeof(float));
  return 0;
}

int hk_field_read(struct hk_field **out, const struct hk_field_rule *rule, const void *state, size_t size)
{
  struct head h;
  if (size < sizeof h)
    return -EBADMSG;
  const uint8_t *at = get(state, &h, sizeof h);
  if (h.layout != LAYOUT)
    return -EINVAL;
  if (!is_good(&h, size))
    return -EBADMSG;
  const struct hk_field_rule own = rule_of(&h);
  if (!rule)
    rule = &own;
  if (rule->kind != own.kind || rule->mark != own.mark ||
      (is_filter(&h) ? hk_field_filter_rule(rule).samples != own.samples
                     : rule->neighbours != own.neighbours || rule->q != own.q) ||
      rule->wait != own.wait || rule->interval != own.interval || h.top > rule->members)
    return -EINVAL;
  struct hk_field *f;
  int status = hk_field_new(&f, rule);
  if (status == 0) {
    status = read_all(f, &h, at);
    if (status == 0)
      *out = f;
    else
      hk_field_free(f);
  }
  return status;
}
