#include "quantize_flags.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kiln::driver {

namespace {

// One of some types, by its name.
CLI::Option* type_choice(CLI::App& verb, const std::string& option, dtype& into, std::span<const dtype> all,
                         const std::string& help) {
  std::vector<std::string> names;
  for (const dtype t : all) names.emplace_back(to_string(t));
  return verb
      .add_option_function<std::string>(
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

limited_options add_static_flags(CLI::App& verb, quantize_command& q) {
  using enum quantize::precision;
  static constexpr dtype integers[] = {dtype::u8, dtype::i8, dtype::u16, dtype::i16, dtype::u4, dtype::i4};
  quantize::int8_options& o = q.int8;
  const auto list = [&](const char* option, std::vector<std::string>& into, const char* help, const char* form) {
    return verb.add_option(option, into, help)
        ->type_name(form)
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->allow_extra_args(false);
  };
  return {
      {verb.add_flag("--symmetric-activations", o.symmetric, "zero points stand in the middle of the codes"), {int8}},
      {type_choice(verb, "--activation-type", o.activations, integers, "of values that products read"), {int8}},
      {type_choice(verb, "--weight-type", o.weights.type, integers, "of weights"), {int8}},
      {verb.add_flag(
           "--asymmetric-weights", [&o](std::int64_t) { o.weights.symmetric = false; }, "weights have zero points"),
       {int8}},
      {verb.add_flag("--float-weights", o.weights.from_floats,
                     "write weights as floats that QuantizeLinear reads, for tools that train them"),
       {int8}},
      {verb.add_flag("--per-channel,!--no-per-channel", o.weights.per_channel,
                     "a scale for each channel of weights, as is the default, or one for all"),
       {int8, dynamic_int8, fp8}},
      {verb.add_flag("--reduce-range", o.reduced, "half the codes, for processors whose products of bytes saturate"),
       {int8, dynamic_int8}},
      {verb.add_option("--minimum-range", o.least_width, "ranges are widened to this at least"), {int8}},
      {verb.add_flag("--quantize-bias", o.bias, "biases are i32, of the scales' product"), {int8}},
      {verb.add_flag("--all-products", o.products_of_values, "products of two values, too, neither of them weights"),
       {int8, fp8}},
      {list("--only", o.only, "a dot or convolution that alone is quantized; may be repeated", "NODE"), {int8, fp8}},
      {verb.add_option("--exclude-results-of", o.exclude_results_of, "ops whose results stay in floats: A,B")
           ->delimiter(',')
           ->type_name("OPS"),
       {int8}},
      {verb.add_option("--overrides", q.overrides,
                       "JSON: for values by name type, symmetric, reduced, low, high, or scale and zero")
           ->type_name("FILE"),
       {int8}},
      {verb.add_option_function<double>(
               "--smooth-quant", [&q](double alpha) { q.smooth = {.alpha = alpha}; },
               "first move ranges from values to weights; how much, from 0 to 1, such as 0.5")
           ->type_name("ALPHA"),
       {int8, fp8}},
      {verb.add_flag("--no-smooth-quant-folding", q.no_smooth_folding,
                     "divide values, not the weights and norms that make them"),
       {int8, fp8}},
      {type_choice(verb, "--fp8-type", q.fp8.type, quantize::float8_types, "of values and weights of fp8"), {fp8}},
      {verb.add_flag("--convolutions", o.dynamic_convolutions, "convolutions, too"), {dynamic_int8}},
      {verb.add_option("--min-sqnr", q.min_sqnr, "decibels that outputs keep: what costs more stays in floats"),
       {int8}},
  };
}

void check_limits(const limited_options& all, quantize::precision to) {
  for (const limited_option& l : all)
    if (l.option->count() != 0 && std::find(l.of.begin(), l.of.end(), to) == l.of.end())
      throw CLI::ValidationError(l.option->get_name(), fmt::format("means nothing to --to {}", to_string(to)));
}

}  // namespace kiln::driver
