/* Four threads share an executable, each with a workspace and a last error of its own. */
#include <threads.h>

#include "check.h"

enum { threads = 4, runs = 50 };

static kiln_executable* digits;
static kiln_tensor *scans, *expected;

static int work(void* own) {
  char name[32];
  int wrong = 0;
  int64_t lens[KILN_MAX_RANK];
  snprintf(name, sizeof name, "input of thread %d", *(const int*)own);
  wrong += *kiln_last_error() != 0; /* what other threads did */
  size_t index;
  kiln_workspace* workspace;
  if (kiln_executable_input_index(digits, name, &index) != KILN_NOT_FOUND) return 1;
  if (kiln_workspace_create(&workspace) != KILN_OK) return 1;
  const kiln_tensor* const inputs[] = {scans};
  for (int i = 0; i < runs; ++i) {
    kiln_tensor* rows = NULL;
    void *found = NULL, *wanted = NULL;
    if (kiln_run(digits, workspace, 1, inputs, 1, &rows, NULL) != KILN_OK) return 1;
    wrong += kiln_tensor_data(rows, &found) != KILN_OK || kiln_tensor_data(expected, &wanted) != KILN_OK;
    wrong += kiln_tensor_info(rows, NULL, NULL, lens, NULL) != KILN_OK;
    for (int64_t k = 0; k < lens[0] * lens[1]; ++k)
      wrong += !(fabsf(((float*)found)[k] - ((float*)wanted)[k]) <= 1e-5f);
    kiln_tensor_destroy(rows);
  }
  kiln_workspace_destroy(workspace);
  wrong += strstr(kiln_last_error(), name) == NULL;
  return wrong;
}

int main(void) {
  kiln_program* const program = import_model(DIGITS "model.onnx");
  digits = compile_for(program, "eigen");
  kiln_program_destroy(program);
  scans = read_tensor(DIGITS "test_data_set_0/input_0.pb");
  expected = read_tensor(DIGITS "test_data_set_0/output_0.pb");
  thrd_t all[threads];
  int numbers[threads];
  for (int i = 0; i < threads; ++i) {
    numbers[i] = i;
    CHECK(thrd_create(&all[i], work, &numbers[i]) == thrd_success);
  }
  for (int i = 0; i < threads; ++i) {
    int wrong = 1;
    thrd_join(all[i], &wrong);
    CHECK(wrong == 0);
  }
  CHECK(*kiln_last_error() == 0);
  kiln_tensor_destroy(expected);
  kiln_tensor_destroy(scans);
  kiln_executable_destroy(digits);
  return finish();
}
