/* A thermal camera: sends its pictures to hankeld, which watches each tile of them.
 *
 *     cc picture.c -lhankel -o picture && ./picture 127.0.0.1:7410 "oven 3" 10
 *
 * The daemon needs, in its configuration, a section [pictures ovens] with `match = oven*`, and a detector for the tiles, with
 * `match = oven*` and a slash and a star behind it. The pictures here are made up: a warm wall and, in the last one, a hot joint.
 */
#include <hankel.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define HEIGHT 96
#define WIDTH 128

/* Takes a picture: hundredths of a kelvin, as most thermal cameras give. */
static void take_picture(uint16_t pixels[HEIGHT][WIDTH], int joint)
{
  for (int r = 0; r < HEIGHT; r++)
    for (int i = 0; i < WIDTH; i++)
      pixels[r][i] = (uint16_t)(30000 + 2 * r + rand() % 10 + (joint && r / 3 == 20 && i / 3 == 11 ? 500 : 0));
}

static void tell_fault(void *arg, int code, const char *message)
{
  (void)arg;
  fprintf(stderr, "the daemon says: %s (error %d)\n", message, code);
}

int main(int argc, char **argv)
{
  static uint16_t pixels[HEIGHT][WIDTH];
  struct hankel_options options = HANKEL_OPTIONS_DEFAULT;
  struct timespec now;
  if (argc != 4) {
    fprintf(stderr, "usage: %s ADDRESS CAMERA PICTURES\n", argv[0]);
    return 2;
  }
  const int n = atoi(argv[3]);
  options.address = argv[1];
  options.callbacks.error = tell_fault;
  hankel *h = hankel_open(&options);
  int status = h ? 0 : -1;
  for (int i = 0; i < n && status == 0; i++) {
    take_picture(pixels, i == n - 1);
    (void)clock_gettime(CLOCK_REALTIME, &now);
    const struct hankel_picture picture = { .camera = argv[2],
                                            .time = now.tv_sec * 1000000000LL + now.tv_nsec,
                                            .height = HEIGHT,
                                            .width = WIDTH,
                                            .kind = HANKEL_PIXEL_U16,
                                            .scale = 0.01f,     /* kelvins a count, */
                                            .offset = -273.15f, /* and degrees Celsius */
                                            .pixels = pixels };
    status = hankel_picture(h, &picture, 10000);
  }
  if (status == 0)
    status = hankel_sync(h, 10000);
  if (status != 0)
    fprintf(stderr, "%s\n", h ? hankel_error(h) : "out of memory");
  hankel_close(h);
  return status != 0;
}
