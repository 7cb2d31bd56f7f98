// Gathers and scatters by element and by tuple, and one-hot codes, through the Eigen target.
#include <gmock/gmock.h>

#include <cstring>

#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

constexpr dtype moved[] = {dtype::f32, dtype::f64, dtype::f16, dtype::i8, dtype::boolean};
constexpr dtype index_types[] = {dtype::i64, dtype::i32};

std::string first_kernel(const std::function<void(builder&)>& make) {
  return compile_eigen(make).report().steps[0].kernel;
}

// Indices in [-extent, extent), many of them more than once.
argument indices_within(dtype type, const dims& lens, std::int64_t extent, unsigned seed = 5) {
  return random_argument({type, lens}, seed, -static_cast<double>(extent), static_cast<double>(extent));
}
// Tuples over the extents, in the last dim.
argument tuples_within(dtype type, const dims& lens, std::span<const std::int64_t> extents) {
  argument all({type, lens});
  const std::int64_t n = all.elements() / static_cast<std::int64_t>(extents.size());
  for (std::size_t d = 0; d < extents.size(); ++d) {
    const argument one = indices_within(dtype::i64, {n}, extents[d], static_cast<unsigned>(d + 3));
    for (std::int64_t i = 0; i < n; ++i)
      encode(type, &one.as<std::int64_t>()[static_cast<std::size_t>(i)],
             all.data() + (i * static_cast<std::int64_t>(extents.size()) + static_cast<std::int64_t>(d)) *
                              static_cast<std::int64_t>(size_of(type)),
             1);
  }
  return all;
}

struct element_case {
  dims data, indices;
};
const element_case element_cases[] = {
    {{7}, {7}},
    {{40}, {9000}},
    {{3, 5}, {3, 5}},
    {{3, 5}, {2, 9}},
    {{4, 6, 5}, {4, 6, 5}},
    {{4, 6, 5}, {3, 2, 4}},
    {{2, 70, 90}, {2, 70, 90}},
    {{5, 3, 600}, {5, 9, 600}},
    {{3, 4}, {0, 4}},
    {{3, 4, 1}, {2, 4, 1}},
};
bool fits(const element_case& c, std::size_t axis) {
  for (std::size_t d = 0; d < c.data.size(); ++d)
    if (d != axis && c.indices[d].value() > c.data[d].value()) return false;
  return true;
}

TEST(gather_elements, equals_the_reference) {
  for (const element_case& c : element_cases)
    for (std::size_t axis = 0; axis < c.data.size(); ++axis)
      for (const dtype index : index_types)
        for (const dtype type : moved) {
          if (!fits(c, axis)) continue;
          SCOPED_TRACE(::testing::Message() << to_string(shape{type, c.data}) << " by "
                                            << to_string(shape{index, c.indices}) << " axis " << axis);
          const auto make = [&](builder& b) {
            b.output(b.add(op::gather_elements{static_cast<std::int64_t>(axis)},
                           small_vector<value>{b.input("x", type, c.data), b.input("i", index, c.indices)}));
          };
          const argument in[] = {random_argument({type, c.data}, 3, -9, 9),
                                 indices_within(index, c.indices, c.data[axis].value())};
          expect_same(make, in, {0, 0});
          EXPECT_EQ(first_kernel(make), "gather_elements");
          if (::testing::Test::HasFatalFailure()) return;
        }
}

// One index for each row, and tables that exceed a core's caches, of which few elements are shared by threads.
TEST(gather_elements, of_rows_and_of_large_tables) {
  const element_case cases[] = {
      {{601, 700}, {601, 1}}, {{3, 500'003}, {3, 5003}}, {{2, 900, 301}, {2, 900, 1}}, {{3000, 400}, {2999, 1}}};
  for (const element_case& c : cases)
    for (const dtype index : index_types)
      for (const dtype type : {dtype::f32, dtype::f64, dtype::i8}) {
        const std::size_t axis = c.data.size() - 1;
        SCOPED_TRACE(::testing::Message()
                     << to_string(shape{type, c.data}) << " by " << to_string(shape{index, c.indices}));
        const auto make = [&](builder& b) {
          b.output(b.add(op::gather_elements{static_cast<std::int64_t>(axis)},
                         small_vector<value>{b.input("x", type, c.data), b.input("i", index, c.indices)}));
        };
        const argument in[] = {random_argument({type, c.data}, 3, -9, 9),
                               indices_within(index, c.indices, c.data[axis].value())};
        expect_same(make, in, {0, 0});
        if (::testing::Test::HasFatalFailure()) return;
      }
}

// Indices that follow each other are a range, which is copied as a whole; others beside them are not.
TEST(gather, of_ranges_and_nearly_ranges) {
  const std::vector<std::vector<std::int64_t>> lists{{0, 1, 2, 3, 4, 5}, {2, 3, 4},       {-3, -2, -1}, {-3, 4, -1, 3},
                                                     {1, 2, 2},          {1, 2, 4, 4, 5}, {5},          {4, 3, 2},
                                                     {-1, 0, 1},         {0, 2, 1, 3}};
  for (const dims& lens : {dims{6, 4}, dims{3, 6}, dims{5, 6, 300}, dims{2, 6, 9000}, dims{70001, 6}})
    for (const dtype type : moved)
      for (const auto& list : lists) {
        const std::int64_t axis = lens.size() == 2 && lens[0] == dimension(6) ? 0 : 1;
        const auto n = static_cast<std::int64_t>(list.size());
        SCOPED_TRACE(::testing::Message() << to_string(shape{type, lens}) << ' ' << ::testing::PrintToString(list));
        const auto make = [&](builder& b) {
          b.output(b.input("x", type, lens).gather(b.input("i", dtype::i64, {n}), axis));
        };
        const argument in[] = {random_argument({type, lens}, 3, -9, 9), argument::of<std::int64_t>({n}, list)};
        expect_close(compile_eigen(make).run(in)[0], reference_run(make, in)[0], {0, 0});
        if (::testing::Test::HasFatalFailure()) return;
      }
}

TEST(gather_nd, equals_the_reference) {
  struct tuple_case {
    dims data, indices;
    std::int64_t batch;
  };
  const tuple_case cases[] = {
      {{7}, {5, 1}, 0},          {{3, 5}, {4, 2}, 0},           {{3, 5, 6}, {2, 4, 1}, 0}, {{3, 5, 6}, {9, 2}, 0},
      {{3, 5, 6}, {3, 4, 1}, 1}, {{3, 5, 6}, {3, 4, 2}, 1},     {{3, 5, 6}, {3, 5, 1}, 2}, {{40, 30, 9}, {3000, 3}, 0},
      {{4, 5}, {0, 2}, 0},       {{6, 40, 30}, {6, 700, 2}, 1}, {{9, 100}, {50, 1}, 0}};
  for (const tuple_case& c : cases)
    for (const dtype index : index_types)
      for (const dtype type : moved) {
        SCOPED_TRACE(::testing::Message() << to_string(shape{type, c.data}) << " by "
                                          << to_string(shape{index, c.indices}) << " batch " << c.batch);
        const auto make = [&](builder& b) {
          b.output(b.add(op::gather_nd{c.batch},
                         small_vector<value>{b.input("x", type, c.data), b.input("i", index, c.indices)}));
        };
        small_vector<std::int64_t> extents;
        for (std::int64_t d = 0; d < c.indices.back().value(); ++d)
          extents.push_back(c.data[static_cast<std::size_t>(c.batch + d)].value());
        const argument in[] = {random_argument({type, c.data}, 3, -9, 9), tuples_within(index, c.indices, extents)};
        expect_same(make, in, {0, 0});
        EXPECT_EQ(first_kernel(make), "gather_nd");
        if (::testing::Test::HasFatalFailure()) return;
      }
}

constexpr op::scatter_mode modes[] = {op::scatter_mode::none, op::scatter_mode::add, op::scatter_mode::mul,
                                      op::scatter_mode::min, op::scatter_mode::max};
constexpr dtype combined[] = {dtype::f32, dtype::f64, dtype::i8,  dtype::i16, dtype::i32,     dtype::i64, dtype::u8,
                              dtype::u16, dtype::u32, dtype::u64, dtype::f16, dtype::boolean, dtype::bf16};

argument with_nan(argument x) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const dtype type = x.get_shape().type;
  if (is_float(type))
    for (std::int64_t i = 3; i < x.elements(); i += 29)
      encode(type, &nan, x.data() + i * static_cast<std::int64_t>(size_of(type)), 1);
  return x;
}

TEST(scatter_elements, equals_the_reference) {
  for (const element_case& c : element_cases)
    for (std::size_t axis = 0; axis < c.data.size(); ++axis)
      for (const op::scatter_mode mode : modes)
        for (const dtype type : combined) {
          const dtype index = index_types[static_cast<std::size_t>(type) % 2];
          if (!fits(c, axis)) continue;
          SCOPED_TRACE(::testing::Message()
                       << to_string(shape{type, c.data}) << " by " << to_string(shape{index, c.indices}) << " axis "
                       << axis << ' ' << to_string(mode));
          const auto make = [&](builder& b) {
            b.output(b.add(op::scatter_elements{static_cast<std::int64_t>(axis), mode},
                           small_vector<value>{b.input("x", type, c.data), b.input("i", index, c.indices),
                                               b.input("u", type, c.indices)}));
          };
          const argument in[] = {with_nan(random_argument({type, c.data}, 3, 0, 9)),
                                 indices_within(index, c.indices, c.data[axis].value()),
                                 with_nan(random_argument({type, c.indices}, 4, 0, 3))};
          expect_same(make, in, {0, 0});
          EXPECT_EQ(first_kernel(make), "scatter_elements " + std::string(to_string(mode)));
          if (::testing::Test::HasFatalFailure()) return;
        }
}

TEST(scatter_nd, equals_the_reference) {
  struct tuple_case {
    dims data, indices, updates;
  };
  const tuple_case cases[] = {{{7}, {20, 1}, {20}},
                              {{3, 5}, {4, 2}, {4}},
                              {{3, 5, 37}, {6, 2}, {6, 37}},
                              {{3, 5, 6}, {2, 4, 1}, {2, 4, 5, 6}},
                              {{40, 30, 9}, {9000, 3}, {9000}},
                              {{50, 700}, {60, 1}, {60, 700}},
                              {{4, 5}, {0, 2}, {0}},
                              {{4, 0}, {3, 1}, {3, 0}}};
  for (const tuple_case& c : cases)
    for (const op::scatter_mode mode : modes)
      for (const dtype type : combined) {
        const dtype index = index_types[static_cast<std::size_t>(type) % 2];
        SCOPED_TRACE(::testing::Message() << to_string(shape{type, c.data}) << " by "
                                          << to_string(shape{index, c.indices}) << ' ' << to_string(mode));
        const auto make = [&](builder& b) {
          b.output(b.add(op::scatter_nd{mode},
                         small_vector<value>{b.input("x", type, c.data), b.input("i", index, c.indices),
                                             b.input("u", type, c.updates)}));
        };
        small_vector<std::int64_t> extents;
        for (std::int64_t d = 0; d < c.indices.back().value(); ++d)
          extents.push_back(c.data[static_cast<std::size_t>(d)].value());
        const argument in[] = {with_nan(random_argument({type, c.data}, 3, 0, 9)),
                               tuples_within(index, c.indices, extents),
                               with_nan(random_argument({type, c.updates}, 4, 0, 3))};
        expect_same(make, in, {0, 0});
        EXPECT_EQ(first_kernel(make), "scatter_nd " + std::string(to_string(mode)));
        if (::testing::Test::HasFatalFailure()) return;
      }
}

// Into a constant of zeros, which is not read, and into one that is nearly so; places that come in order, so that most
// blocks of them are one thread's.
TEST(scatter_elements, constants_of_zeros_and_places_in_order) {
  constexpr std::int64_t extent = 600'000, count = 6000;
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < count; ++i) places.push_back(i * 97 + i % 5);
  const argument in[] = {argument::of<std::int64_t>({count}, places), random_argument({dtype::f32, {count}}, 7)};
  for (const op::scatter_mode mode : {op::scatter_mode::none, op::scatter_mode::add})
    for (const float last : {0.0f, 2.0f}) {
      const auto make = [&](builder& b) {
        std::vector<float> data(extent, 0.0f);
        data.back() = last;
        const value x = b.constant<float>(dtype::f32, {extent}, data), i = b.input("i", dtype::i64, {count}),
                    u = b.input("u", dtype::f32, {count});
        b.output(b.add(op::scatter_elements{0, mode}, small_vector<value>{x, i, u}));
        b.output(b.add(op::scatter_nd{mode}, small_vector<value>{x, i.reshape({count, 1}), u}));
      };
      expect_same(make, in, {0, 0});
      // what is not read is not held
      EXPECT_EQ(compile_eigen(make).report().constant_bytes < extent * sizeof(float), last == 0) << last;
    }
}

// f16, which are combined in f32.
TEST(scatter_elements, constants_of_zeros_that_are_widened) {
  constexpr std::int64_t extent = 50'000, count = 3000;
  const argument in[] = {indices_within(dtype::i64, {count}, extent), random_argument({dtype::f16, {count}}, 7)};
  const auto make = [&](builder& b) {
    const value x = b.constant<float>(dtype::f16, {extent}, std::vector<float>(extent, 0.0f));
    b.output(b.add(op::scatter_elements{0, op::scatter_mode::add},
                   small_vector<value>{x, b.input("i", dtype::i64, {count}), b.input("u", dtype::f16, {count})}));
  };
  expect_same(make, in, {0, 0});
  EXPECT_LT(compile_eigen(make).report().constant_bytes, std::size_t{extent});
}

TEST(one_hot, equals_the_reference) {
  for (const dims& lens : {dims{}, dims{5}, dims{3, 70}, dims{300, 40}, dims{2, 0}})
    for (std::int64_t axis = -1; axis <= static_cast<std::int64_t>(lens.size()); ++axis)
      for (const std::int64_t depth : {0, 1, 9, 33})
        for (const dtype type : {dtype::f32, dtype::i64, dtype::f16, dtype::boolean}) {
          SCOPED_TRACE(::testing::Message() << to_string(shape{type, lens}) << " axis " << axis << " depth " << depth);
          const auto make = [&](builder& b) {
            b.output(b.add(op::one_hot{depth, axis},
                           small_vector<value>{b.input("i", dtype::i64, lens), b.input("v", type, {2})}));
          };
          // some outside, which are nowhere
          const argument in[] = {random_argument({dtype::i64, lens}, 3, -12, 12),
                                 random_argument({type, {2}}, 4, 1, 9)};
          expect_same(make, in, {0, 0});
          EXPECT_EQ(first_kernel(make), "one_hot");
          if (::testing::Test::HasFatalFailure()) return;
        }
}

// An error names the index, its axis and the extent.
TEST(places, outside_of_an_extent_are_errors) {
  using ::testing::HasSubstr;
  const auto expect_outside = [](const std::function<void(builder&)>& make, std::int64_t wrong, const char* axis) {
    for (const std::int64_t k : {wrong, -wrong - 1}) {
      auto in = random_inputs(make, 3, 0, 1);
      for (std::int64_t& i : in[1].as<std::int64_t>()) i = 0;
      in[1].as<std::int64_t>()[in[1].as<std::int64_t>().size() - 1] = k;
      const auto [code, message] = error_of([&] { compile_eigen(make).run(in); });
      EXPECT_EQ(code, errc::invalid_argument);
      EXPECT_THAT(message, HasSubstr(std::string("along axis ") + axis));
      EXPECT_THAT(message, HasSubstr("[-" + std::to_string(wrong) + ", " + std::to_string(wrong) + ")"));
      EXPECT_THAT(message, HasSubstr("found " + std::to_string(k)));
    }
  };
  const auto operands = [](builder& b, const dims& indices, const dims& updates = {}) {
    small_vector<value> all{b.input("x", dtype::f32, {3, 5, 7}), b.input("i", dtype::i64, indices)};
    if (updates.size() != 0) all.push_back(b.input("u", dtype::f32, updates));
    return all;
  };
  expect_outside([&](builder& b) { b.output(b.add(op::gather{1}, operands(b, {9}))); }, 5, "1");
  expect_outside([&](builder& b) { b.output(b.add(op::gather_elements{2}, operands(b, {3, 5, 40}))); }, 7, "2");
  expect_outside([&](builder& b) { b.output(b.add(op::gather_nd{1}, operands(b, {3, 4, 2}))); }, 7, "2");
  expect_outside([&](builder& b) { b.output(b.add(op::gather_nd{0}, operands(b, {4, 1}))); }, 3, "0");
  expect_outside(
      [&](builder& b) {
        b.output(b.add(op::scatter_elements{1}, operands(b, {3, 2, 7}, {3, 2, 7})));
      },
      5, "1");
  expect_outside([&](builder& b) { b.output(b.add(op::scatter_nd{}, operands(b, {4, 2}, {4, 7}))); }, 5, "1");
}

// A table that only gathers read stays where it is, at an odd address too; what others read is moved to one of theirs.
TEST(gather, reads_tables_where_they_are) {
  const auto results = [](bool adds) {
    std::vector<std::byte> memory(1 + 50 * 8 * 4);
    const argument numbers = random_argument({dtype::f32, {50, 8}}, 3, -1, 1);
    std::memcpy(memory.data() + 1, numbers.data(), memory.size() - 1);
    const executable e = compile_eigen([&](builder& b) {
      const value table =
          b.constant(literal({dtype::f32, {50, 8}}, buffer::borrow(memory.data() + 1, memory.size() - 1)));
      const value at = b.input("at", dtype::i64, {3}), row = b.input("row", dtype::i64, {3, 8}),
                  tuple = b.input("tuple", dtype::i64, {3, 1});
      b.output(table.gather(at, 0));
      b.output(b.add(op::gather_elements{0}, table, row));
      b.output(b.add(op::gather_nd{}, table, tuple));
      if (adds) b.output(table + b.input("x", dtype::f32, {50, 8}));
    });
    argument at({dtype::i64, {3}}), row({dtype::i64, {3, 8}}), tuple({dtype::i64, {3, 1}});
    for (std::int64_t i = 0; i < 3; ++i) {
      at.as<std::int64_t>()[static_cast<std::size_t>(i)] = tuple.as<std::int64_t>()[static_cast<std::size_t>(i)] =
          40 - 7 * i;
      for (std::int64_t k = 0; k < 8; ++k) row.as<std::int64_t>()[static_cast<std::size_t>(i * 8 + k)] = 40 - 7 * i;
    }
    std::vector<argument> in{at, row, tuple};
    if (adds) in.push_back(random_argument({dtype::f32, {50, 8}}, 4, 0, 0));
    const auto before = e.run(in);
    for (std::size_t k = 0; k < 3; ++k)
      for (std::size_t i = 0; i < 24; ++i)
        EXPECT_EQ(before[k].as<float>()[i], numbers.as<float>()[(40 - 7 * (i / 8)) * 8 + i % 8]) << k << ' ' << i;
    std::fill(memory.begin(), memory.end(), std::byte{});
    return e.run(in)[0].as<float>()[0];
  };
  EXPECT_EQ(results(false), 0) << "it was copied";
  EXPECT_NE(results(true), 0) << "a sum reads floats at an odd address";
}

}  // namespace
}  // namespace kiln::testing
