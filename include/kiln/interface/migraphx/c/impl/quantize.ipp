#include "kiln/interface/migraphx/c/impl/handles.hpp"

using namespace kiln::migraphx;
using namespace kiln::migraphx::c;

migraphx_status migraphx_quantize_op_names_destroy(migraphx_quantize_op_names_t names) { return destroyed(names); }
migraphx_status migraphx_quantize_op_names_assign_to(migraphx_quantize_op_names_t output,
                                                     const_migraphx_quantize_op_names_t input) {
  return assigned(output, input);
}
migraphx_status migraphx_quantize_op_names_create(migraphx_quantize_op_names_t* out) {
  return made(out, [] { return std::vector<std::string>(); });
}
migraphx_status migraphx_quantize_op_names_add(migraphx_quantize_op_names_t names, const char* name) {
  return guarded([&] { object(names, "quantize_op_names").push_back(text_from(name, "name")); });
}
migraphx_status migraphx_quantize_fp16_with_op_names(migraphx_program_t prog, migraphx_quantize_op_names_t name) {
  return guarded([&] { quantize_fp16(object(prog, "prog"), object(name, "name")); });
}
migraphx_status migraphx_quantize_fp16(migraphx_program_t prog) {
  return guarded([&] { quantize_fp16(object(prog, "prog")); });
}
migraphx_status migraphx_quantize_bf16_with_op_names(migraphx_program_t prog, migraphx_quantize_op_names_t name) {
  return guarded([&] { quantize_bf16(object(prog, "prog"), object(name, "name")); });
}
migraphx_status migraphx_quantize_bf16(migraphx_program_t prog) {
  return guarded([&] { quantize_bf16(object(prog, "prog")); });
}

migraphx_status migraphx_quantize_int8_options_destroy(migraphx_quantize_int8_options_t options) {
  return destroyed(options);
}
migraphx_status migraphx_quantize_int8_options_assign_to(migraphx_quantize_int8_options_t output,
                                                         const_migraphx_quantize_int8_options_t input) {
  return assigned(output, input);
}
migraphx_status migraphx_quantize_int8_options_create(migraphx_quantize_int8_options_t* out) {
  return made(out, [] { return quantize_int8_options(); });
}
migraphx_status migraphx_quantize_int8_options_add_op_name(migraphx_quantize_int8_options_t options, const char* name) {
  return guarded([&] { object(options, "quantize_int8_options").op_names.push_back(text_from(name, "name")); });
}
migraphx_status migraphx_quantize_int8_options_add_calibration_data(migraphx_quantize_int8_options_t options,
                                                                    migraphx_program_parameters_t data) {
  return guarded([&] { object(options, "quantize_int8_options").calibration.push_back(object(data, "data")); });
}
migraphx_status kiln_quantize_int8_options_set_table(migraphx_quantize_int8_options_t options, const char* file) {
  return guarded([&] { object(options, "quantize_int8_options").table = text_from(file, "file"); });
}
migraphx_status migraphx_quantize_int8(migraphx_program_t prog, migraphx_target_t target,
                                       migraphx_quantize_int8_options_t options) {
  return guarded([&] { quantize_int8(object(prog, "prog"), object(target, "target"), object(options, "options")); });
}

migraphx_status migraphx_quantize_fp8_options_destroy(migraphx_quantize_fp8_options_t options) {
  return destroyed(options);
}
migraphx_status migraphx_quantize_fp8_options_assign_to(migraphx_quantize_fp8_options_t output,
                                                        const_migraphx_quantize_fp8_options_t input) {
  return assigned(output, input);
}
migraphx_status migraphx_quantize_fp8_options_create(migraphx_quantize_fp8_options_t* out) {
  return made(out, [] { return quantize_fp8_options(); });
}
migraphx_status migraphx_quantize_fp8_options_add_calibration_data(migraphx_quantize_fp8_options_t options,
                                                                   migraphx_program_parameters_t data) {
  return guarded([&] { object(options, "quantize_fp8_options").calibration.push_back(object(data, "data")); });
}
migraphx_status kiln_quantize_fp8_options_set_table(migraphx_quantize_fp8_options_t options, const char* file) {
  return guarded([&] { object(options, "quantize_fp8_options").table = text_from(file, "file"); });
}
migraphx_status migraphx_quantize_fp8(migraphx_program_t prog, migraphx_target_t target,
                                      migraphx_quantize_fp8_options_t options) {
  return guarded([&] { quantize_fp8(object(prog, "prog"), object(target, "target"), object(options, "options")); });
}

migraphx_status kiln_quantize_int4_weights(migraphx_program_t prog) {
  return guarded([&] { quantize_int4_weights(object(prog, "prog")); });
}
