/* For template_oracle.py: reads JSON objects, one a line, with `template` and `data`; prints the text of each as a JSON string,
 * or null if the template is invalid. */
#include "daemon/base/template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void plain(struct hk_buffer *out, const char *value, size_t length)
{
  hk_buffer_put(out, value, length);
}

int main(void)
{
  char *line = NULL;
  size_t room = 0;
  while (getline(&line, &room, stdin) > 0) {
    cJSON *o = cJSON_Parse(line);
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(o, "template"));
    const cJSON *context[] = { cJSON_GetObjectItem(o, "data") };
    struct hk_template_fault f;
    struct hk_buffer out = { 0 }, json = { 0 };
    if (!text || !context[0])
      return 1;
    if (hk_template_check(text, NULL, &f) == 0 && hk_template_render(text, context, 1, plain, 1 << 20, &out) == 0)
      hk_json_string(&json, out.size ? out.data : "", out.size);
    printf("%.*s\n", json.size ? (int)json.size : 4, json.size ? json.data : "null");
    hk_buffer_free(&out);
    hk_buffer_free(&json);
    cJSON_Delete(o);
  }
  free(line);
  return 0;
}
