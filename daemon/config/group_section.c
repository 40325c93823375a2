/* See group_section.h. */
#include "daemon/config/group_section.h"
#include "daemon/config/section_name.h"

#include <stdio.h>
#include <string.h>

bool hk_config_group_begin(struct hk_config_reading *r, const char *name)
{
  struct hk_config *c = r->config;
  struct hk_config_group made = { .rule = hk_group_default() };
  const struct hk_config_sections there = { "group",           "groups",    c->groups[0].name,
                                            sizeof *c->groups, c->n_groups, HK_CONFIG_GROUPS_MAX };
  if (!hk_config_one_more(r, there, name, made.name))
    return false;
  if (strchr(name, HK_DERIVED_MARK) || strlen(name) >= HK_CONFIG_NAME_MAX - 1) {
    hk_config_complain(r, r->line, "[group %s]: a name has no %c, and is at most %d bytes long", name, HK_DERIVED_MARK,
                       HK_CONFIG_NAME_MAX - 2);
    return false;
  }
  c->groups[c->n_groups++] = made;
  return true;
}

void hk_config_group_key(struct hk_config_reading *r, const char *name, const char *value)
{
  struct hk_config_group *g = &r->config->groups[r->config->n_groups - 1];
  char error[256];
  if (strcmp(name, "match") != 0) {
    if (hk_group_set(&g->rule, name, value, error, sizeof error) != 0)
      hk_config_complain(r, r->line, "%s", error);
    return;
  }
  const char *capture = strstr(value, "(*)");
  if (!capture || strlen(value) >= sizeof g->match || strcspn(value, "()") != (size_t)(capture - value) ||
      strpbrk(capture + 3, "()")) {
    hk_config_complain(
        r, r->line,
        "match = %.64s: a glob with one capture, (*), is needed, such as plant/(*)/*; the text that it matches names the machine",
        value);
    return;
  }
  snprintf(g->match, sizeof g->match, "%s", value);
  g->capture = (uint32_t)(capture - value);
}

void hk_config_group_end(struct hk_config_reading *r)
{
  const struct hk_config_group *g = &r->config->groups[r->config->n_groups - 1];
  char error[256];
  if (!hk_config_seen(r, "match"))
    hk_config_complain(r, r->section_line, "[group %s] needs match = GLOB with one capture, such as plant/(*)/*", g->name);
  if (hk_group_check(&g->rule, error, sizeof error) != 0)
    hk_config_complain(r, r->section_line, "[group %s]: %s", g->name, error);
}

/* Makes a second group of each with statistic = both. */
static void add_seconds(struct hk_config_reading *r)
{
  struct hk_config *c = r->config;
  for (uint32_t i = 0, n = c->n_groups; i < n; i++) {
    struct hk_config_group *first = &c->groups[i];
    if (first->rule.statistic != HK_GROUP_BOTH)
      continue;
    struct hk_config_group second = *first;
    first->rule.statistic = HK_GROUP_JOINT;
    second.rule.statistic = HK_GROUP_NOVELTY;
    second.second = true;
    const int length = snprintf(second.name, sizeof second.name, "%s" HK_SECOND_SUFFIX, first->name);
    bool taken = length > HK_CONFIG_NAME_MAX - 2;
    for (uint32_t k = 0; k < c->n_groups; k++)
      taken |= strcmp(c->groups[k].name, second.name) == 0;
    if (c->n_groups == HK_CONFIG_GROUPS_MAX)
      hk_config_complain(r, 0, "more than %d groups; each statistic = both counts as two", HK_CONFIG_GROUPS_MAX);
    else if (taken)
      hk_config_complain(r, 0,
                         "[group %s]: statistic = both also makes %.40s" HK_SECOND_SUFFIX ", a name that is taken or too long",
                         first->name, first->name);
    else
      c->groups[c->n_groups++] = second;
  }
}

void hk_config_add_groups(struct hk_config_reading *r)
{
  struct hk_config *c = r->config;
  char error[256];
  add_seconds(r);
  for (uint32_t i = 0; i < c->n_groups; i++) {
    if (c->n_detectors == HK_CONFIG_DETECTORS_MAX) {
      hk_config_complain(r, 0, "more than %d detectors, including those of groups", HK_CONFIG_DETECTORS_MAX);
      return;
    }
    struct hk_config_detector *d = &c->detectors[c->n_detectors];
    *d = (struct hk_config_detector){ .number = c->n_detectors, .derived = true, .group = true, .second = c->groups[i].second };
    d->name[0] = HK_DERIVED_MARK;
    snprintf(d->name + 1, sizeof d->name - 1, "%.*s", HK_CONFIG_NAME_MAX - 2, c->groups[i].name);
    snprintf(d->match, sizeof d->match, "%s", c->groups[i].match);
    if (hk_detector_parse("window=4,gap=1,rank=1,krylov=2,products=2,stride=65536,alert=off", &d->detector, error,
                          sizeof error) != 0)
      hk_config_complain(r, 0, "[group %s]: %s", c->groups[i].name, error);
    c->n_detectors++;
  }
}
