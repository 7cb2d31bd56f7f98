#include "kiln/quantize/weight_type.hpp"

#include "kiln/quantize/impl/named.hpp"
#include "kiln/quantize/impl/stored_form.hpp"

namespace kiln::quantize {

weight_type weight_type_named(std::string_view name) {
  return detail::named(name, weight_types, "a type of weights in blocks");
}

stored_matrix stored(std::span<const float> weights, std::int64_t rows, weight_type as, thread_pool& pool) {
  const auto whole = [&](std::int64_t bits) {
    return detail::stored(in_blocks(weights, rows, {.bits = bits}, weight_method::rtn, pool));
  };
  const auto real = [&](float_format f) { return detail::stored(in_float_blocks(weights, rows, f, pool)); };
  switch (as) {
    case weight_type::int4: return whole(4);
    case weight_type::int8: return whole(8);
    case weight_type::mxfp8: return real(float_format::mxfp8);
    case weight_type::mxfp4: return real(float_format::mxfp4);
    case weight_type::nvfp4: break;
  }
  return real(float_format::nvfp4);
}

}  // namespace kiln::quantize
