/* What the tests in C have in common: checks that say where they failed. */
#ifndef MIGRAPHX_TEST_CHECK_H
#define MIGRAPHX_TEST_CHECK_H
#include <migraphx/migraphx.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;

#define CHECK(what)                                     \
  do {                                                  \
    if (!(what)) {                                      \
      printf("%s:%d: %s\n", __FILE__, __LINE__, #what); \
      ++failures;                                       \
    }                                                   \
  } while (0)

/* The call succeeds. */
#define OK(call)                                                                            \
  do {                                                                                      \
    const migraphx_status status_ = (call);                                                 \
    if (status_ != migraphx_status_success) {                                               \
      printf("%s:%d: %s: %d, %s\n", __FILE__, __LINE__, #call, status_, kiln_last_error()); \
      ++failures;                                                                           \
    }                                                                                       \
  } while (0)

/* The call fails with this status, and the message says this. */
#define FAILS(call, wanted, text)                                                           \
  do {                                                                                      \
    const migraphx_status status_ = (call);                                                 \
    if (status_ != (wanted) || !strstr(kiln_last_error(), text)) {                          \
      printf("%s:%d: %s: %d, %s\n", __FILE__, __LINE__, #call, status_, kiln_last_error()); \
      ++failures;                                                                           \
    }                                                                                       \
  } while (0)

#endif
