#include "kiln/quantize/quantizer.hpp"

#include "kiln/quantize/options.hpp"
#include "kiln/quantize/smooth.hpp"

namespace kiln::quantize {
namespace {

quantizer_options checked(quantizer_options o) {
  if (o.how.to == precision::as_written) raise(errc::invalid_argument, "a precision to quantize to: found none");
  check_use(o);
  return o;
}

void refuse_unused(std::string_view what, precision p) {
  raise(errc::invalid_argument, std::string(what) + " have no use: " + std::string(to_string(p)) + " needs none");
}

bool has_op(const program& p, std::string_view name) {
  for (std::uint32_t k = 0; k < p.modules(); ++k)
    for (std::uint32_t i = 0; i < p.module({k}).size(); ++i) {
      const auto& ins = p.module({k})[i];
      if (ins.kind == instruction_kind::op && ins.op.name() == name) return true;
    }
  return false;
}

// What a step that reads samples reports to.
calibration_progress step(std::string what, const quantizer_progress& progress) {
  if (!progress) return {};
  return [what = std::move(what), &progress](std::size_t samples) { progress(what, samples); };
}

// Of values, those divided and those whose makers are.
std::size_t smoothed_values(const pass_note& note) {
  std::size_t n = 0;
  for (const auto& e : note.counts.entries)
    if (e.name == "values" || e.name == "folded") n += e.count;
  return n;
}

}  // namespace

quantizer::quantizer(const program& source, quantizer_options options, const target& t, compile_options compiling)
    : options_(checked(std::move(options))),
      prepared_(quantize::prepared(source)),
      target_(&t),
      compiling_(std::move(compiling)) {
  precision_options& how = options_.how;
  how.is_prepared = true;
  how.ops = options_.ops;
  const std::vector<std::string> exclude = prepared_names(source, prepared_, options_.exclude);
  how.int8.exclude = how.int4.exclude = how.fp8.exclude = how.float_blocks.exclude = exclude;
  how.int8.only = how.fp8.only = prepared_names(source, prepared_, options_.only);
  how.fp8.per_channel = how.int8.weights.per_channel;
  how.fp8.products_of_values = how.int8.products_of_values;
  how.int4.threads = how.float_blocks.threads = compiling_.threads;
  if (options_.ops.empty()) return;
  how.int8.ops = how.int4.ops = how.fp8.ops = how.float_blocks.ops = options_.ops;
  if (how.to != precision::f16 && how.to != precision::bf16) return;
  for (const std::string& name : options_.ops)  // the other precisions know theirs
    if (!has_op(prepared_, name)) raise(errc::not_found, "the program has no op '" + name + "'");
}

bool quantizer::reads_samples(const ranges& known) const {
  return (takes_ranges(options_.how.to) && known.empty()) || rounds_by_samples() || options_.min_sqnr;
}

ranges quantizer::ranges_of(const program& p, const calibration_data& data, const quantizer_progress& progress) const {
  const std::vector<watched_value> watched = values_with_ranges(p, options_.how);
  if (watched.empty()) return {};
  return quantize::calibrate(p, watched, *target_, data, options_.calibration, compiling_, 0,
                             step("calibrating", progress));
}

ranges quantizer::calibrate(const calibration_data& data, const quantizer_progress& progress) const {
  if (!takes_ranges(options_.how.to)) refuse_unused("ranges", options_.how.to);
  if (options_.smooth_alpha)
    raise(errc::invalid_argument, "ranges of smoothed values are found when the program is quantized, by samples");
  return ranges_of(prepared_, data, progress);
}

void quantizer::check_inputs(const ranges& known, bool has_samples) const {
  const precision to = options_.how.to;
  if (!known.empty() && !takes_ranges(to)) refuse_unused("ranges", to);
  if (options_.smooth_alpha && !known.empty())
    raise(errc::invalid_argument, "smoothing changes the ranges that are given: give samples alone");
  if (options_.smooth_alpha && !has_samples) raise(errc::invalid_argument, "smoothing needs samples: found none");
  if (options_.min_sqnr && !has_samples) raise(errc::invalid_argument, "min_sqnr compares on samples: found none");
  if (has_samples && !reads_samples(known))
    takes_ranges(to) ? raise(errc::invalid_argument, "samples have no use: ranges are given")
                     : refuse_unused("samples", to);
}

quantized_program quantizer::smooth(const calibration_data& data, const quantizer_progress& progress) const {
  const ranges channels = quantize::calibrate(prepared_, values_to_smooth(prepared_), *target_, data,
                                              channel_calibration(), compiling_, 0, step("smoothing", progress));
  return smoothed(prepared_, channels, {.alpha = *options_.smooth_alpha, .fold = options_.fold_smoothing});
}

quantization quantizer::quantize(const ranges& known, const repeated_data& samples,
                                 const quantizer_progress& progress) const {
  check_inputs(known, samples != nullptr);
  quantization out{{}, prepared_, known};
  std::size_t values = 0;
  if (options_.smooth_alpha) {
    quantized_program smoothed = smooth(samples(), progress);
    out.prepared = std::move(smoothed.graph);
    values = smoothed_values(smoothed.note);
  }
  precision_options how = options_.how;
  if (takes_ranges(how.to) && known.empty() && samples) out.known = ranges_of(out.prepared, samples(), progress);
  how.known = out.known;
  if (options_.min_sqnr) {
    mixed_program mixed = to_int8_within(out.prepared, *options_.min_sqnr, how.known, how.int8, samples, *target_,
                                         compiling_, step("comparing", progress));
    out.made = std::move(mixed.made);
    out.report = std::move(mixed.report);
  } else if (rounds_by_samples() && samples) {
    out.made = to_int4(out.prepared, how.int4, samples(), *target_, compiling_, step("measuring", progress));
  } else {
    out.made = with_precision(out.prepared, how);
  }
  if (values != 0) out.made.note.remark(text(std::to_string(values) + " values are smoothed"));
  return out;
}

}  // namespace kiln::quantize
