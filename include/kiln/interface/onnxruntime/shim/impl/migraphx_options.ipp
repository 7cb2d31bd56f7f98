#include "kiln/interface/onnxruntime/shim/migraphx_options.hpp"

#include <cstring>
#include <limits>

#include "kiln/core/error.hpp"

namespace kiln::onnxruntime {

namespace {

[[noreturn]] void refuse(const char* member, const char* expected, long long found) {
  raise(errc::invalid_argument,
        std::string("OrtMIGraphXProviderOptions, in the layout of ONNX Runtime 1.19 and later: ") + member + " is " +
            expected + ", found " + std::to_string(found));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> options_of(const OrtMIGraphXProviderOptions& given) {
  std::vector<std::pair<std::string, std::string>> out;
  // the member has the option's name unless another is given
  const auto number = [&](const char* name, int value, int most, const char* expected, const char* member = nullptr) {
    if (value < 0 || value > most) refuse(member ? member : name, expected, value);
    if (value) out.emplace_back(name, std::to_string(value));
  };
  const auto flag = [&](const char* name, int value, const char* member = nullptr) {
    number(name, value, 1, "0 or 1", member);
  };
  const auto text = [&](const char* name, const char* value, const char* member = nullptr) {
    const auto address = reinterpret_cast<std::uintptr_t>(value);
    if (address && address < 4096) refuse(member ? member : name, "a text or null", static_cast<long long>(address));
    if (value && *value) out.emplace_back(name, value);
  };

  number("device_id", given.device_id, 4095, "the number of a device");
  flag("migraphx_fp16_enable", given.migraphx_fp16_enable);
  flag("migraphx_fp8_enable", given.migraphx_fp8_enable);
  flag("migraphx_int8_enable", given.migraphx_int8_enable);
  flag("migraphx_int8_use_native_calibration_table", given.migraphx_use_native_calibration_table,
       "migraphx_use_native_calibration_table");
  flag("migraphx_save_compiled_model", given.migraphx_save_compiled_model);
  flag("migraphx_load_compiled_model", given.migraphx_load_compiled_model);
  // a byte that is neither 0 nor 1 must not be read as a bool
  unsigned char tune = 0;
  std::memcpy(&tune, &given.migraphx_exhaustive_tune, 1);
  flag("migraphx_exhaustive_tune", tune);
  if (given.migraphx_arena_extend_strategy < 0 || given.migraphx_arena_extend_strategy > 1)
    refuse("migraphx_arena_extend_strategy", "0 or 1", given.migraphx_arena_extend_strategy);
  if (given.migraphx_arena_extend_strategy == 1) out.emplace_back("migraphx_arena_extend_strategy", "kSameAsRequested");
  // 0 is what a struct of zeros says, the other is ONNX Runtime's default: both mean no limit
  if (given.migraphx_mem_limit != 0 && given.migraphx_mem_limit != std::numeric_limits<std::size_t>::max())
    out.emplace_back("migraphx_mem_limit", std::to_string(given.migraphx_mem_limit));
  // pointers are followed last: a struct of another layout has been refused by then
  text("migraphx_int8_calibration_table_name", given.migraphx_int8_calibration_table_name);
  text("migraphx_save_compiled_path", given.migraphx_save_model_path, "migraphx_save_model_path");
  text("migraphx_load_compiled_path", given.migraphx_load_model_path, "migraphx_load_model_path");
  return out;
}

}  // namespace kiln::onnxruntime
