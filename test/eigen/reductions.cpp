// Single reductions through the Eigen target: every kind and dtype, any dims.
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kiln/backend/eigen/rows.hpp"
#include "kiln/op/ops.hpp"
#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

struct reduction_case {
  dims lens;
  ints axes;
};
const reduction_case cases[] = {
    {{7}, {0}},           {{1}, {0}},
    {{3, 5}, {0}},        {{3, 5}, {1}},
    {{3, 5}, {}},         {{4, 5, 6}, {1}},
    {{4, 5, 6}, {0, 2}},  {{2, 3, 4, 5}, {1, 3}},
    {{2, 300}, {1}},      {{300, 2}, {0}},
    {{3, 70, 1100}, {1}}, {{1, 90000}, {}},
    {{40000, 3}, {0}},    {{0, 3}, {0}},
    {{3, 0}, {0}},        {{2, 1, 3}, {1}},
    {{5, 2, 700}, {0}},   {{2, 3, 2, 3, 2}, {0, 2, 4}},
    {{700, 129}, {1}},    {{3, 2, 9, 2}, {-1, 1}},
    {{53, 2}, {1}},       {{133, 3}, {1}},
    {{9, 5, 7}, {-1}},    {{67, 13}, {1}},
};

template <class Op> void expect_reduced(std::initializer_list<dtype> types, double low, double high) {
  for (const auto& [lens, axes] : cases)
    for (const dtype type : types) {
      SCOPED_TRACE(::testing::Message() << to_string(shape{type, lens}) << ", " << axes.size() << " axes");
      const auto make = [&](builder& b) { b.output(b.add(Op{axes}, b.input("x", type, lens))); };
      expect_same(make, random_inputs(make, 3, low, high),
                  is_integer(type)     ? tolerance{0, 0}
                  : type == dtype::f64 ? tolerance{1e-12, 1e-11}
                                       : tolerance{1e-5, 2e-4});
      if (::testing::Test::HasFatalFailure()) return;
    }
}

constexpr auto all = {dtype::f32, dtype::f64, dtype::i32, dtype::i64, dtype::u8, dtype::i8};

TEST(reductions, sums) { expect_reduced<op::reduce_sum>(all, 0, 100); }
TEST(reductions, means) { expect_reduced<op::reduce_mean>({dtype::f32, dtype::f64}, -50, 100); }
TEST(reductions, greatest) { expect_reduced<op::reduce_max>(all, 0, 100); }
TEST(reductions, least) { expect_reduced<op::reduce_min>(all, 3, 100); }
TEST(reductions, products) {
  expect_reduced<op::reduce_prod>({dtype::f64, dtype::i32, dtype::i64, dtype::u8}, -1.5, 1.5);
}
TEST(reductions, magnitudes) { expect_reduced<op::reduce_l1>({dtype::f32, dtype::f64}, -1, 1); }
TEST(reductions, squares) { expect_reduced<op::reduce_sum_square>({dtype::f32, dtype::f64}, -1, 1); }
TEST(reductions, roots_of_squares) { expect_reduced<op::reduce_l2>({dtype::f32, dtype::f64}, -1, 1); }

constexpr auto signed_integers = {dtype::i32, dtype::i64, dtype::i8}, bytes = {dtype::u8};
TEST(reductions, magnitudes_of_integers) {
  expect_reduced<op::reduce_l1>(signed_integers, -128, 127);
  expect_reduced<op::reduce_l1>(bytes, 0, 255);
}
TEST(reductions, squares_of_integers_wrap) {
  expect_reduced<op::reduce_sum_square>({dtype::i32, dtype::i64}, -2e9, 2e9);
  expect_reduced<op::reduce_sum_square>({dtype::i8}, -128, 127);
  expect_reduced<op::reduce_sum_square>(bytes, 0, 255);
}
// Squares are added in 64 bits: the root of sums that 32 bits don't hold is right.
TEST(reductions, roots_of_squares_of_integers) {
  expect_reduced<op::reduce_l2>({dtype::i32, dtype::i64}, -60000, 60000);
  expect_reduced<op::reduce_l2>({dtype::i8}, -128, 127);
  expect_reduced<op::reduce_l2>(bytes, 0, 255);
}

TEST(reductions, means_of_integers_truncate) {
  for (const dtype type : {dtype::i32, dtype::i64, dtype::u8, dtype::i8})
    for (const dims& lens : {dims{9, 7}, dims{2, 5, 300}, dims{70000, 2}}) {
      const auto make = [&](builder& b) { b.output(b.add(op::reduce_mean{{0}}, b.input("x", type, lens))); };
      expect_same(make, random_inputs(make, 3, type == dtype::u8 ? 0 : -100, 100), {0, 0});
    }
}
TEST(reductions, sums_of_integers_wrap) {
  const auto make = [](builder& b) { b.output(b.add(op::reduce_sum{{1}}, b.input("x", dtype::i32, {3, 500}))); };
  expect_same(make, random_inputs(make, 3, 1e9, 2e9), {0, 0});
}
TEST(reductions, nan_stays) {
  for (const auto& [lens, axes] :
       {reduction_case{{40, 150}, {0}}, {{40, 150}, {1}}, {{40, 150}, {}}, {{1500, 4}, {1}}}) {
    const auto make = [&](builder& b) {
      const value x = b.input("x", dtype::f32, lens);
      b.output(b.add(op::reduce_max{axes}, x));
      b.output(b.add(op::reduce_min{axes}, x));
    };
    std::vector<argument> in = random_inputs(make);
    auto* const x = reinterpret_cast<float*>(in[0].data());
    x[150 * 7 + 31] = x[149] = std::numeric_limits<float>::quiet_NaN();
    expect_same(make, in, {0, 0});
  }
}
// Sums of many floats: 100000 times 0.1F within 5e-6 (added one by one they are off by 1.4e-4).
TEST(reductions, long_sums_keep_their_digits) {
  for (const dims& lens : {dims{100000, 1}, dims{100000, 3}}) {
    const executable e =
        compile_eigen([&](builder& b) { b.output(b.add(op::reduce_sum{{0}}, b.input("x", dtype::f32, lens))); });
    argument in(shape{dtype::f32, lens});
    std::fill_n(reinterpret_cast<float*>(in.data()), in.elements(), 0.1F);
    const std::vector<argument> inputs{in};
    EXPECT_NEAR(e.run(inputs)[0].to<double>()[0], 100000 * static_cast<double>(0.1F), 0.05);
  }
}

// Equal rows have equal sums, whichever of them are folded together and by which thread: lanes are added pairwise.
TEST(reductions, equal_short_rows_have_equal_sums) {
  const float row[] = {1e8F, 1, -1e8F, 1, 1, -1e8F, 3, 1e8F, 7, 1e8F, 1, 2, -1e8F, 5, 9};
  for (const unsigned threads : {1U, 2U})
    for (std::int64_t n = 2; n <= 15; ++n)
      for (const std::int64_t rows : {3, 17, 1003}) {
        SCOPED_TRACE(::testing::Message() << threads << " threads " << rows << ' ' << n);
        compile_options o = plain_options();
        o.pool = std::make_shared<thread_pool>(threads);
        const executable e = compile_eigen(
            [&](builder& b) {
              b.output(b.input("x", dtype::f32, {rows, n}).reduce_sum({-1}));
            },
            o);
        argument in(shape{dtype::f32, {rows, n}});
        for (std::int64_t k = 0; k < rows * n; ++k) in.as<float>()[static_cast<std::size_t>(k)] = row[k % n];
        const std::vector<argument> inputs{in};
        const auto sums = e.run(inputs)[0].to<double>();
        EXPECT_THAT(sums, ::testing::Each(sums[0]));
        EXPECT_TRUE(n != 3 || sums[0] == 1) << sums[0];  // one after another they make 0
      }
}

value number(builder& b, float x) {
  return b.constant(literal::of<float>(shape{dtype::f32, {1}}, std::vector<float>{x}));
}
value normalized(builder& b, value x, value scale, value shift) {
  const value apart = x - x.reduce_mean({-1});
  return apart / ((apart * apart).reduce_mean({-1}) + number(b, 1e-3F)).sqrt() * scale + shift;
}

// Some rows are transposed at a time, of which the last ones are computed twice where they are not in place.
TEST(reductions, fused_over_short_rows) {
  for (const std::int64_t n : {2, 3, 7, 16, 20, 24, 25})
    for (const std::int64_t rows : {127, 128, 300, 2111}) {
      SCOPED_TRACE(::testing::Message() << rows << ' ' << n);
      const auto make = [&](builder& b) {
        const value x = b.input("x", dtype::f32, {2, rows, n}), scale = b.input("scale", dtype::f32, {n}),
                    shift = b.input("shift", dtype::f32, {n});
        b.output(x.softmax(-1));
        b.output(x.dot(b.input("w", dtype::f32, {n, n})).softmax(-1));
        b.output(normalized(b, x, scale, shift));
        b.output(((x - b.input("column", dtype::f32, {2, rows, 1})).exp() * scale).reduce_sum({-1}));
        b.output(x.slice({.axes = {2}, .starts = {1}, .ends = {n}}).log_softmax(-1));
        b.output(x.convert(dtype::f16).softmax(-1));
      };
      expect_same(make, random_inputs(make, 3, -3, 3), {1e-4, 1e-4});
      if (::testing::Test::HasFailure()) return;
    }
}

// Odd numbers of long rows are cut between the two threads; of the longest, nothing is kept from level to level.
TEST(reductions, fused_over_rows_that_are_cut) {
  for (const dims& lens : {dims{1, 16384}, dims{3, 33333}, dims{5, 20001}, dims{7, 17000}, dims{7, 120001},
                           dims{1, 300001}, dims{3, 270000}}) {
    SCOPED_TRACE(to_string(shape{dtype::f32, lens}));
    const auto make = [&](builder& b) {
      const value x = b.input("x", dtype::f32, lens), scale = b.input("scale", dtype::f32, {lens[1]}),
                  column = b.input("column", dtype::f32, {lens[0], 1});
      b.output((x * column).log_softmax(-1));
      b.output((x * column).softmax(-1) * number(b, 1e4F));
      b.output(normalized(b, x, scale, column));
      b.output(x.slice({.axes = {1}, .starts = {lens[1] - 1}, .ends = {-lens[1] - 1}, .steps = {-1}}).log_softmax(-1));
      b.output((x * scale).reduce_max({-1}) + column);
      // elements are squared once, wherever the row is cut
      b.output(b.add(op::reduce_sum_square{.axes = {-1}}, x * scale) + column);
      b.output(b.add(op::reduce_l2{.axes = {-1}}, x * scale) + column);
    };
    expect_same(make, random_inputs(make, 3, -3, 3), {1e-4, 1e-4});
    if (::testing::Test::HasFailure()) return;
  }
}

// Columns in blocks of about the same width, the last of which is narrower, and rows beyond the caches.
TEST(reductions, columns_of_any_number) {
  for (const dtype type : {dtype::f32, dtype::f64, dtype::i64})
    for (const std::int64_t columns : {1023, 1024, 1025, 1283, 2049, 3100, 101'377}) {
      SCOPED_TRACE(::testing::Message() << to_string(type) << ' ' << columns);
      const std::int64_t rows = columns == 2049 ? 150 : 7;
      const auto make = [&](builder& b) {
        const value x = b.input("x", type, {2, rows, columns});
        b.output(x.reduce_sum({1}));
        b.output(x.reduce_max({1}));
      };
      expect_same(make, random_inputs(make, 3, -3, 3), {1e-4, 1e-4});
      if (::testing::Test::HasFailure()) return;
    }
}

// They are computed in groups that the threads' caches hold: more rows take no more scratch.
TEST(reductions, rows_that_are_cut_share_scratch) {
  const auto scratch = [](std::int64_t rows) {
    const shape full{dtype::f32, {rows, 40'000}}, row{dtype::f32, {rows, 1}};
    module_graph body;
    const value_id x = body.add_parameter("x", full);
    const value_id top = body.add_with_shapes(op::reduce_max{.axes = {1}}, {x}, {row});
    const value_id all = body.add_with_shapes(op::multibroadcast{full.lens}, {top}, {full});
    body.outputs.push_back(body.add_with_shapes(op::mul{}, {x, all}, {full}));
    const tensor of{nullptr, dtype::f32, {rows, 40'000}, {40'000, 1}};
    return eigen::make_rows_kernel(body, "rows")->scratch_bytes({&of, 1}, {&of, 1}, 8);
  };
  EXPECT_EQ(scratch(25), scratch(31));
}

// Elements that end where a page begins that nothing may read.
class guarded {
 public:
  explicit guarded(const argument& of) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const auto n = static_cast<std::size_t>(of.elements()) * size_of(of.get_shape().type);
    const std::size_t whole = (n + page - 1) / page * page;
    bytes_ = whole + page;
    at_ = static_cast<std::byte*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (at_ == MAP_FAILED || mprotect(at_ + whole, page, PROT_NONE) != 0) std::abort();
    held_ = argument(of.get_shape(), at_ + whole - n);
    std::copy_n(of.data(), n, held_.data());
  }
  guarded(const guarded&) = delete;
  guarded& operator=(const guarded&) = delete;
  ~guarded() { munmap(at_, bytes_); }
  const argument& held() const { return held_; }

 private:
  std::byte* at_;
  std::size_t bytes_;
  argument held_;
};

// Of rows too long to be kept, what the second level reads is computed there alone, from operands that the first level
// does not read: every row has the same `w`, whose end is the memory's.
TEST(reductions, long_rows_are_read_within_their_ends) {
  for (const dtype type : {dtype::f64, dtype::i64, dtype::f32}) {
    SCOPED_TRACE(to_string(type));
    const dims lens{6, 300'008};  // no whole number of tiles, and tasks of two rows
    const auto make = [&](builder& b) {
      const value x = b.input("x", type, lens), x2 = b.input("x2", type, lens), w = b.input("w", type, {1, lens[1]});
      b.output((x2 * w) * (x * x).reduce_max({-1}));
    };
    const auto in = random_inputs(make, 3, -9, 9);
    const guarded a(in[0]), b(in[1]), c(in[2]);
    const std::vector<argument> inputs{a.held(), b.held(), c.held()};
    const executable e = compile_eigen(make);
    ASSERT_EQ(e.report().steps.size(), 1U);
    expect_close(e.run(inputs)[0], reference_run(make, in)[0], {1e-6, 0});
  }
}

}  // namespace
}  // namespace kiln::testing
