/* Templates: the texts that they make, and the places of errors. template_oracle.py compares them with another Mustache. */
#include "daemon/base/template.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void quote(struct hk_buffer *out, const char *value, size_t length)
{
  hk_buffer_put(out, "<", 1);
  hk_buffer_put(out, value, length);
  hk_buffer_put(out, ">", 1);
}

static void expect(const char *template, const char *json, const char *wanted)
{
  struct hk_template_fault f = { 0 };
  struct hk_buffer out = { 0 };
  cJSON *value = cJSON_Parse(json);
  const cJSON *context[] = { value };
  assert_non_null(value);
  assert_int_equal(hk_template_check(template, NULL, &f), 0);
  assert_int_equal(hk_template_render(template, context, 1, quote, 4096, &out), 0);
  hk_buffer_put(&out, "", 1);
  assert_string_equal(out.data, wanted);
  hk_buffer_free(&out);
  cJSON_Delete(value);
}

static void test_values(void **state)
{
  (void)state;
  expect("no names", "{}", "no names");
  expect("{{a}} {{{a}}} {{&a}} {{ a }}", "{\"a\":\"x\"}", "<x> x x <x>");
  expect("{{a.b.c}}{{a.x.c}}{{x}}", "{\"a\":{\"b\":{\"c\":\"y\"}}}", "<y><><>");
  expect("{{n}} {{f}} {{t}} {{i}}", "{\"n\":null,\"f\":0.123456789,\"t\":true,\"i\":-12}", "<> <0.123457> <true> <-12>");
  expect("{{big}} {{zero}}", "{\"big\":1e300,\"zero\":-0.0}", "<1e+300> <0>");
  expect("{{list}}", "{\"list\":[1,2]}", "<[1,2]>");
  expect("a{{! not\nsaid }}b", "{}", "ab");
  expect("} }} {a} {", "{}", "} }} {a} {");
}

static void test_sections(void **state)
{
  (void)state;
  static const char some[] =
      "{\"yes\":true,\"no\":false,\"zero\":0,\"empty\":\"\",\"none\":[],\"name\":\"outer\",\"list\":[{\"name\":\"p\"},{\"x\":1}],"
      "\"words\":[\"a\",\"b\"],\"one\":{\"name\":\"inner\"}}";
  expect("{{#yes}}y{{/yes}}{{#no}}n{{/no}}{{#zero}}z{{/zero}}{{#empty}}e{{/empty}}{{#none}}l{{/none}}{{#gone}}g{{/gone}}", some,
         "y");
  expect("{{^yes}}y{{/yes}}{{^no}}n{{/no}}{{^zero}}z{{/zero}}{{^empty}}e{{/empty}}{{^none}}l{{/none}}{{^gone}}g{{/gone}}", some,
         "nzelg");
  expect("{{#list}}{{name}};{{/list}}", some, "<p>;<outer>;");
  expect("{{#words}}{{.}}{{/words}}", some, "<a><b>");
  expect("{{#one}}{{name}}{{#yes}}{{name}}{{/yes}}{{/one}}{{name}}", some, "<inner><inner><outer>");
  expect("{{#no}}{{#list}}{{name}}{{/list}}{{/no}}.", some, ".");
  expect("{{#one.name}}x{{/one.name}}", some, "x");
}

static void test_lines(void **state)
{
  (void)state;
  expect("a\n{{#yes}}\nb\n{{/yes}}\nc\n", "{\"yes\":1}", "a\nb\nc\n");
  expect("a\n  {{#yes}}  \r\nb\n\t{{/yes}}", "{\"yes\":1}", "a\nb\n");
  expect("a\n {{! said to nobody }}\nb", "{}", "a\nb");
  expect("a {{#yes}}\nb{{/yes}}\n", "{\"yes\":1}", "a \nb\n"); /* not alone on their lines */
  expect("{{#yes}}{{#yes}}\nb\n{{/yes}}{{/yes}}", "{\"yes\":1}", "\nb\n");
  expect("\n{{yes}}\n", "{\"yes\":1}", "\n<1>\n"); /* a value keeps its line */
}

static void refuse(const char *template, uint32_t line, uint32_t column, const char *why)
{
  static const char *const names[] = { "known", "part.", NULL };
  struct hk_template_fault f = { 0 };
  assert_int_equal(hk_template_check(template, names, &f), -EINVAL);
  assert_int_equal(f.line, line);
  assert_int_equal(f.column, column);
  assert_non_null(strstr(f.why, why));
}

static void test_faults(void **state)
{
  (void)state;
  refuse("{{known", 1, 1, "{{ without }}");
  refuse("a\nb {{{known}}", 2, 3, "{{{ without }}}");
  refuse("\xc3\xa4\xe2\x82\xac{{nown}}", 1, 3, "no such name: `nown`");
  refuse("{{part}}", 1, 1, "no such name: `part`");
  refuse("{{#known}}\n{{/part.x}}", 2, 1, "the section to close here is `known`");
  refuse("x{{#known}}\n\n", 1, 2, "a section is not closed: `known`");
  refuse("{{/known}}", 1, 1, "closes a section that is not open: `known`");
  refuse("{{> known}}", 1, 1, "partials");
  refuse("{{=<% %>=}}", 1, 1, "delimiters");
  refuse("{{}}", 1, 1, "a tag without a name");
  refuse("{{a b}}", 1, 1, "a name has letters");
  refuse("{{known..x}}", 1, 1, "a name has letters");
  refuse("{{known.}}", 1, 1, "a name has letters");
  refuse("{{#known}}{{#known}}{{#known}}{{#known}}{{#known}}{{#known}}{{#known}}{{#known}}{{#known}}", 1, 81, "more than 8");
  struct hk_template_fault f;
  static const char *const names[] = { "known", "part.", NULL };
  assert_int_equal(hk_template_check("{{known}}{{part.of.it}}{{#known}}{{.}}{{/known}}", names, &f), 0);
}

static void test_limits(void **state)
{
  (void)state;
  struct hk_buffer out = { 0 };
  cJSON *value = cJSON_Parse("{\"l\":[1,2,3,4,5,6,7,8]}");
  const cJSON *context[] = { value };
  static const char template[] =
      "{{#l}}{{#l}}{{#l}}{{#l}}{{#l}}{{#l}}{{#l}}{{#l}}0123456789{{/l}}{{/l}}{{/l}}{{/l}}{{/l}}{{/l}}{{/l}}{{/l}}";
  assert_int_equal(hk_template_render(template, context, 1, quote, 1000, &out), -EMSGSIZE); /* and not 167 million bytes later */
  assert_true(out.size > 1000 && out.size < 1100);
  hk_buffer_free(&out);
  cJSON_Delete(value);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_values), cmocka_unit_test(test_sections), cmocka_unit_test(test_lines),
    cmocka_unit_test(test_faults), cmocka_unit_test(test_limits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
