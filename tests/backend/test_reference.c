/* The score in double against an independent computation in numpy, kept in tests/data/oracle_scores.txt (oracle.py wrote it
 * and explains the lines). Argument: that file. Exact SVD scores agree to 1e-9, IKA scores to 1e-7. */
#include "cpu/rules/window.h"
#include "cpu/sst/reference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define LINE_MAX_BYTES (1 << 20)
#define SAMPLES_MAX 4096

struct oracle {
  char name[64];
  double span[SAMPLES_MAX], feedback[SAMPLES_MAX];
  uint32_t n_span, n_feedback;
  double worst[2]; /* largest error of svd and of ika, of any of the three results */
  uint32_t cases[2];
};

static const char *path;

static uint32_t numbers(char *rest, double *out)
{
  uint32_t n = 0;
  char *word;
  while ((word = strsep(&rest, " \n")))
    if (*word)
      out[n < SAMPLES_MAX ? n++ : n] = strtod(word, NULL);
  return n;
}

static bool zero(const double *x, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    if (x[i] != 0)
      return false;
  return true;
}

static void check_score(struct oracle *o, struct hk_reference *reference, const char *text, double z, double share, double probe)
{
  struct hk_detector d;
  struct hk_reference_score got;
  char error[256];
  double a[HK_WINDOW_MAX], a0[HK_WINDOW_MAX], got_probe = 0;
  if (hk_detector_parse(text, &d, error, sizeof error) != 0)
    fail_msg("%s: %s", text, error);
  const uint32_t w = d.window, reach = 2 * w - 1;
  assert_int_equal(o->n_span, hk_detector_span(&d));
  assert_int_equal(o->n_feedback, w);
  memcpy(a, o->feedback, w * sizeof *a);
  hk_reference_random(a0, hk_seed(o->name, strlen(o->name)), w);
  const double *past = o->span, *present = o->span + d.gap;
  assert_int_equal(
      hk_reference_score(reference, &d, zero(past, reach) ? NULL : past, zero(present, reach) ? NULL : present, a0, a, &got), 0);
  for (uint32_t i = 0; i < w; i++)
    got_probe += a[i] * cos(i + 1.0);
  const bool svd = d.algorithm == HK_ALGORITHM_SVD;
  const double off = fmax(fmax(fabs(got.z - z), fabs(got.share - share)), fabs(got_probe - probe)), allowed = svd ? 1e-9 : 1e-7;
  if (!(off <= allowed))
    fail_msg("%s %s: z %.12g share %.12g probe %.12g; the oracle says %.12g %.12g %.12g", o->name, text, got.z, got.share,
             got_probe, z, share, probe);
  o->cases[svd ? 0 : 1]++;
  o->worst[svd ? 0 : 1] = fmax(o->worst[svd ? 0 : 1], off);
}

static void scores_agree_with_numpy(void **state)
{
  (void)state;
  struct oracle *o = calloc(1, sizeof *o);
  char *line = malloc(LINE_MAX_BYTES);
  struct hk_reference *reference;
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  assert_non_null(o);
  assert_non_null(line);
  assert_int_equal(hk_reference_new(&reference, HK_WINDOW_MAX), 0);
  while (fgets(line, LINE_MAX_BYTES, file)) {
    char *rest = line;
    const char *kind = strsep(&rest, " ");
    if (*kind == '#')
      continue;
    assert_non_null(rest);
    const char *name = strsep(&rest, " ");
    if (strcmp(kind, "span") == 0) {
      snprintf(o->name, sizeof o->name, "%s", name);
      o->n_span = numbers(rest, o->span);
      continue;
    }
    assert_string_equal(name, o->name);
    if (strcmp(kind, "feedback") == 0) {
      o->n_feedback = numbers(rest, o->feedback);
    } else {
      double result[SAMPLES_MAX];
      const char *text = strsep(&rest, " ");
      assert_string_equal(kind, "score");
      assert_int_equal(numbers(rest, result), 3);
      check_score(o, reference, text, result[0], result[1], result[2]);
    }
  }
  print_message("# svd: %u cases within %.2g; ika: %u cases within %.2g\n", o->cases[0], o->worst[0], o->cases[1], o->worst[1]);
  assert_true(o->cases[0] > 200 && o->cases[1] > 1000); /* the file was whole */
  hk_reference_free(reference);
  fclose(file);
  free(line);
  free(o);
}

/* Any width up to the limit is taken, and the score of a window beside itself is that of no change. */
static void every_width(void **state)
{
  (void)state;
  struct hk_reference *reference;
  double x[2 * HK_WINDOW_MAX], a0[HK_WINDOW_MAX], a[HK_WINDOW_MAX];
  static const uint32_t widths[] = { 4, 5, 7, 63, 64, 65, 511, 1023, 1024 };
  assert_int_equal(hk_reference_new(&reference, HK_WINDOW_MAX), 0);
  for (uint32_t i = 0; i < 2 * HK_WINDOW_MAX; i++)
    x[i] = sin(0.1 * i);
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
    char text[64], error[256];
    struct hk_detector d;
    struct hk_reference_score score;
    snprintf(text, sizeof text, "window=%u,rank=2,krylov=4", widths[i]);
    assert_int_equal(hk_detector_parse(text, &d, error, sizeof error), 0);
    hk_reference_random(a0, 1, widths[i]);
    memcpy(a, a0, sizeof a);
    for (int again = 0; again < 3; again++)
      assert_int_equal(hk_reference_score(reference, &d, x, x, a0, a, &score), 0);
    assert_true(score.z < 1e-9); /* a sine spans two dimensions, and both are taken */
    assert_true(score.share > 0.3 && score.share <= 1);
  }
  hk_reference_free(reference);
}

int main(int argc, char **argv)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(scores_agree_with_numpy), cmocka_unit_test(every_width) };
  if (argc != 2) {
    fprintf(stderr, "usage: %s oracle_scores.txt\n", argv[0]);
    return 2;
  }
  path = argv[1];
  return cmocka_run_group_tests(tests, NULL, NULL);
}
