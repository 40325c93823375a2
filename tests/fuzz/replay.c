/* Runs a fuzz target on inputs, so that its corpus is a regression test in a build without libFuzzer: replay FILE...
 * A file that ends in .corpus has an input a line (see README.md); any other is an input. */
#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In memory of exactly this size, so that ASan sees a read beyond it. */
static int run_input(const char *data, size_t size)
{
  uint8_t *exact = malloc(size > 0 ? size : 1);
  if (!exact)
    return -ENOMEM;
  if (size > 0)
    memcpy(exact, data, size);
  (void)LLVMFuzzerTestOneInput(exact, size);
  free(exact);
  return 0;
}

/* Replaces each \HH by its byte, in place. Returns the bytes' number, or -EINVAL. The text ends in a NUL. */
static ssize_t undo_escapes(char *text, size_t size)
{
  size_t n = 0;
  for (size_t i = 0; i < size; i++) {
    char byte = text[i];
    if (byte == '\\') {
      if (!isxdigit((unsigned char)text[i + 1]) || !isxdigit((unsigned char)text[i + 2]))
        return -EINVAL;
      const char digits[] = { text[i + 1], text[i + 2], '\0' };
      byte = (char)strtoul(digits, NULL, 16);
      i += 2;
    }
    text[n++] = byte;
  }
  return (ssize_t)n;
}

/* One line of a corpus: NAME, a blank, the bytes. */
static int run_line(char *line, size_t size)
{
  char *blank = memchr(line, ' ', size);
  if (!blank)
    return -EINVAL;
  const ssize_t n = undo_escapes(blank + 1, size - (size_t)(blank + 1 - line));
  return n < 0 ? (int)n : run_input(blank + 1, (size_t)n);
}

/* The next functions return how many inputs were run, or a negative number after a message. */
static int run_corpus(FILE *file, const char *path)
{
  char *line = NULL;
  size_t room = 0;
  int count = 0;
  ssize_t size;
  while ((size = getline(&line, &room, file)) > 0) {
    if (line[size - 1] == '\n')
      line[--size] = '\0';
    const int error = run_line(line, (size_t)size);
    if (error < 0) {
      fprintf(stderr, "%s:%d: %s\n", path, count + 1,
              error == -EINVAL ? "not NAME, a blank and bytes with \\HH" : strerror(-error));
      count = error;
      break;
    }
    count++;
  }
  free(line);
  return count;
}

static int run_whole(FILE *file, const char *path)
{
  long size = -1;
  char *data = NULL;
  if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0 && (data = malloc((size_t)size + 1)) != NULL) {
    rewind(file);
    size = (long)fread(data, 1, (size_t)size, file);
  }
  const int error = size < 0 || !data || ferror(file) ? -errno : run_input(data, (size_t)size);
  if (error < 0)
    perror(path);
  free(data);
  return error < 0 ? error : 1;
}

static int run_path(const char *path)
{
  const size_t length = strlen(path), suffix = strlen(".corpus");
  FILE *file = fopen(path, "rb");
  if (!file) {
    perror(path);
    return -1;
  }
  const int corpus = length > suffix && strcmp(path + length - suffix, ".corpus") == 0;
  const int count = corpus ? run_corpus(file, path) : run_whole(file, path);
  fclose(file);
  return count;
}

int main(int argc, char **argv)
{
  int count = 0;
  for (int i = 1; i < argc; i++) {
    const int ran = run_path(argv[i]);
    if (ran < 0)
      return 1;
    count += ran;
  }
  printf("%d inputs\n", count);
  return count > 0 ? 0 : 1; /* an empty corpus tests nothing */
}
