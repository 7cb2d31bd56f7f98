#pragma once
#include "kiln/core/literal.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln {

/// A row-major tensor of compute type T inside a reference computation. A static program's extents are constants that
/// it refers to.
template <class T, class Lens = ints> struct dense {
  T* data = nullptr;
  Lens lens;

  constexpr std::int64_t size() const {
    std::int64_t n = 1;
    for (std::size_t d = 0; d < lens.size(); ++d) n *= lens[d];
    return n;
  }
  constexpr std::size_t rank() const { return lens.size(); }
  constexpr T& operator[](std::int64_t i) const { return data[i]; }
  /// Position of a multi-dimensional index.
  constexpr std::int64_t offset(const ints& at) const {
    std::int64_t o = 0;
    for (std::size_t d = 0; d < at.size(); ++d) o = o * lens[d] + at[d];
    return o;
  }
  constexpr T& at(const ints& index) const { return data[offset(index)]; }
};

/// The first row-major index of extents `lens`.
constexpr ints first_index(ints lens) {
  for (std::int64_t& at : lens) at = 0;
  return lens;
}
/// Advances a row-major index; false after the last.
constexpr bool next_index(ints& at, const ints& lens) {
  for (std::size_t d = at.size(); d-- > 0;) {
    if (++at[d] < lens[d]) return true;
    at[d] = 0;
  }
  return false;
}

/// What a reference computation is written over. `in<T>(i)` and `out<T>(k)` are dense tensors, whatever the dtype and
/// layout of operand i and result k: in T, or in the compute type of the operand's own dtype, or i64 for indices.
/// `index(i, extent)` is the position that i names in an extent, negative counting from the end: an error of the run
/// where it lies outside, but the nearest one in a static program, which has no way to report it. `number(d)` is a
/// dimension attribute's value; `fail(fault)` ends the computation.
template <class E>
concept Evaluation = requires(E& e, std::size_t k, std::int64_t i, dimension d, const fault& f) {
  { e.inputs() } -> std::same_as<std::size_t>;
  { e.results() } -> std::same_as<std::size_t>;
  { e.has(k) } -> std::same_as<bool>;
  { e.in_shape(k) } -> std::same_as<const shape&>;
  { e.out_shape(k) } -> std::same_as<const shape&>;
  { e.template in<float>(k)[i] } -> std::same_as<const float&>;
  { e.template out<float>(k)[i] } -> std::same_as<float&>;
  { e.index(i, i) } -> std::same_as<std::int64_t>;
  { e.number(d) } -> std::same_as<std::int64_t>;
  e.fail(f);
};

/// Bump memory for decoded operands, so that a run through a reference computation allocates nothing.
struct scratch_memory {
  std::byte* data = nullptr;
  std::size_t size = 0, used = 0;
};

/// The evaluation of targets and of passes: operands as dense tensors of the compute type that is asked for, whatever
/// their dtype. The same code runs in constant evaluation (operands are literals of values) and at run time (bytes).
class evaluation {
 public:
  struct operand {
    shape type;                         ///< constant extents
    const literal* constant = nullptr;  ///< values, when not bytes
    std::byte* bytes = nullptr;         ///< row-major run-time data; inputs are not written
  };

  constexpr evaluation(std::span<const operand> inputs, std::span<const operand> outputs, scratch_memory scratch = {})
      : inputs_(inputs), outputs_(outputs), scratch_(scratch) {}
  evaluation(const evaluation&) = delete;
  evaluation& operator=(const evaluation&) = delete;

  constexpr std::size_t inputs() const { return inputs_.size(); }
  constexpr std::size_t results() const { return outputs_.size(); }
  /// Whether an optional operand was given.
  constexpr bool has(std::size_t i) const { return i < inputs_.size(); }
  constexpr const shape& in_shape(std::size_t i) const { return inputs_[i].type; }
  constexpr const shape& out_shape(std::size_t k) const { return outputs_[k].type; }
  /// The position that i names in an extent, negative counting from the end; raises outside [-extent, extent).
  constexpr std::int64_t index(std::int64_t i, std::int64_t extent) const {
    if (i < -extent || i >= extent)
      fail(fault::of(errc::invalid_argument, "an index lies within the extent", extent, i));
    return i < 0 ? i + extent : i;
  }
  /// The value of a dimension attribute; a symbolic one is an `unsupported` fault.
  constexpr std::int64_t number(dimension d) const { return d.value(); }
  [[noreturn]] void fail(const fault& f) const { raise(f); }

  /// Input i converted to T, row-major.
  template <class T> constexpr dense<const T> in(std::size_t i) {
    const operand& o = inputs_[i];
    const ints lens = to_ints(o.type.lens);
    if (o.bytes) {
      if constexpr (!std::is_same_v<T, dimension>) {
        if (stored_as<T>(o.type.type)) return {reinterpret_cast<const T*>(o.bytes), lens};
        T* values = memory<T>(product(lens));
        decode(o.type.type, o.bytes, values, product(lens));
        return {values, lens};
      }
    }
    if (const auto* held = o.constant->data().template values<T>()) return {held->data(), lens};
    T* values = memory<T>(product(lens));
    const auto converted = o.constant->to<T>();
    for (std::size_t k = 0; k < converted.size(); ++k) values[k] = converted[k];
    return {values, lens};
  }

  /// Output k as T, uninitialized at run time; converted to its dtype by finish().
  template <class T> constexpr dense<T> out(std::size_t k = 0) {
    const operand& o = outputs_[k];
    const ints lens = to_ints(o.type.lens);
    if (o.bytes && stored_as<T>(o.type.type)) return {reinterpret_cast<T*>(o.bytes), lens};
    T* values = memory<T>(product(lens));
    pending_.push_back({});
    pending& p = pending_.back();
    p.result = k;
    detail::member_of_type<T>(p) = values;
    return {values, lens};
  }

  /// Stores the outputs that were computed in another representation (compiled in op/impl).
  void finish();
  /// The outputs as literals (constant evaluation, and folding at run time). A template, so that including this header
  /// does not instantiate every conversion.
  template <class Literal = literal> constexpr small_vector<Literal> literals() {
    small_vector<Literal> out(outputs_.size());
    for (pending& p : pending_) {
      const shape& s = outputs_[p.result].type;
      const auto n = static_cast<std::size_t>(s.elements().value());
      if (p.f32) out[p.result] = Literal::template of<float>(s, {p.f32, n});
      if (p.f64) out[p.result] = Literal::template of<double>(s, {p.f64, n});
      if (p.i64) out[p.result] = Literal::template of<std::int64_t>(s, {p.i64, n});
      if (p.u64) out[p.result] = Literal::template of<std::uint64_t>(s, {p.u64, n});
      if (p.boolean) out[p.result] = Literal::template of<bool>(s, {p.boolean, n});
      if (p.dims)
        out[p.result] =
            Literal::of_dimensions(s.lens, small_vector<dimension>(std::span<const dimension>(p.dims, n)), s.type);
    }
    return out;
  }

 private:
  struct pending {
    std::size_t result = 0;
    float* f32 = nullptr;
    double* f64 = nullptr;
    std::int64_t* i64 = nullptr;
    std::uint64_t* u64 = nullptr;
    bool* boolean = nullptr;
    dimension* dims = nullptr;
  };
  template <class T> static constexpr bool stored_as(dtype t) {
    if constexpr (std::is_same_v<T, dimension>)
      return false;
    else
      return dtype_of<T> == t;
  }
  template <class T> T* carve(std::int64_t n) {
    const std::size_t bytes = (static_cast<std::size_t>(n) * sizeof(T) + 63) / 64 * 64;
    if (!scratch_.data || scratch_.size - scratch_.used < bytes) return nullptr;
    T* p = reinterpret_cast<T*>(scratch_.data + scratch_.used);
    scratch_.used += bytes;
    return p;
  }
  template <class T> constexpr T* memory(std::int64_t n) {
    if constexpr (!std::is_same_v<T, dimension>)
      if (!std::is_constant_evaluated())
        if (T* p = carve<T>(n)) return p;
    auto& list = detail::member_of_type<T>(pools_);
    return list.push_back(small_vector<T>(static_cast<std::size_t>(n > 0 ? n : 1))).data();
  }
  struct pools {
    small_vector<small_vector<float>> f32;
    small_vector<small_vector<double>> f64;
    small_vector<small_vector<std::int64_t>> i64;
    small_vector<small_vector<std::uint64_t>> u64;
    small_vector<small_vector<bool>> boolean;
    small_vector<small_vector<dimension>> dims;
  };
  std::span<const operand> inputs_, outputs_;
  inline_vector<pending, 16> pending_;
  pools pools_;
  scratch_memory scratch_;
};

}  // namespace kiln
