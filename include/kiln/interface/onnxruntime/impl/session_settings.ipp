#include "kiln/interface/onnxruntime/session_settings.hpp"

#include <limits>

#include "kiln/core/error.hpp"
#include "kiln/quantize/precision.hpp"
#include "kiln/quantize/table.hpp"
#include "kiln/runtime/content_hash.hpp"
#include "kiln/runtime/kept_files.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::onnxruntime {

std::string target_name(const provider_options& o) {
  if (o.uses_gpu()) return "hip:" + std::to_string(o.device_id);
  if (o.device_id != 0)
    raise(fault::of(errc::invalid_argument, "device_id of target " + o.target, "0",
                    static_cast<std::int64_t>(o.device_id)));
  return o.target;
}

compile_options compile_options_of(const provider_options& o) {
  compile_options out;
  out.threads = o.threads;
  out.pool = o.threads ? std::make_shared<thread_pool>(o.threads) : default_pool();
  out.tune = o.tunes();
  out.tuning_file = o.tuning_file;
  return out;
}

std::uint64_t memory_limit(const provider_options& o) {
  return o.mem_limit == std::numeric_limits<std::uint64_t>::max() ? 0 : o.mem_limit;
}

std::shared_ptr<memory_source> memory_of(const provider_options& o) {
  memory_settings how;
  how.limit = memory_limit(o);
  how.alloc = reinterpret_cast<void* (*)(std::size_t)>(o.external_alloc);
  how.free = reinterpret_cast<void (*)(void*)>(o.external_free);
  how.empty_cache = reinterpret_cast<void (*)()>(o.external_empty_cache);
  // with an allocator of the caller's, how memory grows is its own affair
  how.powers_of_two = o.arena == arena_growth::next_power_of_two && !how.alloc;
  if (how.limit == 0 && !how.alloc) return nullptr;
  return std::make_shared<memory_source>(how);
}

store_settings store_of(const provider_options& o) {
  store_settings out;
  if (o.load_compiled) out.load = o.load_path;
  if (o.save_compiled) out.save = o.save_path;
  if (!o.disable_caching) out.folder = o.cache_dir;
  out.folder_limit = o.cache_limit;
  out.recompiles = o.force_recompile;
  return out;
}

program_identity identity_of(const onnx::fingerprint& content, const std::string& extents, const provider_options& o) {
  std::string options;
  const auto add = [&](bool is_set, std::string_view what) {
    if (is_set) options += (options.empty() ? "" : ", ") + std::string(what);
  };
  add(o.fp16, "fp16"), add(o.bf16, "bf16"), add(o.fp8, "fp8"), add(o.int8, "int8"), add(o.tunes(), "tuned");
  if (o.fp8 || o.int8) {
    content_hash table;
    table.add(read_file(o.table_file()));
    add(true, "calibration table " + table.str());
  }
  return {{"operator sets", content.operator_sets},
          {"graph", content.graph},
          {"weights", content.weights},
          {"extents", extents},
          {"options", options.empty() ? "none" : options}};
}

std::vector<std::string> table_warnings(const provider_options& o) {
  std::vector<std::string> out;
  const std::string bytes = o.int8 || o.fp8 ? read_file(o.table_file()) : "";
  if (bytes.empty()) return out;
  const quantize::table_form form = quantize::form_of_table(bytes);
  const std::string table = "calibration table " + o.table_file();
  if ((form == quantize::table_form::native) != o.native_table)
    out.push_back(table + ": its content is of form " + std::string(to_string(form)) +
                  ", though migraphx_int8_use_native_calibration_table is " + (o.native_table ? "1" : "0") +
                  ": the content decides");
  if (form == quantize::table_form::flatbuffers || form == quantize::table_form::cache)
    out.push_back(table +
                  ": it has the greater end alone of each range, and the loss of the other can't be undone: "
                  "calibration.json has both ends");
  return out;
}

program in_precision(program p, const provider_options& o, std::vector<std::string>& said) {
  const auto take = [&](quantize::quantized_program made) {
    for (const text& line : made.note.remarks) said.push_back(line.str());
    return std::move(made.graph);
  };
  quantize::precision_options how;
  if (o.int8 || o.fp8) {
    how.to = o.int8 ? quantize::precision::int8 : quantize::precision::fp8;
    how.known = quantize::read_table(o.table_file());
    how.int8.activations = dtype::i8, how.int8.symmetric = true;
    p = take(quantize::with_precision(std::move(p), how));
    how.is_prepared = true;
  }
  if (o.fp16 || o.bf16) {
    how.to = o.fp16 ? quantize::precision::f16 : quantize::precision::bf16;
    p = take(quantize::with_precision(std::move(p), how));
  }
  return p;
}

}  // namespace kiln::onnxruntime
