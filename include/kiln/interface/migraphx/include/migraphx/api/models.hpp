#pragma once
#include <migraphx/api/program.hpp>

// Reading models, and quantization.
namespace migraphx {
inline namespace api {

struct onnx_options : MIGRAPHX_HANDLE(onnx_options) {
  using handle_base::handle_base;
  onnx_options() { make_handle(&migraphx_onnx_options_create); }
  void set_input_parameter_shape(const std::string& name, std::vector<std::size_t> lengths) {
    call(&migraphx_onnx_options_set_input_parameter_shape, get_handle_ptr(), name.c_str(), lengths.data(),
         lengths.size());
  }
  void set_dyn_input_parameter_shape(const std::string& name, const dynamic_dimensions& dims) {
    call(&migraphx_onnx_options_set_dyn_input_parameter_shape, get_handle_ptr(), name.c_str(), dims.get_handle_ptr());
  }
  void set_default_dim_value(unsigned value) {
    call(&migraphx_onnx_options_set_default_dim_value, get_handle_ptr(), value);
  }
  void set_default_dyn_dim_value(const dynamic_dimension& d) {
    call(&migraphx_onnx_options_set_default_dyn_dim_value, get_handle_ptr(), d.get_handle_ptr());
  }
  void set_default_loop_iterations(std::int64_t value) {
    call(&migraphx_onnx_options_set_default_loop_iterations, get_handle_ptr(), value);
  }
  void set_limit_loop_iterations(std::int64_t value) {
    call(&migraphx_onnx_options_set_limit_loop_iterations, get_handle_ptr(), value);
  }
  void set_external_data_path(const std::string& path) {
    call(&migraphx_onnx_options_set_external_data_path, get_handle_ptr(), path.c_str());
  }
  void set_use_debug_symbols(bool value = true) {
    call(&migraphx_onnx_options_set_use_debug_symbols, get_handle_ptr(), value);
  }
};

inline program parse_onnx(const char* filename, const onnx_options& options) {
  return {make<migraphx_program>(&migraphx_parse_onnx, filename, options.get_handle_ptr()), own{}};
}
inline program parse_onnx(const char* filename) { return parse_onnx(filename, onnx_options{}); }
inline program parse_onnx_buffer(const void* data, std::size_t size, const onnx_options& options) {
  return {make<migraphx_program>(&migraphx_parse_onnx_buffer, data, size, options.get_handle_ptr()), own{}};
}
inline program parse_onnx_buffer(const void* data, std::size_t size) {
  return parse_onnx_buffer(data, size, onnx_options{});
}
inline program parse_onnx_buffer(const std::string& buffer, const onnx_options& options) {
  return parse_onnx_buffer(buffer.data(), buffer.size(), options);
}
inline program parse_onnx_buffer(const std::string& buffer) { return parse_onnx_buffer(buffer, onnx_options{}); }

/// Names of the ONNX operators that are known.
inline std::vector<std::string> get_onnx_operators() {
  std::size_t count = 0;
  call(&migraphx_get_onnx_operators_size, &count);
  std::vector<std::string> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    char* name = nullptr;
    call(&migraphx_get_onnx_operator_name_at_index, &name, i);
    out[i] = name;
  }
  return out;
}

struct tf_options : MIGRAPHX_HANDLE(tf_options) {
  using handle_base::handle_base;
  tf_options() { make_handle(&migraphx_tf_options_create); }
  void set_input_parameter_shape(const std::string& name, std::vector<std::size_t> lengths) {
    call(&migraphx_tf_options_set_input_parameter_shape, get_handle_ptr(), name.c_str(), lengths.data(),
         lengths.size());
  }
  void set_nhwc(bool is_nhwc = true) { call(&migraphx_tf_options_set_nhwc, get_handle_ptr(), is_nhwc); }
  void set_default_dim_value(unsigned value) {
    call(&migraphx_tf_options_set_default_dim_value, get_handle_ptr(), value);
  }
  void set_output_names(std::vector<const char*> names) {
    call(&migraphx_tf_options_set_output_names, get_handle_ptr(), names.data(), names.size());
  }
};
inline program parse_tf(const char* filename, const tf_options& options) {
  return {make<migraphx_program>(&migraphx_parse_tf, filename, options.get_handle_ptr()), own{}};
}
inline program parse_tf(const char* filename) { return parse_tf(filename, tf_options{}); }

struct quantize_op_names : MIGRAPHX_HANDLE(quantize_op_names) {
  using handle_base::handle_base;
  quantize_op_names() { make_handle(&migraphx_quantize_op_names_create); }
  void add(const std::string& name) { call(&migraphx_quantize_op_names_add, get_handle_ptr(), name.c_str()); }
};
inline void quantize_fp16(const program& p, const quantize_op_names& names) {
  call(&migraphx_quantize_fp16_with_op_names, p.get_handle_ptr(), names.get_handle_ptr());
}
inline void quantize_fp16(const program& p) { call(&migraphx_quantize_fp16, p.get_handle_ptr()); }
inline void quantize_bf16(const program& p, const quantize_op_names& names) {
  call(&migraphx_quantize_bf16_with_op_names, p.get_handle_ptr(), names.get_handle_ptr());
}
inline void quantize_bf16(const program& p) { call(&migraphx_quantize_bf16, p.get_handle_ptr()); }

struct quantize_int8_options : MIGRAPHX_HANDLE(quantize_int8_options) {
  using handle_base::handle_base;
  quantize_int8_options() { make_handle(&migraphx_quantize_int8_options_create); }
  void add_op_name(const std::string& name) {
    call(&migraphx_quantize_int8_options_add_op_name, get_handle_ptr(), name.c_str());
  }
  void add_calibration_data(const program_parameters& data) {
    call(&migraphx_quantize_int8_options_add_calibration_data, get_handle_ptr(), data.get_handle_ptr());
  }
  /// kiln's own: a file of ranges in place of calibration data.
  void set_table(const std::string& file) {
    call(&kiln_quantize_int8_options_set_table, get_handle_ptr(), file.c_str());
  }
};
inline void quantize_int8(const program& p, const target& to, const quantize_int8_options& options) {
  call(&migraphx_quantize_int8, p.get_handle_ptr(), to.get_handle_ptr(), options.get_handle_ptr());
}
struct quantize_fp8_options : MIGRAPHX_HANDLE(quantize_fp8_options) {
  using handle_base::handle_base;
  quantize_fp8_options() { make_handle(&migraphx_quantize_fp8_options_create); }
  void add_calibration_data(const program_parameters& data) {
    call(&migraphx_quantize_fp8_options_add_calibration_data, get_handle_ptr(), data.get_handle_ptr());
  }
  void set_table(const std::string& file) {
    call(&kiln_quantize_fp8_options_set_table, get_handle_ptr(), file.c_str());
  }
};
inline void quantize_fp8(const program& p, const target& to, const quantize_fp8_options& options) {
  call(&migraphx_quantize_fp8, p.get_handle_ptr(), to.get_handle_ptr(), options.get_handle_ptr());
}
/// kiln's own: constant matrices of dots in integers of four bits.
inline void quantize_int4_weights(const program& p) { call(&kiln_quantize_int4_weights, p.get_handle_ptr()); }

}  // namespace api
}  // namespace migraphx
