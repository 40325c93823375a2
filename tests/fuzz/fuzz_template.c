/* Fuzz target: templates. The first byte of the input is the limit of the output; the rest is a template of hankeld.conf(5).
 * A valid template can be rendered within the limit; without tags it is unchanged; places of errors are within the text. */
#include "daemon/base/template.h"
#include "tests/fuzz/files.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void plain(struct hk_buffer *out, const char *value, size_t length)
{
  hk_buffer_put(out, value, length);
}

static const char values[] =
    "{\"a\":[{\"a\":1,\"b\":\"x\"},{\"b\":[1,2]},[],\"s\"],\"b\":\"{{a}}\",\"c\":{\"a\":{\"b\":0.5}},\"d\":null}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static const char *const names[] = { "a", "b", "c", "c.", "d", NULL };
  struct hk_template_fault f = { 0 };
  struct hk_buffer out = { 0 };
  if (size < 1)
    return 0;
  const size_t most = (size_t)data[0] * 16;
  char *text = malloc(size);
  memcpy(text, data + 1, size - 1);
  text[size - 1] = 0;
  const size_t length = strlen(text);
  const bool good = hk_template_check(text, data[0] & 1 ? names : NULL, &f) == 0;
  require(good || (f.line >= 1 && f.column >= 1 && f.line + f.column <= length + 2 && f.why[0]));
  cJSON *context[] = { cJSON_Parse(values), cJSON_Parse("{\"e\":\"inner\"}") };
  if (good) {
    const int status = hk_template_render(text, (const cJSON *const *)context, 2, plain, most, &out);
    require(status == 0 || status == -EMSGSIZE);
    require((out.size > most) == (status == -EMSGSIZE) && out.size <= most + length + sizeof values);
    if (!strstr(text, "{{"))
      require(out.size == length && (length == 0 || memcmp(out.data, text, length) == 0));
  }
  cJSON_Delete(context[0]);
  cJSON_Delete(context[1]);
  hk_buffer_free(&out);
  free(text);
  return 0;
}
