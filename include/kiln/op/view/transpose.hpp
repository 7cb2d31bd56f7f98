#pragma once
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Permutes dims: result dim i is input dim permutation[i]; an empty permutation reverses them.
struct transpose {
  ints permutation{};

  constexpr result<layout> map(const layout& in) const {
    const std::size_t rank = in.lens.size();
    if (!permutation.empty() && permutation.size() != rank)
      return fault::of(errc::shape_mismatch, "a permutation has as many axes as the input has dims", rank,
                       permutation.size());
    layout out;
    out.offset = in.offset;
    inline_vector<bool, max_rank> seen(rank, false);
    for (std::size_t i = 0; i < rank; ++i) {
      const std::int64_t axis =
          permutation.empty() ? static_cast<std::int64_t>(rank - 1 - i) : normal_axis(permutation[i], rank);
      if (axis < 0 || seen[static_cast<std::size_t>(axis)])
        return fault::of(errc::shape_mismatch, "a permutation names each axis once", "a permutation", permutation[i]);
      seen[static_cast<std::size_t>(axis)] = true;
      out.lens.push_back(in.lens[static_cast<std::size_t>(axis)]);
      out.strides.push_back(in.strides[static_cast<std::size_t>(axis)]);
    }
    return out;
  }
  constexpr transpose normalized(std::span<const shape> in) const {
    const std::size_t rank = in.empty() ? 0 : in[0].rank();
    transpose t;
    for (std::size_t i = 0; i < rank; ++i)
      t.permutation.push_back(permutation.empty() ? static_cast<std::int64_t>(rank - 1 - i)
                                                  : normal_axis(permutation[i], rank));
    return t;
  }
};

}  // namespace kiln::op
