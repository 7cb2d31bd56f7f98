#pragma once
#include <cassert>

#include "kiln/op/derive.hpp"
#include "kiln/static_program/plan/generic.hpp"
#include "kiln/static_program/rejected.hpp"
#include "kiln/static_program/step/walk.hpp"

namespace kiln::aot {

/// The evaluation of a step (see Evaluation): extents are constants; an operand of another type or layout than the
/// computation asks for is converted into memory that the plan set aside. Nothing is allocated or raised.
template <class Step> class step_evaluation {
  static constexpr std::size_t ins = Step::inputs, outs = Step::outputs;
  using kinds = type_list<float, double, std::int64_t, std::uint64_t, bool>;

 public:
  explicit step_evaluation(const step_memory& memory) : memory_(memory) {}

  static constexpr std::size_t inputs() { return ins; }
  static constexpr std::size_t results() { return outs; }
  static constexpr bool has(std::size_t i) { return i < ins; }
  static constexpr const shape& in_shape(std::size_t i) { return all_shapes.items[i]; }
  static constexpr const shape& out_shape(std::size_t k) { return all_shapes.items[ins + k]; }

  template <class T> KILN_FN dense<const T, const ints&> in(std::size_t i) {
    const T* data = nullptr;
    each<ins>([&](auto k) {
      if (i == k) data = read<T, k>();
    });
    return {data, Step::in[i].lens};
  }
  template <class T> KILN_FN dense<T, const ints&> out(std::size_t i = 0) {
    T* data = nullptr;
    each<outs>([&](auto k) {
      if (i == k) data = written<T, k>();
    });
    return {data, Step::out[i].lens};
  }
  static std::int64_t index(std::int64_t i, std::int64_t extent) { return nearest_index(i, extent); }
  static constexpr std::int64_t number(dimension d) { return d.raw(); }
  /// Shape rules decide while compiling what may fail with constant extents.
  [[noreturn]] static void fail(const fault&) { __builtin_trap(); }

  /// Stores the results that were computed in another type or layout.
  KILN_FN void finish() {
    each<outs>([&](auto k) {
      if constexpr (!lies_as_computed(Step::out[k]))
        each<kinds::size>([&](auto t) {
          if (computed_[k] == t + 1) store<typename decltype(type_at<t>(kinds{}))::type, k>();
        });
    });
  }

 private:
  struct shape_list {
    shape items[ins + outs];
  };
  static constexpr shape_list all_shapes = [] {
    shape_list list;
    for (std::size_t k = 0; k < ins + outs; ++k)
      list.items[k] = shape{Step::operand(k).type, to_dims(Step::operand(k).lens)};
    return list;
  }();

  template <class T, std::size_t K> KILN_FN T* converted() const {
    constexpr std::int64_t at = converted_bytes({Step::in.items, K < ins ? K : ins}) +
                                converted_bytes({Step::out.items, K < ins ? 0 : K - ins});
    return reinterpret_cast<T*>(memory_.scratch + at);
  }
  // An op that asks for a type that its operand is never converted to: see Evaluation.
  [[noreturn]] static void wrong_type() {
    assert(!"kiln: an op reads and writes operands in the compute types of their dtypes");
    __builtin_trap();
  }
  template <class T, std::size_t K> KILN_FN const T* read() const {
    constexpr place p = Step::in[K];
    constexpr std::int64_t elements = product(p.lens);
    const auto* const from = buffer_of<Step, K>(memory_);
    if constexpr (!lies_as_computed(p)) {
      T* const to = converted<T, K>();
      for (std::int64_t k = 0; k < elements; ++k)
        to[k] = convert_value<T>(from[element_offset<Step, K, p.lens.size()>(k)]);
      return to;
    } else if constexpr (std::is_same_v<T, stored_of<p.type>>) {
      return from + p.offset;
    } else {
      wrong_type();
    }
  }
  template <class T, std::size_t K> KILN_FN T* written() {
    constexpr place p = Step::out[K];
    if constexpr (!lies_as_computed(p)) {
      computed_[K] = index_of<T>(kinds{}) + 1;
      return converted<T, ins + K>();
    } else if constexpr (std::is_same_v<T, stored_of<p.type>>) {
      return buffer_of<Step, ins + K>(memory_) + p.offset;
    } else {
      wrong_type();
    }
  }
  template <class T, std::size_t K> KILN_FN void store() const {
    constexpr place p = Step::out[K];
    constexpr std::int64_t elements = product(p.lens);
    const T* const from = converted<T, ins + K>();
    auto* const to = buffer_of<Step, ins + K>(memory_);
    for (std::int64_t k = 0; k < elements; ++k)
      to[element_offset<Step, ins + K, p.lens.size()>(k)] = convert_value<stored_of<p.type>>(from[k]);
  }

  const step_memory& memory_;
  std::size_t computed_[outs]{};  // 1 + which kind each result is computed in, 0 before
};

/// An op's name as text for a message.
template <class Op> constexpr auto op_text() {
  constexpr std::string_view name = type_name<Op>();
  static_text<name.size()> t;
  for (std::size_t i = 0; i < name.size(); ++i) t.text[i] = name[i];
  t.text[name.size()] = 0;  // clang prints an array as text where its last element was written, too
  return t;
}

/// Any generic op by its own reference computation.
template <class Step, const auto& Op> struct generic_step {
  using op_type = std::remove_cvref_t<decltype(Op)>;
  static constexpr auto typed = static_cast<std::size_t>(kiln::detail::typed_input<op_type>());
  static constexpr dtype type = Step::inputs > typed ? Step::in[typed].type : Step::out[0].type;
  using T = compute_of<type>;

  static KILN_FN void run(const step_memory& m) {
    if constexpr (!requires(step_evaluation<Step> & e) { Op.template compute<T>(e); }) {
      static_assert(sizeof(this_program_cannot_be_built<op_text<op_type>(), "a computation takes any evaluation",
                                                        "expected compute(auto& e)", "found another parameter">));
    } else {
      step_evaluation<Step> e(m);
      Op.template compute<T>(e);
      e.finish();
    }
  }
};

}  // namespace kiln::aot
