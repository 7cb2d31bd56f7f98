/* A convolutional network from an ONNX file classifies scans of handwritten digits, from C. */
#include <stdio.h>
#include <stdlib.h>

#include "kiln/interface/c/kiln.h"

// [check]
/* What a call returns when it fails, and why, ends this program. */
static void check(kiln_status status) {
  if (status == KILN_OK) return;
  fprintf(stderr, "digits: %s: %s\n", kiln_status_name(status), kiln_last_error());
  exit(2);
}
// [/check]

static const char model[] = "examples/models/digits/model.onnx";
static const char scan_file[] = "examples/models/digits/test_data_set_0/input_0.pb";
static const char label_file[] = "examples/models/digits/labels.pb";

// [compile]
static kiln_executable* compiled(void) {
  kiln_program* program;
  kiln_compile_options* options;
  kiln_executable* digits;
  check(kiln_program_import(model, NULL, &program));
  check(kiln_compile_options_create(&options));
  check(kiln_compile_options_set(options, "threads", "1"));
  check(kiln_compile(program, "eigen", options, &digits));
  kiln_compile_options_destroy(options);
  kiln_program_destroy(program);
  return digits;
}
// [/compile]

static void describe(const kiln_executable* digits) {
  const char* name;
  kiln_dtype type;
  size_t rank, i;
  kiln_dim lens[KILN_MAX_RANK];
  check(kiln_executable_input(digits, 0, &name, &type, &rank, lens));
  printf("%s: %s[", name, kiln_dtype_name(type));
  for (i = 0; i < rank; ++i) {
    char* text;
    check(kiln_dim_text(lens[i], &text));
    printf("%s%s", i ? ", " : "", text);
    kiln_string_destroy(text);
  }
  printf("]\n");
}

int main(void) {
  kiln_executable* const digits = compiled();
  describe(digits);

  // [run]
  kiln_tensor *scans, *labels, *probabilities = NULL;
  kiln_workspace* workspace;
  check(kiln_tensor_read(scan_file, &scans));
  check(kiln_tensor_read(label_file, &labels));
  check(kiln_workspace_create(&workspace));
  const kiln_tensor* const inputs[] = {scans};
  check(kiln_run(digits, workspace, 1, inputs, 1, &probabilities, NULL));

  size_t rank;
  int64_t lens[KILN_MAX_RANK];
  void *rows, *truth;
  check(kiln_tensor_info(probabilities, NULL, &rank, lens, NULL));
  check(kiln_tensor_data(probabilities, &rows));
  check(kiln_tensor_data(labels, &truth));
  // [/run]

  int64_t right = 0;
  for (int64_t i = 0; i < lens[0]; ++i) {
    const float* const row = (const float*)rows + i * lens[1];
    int64_t guess = 0;
    for (int64_t k = 1; k < lens[1]; ++k)
      if (row[k] > row[guess]) guess = k;
    right += guess == ((const int64_t*)truth)[i];
  }
  printf("%lld of %lld scans are read right\n", (long long)right, (long long)lens[0]);

  kiln_tensor_destroy(probabilities);
  kiln_tensor_destroy(labels);
  kiln_tensor_destroy(scans);
  kiln_workspace_destroy(workspace);
  kiln_executable_destroy(digits);
  return right == lens[0] ? 0 : 1;
}
