#pragma once
#include <Eigen/Core>
#include <unsupported/Eigen/CXX11/Tensor>

#include "kiln/core/argument.hpp"

// Eigen's matrices, arrays and tensors as arguments, and arguments as Eigen's maps, without copies: what both show is
// the memory of one. Include paths of Eigen are the user's: link to Eigen3::Eigen.
namespace kiln {

namespace detail {

template <class T> constexpr dtype eigen_dtype() {
  if constexpr (std::is_same_v<T, Eigen::half>)
    return dtype::f16;
  else if constexpr (std::is_same_v<T, Eigen::bfloat16>)
    return dtype::bf16;
  else
    return dtype_of<T>;
}

template <class T> void expect_dtype(const argument& a) {
  if (a.get_shape().type != eigen_dtype<T>())
    raise(fault::of(errc::shape_mismatch, "dtype of an Eigen map", eigen_dtype<T>(), a.get_shape().type));
}
inline void expect_rank(const argument& a, std::size_t rank) {
  if (a.get_shape().rank() != rank)
    raise(fault::of(errc::shape_mismatch, "rank of an Eigen map", rank, a.get_shape().rank()));
}

/// Strides of extents without gaps, the first dim's elements adjacent.
inline dims column_major(const dims& lens) {
  dims strides = lens;
  dimension step = 1;
  for (std::size_t d = 0; d < lens.size(); ++d) {
    strides[d] = step;
    step = step * lens[d];
  }
  return strides;
}
/// Whether a layout is the one with these strides; those along extents of 1 do not matter.
inline bool has_strides(const shape& s, const dims& strides) {
  for (std::size_t d = 0; d < s.lens.size(); ++d)
    if (!(s.lens[d] == dimension(1)) && !(s.element_strides()[d] == strides[d])) return false;
  return true;
}
inline void expect_order(const argument& a, bool rows) {
  const shape& s = a.get_shape();
  if (s.elements() == dimension(0) || has_strides(s, rows ? row_major(s.lens) : column_major(s.lens))) return;
  const dims strides = s.element_strides();
  fault f = fault::of(errc::shape_mismatch, "storage order of an Eigen map");
  f.expected.append(rows ? "row-major" : "column-major");
  f.found.append(has_strides(s, row_major(s.lens)) ? "row-major: name Eigen::RowMajor, or use as_strided_map"
                                                   : "strides ");
  if (!has_strides(s, row_major(s.lens))) put_text(f.found, strides);
  raise(f);
}

/// Rows and columns of a map as `Plain` of an argument, and its steps along them. A vector's argument has rank 1.
struct matrix_view {
  Eigen::Index rows = 1, cols = 1, row_step = 1, col_step = 1;
};
template <class Plain> matrix_view view_of(const argument& a) {
  expect_dtype<typename Plain::Scalar>(a);
  constexpr bool vector = Plain::IsVectorAtCompileTime;
  expect_rank(a, vector ? 1 : 2);
  const dims &lens = a.get_shape().lens, strides = a.get_shape().element_strides();
  matrix_view v;
  if (!vector || Plain::ColsAtCompileTime == 1) v.rows = lens[0].value(), v.row_step = strides[0].value();
  if (!vector || Plain::ColsAtCompileTime != 1) v.cols = lens[vector ? 0 : 1].value();
  if (!vector || Plain::ColsAtCompileTime != 1) v.col_step = strides[vector ? 0 : 1].value();
  const auto agree = [](std::string_view what, Eigen::Index fixed, Eigen::Index found) {
    if (fixed != Eigen::Dynamic && fixed != found) raise(fault::of(errc::shape_mismatch, what, fixed, found));
  };
  agree("rows of an Eigen map", Plain::RowsAtCompileTime, v.rows);
  agree("columns of an Eigen map", Plain::ColsAtCompileTime, v.cols);
  return v;
}

template <class T, class From> auto* elements_of(From& a) {
  if constexpr (std::is_const_v<T>)
    return reinterpret_cast<const T*>(std::as_const(a).data());
  else
    return reinterpret_cast<T*>(a.data());
}

/// `T` as `Like` is: constant or not.
template <class Like, class T> using as_const_as = std::conditional_t<std::is_const_v<Like>, const T, T>;

template <class T, class Shape> argument borrowed(const T* data, Shape&& s) {
  return {s, const_cast<std::remove_const_t<T>*>(data)};
}

}  // namespace detail

/// An argument over the memory of a matrix, array, map, reference or block: [rows, cols] with Eigen's strides, or
/// [size] of what is a vector at compile time. It is valid for as long as that memory is, and nothing may write to it
/// where that is constant. A run reads any strides; its outputs are row-major.
template <class Derived> argument as_argument(const Eigen::DenseBase<Derived>& of) {
  static_assert(bool(Derived::Flags & Eigen::DirectAccessBit),
                "kiln: an expression without memory of its own is evaluated first (eval)");
  const Derived& m = of.derived();
  constexpr dtype type = detail::eigen_dtype<typename Derived::Scalar>();
  if constexpr (Derived::IsVectorAtCompileTime)
    return detail::borrowed(m.data(), shape{type, {m.size()}, {m.innerStride()}});
  else
    return detail::borrowed(m.data(), shape{type, {m.rows(), m.cols()}, {m.rowStride(), m.colStride()}});
}
/// The memory of a temporary would be gone.
template <class Derived> argument as_argument(Eigen::PlainObjectBase<Derived>&&) = delete;

/// An argument over the memory of a Tensor or TensorMap, with the strides of its order.
template <class Derived> argument as_argument(const Eigen::TensorBase<Derived, Eigen::ReadOnlyAccessors>& of) {
  const Derived& t = static_cast<const Derived&>(of);
  static_assert(
      requires { t.data(); }, "kiln: an expression without memory of its own is evaluated first (eval)");
  shape s{detail::eigen_dtype<typename Derived::Scalar>(), {}};
  for (int d = 0; d < static_cast<int>(Derived::NumDimensions); ++d) s.lens.push_back(t.dimension(d));
  s.strides = int(Derived::Layout) == int(Eigen::RowMajor) ? row_major(s.lens) : detail::column_major(s.lens);
  return detail::borrowed(t.data(), s);
}
template <class T, int N, int Options, class Index>
argument as_argument(Eigen::Tensor<T, N, Options, Index>&&) = delete;

/// An argument of rank 2, or of rank 1 where `Plain` is a vector, as `Plain`'s map: dtype, rank, fixed extents and
/// storage order are `Plain`'s, else it is a `shape_mismatch` error. `const Plain` for arguments that are constant.
template <class Plain, class Argument>
requires std::is_same_v<std::remove_const_t<Argument>, argument>
auto as_map(Argument& a) {
  const detail::matrix_view v = detail::view_of<std::remove_const_t<Plain>>(a);
  detail::expect_order(a, Plain::IsRowMajor || Plain::IsVectorAtCompileTime);
  using T = detail::as_const_as<Plain, typename Plain::Scalar>;
  return Eigen::Map<Plain>(detail::elements_of<T>(a), v.rows, v.cols);
}

/// As `as_map`, of any strides: either order's `Plain` shows either order's argument.
template <class Plain, class Argument>
requires std::is_same_v<std::remove_const_t<Argument>, argument>
auto as_strided_map(Argument& a) {
  using steps = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;
  const detail::matrix_view v = detail::view_of<std::remove_const_t<Plain>>(a);
  const steps s = Plain::IsRowMajor ? steps(v.row_step, v.col_step) : steps(v.col_step, v.row_step);
  using T = detail::as_const_as<Plain, typename Plain::Scalar>;
  return Eigen::Map<Plain, 0, steps>(detail::elements_of<T>(a), v.rows, v.cols, s);
}

/// An argument as the map of a tensor type, `Eigen::Tensor<T, N, Options>` or that constant: dtype, rank and storage
/// order are the tensor's, else it is a `shape_mismatch` error.
template <class Tensor, class Argument>
requires std::is_same_v<std::remove_const_t<Argument>, argument>
auto as_tensor_map(Argument& a) {
  detail::expect_dtype<typename Tensor::Scalar>(a);
  detail::expect_rank(a, Tensor::NumIndices);
  detail::expect_order(a, int(Tensor::Layout) == int(Eigen::RowMajor));
  typename Tensor::Dimensions lens;
  for (std::size_t d = 0; d < a.get_shape().rank(); ++d) lens[d] = a.get_shape().lens[d].value();
  using T = detail::as_const_as<Tensor, typename Tensor::Scalar>;
  return Eigen::TensorMap<Tensor>(detail::elements_of<T>(a), lens);
}

}  // namespace kiln
