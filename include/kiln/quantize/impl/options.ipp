#include "kiln/quantize/options.hpp"

#include <array>

#include "kiln/quantize/overrides.hpp"

namespace kiln {

namespace detail {
constexpr auto dtype_words = [] {
  std::array<std::string_view, all_dtypes> out{};
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = to_string(static_cast<dtype>(k));
  return out;
}();
// JSON.
template <> struct option_value<quantize::value_overrides> {
  static constexpr option_kind kind = option_kind::text;
  static std::string write(const quantize::value_overrides& v) { return quantize::overrides_text(v); }
  static bool read(const option_info& info, quantize::value_overrides& to, std::string_view text) {
    to = quantize::parse_overrides(text, "option '" + std::string(info.name) + "'");
    return true;
  }
};
}  // namespace detail

// Beside the enum, where rows look for it.
constexpr std::span<const std::string_view> option_choices(dtype) { return detail::dtype_words; }

}  // namespace kiln

namespace kiln::quantize {
namespace {

template <auto& All>
constexpr auto words_of = [] {
  std::array<std::string_view, std::size(All)> out{};
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = to_string(All[k]);
  return out;
}();

}  // namespace

// Beside the enums, where rows look for them.
constexpr std::span<const std::string_view> option_choices(precision) { return words_of<precisions>; }
constexpr std::span<const std::string_view> option_choices(calibration_method) { return words_of<calibration_methods>; }
constexpr std::span<const std::string_view> option_choices(weight_method) { return words_of<weight_methods>; }

namespace {

using how = precision_options;
using options = quantizer_options;

constexpr bool always(precision) { return true; }
constexpr bool with_ranges(precision p) { return takes_ranges(p); }
constexpr bool static_integers(precision p) { return p == precision::int8; }
constexpr bool dynamic_integers(precision p) { return p == precision::dynamic_int8; }
constexpr bool static_products(precision p) { return p == precision::int8 || p == precision::fp8; }
constexpr bool products(precision p) { return static_products(p) || p == precision::dynamic_int8; }
constexpr bool floats_of_eight_bits(precision p) { return p == precision::fp8; }
constexpr bool integers(precision p) { return p == precision::int8 || p == precision::dynamic_int8; }
constexpr bool blocks(precision p) { return p == precision::int4; }
constexpr bool named_nodes(precision p) { return products(p) || blocks(p) || info_of(p).blocks; }

constexpr quantizer_option rows[] = {
    {make_option<&options::how, &how::to>("precision", "the precision"), always},
    {make_option<&options::ops>("ops", "the ops that it concerns; none: all that the precision concerns"), always},
    {make_option<&options::exclude>("exclude", "nodes that stay as they are, by their names"), named_nodes},
    {make_option<&options::only>("only", "nodes that alone are quantized, by their names"), static_products},
    {make_option<&options::calibration, &calibration_options::method>("method", "how a range is chosen from values"),
     with_ranges},
    {make_option<&options::calibration, &calibration_options::percentile>("percentile",
                                                                          "what the method percentile keeps"),
     with_ranges},
    {make_option<&options::calibration, &calibration_options::bins>(
         "bins", "of histograms; 0: 128 of entropy, else 2048", std::uint64_t{1} << 20),
     with_ranges},
    {make_option<&options::calibration, &calibration_options::quantized_bins>(
         "quantized_bins", "of the method entropy: bins after quantization", std::uint64_t{1} << 20),
     with_ranges},
    {make_option<&options::calibration, &calibration_options::symmetric>(
         "symmetric_ranges", "ranges stand around 0; empty: of percentile alone"),
     with_ranges},
    {make_option<&options::calibration, &calibration_options::moving_average>(
         "moving_average", "of the method min_max: the mean of the samples' extremes"),
     with_ranges},
    {make_option<&options::calibration, &calibration_options::averaging_constant>(
         "averaging_constant", "of a moving average: the weight of the newest batch"),
     with_ranges},
    {make_option<&options::calibration, &calibration_options::ignore_infinities>("ignore_infinities",
                                                                                 "leave out the infinities of masks"),
     with_ranges},
    {make_option<&options::how, &how::int8, &int8_options::symmetric>("symmetric_activations",
                                                                      "zero points stand in the middle of the codes"),
     static_integers},
    {make_option<&options::how, &how::int8, &int8_options::weights, &weight_quantization::per_channel>(
         "per_channel", "a scale for each output channel of weights, else one for all"),
     products},
    {make_option<&options::how, &how::int8, &int8_options::reduced>(
         "reduce_range", "half the codes, for processors whose products of bytes saturate"),
     integers},
    {make_option<&options::how, &how::int8, &int8_options::activations>(
         "activation_type", "of values that products read: u8, i8, u16, i16, u4 or i4"),
     static_integers},
    {make_option<&options::how, &how::int8, &int8_options::weights, &weight_quantization::type>(
         "weight_type", "of weights: i8, u8, i16, u16, i4 or u4"),
     static_integers},
    {make_option<&options::how, &how::int8, &int8_options::weights, &weight_quantization::symmetric>(
         "symmetric_weights", "weights have no zero points"),
     static_integers},
    {make_option<&options::how, &how::int8, &int8_options::weights, &weight_quantization::from_floats>(
         "float_weights", "weights stay floats that the program quantizes, for tools that train them"),
     static_integers},
    {make_option<&options::how, &how::int8, &int8_options::least_width>("minimum_range",
                                                                        "ranges are widened to this at least"),
     static_integers},
    {make_option<&options::how, &how::int8, &int8_options::bias>("quantize_bias",
                                                                 "biases are i32, of the scales' product"),
     static_integers},
    {make_option<&options::how, &how::int8, &int8_options::products_of_values>(
         "all_products", "products of two values, too, neither of them weights"),
     static_products},
    {make_option<&options::how, &how::int8, &int8_options::results>(
         "results", "results of products and of what follows are integers, too"),
     static_integers},
    {make_option<&options::how, &how::int8, &int8_options::dynamic_convolutions>(
         "convolutions", "convolutions are quantized, too, by ranges that each run finds"),
     dynamic_integers},
    {make_option<&options::how, &how::int8, &int8_options::exclude_results_of>("exclude_results_of",
                                                                               "ops whose results stay in floats"),
     static_integers},
    {make_option<&options::how, &how::int8, &int8_options::overrides>(
         "overrides", "JSON: by a value's name an object of type, symmetric, reduced, low, high, or scale and zero"),
     static_integers},
    {make_option<&options::smooth_alpha>("smooth_quant",
                                         "how much of the ranges of channels first moves to weights, from 0 to 1"),
     static_products},
    {make_option<&options::fold_smoothing>("smooth_quant_folding",
                                           "divide the weights and norms that make a value, and not the value"),
     static_products},
    {make_option<&options::how, &how::fp8, &fp8_options::type>("type",
                                                               "of fp8: f8e4m3fn, f8e5m2, f8e4m3fnuz or f8e5m2fnuz"),
     floats_of_eight_bits},
    {make_option<&options::min_sqnr>("min_sqnr", "decibels that outputs keep: what costs more stays in floats"),
     static_integers},
    {make_option<&options::how, &how::int4, &int4_options::format, &block_format::bits>(
         "bits", "of a weight in blocks: 2, 4 or 8", 8),
     blocks},
    {make_option<&options::how, &how::int4, &int4_options::format, &block_format::block>(
         "block_size", "weights of a block, a power of two", 65536),
     blocks},
    {make_option<&options::how, &how::int4, &int4_options::format, &block_format::symmetric>(
         "symmetric", "blocks have no zero points"),
     blocks},
    {make_option<&options::how, &how::int4, &int4_options::method>("weight_method",
                                                                   "how weights in blocks are rounded"),
     blocks},
    {make_option<&options::how, &how::int4, &int4_options::damping>("damping",
                                                                    "of the weight method gptq, to keep it stable"),
     blocks},
    {make_option<&options::how, &how::int4, &int4_options::bytes_suffice>(
         "accuracy_level_4", "products with weights in blocks may round their other operand to 8 bits"),
     blocks},
};

constexpr auto plain_rows = [] {
  std::array<option_row<quantizer_options>, std::size(rows)> out{};
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = rows[k];
  return out;
}();
static_assert(is_well_formed<quantizer_options>(plain_rows));

}  // namespace

std::span<const quantizer_option> quantizer_option_table() { return rows; }

void set_option(quantizer_options& to, std::string_view name, std::string_view value) {
  find_option<quantizer_options>(plain_rows, name).set(to, value);
}

std::string get_option(const quantizer_options& from, std::string_view name) {
  return find_option<quantizer_options>(plain_rows, name).get(from);
}

void check_use(const quantizer_options& o) {
  if (!o.fold_smoothing && !o.smooth_alpha)
    raise(errc::invalid_argument, "option 'smooth_quant_folding' is of 'smooth_quant', which is not set");
  for (const quantizer_option& row : rows)
    if (!row.serves(o.how.to) && row.get(o) != row.default_text())
      raise(errc::invalid_argument, "option '" + std::string(row.name) + "' means nothing to " +
                                        std::string(to_string(o.how.to)) + ": found '" + row.get(o) + "'");
}

}  // namespace kiln::quantize
