/* Every status with its message, and handles of each kind. */
#include "check.h"

static const migraphx_status bad_param = migraphx_status_bad_param, unknown_target = migraphx_status_unknown_target,
                             unknown_error = migraphx_status_unknown_error;

static void test_null(void) {
  migraphx_shape_t shape = NULL;
  migraphx_program_t program = NULL;
  size_t n = 0, lengths[] = {2, 3};
  const size_t* list = NULL;
  bool truth = false;
  char* text = NULL;
  FAILS(migraphx_shape_create(NULL, migraphx_shape_float_type, lengths, 2), bad_param, "new handle");
  FAILS(migraphx_shape_create(&shape, migraphx_shape_float_type, NULL, 2), bad_param, "lengths is given");
  FAILS(migraphx_shape_lengths(&list, &n, NULL), bad_param, "shape is given");
  OK(migraphx_shape_destroy(NULL));
  FAILS(migraphx_shape_equal(&truth, NULL, NULL), bad_param, "is given");
  FAILS(migraphx_argument_create(NULL, NULL, NULL), bad_param, "new handle");
  FAILS(migraphx_argument_buffer(&text, NULL), bad_param, "argument is given");
  FAILS(migraphx_program_run(NULL, NULL, NULL), bad_param, "NULL");
  FAILS(migraphx_program_compile(NULL, NULL, NULL), bad_param, "NULL");
  FAILS(migraphx_program_get_main_module(NULL, NULL), bad_param, "NULL");
  FAILS(migraphx_parse_onnx(&program, NULL, NULL), bad_param, "is given");
  FAILS(migraphx_load(&program, NULL, NULL), bad_param, "is given");
  FAILS(migraphx_target_create((migraphx_target_t*)&shape, NULL), bad_param, "name is given");
  FAILS(migraphx_quantize_fp16(NULL), bad_param, "prog is given");
  FAILS(migraphx_context_finish(NULL), bad_param, "context is given");
  FAILS(migraphx_experimental_custom_op_register(NULL), bad_param, "custom_op is given");
  FAILS(migraphx_get_onnx_operators_size(NULL), bad_param, "result");
  CHECK(shape == NULL && program == NULL);
}

static void test_sizes(void) {
  migraphx_shape_t shape = NULL, strided = NULL, ranged = NULL, one = NULL;
  migraphx_argument_t argument = NULL;
  migraphx_dynamic_dimension_t range = NULL, fixed = NULL;
  migraphx_dynamic_dimensions_t ranges = NULL, read = NULL;
  migraphx_optimals_t optimals = NULL;
  size_t lengths[] = {2, 3}, strides[] = {1, 2}, at = 0, best[] = {2, 4};
  const size_t* list = NULL;
  bool truth = false;
  FAILS(migraphx_shape_create_with_strides(&strided, migraphx_shape_float_type, lengths, 2, strides, 1), bad_param,
        "stride");
  FAILS(migraphx_shape_create(&shape, (migraphx_shape_datatype_t)77, lengths, 2), bad_param, "77");
  FAILS(migraphx_dynamic_dimension_create_min_max(&range, 3, 2), bad_param, "range");
  OK(migraphx_shape_create(&shape, migraphx_shape_float_type, lengths, 2));
  OK(migraphx_shape_create_with_strides(&strided, migraphx_shape_float_type, lengths, 2, strides, 2));
  OK(migraphx_shape_create_scalar(&one, migraphx_shape_int8_type));
  OK(migraphx_shape_index(&at, strided, 1));
  CHECK(at == 2);
  FAILS(migraphx_shape_index(&at, shape, 6), bad_param, "index");
  OK(migraphx_optimals_create(&optimals, best, 2));
  OK(migraphx_dynamic_dimension_create_min_max_optimals(&range, 1, 4, optimals));
  OK(migraphx_dynamic_dimension_create_min_max(&fixed, 3, 3));
  OK(migraphx_dynamic_dimension_is_fixed(&truth, fixed));
  CHECK(truth);
  OK(migraphx_dynamic_dimension_equal(&truth, range, fixed));
  CHECK(!truth);
  OK(migraphx_dynamic_dimensions_create(&ranges, (const_migraphx_dynamic_dimension_t[]){range, fixed}, 2));
  OK(migraphx_shape_create_dynamic(&ranged, migraphx_shape_float_type, ranges));
  FAILS(migraphx_shape_lengths(&list, &at, ranged), bad_param, "not dynamic");
  OK(migraphx_shape_dyn_dims(&read, ranged));
  OK(migraphx_dynamic_dimensions_size(&at, read));
  CHECK(at == 2);
  const_migraphx_dynamic_dimension_t first = NULL;
  OK(migraphx_dynamic_dimensions_get(&first, read, 0));
  OK(migraphx_dynamic_dimension_equal(&truth, first, range));
  CHECK(truth);
  FAILS(migraphx_dynamic_dimensions_get(&first, read, 2), bad_param, "index");
  FAILS(migraphx_argument_create_empty(&argument, NULL), bad_param, "shape is given");
  FAILS(migraphx_argument_create(&argument, shape, NULL), bad_param, "buffer is given");
  OK(migraphx_argument_create_empty(&argument, shape));
  migraphx_argument_t copy = NULL;
  OK(migraphx_argument_create_empty(&copy, one));
  OK(migraphx_argument_assign_to(copy, argument));
  OK(migraphx_argument_equal(&truth, copy, argument));
  CHECK(truth);
  OK(migraphx_shape_assign_to(one, shape));
  OK(migraphx_shape_equal(&truth, one, shape));
  CHECK(truth);
  OK(migraphx_optimals_assign_to(optimals, optimals));
  OK(migraphx_dynamic_dimension_assign_to(fixed, range));
  OK(migraphx_dynamic_dimensions_assign_to(read, ranges));
  FAILS(migraphx_argument_load(&argument, "/no/such"), unknown_error, "/no/such");
  OK(migraphx_argument_destroy(copy));
  OK(migraphx_argument_destroy(argument));
  OK(migraphx_dynamic_dimensions_destroy(read));
  OK(migraphx_dynamic_dimensions_destroy(ranges));
  OK(migraphx_dynamic_dimension_destroy(range));
  OK(migraphx_dynamic_dimension_destroy(fixed));
  OK(migraphx_optimals_destroy(optimals));
  OK(migraphx_shape_destroy(ranged));
  OK(migraphx_shape_destroy(one));
  OK(migraphx_shape_destroy(strided));
  OK(migraphx_shape_destroy(shape));
}

static void test_names(void) {
  migraphx_target_t target = NULL;
  migraphx_operation_t operation = NULL;
  migraphx_program_t program = NULL;
  migraphx_onnx_options_t options = NULL;
  migraphx_tf_options_t tf = NULL;
  char name[16] = "";
  char* text = NULL;
  size_t count = 0;
  FAILS(migraphx_target_create(&target, "abacus"), unknown_target, "abacus");
  FAILS(migraphx_operation_create(&operation, "softmux", NULL), unknown_error, "softmax");
  FAILS(migraphx_operation_create(&operation, "softmax", "{axes: %d}", 1), bad_param, "axes");
  FAILS(migraphx_operation_create(&operation, "softmax", "{axis: "), bad_param, "character");
  FAILS(migraphx_operation_create(&operation, "pack_fp4", NULL), unknown_error, "not covered");
  OK(migraphx_operation_create(&operation, "pooling", "{lengths: [%i, %i], padding: [0,0], mode: %s} ", 2, 2, "max"));
  OK(migraphx_operation_name(name, sizeof name, operation));
  CHECK(strcmp(name, "pooling") == 0);
  OK(migraphx_operation_name(name, 5, operation));
  CHECK(strcmp(name, "pool") == 0);
  FAILS(migraphx_operation_name(name, 0, operation), bad_param, "room");
  OK(migraphx_operation_destroy(operation));
  OK(migraphx_onnx_options_create(&options));
  FAILS(migraphx_parse_onnx(&program, "/no/such.onnx", options), unknown_error, "/no/such.onnx");
  FAILS(migraphx_parse_onnx_buffer(&program, "x", 1, options), unknown_error, "ONNX");
  FAILS(migraphx_parse_onnx_buffer(&program, NULL, 1, options), bad_param, "data is given");
  FAILS(migraphx_parse_onnx_buffer(&program, "", 0, options), unknown_error, "");
  OK(migraphx_onnx_options_destroy(options));
  OK(migraphx_tf_options_create(&tf));
  OK(migraphx_tf_options_set_nhwc(tf, true));
  OK(migraphx_tf_options_set_default_dim_value(tf, 2));
  OK(migraphx_tf_options_set_output_names(tf, (const char*[]){"y"}, 1));
  OK(migraphx_tf_options_set_input_parameter_shape(tf, "x", (size_t[]){1}, 1));
  FAILS(migraphx_parse_tf(&program, "graph.pb", tf), unknown_error, "graph.pb");
  FAILS(migraphx_parse_tf_buffer(&program, "x", 1, tf), unknown_error, "line 1");
  OK(migraphx_tf_options_destroy(tf));
  OK(migraphx_get_onnx_operators_size(&count));
  CHECK(count > 150);
  OK(migraphx_get_onnx_operator_name_at_index(&text, 0));
  CHECK(text && strlen(text) > 0);
  FAILS(migraphx_get_onnx_operator_name_at_index(&text, count), bad_param, "index");
  CHECK(program == NULL && target == NULL);
}

/* y = relu(x + 1), which two operators of this program's own could not spoil. */
static migraphx_program_t built(void) {
  migraphx_program_t program = NULL;
  migraphx_module_t module = NULL, own = NULL;
  migraphx_shape_t shape = NULL;
  migraphx_operation_t add = NULL, relu = NULL;
  migraphx_instruction_t x = NULL, one = NULL, sum = NULL, y = NULL, end = NULL, memory = NULL;
  migraphx_instructions_t pair = NULL, single = NULL, last = NULL;
  size_t lengths[] = {3};
  const float ones[] = {1, 1, 1};
  OK(migraphx_program_create(&program));
  OK(migraphx_program_get_main_module(&module, program));
  OK(migraphx_program_create_module(&own, program, "unused"));
  FAILS(migraphx_program_create_module(&own, program, "unused"), bad_param, "unused");
  OK(migraphx_shape_create(&shape, migraphx_shape_float_type, lengths, 1));
  OK(migraphx_module_add_parameter(&x, module, "x", shape));
  FAILS(migraphx_module_add_parameter(&end, module, "x", shape), bad_param, "'x'");
  OK(migraphx_module_add_literal(&one, module, shape, (const char*)ones));
  OK(migraphx_module_add_allocation(&memory, module, shape));
  OK(migraphx_instructions_create(&pair, (const_migraphx_instruction_t[]){x, one}, 2));
  OK(migraphx_operation_create(&add, "add", NULL));
  OK(migraphx_operation_create(&relu, "relu", NULL));
  OK(migraphx_module_add_instruction(&sum, module, add, pair));
  OK(migraphx_instructions_create(&single, (const_migraphx_instruction_t[]){sum}, 1));
  FAILS(migraphx_module_add_instruction(&y, module, add, single), bad_param, "operands");
  OK(migraphx_module_add_instruction(&y, module, relu, single));
  OK(migraphx_instructions_create(&last, (const_migraphx_instruction_t[]){y}, 1));
  OK(migraphx_module_add_return(&end, module, last));
  OK(migraphx_program_sort(program));
  OK(migraphx_module_print(module));
  OK(migraphx_program_print(program));
  OK(migraphx_instructions_assign_to(single, last));
  OK(migraphx_operation_assign_to(add, relu));
  OK(migraphx_instruction_assign_to(end, y));
  for (migraphx_instruction_t* p = (migraphx_instruction_t[]){x, one, sum, y, end, memory, NULL}; *p; ++p)
    OK(migraphx_instruction_destroy(*p));
  for (migraphx_instructions_t* p = (migraphx_instructions_t[]){pair, single, last, NULL}; *p; ++p)
    OK(migraphx_instructions_destroy(*p));
  OK(migraphx_operation_destroy(add));
  OK(migraphx_operation_destroy(relu));
  OK(migraphx_shape_destroy(shape));
  return program;
}

static void check_run(migraphx_program_t program, float first) {
  migraphx_program_parameters_t parameters = NULL;
  migraphx_argument_t x = NULL;
  migraphx_shape_t shape = NULL;
  migraphx_arguments_t out = NULL;
  const_migraphx_argument_t y = NULL;
  char* data = NULL;
  size_t lengths[] = {3};
  float values[] = {1, -3, 2};
  OK(migraphx_shape_create(&shape, migraphx_shape_float_type, lengths, 1));
  OK(migraphx_argument_create(&x, shape, values));
  OK(migraphx_program_parameters_create(&parameters));
  OK(migraphx_program_parameters_add(parameters, "x", x));
  OK(migraphx_program_run_async(&out, program, parameters, NULL, "ihipStream_t"));
  OK(migraphx_arguments_get(&y, out, 0));
  OK(migraphx_argument_buffer(&data, y));
  CHECK(((float*)data)[0] == first && ((float*)data)[1] == 0 && ((float*)data)[2] == first + 1);
  FAILS(migraphx_arguments_get(&y, out, 1), bad_param, "index");
  OK(migraphx_arguments_destroy(out));
  OK(migraphx_program_parameters_destroy(parameters));
  OK(migraphx_argument_destroy(x));
  OK(migraphx_shape_destroy(shape));
}

static void test_programs(void) {
  migraphx_program_t program = built(), copy = NULL;
  migraphx_target_t target = NULL;
  migraphx_compile_options_t options = NULL;
  migraphx_quantize_int8_options_t int8 = NULL;
  migraphx_quantize_fp8_options_t fp8 = NULL;
  migraphx_quantize_op_names_t names = NULL;
  migraphx_program_parameters_t data = NULL;
  migraphx_context_t context = NULL;
  bool equal = false;
  check_run(program, 2);
  OK(migraphx_program_create(&copy));
  OK(migraphx_program_assign_to(copy, program));
  OK(migraphx_program_equal(&equal, copy, program));
  CHECK(equal);
  OK(migraphx_quantize_op_names_create(&names));
  OK(migraphx_quantize_op_names_add(names, "add"));
  OK(migraphx_quantize_fp16_with_op_names(copy, names));
  OK(migraphx_quantize_bf16_with_op_names(copy, names));
  OK(migraphx_quantize_op_names_destroy(names));
  OK(migraphx_quantize_bf16(copy));
  OK(migraphx_quantize_fp16(copy));
  check_run(copy, 2);
  OK(migraphx_target_create(&target, "ref"));
  OK(migraphx_quantize_int8_options_create(&int8));
  OK(migraphx_quantize_int8_options_add_op_name(int8, "dot"));
  OK(migraphx_program_parameters_create(&data));
  OK(migraphx_quantize_int8_options_add_calibration_data(int8, data));
  OK(migraphx_quantize_int8(program, target, int8)); /* nothing to quantize: the program stays as it is */
  FAILS(kiln_quantize_int8_options_set_table(NULL, "t"), bad_param, "quantize_int8_options is given");
  FAILS(kiln_quantize_int8_options_set_table(int8, NULL), bad_param, "file is given");
  FAILS(kiln_quantize_fp8_options_set_table(fp8, "t"), bad_param, "quantize_fp8_options is given");
  FAILS(kiln_quantize_int4_weights(NULL), bad_param, "prog is given");
  FAILS(kiln_quantize_int4_weights(program), bad_param, "found none");
  OK(migraphx_quantize_fp8_options_create(&fp8));
  OK(migraphx_quantize_fp8_options_add_calibration_data(fp8, data));
  OK(migraphx_quantize_fp8(program, target, fp8));
  OK(migraphx_compile_options_create(&options));
  FAILS(migraphx_program_experimental_get_context(&context, program), bad_param, "compiled");
  OK(migraphx_program_compile(program, target, options));
  FAILS(migraphx_program_compile(program, target, options), bad_param, "once");
  check_run(program, 2);
  OK(migraphx_program_parameters_destroy(data));
  OK(migraphx_quantize_int8_options_destroy(int8));
  OK(migraphx_quantize_fp8_options_destroy(fp8));
  OK(migraphx_compile_options_destroy(options));
  OK(migraphx_target_destroy(target));
  OK(migraphx_program_destroy(copy));
  OK(migraphx_program_destroy(program));
}

int main(void) {
  CHECK(strcmp(kiln_last_error(), "") == 0);
  test_null();
  test_sizes();
  test_names();
  test_programs();
  return failures != 0;
}
