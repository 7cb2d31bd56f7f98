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

}  // namespace

void quantize_fp16(program& p, const std::vector<std::string>& names) { narrow(p, quantize::precision::f16, names); }
void quantize_bf16(program& p, const std::vector<std::string>& names) { narrow(p, quantize::precision::bf16, names); }

void quantize_int8(program& p, const target& to, const quantize_int8_options& options) {
  check_open(p);
  if (options.calibration.empty())
    raise(errc::invalid_argument, "quantization to int8 has calibration data: found no sample");
  quantize::int8_options how;
  how.activations = dtype::i8;
  how.symmetric = true;
  for (const std::string& name : options.op_names)
    if (std::find(how.ops.begin(), how.ops.end(), name) == how.ops.end())
      raise(errc::invalid_argument, "ops that are quantized to int8 are dot and convolution: found '" + name + "'");
  if (!options.op_names.empty()) how.ops = options.op_names;
  kiln::program graph = quantize::prepared(p.graph());
  quantize::calibration_options statistics;
  statistics.symmetric = true;
  const auto watched = quantize::values_to_quantize(graph, how);
  if (watched.empty()) {
    quantize::quantized_program same{p.graph(), pass_note("quantize")};
    same.note.remark(
        text("int8 is of dots and convolutions of f32 with constant weights: found none, as after "
             "quantize_fp16() or quantize_bf16(), so that the program stays as it is"));
    return take(p, std::move(same));
  }
  quantize::calibrator ranges(graph, watched, *named_target(to.name()), statistics);
  for (const parameter_map& sample : options.calibration) ranges.add(sample_of(sample));
  take(p, quantize::to_int8(std::move(graph), ranges.finish(), how));
}

void quantize_fp8(program&, const target&, const quantize_fp8_options&) {
  raise(errc::unsupported,
        "static quantization to fp8 is not in this version: a model that is quantized already "
        "(QuantizeLinear, DequantizeLinear) runs as it is");
}

}  // namespace kiln::migraphx
