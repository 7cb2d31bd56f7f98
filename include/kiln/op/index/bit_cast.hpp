#pragma once
#include <bit>

#include "kiln/op/index/common.hpp"

namespace kiln::op {

/// The operand's bits read as another dtype of the same width (ONNX BitCast).
struct bit_cast {
  dtype to = dtype::i32;
  static constexpr auto types = dtypes::convertible;

  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 1) return detail::wrong_operand_count(1, in.size());
    for (const dtype t : {in[0].type, to})
      if (!types.contains(t)) return fault::of(errc::unsupported, "dtype", "a number or bool", t);
    if (bits_of(in[0].type) != bits_of(to))
      return fault::of(errc::shape_mismatch, "both dtypes have one width", in[0].type, to);
    return shape{to, in[0].lens};
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto in = e.template in<T>(0);
    visit_compute(to, [&]<class R>(type_tag<R>) {
      const auto out = e.template out<R>();
      visit_storage(e.in_shape(0).type, [&]<class From>(type_tag<From>) {
        visit_storage(to, [&]<class To>(type_tag<To>) {
          if constexpr (sizeof(From) == sizeof(To) && computes_in<From, T> && computes_in<To, R>)
            for (std::int64_t k = 0, n = in.size(); k < n; ++k)
              out[k] = convert_value<R>(reinterpreted<To>(convert_value<From>(in[k])));
        });
      });
    });
  }

 private:
  template <class Stored, class Computed> static constexpr bool computes_in = computes<Computed>(dtype_of<Stored>);
  // a bool has one bit that means anything
  template <class To, class From> static constexpr To reinterpreted(From v) {
    if constexpr (std::is_same_v<To, bool>)
      return std::bit_cast<std::uint8_t>(v) != 0;
    else
      return std::bit_cast<To>(v);
  }
};

}  // namespace kiln::op
