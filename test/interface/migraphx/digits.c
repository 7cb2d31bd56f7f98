/* The digits network: read, looked at, compiled, run, traced, saved, loaded. */
#include <math.h>

#include "check.h"

static const char* const model = "examples/models/digits/model.onnx";

static migraphx_program_t parsed(size_t batch) {
  migraphx_onnx_options_t options = NULL;
  migraphx_program_t program = NULL;
  OK(migraphx_onnx_options_create(&options));
  OK(migraphx_onnx_options_set_default_dim_value(options, batch));
  OK(migraphx_onnx_options_set_default_loop_iterations(options, 20));
  OK(migraphx_onnx_options_set_limit_loop_iterations(options, 100));
  OK(migraphx_onnx_options_set_use_debug_symbols(options, true));
  OK(migraphx_parse_onnx(&program, model, options));
  OK(migraphx_onnx_options_destroy(options));
  return program;
}

static migraphx_program_t parsed_from_memory(void) {
  static char bytes[1 << 20];
  migraphx_onnx_options_t options = NULL;
  migraphx_program_t program = NULL;
  size_t lengths[] = {2, 1, 8, 8};
  FILE* const file = fopen(model, "rb");
  const size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
  if (file) fclose(file);
  OK(migraphx_onnx_options_create(&options));
  OK(migraphx_onnx_options_set_external_data_path(options, "examples/models/digits"));
  migraphx_program_t asked = parsed(1);
  migraphx_program_parameter_shapes_t shapes = NULL;
  const char* name = NULL;
  OK(migraphx_program_get_parameter_shapes(&shapes, asked));
  OK(migraphx_program_parameter_shapes_names(&name, shapes));
  OK(migraphx_onnx_options_set_input_parameter_shape(options, name, lengths, 4));
  OK(migraphx_parse_onnx_buffer(&program, bytes, size, options));
  OK(migraphx_program_parameter_shapes_destroy(shapes));
  OK(migraphx_program_destroy(asked));
  OK(migraphx_onnx_options_destroy(options));
  return program;
}

static void compile(migraphx_program_t program, const char* name) {
  migraphx_target_t target = NULL;
  migraphx_compile_options_t options = NULL;
  OK(migraphx_target_create(&target, name));
  OK(migraphx_compile_options_create(&options));
  OK(migraphx_compile_options_set_offload_copy(options, true));
  OK(migraphx_compile_options_set_fast_math(options, false));
  OK(migraphx_compile_options_set_exhaustive_tune_flag(options, false));
  OK(migraphx_program_compile(program, target, options));
  OK(migraphx_compile_options_destroy(options));
  OK(migraphx_target_destroy(target));
}

/* Probabilities of scans that follow from the seed. */
static migraphx_arguments_t run(migraphx_program_t program, size_t seed, migraphx_argument_t* scans,
                                migraphx_trace_callback_t trace, void* data) {
  migraphx_program_parameter_shapes_t shapes = NULL;
  migraphx_program_parameters_t parameters = NULL;
  migraphx_arguments_t out = NULL;
  const_migraphx_shape_t shape = NULL;
  const char* name = NULL;
  size_t count = 0;
  OK(migraphx_program_get_parameter_shapes(&shapes, program));
  OK(migraphx_program_parameter_shapes_size(&count, shapes));
  CHECK(count == 1);
  OK(migraphx_program_parameter_shapes_names(&name, shapes));
  OK(migraphx_program_parameter_shapes_get(&shape, shapes, name));
  OK(migraphx_argument_generate(scans, shape, seed));
  OK(migraphx_program_parameters_create(&parameters));
  OK(migraphx_program_parameters_add(parameters, name, *scans));
  if (trace)
    OK(migraphx_program_run_trace(&out, program, parameters, trace, data));
  else
    OK(migraphx_program_run(&out, program, parameters));
  OK(migraphx_program_parameters_destroy(parameters));
  OK(migraphx_program_parameter_shapes_destroy(shapes));
  return out;
}

static const float* row_of(migraphx_arguments_t out, size_t* rows) {
  const_migraphx_argument_t first = NULL;
  const_migraphx_shape_t shape = NULL;
  const size_t *lengths = NULL, *strides = NULL;
  size_t rank = 0, size = 0, bytes = 0, elements = 0, dims = 0;
  bool standard = false, dynamic = true;
  char* data = NULL;
  migraphx_shape_datatype_t type = migraphx_shape_tuple_type;
  OK(migraphx_arguments_size(&size, out));
  CHECK(size == 1);
  OK(migraphx_arguments_get(&first, out, 0));
  OK(migraphx_argument_shape(&shape, first));
  OK(migraphx_shape_lengths(&lengths, &rank, shape));
  CHECK(rank == 2 && lengths[1] == 10);
  OK(migraphx_shape_strides(&strides, &rank, shape));
  CHECK(strides[0] == 10 && strides[1] == 1);
  OK(migraphx_shape_type(&type, shape));
  OK(migraphx_shape_bytes(&bytes, shape));
  OK(migraphx_shape_elements(&elements, shape));
  OK(migraphx_shape_ndim(&dims, shape));
  OK(migraphx_shape_standard(&standard, shape));
  OK(migraphx_shape_dynamic(&dynamic, shape));
  CHECK(type == migraphx_shape_float_type && bytes == elements * 4 && dims == 2 && standard && !dynamic);
  OK(migraphx_argument_buffer(&data, first));
  *rows = lengths[0];
  return (const float*)data;
}

static void check_equal(migraphx_arguments_t a, migraphx_arguments_t b) {
  size_t rows = 0, other = 0;
  const float *x = row_of(a, &rows), *y = row_of(b, &other);
  CHECK(rows == other);
  for (size_t i = 0; i < rows * 10 && rows == other; ++i)
    if (!(fabsf(x[i] - y[i]) <= 1e-5f)) {
      CHECK(!"both targets compute the same probabilities");
      return;
    }
}

static migraphx_status count_step(migraphx_trace_info_t info, void* data) {
  size_t index = 0;
  const char* name = NULL;
  const_migraphx_argument_t result = NULL;
  migraphx_trace_info_t copy = NULL;
  OK(migraphx_trace_info_create(&copy));
  OK(migraphx_trace_info_assign_to(copy, info));
  OK(migraphx_trace_info_get_index(&index, copy));
  OK(migraphx_trace_info_get_name(&name, copy));
  OK(migraphx_trace_info_get_result(&result, copy));
  CHECK(index == *(size_t*)data && strlen(name) > 0 && result);
  OK(migraphx_trace_info_destroy(copy));
  ++*(size_t*)data;
  return migraphx_status_success;
}
static migraphx_status stop(migraphx_trace_info_t info, void* data) {
  (void)info, (void)data;
  return migraphx_status_unknown_error;
}

static void test_saved(migraphx_program_t program, const char* path, migraphx_arguments_t wanted) {
  migraphx_file_options_t options = NULL;
  migraphx_program_t loaded = NULL;
  migraphx_argument_t scans = NULL;
  bool equal = false;
  OK(migraphx_file_options_create(&options));
  OK(migraphx_save(program, path, options));
  OK(migraphx_load(&loaded, path, options));
  OK(migraphx_program_equal(&equal, program, loaded));
  CHECK(equal);
  migraphx_arguments_t out = run(loaded, 1, &scans, NULL, NULL);
  check_equal(out, wanted);
  OK(migraphx_argument_save(scans, path));
  migraphx_argument_t again = NULL;
  OK(migraphx_argument_load(&again, path));
  equal = false;
  OK(migraphx_argument_equal(&equal, scans, again));
  CHECK(equal);
  OK(migraphx_argument_destroy(again));
  OK(migraphx_argument_destroy(scans));
  OK(migraphx_arguments_destroy(out));
  OK(migraphx_program_destroy(loaded));
  OK(migraphx_file_options_set_file_format(options, "json"));
  FAILS(migraphx_save(program, path, options), migraphx_status_unknown_error, "json");
  OK(migraphx_file_options_destroy(options));
  remove(path);
}

int main(int argc, char** argv) {
  migraphx_program_t reference = parsed(3), fast = parsed(3), small = parsed_from_memory();
  migraphx_argument_t a = NULL, b = NULL, c = NULL;
  bool equal = false;
  OK(migraphx_program_equal(&equal, reference, fast));
  CHECK(equal);
  OK(migraphx_program_equal(&equal, reference, small));
  CHECK(!equal);
  compile(reference, "ref");
  compile(fast, "cpu");
  migraphx_arguments_t x = run(reference, 1, &a, NULL, NULL), y = run(fast, 1, &b, NULL, NULL);
  OK(migraphx_argument_equal(&equal, a, b));
  CHECK(equal);
  check_equal(x, y);
  size_t steps = 0;
  migraphx_arguments_t z = run(reference, 1, &c, count_step, &steps);
  CHECK(steps > 3);
  check_equal(x, z);
  migraphx_shapes_t shapes = NULL;
  const_migraphx_shape_t shape = NULL, other = NULL;
  const_migraphx_argument_t out = NULL;
  OK(migraphx_program_get_output_shapes(&shapes, fast));
  OK(migraphx_shapes_size(&steps, shapes));
  CHECK(steps == 1);
  OK(migraphx_shapes_get(&shape, shapes, 0));
  OK(migraphx_arguments_get(&out, y, 0));
  OK(migraphx_argument_shape(&other, out));
  OK(migraphx_shape_equal(&equal, shape, other));
  CHECK(equal);
  OK(migraphx_shapes_destroy(shapes));
  migraphx_context_t context = NULL;
  void* queue = &context;
  OK(migraphx_program_experimental_get_context(&context, fast));
  OK(migraphx_context_finish(context));
  OK(migraphx_context_get_queue(&queue, context));
  CHECK(queue == NULL);
  if (argc > 1) test_saved(fast, argv[1], x);
  migraphx_argument_t d = NULL;
  migraphx_program_parameters_t none = NULL;
  OK(migraphx_program_parameters_create(&none));
  migraphx_arguments_t nothing = NULL;
  FAILS(migraphx_program_run(&nothing, fast, none), migraphx_status_bad_param, "missing");
  FAILS(migraphx_program_run_trace(&nothing, fast, none, stop, NULL), migraphx_status_bad_param, "missing");
  CHECK(nothing == NULL);
  OK(migraphx_program_parameters_destroy(none));
  migraphx_arguments_t w = run(small, 1, &d, NULL, NULL);
  size_t rows = 0;
  (void)row_of(w, &rows);
  CHECK(rows == 2);
  for (migraphx_argument_t* p = (migraphx_argument_t[]){a, b, c, d, NULL}; *p; ++p) OK(migraphx_argument_destroy(*p));
  for (migraphx_arguments_t* p = (migraphx_arguments_t[]){x, y, z, w, NULL}; *p; ++p)
    OK(migraphx_arguments_destroy(*p));
  OK(migraphx_program_destroy(small));
  OK(migraphx_program_destroy(fast));
  OK(migraphx_program_destroy(reference));
  return failures != 0;
}
