#pragma once
#include <cassert>

#include "kiln/static_program/accepted.hpp"
#include "kiln/static_program/arena_memory.hpp"
#include "kiln/static_program/freeze.hpp"
#include "kiln/static_program/step/attention.hpp"
#include "kiln/static_program/step/conv_nhwc.hpp"
#include "kiln/static_program/step/gather.hpp"
#include "kiln/static_program/step/generic.hpp"
#include "kiln/static_program/step/lrn.hpp"
#include "kiln/static_program/step/pointwise.hpp"
#include "kiln/static_program/step/pooling.hpp"
#include "kiln/static_program/step/prepare_weight.hpp"
#include "kiln/static_program/step/product.hpp"
#include "kiln/static_program/step/reduce_across.hpp"
#include "kiln/static_program/step/winograd_nchw.hpp"

namespace kiln {

namespace aot {

template <class Step> struct other_step {
  using op_type = typename Step::net::registry_type::template at<static_cast<std::size_t>(Step::what.op)>;
  static constexpr op_type op = from_words<op_type>(Step::net::words + Step::what.attributes);
  static constexpr bool own() {
    if constexpr (Step::inputs == 0)
      return false;
    else
      return has_own_step<op_type>(Step::in[0].type);
  }
  static KILN_FN void run(const step_memory& m) {
    if constexpr (!own())
      generic_step<Step, op>::run(m);
    else if constexpr (std::is_same_v<op_type, op::pooling>)
      pooling_step<Step, op>::run(m);
    else if constexpr (std::is_same_v<op_type, op::gather>)
      gather_step<Step, op>::run(m);
    else if constexpr (std::is_same_v<op_type, op::lrn>)
      lrn_step<Step, op>::run(m);
    else
      attention_step<Step, op>::run(m);
  }
};

// Whether all that a step makes is empty.
template <class Step> constexpr bool makes_nothing() {
  for (std::size_t k = 0; k < Step::outputs; ++k)
    if (product(Step::out[k].lens) != 0) return false;
  return true;
}

template <class constants> KILN_FN void run_kind(const step_memory& m) {
  constexpr step_kind kind = constants::what.kind;
  if constexpr (kind == step_kind::copy)
    copy_step<constants>::run(m);
  else if constexpr (kind == step_kind::pointwise)
    pointwise_step<constants>::run(m);
  else if constexpr (kind == step_kind::reduce)
    std::conditional_t<reduce_across_step<constants>::serves(), reduce_across_step<constants>,
                       reduce_step<constants>>::run(m);
  else if constexpr (kind == step_kind::product)
    product_step<constants>::run(m);
  else if constexpr (kind == step_kind::winograd_nchw)
    winograd_nchw_step<constants>::run(m);
  else if constexpr (kind == step_kind::windows || kind == step_kind::winograd_nhwc || kind == step_kind::depthwise)
    image_step<constants>::run(m);
  else
    other_step<constants>::run(m);
}

// Steps that share a kernel share its instance: layers of equal sizes are compiled once. A kernel reads its buffers'
// places from a copy of its own, so that they stay in registers whatever it writes.
template <class constants> void run_kernel(const step_memory& m) {
  if constexpr (!makes_nothing<constants>()) {
    const void* inputs[constants::inputs + 1]{};
    void* outputs[constants::outputs]{};
    for (std::size_t k = 0; k < constants::inputs; ++k) inputs[k] = m.inputs[k];
    for (std::size_t k = 0; k < constants::outputs; ++k) outputs[k] = m.outputs[k];
    run_kind<constants>({inputs, outputs, m.scratch});
  } else {
    (void)m;
  }
}

template <class Net, std::size_t K> KILN_FN void run_step(const memory_map& m) {
  constexpr step what = record<step>(Net::words, Net::front.steps, K);
  using constants = kernel_constants<Net, what.kernel>;
  constexpr std::size_t in = constants::inputs, out = constants::outputs;
  [&]<std::size_t... I, std::size_t... O>(std::index_sequence<I...>, std::index_sequence<O...>) {
    const void* const inputs[in + 1] = {locate<Net, what.buffers.at, I>(m)..., nullptr};
    // results lie in the arena
    void* const outputs[out] = {m.arena + record<location>(Net::words, what.buffers, in + O).base...};
    run_kernel<constants>({inputs, outputs, m.arena + what.scratch});
  }
  (std::make_index_sequence<in>{}, std::make_index_sequence<out>{});
}

template <class Net, table header::*Of, std::size_t K>
inline constexpr signature signature_at = record<signature>(Net::words, Net::front.*Of, K);

/// Elements of one parameter or result.
template <class Net, table header::*Of, std::size_t K>
using elements_of = std::span<const stored_of<signature_at<Net, Of, K>.where.type>,
                              static_cast<std::size_t>(signature_at<Net, Of, K>.elements)>;

/// Never defined: looking up a name calls it where the net has none such.
void the_net_has_no_such_name();

template <class Net> constexpr std::size_t find_name(const table& of, std::string_view name) {
  for (std::size_t k = 0; k < static_cast<std::size_t>(of.count); ++k) {
    const signature s = record<signature>(Net::words, of, k);
    bool equal = static_cast<std::size_t>(s.name.count) == name.size();
    for (std::size_t i = 0; equal && i < name.size(); ++i)
      equal = Net::words[static_cast<std::size_t>(s.name.at) + i] == name[i];
    if (equal) return k;
  }
  return static_cast<std::size_t>(of.count);
}

template <class Net> constexpr inline_string<95> name_at(const table& of, std::size_t k) {
  const signature s = record<signature>(Net::words, of, k);
  inline_string<95> out;
  for (std::int64_t i = 0; i < s.name.count; ++i) {
    const char c = static_cast<char>(Net::words[s.name.at + i]);
    out.append(std::string_view(&c, 1));
  }
  return out;
}

// The name of parameter K as text for a message.
template <class Net, table header::*Of, std::size_t K> constexpr auto name_text() {
  constexpr table name = signature_at<Net, Of, K>.name;
  static_text<static_cast<std::size_t>(name.count)> t;
  for (std::int64_t i = 0; i < name.count; ++i) t.text[i] = static_cast<char>(Net::words[name.at + i]);
  t.text[name.count] = 0;
  return t;
}

template <class Net, class Arena, class Inputs> class runner;
template <class Net, class Arena, std::size_t... I> class runner<Net, Arena, std::index_sequence<I...>> {
  static constexpr auto arena_bytes = static_cast<std::size_t>(Net::front.arena_bytes);

 public:
  /// Runs the program on one span of elements for each input, in their order. Inputs lie apart from the arena, where
  /// results are.
  void run(elements_of<Net, &header::inputs, I>... inputs) {
    assert((apart(inputs.data(), inputs.size_bytes(), arena_.data(), arena_bytes) && ...) &&
           "kiln: an input lies in the arena of its static program: copy a result before it becomes one");
    const void* const input_data[sizeof...(I) + 1] = {inputs.data()..., nullptr};
    assert(all_bound(std::make_index_sequence<static_cast<std::size_t>(Net::front.weights.count)>{}) &&
           "kiln: a weight of this static program is not bound");
    const memory_map m{arena_.data(), input_data, weights_, prepared_};
    run_steps(m, std::make_index_sequence<static_cast<std::size_t>(Net::front.steps.count)>{});
  }

 protected:
  // a weight without elements may lie nowhere
  template <std::size_t... K> KILN_FN bool all_bound(std::index_sequence<K...>) const {
    return ((weights_[K] || signature_at<Net, &header::weights, K>.elements == 0) && ...);
  }
  template <std::size_t... K> static KILN_FN void run_steps(const memory_map& m, std::index_sequence<K...>) {
    (run_step<Net, K>(m), ...);
  }
  void prepare(std::int64_t weight) {
    if constexpr (Net::front.prepared.count != 0) {
      struct list {
        prepared_weight items[static_cast<std::size_t>(Net::front.prepared.count)];
      };
      static constexpr list all = [] {
        list made;
        for (std::size_t k = 0; prepared_weight & p : made.items)
          p = record<prepared_weight>(Net::words, Net::front.prepared, k++);
        return made;
      }();
      for (const prepared_weight& p : all.items)
        if (p.from.at.index == weight)
          prepare_weight(p, static_cast<const float*>(weights_[weight]), reinterpret_cast<float*>(prepared_ + p.base));
    }
  }

  const void* weights_[static_cast<std::size_t>(Net::front.weights.count) + 1]{};
  alignas(64) std::byte prepared_[Net::front.prepared_bytes ? static_cast<std::size_t>(Net::front.prepared_bytes) : 64];
  arena_memory<arena_bytes, Arena> arena_;
};

}  // namespace aot

/// A net that the C++ compiler has optimized, planned and turned into one function: shapes, strides, attributes and
/// buffer positions are constants in it. `Net` is a constexpr lambda over a builder, the same that builds the net at
/// run time; a broken shape rule is a compile error that says which. Holds one arena of `arena_bytes`, pointers to the
/// weights, and `prepared_bytes` of weights in the form in which kernels read them; running allocates nothing, throws
/// nothing and calls no kiln library. Any number of objects may run at once, each by one thread at a time. A registry
/// with more ops (`default_registry::extend<my::op>`) admits a user's ops.
/// Units of several instruction sets that share a net's header each have a program of their own (`Set`).
template <auto Net, class Registry = default_registry, class Arena = own_arena, class Set = aot::instruction_set>
class static_program
    : public aot::runner<
          aot::frozen_net<Net, Registry, Set>, Arena,
          std::make_index_sequence<static_cast<std::size_t>(aot::frozen_net<Net, Registry, Set>::front.inputs.count)>> {
  using net = aot::frozen_net<Net, Registry, Set>;
  static_assert(aot::accepted<net>());
  static constexpr auto& front = net::front;

 public:
  static constexpr std::size_t inputs = static_cast<std::size_t>(front.inputs.count),
                               weights = static_cast<std::size_t>(front.weights.count),
                               outputs = static_cast<std::size_t>(front.outputs.count),
                               kernels = static_cast<std::size_t>(front.steps.count),
                               arena_bytes = static_cast<std::size_t>(front.arena_bytes),
                               prepared_bytes = static_cast<std::size_t>(front.prepared_bytes);
  /// Elements of all weights together.
  static constexpr std::size_t weight_elements = [] {
    std::int64_t n = 0;
    for (std::size_t k = 0; k < weights; ++k) n += aot::record<aot::signature>(net::words, front.weights, k).elements;
    return static_cast<std::size_t>(n);
  }();
  /// Whether all weights are f32: then one array may hold them.
  static constexpr bool float_weights = [] {
    for (std::size_t k = 0; k < weights; ++k)
      if (aot::record<aot::signature>(net::words, front.weights, k).where.type != dtype::f32) return false;
    return true;
  }();
  template <std::size_t K> using input_span = aot::elements_of<net, &aot::header::inputs, K>;
  template <std::size_t K> using weight_span = aot::elements_of<net, &aot::header::weights, K>;
  template <std::size_t K> using output_span = aot::elements_of<net, &aot::header::outputs, K>;

 private:
  static constexpr bool owns_arena = std::is_same_v<Arena, own_arena>;
  // The place of a name; a name that the net does not have is the compiler's first error.
  template <static_text Name>
  static constexpr std::size_t weight_named = [] {
    constexpr std::size_t k = aot::find_name<net>(front.weights, Name.view());
    if constexpr (k == weights) static_assert(sizeof(this_program_cannot_be_built<Name, "a weight has this name">));
    return k;
  }();
  template <static_text Name>
  static constexpr std::size_t output_named = [] {
    constexpr std::size_t k = aot::find_name<net>(front.outputs, Name.view());
    if constexpr (k == outputs) static_assert(sizeof(this_program_cannot_be_built<Name, "an output has this name">));
    return k;
  }();
  // Whether one argument is this object's copy, or holds all weights.
  template <class T>
  static constexpr bool takes_all = std::is_same_v<T, static_program> ||
                                    (weights != 0 && float_weights &&
                                     std::is_convertible_v<const T&, std::span<const float, weight_elements>>);

 public:
  /// Without weights, or with all of them still to be bound.
  static_program() = default;
  /// Binds every weight to its part of one array, which holds them in the order in which the net names them (C++ leaves
  /// open which operand of an expression comes first: name weights in statements of their own). The array stays the
  /// caller's, outlives this object and does not change while it is bound.
  explicit static_program(std::span<const float, weight_elements> all) requires(owns_arena&& weights != 0 &&
                                                                                float_weights) {
    bind_all(all);
  }
  /// Binds each weight to a span of its elements, in the order in which the net names them. Another number of spans, or
  /// of elements in one, is a compile error that says which.
  template <class... Spans>
  explicit static_program(const Spans&... spans) requires(owns_arena && sizeof...(Spans) != 0 &&
                                                          !(sizeof...(Spans) == 1 && (takes_all<Spans> && ...))) {
    bind_each(spans...);
  }
  /// With its arena in a caller's memory, aligned to 64 bytes, and weights as above: none, one array or a span for
  /// each.
  template <class... Weights>
  explicit static_program(std::span<std::byte, arena_bytes> memory, const Weights&... of) requires(!owns_arena) {
    use_arena(memory);
    if constexpr (sizeof...(Weights) == 1 && (takes_all<Weights> && ...))
      bind_all(of...);
    else if constexpr (sizeof...(Weights) != 0)
      bind_each(of...);
  }
  /// Puts the arena elsewhere: what was there, the last run's results too, is left after.
  void use_arena(std::span<std::byte, arena_bytes> memory) requires(!owns_arena) { this->arena_.use(memory); }

  /// The place of an input, weight or output among its kind; an unknown name is a compile error.
  static consteval std::size_t input(std::string_view name) { return known(front.inputs, name); }
  static consteval std::size_t weight(std::string_view name) { return known(front.weights, name); }
  static consteval std::size_t output(std::string_view name) { return known(front.outputs, name); }

  static constexpr inline_string<95> input_name(std::size_t k) { return aot::name_at<net>(front.inputs, k); }
  static constexpr inline_string<95> weight_name(std::size_t k) { return aot::name_at<net>(front.weights, k); }
  static constexpr inline_string<95> output_name(std::size_t k) { return aot::name_at<net>(front.outputs, k); }

  /// Binds weight K. Bind it again when its values have changed: convolutions may keep them in a form of their own.
  template <std::size_t K> void bind(weight_span<K> values) {
    this->weights_[K] = values.data();
    this->prepare(static_cast<std::int64_t>(K));
  }
  /// Binds the weight of that name: `p.bind<"head">(values)`. A name that the net does not have is a compile error.
  template <static_text Name> void bind(weight_span<weight_named<Name>> values) { bind<weight_named<Name>>(values); }
  /// The elements of output K of the last run, row-major; they stay until the next run.
  template <std::size_t K = 0> output_span<K> result() const {
    constexpr auto& where = aot::signature_at<net, &aot::header::outputs, K>.where;
    using stored = aot::stored_of<where.type>;
    return output_span<K>(reinterpret_cast<const stored*>(this->arena_.data() + where.at.base) + where.offset,
                          output_span<K>::extent);
  }
  /// The elements of the output of that name: `p.result<"probabilities">()`.
  template <static_text Name> auto result() const { return result<output_named<Name>>(); }
  /// Runs the program and gives its first output.
  template <class... Inputs> output_span<0> operator()(const Inputs&... values) {
    this->run(values...);
    return result<0>();
  }

 private:
  void bind_all(std::span<const float, weight_elements> all) {
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      std::size_t at = 0;
      ((bind<K>(weight_span<K>(all.data() + at, weight_span<K>::extent)), at += weight_span<K>::extent), ...);
    }
    (std::make_index_sequence<weights>{});
  }
  template <class... Spans> void bind_each(const Spans&... spans) {
    if constexpr (sizeof...(Spans) == 1 && weights > 1 && float_weights) {
      constexpr auto expected = text_with_number<weight_elements>("expected floats: ");
      static_assert(sizeof(this_program_cannot_be_built<"static_program", "one array has all weights", expected,
                                                        "found another extent or type">));
    } else if constexpr (sizeof...(Spans) != weights) {
      constexpr auto expected = text_with_number<weights>("expected ");
      constexpr auto found = text_with_number<sizeof...(Spans)>("found ");
      static_assert(sizeof(this_program_cannot_be_built<"static_program", "a span for each weight", expected, found>));
    } else {
      [&]<std::size_t... K>(std::index_sequence<K...>) { (bind_checked<K>(spans), ...); }
      (std::make_index_sequence<weights>{});
    }
  }
  template <std::size_t K, class Span> void bind_checked(const Span& values) {
    if constexpr (!std::is_convertible_v<const Span&, weight_span<K>>) {
      constexpr auto elements = weight_span<K>::extent;
      constexpr auto name = aot::name_text<net, &aot::header::weights, K>();
      constexpr auto expected = text_with_number<elements>("expected elements: ");
      static_assert(sizeof(this_program_cannot_be_built<name, "a span of the weight's own elements", expected,
                                                        "found another extent or type">));
    } else {
      bind<K>(values);
    }
  }
  static consteval std::size_t known(const aot::table& of, std::string_view name) {
    const std::size_t k = aot::find_name<net>(of, name);
    if (k == static_cast<std::size_t>(of.count)) aot::the_net_has_no_such_name();
    return k;
  }
};

/// A static program over `arena_bytes` of a caller's memory, aligned to 64 bytes: `static_program_view<net> p(memory)`.
/// Programs that run in turn may share them; a result stays until another one runs there.
template <auto Net, class Registry = default_registry>
using static_program_view = static_program<Net, Registry, callers_arena>;

}  // namespace kiln
