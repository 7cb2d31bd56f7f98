#include "kiln/interface/migraphx/c/impl/handles.hpp"

using namespace kiln::migraphx;
using namespace kiln::migraphx::c;

namespace {

std::span<const std::byte> bytes_from(const void* data, std::size_t size) {
  return given_array(static_cast<const std::byte*>(data), size, "data");
}

}  // namespace

migraphx_status migraphx_onnx_options_destroy(migraphx_onnx_options_t options) { return destroyed(options); }
migraphx_status migraphx_onnx_options_assign_to(migraphx_onnx_options_t output, const_migraphx_onnx_options_t input) {
  return assigned(output, input);
}
migraphx_status migraphx_onnx_options_create(migraphx_onnx_options_t* out) {
  return made(out, [] { return onnx_options(); });
}
migraphx_status migraphx_onnx_options_set_input_parameter_shape(migraphx_onnx_options_t options, const char* name,
                                                                size_t* dims, size_t dims_size) {
  return guarded([&] {
    object(options, "onnx_options").map_input_dims[text_from(name, "name")] = list_from(dims, dims_size, "dims");
  });
}
migraphx_status migraphx_onnx_options_set_dyn_input_parameter_shape(migraphx_onnx_options_t options, const char* name,
                                                                    migraphx_dynamic_dimensions_t dims) {
  return guarded(
      [&] { object(options, "onnx_options").map_dyn_input_dims[text_from(name, "name")] = object(dims, "dims"); });
}
migraphx_status migraphx_onnx_options_set_default_dim_value(migraphx_onnx_options_t options, size_t value) {
  return guarded([&] { object(options, "onnx_options").default_dim_value = value; });
}
migraphx_status migraphx_onnx_options_set_default_dyn_dim_value(migraphx_onnx_options_t options,
                                                                const_migraphx_dynamic_dimension_t dd) {
  return guarded([&] { object(options, "onnx_options").default_dyn_dim_value = object(dd, "dd"); });
}
migraphx_status migraphx_onnx_options_set_default_loop_iterations(migraphx_onnx_options_t options, int64_t value) {
  return guarded([&] { object(options, "onnx_options").max_loop_iterations = value; });
}
migraphx_status migraphx_onnx_options_set_limit_loop_iterations(migraphx_onnx_options_t options, int64_t value) {
  return guarded([&] { object(options, "onnx_options").limit_max_iterations = value; });
}
migraphx_status migraphx_onnx_options_set_external_data_path(migraphx_onnx_options_t options, const char* path) {
  return guarded([&] { object(options, "onnx_options").external_data_path = text_from(path, "external_data_path"); });
}
migraphx_status migraphx_onnx_options_set_use_debug_symbols(migraphx_onnx_options_t options, bool value) {
  return guarded([&] { object(options, "onnx_options").use_debug_symbols = value; });
}
migraphx_status migraphx_parse_onnx(migraphx_program_t* out, const char* name, migraphx_onnx_options_t options) {
  return made(out, [&] { return parse_onnx(text_from(name, "name"), object(options, "options")); });
}
migraphx_status migraphx_parse_onnx_buffer(migraphx_program_t* out, const void* data, size_t size,
                                           migraphx_onnx_options_t options) {
  return made(out, [&] { return parse_onnx_buffer(bytes_from(data, size), object(options, "options")); });
}
migraphx_status migraphx_get_onnx_operators_size(size_t* out) {
  return told(out, [] { return onnx_operators().size(); });
}
migraphx_status migraphx_get_onnx_operator_name_at_index(char** out, size_t index) {
  return told(out, [&] {
    const auto& all = onnx_operators();
    if (index >= all.size())
      raise(fault::of(errc::invalid_argument, "an index lies within the operators", all.size(), index));
    return const_cast<char*>(all[index].c_str());
  });
}

migraphx_status migraphx_file_options_destroy(migraphx_file_options_t options) { return destroyed(options); }
migraphx_status migraphx_file_options_assign_to(migraphx_file_options_t output, const_migraphx_file_options_t input) {
  return assigned(output, input);
}
migraphx_status migraphx_file_options_create(migraphx_file_options_t* out) {
  return made(out, [] { return file_options(); });
}
migraphx_status migraphx_file_options_set_file_format(migraphx_file_options_t options, const char* format) {
  return guarded([&] { object(options, "file_options").format = text_from(format, "format"); });
}

migraphx_status migraphx_compile_options_destroy(migraphx_compile_options_t options) { return destroyed(options); }
migraphx_status migraphx_compile_options_assign_to(migraphx_compile_options_t output,
                                                   const_migraphx_compile_options_t input) {
  return assigned(output, input);
}
migraphx_status migraphx_compile_options_create(migraphx_compile_options_t* out) {
  return made(out, [] { return kiln::migraphx::compile_options(); });
}
migraphx_status migraphx_compile_options_set_offload_copy(migraphx_compile_options_t options, bool value) {
  return guarded([&] { object(options, "compile_options").offload_copy = value; });
}
migraphx_status migraphx_compile_options_set_fast_math(migraphx_compile_options_t options, bool value) {
  return guarded([&] { object(options, "compile_options").fast_math = value; });
}
migraphx_status migraphx_compile_options_set_exhaustive_tune_flag(migraphx_compile_options_t options, bool value) {
  return guarded([&] { object(options, "compile_options").exhaustive_tune = value; });
}

migraphx_status migraphx_tf_options_destroy(migraphx_tf_options_t options) { return destroyed(options); }
migraphx_status migraphx_tf_options_assign_to(migraphx_tf_options_t output, const_migraphx_tf_options_t input) {
  return assigned(output, input);
}
migraphx_status migraphx_tf_options_create(migraphx_tf_options_t* out) {
  return made(out, [] { return tf_options(); });
}
migraphx_status migraphx_tf_options_set_nhwc(migraphx_tf_options_t options, bool is_nhwc) {
  return guarded([&] { object(options, "tf_options").is_nhwc = is_nhwc; });
}
migraphx_status migraphx_tf_options_set_input_parameter_shape(migraphx_tf_options_t options, const char* name,
                                                              size_t* dims, size_t dims_size) {
  return guarded([&] {
    object(options, "tf_options").map_input_dims[text_from(name, "name")] = list_from(dims, dims_size, "dims");
  });
}
migraphx_status migraphx_tf_options_set_default_dim_value(migraphx_tf_options_t options, size_t value) {
  return guarded([&] { object(options, "tf_options").default_dim_value = static_cast<unsigned>(value); });
}
migraphx_status migraphx_tf_options_set_output_names(migraphx_tf_options_t options, const char** names,
                                                     size_t names_size) {
  return guarded([&] {
    std::vector<std::string> all;
    for (const char* const name : given_array(names, names_size, "names")) all.push_back(text_from(name, "a name"));
    object(options, "tf_options").output_names = std::move(all);
  });
}
migraphx_status migraphx_parse_tf(migraphx_program_t* out, const char* name, migraphx_tf_options_t options) {
  return made(out, [&] { return parse_tf(text_from(name, "name"), object(options, "options")); });
}
migraphx_status migraphx_parse_tf_buffer(migraphx_program_t* out, const void* data, size_t size,
                                         migraphx_tf_options_t options) {
  return made(out, [&] { return parse_tf_buffer(bytes_from(data, size), object(options, "options")); });
}
