#include <algorithm>
#include <charconv>
#include <filesystem>

#include "kiln/core/error.hpp"
#include "kiln/interface/onnxruntime/provider_options.hpp"

namespace kiln::onnxruntime {

namespace {

// Two options that exclude each other.
void exclude(bool a, std::string_view first, bool b, std::string_view second) {
  if (a && b)
    raise(errc::invalid_argument,
          std::string(first) + " and " + std::string(second) + " exclude each other: found both");
}

// What kiln does not do, and what does it instead.
void refuse(bool asked, std::string_view option, std::string_view why) {
  if (asked) raise(errc::unsupported, std::string(option) + ": " + std::string(why));
}

void check_precision(const provider_options& o) {
  exclude(o.fp16, "migraphx_fp16_enable", o.bf16, "migraphx_bf16_enable");
  exclude(o.int8, "migraphx_int8_enable", o.fp8, "migraphx_fp8_enable");
  if ((o.int8 || o.fp8) && o.calibration_table.empty())
    raise(errc::invalid_argument, std::string(o.int8 ? "migraphx_int8_enable" : "migraphx_fp8_enable") +
                                      " needs a calibration table: migraphx_int8_calibration_table_name or "
                                      "ORT_MIGRAPHX_INT8_CALIBRATION_TABLE_NAME, found neither");
}

void check_memory(const provider_options& o) {
  if (!o.external_alloc != !o.external_free)
    raise(errc::invalid_argument,
          "migraphx_external_alloc and migraphx_external_free come together: found only " +
              std::string(o.external_alloc ? "migraphx_external_alloc" : "migraphx_external_free"));
  if (o.external_empty_cache && !o.external_alloc)
    raise(errc::invalid_argument,
          "migraphx_external_empty_cache is of an allocator: migraphx_external_alloc and migraphx_external_free, found "
          "neither");
}

void check_files(const provider_options& o) {
  if (o.save_compiled && o.save_path.empty())
    raise(errc::invalid_argument, "migraphx_save_compiled_model needs a file: migraphx_save_compiled_path is empty");
  if (o.load_compiled && o.load_path.empty())
    raise(errc::invalid_argument, "migraphx_load_compiled_model needs a file: migraphx_load_compiled_path is empty");
}

void check_device(const provider_options& o) {
  const bool gpu = o.uses_gpu();
  refuse(o.has_user_stream && !gpu, "user_compute_stream",
         "runs have a stream with target gpu alone, found target " + o.target);
  if (o.has_user_stream && !o.user_stream)
    raise(errc::invalid_argument,
          "has_user_compute_stream needs user_compute_stream, the stream's address: found none");
  refuse(o.external_alloc && gpu, "migraphx_external_alloc", "allocates for targets on the processor alone");
}

void check_refused(const provider_options& o) {
  constexpr std::string_view any =
      "kiln's programs take any extents, so nothing is padded; migraphx_compile_batches "
      "compiles some extents ahead";
  refuse(o.static_pad_seq, "static_pad_seq", any);
  refuse(o.static_pad_seq_len != 0, "static_pad_seq_len", any);
  refuse(!o.static_pad_inputs.empty(), "static_pad_inputs", any);
  refuse(!o.static_pad_outputs.empty(), "static_pad_outputs", any);
  refuse(o.coalesce_io, "coalesce_io", "inputs and outputs are used where they lie: there are no copies to join");
  refuse(o.hip_graph, "migraphx_hip_graph_enable", "runs are not captured into graphs of HIP");
  refuse(o.mlss_ops, "mlss_use_specific_ops",
         "kiln has no kernels of that library; migraphx_exhaustive_tune chooses among its own by timing them");
  refuse(o.dump_context_model, "dump_ep_context_model",
         "ONNX Runtime writes that model: session entry ep.context_enable at 1, to ep.context_file_path");
}

}  // namespace

void check_provider_options(const provider_options& o) {
  check_precision(o);
  check_memory(o);
  check_files(o);
  check_device(o);
  check_refused(o);
  const bool eager = o.compute_mode == compute_mode::eager;
  exclude(eager, "compute_mode eager", o.exhaustive_tune, "migraphx_exhaustive_tune");
  exclude(eager, "compute_mode eager", !o.compile_batches.empty(), "migraphx_compile_batches");
  exclude(eager, "compute_mode eager", o.max_dynamic_batch != 0, "migraphx_max_dynamic_batch");
  o.batches();
}

std::string provider_options::table_file() const {
  return (std::filesystem::path(calibration_folder) / calibration_table).string();
}

std::vector<std::int64_t> provider_options::batches() const {
  std::vector<std::int64_t> out;
  if (!compile_batches.empty()) {
    for (std::size_t at = 0; at <= compile_batches.size();) {
      const std::size_t end = std::min(compile_batches.find_first_of(",;", at), compile_batches.size());
      std::string_view item = std::string_view(compile_batches).substr(at, end - at);
      while (item.starts_with(' ')) item.remove_prefix(1);
      while (item.ends_with(' ')) item.remove_suffix(1);
      std::int64_t n = 0;
      const auto [stop, bad] = std::from_chars(item.data(), item.data() + item.size(), n);
      if (bad != std::errc() || stop != item.data() + item.size() || n < 1)
        raise(fault::of(errc::invalid_argument, "migraphx_compile_batches", "whole numbers from 1 on, as in 1,4,8",
                        std::string_view(compile_batches)));
      out.push_back(n);
      at = end + 1;
    }
  } else if (max_dynamic_batch != 0 && max_compiled_models != 0) {
    // powers of two up to the greatest; of these the greatest, 1, and others evenly between
    std::vector<std::int64_t> all;
    for (std::int64_t n = 1; n < max_dynamic_batch; n *= 2) all.push_back(n);
    all.push_back(max_dynamic_batch);
    const std::size_t most = std::min<std::size_t>(max_compiled_models, all.size());
    for (std::size_t i = 0; i < most; ++i)
      out.push_back(most == 1 ? all.back() : all[i * (all.size() - 1) / (most - 1)]);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace kiln::onnxruntime
