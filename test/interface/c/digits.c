/* The digits network through every function about models, options, tensors and runs. */
#include "check.h"

static kiln_tensor *scans, *expected;
static int64_t count; /* of the file's scans: few, as the reference computes them under valgrind too */

static void check_rows(const kiln_tensor* rows) {
  int64_t lens[KILN_MAX_RANK];
  size_t rank = 0;
  OK(kiln_tensor_info(rows, NULL, &rank, lens, NULL));
  CHECK(rank == 2 && lens[0] == count && lens[1] == 10);
  const float *found = floats_of(rows), *wanted = floats_of(expected);
  for (int64_t i = 0; i < 10 * count; ++i)
    if (!(fabsf(found[i] - wanted[i]) <= 1e-5f)) {
      CHECK(!"the probabilities are the expected ones");
      return;
    }
}

static void test_program(const kiln_program* program) {
  size_t inputs = 0, outputs = 0, rank = 0;
  const char *name = NULL, *output = NULL;
  kiln_dtype type = KILN_I8;
  kiln_dim lens[KILN_MAX_RANK];
  char* text = NULL;
  OK(kiln_program_input_count(program, &inputs));
  OK(kiln_program_output_count(program, &outputs));
  CHECK(inputs == 1 && outputs == 1);
  OK(kiln_program_input(program, 0, &name, &type, &rank, lens));
  CHECK(strlen(name) > 0 && type == KILN_F32 && rank == 4);
  CHECK(!kiln_dim_is_symbolic(lens[1]) && lens[1] == 1 && lens[2] == 8 && lens[3] == 8);
  OK(kiln_program_output(program, 0, &output, &type, &rank, NULL));
  CHECK(strlen(output) > 0 && rank == 2);
  OK(kiln_program_text(program, &text));
  CHECK(strstr(text, "convolution") != NULL);
  kiln_string_destroy(text);
}

static void test_symbolic_dims(const kiln_executable* digits) {
  kiln_dim lens[KILN_MAX_RANK], more = 0, symbol = 0, same = 0;
  int64_t min = -1, max = -1;
  char* text = NULL;
  OK(kiln_executable_input(digits, 0, NULL, NULL, NULL, lens));
  CHECK(kiln_dim_is_symbolic(lens[0]));
  OK(kiln_dim_bounds(lens[0], &min, &max));
  CHECK(min >= 0 && max > 1000);
  OK(kiln_dim_combine('*', lens[0], 2, &more));
  OK(kiln_dim_combine('+', more, 1, &more));
  CHECK(kiln_dim_is_symbolic(more));
  OK(kiln_dim_text(more, &text));
  CHECK(strstr(text, "2") && strstr(text, "1"));
  kiln_string_destroy(text);
  OK(kiln_dim_combine('-', more, more, &more));
  CHECK(more == 0);
  OK(kiln_dim_symbol("length", 2, 9, &symbol));
  OK(kiln_dim_symbol("length", 2, 9, &same));
  CHECK(symbol == same && symbol != lens[0]);
  OK(kiln_dim_bounds(symbol, &min, NULL));
  OK(kiln_dim_bounds(symbol, NULL, &max));
  CHECK(min == 2 && max == 9);
  OK(kiln_dim_combine('/', 17, 5, &more));
  CHECK(more == 3);
  OK(kiln_dim_combine('%', 17, 5, &more));
  CHECK(more == 2);
}

static void test_ports(const kiln_executable* digits) {
  size_t inputs = 0, outputs = 0, index = 9;
  const char *input = NULL, *output = NULL;
  kiln_dtype type = KILN_I8;
  OK(kiln_executable_input_count(digits, &inputs));
  OK(kiln_executable_output_count(digits, &outputs));
  CHECK(inputs == 1 && outputs == 1);
  OK(kiln_executable_input(digits, 0, &input, &type, NULL, NULL));
  CHECK(type == KILN_F32);
  OK(kiln_executable_output(digits, 0, &output, &type, NULL, NULL));
  OK(kiln_executable_input_index(digits, input, &index));
  CHECK(index == 0);
  index = 9;
  OK(kiln_executable_output_index(digits, output, &index));
  CHECK(index == 0);
}

static void test_report(const kiln_executable* digits) {
  char *text = NULL, *json = NULL;
  OK(kiln_executable_report(digits, KILN_TEXT, &text));
  OK(kiln_executable_report(digits, KILN_JSON, &json));
  CHECK(strstr(text, " kernels, ") != NULL);
  CHECK(json[0] == '{' && strstr(json, "\"target\": \"eigen\"") && strstr(json, "\"steps\""));
  kiln_string_destroy(text);
  kiln_string_destroy(json);
}

static void test_runs(const kiln_executable* digits, int is_constant) {
  kiln_workspace* workspace = NULL;
  OK(kiln_workspace_create(&workspace));
  const kiln_tensor* const inputs[] = {scans};
  size_t bytes = 0, growths = 9;
  OK(kiln_workspace_bind(workspace, digits, 1, inputs));
  OK(kiln_workspace_info(workspace, &bytes, &growths));
  CHECK((bytes == 0) == is_constant);
  const size_t bound = growths;

  kiln_tensor* rows = NULL; /* made by the run */
  OK(kiln_run(digits, workspace, 1, inputs, 1, &rows, NULL));
  check_rows(rows);
  OK(kiln_workspace_info(workspace, NULL, &growths));
  CHECK(growths == bound);

  float* own = calloc((size_t)(10 * count), sizeof *own); /* the caller's memory, as it is */
  const int64_t lens[] = {count, 10};
  kiln_tensor* there = NULL;
  OK(kiln_tensor_borrow(KILN_F32, 2, lens, NULL, own, NULL, NULL, &there));
  kiln_tensor* const before = there;
  OK(kiln_run(digits, workspace, 1, inputs, 1, &there, NULL));
  CHECK(there == before && floats_of(there) == own);
  check_rows(there);

  const char* name = NULL;
  OK(kiln_executable_input(digits, 0, &name, NULL, NULL, NULL));
  memset(own, 0, (size_t)(10 * count) * sizeof *own);
  OK(kiln_run_named(digits, workspace, 1, &name, inputs, 1, &there, NULL));
  check_rows(there);
  kiln_workspace_destroy(workspace);
  check_rows(rows); /* outlives the workspace */
  kiln_tensor_destroy(rows);
  kiln_tensor_destroy(there);
  free(own);
}

/* The scans in another order of memory: columns of pixels first. */
static void test_strides(const kiln_executable* digits) {
  const float* const from = floats_of(scans);
  float* turned = malloc((size_t)(64 * count) * sizeof *turned);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t y = 0; y < 8; ++y)
      for (int64_t x = 0; x < 8; ++x) turned[64 * i + 8 * x + y] = from[64 * i + 8 * y + x];
  const int64_t lens[] = {count, 1, 8, 8}, strides[] = {64, 64, 1, 8};
  kiln_tensor *input = NULL, *rows = NULL;
  kiln_workspace* workspace = NULL;
  OK(kiln_tensor_borrow(KILN_F32, 4, lens, strides, turned, NULL, NULL, &input));
  OK(kiln_workspace_create(&workspace));
  const kiln_tensor* const inputs[] = {input};
  OK(kiln_run(digits, workspace, 1, inputs, 1, &rows, NULL));
  check_rows(rows);

  float* dense = malloc((size_t)(64 * count) * sizeof *dense);
  OK(kiln_tensor_copy_to(input, dense, (size_t)(64 * count) * sizeof *dense));
  CHECK(memcmp(dense, from, (size_t)(64 * count) * sizeof *dense) == 0);
  free(dense);
  kiln_tensor_destroy(rows);
  kiln_tensor_destroy(input);
  kiln_workspace_destroy(workspace);
  free(turned);
}

static void count_step(void* user, size_t step, double seconds) {
  size_t* const steps = user;
  CHECK(step == *steps && seconds >= 0);
  ++*steps;
}

static void test_run_options(const kiln_executable* digits) {
  kiln_run_options* options = NULL;
  kiln_workspace* workspace = NULL;
  kiln_tensor* rows = NULL;
  size_t steps = 0;
  OK(kiln_run_options_create(&options));
  OK(kiln_run_options_set_profile(options, count_step, &steps));
  OK(kiln_run_options_set_stream(options, NULL));
  OK(kiln_run_options_set(options, "stream", "0"));
  OK(kiln_workspace_create(&workspace));
  const kiln_tensor* const inputs[] = {scans};
  OK(kiln_run(digits, workspace, 1, inputs, 1, &rows, options));
  CHECK(steps > 0);
  OK(kiln_run_options_set_profile(options, NULL, NULL));
  const size_t before = steps;
  OK(kiln_run(digits, workspace, 1, inputs, 1, &rows, options));
  CHECK(steps == before);
  check_rows(rows);
  kiln_tensor_destroy(rows);
  kiln_workspace_destroy(workspace);
  kiln_run_options_destroy(options);
}

/* From memory, with a fixed batch, and options of compilation. */
static void test_options(void) {
  FILE* const file = fopen(DIGITS "model.onnx", "rb");
  char* bytes = malloc(1 << 20);
  const size_t size = fread(bytes, 1, 1 << 20, file);
  fclose(file);
  kiln_import_options* import = NULL;
  kiln_compile_options* options = NULL;
  kiln_program* program = NULL;
  kiln_executable* digits = NULL;
  kiln_dim lens[KILN_MAX_RANK];
  const char* input = NULL;
  char* value = NULL;
  kiln_program* const plain = import_model(DIGITS "model.onnx");
  OK(kiln_program_input(plain, 0, &input, NULL, NULL, NULL));
  const int64_t fixed[] = {count, 1, 8, 8};
  OK(kiln_import_options_create(&import));
  OK(kiln_import_options_set_shape(import, input, 4, fixed));
  OK(kiln_import_options_keep_input(import, input));
  OK(kiln_import_options_set_value(import, input, scans));
  OK(kiln_import_options_set_directory(import, DIGITS));
  OK(kiln_program_import_memory(bytes, size, import, &program));
  free(bytes);
  kiln_import_options_destroy(import);
  kiln_program_destroy(plain);
  OK(kiln_program_input(program, 0, NULL, NULL, NULL, lens));
  CHECK(lens[0] == count);

  OK(kiln_compile_options_create(&options));
  OK(kiln_compile_options_set(options, "threads", "2"));
  OK(kiln_compile_options_get(options, "threads", &value));
  CHECK(strcmp(value, "2") == 0);
  kiln_string_destroy(value);
  OK(kiln_compile(program, "eigen", options, &digits));
  kiln_compile_options_destroy(options);
  kiln_program_destroy(program);
  test_runs(digits, 1); /* the scans are a part of the program */
  kiln_executable_destroy(digits);
}

static void test_dims(void) {
  kiln_program* const plain = import_model(DIGITS "model.onnx");
  kiln_dim lens[KILN_MAX_RANK];
  char* symbol = NULL;
  kiln_import_options* import = NULL;
  kiln_program* fixed = NULL;
  OK(kiln_program_input(plain, 0, NULL, NULL, NULL, lens));
  OK(kiln_dim_text(lens[0], &symbol));
  OK(kiln_import_options_create(&import));
  OK(kiln_import_options_set_dim(import, symbol, 7));
  OK(kiln_program_import(DIGITS "model.onnx", import, &fixed));
  OK(kiln_program_input(fixed, 0, NULL, NULL, NULL, lens));
  CHECK(lens[0] == 7);
  kiln_string_destroy(symbol);
  kiln_import_options_destroy(import);
  kiln_program_destroy(fixed);
  kiln_program_destroy(plain);
}

/* What the command line says of TensorFlow's graphs. */
static void test_graphs(void) {
  kiln_dim lens[KILN_MAX_RANK];
  const char* name = NULL;
  size_t count_of_outputs = 0;
  kiln_import_options* import = NULL;
  kiln_program* graph = NULL;
  OK(kiln_import_options_create(&import));
  OK(kiln_import_options_set_layout(import, "NHWC"));
  OK(kiln_import_options_set_batch(import, 5));
  OK(kiln_import_options_add_output(import, "relu0"));
  OK(kiln_import_options_set_signature(import, NULL, ""));
  OK(kiln_program_import(DIGITS "frozen_graph.pb", import, &graph));
  OK(kiln_program_input(graph, 0, NULL, NULL, NULL, lens));
  CHECK(lens[0] == 5);
  OK(kiln_program_output_count(graph, &count_of_outputs));
  OK(kiln_program_output(graph, 0, &name, NULL, NULL, NULL));
  CHECK(count_of_outputs == 1 && strcmp(name, "relu0") == 0);
  kiln_program_destroy(graph);
  CHECK(kiln_import_options_set_layout(import, "CHWN") == KILN_BAD_PARAM);
  CHECK(strstr(kiln_last_error(), "CHWN") != NULL);
  OK(kiln_import_options_set_signature(import, "serving_default", NULL));
  CHECK(kiln_program_import(DIGITS "frozen_graph.pb", import, &graph) == KILN_BAD_PARAM);
  CHECK(strstr(kiln_last_error(), "SavedModel") != NULL);
  kiln_import_options_destroy(import);
}

int main(void) {
  int64_t lens[KILN_MAX_RANK];
  kiln_tensor* const all = read_tensor(DIGITS "test_data_set_0/input_0.pb");
  expected = read_tensor(DIGITS "test_data_set_0/output_0.pb");
  OK(kiln_tensor_info(all, NULL, NULL, lens, NULL));
  CHECK(lens[0] > 9);
  lens[0] = count = 9;
  OK(kiln_tensor_borrow(KILN_F32, 4, lens, NULL, (float*)floats_of(all), NULL, NULL, &scans));
  kiln_program* const program = import_model(DIGITS "model.onnx");
  test_program(program);
  kiln_executable* const digits = compile_for(program, "eigen");
  kiln_executable* const oracle = compile_for(program, "reference");
  kiln_program_destroy(program);
  test_symbolic_dims(digits);
  test_ports(digits);
  test_report(digits);
  test_runs(digits, 0);
  test_runs(oracle, 0);
  test_strides(digits);
  test_run_options(digits);
  kiln_executable_destroy(oracle);
  kiln_executable_destroy(digits);
  test_options();
  test_dims();
  kiln_tensor_destroy(expected);
  kiln_tensor_destroy(scans);
  kiln_tensor_destroy(all);
  CHECK(strlen(kiln_version()) >= 5);
  CHECK(strcmp(kiln_last_error(), "") == 0 && kiln_last_error_status() == KILN_OK);
  test_graphs(); /* it makes errors */
  return finish();
}
