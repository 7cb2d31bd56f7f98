#include "kiln/interface/migraphx/quantize.hpp"

#include <algorithm>

#include "kiln/interface/named_target.hpp"
#include "kiln/quantize/quantizer.hpp"
#include "kiln/quantize/table.hpp"

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

// Gives all samples, as often as asked.
quantize::repeated_data samples_of(const std::vector<parameter_map>& all) {
  if (all.empty()) return {};
  return [&all] {
    return [&all, next = std::size_t{0}]() mutable -> std::optional<quantize::sample> {
      if (next == all.size()) return std::nullopt;
      quantize::sample out;
      for (const auto& [name, a] : all[next]) out[name] = a.value();
      ++next;
      return out;
    };
  };
}

// By the greatest magnitudes that samples show or a table says.
void quantize_by_ranges(program& p, const target& to, const std::vector<parameter_map>& samples,
                        const std::filesystem::path& table, quantize::quantizer_options options) {
  const std::string name(to_string(options.how.to));
  check_open(p);
  if (samples.empty() && table.empty())
    raise(errc::invalid_argument, "quantization to " + name + " has calibration data: found no sample and no table");
  options.calibration.symmetric = true;
  const std::shared_ptr<const kiln::target> on = named_target(to.name());
  const quantize::quantizer made(p.graph(), options, *on);
  if (!made.concerns_values()) {
    quantize::quantized_program same{p.graph(), pass_note("quantize")};
    same.note.remark(text(name + " is of dots and convolutions of f32 with constant weights: found none, as after "
                                 "quantize_fp16() or quantize_bf16(), so that the program stays as it is"));
    return take(p, std::move(same));
  }
  take(p, made.quantize(table.empty() ? quantize::ranges{} : quantize::read_table(table), samples_of(samples)).made);
}

}  // namespace

void quantize_fp16(program& p, const std::vector<std::string>& names) { narrow(p, quantize::precision::f16, names); }
void quantize_bf16(program& p, const std::vector<std::string>& names) { narrow(p, quantize::precision::bf16, names); }

void quantize_int8(program& p, const target& to, const quantize_int8_options& options) {
  quantize::quantizer_options how;
  how.how.to = quantize::precision::int8;
  how.how.int8.activations = dtype::i8;
  how.how.int8.symmetric = true;
  const std::vector<std::string>& all = how.how.int8.ops;
  for (const std::string& name : options.op_names)
    if (std::find(all.begin(), all.end(), name) == all.end())
      raise(errc::invalid_argument, "ops that are quantized to int8 are dot and convolution: found '" + name + "'");
  how.ops = options.op_names;
  quantize_by_ranges(p, to, options.calibration, options.table, how);
}

void quantize_fp8(program& p, const target& to, const quantize_fp8_options& options) {
  quantize::quantizer_options how;
  how.how.to = quantize::precision::fp8;
  quantize_by_ranges(p, to, options.calibration, options.table, how);
}

void quantize_int4_weights(program& p) {
  check_open(p);
  quantize::precision_options how{.to = quantize::precision::int4};
  how.int4.format.symmetric = false;
  take(p, quantize::with_precision(p.graph(), how));
}

}  // namespace kiln::migraphx
