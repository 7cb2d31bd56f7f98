#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <string>

#include "kiln/core/simd.hpp"
#include "kiln/core/trace.hpp"
#include "kiln/meta/type_name.hpp"
#include "op/run_op.hpp"

/// Laws that every pointwise op obeys, run over the whole list.
namespace kiln::test {
namespace {

struct interval {
  double low = -3, high = 3;
};
// Where the op's float computation is defined in the mathematical sense: a constant expression must stay there.
template <class Op> constexpr interval domain() {
  constexpr std::string_view name = type_name<Op>();
  if (name == "acos" || name == "asin" || name == "atanh") return {-0.9, 0.9};
  if (name == "acosh") return {1.1, 9};
  if (name == "log1p") return {-0.9, 9};
  if (name == "log" || name == "sqrt" || name == "rsqrt" || name == "pow") return {0.1, 3};
  return {};
}

constexpr int samples = 16;

template <class Op, class T> constexpr std::array<T, samples> seeds() {
  std::array<T, samples> out{};
  constexpr std::int64_t integers[samples] = {3, -7, 0, 1, 100, -1, 2, 64, -100, 5, -2, 12, 255, 63, 8, -3};
  constexpr interval d = domain<Op>();
  for (int i = 0; i < samples; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if constexpr (std::is_floating_point_v<T>)
      out[at] = static_cast<T>(d.low + (d.high - d.low) * (i + 0.37) / samples);
    else if constexpr (std::is_same_v<T, bool>)
      out[at] = i % 3 == 0;
    else
      out[at] = static_cast<T>(integers[i]);
  }
  return out;
}

template <class Op> inline constexpr auto arity = static_cast<std::size_t>(detail::call_arity<Op>());
template <class Op> inline constexpr auto conditions = static_cast<std::size_t>(detail::condition_args_of<Op>());

template <class Op, class T, std::size_t... C, std::size_t... I>
constexpr auto call_once(std::index_sequence<C...>, std::index_sequence<I...>) {
  return Op{}((static_cast<void>(C), true)..., (static_cast<void>(I), T{1})...);
}
template <class Op> using condition_indices = std::make_index_sequence<conditions<Op>>;
template <class Op> using value_indices = std::make_index_sequence<arity<Op> - conditions<Op>>;
template <class Op, class T> using result_of = decltype(call_once<Op, T>(condition_indices<Op>{}, value_indices<Op>{}));

// Value k of argument j: every argument walks the seeds at its own pace.
constexpr std::size_t pick(std::size_t k, std::size_t j) { return (k * (2 * j + 1) + 5 * j) % samples; }

template <class Op, class T> constexpr auto table(const std::array<T, samples>& x) {
  std::array<result_of<Op, T>, samples> out{};
  for (std::size_t k = 0; k < samples; ++k)
    out[k] = [&]<std::size_t... C, std::size_t... I>(std::index_sequence<C...>, std::index_sequence<I...>) {
      return Op{}((static_cast<void>(C), k % 2 == 0)..., x[pick(k, I)]...);
    }
  (condition_indices<Op>{}, value_indices<Op>{});
  return out;
}

// The checks themselves are plain functions: GoogleTest's macros in a template would be compiled for every op.
void expect_equal_values(std::string_view op, std::string_view what, const double* found, const double* expected) {
  for (std::size_t k = 0; k < samples; ++k)
    EXPECT_EQ(found[k], expected[k]) << op << ": " << what << " differ at value " << k;
}

// The run-time side is the table the library was compiled with: what a target runs.
template <class T>
void expect_tile_gives(const op_table& op, const void* attributes, const std::array<T, samples>& x,
                       const void* expected, std::size_t size) {
  bool condition[samples];
  T values[3][samples] = {};
  const void* in[3] = {};
  for (std::size_t k = 0; k < samples; ++k) condition[k] = k % 2 == 0;
  const auto arguments = static_cast<std::size_t>(op.inputs), first = static_cast<std::size_t>(op.conditions);
  for (std::size_t j = 0; j + first < arguments; ++j)
    for (std::size_t k = 0; k < samples; ++k) values[j][k] = x[pick(k, j)];
  for (std::size_t j = 0; j < arguments; ++j) {
    if (j < first)
      in[j] = condition;
    else
      in[j] = values[j - first];
  }
  std::byte out[samples * sizeof(T)] = {};
  op.tile(attributes, dtype_of<T>, in, out, samples);
  EXPECT_EQ(std::memcmp(out, expected, size), 0)
      << op.name << " of " << to_string(dtype_of<T>) << ": constant evaluation and run time differ";
}

template <class Op, class T> void constant_evaluation_equals_run_time() {
  static constexpr auto expected = table<Op, T>(seeds<Op, T>());
  const Op op{};
  expect_tile_gives<T>(*detail::find_built_in(type_name<Op>()), &op, seeds<Op, T>(), expected.data(), sizeof(expected));
}

template <class Op, class T> void lanes_equal_scalars() {
  using V = native_vec<T>;
  const auto x = seeds<Op, T>();
  static constexpr auto scalars = table<Op, T>(seeds<Op, T>());
  double expected[samples] = {}, found[samples] = {};
  for (std::size_t k = 0; k < samples; ++k) expected[k] = static_cast<double>(scalars[k]);
  for (std::size_t from = 0; from < samples; from += lanes<V>) {
    mask_t<V> condition{};
    V in[arity<Op>] = {};
    for (int i = 0; i < lanes<V>; ++i) {
      const std::size_t k = from + static_cast<std::size_t>(i);
      condition[i] = k % 2 == 0 ? -1 : 0;
      for (std::size_t j = 0; j < arity<Op>; ++j) in[j][i] = x[pick(k, j)];
    }
    const auto out = [&]<std::size_t... C, std::size_t... I>(std::index_sequence<C...>, std::index_sequence<I...>) {
      return Op{}((static_cast<void>(C), condition)..., in[I]...);
    }
    (condition_indices<Op>{}, value_indices<Op>{});
    for (int i = 0; i < lanes<V>; ++i) {
      const bool holds = out[i] != 0;
      found[from + static_cast<std::size_t>(i)] =
          std::is_same_v<result_of<Op, T>, bool> ? static_cast<double>(holds) : static_cast<double>(out[i]);
    }
  }
  expect_equal_values(type_name<Op>(), "lanes and scalars", found, expected);
}

void obeys_the_shape_rule(const op_table& op, const void* attributes) {
  for (unsigned t = 0; t < dtype_count; ++t) {
    for (const dims& lens : {dims{}, dims{0}, dims{2, 3}}) {
      small_vector<shape> in;
      for (int j = 0; j < op.inputs; ++j)
        in.push_back({j < op.conditions ? dtype::boolean : static_cast<dtype>(t), lens});
      const auto out = op.shape_rule(attributes, in);
      ASSERT_EQ(static_cast<bool>(out), op.types.contains(static_cast<dtype>(t))) << op.name << " " << t;
      if (!out) continue;
      EXPECT_EQ((*out)[0].lens, lens) << op.name;
      if (op.returns_bool) {
        EXPECT_EQ((*out)[0].type, dtype::boolean) << op.name;
      }
      // every operand as bytes: a computation in another type than the rule's would raise
      small_vector<argument> operands;
      small_vector<evaluation::operand> inputs, outputs;
      for (const shape& s : in) {
        operands.push_back(argument(s));
        std::memset(operands.back().data(), 1, static_cast<std::size_t>(s.bytes().value()));
      }
      for (argument& a : operands) inputs.push_back({a.get_shape(), nullptr, a.data()});
      argument result((*out)[0]);
      outputs.push_back({(*out)[0], nullptr, result.data()});
      evaluation e(inputs, outputs);
      op.evaluate(attributes, e, false);
      e.finish();
      in.push_back(in.back());
      EXPECT_FALSE(op.shape_rule(attributes, in)) << op.name << " takes one operand too many";
    }
  }
}

void expect_arguments_in(std::string_view op, const source_text& source, std::size_t arguments) {
  const std::string text = source.str();
  const char* names[] = {"xx", "yy", "zz"};
  for (std::size_t j = 0; j < arguments; ++j) EXPECT_NE(text.find(names[j]), std::string::npos) << op << ": " << text;
}

// Traced with the kind of every dtype that the op accepts: no kinds are mixed, and the text names every argument.
template <class Op> void traces() {
  static_assert(traceable<Op, arity<Op>>);
  constexpr dtype_set types = detail::types_of<Op>();
  const std::pair<dtype, scalar_kind> kinds[] = {{dtype::f32, scalar_kind::f32},
                                                 {dtype::f64, scalar_kind::f64},
                                                 {dtype::i64, scalar_kind::i64},
                                                 {dtype::u64, scalar_kind::u64},
                                                 {dtype::boolean, scalar_kind::boolean}};
  for (const auto& [t, kind] : kinds) {
    if (!types.contains(t)) continue;
    const expr traced = [&, k = kind ]<std::size_t... I>(std::index_sequence<I...>) {
      return trace(Op{}, (I < conditions<Op> ? scalar_kind::boolean : k)...);
    }
    (std::make_index_sequence<arity<Op>>());
    expect_arguments_in(type_name<Op>(), print_source(traced, {"xx", "yy", "zz"}), arity<Op>);
  }
}

template <class Op> void obeys_every_law() {
  constexpr dtype_set types = detail::types_of<Op>();
  if constexpr (types.contains(dtype::f32)) constant_evaluation_equals_run_time<Op, float>();
  if constexpr (types.contains(dtype::f64)) constant_evaluation_equals_run_time<Op, double>();
  if constexpr (types.contains(dtype::i64)) constant_evaluation_equals_run_time<Op, std::int64_t>();
  if constexpr (types.contains(dtype::u64)) constant_evaluation_equals_run_time<Op, std::uint64_t>();
  if constexpr (types.contains(dtype::boolean)) constant_evaluation_equals_run_time<Op, bool>();
  if constexpr (types.contains(dtype::f32)) lanes_equal_scalars<Op, float>();
  if constexpr (types.contains(dtype::i64)) lanes_equal_scalars<Op, std::int64_t>();
  const Op op{};
  obeys_the_shape_rule(*detail::find_built_in(type_name<Op>()), &op);
  traces<Op>();
}

TEST(pointwise, every_op_obeys_the_laws) {
  pointwise_ops::for_each([]<class Op>(boost::hana::basic_type<Op>) { obeys_every_law<Op>(); });
}

TEST(pointwise, the_list_names_every_header) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(KILN_SOURCE_DIR "/include/kiln/op/pointwise")) {
    ++files;
    bool listed = false;
    pointwise_ops::for_each(
        [&]<class Op>(boost::hana::basic_type<Op>) { listed = listed || entry.path().stem() == type_name<Op>(); });
    EXPECT_TRUE(listed) << entry.path();
  }
  EXPECT_EQ(files, pointwise_ops::size);
}

TEST(pointwise, commutative_ops_commute) {
  pointwise_ops::for_each([]<class Op>(boost::hana::basic_type<Op>) {
    if constexpr (requires { Op::commutative; }) {
      constexpr dtype_set types = detail::types_of<Op>();
      using T = std::conditional_t<types.contains(dtype::f32), float,
                                   std::conditional_t<types.contains(dtype::i64), std::int64_t, bool>>;
      bool same = true;
      for (T a : seeds<Op, T>())
        for (T b : seeds<Op, T>()) same = same && Op{}(a, b) == Op{}(b, a);
      EXPECT_TRUE(same) << type_name<Op>();
    }
  });
}

}  // namespace
}  // namespace kiln::test
