#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kiln/onnx/export.hpp"
#include "kiln/quantize/quantizer.hpp"
#include "kiln/quantize/table.hpp"
#include "kiln/runtime/executable.hpp"
#include "kiln/tensorflow/import.hpp"

namespace kiln::driver {

/// The flag of verbs that compile for a run in a precision.
inline std::string precision_flag(quantize::precision p) {
  return p == quantize::precision::int4 ? "--int4-weights" : "--" + std::string(to_string(p));
}

/// What every verb that compiles a model takes.
struct model_options {
  std::string model;             ///< path of an ONNX or TFLite file, or of a graph or SavedModel
  std::string target = "eigen";  ///< reference, eigen, hip, …
  std::vector<std::pair<std::string, std::int64_t>> dims;                 ///< --dim NAME=N
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> shapes;  ///< --shape INPUT=1,3,224,224
  std::vector<std::pair<std::string, std::string>> inputs;                ///< --input NAME=FILE
  std::uint64_t seed = 1;                                                 ///< of the random inputs
  tensorflow::data_format layout = tensorflow::data_format::nhwc;         ///< --nhwc, --nchw
  std::int64_t batch = 0;                                                 ///< --batch N
  std::vector<std::string> output_names;                                  ///< --output-names A B
  std::string signature, tag;                                             ///< --signature NAME, --tag NAME
  bool json = false;
  compile_options compiling;                                        ///< compile_flags.hpp
  quantize::precision precision = quantize::precision::as_written;  ///< --fp16, --bf16, --fp8, ...
  std::string table;                                                ///< --table FILE, of ranges
};

/// When two numbers count as equal: |x - y| <= atol + rtol * |y|, y being the expected one; compare.hpp adds to it.
struct tolerance {
  double rtol = 1e-3;
  double atol = 1e-7;
};

struct run_command : model_options {
  std::string output_dir;  ///< empty: nothing is written
};

struct test_command : model_options {
  std::vector<std::string> folders;
  tolerance allowed;
  std::string save;               ///< --save OUT; empty: nothing is written
  double timeout_seconds = 1800;  ///< of one case; 0: none
};

struct perf_command : model_options {
  double budget_ms = 1500;
  bool per_kernel = false;
  std::string trace;  ///< a file; empty: none
};

struct show_command : model_options {
  std::string svg;  ///< --svg FILE; empty: nothing is written
};

struct compile_command : model_options {
  std::string file;       ///< -o FILE
  bool portable = false;  ///< with the source
};

struct cache_command {
  std::string folder;
  std::int64_t limit_mib = -1;  ///< --limit; -1: nothing is removed
  bool json = false;
};

/// `precision` is what --to says.
struct quantize_command : model_options {
  std::string file;               ///< -o FILE
  std::vector<std::string> data;  ///< --data DIR
  std::string save_table;         ///< --save-table FILE; empty: nothing is written
  quantize::table_form table_form = quantize::table_form::json;
  onnx::quantized_form form = onnx::quantized_form::usual;  ///< --format
  bool report = false;
  std::string svg;  ///< --svg FILE, a picture of the report; empty: none
  quantize::quantizer_options how;
  std::string overrides;  ///< --overrides FILE; empty: none
};

struct verify_command : model_options {
  tolerance allowed;
};

// Verbs return the program's exit status (0 fine, 1 a comparison failed) and throw for bad input (status 2).
int run(const run_command& c);
int test(const test_command& c);
int perf(const perf_command& c);
int show(const show_command& c);
int verify(const verify_command& c);
int compile(const compile_command& c);
int cache(const cache_command& c);
int quantize(const quantize_command& c);
int ops(bool json);
/// How a list is printed.
enum class listing { text, json, markdown };
int ops_onnx(listing how);
int ops_tensorflow(listing how);
int ops_tflite(listing how);
int options(listing how);
/// Writes the model, as imported, as ONNX.
int export_onnx(const model_options& c, const std::string& path);
int export_cpp(const model_options& c, const std::string& folder, std::string name);

}  // namespace kiln::driver
