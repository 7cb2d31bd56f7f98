#include "kiln/interface/onnxruntime/provider_options.hpp"

#include <algorithm>

#include "kiln/core/error.hpp"

namespace kiln::onnxruntime {

namespace {

template <auto Member>
provider_option row(std::string_view name, std::string_view help, std::vector<std::string_view> also = {},
                    std::vector<std::string_view> environment = {}) {
  return {make_option<Member>(name, help), std::move(also), std::move(environment)};
}

template <auto Member>
provider_option path_row(std::string_view name, std::string_view help, std::vector<std::string_view> also = {},
                         std::vector<std::string_view> environment = {}) {
  return {make_path_option<Member>(name, help), std::move(also), std::move(environment)};
}

std::vector<provider_option> make_table() {
  using o = provider_options;
  std::vector<provider_option> t;
  t.push_back(row<&o::device_id>("device_id", "the device of the session"));
  t.push_back(row<&o::fp16>("migraphx_fp16_enable", "computes in 16-bit floats",
                            {"fp16_enable", "trt_fp16_enable", "migx_fp16_enable"}, {"ORT_MIGRAPHX_FP16_ENABLE"}));
  t.push_back(row<&o::bf16>("migraphx_bf16_enable", "computes in bfloat16", {"bf16_enable", "migx_bf16_enable"},
                            {"ORT_MIGRAPHX_BF16_ENABLE"}));
  t.push_back(row<&o::fp8>("migraphx_fp8_enable", "static quantization to floats of 8 bits, by a calibration table",
                           {"fp8_enable", "migx_fp8_enable"}, {"ORT_MIGRAPHX_FP8_ENABLE"}));
  t.push_back(row<&o::int8>("migraphx_int8_enable", "static quantization to int8, by a calibration table",
                            {"int8_enable", "migx_int8_enable"}, {"ORT_MIGRAPHX_INT8_ENABLE"}));
  t.push_back(path_row<&o::calibration_table>("migraphx_int8_calibration_table_name",
                                              "the calibration table of int8 or fp8, in any form",
                                              {"int8_calibration_table_name", "migx_int8_calibration_table_name"},
                                              {"ORT_MIGRAPHX_INT8_CALIBRATION_TABLE_NAME"}));
  t.push_back(row<&o::native_table>("migraphx_int8_use_native_calibration_table",
                                    "the table is in the native form; its content decides in any case",
                                    {"int8_use_native_calibration_table", "migx_int8_use_native_calibration_table",
                                     "migraphx_use_native_calibration_table"},
                                    {"ORT_MIGRAPHX_INT8_USE_NATIVE_CALIBRATION_TABLE"}));
  t.push_back(row<&o::exhaustive_tune>("migraphx_exhaustive_tune", "chooses kernels by timing them",
                                       {"exhaustive_tune", "migx_exhaustive_tune"}, {"ORT_MIGRAPHX_EXHAUSTIVE_TUNE"}));
  t.push_back(path_row<&o::cache_dir>("migraphx_model_cache_dir", "a folder of compiled programs",
                                      {"migraphx_cache_dir", "cache_dir", "model_cache_dir"},
                                      {"ORT_MIGRAPHX_MODEL_CACHE_PATH", "ORT_MIGRAPHX_CACHE_DIR"}));
  t.push_back(row<&o::dump_model_ops>("dump_subgraphs", "writes each partition as ONNX into the working folder",
                                      {"migraphx_dump_subgraphs", "dump_model_ops"}, {"ORT_MIGRAPHX_DUMP_MODEL_OPS"}));
  t.push_back(row<&o::target>("target", "what the partitions are compiled for: cpu, reference or gpu"));
  t.push_back(row<&o::threads>("threads", "threads of the session's partitions; 0: one for each processor"));
  t.push_back(row<&o::least_nodes>("least_nodes", "partitions of fewer nodes are left to other providers"));
  return t;
}

struct named_value {
  std::string name, value;
};

const provider_option& find(std::string_view name) {
  std::vector<std::string_view> known;
  for (const provider_option& o : provider_option_table()) {
    if (o.name == name || std::find(o.also.begin(), o.also.end(), name) != o.also.end()) return o;
    known.push_back(o.name);
  }
  detail::refuse_name(known, name);
}

void set(provider_options& to, const provider_option& option, const named_value& from) {
  if (!option.read(option, to, from.value))
    raise(fault::of(errc::invalid_argument, from.name, option.expected(), from.value));
}

void check(const provider_options& o) {
  if (o.fp16 && o.bf16)
    raise(errc::invalid_argument, "migraphx_fp16_enable and migraphx_bf16_enable exclude each other: found both");
  if (o.int8 && o.fp8)
    raise(errc::invalid_argument, "migraphx_int8_enable and migraphx_fp8_enable exclude each other: found both");
  if ((o.int8 || o.fp8) && o.calibration_table.empty())
    raise(errc::invalid_argument, std::string(o.int8 ? "migraphx_int8_enable" : "migraphx_fp8_enable") +
                                      " needs a calibration table: migraphx_int8_calibration_table_name or "
                                      "ORT_MIGRAPHX_INT8_CALIBRATION_TABLE_NAME, found neither");
}

}  // namespace

std::span<const provider_option> provider_option_table() {
  static const std::vector<provider_option> table = make_table();
  return table;
}

provider_options read_provider_options(std::span<const std::pair<std::string, std::string>> given,
                                       const environment& variables) {
  provider_options out;
  std::vector<std::pair<const provider_option*, named_value>> read;
  for (const auto& [name, value] : given) {
    const provider_option& option = find(name);
    for (const auto& [other, from] : read) {
      if (other != &option) continue;
      provider_options a, b;
      set(a, option, from), set(b, option, {name, value});
      if (option.get(a) != option.get(b))
        raise(errc::invalid_argument, "one option has one value: found " + from.name + " = '" + from.value + "' and " +
                                          name + " = '" + value + "'");
    }
    read.emplace_back(&option, named_value{name, value});
    set(out, option, {name, value});
  }
  for (const provider_option& option : provider_option_table())
    for (const std::string_view name : option.environment)
      if (const char* const value = variables(std::string(name).c_str())) {
        set(out, option, {std::string(name), value});
        break;
      }
  check(out);
  return out;
}

}  // namespace kiln::onnxruntime
