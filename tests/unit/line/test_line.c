/* Line protocol: the grammar as a table, faults with their byte, and the splitter at every cut. */
#include "proto/line/line.h"
#include "proto/line/line_quick.h"
#include "proto/line/split.h"
#include "tests/unit/support/line_name.h"
#include "tests/unit/support/line_same.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

/* The result of a line, as text: "name=value name=value @time +strings" or "!byte reason". */
static const char *said(const struct hk_line *l)
{
  static char out[4096];
  size_t n = 0;
  out[0] = 0;
  if (l->error)
    snprintf(out, sizeof out, "!%" PRIu32 " %s", l->error_byte, l->error);
  for (uint32_t i = 0; i < l->n; i++) {
    char buffer[HK_NAME_MAX];
    uint32_t size;
    const char *name = line_name(l, i, buffer, &size);
    n += (size_t)snprintf(out + n, sizeof out - n, "%s<%.*s>=%.17g", i ? " " : "", (int)size, name, l->points[i].value);
  }
  if (!l->error && l->timed)
    n += (size_t)snprintf(out + n, sizeof out - n, " @%" PRId64, l->time);
  if (l->strings)
    snprintf(out + n, sizeof out - n, " +%" PRIu32, l->strings);
  return out;
}

static const char *parse(const char *text, size_t length, int64_t unit)
{
  static struct hk_line l;
  /* a piece of memory of its own, so that ASan sees a read past the end */
  char *copy = malloc(length ? length : 1);
  memcpy(copy, text, length);
  assert_int_not_equal(line_same(copy, length, unit, 'x', &l), -1);
  const char *out = said(&l);
  free(copy);
  return out;
}

/* Lines, and what they are parsed into (parse). */
static const struct {
  const char *line, *expected;
} grammar[] = {
  { "machine,site=a,unit=7 temperature=21.5,pressure=1013i 1700000000000000000",
    "<machine,site=a,unit=7 temperature>=21.5 <machine,site=a,unit=7 pressure>=1013 @1700000000000000000" },
  { "machine value=1", "<machine>=1" },
  { "machine,a=b value=1,other=2 5", "<machine,a=b>=1 <machine,a=b other>=2 @5" },
  { "m valu=1", "<m valu>=1" },
  { "m values=1", "<m values>=1" },
  { "  m   f=1   7  ", "<m f>=1 @7" },
  { "m f=1 7\r", "<m f>=1 @7" },
  { "m f=1\r", "<m f>=1" },
  { "", "" },
  { "   ", "" },
  { "\r", "" },
  { "# a comment f=1", "" },
  { "  #f=1", "" },
  { "m#x f=1", "<m#x f>=1" },
  /* escapes stay as they are */
  { "a\\ b f=1", "<a\\ b f>=1" },
  { "a\\,b f=1", "<a\\,b f>=1" },
  { "a=b f=1", "<a=b f>=1" },
  { "a\\=b f=1", "<a\\=b f>=1" },
  { "a\\b f=1", "<a\\b f>=1" },
  { "a\\\\ b f=1", "<a\\\\ b f>=1" },
  { "m,t\\ k=t\\,v f=1", "<m,t\\ k=t\\,v f>=1" },
  { "m,t\\=k=v\\=w f\\ x\\,y\\=z=1", "<m,t\\=k=v\\=w f\\ x\\,y\\=z>=1" },
  { "m,t=\xc3\xa9 f=1", "<m,t=\xc3\xa9 f>=1" },
  { "m \"quoted\"=1", "<m \"quoted\">=1" },
  { "m va\\ lue=1", "<m va\\ lue>=1" },
  /* kinds of values */
  { "m f=-1.5,g=+2,h=.5,i=5.,j=1e-3,k=-2.5E+2", "<m f>=-1.5 <m g>=2 <m h>=0.5 <m i>=5 <m j>=0.001 <m k>=-250" },
  { "m f=-3i,g=9223372036854775807i,h=-9223372036854775808i",
    "<m f>=-3 <m g>=9.2233720368547758e+18 <m h>=-9.2233720368547758e+18" },
  { "m f=0u,g=18446744073709551615u", "<m f>=0 <m g>=1.8446744073709552e+19" },
  { "m a=t,b=T,c=true,d=True,e=TRUE,f=f,g=F,h=false,i=False,j=FALSE",
    "<m a>=1 <m b>=1 <m c>=1 <m d>=1 <m e>=1 <m f>=0 <m g>=0 <m h>=0 <m i>=0 <m j>=0" },
  { "m s=\"text\",f=1", "<m f>=1 +1" },
  { "m s=\"a, b=c \\\" d\\\\\" 9", " @9 +1" },
  { "m s=\"\\n\\\\\\\"\",t=\"\"", " +2" },
  { "m s=\"#\tcontrol\x01 \xff\",f=1", "<m f>=1 +1" },
  { "m f=0.30000000000000004", "<m f>=0.30000000000000004" },
  { "m f=4.9e-324,g=1e-400", "<m f>=4.9406564584124654e-324 <m g>=0" },
  { "m f=-0", "<m f>=-0" },
  /* the time */
  { "m f=1 -5", "<m f>=1 @-5" },
  { "m f=1 0", "<m f>=1 @0" },
  { "m f=1 9223372036854775807", "<m f>=1 @9223372036854775807" },
  { "m f=1 -9223372036854775808", "<m f>=1 @-9223372036854775808" },
  /* faults */
  { "m", "!2 there are no fields" },
  { "m ", "!3 there are no fields" },
  { ",t=v f=1", "!1 the measurement is empty" },
  { "m, f=1", "!3 a tag has no value" },
  { "m,t f=1", "!4 a tag has no value" },
  { "m,t,u=v f=1", "!4 a tag has no value" },
  { "m,t", "!4 a tag has no value" },
  { "m,=v f=1", "!3 a tag's key is empty" },
  { "m,t= f=1", "!5 a tag's value is empty" },
  { "m,t=v=w f=1", "!6 an equals sign in a tag's value is not escaped" },
  { "m,t=v,", "!7 a tag has no value" },
  { "m,t=v", "!6 there are no fields" },
  { "m\\ f=1", "!7 there are no fields" },
  { "m f", "!4 a field has no value" },
  { "m f 1", "!4 a field has no value" },
  { "m =1", "!3 a field's key is empty" },
  { "m f=", "!5 a field has no value" },
  { "m f=,g=1", "!5 a field has no value" },
  { "m f= 1", "!5 a field has no value" },
  { "m f=1,", "!7 a field has no value" },
  { "m f=1, g=2", "!7 a field has no value" },
  { "m f=1,,g=2", "!7 a field has no value" },
  { "m f=abc", "!5 a field's value is no number, boolean or string" },
  { "m f=tr", "!5 a field's value is no number, boolean or string" },
  { "m f=NaN", "!5 a field's value is no number, boolean or string" },
  { "m f=-inf", "!5 a field's value is no number, boolean or string" },
  { "m f=-", "!5 a field's value is no number, boolean or string" },
  { "m f=.", "!5 a field's value is no number, boolean or string" },
  { "m f=0x10", "!6 there is more behind a field's value" },
  { "m f=1e", "!6 there is more behind a field's value" },
  { "m f=1,5", "!8 a field has no value" },
  { "m f=1 2 3", "!9 there is more behind the time" },
  { "m f=1e400", "!5 a number is too large" },
  { "m f=-1e400", "!5 a number is too large" },
  { "m f=1.5i", "!5 an integer has more than digits" },
  { "m f=1e3i", "!5 an integer has more than digits" },
  { "m f=-1u", "!5 an unsigned integer has more than digits" },
  { "m f=9223372036854775808i", "!5 an integer does not fit into 64 bits" },
  { "m f=18446744073709551616u", "!5 an integer does not fit into 64 bits" },
  { "m f=1i2", "!7 there is more behind a field's value" },
  { "m s=\"open", "!5 a string is not closed" },
  { "m s=\"open\\\"", "!5 a string is not closed" },
  { "m s=\"x\"y", "!8 there is more behind a field's value" },
  { "m f=1 x", "!7 the time is no whole number" },
  { "m f=1 1.5", "!8 the time is no whole number" },
  { "m f=1 9223372036854775808", "!7 the time does not fit into 64 bits of nanoseconds: is the precision right?" },
  { "m\tx f=1", "!2 a control character, or a byte that is not UTF-8, in a name" },
  { "m\x7f f=1", "!2 a control character, or a byte that is not UTF-8, in a name" },
  { "m,t=\xff f=1", "!5 a control character, or a byte that is not UTF-8, in a name" },
  { "m f\xc3=1", "!4 a control character, or a byte that is not UTF-8, in a name" },
  { "m f=1,g\r=1", "!8 a control character, or a byte that is not UTF-8, in a name" },
};

static void the_grammar(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof grammar / sizeof *grammar; i++) {
    const char *got = parse(grammar[i].line, strlen(grammar[i].line), 1);
    if (strcmp(got, grammar[i].expected) != 0)
      fail_msg("%s\n  gives    %s\n  expected %s", grammar[i].line, got, grammar[i].expected);
  }
  assert_string_equal(parse("m\0x f=1", 7, 1), "!2 a control character, or a byte that is not UTF-8, in a name");
  assert_string_equal(parse("m f=1\0", 6, 1), "!6 there is more behind a field's value");
  assert_string_equal(parse("m s=\"a\0b\",f=1", 13, 1), "<m f>=1 +1");
}

#ifdef HK_SANITIZED
enum { ROUNDS = 100000 };
#else
enum { ROUNDS = 400000 };
#endif

/* Valid lines of many shapes, then damaged ones, then lines at random places of the windows of 64 bytes that the quick reader
 * examines. */
static void the_quick_reader_agrees(void **state)
{
  (void)state;
  static const char *const lines[] = {
    "sensor00001,s=a v=1234.56 1700000000000000000",
    "machine,site=a,unit=7 temperature=21.5,pressure=1013i 1700000000000000000",
    ("cpu,cpu=cpu0,host=db-1.example.org,rack=r12,region=eu-west,role=primary usage_guest=0,usage_idle=97.32,usage_irq=0,"
     "usage_nice=-0.5,usage_softirq=1.2e-3,usage_system=1.1,usage_user=1.42 1700000000000000000"),
    "disk,path=/mnt/my\\ disk,fs\\,t=ext4\\=x free\\ space=12i,used\\,part=0.30000000000000004,b=true,c=F 1700000000",
    "net s=\"text, with = all\",n=9007199254740993i,m=18446744073709551615u,u=12u,l=9007199254740993,d=1e22,e=.5,f=5.",
    "m,ort=K\xc3\xb6ln,einheit=\xc2\xb0\x43 wert=1,value=2,t=t,f=FALSE,x=-0i,y=-0,z=+3 -12",
    "a f=123456789012345678,g=12345678901234567,h=0.00000000000000000123,i=1234567890.12345678 9223372036854775807",
    "m f=1,s=\"\",t=\"a long text that goes on over more than one window of the reader, and then some\",g=2 0",
  };
  enum { LINES = sizeof lines / sizeof *lines };
  static const char bytes[] = ", =\\\"\r\t\xff\xc3\x7f#0123456789:/.eE+-iutTfF";
  static struct hk_line plain;
  char text[1024];
  uint64_t took = 0, left = 0;
  srandom(3);
  for (size_t i = 0; i < LINES; i++)
    assert_int_equal(line_same(lines[i], strlen(lines[i]), 1, 0, &plain), i != 5); /* its time is below 0: left to the parser */
  for (int round = 0; round < ROUNDS; round++) {
    const char *line = lines[random() % LINES];
    const size_t shift = (size_t)(random() % 70); /* a longer measurement */
    memset(text, 'w', shift);
    size_t n = shift + strlen(line);
    memcpy(text + shift, line, n - shift);
    for (long damage = random() % 4; damage > 0; damage--) {
      const size_t at = (size_t)random() % n;
      const char byte = bytes[(size_t)random() % (sizeof bytes - 1)];
      switch (random() % 4) {
      case 0:
        text[at] = byte;
        break;
      case 1: /* puts it in */
        memmove(text + at + 1, text + at, n - at);
        text[at] = byte;
        n++;
        break;
      case 2: /* takes one out */
        memmove(text + at, text + at + 1, n - at - 1);
        n = n > 1 ? n - 1 : n;
        break;
      default: /* cuts it off */
        n = random() % 4 == 0 ? at + 1 : n;
      }
    }
    const int same = line_same(text, n, random() % 2 ? 1 : 1000000000, bytes[(size_t)round % (sizeof bytes - 1)], &plain);
    if (same < 0)
      fail_msg("%.*s: read differently", (int)n, text);
    took += same > 0;
    left += same == 0;
  }
  assert_in_range(took, ROUNDS / 4, ROUNDS);
  assert_in_range(left, ROUNDS / 4, ROUNDS);
}

static void every_prefix_of_a_line_is_read_within_its_bounds(void **state)
{
  (void)state;
  const char line[] = "a\\ b,t\\,x=y\\=z,u=v f\\ g=-1.5e3,h=12i,i=\"s\\\"t\",j=true,k=7u 1700000000000000000\r";
  for (size_t n = 0; n <= strlen(line); n++)
    parse(line, n, 1); /* ASan looks */
}

static void precisions(void **state)
{
  (void)state;
  assert_string_equal(parse("m f=1 1700000000", 16, hk_precision_parse("s")), "<m f>=1 @1700000000000000000");
  assert_string_equal(parse("m f=1 -3", 8, hk_precision_parse("ms")), "<m f>=1 @-3000000");
  assert_string_equal(parse("m f=1 3", 7, hk_precision_parse("us")), "<m f>=1 @3000");
  assert_string_equal(parse("m f=1 3", 7, hk_precision_parse("ns")), "<m f>=1 @3");
  assert_int_equal(hk_precision_parse("h"), 0);
  /* nanoseconds sent where seconds are expected: found, not wrapped around */
  assert_string_equal(parse("m f=1 1700000000000000000", 25, hk_precision_parse("s")),
                      "!7 the time does not fit into 64 bits of nanoseconds: is the precision right?");
  assert_string_equal(parse("m f=1 9223372036", 16, hk_precision_parse("s")), "<m f>=1 @9223372036000000000");
  assert_string_equal(parse("m f=1 9223372037", 16, hk_precision_parse("s")),
                      "!7 the time does not fit into 64 bits of nanoseconds: is the precision right?");
}

static void limits(void **state)
{
  (void)state;
  static char line[1 << 17];
  char name[600];
  memset(name, 'n', sizeof name);
  for (int total = HK_NAME_MAX - 1; total <= HK_NAME_MAX + 1; total++) {
    snprintf(line, sizeof line, "%.*s value=1", total, name);
    assert_int_equal(parse(line, strlen(line), 1)[0] == '!', total > HK_NAME_MAX);
    snprintf(line, sizeof line, "%.*s fi=1", total - 3, name);
    assert_int_equal(parse(line, strlen(line), 1)[0] == '!', total > HK_NAME_MAX);
  }
  static struct hk_line l = { .unit = 1 };
  size_t n = (size_t)snprintf(line, sizeof line, "m a=1");
  for (uint32_t i = 1; i < HK_LINE_FIELDS; i++)
    n += (size_t)snprintf(line + n, sizeof line - n, ",f%u=%u", i, i);
  assert_int_equal(line_same(line, n, 1, 0, &l), 1);
  assert_null(l.error);
  assert_int_equal(l.n, HK_LINE_FIELDS);
  n += (size_t)snprintf(line + n, sizeof line - n, ",s=\"x\""); /* strings take no place */
  hk_line_parse(&l, line, n);
  assert_null(l.error);
  n += (size_t)snprintf(line + n, sizeof line - n, ",z=1");
  assert_int_equal(line_same(line, n, 1, 0, &l), 0);
  assert_non_null(l.error);
  assert_int_equal(l.n, 0);
}

/* --- the splitter --- */

/* Gives data in pieces and records the output: each line followed by '|', '!' for one too long. */
static void split(struct hk_splitter *s, const char *data, size_t size, size_t first, size_t piece, char *out)
{
  size_t at = 0;
  while (at < size) {
    size_t n = at == 0 && first ? first : piece, used = 0, length;
    n = n < size - at ? n : size - at;
    char *copy = malloc(n);
    memcpy(copy, data + at, n);
    const char *line;
    int status;
    while ((status = hk_splitter_next(s, copy, n, &used, &line, &length)) != HK_LINE_NONE) {
      assert_int_not_equal(status, HK_LINE_MEMORY);
      if (status == HK_LINE_WHOLE) {
        memcpy(out, line, length);
        out += length;
        *out++ = '|';
      } else {
        *out++ = '!';
      }
    }
    assert_int_equal(used, n);
    free(copy);
    at += n;
  }
  const char *line;
  size_t length;
  if (hk_splitter_end(s, &line, &length) == HK_LINE_WHOLE) {
    memcpy(out, line, length);
    out += length;
    *out++ = '$';
  }
  *out = 0;
}

static void lines_come_out_whole_at_every_cut(void **state)
{
  (void)state;
  const char data[] = "one\n\ntwo\r\n0123456789\n01234567890\nthree\n0123456789012345678901234567890\nfour\nrest";
  const char expected[] = "one||two\r|0123456789|!three|!four|rest$";
  char out[256];
  struct hk_splitter s = { .max_line = 10 };
  for (size_t piece = 1; piece <= strlen(data); piece++) {
    s.line = 0;
    split(&s, data, strlen(data), 0, piece, out);
    assert_string_equal(out, expected);
    assert_int_equal(s.line, 9);
    split(&s, data, strlen(data), piece, 100, out);
    assert_string_equal(out, expected);
  }
  /* ends within a line too long: nothing is left over for the next stream */
  split(&s, "0123456789x", 11, 0, 3, out);
  assert_string_equal(out, "!");
  split(&s, "a\n", 2, 0, 1, out);
  assert_string_equal(out, "a|");
  hk_splitter_free(&s);
}

static void lines_are_parsed_at_every_cut(void **state)
{
  (void)state;
  const char data[] = "m,t=v f=1 5\n\n#f\nm\\ n value=1,g=-2.5i 6\r\nm f=1,g\n"
                      "longer_than_forty_bytes_is_this_measurement f=2\nmeter f=3 7\nmeter f=4 8";
  const char *const expected[] = {
    "<m,t=v f>=1 @5", "", "", "!16 an integer has more than digits", "!8 a field has no value", "too long", "<meter f>=3 @7",
    "<meter f>=4 @8"
  };
  static struct hk_line l = { .unit = 1 };
  struct hk_splitter s = { .max_line = 40 };
  for (size_t piece = 1; piece <= strlen(data); piece++) {
    size_t found = 0;
    s.line = 0;
    for (size_t at = 0; at < strlen(data); at += piece) {
      const size_t n = piece < strlen(data) - at ? piece : strlen(data) - at;
      char *copy = malloc(n + 1 + HK_LINE_BEHIND);
      memcpy(copy, data + at, n);
      memset(copy + n, '7', 1 + HK_LINE_BEHIND);
      size_t used = 0;
      int status;
      while ((status = hk_splitter_parse(&s, &l, copy, n, &used)) != HK_LINE_NONE) {
        assert_true(found < 7 && s.line == found + 1);
        assert_string_equal(status == HK_LINE_WHOLE ? said(&l) : "too long", expected[found]);
        found++;
      }
      assert_int_equal(used, n);
      free(copy);
    }
    const char *line;
    size_t length;
    assert_int_equal(found, 7);
    assert_int_equal(hk_splitter_end(&s, &line, &length), HK_LINE_WHOLE);
    assert_string_equal(parse(line, length, 1), expected[7]);
  }
  hk_splitter_free(&s);
}

static void a_line_without_end_takes_no_memory(void **state)
{
  (void)state;
  static char block[1 << 16];
  memset(block, 'x', sizeof block);
  struct hk_splitter s = { .max_line = HK_LINE_MAX };
  struct rusage before, after;
  const char *line;
  size_t length, told = 0;
  getrusage(RUSAGE_SELF, &before);
  for (uint64_t sent = 0; sent < 1ull << 30; sent += sizeof block) {
    size_t used = 0;
    int status;
    while ((status = hk_splitter_next(&s, block, sizeof block, &used, &line, &length)) != HK_LINE_NONE) {
      assert_int_equal(status, HK_LINE_TOO_LONG);
      told++;
    }
  }
  getrusage(RUSAGE_SELF, &after);
  assert_int_equal(told, 1);
  assert_int_equal(s.line, 1);
  assert_in_range(s.capacity, 0, 2 * HK_LINE_MAX);
  assert_in_range(after.ru_maxrss - before.ru_maxrss, 0, 1024); /* KiB */
  size_t used = 0;
  assert_int_equal(hk_splitter_next(&s, "tail\nm f=1\n", 11, &used, &line, &length), HK_LINE_WHOLE);
  assert_int_equal(length, 5);
  assert_memory_equal(line, "m f=1", 5);
  hk_splitter_free(&s);
}

static void lines_of_http(void **state)
{
  (void)state;
  static const struct {
    const char *line;
    bool whole, cut; /* whether it is a line of HTTP, and whether it would be as the beginning of a line that is too long */
  } cases[] = {
    { "GET / HTTP/1.1", true, true },
    { "GET / HTTP/1.1\r", true, true },
    { "POST /write?db=x HTTP/1.0", true, true },
    { "OPTIONS * HTTP/1.1", true, true },
    { "PRI * HTTP/2.0", true, true },
    { "M-SEARCH * HTTP/1.1", true, true },
    { "PUT http://a:1/ HTTP/1.1", true, true },
    { "CONNECT a:443 HTTP/1.1", true, false },
    { "GET /", false, true },
    { "GET  HTTP/1.1", false, false },
    { "GET HTTP/1.1", false, false },
    { "get / HTTP/1.1", false, false },
    { "GET / HTTP/11", false, true },
    { "GET / HTTP/1.1 ", false, true },
    { "GET", false, false },
    { "GET ", false, false },
    { "", false, false },
    { "\r", false, false },
    { " HTTP/1.1", false, false },
    { "cpu,host=a value=1 HTTP/1.1", false, false },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const size_t n = strlen(cases[i].line);
    char *copy = malloc(n ? n : 1); /* so that ASan sees a read past the end */
    memcpy(copy, cases[i].line, n);
    if (hk_splitter_http(copy, n, HK_LINE_WHOLE) != cases[i].whole || hk_splitter_http(copy, n, HK_LINE_TOO_LONG) != cases[i].cut)
      fail_msg("\"%s\"", cases[i].line);
    static struct hk_line l = { .unit = 1 };
    hk_line_parse(&l, copy, n);
    if (cases[i].whole && (!l.error || !l.http))
      fail_msg("\"%s\" is taken", cases[i].line);
    assert_false(hk_splitter_http(copy, n, HK_LINE_NONE) || hk_splitter_http(copy, n, HK_LINE_MEMORY));
    free(copy);
  }
}

static void the_beginning_of_a_line_that_is_too_long(void **state)
{
  (void)state;
  char text[3000];
  memset(text, 'a', sizeof text);
  memcpy(text, "POST /", 6);
  for (size_t cut = 0; cut < sizeof text; cut += cut < 8 ? 1 : 491) {
    struct hk_splitter s = { .max_line = 1024 };
    const char *line = NULL;
    size_t length = 0, used = 0;
    int status = hk_splitter_next(&s, text, cut, &used, &line, &length);
    if (status == HK_LINE_NONE) {
      used = 0;
      status = hk_splitter_next(&s, text + cut, sizeof text - cut, &used, &line, &length);
    }
    assert_int_equal(status, HK_LINE_TOO_LONG);
    assert_int_equal(length, 1024);
    assert_memory_equal(line, text, 1024);
    hk_splitter_free(&s);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_grammar),
    cmocka_unit_test(the_quick_reader_agrees),
    cmocka_unit_test(every_prefix_of_a_line_is_read_within_its_bounds),
    cmocka_unit_test(precisions),
    cmocka_unit_test(limits),
    cmocka_unit_test(lines_come_out_whole_at_every_cut),
    cmocka_unit_test(lines_are_parsed_at_every_cut),
    cmocka_unit_test(a_line_without_end_takes_no_memory),
    cmocka_unit_test(lines_of_http),
    cmocka_unit_test(the_beginning_of_a_line_that_is_too_long),
  };
  return cmocka_run_group_tests_name("line", tests, NULL, NULL);
}
