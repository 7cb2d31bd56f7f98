/* What the tests in C share: checks that count, and name their place. */
#ifndef KILN_TEST_CHECK_H
#define KILN_TEST_CHECK_H
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/interface/c/kiln.h"

static int failures = 0;

static inline void fail_at(const char* file, int line, const char* what) {
  fprintf(stderr, "%s:%d: %s\n", file, line, what);
  ++failures;
}

/* A condition that holds. */
#define CHECK(condition) ((condition) ? (void)0 : fail_at(__FILE__, __LINE__, #condition))

static inline void check_ok(const char* file, int line, kiln_status status) {
  if (status != KILN_OK) fail_at(file, line, kiln_last_error());
}
/* A call that succeeds. */
#define OK(call) check_ok(__FILE__, __LINE__, call)

static inline void check_refused(const char* file, int line, kiln_status found, kiln_status expected,
                                 const char* text) {
  char what[1024];
  if (found != expected) {
    snprintf(what, sizeof what, "expected status '%s', found '%s'", kiln_status_name(expected),
             kiln_status_name(found));
    fail_at(file, line, what);
  } else if (kiln_last_error_status() != expected || !strstr(kiln_last_error(), text)) {
    snprintf(what, sizeof what, "expected a message with '%s', found '%s'", text, kiln_last_error());
    fail_at(file, line, what);
  }
}
/* A call that fails with this status, and whose message has this text. */
#define REFUSED(status, text, call) check_refused(__FILE__, __LINE__, call, status, text)

static inline int finish(void) {
  if (failures) fprintf(stderr, "%d checks failed\n", failures);
  return failures != 0;
}

#define DIGITS "examples/models/digits/"

static inline kiln_program* import_model(const char* path) {
  kiln_program* program = NULL;
  OK(kiln_program_import(path, NULL, &program));
  if (!program) exit(finish());
  return program;
}

static inline kiln_executable* compile_for(const kiln_program* program, const char* target) {
  kiln_executable* executable = NULL;
  OK(kiln_compile(program, target, NULL, &executable));
  if (!executable) exit(finish());
  return executable;
}

static inline kiln_tensor* read_tensor(const char* path) {
  kiln_tensor* tensor = NULL;
  OK(kiln_tensor_read(path, &tensor));
  if (!tensor) exit(finish());
  return tensor;
}

static inline const float* floats_of(const kiln_tensor* tensor) {
  void* data = NULL;
  OK(kiln_tensor_data(tensor, &data));
  return data;
}

#endif
