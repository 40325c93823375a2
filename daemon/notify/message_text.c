#include "daemon/notify/message_text.h"

#include "daemon/base/template.h"

#include <errno.h>
#include <string.h>

#define MOST (256u << 10) /* bytes of a text */

#define SAID "{{#several}}{{headline}}\n{{/several}}{{#alerts}}{{text}}\n{{/alerts}}{{#more}}and {{more}} more\n{{/more}}"
const char hk_text_for_people[] = SAID "{{#link}}{{link}}\n{{/link}}";
const char hk_text_without_link[] = SAID;
const char hk_text_of_alert[] = "{{text}}";

/* --- escaping of values for the receiver's format --------------------------------------------------------- */

static void put_plain(struct hk_buffer *out, const char *value, size_t length)
{
  hk_buffer_put(out, value, length);
}

static void put_json(struct hk_buffer *out, const char *value, size_t length)
{
  struct hk_buffer quoted = { 0 };
  hk_json_string(&quoted, value, length);
  if (quoted.failed)
    out->failed = true;
  else
    hk_buffer_put(out, quoted.data + 1, quoted.size - 2);
  hk_buffer_free(&quoted);
}

/* A name must not be a link or a mention. */
static void put_slack(struct hk_buffer *out, const char *value, size_t length)
{
  for (size_t i = 0; i < length; i++) {
    const char *as = value[i] == '&' ? "&amp;" : value[i] == '<' ? "&lt;" : value[i] == '>' ? "&gt;" : NULL;
    hk_buffer_put(out, as ? as : value + i, as ? strlen(as) : 1);
  }
}

static void put_markdown(struct hk_buffer *out, const char *value, size_t length)
{
  for (size_t i = 0; i < length; i++) {
    if (strchr("\\`*_{}[]()<>#+-!|~", value[i]) && value[i])
      hk_buffer_put(out, "\\", 1);
    hk_buffer_put(out, value + i, 1);
  }
}

bool hk_text_is_json(const char *text)
{
  text += strspn(text, " \t\r\n");
  return *text == '[' || (text[0] == '{' && text[1] != '{');
}

static hk_template_escape *escape_of(const struct hk_notify_rule *r)
{
  switch (r->type) {
  case HK_NOTIFY_SLACK:
    return put_slack;
  case HK_NOTIFY_TEAMS:
    return put_markdown;
  case HK_NOTIFY_WEBHOOK:
  case HK_NOTIFY_MQTT:
    return hk_text_is_json(r->template.text) ? put_json : put_plain;
  default:
    return put_plain;
  }
}

static char *render(const struct hk_notify_rule *r, const cJSON *const *context, uint32_t n, const char *standard)
{
  struct hk_buffer out = { 0 };
  int status = hk_template_render(r->template.text[0] ? r->template.text : standard, context, n, escape_of(r), MOST, &out);
  if (status == -EMSGSIZE) { /* the default text is better than none */
    out.size = 0;
    status = hk_template_render(standard, context, n, escape_of(r), MOST, &out);
  }
  hk_buffer_put(&out, "", 1);
  if (status == -ENOMEM || out.failed)
    hk_buffer_free(&out);
  return out.data;
}

char *hk_text_message(const struct hk_notify_rule *r, const cJSON *message, const char *standard)
{
  return render(r, &message, 1, standard);
}

char *hk_text_notice(const struct hk_notify_rule *r, const cJSON *message, const cJSON *notice, const char *standard)
{
  const cJSON *context[] = { message, notice };
  return render(r, context, 2, standard);
}
