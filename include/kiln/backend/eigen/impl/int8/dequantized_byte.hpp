#pragma once
#include <cmath>

#include "kiln/backend/eigen/impl/int8/integer_epilogue.hpp"
#include "kiln/pass/fusion_body.hpp"

/// How bodies over bytes begin, for one unit.
namespace kiln::eigen::integer_epilogues {

// Follows a byte parameter, less its zero point, to the float that it becomes.
struct dequantized_byte {
  std::uint32_t at = 0;
  double zero = 0;

  static std::optional<dequantized_byte> of(const module_graph& m, std::uint32_t parameter) {
    dequantized_byte out{parameter};
    while (const auto user = only_user(m, out.at)) {
      const auto& i = m[*user];
      // bytes and bools would wrap and lose what they hold
      const dtype t = i.results[0].type;
      if (i.op.kind() == op_kind::pointwise && t != dtype::i32 && t != dtype::f32) return std::nullopt;
      if ((i.op.is<op::sub>() || i.op.is<op::add>()) && i.inputs[0].instruction == out.at) {
        const auto l = repeated_constant(m, i.inputs[1]);
        const auto x = l ? uniform_value(*l) : std::nullopt;
        if (!x) break;
        if (*x != std::floor(*x) || std::abs(*x) > 255) return std::nullopt;
        out.zero += i.op.is<op::sub>() ? *x : -*x;
      } else if (!i.op.is<op::convert>()) {
        break;
      }
      out.at = *user;
    }
    return m.shape_of({out.at, 0}).type == dtype::f32 ? std::optional(out) : std::nullopt;
  }
};

}  // namespace kiln::eigen::integer_epilogues
