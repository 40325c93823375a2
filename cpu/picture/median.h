/* Medians of 3 x 3 and 5 x 5 numbers by comparisons, of any type with MIN and MAX; the host's vectors and the GPU's floats use
 * the same networks.
 *
 * The columns are sorted first, once for all windows that have them. Of a 3 x 3 window the median is the median of the greatest
 * of the columns' least, the median of their middles, and the least of their greatest: 18 operations. Of a 5 x 5 window each row
 * is sorted, too; then a number at (i, j) is at least as large as (i + 1)(j + 1) of them, itself among these, so 13 of the 25 may
 * be the median, and it is the median of these, by the part of Batcher's odd-even sort that leads to it (K. E. Batcher, Sorting
 * networks and their applications, 1968): 18 operations for a column and 116 more. That
 * this is the median of all zeros and ones, and hence of all numbers, is tried by tests/unit/picture/test_median.c. */
#ifndef HK_PICTURE_MEDIAN_H
#define HK_PICTURE_MEDIAN_H

/* Exchanges of x[i] and x[j]: both results are used, or the lesser one only, or the greater one only. */
#define HK_BOTH(x, i, j)                                                                                                         \
  do {                                                                                                                           \
    const HK_MEDIAN_TYPE least_ = HK_MEDIAN_MIN((x)[i], (x)[j]), most_ = HK_MEDIAN_MAX((x)[i], (x)[j]);                          \
    (x)[i] = least_;                                                                                                             \
    (x)[j] = most_;                                                                                                              \
  } while (0)
#define HK_LEAST(x, i, j) (x)[i] = HK_MEDIAN_MIN((x)[i], (x)[j])
#define HK_MOST(x, i, j) (x)[j] = HK_MEDIAN_MAX((x)[i], (x)[j])

/* Sorts a column of 3. */
#define HK_SORT_3(x)                                                                                                             \
  do {                                                                                                                           \
    HK_BOTH(x, 0, 1);                                                                                                            \
    HK_BOTH(x, 1, 2);                                                                                                            \
    HK_BOTH(x, 0, 1);                                                                                                            \
  } while (0)

/* Sorts a column of 5. */
#define HK_SORT_5(x)                                                                                                             \
  do {                                                                                                                           \
    HK_BOTH(x, 0, 1);                                                                                                            \
    HK_BOTH(x, 3, 4);                                                                                                            \
    HK_BOTH(x, 2, 4);                                                                                                            \
    HK_BOTH(x, 2, 3);                                                                                                            \
    HK_BOTH(x, 0, 3);                                                                                                            \
    HK_BOTH(x, 0, 2);                                                                                                            \
    HK_BOTH(x, 1, 4);                                                                                                            \
    HK_BOTH(x, 1, 3);                                                                                                            \
    HK_BOTH(x, 1, 2);                                                                                                            \
  } while (0)

/* The median of three numbers. */
#define HK_MIDDLE(a, b, c) HK_MEDIAN_MAX(HK_MEDIAN_MIN(a, b), HK_MEDIAN_MIN(HK_MEDIAN_MAX(a, b), c))

/* The median of nine: a, b and c are sorted columns of 3. */
#define HK_MEDIAN_9(a, b, c)                                                                                                     \
  HK_MIDDLE(HK_MEDIAN_MAX((a)[0], HK_MEDIAN_MAX((b)[0], (c)[0])), HK_MIDDLE((a)[1], (b)[1], (c)[1]),                             \
            HK_MEDIAN_MIN((a)[2], HK_MEDIAN_MIN((b)[2], (c)[2])))

/* x[12] becomes the median of x[0..24], x[5 i + j] being number i of sorted column j. */
#define HK_MEDIAN_25(x)                                                                                                          \
  do {                                                                                                                           \
    HK_BOTH(x, 0, 1);                                                                                                            \
    HK_BOTH(x, 3, 4);                                                                                                            \
    HK_BOTH(x, 2, 4);                                                                                                            \
    HK_MOST(x, 2, 3);                                                                                                            \
    HK_MOST(x, 0, 3);                                                                                                            \
    HK_BOTH(x, 1, 4);                                                                                                            \
    HK_MOST(x, 1, 3);                                                                                                            \
    HK_BOTH(x, 5, 6);                                                                                                            \
    HK_BOTH(x, 8, 9);                                                                                                            \
    HK_BOTH(x, 7, 9);                                                                                                            \
    HK_BOTH(x, 7, 8);                                                                                                            \
    HK_BOTH(x, 5, 8);                                                                                                            \
    HK_MOST(x, 5, 7);                                                                                                            \
    HK_BOTH(x, 6, 9);                                                                                                            \
    HK_BOTH(x, 6, 8);                                                                                                            \
    HK_MOST(x, 6, 7);                                                                                                            \
    HK_BOTH(x, 10, 11);                                                                                                          \
    HK_BOTH(x, 13, 14);                                                                                                          \
    HK_BOTH(x, 12, 14);                                                                                                          \
    HK_BOTH(x, 12, 13);                                                                                                          \
    HK_BOTH(x, 10, 13);                                                                                                          \
    HK_MOST(x, 10, 12);                                                                                                          \
    HK_LEAST(x, 11, 14);                                                                                                         \
    HK_BOTH(x, 11, 13);                                                                                                          \
    HK_BOTH(x, 11, 12);                                                                                                          \
    HK_BOTH(x, 15, 16);                                                                                                          \
    HK_BOTH(x, 18, 19);                                                                                                          \
    HK_BOTH(x, 17, 19);                                                                                                          \
    HK_BOTH(x, 17, 18);                                                                                                          \
    HK_BOTH(x, 15, 18);                                                                                                          \
    HK_BOTH(x, 15, 17);                                                                                                          \
    HK_LEAST(x, 16, 19);                                                                                                         \
    HK_LEAST(x, 16, 18);                                                                                                         \
    HK_BOTH(x, 16, 17);                                                                                                          \
    HK_BOTH(x, 20, 21);                                                                                                          \
    HK_BOTH(x, 23, 24);                                                                                                          \
    HK_BOTH(x, 22, 24);                                                                                                          \
    HK_BOTH(x, 22, 23);                                                                                                          \
    HK_BOTH(x, 20, 23);                                                                                                          \
    HK_BOTH(x, 20, 22);                                                                                                          \
    HK_LEAST(x, 21, 24);                                                                                                         \
    HK_LEAST(x, 21, 23);                                                                                                         \
    HK_LEAST(x, 21, 22);                                                                                                         \
    HK_BOTH(x, 3, 15);                                                                                                           \
    HK_BOTH(x, 4, 16);                                                                                                           \
    HK_BOTH(x, 8, 20);                                                                                                           \
    HK_BOTH(x, 9, 21);                                                                                                           \
    HK_BOTH(x, 4, 11);                                                                                                           \
    HK_BOTH(x, 9, 15);                                                                                                           \
    HK_BOTH(x, 13, 20);                                                                                                          \
    HK_MOST(x, 3, 7);                                                                                                            \
    HK_MOST(x, 4, 8);                                                                                                            \
    HK_BOTH(x, 9, 12);                                                                                                           \
    HK_BOTH(x, 11, 13);                                                                                                          \
    HK_LEAST(x, 15, 17);                                                                                                         \
    HK_LEAST(x, 16, 20);                                                                                                         \
    HK_BOTH(x, 7, 15);                                                                                                           \
    HK_BOTH(x, 8, 16);                                                                                                           \
    HK_LEAST(x, 12, 21);                                                                                                         \
    HK_BOTH(x, 7, 9);                                                                                                            \
    HK_BOTH(x, 8, 11);                                                                                                           \
    HK_BOTH(x, 12, 15);                                                                                                          \
    HK_BOTH(x, 13, 16);                                                                                                          \
    HK_MOST(x, 7, 8);                                                                                                            \
    HK_MOST(x, 9, 11);                                                                                                           \
    HK_LEAST(x, 12, 13);                                                                                                         \
    HK_LEAST(x, 15, 16);                                                                                                         \
    HK_MOST(x, 8, 12);                                                                                                           \
    HK_LEAST(x, 11, 15);                                                                                                         \
    HK_MOST(x, 11, 12);                                                                                                          \
  } while (0)

#endif
