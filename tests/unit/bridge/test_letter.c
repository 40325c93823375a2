/* Letters between machines of a cluster: each is read as it was written, but only if it is complete; and the table made of
 * notices. */
#include "daemon/bridge/letter.h"
#include "daemon/bridge/machine_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct hk_buffer written(const struct hk_letter *l, const char *body)
{
  struct hk_buffer out = { 0 };
  hk_letter_begin(&out, l);
  hk_buffer_put(&out, body, strlen(body));
  assert_false(out.failed);
  return out;
}

static void come_back(void **state)
{
  (void)state;
  static const struct hk_letter all[] = {
    { .kind = HK_LETTER_NOTICE, .machine = "scorer-1.plant:7410" },
    { .kind = HK_LETTER_QUESTION, .id = UINT64_MAX, .machine = "[::1]:7410" },
    { .kind = HK_LETTER_ANSWER, .id = 7, .status = 503 },
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    struct hk_letter back;
    unsigned version;
    struct hk_buffer out = written(&all[i], "{\"a\":1}\nmore");
    assert_true(hk_letter_read(out.data, out.size, &back, &version));
    assert_int_equal(version, 1);
    assert_int_equal(back.kind, all[i].kind);
    assert_int_equal(back.id, all[i].id);
    assert_int_equal(back.status, all[i].status);
    assert_string_equal(back.machine, all[i].machine);
    assert_int_equal(back.size, strlen("{\"a\":1}\nmore"));
    assert_memory_equal(back.body, "{\"a\":1}\nmore", back.size);
    const size_t line = out.size - back.size;
    for (size_t cut = 0; cut < line; cut++) /* in memory of just that size */
    {
      char *part = malloc(cut + 1);
      memcpy(part, out.data, cut);
      assert_false(hk_letter_read(part, cut, &back, &version));
      free(part);
    }
    hk_buffer_free(&out);
  }
}

static void others_are_none(void **state)
{
  (void)state;
  static const char *const none[] = { "",
                                      "\n",
                                      "notice\n",
                                      "notice 1\n",
                                      "notice 1 \n",
                                      "notice 2 m:1\n",
                                      "notice -1 m:1\n",
                                      "notices 1 m:1\n",
                                      "notice 1 m 1\n",
                                      "notice 1 m\"1\n",
                                      "notice 1 m\x7f\n",
                                      "question 1 m:1\n",
                                      "question 1 7\n",
                                      "answer 1 7\n",
                                      "answer 1 7 99\n",
                                      "answer 1 7 600\n",
                                      "answer 1 7 2000\n",
                                      "answer 1 7 200 x\n",
                                      "answer 1 x 200\n" };
  struct hk_letter l;
  unsigned version;
  char much[600] = "notice 1 ";
  for (size_t i = 0; i < sizeof none / sizeof *none; i++)
    assert_false(hk_letter_read(none[i], strlen(none[i]), &l, &version));
  assert_false(hk_letter_read("notice 1 m\0x\n", 13, &l, &version));
  memset(much + 9, 'm', 255);
  strcpy(much + 9 + 255, "\n");
  assert_true(hk_letter_read(much, strlen(much), &l, &version));
  memset(much + 9, 'm', 256);
  strcpy(much + 9 + 256, "\n");
  assert_false(hk_letter_read(much, strlen(much), &l, &version));
}

/* The version is known even of letters that are not read, so that the log can name it. */
static void of_another_version(void **state)
{
  (void)state;
  static const struct {
    const char *text;
    unsigned version;
  } all[] = { { "notice 2 m:1\n{}", 2 }, { "rumour 17 what the next lines are\n", 17 },
              { "rumour 1 m:1\n", 1 },   { "notice -1 m:1\n", 0 },
              { "no letter\n", 0 },      { "notice 2 and no line", 0 } };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    struct hk_letter l;
    unsigned version = 99;
    assert_false(hk_letter_read(all[i].text, strlen(all[i].text), &l, &version));
    assert_int_equal(version, all[i].version);
  }
}

static void tell(struct hk_machine_table *t, const char *machine, const char *report)
{
  struct hk_letter l = { .kind = HK_LETTER_NOTICE, .body = report, .size = strlen(report) };
  snprintf(l.machine, sizeof l.machine, "%s", machine);
  hk_machine_table_take(t, &l);
}

/* If two machines report the same partition, one of them does not know yet that it has lost it. */
static void the_later_epoch_has_it(void **state)
{
  (void)state;
  static struct hk_machine_table t;
  static struct hk_mail_machine list[HK_MAIL_MACHINES];
  struct hk_holder holder;
  hk_machine_table_init(&t);
  assert_false(hk_machine_table_holder(&t, 0, &holder));
  tell(&t, "b:1", "{\"held\":[{\"partition\":0,\"epoch\":1},{\"partition\":3,\"epoch\":0}]}");
  tell(&t, "a:1", "{\"held\":[{\"partition\":0,\"epoch\":2}]}");
  tell(&t, "c:1", "{\"role\":\"gateway\"}");
  assert_true(hk_machine_table_holder(&t, 0, &holder));
  assert_string_equal(holder.machine, "a:1");
  assert_int_equal(holder.epoch, 2);
  assert_true(hk_machine_table_holder(&t, 3, &holder));
  assert_string_equal(holder.machine, "b:1");
  assert_int_equal(hk_machine_table_list(&t, true, list), 3);
  static const uint32_t has[] = { 1, 1, 0 };
  for (uint32_t i = 0; i < 3; i++) {
    assert_int_equal(list[i].name[0], 'a' + (int)i);
    assert_int_equal(list[i].partitions, has[i]);
    assert_false(list[i].away);
    assert_true(list[i].scores == (i < 2)); /* a gateway has no partitions to list */
    free(list[i].report);
  }
  tell(&t, "b:1", "{\"held\":[{\"partition\":0,\"epoch\":3},{\"partition\":3,\"epoch\":0}]}"); /* has it again */
  assert_true(hk_machine_table_holder(&t, 0, &holder));
  assert_string_equal(holder.machine, "b:1");
  assert_int_equal(hk_machine_table_list(&t, false, list), 3);
  assert_int_equal(list[0].partitions, 0);
  assert_int_equal(list[1].partitions, 2);
  tell(&t, "a:1", "{\"held\":[]}");
  assert_true(hk_machine_table_holder(&t, 0, &holder));
  assert_string_equal(holder.machine, "b:1");
  tell(&t, "b:1", "{} and no JSON"); /* changes nothing */
  tell(&t, "b:1", "[]");
  tell(&t, "d:1", "{\"held\":[{\"partition\":-1,\"epoch\":2},{\"partition\":1e9,\"epoch\":2},{\"epoch\":2},7,\"x\",{}]}");
  assert_int_equal(hk_machine_table_list(&t, false, list), 4);
  assert_int_equal(list[3].partitions, 0);
  tell(&t, "b:1", ""); /* it ends */
  assert_false(hk_machine_table_holder(&t, 0, &holder));
  assert_int_equal(hk_machine_table_list(&t, false, list), 3);
  hk_machine_table_free(&t);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(come_back),
    cmocka_unit_test(others_are_none),
    cmocka_unit_test(of_another_version),
    cmocka_unit_test(the_later_epoch_has_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
