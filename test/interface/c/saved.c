/* saved FILE: programs written to a file and loaded again, compiled and not, with an op of the caller's. */
#include "check.h"

static const char* file;

static void check_same_rows(const kiln_executable* one, const kiln_executable* other) {
  kiln_tensor* const scans = read_tensor(DIGITS "test_data_set_0/input_0.pb");
  const kiln_tensor* const inputs[] = {scans};
  kiln_tensor* rows[] = {NULL, NULL};
  kiln_workspace* workspace = NULL;
  int64_t lens[KILN_MAX_RANK];
  OK(kiln_workspace_create(&workspace));
  OK(kiln_run(one, workspace, 1, inputs, 1, &rows[0], NULL));
  OK(kiln_run(other, workspace, 1, inputs, 1, &rows[1], NULL));
  OK(kiln_tensor_info(rows[0], NULL, NULL, lens, NULL));
  CHECK(memcmp(floats_of(rows[0]), floats_of(rows[1]), (size_t)(lens[0] * lens[1]) * sizeof(float)) == 0);
  kiln_tensor_destroy(rows[0]);
  kiln_tensor_destroy(rows[1]);
  kiln_tensor_destroy(scans);
  kiln_workspace_destroy(workspace);
}

static void test_compiled(void) {
  kiln_program* const program = import_model(DIGITS "model.onnx");
  kiln_executable *const digits = compile_for(program, "eigen"), *again = NULL;
  OK(kiln_executable_save(digits, NULL, file));
  OK(kiln_executable_load(file, "eigen", NULL, &again));
  check_same_rows(digits, again);
  kiln_executable_destroy(again);
  again = NULL;
  REFUSED(KILN_UNSUPPORTED, "target: expected reference, found eigen",
          kiln_executable_load(file, "reference", NULL, &again));
  REFUSED(KILN_NOT_FOUND, "a target by its name", kiln_executable_load(file, "abacus", NULL, &again));
  REFUSED(KILN_UNSUPPORTED, "with its source", kiln_program_load(file, &(kiln_program*){NULL}));
  CHECK(again == NULL);

  char* report = NULL;
  OK(kiln_executable_save(digits, program, file));
  OK(kiln_executable_load(file, "reference", NULL, &again)); /* compiled anew */
  OK(kiln_executable_report(again, KILN_TEXT, &report));
  CHECK(strstr(report, "compiled anew") != NULL);
  kiln_string_destroy(report);
  kiln_executable_destroy(again);
  kiln_executable_destroy(digits);
  kiln_program_destroy(program);
}

static void test_source(void) {
  kiln_program *const program = import_model(DIGITS "model.onnx"), *again = NULL;
  OK(kiln_program_save(program, file));
  OK(kiln_program_load(file, &again));
  kiln_executable *const one = compile_for(program, "eigen"), *const other = compile_for(again, "eigen");
  check_same_rows(one, other);
  kiln_executable_destroy(one);
  kiln_executable_destroy(other);
  kiln_program_destroy(program);
  kiln_program_destroy(again);
}

static kiln_status like_input(void* user, kiln_op_call* call) {
  kiln_dtype type;
  size_t rank;
  kiln_dim lens[KILN_MAX_RANK];
  (void)user;
  const kiln_status status = kiln_op_input(call, 0, &type, &rank, lens);
  return status == KILN_OK ? kiln_op_set_output(call, type, rank, lens) : status;
}

static float beta_of_run;

static kiln_status note_beta(void* user, kiln_op_call* call) {
  const float* beta;
  (void)user;
  const kiln_status status = kiln_op_attribute_reals(call, "beta", NULL, &beta);
  if (status == KILN_OK) beta_of_run = *beta;
  return status;
}

static void test_own_op(void) {
  OK(kiln_op_define("my.domain", "Swish", like_input, note_beta, NULL, 0));
  kiln_program* const program = import_model("examples/models/swish.onnx");
  kiln_executable *const swish = compile_for(program, "eigen"), *again = NULL;
  kiln_workspace* workspace = NULL;
  kiln_tensor *x = NULL, *scale = NULL, *y = NULL;
  const int64_t lens[] = {4, 64};
  OK(kiln_executable_save(swish, NULL, file));
  OK(kiln_executable_load(file, "eigen", NULL, &again));
  OK(kiln_tensor_create(KILN_F32, 2, lens, &x));
  OK(kiln_tensor_create(KILN_F32, 1, lens + 1, &scale));
  OK(kiln_workspace_create(&workspace));
  const kiln_tensor* const inputs[] = {x, scale};
  OK(kiln_run(again, workspace, 2, inputs, 1, &y, NULL));
  CHECK(beta_of_run == 2);
  kiln_tensor_destroy(x);
  kiln_tensor_destroy(scale);
  kiln_tensor_destroy(y);
  kiln_workspace_destroy(workspace);
  kiln_executable_destroy(again);
  kiln_executable_destroy(swish);
  kiln_program_destroy(program);
}

static void test_refused(void) {
  kiln_program* program = NULL;
  kiln_executable* executable = NULL;
  REFUSED(KILN_NOT_FOUND, "no/such.kiln", kiln_program_load("no/such.kiln", &program));
  REFUSED(KILN_MALFORMED, "model.onnx", kiln_executable_load(DIGITS "model.onnx", "eigen", NULL, &executable));
  REFUSED(KILN_BAD_PARAM, "executable is given", kiln_executable_save(NULL, NULL, file));
  REFUSED(KILN_BAD_PARAM, "path is given", kiln_executable_load(NULL, "eigen", NULL, &executable));
  REFUSED(KILN_BAD_PARAM, "target is given", kiln_executable_load(file, NULL, NULL, &executable));
  REFUSED(KILN_BAD_PARAM, "program is given", kiln_program_save(NULL, file));
  REFUSED(KILN_BAD_PARAM, "program is given", kiln_program_load(file, NULL));
  CHECK(program == NULL && executable == NULL);
}

int main(int count, char** words) {
  if (count != 2) return 2;
  file = words[1];
  test_compiled();
  test_source();
  test_own_op();
  test_refused();
  remove(file);
  return finish();
}
