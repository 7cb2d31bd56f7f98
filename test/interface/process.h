/* What tests of libraries that are opened and closed ask of their own process. */
#ifndef KILN_TEST_PROCESS_H
#define KILN_TEST_PROCESS_H
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int threads_here(void) {
  int count = 0;
  DIR* const folder = opendir("/proc/self/task");
  const struct dirent* entry;
  if (!folder) return -1;
  while ((entry = readdir(folder)) != NULL) count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

static int is_mapped(const char* name) {
  char line[4096];
  int found = 0;
  FILE* const file = fopen("/proc/self/maps", "r");
  if (!file) return -1;
  while (fgets(line, sizeof line, file)) found = found || strstr(line, name);
  fclose(file);
  return found;
}

static void fail(const char* what, const char* why) {
  fprintf(stderr, "reload: %s: %s\n", what, why);
  exit(1);
}

#endif
