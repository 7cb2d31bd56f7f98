/* Every status, with its message; every handle and pointer that a function needs, as NULL. */
#include "check.h"

static kiln_program* program;
static kiln_executable* digits;
static kiln_workspace* workspace;
static kiln_tensor* scans;

static void test_before_any_failure(void) {
  CHECK(kiln_last_error_status() == KILN_OK && strcmp(kiln_last_error(), "") == 0);
  CHECK(strcmp(kiln_last_error_part(KILN_ERROR_EXPECTED), "") == 0);
  CHECK(strcmp(kiln_status_name(KILN_OK), "ok") == 0 && strcmp(kiln_status_name((kiln_status)99), "no status") == 0);
}

static void test_bad_param(void) {
  const kiln_tensor* const two[] = {scans, scans};
  kiln_tensor* rows = NULL;
  kiln_compile_options* options = NULL;
  char* text = NULL;
  REFUSED(KILN_BAD_PARAM, "number of inputs: expected 1, found 2",
          kiln_run(digits, workspace, 2, two, 1, &rows, NULL));
  CHECK(rows == NULL);
  CHECK(strcmp(kiln_last_error_part(KILN_ERROR_EXPECTED), "1") == 0);
  CHECK(strcmp(kiln_last_error_part(KILN_ERROR_FOUND), "2") == 0);
  CHECK(strcmp(kiln_last_error_part(KILN_ERROR_MESSAGE), "number of inputs") == 0);
  CHECK(strcmp(kiln_last_error_part((kiln_error_part)77), "") == 0);
  REFUSED(KILN_BAD_PARAM, "number of outputs", kiln_run(digits, workspace, 1, two, 0, NULL, NULL));
  REFUSED(KILN_BAD_PARAM, "within the inputs or outputs: expected 1, found 5",
          kiln_executable_input(digits, 5, NULL, NULL, NULL, NULL));
  REFUSED(KILN_BAD_PARAM, "kiln_format", kiln_executable_report(digits, (kiln_format)7, &text));
  OK(kiln_compile_options_create(&options));
  OK(kiln_compile_options_set(options, "tune", "true"));
  REFUSED(KILN_BAD_PARAM, "tuning chooses", kiln_compile(program, "reference", options, &(kiln_executable*){NULL}));
  REFUSED(KILN_BAD_PARAM, "threads", kiln_compile_options_set(options, "threads", "many"));
  kiln_compile_options_destroy(options);

  const char* const twice[] = {"", ""};
  const char* name = NULL;
  OK(kiln_executable_input(digits, 0, &name, NULL, NULL, NULL));
  const char* const both[] = {name, name};
  REFUSED(KILN_BAD_PARAM, "every input is given", kiln_run_named(digits, workspace, 0, NULL, NULL, 1, &rows, NULL));
  REFUSED(KILN_BAD_PARAM, "given once", kiln_run_named(digits, workspace, 2, both, two, 1, &rows, NULL));
  REFUSED(KILN_NOT_FOUND, name, kiln_run_named(digits, workspace, 2, twice, two, 1, &rows, NULL));
}

static void test_bad_sizes(void) {
  const int64_t negative[] = {2, -1}, lens[] = {2, 3};
  kiln_tensor* tensor = NULL;
  float data[8];
  REFUSED(KILN_BAD_PARAM, "an extent is not negative: expected 0, found -1",
          kiln_tensor_create(KILN_F32, 2, negative, &tensor));
  REFUSED(KILN_BAD_PARAM, "kiln_dtype", kiln_tensor_create((kiln_dtype)29, 2, lens, &tensor));
  REFUSED(KILN_BAD_PARAM, "aligned",
          kiln_tensor_borrow(KILN_F32, 2, lens, NULL, (char*)data + 1, NULL, NULL, &tensor));
  CHECK(tensor == NULL);
  OK(kiln_tensor_create(KILN_F32, 2, lens, &tensor));
  REFUSED(KILN_BAD_PARAM, "bytes of the tensor's elements: expected 24, found 23",
          kiln_tensor_copy_to(tensor, data, 23));
  REFUSED(KILN_BAD_PARAM, "element type of the tensor", kiln_tensor_string(tensor, 0, &(const char*){NULL}, NULL));
  REFUSED(KILN_BAD_PARAM, "with items", kiln_tensor_item_count(tensor, &(size_t){0}));
  kiln_tensor* const wrong[] = {tensor};
  kiln_tensor* rows = NULL;
  REFUSED(KILN_SHAPE_MISMATCH, "expected f32[", kiln_run(digits, workspace, 1, (const kiln_tensor* const*)wrong, 1,
                                                         &rows, NULL));
  REFUSED(KILN_SHAPE_MISMATCH, "expected f32[",
          kiln_workspace_bind(workspace, digits, 1, (const kiln_tensor* const*)wrong));
  const kiln_tensor* const right[] = {scans};
  rows = tensor;
  REFUSED(KILN_SHAPE_MISMATCH, "expected row-major f32[", kiln_run(digits, workspace, 1, right, 1, &rows, NULL));
  CHECK(rows == tensor);
  kiln_tensor_destroy(tensor);
  REFUSED(KILN_BAD_PARAM, "0 <= min <= max", kiln_dim_symbol("n", -1, 4, &(kiln_dim){0}));
  REFUSED(KILN_BAD_PARAM, "0 <= min <= max", kiln_dim_symbol("n", 5, 4, &(kiln_dim){0}));
  REFUSED(KILN_BAD_PARAM, "one of + - * / %", kiln_dim_combine('^', 1, 2, &(kiln_dim){0}));
  REFUSED(KILN_BAD_PARAM, "divisor", kiln_dim_combine('/', 1, 0, &(kiln_dim){0}));
  REFUSED(KILN_BAD_PARAM, "an expression that kiln made", kiln_dim_bounds(INT64_MIN + 1000000, NULL, NULL));
}

static void test_models(void) {
  kiln_program* none = NULL;
  kiln_executable* nothing = NULL;
  static const char garbage[] = "this is no model";
  REFUSED(KILN_NOT_FOUND, "no/such/model.onnx", kiln_program_import("no/such/model.onnx", NULL, &none));
  REFUSED(KILN_IO, "examples", kiln_program_import("examples", NULL, &none));
  REFUSED(KILN_MALFORMED, "model", kiln_program_import_memory(garbage, sizeof garbage, NULL, &none));
  REFUSED(KILN_MALFORMED, "", kiln_program_import_memory(NULL, 0, NULL, &none));
  REFUSED(KILN_UNSUPPORTED, "Swish", kiln_program_import("examples/models/swish.onnx", NULL, &none));
  CHECK(none == NULL);
  REFUSED(KILN_NOT_FOUND, "eigen, reference", kiln_compile(program, "abacus", NULL, &nothing));
  REFUSED(KILN_NOT_FOUND, "'x y'", kiln_executable_input_index(digits, "x y", &(size_t){0}));
  REFUSED(KILN_NOT_FOUND, "'x y'", kiln_executable_output_index(digits, "x y", &(size_t){0}));
  REFUSED(KILN_NOT_FOUND, "no/such.pb", kiln_tensor_read("no/such.pb", (kiln_tensor**)&nothing));
  REFUSED(KILN_IO, "no/such", kiln_tensor_write(scans, "no/such/folder/scans.pb"));
  CHECK(nothing == NULL);
  kiln_compile_options* options = NULL;
  kiln_run_options* run = NULL;
  OK(kiln_compile_options_create(&options));
  REFUSED(KILN_NOT_FOUND, "thread", kiln_compile_options_set(options, "thread", "1"));
  REFUSED(KILN_NOT_FOUND, "thread", kiln_compile_options_get(options, "thread", &(char*){NULL}));
  kiln_compile_options_destroy(options);
  OK(kiln_run_options_create(&run));
  REFUSED(KILN_NOT_FOUND, "steam", kiln_run_options_set(run, "steam", "1"));
  kiln_run_options_destroy(run);
}

static void test_limits(void) {
  const int64_t huge[] = {1 << 20, 1 << 20, 1 << 10}, overflowing[] = {INT64_MAX / 2, 8};
  const int64_t nine[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  kiln_tensor* tensor = NULL;
  REFUSED(KILN_LIMIT, "memory", kiln_tensor_create(KILN_F32, 3, huge, &tensor));
  REFUSED(KILN_LIMIT, "64 bits", kiln_tensor_create(KILN_F32, 2, overflowing, &tensor));
  REFUSED(KILN_LIMIT, "rank of a tensor: expected 8, found 9", kiln_tensor_create(KILN_F32, 9, nine, &tensor));
  REFUSED(KILN_UNSUPPORTED, "string", kiln_tensor_create(KILN_STRING, 1, nine, &tensor));
  CHECK(tensor == NULL);
}

static void test_canceled(void) {
  kiln_run_options* options = NULL;
  kiln_tensor* rows = NULL;
  const kiln_tensor* const inputs[] = {scans};
  OK(kiln_run_options_create(&options));
  OK(kiln_run_options_cancel(options, 1));
  REFUSED(KILN_CANCELED, "stopped before step 0", kiln_run(digits, workspace, 1, inputs, 1, &rows, options));
  CHECK(rows == NULL);
  OK(kiln_run_options_cancel(options, 0));
  OK(kiln_run(digits, workspace, 1, inputs, 1, &rows, options));
  kiln_tensor_destroy(rows);
  kiln_run_options_destroy(options);
}

/* An op of the caller's that breaks its own invariant. */
static kiln_status broken(void* user, kiln_op_call* call) {
  (void)user;
  return kiln_op_fail(call, KILN_INTERNAL, "the table of betas is corrupt");
}

static void test_internal(void) {
  kiln_program* none = NULL;
  OK(kiln_op_define("my.domain", "Swish", broken, broken, NULL, 0));
  REFUSED(KILN_BAD_PARAM, "defined once", kiln_op_define("my.domain", "Swish", broken, broken, NULL, 0));
  REFUSED(KILN_BAD_PARAM, "flags of an op", kiln_op_define("my.domain", "Other", broken, broken, NULL, 2));
  REFUSED(KILN_INTERNAL, "the table of betas is corrupt",
          kiln_program_import("examples/models/swish.onnx", NULL, &none));
}

/* Functions of a handle refuse NULL in its place, and say what is missing. */
static void test_null_handles(void) {
  size_t n = 0;
  void* data = NULL;
  char* text = NULL;
  kiln_tensor* tensor = NULL;
  REFUSED(KILN_BAD_PARAM, "executable is given", kiln_run(NULL, workspace, 0, NULL, 0, NULL, NULL));
  REFUSED(KILN_BAD_PARAM, "workspace is given", kiln_run(digits, NULL, 0, NULL, 0, NULL, NULL));
  REFUSED(KILN_BAD_PARAM, "inputs is given", kiln_run(digits, workspace, 1, NULL, 0, NULL, NULL));
  REFUSED(KILN_BAD_PARAM, "an input is given",
          kiln_run(digits, workspace, 1, (const kiln_tensor* const[]){NULL}, 0, NULL, NULL));
  REFUSED(KILN_BAD_PARAM, "outputs is given",
          kiln_run(digits, workspace, 1, (const kiln_tensor* const[]){scans}, 1, NULL, NULL));
  REFUSED(KILN_BAD_PARAM, "names is given", kiln_run_named(digits, workspace, 1, NULL, NULL, 0, NULL, NULL));
  REFUSED(KILN_BAD_PARAM, "program is given", kiln_compile(NULL, "eigen", NULL, &(kiln_executable*){NULL}));
  REFUSED(KILN_BAD_PARAM, "target is given", kiln_compile(program, NULL, NULL, &(kiln_executable*){NULL}));
  REFUSED(KILN_BAD_PARAM, "executable is given", kiln_compile(program, "eigen", NULL, NULL));
  REFUSED(KILN_BAD_PARAM, "path is given", kiln_program_import(NULL, NULL, &(kiln_program*){NULL}));
  REFUSED(KILN_BAD_PARAM, "bytes is given", kiln_program_import_memory(NULL, 4, NULL, &(kiln_program*){NULL}));
  REFUSED(KILN_BAD_PARAM, "program is given", kiln_program_input_count(NULL, &n));
  REFUSED(KILN_BAD_PARAM, "program is given", kiln_program_output_count(NULL, &n));
  REFUSED(KILN_BAD_PARAM, "program is given", kiln_program_input(NULL, 0, NULL, NULL, NULL, NULL));
  REFUSED(KILN_BAD_PARAM, "program is given", kiln_program_output(NULL, 0, NULL, NULL, NULL, NULL));
  REFUSED(KILN_BAD_PARAM, "program is given", kiln_program_text(NULL, &text));
  REFUSED(KILN_BAD_PARAM, "text is given", kiln_program_text(program, NULL));
  REFUSED(KILN_BAD_PARAM, "count is given", kiln_executable_input_count(digits, NULL));
  REFUSED(KILN_BAD_PARAM, "executable is given", kiln_executable_output_count(NULL, &n));
  REFUSED(KILN_BAD_PARAM, "executable is given", kiln_executable_input(NULL, 0, NULL, NULL, NULL, NULL));
  REFUSED(KILN_BAD_PARAM, "executable is given", kiln_executable_output(NULL, 0, NULL, NULL, NULL, NULL));
  REFUSED(KILN_BAD_PARAM, "executable is given", kiln_executable_input_index(NULL, "x", &n));
  REFUSED(KILN_BAD_PARAM, "name is given", kiln_executable_output_index(digits, NULL, &n));
  REFUSED(KILN_BAD_PARAM, "executable is given", kiln_executable_report(NULL, KILN_TEXT, &text));
  REFUSED(KILN_BAD_PARAM, "report is given", kiln_executable_report(digits, KILN_TEXT, NULL));
  REFUSED(KILN_BAD_PARAM, "options is given", kiln_import_options_create(NULL));
  REFUSED(KILN_BAD_PARAM, "options is given", kiln_import_options_set_dim(NULL, "batch", 1));
  REFUSED(KILN_BAD_PARAM, "options is given", kiln_import_options_set_shape(NULL, "x", 0, NULL));
  REFUSED(KILN_BAD_PARAM, "value is given", kiln_import_options_set_value(NULL, "x", NULL));
  REFUSED(KILN_BAD_PARAM, "options is given", kiln_import_options_keep_input(NULL, "x"));
  REFUSED(KILN_BAD_PARAM, "options is given", kiln_import_options_set_layout(NULL, "NCHW"));
  REFUSED(KILN_BAD_PARAM, "options is given", kiln_import_options_add_output(NULL, "x"));
  REFUSED(KILN_BAD_PARAM, "options is given", kiln_import_options_set_signature(NULL, "x", NULL));
  REFUSED(KILN_BAD_PARAM, "and not below 0", kiln_import_options_set_batch(NULL, -1));
  REFUSED(KILN_BAD_PARAM, "options is given", kiln_import_options_set_directory(NULL, "x"));
  REFUSED(KILN_BAD_PARAM, "options is given", kiln_compile_options_create(NULL));
  REFUSED(KILN_BAD_PARAM, "options is given", kiln_compile_options_set(NULL, "threads", "1"));
  REFUSED(KILN_BAD_PARAM, "options is given", kiln_compile_options_get(NULL, "threads", &text));
  REFUSED(KILN_BAD_PARAM, "options is given", kiln_run_options_create(NULL));
  REFUSED(KILN_BAD_PARAM, "options is given", kiln_run_options_set(NULL, "stream", "0"));
  REFUSED(KILN_BAD_PARAM, "options is given", kiln_run_options_set_stream(NULL, NULL));
  REFUSED(KILN_BAD_PARAM, "options is given", kiln_run_options_set_profile(NULL, NULL, NULL));
  REFUSED(KILN_BAD_PARAM, "options is given", kiln_run_options_cancel(NULL, 1));
  REFUSED(KILN_BAD_PARAM, "workspace is given", kiln_workspace_create(NULL));
  REFUSED(KILN_BAD_PARAM, "workspace is given", kiln_workspace_bind(NULL, digits, 0, NULL));
  REFUSED(KILN_BAD_PARAM, "workspace is given", kiln_workspace_info(NULL, &n, &n));
  REFUSED(KILN_BAD_PARAM, "tensor is given", kiln_tensor_create(KILN_F32, 0, NULL, NULL));
  REFUSED(KILN_BAD_PARAM, "lens is given", kiln_tensor_create(KILN_F32, 1, NULL, &tensor));
  REFUSED(KILN_BAD_PARAM, "data is given", kiln_tensor_borrow(KILN_F32, 0, NULL, NULL, NULL, NULL, NULL, &tensor));
  REFUSED(KILN_BAD_PARAM, "whole is given", kiln_tensor_leading_part(NULL, 0, NULL, &tensor));
  REFUSED(KILN_BAD_PARAM, "texts is given", kiln_tensor_create_strings(0, NULL, NULL, NULL, &tensor));
  REFUSED(KILN_BAD_PARAM, "tensor is given", kiln_tensor_info(NULL, NULL, NULL, NULL, NULL));
  REFUSED(KILN_BAD_PARAM, "tensor is given", kiln_tensor_data(NULL, &data));
  REFUSED(KILN_BAD_PARAM, "tensor is given", kiln_tensor_copy_to(NULL, &n, sizeof n));
  REFUSED(KILN_BAD_PARAM, "tensor is given", kiln_tensor_string(NULL, 0, (const char**)&text, NULL));
  REFUSED(KILN_BAD_PARAM, "tensor is given", kiln_tensor_item_count(NULL, &n));
  REFUSED(KILN_BAD_PARAM, "tensor is given", kiln_tensor_item(NULL, 0, &tensor));
  REFUSED(KILN_BAD_PARAM, "path is given", kiln_tensor_read(NULL, &tensor));
  REFUSED(KILN_BAD_PARAM, "tensor is given", kiln_tensor_write(NULL, "x.pb"));
  REFUSED(KILN_BAD_PARAM, "managed is given", kiln_tensor_from_dlpack(NULL, &tensor));
  REFUSED(KILN_BAD_PARAM, "managed is given", kiln_tensor_from_dlpack_versioned(NULL, &tensor));
  REFUSED(KILN_BAD_PARAM, "managed is given", kiln_tensor_to_dlpack(scans, NULL));
  REFUSED(KILN_BAD_PARAM, "managed is given", kiln_tensor_to_dlpack_versioned(scans, NULL));
  REFUSED(KILN_BAD_PARAM, "text is given", kiln_dim_text(3, NULL));
  REFUSED(KILN_BAD_PARAM, "dim is given", kiln_dim_symbol("n", 0, 1, NULL));
  REFUSED(KILN_BAD_PARAM, "dim is given", kiln_dim_combine('+', 0, 1, NULL));
  REFUSED(KILN_BAD_PARAM, "shape is given", kiln_op_define("a", "B", NULL, broken, NULL, 0));
  REFUSED(KILN_BAD_PARAM, "compute is given", kiln_op_define("a", "B", broken, NULL, NULL, 0));
  REFUSED(KILN_BAD_PARAM, "call is given", kiln_op_fail(NULL, KILN_INTERNAL, "x"));
  CHECK(tensor == NULL && text == NULL && data == NULL);
}

static void test_destroying_nothing(void) {
  kiln_string_destroy(NULL);
  kiln_tensor_destroy(NULL);
  kiln_import_options_destroy(NULL);
  kiln_program_destroy(NULL);
  kiln_compile_options_destroy(NULL);
  kiln_executable_destroy(NULL);
  kiln_run_options_destroy(NULL);
  kiln_workspace_destroy(NULL);
}

int main(void) {
  program = import_model(DIGITS "model.onnx");
  digits = compile_for(program, "eigen");
  scans = read_tensor(DIGITS "test_data_set_0/input_0.pb");
  OK(kiln_workspace_create(&workspace));
  test_before_any_failure();
  test_bad_param();
  test_bad_sizes();
  test_models();
  test_limits();
  test_canceled();
  test_internal();
  test_null_handles();
  test_destroying_nothing();
  CHECK(kiln_dtype_name((kiln_dtype)29) == NULL && kiln_dtype_size((kiln_dtype)29) == 0);
  kiln_workspace_destroy(workspace);
  kiln_tensor_destroy(scans);
  kiln_executable_destroy(digits);
  kiln_program_destroy(program);
  return finish();
}
