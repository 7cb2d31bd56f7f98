#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <random>

#include "op/run_op.hpp"

namespace kiln::test {
namespace {

constexpr shape f(dims lens) { return {dtype::f32, lens}; }
constexpr auto least = std::numeric_limits<std::int64_t>::min();
constexpr auto most = std::numeric_limits<std::int64_t>::max();

template <class Op> constexpr layout mapped(const Op& op, const layout& in) { return op.map(in).value(); }
constexpr layout row(dims lens) { return layout::standard(lens); }

// --- transpose ------------------------------------------------------------------------------------------------------

static_assert(shape_from(op::transpose{{2, 0, 1}}, f({2, 3, 4})) == f({4, 2, 3}));
static_assert(shape_from(op::transpose{{-1, 0}}, f({2, 3})) == f({3, 2}));
static_assert(shape_from(op::transpose{}, f({2, 3, 4})) == f({4, 3, 2}));
static_assert(shape_from(op::transpose{}, f({})) == f({}));
static_assert(run(op::transpose{{1, 0}}, f32({2, 3}, 1, 2, 3, 4, 5, 6)) == f32({3, 2}, 1, 4, 2, 5, 3, 6));
static_assert(fails(op::transpose{{0}}, errc::shape_mismatch, "a permutation has as many axes as the input has dims",
                    f({2, 3})));
static_assert(fails(op::transpose{{0, 0}}, errc::shape_mismatch, "a permutation names each axis once", f({2, 3})));
static_assert(fails(op::transpose{{0, 2}}, errc::shape_mismatch, "a permutation names each axis once", f({2, 3})));

// --- reshape, flatten -----------------------------------------------------------------------------------------------

static_assert(shape_from(op::reshape{{6, 4}}, f({2, 3, 4})) == f({6, 4}));
static_assert(shape_from(op::reshape{{}}, f({1, 1})) == f({}));
static_assert(shape_from(op::reshape{{1}}, f({})) == f({1}));
static_assert(shape_from(op::reshape{{0, 7}}, f({3, 0})) == f({0, 7}));
static_assert(run(op::reshape{{3, 2}}, f32({2, 3}, 1, 2, 3, 4, 5, 6)) == f32({3, 2}, 1, 2, 3, 4, 5, 6));
static_assert(fails(op::reshape{{5}}, errc::shape_mismatch, "a reshape keeps the number of elements", f({2, 3})));
static_assert(fails(op::reshape{{-2, -3}}, errc::invalid_argument, "extents are not negative", f({2, 3})));
// strided input: groups of dims that lie together may be split and merged, others ask for a copy
static_assert(mapped(op::reshape{{3, 2, 2}}, layout{{3, 4}, {8, 1}, 5}) == layout{{3, 2, 2}, {8, 2, 1}, 5});
static_assert(mapped(op::reshape{{12}}, layout{{3, 4}, {4, 1}, 5}) == layout{{12}, {1}, 5});
static_assert(op::reshape{{12}}.map(layout{{3, 4}, {8, 1}, 0}).why().code == errc::unsupported);
static_assert(op::reshape{{6}}.map(layout{{2, 3}, {1, 2}, 0}).why().code == errc::unsupported);
static_assert(mapped(op::reshape{{0, 5}}, layout{{3, 0}, {1, 7}, 0}).lens == dims{0, 5});

static_assert(shape_from(op::flatten{}, f({2, 3, 4})) == f({2, 12}));
static_assert(shape_from(op::flatten{0}, f({2, 3, 4})) == f({1, 24}));
static_assert(shape_from(op::flatten{3}, f({2, 3, 4})) == f({24, 1}));
static_assert(shape_from(op::flatten{-1}, f({2, 3, 4})) == f({6, 4}));
static_assert(shape_from(op::flatten{0}, f({})) == f({1, 1}));
static_assert(shape_from(op::flatten{1}, f({0, 3})) == f({0, 3}));
static_assert(fails(op::flatten{}, errc::shape_mismatch, "an axis lies within the rank", f({})));
static_assert(fails(op::flatten{4}, errc::shape_mismatch, "an axis lies within the rank", f({2, 3, 4})));
static_assert(fails(op::flatten{-4}, errc::shape_mismatch, "an axis lies within the rank", f({2, 3, 4})));

// --- squeeze, unsqueeze ---------------------------------------------------------------------------------------------

static_assert(shape_from(op::squeeze{{1}}, f({2, 1, 3})) == f({2, 3}));
static_assert(shape_from(op::squeeze{{-1, 0}}, f({1, 2, 1})) == f({2}));
static_assert(shape_from(op::squeeze{}, f({1, 2, 1})) == f({2}));
static_assert(shape_from(op::squeeze{}, f({1, 1})) == f({}));
static_assert(shape_from(op::squeeze{}, f({0, 1})) == f({0}));
static_assert(mapped(op::squeeze{{0}}, layout{{1, 3}, {9, 2}, 4}) == layout{{3}, {2}, 4});
static_assert(fails(op::squeeze{{0}}, errc::shape_mismatch, "a squeezed extent is 1", f({2, 1})));
static_assert(fails(op::squeeze{{0}}, errc::shape_mismatch, "a squeezed extent is 1", f({0, 1})));
static_assert(fails(op::squeeze{{2}}, errc::shape_mismatch, "an axis lies within the rank", f({2, 1})));
static_assert(fails(op::squeeze{{1, -1}}, errc::shape_mismatch, "an axis is named once", f({2, 1})));

static_assert(shape_from(op::unsqueeze{{0}}, f({2, 3})) == f({1, 2, 3}));
static_assert(shape_from(op::unsqueeze{{-1, 1}}, f({2, 3})) == f({2, 1, 3, 1}));
static_assert(shape_from(op::unsqueeze{{0, 1}}, f({})) == f({1, 1}));
static_assert(shape_from(op::unsqueeze{}, f({2})) == f({2}));
static_assert(mapped(op::unsqueeze{{1}}, layout{{3, 4}, {8, 2}, 5}) == layout{{3, 1, 4}, {8, 8, 2}, 5});
static_assert(mapped(op::unsqueeze{{0, 2, 4}}, row({3, 4})) == row({1, 3, 1, 4, 1}));
static_assert(fails(op::unsqueeze{{3}}, errc::shape_mismatch, "an axis lies within the rank", f({2})));
static_assert(fails(op::unsqueeze{{0, 0}}, errc::shape_mismatch, "an axis is named once", f({2})));
static_assert(fails(op::unsqueeze{{0}}, errc::limit, "rank of a tensor", f({1, 1, 1, 1, 1, 1, 1, 1})));

// --- broadcasts -----------------------------------------------------------------------------------------------------

static_assert(mapped(op::multibroadcast{{4, 2, 3}}, row({2, 1})) == layout{{4, 2, 3}, {0, 1, 0}, 0});
static_assert(mapped(op::multibroadcast{{2, 3}}, row({})) == layout{{2, 3}, {0, 0}, 0});
static_assert(mapped(op::multibroadcast{{2, 3}}, row({2, 3})) == row({2, 3}));
static_assert(mapped(op::multibroadcast{{0}}, row({1})) == layout{{0}, {0}, 0});
static_assert(mapped(op::expect_dims{{2, 3}}, layout{{2, 3}, {1, 2}, 4}) == layout{{2, 3}, {1, 2}, 4});
static_assert(run(op::expect_dims{{2, 1}}, f32({2, 1}, 1, 2)) == f32({2, 1}, 1, 2));
static_assert(fails(op::expect_dims{{3, 2}}, errc::shape_mismatch, "the operand has the extents expected of it",
                    f({2, 3})));
static_assert(fails(op::expect_dims{{1, 2}}, errc::shape_mismatch, "rank of the operand", f({2})));
static_assert(run(op::multibroadcast{{2, 2}}, f32({2, 1}, 1, 2)) == f32({2, 2}, 1, 1, 2, 2));
static_assert(fails(op::multibroadcast{{2, 4}}, errc::shape_mismatch, "dims broadcast together", f({2, 3})));
static_assert(fails(op::multibroadcast{{1}}, errc::shape_mismatch, "dims broadcast together", f({3})));
static_assert(fails(op::multibroadcast{{3}}, errc::shape_mismatch, "a broadcast does not drop dims", f({1, 3})));

static_assert(mapped(op::broadcast{1, {2, 3, 4, 5}}, row({3, 4})) == layout{{2, 3, 4, 5}, {0, 4, 1, 0}, 0});
static_assert(mapped(op::broadcast{-1, {2, 3}}, row({3})) == layout{{2, 3}, {0, 1}, 0});
static_assert(mapped(op::broadcast{0, {2, 3}}, row({})) == layout{{2, 3}, {0, 0}, 0});
static_assert(run(op::broadcast{0, {2, 2}}, f32({2}, 1, 2)) == f32({2, 2}, 1, 1, 2, 2));
static_assert(fails(op::broadcast{1, {2, 3}}, errc::shape_mismatch, "dims agree from the axis on", f({2})));
static_assert(fails(op::broadcast{2, {2, 3}}, errc::shape_mismatch, "the input's dims lie within the broadcast dims",
                    f({3})));
static_assert(fails(op::broadcast{-3, {2, 3}}, errc::shape_mismatch, "the input's dims lie within the broadcast dims",
                    f({3})));

// --- reverse --------------------------------------------------------------------------------------------------------

static_assert(mapped(op::reverse{{1}}, row({2, 3})) == layout{{2, 3}, {3, -1}, 2});
static_assert(run(op::reverse{{0, -1}}, f32({2, 2}, 1, 2, 3, 4)) == f32({2, 2}, 4, 3, 2, 1));
static_assert(mapped(op::reverse{}, row({2})) == row({2}));
static_assert(mapped(op::reverse{{0}}, row({0})).offset == dimension(0));
static_assert(mapped(op::reverse{{0}}, mapped(op::reverse{{0}}, row({5}))) == row({5}));
static_assert(fails(op::reverse{{1}}, errc::shape_mismatch, "an axis lies within the rank", f({2})));

// --- slice ----------------------------------------------------------------------------------------------------------

constexpr literal ten() { return i64({10}, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9); }

static_assert(run(op::slice{{0}, {2}, {5}, {}}, ten()) == i64({3}, 2, 3, 4));
static_assert(run(op::slice{{}, {-3}, {most}, {}}, ten()) == i64({3}, 7, 8, 9));
static_assert(run(op::slice{{-1}, {0}, {-8}, {1}}, ten()) == i64({2}, 0, 1));
static_assert(run(op::slice{{0}, {1}, {most}, {4}}, ten()) == i64({3}, 1, 5, 9));
static_assert(run(op::slice{{0}, {-1}, {least}, {-4}}, ten()) == i64({3}, 9, 5, 1));
static_assert(run(op::slice{{0}, {1}, {most}, {most}}, ten()) == i64({1}, 1));
static_assert(run(op::slice{{0}, {-2}, {least}, {least}}, ten()) == i64({1}, 8));
static_assert(run(op::slice{{0}, {3}, {1}, {least}}, ten()) == i64({1}, 3));
static_assert(run(op::slice{{0}, {0}, {most}, {std::int64_t{1} << 62}}, i64({0})).elements() == 0);
static_assert(run(op::slice{{0}, {-1}, {least}, {-1}}, i64({3}, 0, 1, 2)) == i64({3}, 2, 1, 0));
static_assert(run(op::slice{{0}, {6}, {2}, {-2}}, ten()) == i64({2}, 6, 4));
static_assert(run(op::slice{{0}, {100}, {-2}, {-1}}, ten()) == i64({1}, 9));
static_assert(run(op::slice{{0}, {least}, {3}, {}}, ten()) == i64({3}, 0, 1, 2));
static_assert(run(op::slice{{0}, {5}, {2}, {}}, ten()).elements() == 0);
static_assert(run(op::slice{{0}, {20}, {30}, {}}, ten()).elements() == 0);
static_assert(run(op::slice{{0}, {2}, {most}, {-1}}, ten()).elements() == 0);
static_assert(run(op::slice{{0}, {0}, {least}, {-1}}, i64({0})).elements() == 0);
static_assert(mapped(op::slice{{1}, {1}, {3}, {}}, row({2, 4})) == layout{{2, 2}, {4, 1}, 1});
static_assert(mapped(op::slice{{1, 0}, {3, 1}, {least, 2}, {-2, 1}}, row({2, 4})) == layout{{1, 2}, {4, -2}, 7});
static_assert(mapped(op::slice{}, row({})) == row({}));
static_assert(fails(op::slice{{0}, {1, 2}, {3, 4}, {}}, errc::invalid_argument, "as many axes as starts", f({9, 9})));
static_assert(fails(op::slice{{0}, {1}, {3, 4}, {}}, errc::invalid_argument, "as many ends as starts", f({9, 9})));
static_assert(fails(op::slice{{0}, {1}, {3}, {1, 1}}, errc::invalid_argument, "as many steps as starts", f({9, 9})));
static_assert(fails(op::slice{{0}, {1}, {3}, {0}}, errc::invalid_argument, "a step is not 0", f({9})));
static_assert(fails(op::slice{{1}, {1}, {3}, {}}, errc::shape_mismatch, "an axis lies within the rank", f({9})));
static_assert(fails(op::slice{{0, -1}, {1, 1}, {3, 3}, {}}, errc::shape_mismatch, "at most as many axes as dims",
                    f({9})));
static_assert(fails(op::slice{{0, -2}, {1, 1}, {3, 3}, {}}, errc::shape_mismatch, "an axis is named once", f({9, 9})));
static_assert(fails(op::slice{{}, {1, 1}, {3, 3}, {}}, errc::shape_mismatch, "at most as many axes as dims", f({9})));

// --- at run time ----------------------------------------------------------------------------------------------------

TEST(view, the_list_names_every_header) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(KILN_SOURCE_DIR "/include/kiln/op/view")) {
    ++files;
    const op_table* table = detail::find_built_in(entry.path().stem().string());
    ASSERT_NE(table, nullptr) << entry.path();
    EXPECT_EQ(table->kind, op_kind::view);
  }
  EXPECT_EQ(files, view_ops::size);
}

TEST(view, every_dtype_moves) {
  for (unsigned t = 0; t < dtype_count; ++t) {
    const literal in = lit(static_cast<dtype>(t), {2, 2}, 0, 1, 1, 1);
    EXPECT_EQ(compiled(op::reverse{{0, 1}}, in), lit(static_cast<dtype>(t), {2, 2}, 1, 1, 1, 0));
  }
}

// Python's slice, index by index, from ONNX's text: positions are made non-negative, then clamped.
small_vector<std::int64_t> sliced(std::int64_t n, std::int64_t start, std::int64_t end, std::int64_t step) {
  small_vector<std::int64_t> out;
  if (start < 0) start += n;
  if (end < 0) end += n;
  const std::int64_t last = step > 0 ? n : n - 1;
  start = std::clamp<std::int64_t>(start, 0, std::max<std::int64_t>(last, 0));
  end = step > 0 ? std::clamp<std::int64_t>(end, 0, n) : std::clamp<std::int64_t>(end, -1, n - 1);
  if (n == 0) return out;
  for (std::int64_t i = start; step > 0 ? i < end : i > end; i += step) out.push_back(i);
  return out;
}

TEST(view, slices_take_the_elements_onnx_takes) {
  for (std::int64_t n = 0; n < 6; ++n) {
    small_vector<std::int64_t> values(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int64_t>(i);
    const literal in = literal::of<std::int64_t>({dtype::i64, {n}}, values);
    for (std::int64_t start = -8; start < 8; ++start)
      for (std::int64_t end = -8; end < 8; ++end)
        for (std::int64_t step = -3; step < 4; ++step) {
          if (step == 0) continue;
          const op::slice op{{0}, {start}, {end}, {step}};
          EXPECT_EQ(compiled(op, in).to<std::int64_t>(), sliced(n, start, end, step))
              << n << "[" << start << ":" << end << ":" << step << "]";
        }
  }
}

// A slice of an unknown extent is the slice of each extent that it may turn out to have.
TEST(view, symbolic_slices_agree_with_every_size) {
  for (const std::int64_t fewest : {0, 1}) {
    const dimension n = dimension::symbol(fewest ? "rows" : "maybe_rows", fewest, 9);
    const dimension p = dimension::symbol("position", -12, 12);
    for (std::int64_t start = -4; start < 5; ++start)
      for (std::int64_t step : {1, 2, 3, -1, -2}) {
        const op::slice op{{0}, {start}, {p}, {step}};
        const auto out = op.map(row({n}));
        ASSERT_TRUE(out);
        for (std::int64_t size = fewest; size < 10; ++size)
          for (std::int64_t end = -12; end < 13; ++end) {
            bindings values;
            values.bind(n, size);
            values.bind(p, end);
            const auto expected = sliced(size, start, end, step);
            ASSERT_EQ(values.evaluate(out->lens[0]), static_cast<std::int64_t>(expected.size()))
                << size << "[" << start << ":" << end << ":" << step << "]";
            if (expected.empty()) continue;
            ASSERT_EQ(values.evaluate(out->offset), expected[0]);
          }
      }
  }
}

TEST(view, whole_slices_of_symbols_stay_whole) {
  const dimension n = dimension::symbol("n", 0, 512);
  EXPECT_EQ(mapped(op::slice{{0}, {0}, {most}, {}}, row({n, 4})), row({n, 4}));
  EXPECT_EQ(mapped(op::slice{{0}, {least}, {n}, {}}, row({n, 4})), row({n, 4}));
  EXPECT_EQ(mapped(op::slice{{0}, {-1}, {least}, {-1}}, row({n})), (layout{{n}, {-1}, n - 1}));
  EXPECT_EQ(mapped(op::slice{{0}, {0}, {n}, {}}, row({512})).lens, dims{n});
  EXPECT_EQ(mapped(op::slice{{0}, {0}, {most}, {2}}, row({n})).lens, dims{(n + 1) / 2});
  const dimension m = dimension::symbol("m", 1, 512);
  EXPECT_EQ(mapped(op::slice{{0}, {0}, {-1}, {}}, row({m})).lens, dims{m - 1});
  EXPECT_EQ(mapped(op::slice{{0}, {-1}, {most}, {}}, row({m})), (layout{{1}, {1}, m - 1}));
}

TEST(view, symbolic_shapes_follow_the_rules) {
  const dimension n = dimension::symbol("n", 1, 64), m = dimension::symbol("m", 1, 64);
  EXPECT_EQ(shape_from(op::reshape{{n * 3, 4}}, f({n, 12})), f({n * 3, 4}));
  EXPECT_TRUE(fails(op::reshape{{n * 5}}, errc::shape_mismatch, "a reshape keeps the number of elements", f({n, 4})));
  EXPECT_EQ(shape_from(op::reshape{{m, 4}}, f({n, 4})), f({m, 4}));  // may be equal: the run checks
  EXPECT_EQ(mapped(op::reshape{{n, 2, 2}}, layout{{n, 4}, {8, 1}, 0}), (layout{{n, 2, 2}, {8, 2, 1}, 0}));
  EXPECT_EQ(shape_from(op::flatten{2}, f({n, m, 4})), f({n * m, 4}));
  EXPECT_EQ(shape_from(op::squeeze{}, f({n, 1})), f({n}));
  EXPECT_TRUE(fails(op::squeeze{{0}}, errc::unsupported, "a squeezed extent is 1 for every size", f({n, 1})));
  EXPECT_TRUE(fails(op::squeeze{{0}}, errc::shape_mismatch, "a squeezed extent is 1", f({n + 1, 1})));
  EXPECT_EQ(mapped(op::unsqueeze{{1}}, row({n, m})), row({n, 1, m}));
  EXPECT_EQ(mapped(op::multibroadcast{{n, 4}}, row({1, 4})), (layout{{n, 4}, {0, 1}, 0}));
  EXPECT_EQ(mapped(op::multibroadcast{{m, 4}}, row({n, 4})), (layout{{m, 4}, {4, 1}, 0}));
  EXPECT_EQ(mapped(op::multibroadcast{{n, 7}}, row({n, 1})), (layout{{n, 7}, {1, 0}, 0}));
  EXPECT_EQ(mapped(op::expect_dims{{m, 4}}, row({n, 4})), row({m, 4}));
  EXPECT_EQ(mapped(op::expect_dims{{m, 4}}, layout{{n, 4}, {8, 1}, 0}), (layout{{m, 4}, {8, 1}, 0}));
  EXPECT_TRUE(
      fails(op::expect_dims{{n}}, errc::shape_mismatch, "the operand has the extents expected of it", f({n + 1})));
  EXPECT_EQ(mapped(op::broadcast{1, {m, n, 2}}, row({n})), (layout{{m, n, 2}, {0, 1, 0}, 0}));
  EXPECT_EQ(mapped(op::reverse{{0}}, row({n, 4})), (layout{{n, 4}, {-4, 1}, (n - 1) * 4}));
  EXPECT_EQ(mapped(op::transpose{}, row({n, m})), (layout{{m, n}, {1, m}, 0}));
}

TEST(view, shape_arithmetic_moves_symbols) {
  const dimension n = dimension::symbol("n", 1, 64);
  const literal x = symbols(n, dimension(3), n + 1);
  EXPECT_EQ(compiled(op::slice{{0}, {1}, {most}, {}}, x), symbols(dimension(3), n + 1));
  EXPECT_EQ(compiled(op::slice{{0}, {0}, {1}, {}}, x), symbols(n));
  EXPECT_EQ(compiled(op::reverse{{0}}, x), symbols(n + 1, dimension(3), n));
  EXPECT_EQ(compiled(op::unsqueeze{{0}}, x).get_shape().lens, (dims{1, 3}));
}

// Views of views: mapping a layout that an earlier view made reads the same elements as running one after the other.
TEST(view, maps_compose) {
  const literal in = [] {
    small_vector<std::int64_t> values(24);
    for (std::size_t i = 0; i < 24; ++i) values[i] = static_cast<std::int64_t>(i);
    return literal::of<std::int64_t>({dtype::i64, {2, 3, 4}}, values);
  }();
  const op::slice cut{{2, 1}, {-1, 0}, {least, 2}, {-2, 1}};
  const op::transpose turn{{1, 2, 0}};
  const op::unsqueeze grow{{1}};
  const op::multibroadcast widen{{2, 5, 2, 2}};
  const literal step = compiled(widen, compiled(grow, compiled(turn, compiled(cut, in))));
  const layout l = mapped(widen, mapped(grow, mapped(turn, mapped(cut, row({2, 3, 4})))));
  const ints lens = to_ints(l.lens), strides = to_ints(l.strides);
  ints at(4, 0);
  const auto found = step.to<std::int64_t>();
  for (std::int64_t value : found) {
    std::int64_t offset = l.offset.value();
    for (std::size_t d = 0; d < 4; ++d) offset += at[d] * strides[d];
    EXPECT_EQ(value, offset);
    next_index(at, lens);
  }
  EXPECT_EQ(found.size(), 40u);
}

}  // namespace
}  // namespace kiln::test
