/* Runs a fuzz target on files, so that its corpus is a regression test in a build without libFuzzer: replay FILE|FOLDER... */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int failed(const char *path)
{
  perror(path);
  return -1;
}

static int run_file(const char *path, size_t size)
{
  FILE *file = fopen(path, "rb");
  uint8_t *data = malloc(size + 1);
  if (!file || !data)
    return failed(path);
  const size_t read = fread(data, 1, size, file);
  fclose(file);
  (void)LLVMFuzzerTestOneInput(data, read);
  free(data);
  return 1;
}

/* Returns how many files were run, or -1. */
static int run(const char *path)
{
  struct stat about;
  if (stat(path, &about) < 0)
    return failed(path);
  if (S_ISREG(about.st_mode))
    return run_file(path, (size_t)about.st_size);
  DIR *folder = opendir(path);
  if (!folder)
    return failed(path);
  int count = 0;
  const struct dirent *entry;
  while (count >= 0 && (entry = readdir(folder))) {
    char name[4096];
    if (entry->d_name[0] == '.')
      continue;
    snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
    const int ran = run(name);
    count = ran < 0 ? -1 : count + ran;
  }
  closedir(folder);
  return count;
}

int main(int argc, char **argv)
{
  int count = 0;
  for (int i = 1; i < argc; i++) {
    const int ran = run(argv[i]);
    if (ran < 0)
      return 1;
    count += ran;
  }
  printf("%d inputs\n", count);
  return count > 0 ? 0 : 1; /* an empty corpus tests nothing */
}
