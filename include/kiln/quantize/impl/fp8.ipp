#include "kiln/quantize/fp8.hpp"

#include "kiln/quantize/impl/named.hpp"
#include "kiln/quantize/impl/static_quantization.hpp"

namespace kiln::quantize {
namespace {

int8_options static_options(const fp8_options& o) {
  if (!is_float8(o.type))
    raise(fault::of(errc::invalid_argument, "fp8 is of a type", "f8e4m3fn, f8e5m2, f8e4m3fnuz or f8e5m2fnuz", o.type));
  int8_options out;
  out.activations = o.type;
  out.weights = {.type = o.type, .per_channel = o.per_channel};
  out.products_of_values = o.products_of_values;
  out.ops = o.ops, out.exclude = o.exclude, out.only = o.only;
  return out;
}

}  // namespace

dtype float8_named(std::string_view name) { return detail::named(name, float8_types, "type of fp8"); }

std::vector<watched_value> values_to_quantize(const program& p, const fp8_options& options) {
  return values_to_quantize(p, static_options(options));
}

quantized_program to_fp8(program p, const ranges& known, const fp8_options& options) {
  return detail::quantize_statically(std::move(p), known, static_options(options));
}

}  // namespace kiln::quantize
