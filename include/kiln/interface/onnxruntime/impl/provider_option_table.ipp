#include "kiln/interface/onnxruntime/provider_options.hpp"

namespace kiln::onnxruntime {

namespace {

using o = provider_options;
using names = std::vector<std::string_view>;

template <auto Member>
provider_option row(std::string_view name, std::string_view help, names also = {}, names environment = {}) {
  return {make_option<Member>(name, help), std::move(also), std::move(environment)};
}

template <auto Member>
provider_option path_row(std::string_view name, std::string_view help, names also = {}, names environment = {}) {
  return {make_path_option<Member>(name, help), std::move(also), std::move(environment)};
}

// A choice whose words also have numbers.
template <auto Member, std::size_t N>
bool read_numbered(const option_info& info, o& to, std::string_view text, const std::string_view (&numbers)[N]) {
  for (std::size_t i = 0; i < N; ++i)
    if (text == numbers[i]) text = info.choices[i];
  using field = detail::option_field<Member>;
  return detail::option_value<typename field::type>::read(info, field::of(to), text);
}

void add_precision(std::vector<provider_option>& t) {
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
  t.push_back(path_row<&o::calibration_folder>("calibration_cache_path",
                                               "the folder of a calibration table whose name is relative",
                                               {"migraphx_cache_path"}, {"ORT_MIGRAPHX_CACHE_PATH"}));
  t.push_back(row<&o::native_table>("migraphx_int8_use_native_calibration_table",
                                    "the table is in the native form; its content decides in any case",
                                    {"int8_use_native_calibration_table", "migx_int8_use_native_calibration_table",
                                     "migraphx_use_native_calibration_table"},
                                    {"ORT_MIGRAPHX_INT8_USE_NATIVE_CALIBRATION_TABLE"}));
}

void add_files(std::vector<provider_option>& t) {
  t.push_back(row<&o::save_compiled>("migraphx_save_compiled_model", "writes the session's compiled partitions",
                                     {"save_compiled_model", "migx_save_compiled_model"},
                                     {"ORT_MIGRAPHX_SAVE_COMPILED_MODEL"}));
  t.push_back(path_row<&o::save_path>(
      "migraphx_save_compiled_path", "the file that they are written to",
      {"migraphx_save_model_path", "save_compiled_path", "migx_save_compiled_path", "migx_save_model_name"},
      {"ORT_MIGRAPHX_SAVE_COMPILED_PATH", "ORT_MIGRAPHX_SAVE_COMPILE_PATH"}));
  t.push_back(row<&o::load_compiled>(
      "migraphx_load_compiled_model", "reads partitions that were compiled before, where they fit the model",
      {"load_compiled_model", "migx_load_compiled_model"}, {"ORT_MIGRAPHX_LOAD_COMPILED_MODEL"}));
  t.push_back(path_row<&o::load_path>(
      "migraphx_load_compiled_path", "the file that they are read from",
      {"migraphx_load_model_path", "load_compiled_path", "migx_load_compiled_path", "migx_load_model_name"},
      {"ORT_MIGRAPHX_LOAD_COMPILED_PATH", "ORT_MIGRAPHX_LOAD_COMPILE_PATH"}));
}

void add_tuning(std::vector<provider_option>& t) {
  t.push_back(row<&o::exhaustive_tune>("migraphx_exhaustive_tune", "chooses kernels by timing them",
                                       {"exhaustive_tune", "migx_exhaustive_tune"}, {"ORT_MIGRAPHX_EXHAUSTIVE_TUNE"}));
  provider_option mode = row<&o::compute_mode>(
      "compute_mode", "0, eager: one program, nothing is timed; 50, balanced; 100, maximum: kernels are timed",
      {"migraphx_compute_mode"}, {"ORT_MIGRAPHX_COMPUTE_MODE"});
  mode.read = [](const option_info& info, o& to, std::string_view text) {
    return read_numbered<&o::compute_mode>(info, to, text, {"0", "50", "100"});
  };
  t.push_back(std::move(mode));
  t.push_back(path_row<&o::tuning_file>("problem_cache", "the file of kernels that were timed; empty: the user's",
                                        {"tuning_file", "migraphx_problem_cache"}, {"ORT_MIGRAPHX_PROBLEM_CACHE"}));
}

void add_memory(std::vector<provider_option>& t) {
  t.push_back(row<&o::mem_limit>(
      "migraphx_mem_limit", "the most bytes of weights and workspaces at a time; 0 or the greatest number: no limit",
      {"mem_limit", "migx_mem_limit"}, {"ORT_MIGRAPHX_MEM_LIMIT"}));
  provider_option growth =
      row<&o::arena>("migraphx_arena_extend_strategy", "how workspaces that are too small grow",
                     {"arena_extend_strategy", "migx_arena_extend_strategy"}, {"ORT_MIGRAPHX_ARENA_EXTEND_STRATEGY"});
  growth.read = [](const option_info& info, o& to, std::string_view text) {
    return read_numbered<&o::arena>(info, to, text, {"0", "1"});
  };
  t.push_back(std::move(growth));
  t.push_back(row<&o::external_alloc>("migraphx_external_alloc",
                                      "void* (*)(size_t): allocates weights and workspaces; needs the next",
                                      {"external_alloc", "migx_external_alloc"}));
  t.push_back(row<&o::external_free>("migraphx_external_free", "void (*)(void*): frees them",
                                     {"external_free", "migx_external_free"}));
  t.push_back(row<&o::external_empty_cache>("migraphx_external_empty_cache",
                                            "void (*)(): called when memory of weights was freed",
                                            {"external_empty_cache", "migx_external_empty_cache"}));
}

void add_cache(std::vector<provider_option>& t) {
  t.push_back(path_row<&o::cache_dir>("migraphx_model_cache_dir", "a folder of compiled programs",
                                      {"migraphx_cache_dir", "cache_dir", "model_cache_dir"},
                                      {"ORT_MIGRAPHX_MODEL_CACHE_PATH", "ORT_MIGRAPHX_CACHE_DIR"}));
  t.push_back(row<&o::cache_limit>("cache_limit", "MiB that the folder may hold: what was used the longest ago goes",
                                   {"migraphx_cache_limit"}, {"ORT_MIGRAPHX_CACHE_LIMIT"}));
  t.push_back(row<&o::disable_caching>("disable_caching", "the folder is neither read nor written",
                                       {"migraphx_disable_caching"}, {"ORT_MIGRAPHX_DISABLE_COMPILED_MODEL_CACHING"}));
  t.push_back(row<&o::force_recompile>("force_recompile",
                                       "compiles what the folder or a file has, too, and writes it anew",
                                       {"migraphx_force_recompile"}, {"ORT_MIGRAPHX_FORCE_RECOMPILE"}));
}

void add_batches(std::vector<provider_option>& t) {
  t.push_back(row<&o::max_dynamic_batch>("migraphx_max_dynamic_batch",
                                         "the greatest batch that gets a program of its own beside that for any batch",
                                         {"max_dynamic_batch"}, {"ORT_MIGRAPHX_MAX_DYNAMIC_BATCH"}));
  t.push_back(row<&o::max_compiled_models>(
      "migraphx_max_compiled_models",
      "how many batches up to the greatest get one: 1: it alone; 2: 1, too; 3: one between, too; …",
      {"max_compiled_models"}, {"ORT_MIGRAPHX_MAX_COMPILED_MODELS"}));
  t.push_back(row<&o::compile_batches>("migraphx_compile_batches", "the batches that get one, as in 1,4,8",
                                       {"compile_batches"}, {"ORT_MIGRAPHX_COMPILE_BATCHES"}));
  t.push_back(row<&o::precompile_at_load>("precompile_at_load",
                                          "compiles them with the session; else each with the first run of its batch",
                                          {"migraphx_precompile_at_load"}, {"ORT_MIGRAPHX_PRECOMPILE_AT_LOAD"}));
}

void add_rest(std::vector<provider_option>& t) {
  t.push_back(row<&o::dump_model_ops>(
      "dump_subgraphs", "writes the graph and each partition as ONNX into the working folder",
      {"migraphx_dump_subgraphs", "dump_model_ops"}, {"ORT_MIGRAPHX_DUMP_MODEL_OPS", "ORT_MIGRAPHX_DUMP_SUBGRAPHS"}));
  t.push_back(row<&o::dump_context_model>("dump_ep_context_model",
                                          "1 is refused: ONNX Runtime's entry ep.context_enable writes that model",
                                          {"migraphx_dump_ep_context_model"}, {"ORT_MIGRAPHX_DUMP_EP_CONTEXT_MODEL"}));
  t.push_back(row<&o::cpu_control_flow>("cpu_control_flow", "claims If, Loop and Scan", {"migraphx_cpu_control_flow"},
                                        {"ORT_MIGRAPHX_CPU_CONTROL_FLOW"}));
  t.push_back(row<&o::target>("target", "cpu, ref or gpu; of a session on a GPU, gpu", {"migraphx_compile_target"},
                              {"ORT_MIGRAPHX_COMPILE_TARGET"}));
  t.push_back(row<&o::threads>("threads", "threads of the session's partitions; 0: one for each processor"));
  t.push_back(row<&o::least_nodes>("least_nodes", "partitions of fewer nodes are left to other providers"));
  t.push_back(row<&o::user_stream>("user_compute_stream", "target gpu: the stream that runs are given to",
                                   {"migraphx_user_compute_stream"}));
  t.push_back(row<&o::has_user_stream>("has_user_compute_stream", "whether there is one; follows from the stream",
                                       {"migraphx_has_user_compute_stream"}));
  t.push_back(row<&o::static_pad_seq>("static_pad_seq", "1 is refused: programs take any extents, so nothing is padded",
                                      {"migraphx_static_pad_seq"}, {"ORT_MIGRAPHX_STATIC_PAD_SEQ"}));
  t.push_back(row<&o::static_pad_seq_len>("static_pad_seq_len", "a length is refused as well",
                                          {"migraphx_static_pad_seq_len"}, {"ORT_MIGRAPHX_STATIC_PAD_SEQ_LEN"}));
  t.push_back(row<&o::static_pad_inputs>("static_pad_inputs", "names are refused as well",
                                         {"migraphx_static_pad_inputs"}, {"ORT_MIGRAPHX_STATIC_PAD_INPUTS"}));
  t.push_back(row<&o::static_pad_outputs>("static_pad_outputs", "names are refused as well",
                                          {"migraphx_static_pad_outputs"}, {"ORT_MIGRAPHX_STATIC_PAD_OUTPUTS"}));
  t.push_back(row<&o::model_arch>("model_arch", "a name is noted in the log: kiln goes by the graph",
                                  {"migraphx_model_arch"}, {"ORT_MIGRAPHX_MODEL_ARCH"}));
  t.push_back(row<&o::coalesce_io>("coalesce_io", "1 is refused: inputs and outputs are used where they lie",
                                   {"migraphx_coalesce_io"}, {"ORT_MIGRAPHX_COALESCE_IO"}));
  t.push_back(row<&o::hip_graph>("migraphx_hip_graph_enable", "1 is refused: runs are not captured",
                                 {"hip_graph_enable"}, {"ORT_MIGRAPHX_HIP_GRAPH_ENABLE"}));
  t.push_back(row<&o::mlss_ops>("mlss_use_specific_ops",
                                "1 is refused: kernels are kiln's own, chosen by migraphx_exhaustive_tune",
                                {"migraphx_mlss_use_specific_ops"}, {"ORT_MIGRAPHX_MLSS_USE_SPECIFIC_OPS"}));
}

std::vector<provider_option> make_table() {
  std::vector<provider_option> t;
  t.push_back(row<&o::device_id>("device_id", "which GPU; of a session on a GPU, that one"));
  add_precision(t);
  add_files(t);
  add_tuning(t);
  add_memory(t);
  add_cache(t);
  add_batches(t);
  add_rest(t);
  return t;
}

}  // namespace

std::span<const provider_option> provider_option_table() {
  static const std::vector<provider_option> table = make_table();
  return table;
}

}  // namespace kiln::onnxruntime
