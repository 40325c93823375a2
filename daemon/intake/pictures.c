/* Pictures: see pictures.h. */
#include "daemon/intake/pictures.h"
#include "daemon/base/glob.h"
#include "daemon/sensors/register.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AGAIN 100u                                         /* pictures after which refused sensors are asked for again */
#define NAME_MOST (HK_NAME_MAX - sizeof "/255,255/spread") /* bytes of a camera's name */

struct hk_camera {
  char *name;
  size_t length;
  struct hk_pictures_rule rule; /* as when its tiles were found */
  uint32_t height, width;       /* of its first picture */
  uint32_t n;                   /* points of a picture: tiles by row, and of each what the rule has, in its order */
  uint32_t *handle;             /* n of them; HK_NO_HANDLE: refused */
  uint32_t refused, since;      /* of these; and pictures since they were asked for */
  int64_t shown;                /* when one was last shown on the board; 0: none was */
  int refusal;                  /* enum hankel_refusal: of one of them */
};

/* --- work space --------------------------------------------------------------------------------------------------------- */

/* The kinds of pixels have the numbers of the wire. */
_Static_assert((int)HK_PICTURE_U8 == (int)HANKEL_PIXEL_U8 && (int)HK_PICTURE_U16 == (int)HANKEL_PIXEL_U16 &&
                   (int)HK_PICTURE_F16 == (int)HANKEL_PIXEL_F16 && (int)HK_PICTURE_F32 == (int)HANKEL_PIXEL_F32,
               "");

static void free_space(const struct hk_picture_work *w, struct hk_picture_space *space)
{
  hk_picture_free(space->host);
  if (space->there)
    w->place.device->close(space->there);
  *space = (struct hk_picture_space){ 0 };
}

void hk_picture_work_free(struct hk_picture_work *w)
{
  for (uint32_t i = 0; i < HK_PICTURE_SPACES; i++)
    free_space(w, &w->space[i]);
  free(w->tile);
  free(w->slot);
  free(w->time);
  free(w->value);
  *w = (struct hk_picture_work){ 0 };
}

static bool same_filter(const struct hk_picture_rule *a, const struct hk_picture_rule *b)
{
  return a->median == b->median && a->subtract == b->subtract && a->tile == b->tile;
}

/* The space for pictures of a camera; NULL: no memory. */
static struct hk_picture_space *space_for(struct hk_picture_work *w, const struct hk_camera *c)
{
  if (!w->value) {
    w->tile = w->tile ? w->tile : malloc(HK_PICTURE_POINTS * sizeof *w->tile);
    w->slot = w->slot ? w->slot : malloc(HK_PICTURE_POINTS * sizeof *w->slot);
    w->time = w->time ? w->time : malloc(HK_PICTURE_POINTS * sizeof *w->time);
    w->value = w->tile && w->slot && w->time ? malloc(HK_PICTURE_POINTS * sizeof *w->value) : NULL;
  }
  for (uint32_t i = 0; i < HK_PICTURE_SPACES; i++) {
    struct hk_picture_space *s = &w->space[i];
    if (same_filter(&s->rule, &c->rule.of) && s->height == c->height && s->width == c->width)
      return w->value ? s : NULL;
  }
  struct hk_picture_space *s = &w->space[w->next];
  w->next = (w->next + 1) % HK_PICTURE_SPACES;
  free_space(w, s);
  *s = (struct hk_picture_space){ .rule = c->rule.of, .height = c->height, .width = c->width };
  return w->value ? s : NULL;
}

/* The host computes from now on. */
static void pictures_leave_device(struct hk_picture_work *w, const char *why)
{
  for (uint32_t i = 0; i < HK_PICTURE_SPACES; i++)
    if (w->space[i].there) {
      w->place.device->close(w->space[i].there);
      w->space[i].there = NULL;
    }
  w->place.device = NULL;
  if (w->place.told)
    w->place.told(w->place.arg, why);
}

/* Computes the tiles of a picture on the device. NULL: the host has to. */
static const struct hk_picture_tile *tiles_there(struct hk_picture_work *w, struct hk_picture_space *s,
                                                 const struct hk_picture_message *m)
{
  const struct hk_picture_device *device = w->place.device;
  const struct hk_picture_tile *tile = NULL;
  char error[256];
  if (!device || m->height * m->width < w->place.least)
    return NULL;
  int status = s->there ? 0 : device->open(&s->there, &s->rule, s->height, s->width, w->place.number, error, sizeof error);
  if (status == 0 && !w->there && w->place.told)
    w->place.told(w->place.arg, NULL);
  w->there |= status == 0;
  if (status == 0) {
    memcpy(device->pixels(s->there), m->pixels, (size_t)m->height * m->width * hk_picture_bytes(m->kind));
    status = device->tiles(s->there, m->kind, &tile, error, sizeof error);
  }
  if (status == 0)
    return tile;
  pictures_leave_device(w, error);
  return NULL;
}

/* Computes the tiles of a picture. NULL: no memory. */
static const struct hk_picture_tile *tiles_of(struct hk_picture_work *w, struct hk_picture_space *s,
                                              const struct hk_picture_message *m)
{
  const struct hk_picture_tile *there = tiles_there(w, s, m);
  if (there)
    return there;
  if (!s->host && hk_picture_new(&s->host, &s->rule, s->height, s->width) != 0)
    return NULL;
  for (uint32_t r = 0; r < m->height; r++)
    hk_picture_pixels(m, r, hk_picture_row(s->host, r));
  hk_picture_tiles(s->host, w->tile);
  return w->tile;
}

/* --- cameras ------------------------------------------------------------------------------------------------------------ */

void hk_cameras_free(struct hk_cameras *all)
{
  for (uint32_t i = 0; i < all->n; i++) {
    free(all->camera[i].name);
    free(all->camera[i].handle);
  }
  free(all->camera);
  *all = (struct hk_cameras){ 0 };
}

/* Finds a camera, or adds it. NULL: no memory, or (why) too many. */
static struct hk_camera *camera_of(struct hk_cameras *all, struct hk_string name, char *why, size_t size)
{
  for (uint32_t i = 0; i < all->n; i++)
    if (all->camera[i].length == name.length && memcmp(all->camera[i].name, name.data, name.length) == 0)
      return &all->camera[i];
  if (all->n == HK_CAMERAS_MAX) {
    snprintf(why, size, "over %u cameras on one connection", HK_CAMERAS_MAX);
    return NULL;
  }
  struct hk_camera *more = realloc(all->camera, (all->n + 1) * sizeof *more);
  all->camera = more ? more : all->camera;
  char *copy = more ? malloc(name.length + 1) : NULL;
  if (!copy)
    return NULL;
  memcpy(copy, name.data, name.length);
  copy[name.length] = 0;
  more[all->n] = (struct hk_camera){ .name = copy, .length = name.length };
  return &more[all->n++];
}

static uint32_t tiles_across(const struct hk_camera *c)
{
  return hk_picture_tiles_over(c->width, c->rule.of.tile);
}

static uint32_t pictures_words(const struct hk_pictures_rule *rule)
{
  return (uint32_t)__builtin_popcount(rule->statistics);
}

/* The name of a camera's point k. */
static size_t point_name(const struct hk_camera *c, uint32_t k, char out[HK_NAME_MAX + 1])
{
  const uint32_t each = pictures_words(&c->rule), tile = k / each;
  uint32_t word = 0;
  for (uint32_t skip = k % each;; word++)
    if (c->rule.statistics >> word & 1 && skip-- == 0)
      break;
  return (size_t)snprintf(out, HK_NAME_MAX + 1, "%s/%u,%u/%s", c->name, tile / tiles_across(c), tile % tiles_across(c),
                          hk_picture_statistics[word]);
}

/* Finds the sensors of a camera that it lacks, or makes them. False: no memory. */
static bool pictures_find_sensors(struct hk_intake *in, struct hk_camera *c, uint64_t owner)
{
  uint32_t n = 0, *which = malloc((size_t)c->n * sizeof *which), *slot = malloc((size_t)c->n * sizeof *slot),
           *reason = malloc((size_t)c->n * sizeof *reason);
  struct hk_string *name = malloc(c->n * sizeof *name);
  char *text = malloc((size_t)c->n * (HK_NAME_MAX + 1));
  const struct hk_handles handles = hk_registry_lookup(in->registry);
  const bool fine = which && slot && reason && name && text;
  for (uint32_t k = 0; k < c->n && fine; k++) {
    char *one = text + (size_t)n * (HK_NAME_MAX + 1);
    if (c->handle[k] != HK_NO_HANDLE && hk_handle_good(&handles, c->handle[k]))
      continue;
    name[n] = (struct hk_string){ one, point_name(c, k, one) };
    which[n++] = k;
  }
  if (fine && n > 0)
    hk_registry_take_all(in->registry, owner, n, name, slot, reason);
  if (fine) /* else it asks again with the next picture */
    c->refused = c->since = 0;
  for (uint32_t i = 0; i < n && fine; i++) {
    c->handle[which[i]] = reason[i] == 0 ? hk_registry_handle(in->registry, slot[i]) : HK_NO_HANDLE;
    if (reason[i] == 0)
      continue;
    c->refused++;
    c->refusal = (int)reason[i];
    hk_intake_refused(in, (int)reason[i], name[i].data, name[i].length);
  }
  free(which);
  free(slot);
  free(reason);
  free(name);
  free(text);
  return fine;
}

/* Makes a camera one for pictures of this size by this rule. False: it cannot be; why is empty if there is no memory. */
static bool begin_camera(struct hk_camera *c, const struct hk_pictures_rule *rule, const struct hk_picture_message *m, char *why,
                         size_t size)
{
  const uint64_t tiles =
      (uint64_t)hk_picture_tiles_over(m->height, rule->of.tile) * hk_picture_tiles_over(m->width, rule->of.tile);
  if (tiles * pictures_words(rule) > HK_PICTURE_POINTS) {
    snprintf(why, size, "it would have %llu series, and %u are possible: [pictures %s] needs a larger tile, or fewer statistics",
             (unsigned long long)(tiles * pictures_words(rule)), HK_PICTURE_POINTS, rule->name);
    return false;
  }
  uint32_t *handle = malloc(tiles * pictures_words(rule) * sizeof *handle);
  if (!handle)
    return false;
  free(c->handle);
  c->handle = handle;
  c->rule = *rule;
  c->height = m->height;
  c->width = m->width;
  c->n = (uint32_t)tiles * pictures_words(rule);
  for (uint32_t k = 0; k < c->n; k++)
    c->handle[k] = HK_NO_HANDLE;
  c->refused = c->n;
  c->since = AGAIN;
  return true;
}

static bool camera_matches(const char *pattern, struct hk_string name)
{
  struct hk_glob *glob;
  if (hk_glob_new(&glob, pattern, strlen(pattern)) != 0)
    return false;
  const bool good = hk_glob_match(glob, name.data, name.length);
  hk_glob_free(glob);
  return good;
}

/* The camera of a picture, ready for it. NULL: it cannot be taken; why is empty if there is no memory. */
static struct hk_camera *camera_ready(struct hk_cameras *all, const struct hk_pictures_rules *rules,
                                      const struct hk_picture_message *m, char *why, size_t size)
{
  const struct hk_pictures_rule *rule = NULL;
  for (uint32_t i = 0; i < rules->n && !rule; i++)
    if (camera_matches(rules->rule[i].match, m->camera))
      rule = &rules->rule[i];
  if (!rule) {
    snprintf(why, size, "no [pictures NAME] section of the configuration matches it");
    return NULL;
  }
  if (m->camera.length > NAME_MOST) {
    snprintf(why, size, "its name is over %zu bytes long, and tiles' names are longer", NAME_MOST);
    return NULL;
  }
  struct hk_camera *c = camera_of(all, m->camera, why, size);
  if (!c)
    return NULL;
  const bool same = c->n > 0 && same_filter(&c->rule.of, &rule->of) && c->rule.statistics == rule->statistics;
  if (!same)
    return begin_camera(c, rule, m, why, size) ? c : NULL;
  if (c->height == m->height && c->width == m->width)
    return c;
  snprintf(why, size, "it is %u x %u pixels (height x width), and the first one on this connection was %u x %u", m->height,
           m->width, c->height, c->width);
  return NULL;
}

/* --- points ------------------------------------------------------------------------------------------------------------- */

/* Writes the points of a picture's tiles into the work space. Returns their number. */
static uint32_t make_points(struct hk_intake *in, struct hk_picture_work *w, const struct hk_camera *c,
                            const struct hk_picture_message *m, const struct hk_picture_tile *t, int64_t time)
{
  const struct hk_handles handles = hk_registry_lookup(in->registry);
  const double scale = (double)m->scale, offset = c->rule.of.subtract == HK_PICTURE_NOTHING ? (double)m->offset : 0;
  uint32_t n = 0;
  for (uint32_t k = 0; k < c->n; t++) {
    const double of[HK_PICTURE_STATISTICS] = { [HK_PICTURE_MOST] = scale * t->most + offset,
                                               [HK_PICTURE_MEAN] = scale * t->mean + offset,
                                               [HK_PICTURE_SPREAD] = scale * t->spread };
    for (uint32_t word = 0; word < HK_PICTURE_STATISTICS; word++) {
      if (!(c->rule.statistics >> word & 1))
        continue;
      const uint32_t handle = c->handle[k++];
      if (handle == HK_NO_HANDLE || !hk_handle_good(&handles, handle) || 2 * t->n < t->of)
        continue;
      w->slot[n] = hk_handle_slot(handle, handles.max_sensors);
      w->time[n] = time;
      w->value[n++] = of[word];
    }
  }
  return n;
}

/* Whether any sensor of a camera has been evicted since. */
static bool any_gone(const struct hk_intake *in, const struct hk_camera *c)
{
  const struct hk_handles handles = hk_registry_lookup(in->registry);
  bool gone = false;
  for (uint32_t k = 0; k < c->n; k++)
    gone |= c->handle[k] != HK_NO_HANDLE && !hk_handle_good(&handles, c->handle[k]);
  return gone;
}

int hk_pictures_take(struct hk_intake *in, struct hk_picture_work *w, const struct hk_pictures_rules *rules,
                     const struct hk_picture_source *from, const struct hk_picture_message *m, const char *wrong, char *why,
                     size_t size)
{
  uint32_t n = 0;
  int code = 0;
  why[0] = 0;
  struct hk_camera *c = wrong ? NULL : camera_ready(from->cameras, rules, m, why, size);
  struct hk_picture_space *space = c ? space_for(w, c) : NULL;
  const struct hk_picture_tile *tile = space ? tiles_of(w, space, m) : NULL;
  if (wrong)
    snprintf(why, size, "%s", wrong);
  if (tile) {
    const bool ask = any_gone(in, c) || (c->refused > 0 && ++c->since > AGAIN);
    if (ask && !pictures_find_sensors(in, c, from->owner))
      code = HANKEL_INTERNAL;
    else if (ask && c->refused > 0)
      snprintf(why, size, "%u of its %u series were refused, the last for reason %d (PROTOCOL.md, REGISTERED); the others go on",
               c->refused, c->n, c->refusal);
    const int64_t time = m->time == HK_PICTURE_ARRIVAL ? in->wall : m->time;
    n = code == 0 ? make_points(in, w, c, m, tile, time) : 0;
    if (hk_picture_board_due(from->board, &c->shown))
      hk_picture_board_show(from->board, &c->rule, m, time);
    in->wall += m->time == HK_PICTURE_ARRIVAL; /* pictures that are read together are a nanosecond apart */
  } else if (c || !why[0]) {
    code = HANKEL_INTERNAL;
  }
  const struct hk_columns points = { w->slot, w->time, w->value };
  hk_count(code == 0 && c ? &in->counters->pictures : &in->counters->bad_pictures, 1);
  if (!hk_intake_together(in, from->source, from->feeding, n, &points))
    return HANKEL_LIMIT;
  return code != 0 ? code : why[0] ? HANKEL_BAD_PICTURE : 0;
}
