#include "quantize_flags.hpp"

namespace kiln::driver {

namespace {

// One of some types, by its name.
void type_choice(CLI::App& verb, const std::string& option, dtype& into, std::span<const dtype> all,
                 const std::string& help) {
  std::vector<std::string> names;
  for (const dtype t : all) names.emplace_back(to_string(t));
  verb.add_option_function<std::string>(
          option,
          [&into, all](const std::string& name) {
            for (const dtype t : all)
              if (to_string(t) == name) into = t;
          },
          help)
      ->check(CLI::IsMember(names))
      ->default_str(std::string(to_string(into)));
}

}  // namespace

void add_static_flags(CLI::App& verb, quantize_command& q) {
  static constexpr dtype integers[] = {dtype::u8, dtype::i8, dtype::u16, dtype::i16, dtype::u4, dtype::i4};
  quantize::quantizer_options& all = q.how;
  quantize::int8_options& o = all.how.int8;
  verb.add_flag("--symmetric-activations", o.symmetric, "zero points stand in the middle of the codes");
  type_choice(verb, "--activation-type", o.activations, integers, "of values that products read");
  type_choice(verb, "--weight-type", o.weights.type, integers, "of weights");
  verb.add_flag(
      "--asymmetric-weights", [&o](std::int64_t) { o.weights.symmetric = false; }, "weights have zero points");
  verb.add_flag("--float-weights", o.weights.from_floats,
                "write weights as floats that QuantizeLinear reads, for tools that train them");
  verb.add_flag("--per-channel,!--no-per-channel", o.weights.per_channel,
                "a scale for each channel of weights, as is the default, or one for all");
  verb.add_flag("--reduce-range", o.reduced, "half the codes, for processors whose products of bytes saturate");
  verb.add_option("--minimum-range", o.least_width, "ranges are widened to this at least");
  verb.add_flag("--quantize-bias", o.bias, "biases are i32, of the scales' product");
  verb.add_flag("--all-products", o.products_of_values, "products of two values, too, neither of them weights");
  verb.add_option("--exclude-results-of", o.exclude_results_of, "ops whose results stay in floats: A,B")
      ->delimiter(',')
      ->type_name("OPS");
  verb.add_option("--overrides", q.overrides,
                  "JSON: for values by name type, symmetric, reduced, low, high, or scale and zero")
      ->type_name("FILE");
  verb.add_option("--smooth-quant", all.smooth_alpha,
                  "first move ranges from values to weights; how much, from 0 to 1, such as 0.5")
      ->type_name("ALPHA");
  verb.add_flag(
      "--no-smooth-quant-folding", [&all](std::int64_t) { all.fold_smoothing = false; },
      "divide values, not the weights and norms that make them");
  type_choice(verb, "--fp8-type", all.how.fp8.type, quantize::float8_types, "of values and weights of fp8");
  verb.add_flag("--convolutions", o.dynamic_convolutions, "convolutions, too");
  verb.add_option("--min-sqnr", all.min_sqnr, "decibels that outputs keep: what costs more stays in floats");
}

}  // namespace kiln::driver
