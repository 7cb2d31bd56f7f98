#include "kiln/op/ops.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "kiln/core/simd.hpp"
#include "kiln/core/trace.hpp"
#include "kiln/meta/type_name.hpp"
#include "op/run_op.hpp"

namespace kiln::test {
namespace {

using f32_limits = std::numeric_limits<float>;
constexpr auto i64_least = std::numeric_limits<std::int64_t>::min();
constexpr auto i64_most = std::numeric_limits<std::int64_t>::max();

constexpr shape f(dims lens) { return {dtype::f32, lens}; }
constexpr shape of(dtype t, dims lens) { return {t, lens}; }

// --- the shape rule -------------------------------------------------------------------------------------------------

static_assert(shape_from(op::add{}, f({2, 3}), f({2, 3})) == f({2, 3}));
static_assert(shape_from(op::less{}, f({2}), f({2})) == of(dtype::boolean, {2}));
static_assert(shape_from(op::is_inf{}, f({2})) == of(dtype::boolean, {2}));
static_assert(shape_from(op::convert{dtype::u8}, f({})) == of(dtype::u8, {}));
static_assert(shape_from(op::where{}, of(dtype::boolean, {0}), of(dtype::i8, {0}), of(dtype::i8, {0})) ==
              of(dtype::i8, {0}));
static_assert(shape_from(op::logical_not{}, of(dtype::boolean, {1})) == of(dtype::boolean, {1}));
static_assert(fails(op::add{}, errc::invalid_argument, "number of inputs", f({2})));
static_assert(fails(op::add{}, errc::shape_mismatch, "operands have equal dims", f({2}), f({1})));
static_assert(fails(op::add{}, errc::shape_mismatch, "operands have one dtype", f({2}), of(dtype::f64, {2})));
static_assert(fails(op::add{}, errc::unsupported, "dtype of the operands", of(dtype::boolean, {}),
                    of(dtype::boolean, {})));
static_assert(fails(op::exp{}, errc::unsupported, "dtype of the operands", of(dtype::i32, {})));
static_assert(fails(op::bitwise_not{}, errc::unsupported, "dtype of the operands", f({})));
static_assert(fails(op::logical_and{}, errc::unsupported, "dtype of the operands", f({}), f({})));
static_assert(fails(op::where{}, errc::shape_mismatch, "dtype of a condition", f({}), f({}), f({})));

// --- exact values, in constant evaluation ---------------------------------------------------------------------------

template <class Op, class... A>
constexpr float on(const Op& op, A... x) {
  return op(static_cast<float>(x)...);
}
template <class Op, class... A>
constexpr std::int64_t on_int(const Op& op, A... x) {
  return op(static_cast<std::int64_t>(x)...);
}
template <class Op, class... A>
constexpr std::uint64_t on_unsigned(const Op& op, A... x) {
  return op(static_cast<std::uint64_t>(x)...);
}
template <class Op, class... A>
constexpr bool holds(const Op& op, A... x) {
  return op(static_cast<float>(x)...);
}

static_assert(on(op::abs{}, -2.5) == 2.5f && on_int(op::abs{}, -7) == 7 && on_unsigned(op::abs{}, 7) == 7);
static_assert(on_int(op::abs{}, i64_least) == i64_least);
static_assert(on(op::add{}, 1.5, 2) == 3.5f && on_int(op::add{}, i64_most, 1) == i64_least);
static_assert(on(op::sub{}, 1.5, 2) == -0.5f && on_int(op::sub{}, i64_least, 1) == i64_most);
static_assert(on(op::mul{}, 1.5, 2) == 3 && on_int(op::mul{}, i64_most, 2) == -2);
static_assert(on_unsigned(op::sub{}, 1, 2) == ~std::uint64_t{0});
static_assert(on(op::neg{}, 1.5) == -1.5f && on_int(op::neg{}, i64_least) == i64_least);
static_assert(on_unsigned(op::neg{}, 1) == ~std::uint64_t{0});
static_assert(on(op::square_difference{}, 1, 3.5) == 6.25f && on_int(op::square_difference{}, 1, 4) == 9);

static_assert(on(op::div{}, 1, 4) == 0.25f);
static_assert(on_int(op::div{}, 7, 2) == 3 && on_int(op::div{}, -7, 2) == -3 && on_int(op::div{}, 7, -2) == -3);
static_assert(on_int(op::div{}, 7, -1) == -7 && on_int(op::div{}, i64_least, -1) == i64_least);
static_assert(on_int(op::div{}, 7, 0) == 0 && on_unsigned(op::div{}, 7, 0) == 0);
static_assert(on_unsigned(op::div{}, ~std::uint64_t{0}, ~std::uint64_t{0}) == 1 && on_unsigned(op::div{}, 7, 2) == 3);

static_assert(on(op::fmod{}, 5.5, -2) == 1.5f && on(op::fmod{}, -5.5, 2) == -1.5f);
static_assert(on_int(op::fmod{}, 7, -3) == 1 && on_int(op::fmod{}, -7, 3) == -1 && on_int(op::fmod{}, 7, 0) == 7);
static_assert(on_int(op::fmod{}, i64_least, -1) == 0 && on_unsigned(op::fmod{}, 7, 4) == 3);
static_assert(on(op::mod{}, 5.5, -2) == -0.5f && on(op::mod{}, -5.5, 2) == 0.5f && on(op::mod{}, -4, 2) == 0);
static_assert(on_int(op::mod{}, 7, -3) == -2 && on_int(op::mod{}, -7, 3) == 2 && on_int(op::mod{}, 7, 0) == 7);
static_assert(on_int(op::mod{}, i64_least, -1) == 0 && on_int(op::mod{}, 6, -3) == 0);
static_assert(on_unsigned(op::mod{}, 7, 0) == 7 && on_unsigned(op::mod{}, 7, 4) == 3);
static_assert(on(op::pow{}, 2, 10) == 1024 && on(op::pow{}, -2, 3) == -8 && on(op::pow{}, 9, 0.5) == 3);
static_assert(on_int(op::pow{}, -3, 3) == -27 && on_int(op::pow{}, 7, 0) == 1 && on_int(op::pow{}, 2, -1) == 0);
static_assert(on_int(op::pow{}, -1, -3) == -1 && on_int(op::pow{}, -1, -2) == 1 && on_unsigned(op::pow{}, 3, 4) == 81);

static_assert(on(op::min{}, 1, -2) == -2 && on_int(op::min{}, 1, -2) == -2);
static_assert(on(op::max{}, 1, -2) == 1 && on_int(op::max{}, 1, -2) == 1);
static_assert(on(op::clip{}, 5, -1, 2) == 2 && on(op::clip{}, -5, -1, 2) == -1 && on(op::clip{}, 1, -1, 2) == 1);
static_assert(on(op::clip{}, 0, 3, 2) == 2 && on_int(op::clip{}, 9, 0, 6) == 6);

static_assert(holds(op::equal{}, 1, 1) && !holds(op::equal{}, 1, 2) && op::equal{}(true, true));
static_assert(holds(op::less{}, 1, 2) && !holds(op::less{}, 2, 2) && !holds(op::less{}, 3, 2));
static_assert(holds(op::greater{}, 2, 1) && !holds(op::greater{}, 2, 2) && !holds(op::greater{}, 2, 3));
static_assert(holds(op::less_or_equal{}, 2, 2) && !holds(op::less_or_equal{}, 3, 2));
static_assert(holds(op::greater_or_equal{}, 2, 2) && !holds(op::greater_or_equal{}, 2, 3));
static_assert(on_int(op::less{}, -1, 0) == 1 && on_unsigned(op::less{}, ~std::uint64_t{0}, 0) == 0);

static_assert(op::logical_and{}(true, true) && !op::logical_and{}(true, false));
static_assert(op::logical_or{}(false, true) && !op::logical_or{}(false, false));
static_assert(op::logical_xor{}(false, true) && !op::logical_xor{}(true, true));
static_assert(op::logical_not{}(false) && !op::logical_not{}(true));
static_assert(on_int(op::bitwise_and{}, 12, 10) == 8 && on_int(op::bitwise_or{}, 12, 10) == 14);
static_assert(on_int(op::bitwise_xor{}, 12, 10) == 6 && on_int(op::bitwise_not{}, 5) == -6);
static_assert(on_int(op::shift_left{}, 3, 2) == 12 && on_unsigned(op::shift_left{}, 1, 63) == std::uint64_t{1} << 63);
static_assert(on_unsigned(op::shift_left{}, 1, 64) == 0 && on_int(op::shift_left{}, 1, -1) == 0);
static_assert(on_int(op::shift_right{}, -8, 1) == -4 && on_int(op::shift_right{}, -8, 64) == -1);
static_assert(on_int(op::shift_right{}, 8, 100) == 0 && on_unsigned(op::shift_right{}, ~std::uint64_t{0}, 63) == 1);

static_assert(on(op::ceil{}, 1.25) == 2 && on(op::ceil{}, -1.25) == -1);
static_assert(on(op::floor{}, 1.25) == 1 && on(op::floor{}, -1.25) == -2);
static_assert(on(op::round{}, 0.5) == 0 && on(op::round{}, 1.5) == 2 && on(op::round{}, -2.5) == -2);
static_assert(on(op::sign{}, -3) == -1 && on(op::sign{}, 0) == 0 && on(op::sign{}, 3) == 1);
static_assert(on_int(op::sign{}, -3) == -1 && on_unsigned(op::sign{}, 3) == 1);
static_assert(on(op::sqrt{}, 6.25) == 2.5f && on(op::rsqrt{}, 0.25) == 2 && on(op::recip{}, 4) == 0.25f);

static_assert(on(op::relu{}, 2) == 2 && on(op::relu{}, -2) == 0 && on_int(op::relu{}, -2) == 0);
static_assert(on(op::leaky_relu{0.5f}, 3) == 3 && on(op::leaky_relu{0.5f}, -3) == -1.5f);
static_assert(on(op::prelu{}, 3, 0.5) == 3 && on(op::prelu{}, -3, 0.5) == -1.5f && on_int(op::prelu{}, -3, 2) == -6);
static_assert(on(op::thresholded_relu{2}, 2) == 0 && on(op::thresholded_relu{2}, 2.5) == 2.5f);
static_assert(on(op::shrink{1, 0.5f}, 2) == 1.5f && on(op::shrink{1, 0.5f}, -2) == -1.5f &&
              on(op::shrink{1, 0.5f}, 1) == 0 && on(op::shrink{1, 0.5f}, -1) == 0);
static_assert(on(op::hard_sigmoid{}, 0) == 0.5f && on(op::hard_sigmoid{}, 9) == 1 && on(op::hard_sigmoid{}, -9) == 0);
static_assert(on(op::hard_sigmoid{0.25f, 0.125f}, 1) == 0.375f);
static_assert(on(op::hard_swish{}, 4) == 4 && on(op::hard_swish{}, -4) == 0 && on(op::hard_swish{}, 0) == 0);
static_assert(on(op::softsign{}, -1) == -0.5f && on(op::softsign{}, 3) == 0.75f);
static_assert(on(op::elu{2}, 3) == 3 && on(op::celu{2}, 3) == 3 && on(op::selu{2, 3}, 1) == 3);
static_assert(on(op::gelu{}, 0) == 0 && on(op::mish{}, 0) == 0 && on(op::sigmoid{}, 0) == 0.5f);
static_assert(on(op::identity{}, 1.5) == 1.5f && op::identity{}(true) && on_int(op::identity{}, -3) == -3);
static_assert(op::where{}(true, 1, 2) == 1 && op::where{}(false, 1, 2) == 2);

// --- through the reference computation ------------------------------------------------------------------------------

static_assert(run(op::add{}, f32({2}, 1, 2), f32({2}, 3, 4)) == f32({2}, 4, 6));
static_assert(run(op::add{}, f32({}, 1), f32({}, 3)) == f32({}, 4));
static_assert(run(op::add{}, f32({0, 3}), f32({0, 3})).elements() == 0);
static_assert(run(op::add{}, lit(dtype::i8, {2}, 100, -100), lit(dtype::i8, {2}, 100, -100)) ==
              lit(dtype::i8, {2}, -56, 56));
static_assert(run(op::sub{}, lit(dtype::u8, {1}, 1), lit(dtype::u8, {1}, 2)) == lit(dtype::u8, {1}, 255));
static_assert(run(op::shift_left{}, lit(dtype::u8, {1}, 129), lit(dtype::u8, {1}, 1)) == lit(dtype::u8, {1}, 2));
static_assert(run(op::bitwise_not{}, lit(dtype::u16, {1}, 1)) == lit(dtype::u16, {1}, 65534));
static_assert(run(op::neg{}, lit(dtype::i16, {1}, -32768)) == lit(dtype::i16, {1}, -32768));
static_assert(run(op::add{}, lit(dtype::f16, {1}, 2048), lit(dtype::f16, {1}, 1)) == lit(dtype::f16, {1}, 2048));
static_assert(run(op::add{}, lit(dtype::bf16, {1}, 256), lit(dtype::bf16, {1}, 1)) == lit(dtype::bf16, {1}, 256));
static_assert(run(op::less{}, f32({2}, 1, 3), f32({2}, 2, 2)) == lit(dtype::boolean, {2}, true, false));
static_assert(run(op::where{}, lit(dtype::boolean, {2}, true, false), lit(dtype::u32, {2}, 1, 2),
                  lit(dtype::u32, {2}, 3, 4)) == lit(dtype::u32, {2}, 1, 4));
static_assert(run(op::convert{dtype::i32}, f32({3}, -1.75, 2.5, 1e20)) == lit(dtype::i32, {3}, -1, 2, 2147483647));
static_assert(run(op::convert{dtype::u8}, lit(dtype::i64, {2}, 257, -1)) == lit(dtype::u8, {2}, 1, 255));
static_assert(run(op::convert{dtype::boolean}, f32({3}, 0, -0.0, 0.5)) == lit(dtype::boolean, {3}, false, false, true));
static_assert(run(op::convert{dtype::f16}, lit(dtype::f64, {1}, 2049)) == lit(dtype::f16, {1}, 2048));
static_assert(run(op::convert{dtype::f32}, lit(dtype::boolean, {1}, true)) == f32({1}, 1));

// --- laws over the whole list ---------------------------------------------------------------------------------------

struct interval {
  double low = -3, high = 3;
};
// Where the op's float computation is defined in the mathematical sense: a constant expression must stay there.
template <class Op>
constexpr interval domain() {
  constexpr std::string_view name = type_name<Op>();
  if (name == "acos" || name == "asin" || name == "atanh") return {-0.9, 0.9};
  if (name == "acosh") return {1.1, 9};
  if (name == "log1p") return {-0.9, 9};
  if (name == "log" || name == "sqrt" || name == "rsqrt" || name == "pow") return {0.1, 3};
  return {};
}

constexpr int samples = 16;

template <class Op, class T>
constexpr std::array<T, samples> seeds() {
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

template <class Op>
inline constexpr auto arity = static_cast<std::size_t>(detail::call_arity<Op>());
template <class Op>
inline constexpr auto conditions = static_cast<std::size_t>(detail::condition_args_of<Op>());

template <class Op, class T, std::size_t... C, std::size_t... I>
constexpr auto call_once(std::index_sequence<C...>, std::index_sequence<I...>) {
  return Op{}((static_cast<void>(C), true)..., (static_cast<void>(I), T{1})...);
}
template <class Op>
using condition_indices = std::make_index_sequence<conditions<Op>>;
template <class Op>
using value_indices = std::make_index_sequence<arity<Op> - conditions<Op>>;
template <class Op, class T>
using result_of = decltype(call_once<Op, T>(condition_indices<Op>{}, value_indices<Op>{}));

// Value k of argument j: every argument walks the seeds at its own pace.
constexpr std::size_t pick(std::size_t k, std::size_t j) { return (k * (2 * j + 1) + 5 * j) % samples; }

template <class Op, class T>
constexpr auto table(const std::array<T, samples>& x) {
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

template <class Op, class T>
void constant_evaluation_equals_run_time() {
  static constexpr auto expected = table<Op, T>(seeds<Op, T>());
  const Op op{};
  expect_tile_gives<T>(*detail::find_built_in(type_name<Op>()), &op, seeds<Op, T>(), expected.data(), sizeof(expected));
}

template <class Op, class T>
void lanes_equal_scalars() {
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
template <class Op>
void traces() {
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

template <class Op>
void obeys_every_law() {
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

// --- transcendental and composed ops against long double ------------------------------------------------------------

using wide = long double;

// Bounds are in units of the result's last place; `floor` is the magnitude below which the error counts as absolute.
template <class T>
void near_oracle(const op_table& op, const void* attributes, wide (*oracle)(wide), interval d, double ulps,
                 double floor) {
  constexpr int points = 4001;
  std::vector<T> x(points), y(points);
  for (int i = 0; i < points; ++i) x[i] = static_cast<T>(d.low + (d.high - d.low) * i / (points - 1));
  const void* in[] = {x.data()};
  op.tile(attributes, dtype_of<T>, in, y.data(), points);
  double worst = 0, where = 0;
  for (int i = 0; i < points; ++i) {
    const wide expected = oracle(x[i]);
    const wide scale = std::max(std::abs(expected), static_cast<wide>(floor)) * std::numeric_limits<T>::epsilon();
    const auto error = static_cast<double>(std::abs(y[i] - expected) / scale);
    if (!(error <= worst)) worst = error, where = static_cast<double>(x[i]);
  }
  EXPECT_LE(worst, ulps) << op.name << " of " << to_string(dtype_of<T>) << " at " << where;
}
template <class Op>
void near(const Op& op, wide (*oracle)(wide), interval d = {-20, 20}, double ulps = 3, double floor = 1e-30) {
  const op_table& table = *detail::find_built_in(type_name<Op>());
  near_oracle<float>(table, &op, oracle, d, ulps, floor);
  near_oracle<double>(table, &op, oracle, d, ulps, floor);
}

wide soft(wide x) { return std::max(x, wide(0)) + std::log1p(std::exp(-std::abs(x))); }

TEST(pointwise, elementary_functions_match_the_library) {
  near(op::acos{}, [](wide x) { return std::acos(x); }, {-1, 1});
  near(op::acosh{}, [](wide x) { return std::acosh(x); }, {1, 1e6});
  near(op::asin{}, [](wide x) { return std::asin(x); }, {-1, 1});
  near(op::asinh{}, [](wide x) { return std::asinh(x); });
  near(op::atan{}, [](wide x) { return std::atan(x); });
  near(
      op::atanh{}, [](wide x) { return std::atanh(x); }, {-0.99, 0.99}, 4);
  near(op::cos{}, [](wide x) { return std::cos(x); });
  near(op::cosh{}, [](wide x) { return std::cosh(x); });
  near(op::sin{}, [](wide x) { return std::sin(x); });
  near(op::sinh{}, [](wide x) { return std::sinh(x); });
  near(
      op::tan{}, [](wide x) { return std::tan(x); }, {-20, 20}, 4);
  near(op::tanh{}, [](wide x) { return std::tanh(x); });
  near(op::exp{}, [](wide x) { return std::exp(x); });
  near(op::expm1{}, [](wide x) { return std::expm1(x); });
  near(op::erf{}, [](wide x) { return std::erf(x); }, {-6, 6});
  near(op::log{}, [](wide x) { return std::log(x); }, {1e-6, 1e6});
  near(op::log1p{}, [](wide x) { return std::log1p(x); }, {-0.999, 1e3});
  near(
      op::sqrt{}, [](wide x) { return std::sqrt(x); }, {0, 1e6}, 0.5);
  near(op::rsqrt{}, [](wide x) { return 1 / std::sqrt(x); }, {1e-6, 1e6});
  near(
      op::recip{}, [](wide x) { return 1 / x; }, {1e-6, 1e6}, 0.5);
}

TEST(pointwise, activations_match_their_formulas) {
  near(op::sigmoid{}, [](wide x) { return 1 / (1 + std::exp(-x)); });
  near(op::softplus{}, soft, {-20, 20}, 4);
  near(op::softsign{}, [](wide x) { return x / (1 + std::abs(x)); });
  near(
      op::mish{}, [](wide x) { return x * std::tanh(soft(x)); }, {-20, 20}, 6);
  near(
      op::gelu{}, [](wide x) { return x * std::erfc(-x / std::sqrt(wide(2))) / 2; }, {-6, 6}, 4, 1);
  near(
      op::gelu{true}, [](wide x) { return x / 2 * (1 + std::tanh(0.7978845608028654L * (x + 0.044715L * x * x * x))); },
      {-6, 6}, 4, 1);
  near(op::elu{0.5f}, [](wide x) { return x > 0 ? x : std::expm1(x) / 2; });
  near(op::celu{2}, [](wide x) { return x > 0 ? x : 2 * std::expm1(x / 2); });
  near(op::selu{1.5f, 2}, [](wide x) { return x > 0 ? 2 * x : 3 * std::expm1(x); });
  near(op::selu{},
       [](wide x) { return 1.05070102214813232421875L * (x > 0 ? x : 1.67326319217681884765625L * std::expm1(x)); });
  near(op::leaky_relu{0.25f}, [](wide x) { return x > 0 ? x : x / 4; });
  near(
      op::hard_sigmoid{0.25f, 0.5f}, [](wide x) { return std::clamp<wide>(x / 4 + 0.5L, 0, 1); }, {-4, 4}, 2, 1);
  near(
      op::hard_swish{}, [](wide x) { return x * std::clamp<wide>(x / 6 + 0.5L, 0, 1); }, {-6, 6}, 3, 1);
}

TEST(pointwise, two_argument_floats_match_the_library) {
  for (double x = -7.3; x < 8; x += 0.61)
    for (double y = -5.2; y < 6; y += 0.43) {
      const auto a = static_cast<float>(x), b = static_cast<float>(y);
      EXPECT_EQ(op::fmod{}(a, b), std::fmod(a, b));
      EXPECT_EQ(op::fmod{}(x, y), std::fmod(x, y));
      EXPECT_NEAR(op::mod{}(x, y), x - std::floor(x / y) * y, 1e-12);
      EXPECT_NEAR(op::pow{}(std::abs(x), y), std::pow(std::abs(x), y), 1e-14 * std::pow(std::abs(x), y));
      EXPECT_EQ(op::div{}(a, b), a / b);
    }
}

// --- special values -------------------------------------------------------------------------------------------------

TEST(pointwise, nan_goes_through_where_the_formula_has_it) {
  const float nan = f32_limits::quiet_NaN();
  EXPECT_TRUE(std::isnan(op::relu{}(nan)));
  EXPECT_TRUE(std::isnan(op::leaky_relu{}(nan)));
  EXPECT_TRUE(std::isnan(op::prelu{}(nan, 1.0f)));
  EXPECT_TRUE(std::isnan(op::elu{}(nan)) && std::isnan(op::celu{}(nan)) && std::isnan(op::selu{}(nan)));
  EXPECT_TRUE(std::isnan(op::sign{}(nan)) && std::isnan(op::round{}(nan)) && std::isnan(op::hard_swish{}(nan)));
  EXPECT_TRUE(std::isnan(op::hard_sigmoid{}(nan)) && std::isnan(op::softplus{}(nan)) && std::isnan(op::gelu{}(nan)));
  for (const auto& [a, b] : {std::pair{nan, 1.0f}, {1.0f, nan}}) {
    EXPECT_TRUE(std::isnan(op::min{}(a, b)) && std::isnan(op::max{}(a, b)));
    EXPECT_FALSE(op::equal{}(a, b) || op::less{}(a, b) || op::greater{}(a, b));
    EXPECT_FALSE(op::less_or_equal{}(a, b) || op::greater_or_equal{}(a, b));
  }
  EXPECT_TRUE(std::isnan(op::clip{}(nan, 0.0f, 1.0f)));
  EXPECT_FALSE(op::equal{}(nan, nan));
  EXPECT_TRUE(op::is_nan{}(nan));
  EXPECT_FALSE(op::is_nan{}(f32_limits::infinity()));
  EXPECT_TRUE(std::isnan(op::sqrt{}(-1.0f)) && std::isnan(op::log{}(-1.0f)) && std::isnan(op::acosh{}(0.5f)));
}

TEST(pointwise, infinities_saturate) {
  const float inf = f32_limits::infinity();
  EXPECT_EQ(op::sigmoid{}(inf), 1);
  EXPECT_EQ(op::sigmoid{}(-inf), 0);
  EXPECT_EQ(op::softplus{}(inf), inf);
  EXPECT_EQ(op::softplus{}(-inf), 0);
  EXPECT_EQ(op::elu{2}(-inf), -2);
  EXPECT_EQ(op::mish{}(inf), inf);
  EXPECT_EQ(op::gelu{}(inf), inf);
  EXPECT_EQ(op::exp{}(-inf), 0);
  EXPECT_EQ(op::log{}(0.0f), -inf);
  EXPECT_EQ(op::recip{}(0.0f), inf);
  EXPECT_TRUE(std::signbit(op::ceil{}(-0.5f)) && std::signbit(op::round{}(-0.25f)));
}

TEST(pointwise, is_inf_looks_for_the_signs_asked_for) {
  const float inf = f32_limits::infinity(), nan = f32_limits::quiet_NaN();
  for (const bool down : {false, true})
    for (const bool up : {false, true}) {
      const op::is_inf op{.detect_negative = down, .detect_positive = up};
      EXPECT_EQ(op(inf), up);
      EXPECT_EQ(op(-inf), down);
      EXPECT_FALSE(op(nan) || op(1.0f) || op(f32_limits::max()));
    }
}

// --- dtypes at run time, symbolic dims ------------------------------------------------------------------------------

TEST(pointwise, every_dtype_adds_as_its_own_type) {
  for (unsigned t = 0; t + 1 < dtype_count; ++t) {
    const auto type = static_cast<dtype>(t);
    const literal x = lit(type, {3}, 1, 100, 120), y = lit(type, {3}, 2, 27, 120);
    const literal sum = compiled(op::add{}, x, y);
    EXPECT_EQ(sum.get_shape().type, type);
    EXPECT_EQ(sum.at<double>(0), 3);
    EXPECT_EQ(sum.at<double>(1), 127);
    EXPECT_EQ(sum.at<double>(2), type == dtype::i8 ? -16 : 240);
    EXPECT_EQ(run(op::add{}, x, y), sum);
  }
}

TEST(pointwise, every_pair_of_dtypes_converts) {
  for (unsigned from = 0; from < dtype_count; ++from)
    for (unsigned to = 0; to < dtype_count; ++to) {
      const literal x = lit(static_cast<dtype>(from), {2}, 0, 1);
      const literal y = compiled(op::convert{static_cast<dtype>(to)}, x);
      EXPECT_EQ(y, lit(static_cast<dtype>(to), {2}, 0, 1));
    }
}

TEST(pointwise, integer_division_by_zero_is_survived) {
  const literal x = lit(dtype::i32, {4}, 5, -5, -2147483648ll, 7), y = lit(dtype::i32, {4}, 0, 0, -1, 2);
  EXPECT_EQ(compiled(op::div{}, x, y), lit(dtype::i32, {4}, 0, 0, -2147483648ll, 3));
  EXPECT_EQ(compiled(op::mod{}, x, y), lit(dtype::i32, {4}, 5, -5, 0, 1));
  EXPECT_EQ(compiled(op::fmod{}, x, y), lit(dtype::i32, {4}, 5, -5, 0, 1));
}

TEST(pointwise, shape_arithmetic_folds_over_symbols) {
  const dimension n = dimension::symbol("n", 1, 100);
  const literal x = symbols(n, dimension(6)), y = i64({2}, 2, 4);
  EXPECT_EQ(compiled(op::add{}, x, y), symbols(n + 2, dimension(10)));
  EXPECT_EQ(compiled(op::sub{}, x, y), symbols(n - 2, dimension(2)));
  EXPECT_EQ(compiled(op::mul{}, x, y), symbols(n * 2, dimension(24)));
  EXPECT_EQ(compiled(op::div{}, x, y), symbols(n / 2, dimension(1)));
  EXPECT_EQ(compiled(op::mod{}, x, y), symbols(n % 2, dimension(2)));
  EXPECT_EQ(compiled(op::neg{}, x), symbols(-n, dimension(-6)));
  EXPECT_EQ(compiled(op::min{}, symbols(n), i64({1}, 200)), symbols(n));
  EXPECT_EQ(compiled(op::max{}, symbols(n), i64({1}, 1)), symbols(n));
  EXPECT_EQ(compiled(op::clip{}, symbols(n), i64({1}, 0), i64({1}, 100)), symbols(n));
  EXPECT_EQ(compiled(op::square_difference{}, symbols(n), symbols(n + 3)), i64({1}, 9));
  EXPECT_EQ(compiled(op::identity{}, x), x);
  EXPECT_EQ(compiled(op::convert{dtype::i32}, x).to<dimension>()[0], n);
  EXPECT_EQ(compiled(op::where{}, lit(dtype::boolean, {2}, true, false), x, y), symbols(n, dimension(4)));
}

TEST(pointwise, symbols_compare_where_every_size_agrees) {
  const dimension n = dimension::symbol("n", 1, 100);
  const auto yes = lit(dtype::boolean, {1}, true), no = lit(dtype::boolean, {1}, false);
  EXPECT_EQ(compiled(op::equal{}, symbols(n), symbols(n)), yes);
  EXPECT_EQ(compiled(op::equal{}, symbols(n), i64({1}, -1)), no);
  EXPECT_EQ(compiled(op::less{}, symbols(n), symbols(n + 1)), yes);
  EXPECT_EQ(compiled(op::less{}, symbols(n), symbols(n)), no);
  EXPECT_EQ(compiled(op::greater{}, symbols(n), i64({1}, 0)), yes);
  EXPECT_EQ(compiled(op::greater{}, symbols(n), symbols(n)), no);
  EXPECT_EQ(compiled(op::less_or_equal{}, symbols(n), i64({1}, 100)), yes);
  EXPECT_EQ(compiled(op::less_or_equal{}, symbols(n), i64({1}, 0)), no);
  EXPECT_EQ(compiled(op::greater_or_equal{}, symbols(n), symbols(n)), yes);
  EXPECT_EQ(compiled(op::greater_or_equal{}, symbols(n), i64({1}, 101)), no);
  EXPECT_THROW(compiled(op::equal{}, symbols(n), i64({1}, 5)), error);
  EXPECT_THROW(compiled(op::less{}, symbols(n), i64({1}, 5)), error);
}

}  // namespace
}  // namespace kiln::test
