#include "kiln/quantize/quantizer.hpp"

#include "kiln/quantize/options.hpp"

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
}

ranges quantizer::calibrate(const calibration_data& data, const calibration_progress& progress) const {
  if (!takes_ranges(options_.how.to)) refuse_unused("ranges", options_.how.to);
  const std::vector<watched_value> watched = values_with_ranges(prepared_, options_.how);
  if (watched.empty()) return {};
  return quantize::calibrate(prepared_, watched, *target_, data, options_.calibration, compiling_, 0, progress);
}

quantized_program quantizer::quantize(const ranges& known, const repeated_data& samples,
                                      const calibration_progress& progress) const {
  const precision to = options_.how.to;
  if (!known.empty() && !takes_ranges(to)) refuse_unused("ranges", to);
  const bool calibrates = takes_ranges(to) && known.empty();
  if (samples && !calibrates && !rounds_by_samples() && !options_.min_sqnr)
    takes_ranges(to) ? raise(errc::invalid_argument, "samples have no use: ranges are given")
                     : refuse_unused("samples", to);
  if (options_.min_sqnr && !samples) raise(errc::invalid_argument, "min_sqnr compares on samples: found none");
  precision_options how = options_.how;
  how.known = calibrates && samples ? calibrate(samples(), progress) : known;
  if (options_.min_sqnr)
    return to_int8_within(prepared_, *options_.min_sqnr, how.known, how.int8, samples, *target_, compiling_, progress)
        .made;
  if (rounds_by_samples() && samples) return to_int4(prepared_, how.int4, samples(), *target_, compiling_, progress);
  return with_precision(prepared_, how);
}

}  // namespace kiln::quantize
