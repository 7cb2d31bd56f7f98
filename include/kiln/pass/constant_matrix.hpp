#pragma once
#include "kiln/pass/constants.hpp"

namespace kiln::detail {

/// What a value views, through any chain of views.
template <class R> constexpr value_id origin_of(const R& r, value_id v) {
  while (r.is_kind(v, op_kind::view)) v = r.input(v, 0);
  return v;
}

/// A layout without the leading dims that only repeat its last two.
constexpr layout without_repeats(layout at) {
  while (at.lens.size() > 2 && !varies(at, 0)) {
    at.lens.erase(0);
    at.strides.erase(0);
  }
  return at;
}

/// A value with the dims of another that only repeats it.
template <class R> constexpr value_id repeated(R& r, value_id v, const dims& lens) {
  return r.shape_of(v).lens == lens ? v : r.add(op::multibroadcast{lens}, {v});
}

}  // namespace kiln::detail
