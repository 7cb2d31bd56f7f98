#pragma once
#include "kiln/op/evaluation.hpp"

namespace kiln::detail {

/// A row-major tensor around one axis: [outer, extent, inner].
struct axis_split {
  std::int64_t outer = 1, extent = 1, inner = 1;
};
constexpr axis_split split_at(const ints& lens, std::int64_t axis) {
  const std::int64_t a = normal_axis(axis, lens.size());
  axis_split s;
  for (std::size_t d = 0; d < lens.size(); ++d) {
    const auto at = static_cast<std::int64_t>(d);
    (at < a ? s.outer : at == a ? s.extent : s.inner) *= lens[d];
  }
  return s;
}
/// Elements in dims [from, to).
constexpr std::int64_t count(const ints& lens, std::size_t from, std::size_t to) {
  std::int64_t n = 1;
  for (std::size_t d = from; d < to; ++d) n *= lens[d];
  return n;
}

constexpr fault wrong_axis(std::size_t rank, std::int64_t axis) {
  return fault::of(errc::shape_mismatch, "the axis lies within the rank", rank, axis);
}
constexpr fault wrong_index_type(dtype t) {
  return fault::of(errc::shape_mismatch, "indices are integers", "an integer dtype", t);
}
constexpr fault wrong_operand_type(dtype t) {
  return fault::of(errc::unsupported, "dtype of the operand", "one that the op computes in", t);
}
constexpr fault wrong_operand_count(std::int64_t expected, std::size_t found) {
  return fault::of(errc::invalid_argument, "number of inputs", expected, found);
}
/// The faults of a one-operand op along an axis.
constexpr std::optional<fault> axis_fault(std::span<const shape> in, std::int64_t axis, dtype_set types) {
  if (in.size() != 1) return wrong_operand_count(1, in.size());
  if (!types.contains(in[0].type)) return wrong_operand_type(in[0].type);
  if (normal_axis(axis, in[0].rank()) < 0) return wrong_axis(in[0].rank(), axis);
  return std::nullopt;
}

/// The faults of an op whose second operand holds indices along an axis of the first.
constexpr std::optional<fault> indexed_fault(std::span<const shape> in, std::size_t operands, std::int64_t axis) {
  if (in.size() != operands) return wrong_operand_count(static_cast<std::int64_t>(operands), in.size());
  if (normal_axis(axis, in[0].rank()) < 0) return wrong_axis(in[0].rank(), axis);
  if (!is_integer(in[1].type)) return wrong_index_type(in[1].type);
  return std::nullopt;
}
/// Further faults of one whose indices have the data's rank, an index for each element.
constexpr std::optional<fault> elementwise_index_fault(const shape& data, const shape& indices, std::int64_t axis) {
  if (indices.rank() != data.rank())
    return fault::of(errc::shape_mismatch, "indices have the data's rank", data.rank(), indices.rank());
  for (std::size_t d = 0; d < data.rank(); ++d) {
    const auto fits = at_most(indices.lens[d], data.lens[d]);
    if (static_cast<std::int64_t>(d) != normal_axis(axis, data.rank()) && fits && !*fits)
      return fault::of(errc::shape_mismatch, "indices reach no further than the data beside the axis", data.lens,
                       indices.lens);
  }
  return std::nullopt;
}

/// Operands and result of an op that picks elements of its first operand by the indices of its second.
template <class Data, class Indices, class Out> struct indexed_tensors {
  Data data;
  Indices indices;
  Out out;
};
template <class T> constexpr auto gather_operands(Evaluation auto& e) {
  const auto data = e.template in<T>(0);
  const auto indices = e.template in<std::int64_t>(1);
  const auto out = e.template out<T>();
  return indexed_tensors<decltype(data), decltype(indices), decltype(out)>{data, indices, out};
}

/// Extents gathered piece by piece; more than max_rank of them is a `limit` fault.
struct collected_dims {
  inline_vector<dimension, 2 * max_rank + 1> lens{};
  constexpr void add(const dims& from, std::size_t first, std::size_t last) {
    for (std::size_t d = first; d < last; ++d) lens.push_back(from[d]);
  }
  constexpr result<shape> as(dtype t) const {
    if (lens.size() > max_rank)
      return fault::of(errc::limit, "the result has no more dims than a tensor may have", max_rank, lens.size());
    return shape{t, dims(std::span<const dimension>(lens))};
  }
};

}  // namespace kiln::detail
