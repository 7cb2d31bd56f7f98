#include "kiln/interface/migraphx/quantize.hpp"

#include <algorithm>

#include "kiln/interface/named_target.hpp"
#include "kiln/quantize/calibration.hpp"
#include "kiln/quantize/precision.hpp"

namespace kiln::migraphx {

namespace {

void check_open(const program& p) {
  if (p.is_compiled()) raise(errc::invalid_argument, "a program is quantized before it is compiled");
}

void take(program& p, quantize::quantized_program made) {
  std::vector<std::string> remarks;
  for (const text& said : made.note.remarks) remarks.push_back("quantize: " + said.str());
  p.replace(std::move(made.graph), remarks);
}

void narrow(program& p, quantize::precision to, const std::vector<std::string>& names) {
  check_open(p);
  quantize::precision_options options;
  options.to = to;
  if (std::find(names.begin(), names.end(), "all") == names.end()) {
    if (names.empty()) return;  // the names of nothing
    options.ops = names;
  }
  take(p, quantize::with_precision(p.graph(), options));
}

quantize::sample sample_of(const parameter_map& from) {
  quantize::sample out;
  for (const auto& [name, a] : from) out[name] = a.value();
  return out;
}

// By the greatest magnitudes that samples show.
void quantize_by_samples(program& p, const target& to, const std::vector<parameter_map>& samples,
                         quantize::precision_options how) {
  const std::string name(to_string(how.to));
  check_open(p);
  if (samples.empty())
    raise(errc::invalid_argument, "quantization to " + name + " has calibration data: found no sample");
  kiln::program graph = quantize::prepared(p.graph());
  quantize::calibration_options statistics;
  statistics.symmetric = true;
  const auto watched = quantize::values_with_ranges(graph, how);
  if (watched.empty()) {
    quantize::quantized_program same{p.graph(), pass_note("quantize")};
    same.note.remark(text(name + " is of dots and convolutions of f32 with constant weights: found none, as after "
                                 "quantize_fp16() or quantize_bf16(), so that the program stays as it is"));
    return take(p, std::move(same));
  }
  quantize::calibrator ranges(graph, watched, *named_target(to.name()), statistics);
  for (const parameter_map& sample : samples) ranges.add(sample_of(sample));
  how.known = ranges.finish();
  how.is_prepared = true;
  take(p, quantize::with_precision(std::move(graph), how));
}

}  // namespace

void quantize_fp16(program& p, const std::vector<std::string>& names) { narrow(p, quantize::precision::f16, names); }
void quantize_bf16(program& p, const std::vector<std::string>& names) { narrow(p, quantize::precision::bf16, names); }

void quantize_int8(program& p, const target& to, const quantize_int8_options& options) {
  quantize::precision_options how{.to = quantize::precision::int8};
  how.int8.activations = dtype::i8;
  how.int8.symmetric = true;
  for (const std::string& name : options.op_names)
    if (std::find(how.int8.ops.begin(), how.int8.ops.end(), name) == how.int8.ops.end())
      raise(errc::invalid_argument, "ops that are quantized to int8 are dot and convolution: found '" + name + "'");
  if (!options.op_names.empty()) how.int8.ops = options.op_names;
  quantize_by_samples(p, to, options.calibration, how);
}

void quantize_fp8(program& p, const target& to, const quantize_fp8_options& options) {
  quantize_by_samples(p, to, options.calibration, {.to = quantize::precision::fp8});
}

}  // namespace kiln::migraphx
