#pragma once
#include <bit>
#include <cstring>
#include <span>

#include "kiln/core/buffer.hpp"
#include "kiln/core/shape.hpp"

namespace kiln {

/// Reads elements of dtype `t` from row-major bytes into compute type T (see visit_compute).
template <class T> void decode(dtype t, const std::byte* from, T* to, std::int64_t count) {
  visit_storage(t, [&]<class S>(type_tag<S>) {
    for (std::int64_t i = 0; i < count; ++i) {
      S v;
      std::memcpy(&v, from + static_cast<std::size_t>(i) * sizeof(S), sizeof(S));
      to[i] = convert_value<T>(v);
    }
  });
}
/// Writes values of compute type T as dtype `t`, rounding or wrapping.
template <class T> void encode(dtype t, const T* from, std::byte* to, std::int64_t count) {
  visit_storage(t, [&]<class S>(type_tag<S>) {
    for (std::int64_t i = 0; i < count; ++i) {
      const S v = convert_value<S>(from[i]);
      std::memcpy(to + static_cast<std::size_t>(i) * sizeof(S), &v, sizeof(S));
    }
  });
}
extern template void decode(dtype, const std::byte*, double*, std::int64_t);  // compiled once, in core/impl
extern template void decode(dtype, const std::byte*, float*, std::int64_t);
extern template void decode(dtype, const std::byte*, std::int64_t*, std::int64_t);
extern template void decode(dtype, const std::byte*, std::uint64_t*, std::int64_t);
extern template void decode(dtype, const std::byte*, bool*, std::int64_t);
extern template void encode(dtype, const double*, std::byte*, std::int64_t);
extern template void encode(dtype, const float*, std::byte*, std::int64_t);
extern template void encode(dtype, const std::int64_t*, std::byte*, std::int64_t);
extern template void encode(dtype, const std::uint64_t*, std::byte*, std::int64_t);
extern template void encode(dtype, const bool*, std::byte*, std::int64_t);

/// A constant of a graph: a row-major tensor whose data is shared, never changed, at any address: an `argument` is what
/// reads it by type. An integer literal may hold symbolic dimensions instead of numbers, until the symbols are bound.
class literal {
 public:
  constexpr literal() = default;
  constexpr literal(shape s, buffer data) : shape_(s.with(s.lens)), data_(std::move(data)) {}

  /// A literal of compute-type values, rounded to `s.type`; `values` are in row-major order.
  template <class T> static constexpr literal of(const shape& s, std::span<const T> values) {
    if (std::is_constant_evaluated()) {
      return visit_compute(s.type, [&]<class C>(type_tag<C>) {
        small_vector<C> stored;
        stored.reserve(values.size());
        // straight to the stored type, as encode does: a detour over C would wrap what a float clamps
        for (const T& v : values)
          stored.push_back(detail::visit_storage_in<C>(
              s.type, [&]<class S>(type_tag<S>) { return convert_value<C>(convert_value<S>(v)); }));
        return literal(s, buffer::of_values(std::move(stored)));
      });
    }
    return of_runtime(s, values);
  }
  template <class T> static constexpr literal scalar(dtype t, T value) {
    return of<T>(shape{t, {}}, std::span<const T>(&value, 1));
  }
  /// Shape arithmetic with symbols: `values` fill an i64 tensor of extents `lens`.
  template <class Number = std::int64_t>  // a template, so that the conversions are instantiated where they are used
  static constexpr literal of_dimensions(const dims& lens, small_vector<dimension> values, dtype t = dtype::i64) {
    bool constant = true;
    for (dimension d : values) constant = constant && d.is_constant();
    if (!constant) return literal({t, lens}, buffer::of_values(std::move(values)));
    small_vector<Number> numbers;
    for (dimension d : values) numbers.push_back(d.raw());
    return of<Number>({t, lens}, numbers);
  }

  constexpr const shape& get_shape() const { return shape_; }
  constexpr std::int64_t elements() const { return shape_.elements().value(); }
  constexpr const buffer& data() const { return data_; }
  constexpr bool has_symbols() const { return data_.values<dimension>() != nullptr; }
  /// Row-major bytes, aligned to nothing; null during constant evaluation and for symbolic literals.
  const std::byte* bytes() const { return data_.data(); }

  /// Every element converted to T, row-major; symbolic literals convert to `dimension` only.
  template <class T> constexpr small_vector<T> to() const {
    const auto n = static_cast<std::size_t>(elements());
    small_vector<T> out;
    if (const auto* d = data_.values<dimension>()) {
      out.reserve(n);
      for (dimension x : *d) {
        if constexpr (std::is_same_v<T, dimension>)
          out.push_back(x);
        else
          out.push_back(convert_value<T>(x.value()));
      }
      return out;
    }
    if constexpr (std::is_same_v<T, dimension>) {
      out.reserve(n);
      for (std::int64_t x : to<std::int64_t>()) out.push_back(x);
      return out;
    } else {
      if (!data_.data()) {
        visit_compute(shape_.type, [&]<class C>(type_tag<C>) {
          out.reserve(n);
          if (const auto* stored = data_.values<C>())
            for (const C& v : *stored) out.push_back(convert_value<T>(v));
        });
        return out;
      }
      out.resize(n);
      decode_into(out.data());
      return out;
    }
  }
  /// The only element's value.
  template <class T> constexpr T at(std::size_t i) const { return to<T>()[i]; }

  /// The same data under other extents with as many elements.
  constexpr literal reshaped(const dims& lens) const { return literal({shape_.type, lens}, data_); }

  /// Equality of type, extents and values (bit for bit at run time). A template, so that the conversions it needs in
  /// constant evaluation are instantiated where literals are compared.
  template <class L>
  requires std::is_same_v<L, literal>
  friend constexpr bool operator==(const L& a, const literal& b) {
    if (!(a.shape_.type == b.shape_.type && a.shape_.lens == b.shape_.lens)) return false;
    if (a.data_.shares_with(b.data_)) return true;
    if (a.has_symbols() || b.has_symbols()) return a.template to<dimension>() == b.template to<dimension>();
    if (!std::is_constant_evaluated()) return equal_bytes(a, b);
    return visit_compute(a.shape_.type, [&]<class C>(type_tag<C>) { return a.template to<C>() == b.template to<C>(); });
  }

 private:
  template <class T> static literal of_runtime(const shape& s, std::span<const T> values) {
    buffer data = buffer::allocate(values.size() * size_of(s.type));
    encode(s.type, values.data(), data.data(), static_cast<std::int64_t>(values.size()));
    return literal(s, std::move(data));
  }
  template <class T> void decode_into(T* out) const { decode(shape_.type, data_.data(), out, elements()); }
  static bool equal_bytes(const literal& a, const literal& b) {
    const auto n = static_cast<std::size_t>(a.elements()) * size_of(a.shape_.type);
    return n == 0 || std::memcmp(a.bytes(), b.bytes(), n) == 0;
  }
  shape shape_;
  buffer data_;
};

}  // namespace kiln
