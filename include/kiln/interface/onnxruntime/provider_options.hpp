#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/runtime/option_row.hpp"

namespace kiln::onnxruntime {

/// How memory that is too small grows: to the next power of two, or to what is asked for.
enum class arena_growth : std::uint8_t { next_power_of_two, same_as_requested };
inline constexpr std::string_view arena_growths[] = {"kNextPowerOfTwo", "kSameAsRequested"};
constexpr std::span<const std::string_view> option_choices(arena_growth) { return arena_growths; }

/// How much is done when a session is made: one program and no timing, what the other options say, or kernels chosen
/// by timing them.
enum class compute_mode : std::uint8_t { eager, balanced, maximum };
inline constexpr std::string_view compute_modes[] = {"eager", "balanced", "maximum"};
constexpr std::span<const std::string_view> option_choices(compute_mode) { return compute_modes; }

/// What a session may ask of the provider.
struct provider_options {
  unsigned device_id = 0;
  std::string target = "cpu";  ///< as in `named_target`
  unsigned threads = 0;        ///< of the pool that the session's partitions share; 0: one for each processor
  bool fp16 = false, bf16 = false, fp8 = false, int8 = false;
  std::string calibration_table;   ///< of int8 and fp8: a file in any form (docs/quantize.md)
  std::string calibration_folder;  ///< of a table whose name is relative
  bool native_table = false;       ///< what form the caller takes the table for; the content decides
  bool save_compiled = false, load_compiled = false;
  std::string save_path = "./compiled_model.mxr", load_path = "./compiled_model.mxr";
  bool exhaustive_tune = false;
  onnxruntime::compute_mode compute_mode = compute_mode::balanced;
  std::string tuning_file;      ///< `compile_options::tuning_file`
  std::uint64_t mem_limit = 0;  ///< bytes; 0 and the greatest number: none
  arena_growth arena = arena_growth::next_power_of_two;
  void *external_alloc = nullptr, *external_free = nullptr, *external_empty_cache = nullptr;
  std::string cache_dir;         ///< a folder of compiled programs; empty: none
  unsigned cache_limit = 10240;  ///< MiB that the folder may hold
  bool disable_caching = false, force_recompile = false;
  unsigned max_dynamic_batch = 0, max_compiled_models = 1;
  std::string compile_batches;  ///< "1,4,8"
  bool precompile_at_load = true;
  bool dump_model_ops = false, dump_context_model = false;
  bool cpu_control_flow = true;  ///< whether If, Loop and Scan are claimed
  unsigned least_nodes = 1;      ///< partitions of fewer nodes are left to other providers
  bool has_user_stream = false;
  void* user_stream = nullptr;  ///< of the GPU
  bool static_pad_seq = false;
  unsigned static_pad_seq_len = 0;
  std::string static_pad_inputs, static_pad_outputs, model_arch;
  bool coalesce_io = false, hip_graph = false, mlss_ops = false;

  bool uses_gpu() const { return target == "gpu" || target == "hip"; }
  bool tunes() const { return exhaustive_tune || compute_mode == compute_mode::maximum; }
  /// The calibration table's file.
  std::string table_file() const;
  /// The batch sizes that get a program of their own, ascending.
  std::vector<std::int64_t> batches() const;
};

/// An option: its row, the other names that programs know it by, and the environment variables that override it. The
/// row's name is the seed documentation's.
struct provider_option : option_row<provider_options> {
  std::vector<std::string_view> also{};
  std::vector<std::string_view> environment{};
};

/// All options, in the order that the documentation shows.
std::span<const provider_option> provider_option_table();

/// The value of an environment variable, null where it is not set.
using environment = std::function<const char*(const char* name)>;

/// Reads options by any of their names; the environment comes before them. A name that is none is a `not_found` error
/// that lists the known ones, the nearest first; one option by two names with two values, options that contradict each
/// other, int8 without a table and a value that is none of the option's are `invalid_argument` errors, and a value
/// that asks for what kiln does not do is an `unsupported` one that says why.
/// Options that nobody gives have the values of `defaults`.
provider_options read_provider_options(std::span<const std::pair<std::string, std::string>> given,
                                       const environment& variables, provider_options defaults = {});

/// Contradictions, and what kiln does not do, as `read_provider_options` says.
void check_provider_options(const provider_options& o);

/// The table as JSON: an array of objects with `name`, `also`, `environment`, `kind`, `default`, `expected`, `help`.
std::string provider_option_table_json();
/// Every option's value as JSON: an object of texts by name. Flags are "1" and "0".
std::string provider_options_json(const provider_options& o);

}  // namespace kiln::onnxruntime
