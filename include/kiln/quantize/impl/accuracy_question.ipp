#include <algorithm>

#include "kiln/pass/insert_quantization.hpp"
#include "kiln/quantize/accuracy.hpp"

namespace kiln::quantize {
namespace {

// A value that the quantized program rounds to codes, and the floats that these stand for.
struct rounded_value {
  value_id of, real;
  std::optional<tensor_quantization> how;
};

std::vector<rounded_value> rounded_values(const module_graph& m) {
  std::vector<rounded_value> out;
  for (std::uint32_t i = 0; i < m.size(); ++i) {
    if (m[i].kind != instruction_kind::op || !m[i].op.is<op::dequantize_linear>()) continue;
    const auto& stored = m.producer(m[i].inputs[0]);
    if (stored.kind != instruction_kind::op || !stored.op.is<op::quantize_linear>()) continue;
    rounded_value found{stored.inputs[0], {i, 0}, {}};
    const auto scale = kiln::detail::constant_number(m, m[i].inputs[1]);
    const auto zero = m[i].inputs.size() < 3 ? std::optional(0.0) : kiln::detail::constant_number(m, m[i].inputs[2]);
    const dtype type = m.shape_of(m[i].inputs[0]).type;
    if (scale && zero && (is_float8(type) || codes_of({type})))
      found.how = tensor_quantization{{type}, {static_cast<float>(*scale), static_cast<std::int64_t>(*zero)}};
    out.push_back(std::move(found));
  }
  return out;
}

}  // namespace

accuracy_question question_of(const program& reference, const program& quantized) {
  accuracy_question out{reference, quantized, float_values(reference), float_values(quantized), {}};
  const auto at = [&](value_id v) {
    return std::find_if(out.in_quantized.begin(), out.in_quantized.end(),
                        [&](const watched_value& w) { return w.value == v; });
  };
  for (const rounded_value& r : rounded_values(quantized.main())) {
    const auto exact = at(r.of), real = at(r.real);
    if (exact == out.in_quantized.end() || real == out.in_quantized.end()) continue;
    // the floats have the value's name, unless an input or output keeps it
    const bool kept = std::any_of(out.in_reference.begin(), out.in_reference.end(),
                                  [&](const watched_value& w) { return w.name == exact->name; });
    if (kept) {
      exact->value = r.real;
      if (r.how) out.quantizations[exact->name] = *r.how;
    } else if (r.how) {
      out.quantizations[real->name] = *r.how;
    }
  }
  return out;
}

}  // namespace kiln::quantize
