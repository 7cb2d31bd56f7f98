/* The op of examples/models/swish.onnx, y = (x + 1) * sigmoid(beta * (x + 1)) * scale, defined here. */
#include "check.h"

enum { rows = 4, columns = 64 };

static int shape_calls, computations;

// [op]
/* The output is like the input. */
static kiln_status swish_shape(void* user, kiln_op_call* call) {
  kiln_dtype type;
  size_t rank;
  kiln_dim lens[KILN_MAX_RANK];
  kiln_status status = kiln_op_input(call, 0, &type, &rank, lens);
  if (status != KILN_OK) return status;
  ++*(int*)user;
  if (type != KILN_F32) return kiln_op_fail(call, KILN_UNSUPPORTED, "Swish computes in f32");
  return kiln_op_set_output(call, type, rank, lens);
}

static kiln_status swish(void* user, kiln_op_call* call) {
  size_t rank;
  kiln_dim lens[KILN_MAX_RANK];
  const float* beta;
  const void* in;
  void* out;
  kiln_status status = kiln_op_attribute_reals(call, "beta", NULL, &beta);
  if (status == KILN_OK) status = kiln_op_input(call, 0, NULL, &rank, lens);
  if (status == KILN_OK) status = kiln_op_input_data(call, 0, &in);
  if (status == KILN_OK) status = kiln_op_output_data(call, 0, &out);
  if (status != KILN_OK) return status;
  (void)user;
  int64_t count = 1;
  for (size_t i = 0; i < rank; ++i) count *= lens[i];
  const float* const x = in;
  float* const y = out;
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] / (1 + expf(-*beta * x[i]));
  return KILN_OK;
}
// [/op]

/* What a callback may ask, and what it may not. */
static kiln_status curious(void* user, kiln_op_call* call) {
  kiln_dtype type;
  const int64_t* integers;
  const float* reals;
  const char* text;
  const void* data;
  size_t count = 0;
  (void)user;
  CHECK(kiln_op_input_count(call) == 1);
  OK(kiln_op_attribute_reals(call, "beta", &count, &reals));
  CHECK(count == 1 && *reals == 2);
  REFUSED(KILN_BAD_PARAM, "it holds floats", kiln_op_attribute_integers(call, "beta", &count, &integers));
  REFUSED(KILN_BAD_PARAM, "it holds floats", kiln_op_attribute_text(call, "beta", &text));
  REFUSED(KILN_NOT_FOUND, "'gamma'", kiln_op_attribute_reals(call, "gamma", &count, &reals));
  REFUSED(KILN_BAD_PARAM, "within the op's operands", kiln_op_input(call, 1, &type, NULL, NULL));
  if (kiln_op_output_count(call) == 0) {
    REFUSED(KILN_BAD_PARAM, "no elements to read", kiln_op_input_data(call, 0, &data));
    return swish_shape(&shape_calls, call);
  }
  OK(kiln_op_output(call, 0, &type, NULL, NULL));
  CHECK(type == KILN_F32);
  REFUSED(KILN_BAD_PARAM, "only a shape rule", kiln_op_set_output(call, KILN_F32, 0, NULL));
  REFUSED(KILN_BAD_PARAM, "within the op's operands", kiln_op_input_data(call, 4, &data));
  ++computations;
  return swish(NULL, call);
}

static void run_on(const kiln_program* program, const char* target) {
  kiln_executable* const executable = compile_for(program, target);
  kiln_workspace* workspace = NULL;
  kiln_tensor *x = NULL, *scale = NULL, *y = NULL;
  float values[rows * columns], scales[columns];
  const int64_t lens[] = {rows, columns};
  char* report = NULL;
  for (int i = 0; i < rows * columns; ++i) values[i] = (float)i / 32 - 4;
  for (int i = 0; i < columns; ++i) scales[i] = (float)(i % 7);
  OK(kiln_tensor_borrow(KILN_F32, 2, lens, NULL, values, NULL, NULL, &x));
  OK(kiln_tensor_borrow(KILN_F32, 1, lens + 1, NULL, scales, NULL, NULL, &scale));
  OK(kiln_workspace_create(&workspace));
  const kiln_tensor* const inputs[] = {x, scale};
  OK(kiln_run(executable, workspace, 2, inputs, 1, &y, NULL));
  const float* const found = floats_of(y);
  for (int i = 0; i < rows * columns; ++i) {
    const double in = values[i] + 1.0;
    CHECK(fabs(found[i] - in / (1 + exp(-2 * in)) * scales[i % columns]) < 1e-4);
  }
  OK(kiln_executable_report(executable, KILN_TEXT, &report));
  CHECK(strstr(report, "my.domain::Swish (custom)") != NULL);
  kiln_string_destroy(report);
  kiln_tensor_destroy(y);
  kiln_tensor_destroy(scale);
  kiln_tensor_destroy(x);
  kiln_workspace_destroy(workspace);
  kiln_executable_destroy(executable);
}

static kiln_status silent_failure(void* user, kiln_op_call* call) {
  (void)user;
  (void)call;
  return KILN_LIMIT;
}

/* A model of one node: y = other.domain::Silent(x), x of f32[1]. */
static const unsigned char silent_model[] = {
    8, 8, 58, 67, 10, 28, 10, 1, 120, 18, 1, 121, 34, 6, 83, 105,
    108, 101, 110, 116, 58, 12, 111, 116, 104, 101, 114, 46, 100, 111, 109, 97,
    105, 110, 18, 1, 103, 90, 15, 10, 1, 120, 18, 10, 10, 8, 8, 1,
    18, 4, 10, 2, 8, 1, 98, 15, 10, 1, 121, 18, 10, 10, 8, 8,
    1, 18, 4, 10, 2, 8, 1, 66, 4, 10, 0, 16, 17, 66, 16, 10,
    12, 111, 116, 104, 101, 114, 46, 100, 111, 109, 97, 105, 110, 16, 1};

static void test_silent_failure(void) {
  kiln_program* program = NULL;
  OK(kiln_op_define("other.domain", "Silent", swish_shape, silent_failure, &shape_calls, 0));
  OK(kiln_program_import_memory(silent_model, sizeof silent_model, NULL, &program));
  if (!program) return;
  kiln_executable* const executable = compile_for(program, "eigen");
  kiln_workspace* workspace = NULL;
  kiln_tensor *x = NULL, *y = NULL;
  const int64_t one = 1;
  OK(kiln_tensor_create(KILN_F32, 1, &one, &x));
  OK(kiln_workspace_create(&workspace));
  const kiln_tensor* const inputs[] = {x};
  REFUSED(KILN_LIMIT, "the computation returned status 7", kiln_run(executable, workspace, 1, inputs, 1, &y, NULL));
  CHECK(strcmp(kiln_last_error_part(KILN_ERROR_OP), "other.domain::Silent") == 0);
  kiln_tensor_destroy(x);
  kiln_workspace_destroy(workspace);
  kiln_executable_destroy(executable);
  kiln_program_destroy(program);
}

/* Whether the compile report of a model of this op says that the cache keeps no such program. */
static int is_open(char first_letter, const char* cache) {
  unsigned char model[sizeof silent_model];
  kiln_program* program = NULL;
  kiln_executable* executable = NULL;
  kiln_compile_options* options = NULL;
  char* report = NULL;
  memcpy(model, silent_model, sizeof model);
  model[14] = (unsigned char)first_letter; /* of the op's type */
  OK(kiln_program_import_memory(model, sizeof model, NULL, &program));
  OK(kiln_compile_options_create(&options));
  OK(kiln_compile_options_set(options, "cache", cache));
  if (!program) return -1;
  OK(kiln_compile(program, "eigen", options, &executable));
  OK(kiln_executable_report(executable, KILN_TEXT, &report));
  const int open = report && strstr(report, "neither a version nor a build id") != NULL;
  kiln_string_destroy(report);
  kiln_executable_destroy(executable);
  kiln_compile_options_destroy(options);
  kiln_program_destroy(program);
  return open;
}

static void test_versions(const char* cache) {
  OK(kiln_op_define_versioned("other.domain", "Vilent", "1", swish_shape, silent_failure, &shape_calls, 0));
  OK(kiln_op_define_versioned("other.domain", "Wilent", NULL, swish_shape, silent_failure, &shape_calls, 0));
  CHECK(is_open('S', cache) == 1);
  CHECK(is_open('V', cache) == 0);
  CHECK(is_open('W', cache) == 1);
}

int main(int argc, char** argv) {
  OK(kiln_op_define("my.domain", "Swish", curious, curious, NULL, KILN_OP_PURE));
  kiln_program* const program = import_model("examples/models/swish.onnx");
  CHECK(shape_calls > 0 && computations == 0);
  run_on(program, "eigen");
  run_on(program, "reference");
  CHECK(computations == 2);
  kiln_program_destroy(program);
  test_silent_failure();
  CHECK(argc == 2);
  if (argc == 2) test_versions(argv[1]);
  return finish();
}
