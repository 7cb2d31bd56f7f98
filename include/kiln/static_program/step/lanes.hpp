#pragma once
#include "kiln/core/math.hpp"
#include "kiln/core/simd.hpp"
#include "kiln/meta/type_list.hpp"
#include "kiln/static_program/plan/records.hpp"

namespace kiln::aot {

namespace detail {
using stored_types =
    type_list<double, float, half, bfloat16, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
              std::uint16_t, std::uint32_t, std::uint64_t, bool, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2,
              float8_e5m2fnuz, float8_e8m0, float4_e2m1, int4, uint4, int2, uint2>;
template <dtype T> struct compute_type {
  using type = std::conditional_t<
      T == dtype::f64, double,
      std::conditional_t<is_float(T), float,
                         std::conditional_t<is_signed_integer(T), std::int64_t,
                                            std::conditional_t<is_unsigned_integer(T), std::uint64_t, bool>>>>;
};
}  // namespace detail

/// The compute type of dtype T's values (see visit_compute).
template <dtype T> using compute_of = typename detail::compute_type<T>::type;
/// How elements of a dtype lie in memory.
template <dtype T>
using stored_of = typename decltype(type_at<static_cast<std::size_t>(T)>(detail::stored_types{}))::type;

/// Bodies run over vectors of one float type F; conditions are masks.
template <class F> struct vector_lanes {
  using value = native_vec<F>;
  using condition = mask_t<value>;
  static constexpr int count = native_lanes<F>;
  template <class T> using of = std::conditional_t<std::is_same_v<T, bool>, condition, value>;

  struct reg {
    value v;
    condition m;
    template <class T> KILN_FN auto& get() {
      if constexpr (std::is_same_v<T, bool>)
        return m;
      else
        return v;
    }
  };
  /// N elements with a step of 0 or 1.
  template <class S, std::int64_t Step, int N> static KILN_FN value load(const S* p) {
    if constexpr (Step == 0)
      return splat<value>(*p);
    else if constexpr (N == count)
      return kiln::load<value>(p);
    else
      return load_n<value>(p, N);
  }
  template <class S, std::int64_t, int N> static KILN_FN void store(S* p, value v) {
    if constexpr (N == count)
      kiln::store(p, v);
    else
      store_n(p, v, N);
  }
};

/// Bodies run element by element, in each value's own compute type.
struct scalar_lanes {
  static constexpr int count = 1;
  template <class T> using of = T;

  struct reg {
    double d;
    float f;
    bool b;
    std::int64_t i;
    std::uint64_t u;
    template <class T> KILN_FN auto& get() {
      if constexpr (std::is_same_v<T, double>)
        return d;
      else if constexpr (std::is_same_v<T, float>)
        return f;
      else if constexpr (std::is_same_v<T, bool>)
        return b;
      else if constexpr (std::is_same_v<T, std::int64_t>)
        return i;
      else
        return u;
    }
  };
  template <class S, std::int64_t, int> static KILN_FN auto load(const S* p) {
    return convert_value<compute_of<dtype_of<S>>>(*p);
  }
  template <class S, std::int64_t, int, class T> static KILN_FN void store(S* p, T v) { *p = convert_value<S>(v); }
};

/// What the kernel whose words begin at `At` knows at compile time.
template <class Net, std::int64_t At> struct kernel_constants {
  using net = Net;
  static constexpr kernel what = from_words<kernel>(Net::words + At);
  static constexpr std::size_t inputs = static_cast<std::size_t>(what.inputs.count),
                               outputs = static_cast<std::size_t>(what.outputs.count),
                               nodes = static_cast<std::size_t>(what.nodes.count);

  template <class T, std::size_t N> struct list {
    T items[N ? N : 1]{};
    constexpr const T& operator[](std::size_t k) const { return items[k]; }
    constexpr operator std::span<const T>() const { return {items, N}; }
  };
  template <class T, std::size_t N> static constexpr list<T, N> read(const table& t) {
    list<T, N> out;
    for (std::size_t k = 0; k < N; ++k) out.items[k] = record<T>(Net::words, t, k);
    return out;
  }
  static constexpr auto in = read<place, inputs>(what.inputs);
  static constexpr auto out = read<place, outputs>(what.outputs);
  static constexpr const place& operand(std::size_t k) { return k < inputs ? in[k] : out[k - inputs]; }
  static constexpr auto body = read<node, nodes>(what.nodes);
  static constexpr std::size_t result(std::size_t k) {
    return static_cast<std::size_t>(Net::words[static_cast<std::size_t>(what.results.at) + k]);
  }
};

/// The buffers of a running program.
struct memory_map {
  std::byte* arena = nullptr;
  const void* const* inputs = nullptr;
  const void* const* weights = nullptr;
  const std::byte* prepared = nullptr;
};

template <class Net, std::size_t C> struct constant_data {
  static constexpr constant what = record<constant>(Net::words, Net::front.constants, C);
  using stored = stored_of<what.type>;
  struct values {
    alignas(64) stored items[what.values.count ? static_cast<std::size_t>(what.values.count) : 1];
  };
  static constexpr values data = [] {
    values v{};
    const std::int64_t* from = Net::words + what.values.at;
    for (std::int64_t k = 0; k < what.values.count; ++k)
      v.items[k] = convert_value<stored>(from_words<compute_of<what.type>>(from + k));
    return v;
  }();
};

/// The buffers of one step.
struct step_memory {
  const void* const* inputs = nullptr;
  void* const* outputs = nullptr;
  std::byte* scratch = nullptr;
};

/// The first byte of buffer K of a step that only reads it.
template <class Net, std::int64_t Buffers, std::size_t K> KILN_FN const void* locate(const memory_map& m) {
  constexpr location l = record<location>(Net::words, {Buffers, 0}, K);
  if constexpr (l.where == memory::arena)
    return m.arena + l.base;
  else if constexpr (l.where == memory::input)
    return m.inputs[l.index];
  else if constexpr (l.where == memory::weight)
    return m.weights[l.index];
  else if constexpr (l.where == memory::prepared)
    return m.prepared + l.base;
  else
    return constant_data<Net, static_cast<std::size_t>(l.index)>::data.items;
}

/// Element 0 of operand K's buffer, without the place's own offset; outputs stand after the inputs.
template <class Step, std::size_t K> KILN_FN auto buffer_of(const step_memory& m) {
  using S = stored_of<Step::operand(K).type>;
  if constexpr (K < Step::inputs)
    return static_cast<const S*>(m.inputs[K]);
  else
    return static_cast<S*>(m.outputs[K - Step::inputs]);
}

}  // namespace kiln::aot
