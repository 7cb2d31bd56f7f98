#include "kiln/op/index.hpp"

#include "oracle.hpp"

namespace kiln::test {
namespace {

using namespace kiln::op;  // NOLINT: eight ops
constexpr auto F = dtype::f32, I = dtype::i64, B = dtype::boolean;
constexpr auto out_of_range = [](auto&& f) { return raised_by(f) == errc::invalid_argument; };

index extents(const literal& l) { return tensor(l).lens; }

// gather

static_assert(shape_from(gather{1}, shape{F, {2, 3, 4}}, shape{I, {5, 6}}) == shape{F, {2, 5, 6, 4}});
static_assert(shape_from(gather{-1}, shape{B, {2, 3}}, shape{dtype::u8, {}}) == shape{B, {2}});
static_assert(shape_from(gather{}, shape{F, {0, 3}}, shape{I, {0}}) == shape{F, {0, 3}});
static_assert(fails(gather{}, errc::invalid_argument, "number of inputs", shape{F, {2}}));
static_assert(fails(gather{2}, errc::shape_mismatch, "the axis lies within the rank", shape{F, {2, 2}}, shape{I, {}}));
static_assert(fails(gather{}, errc::shape_mismatch, "the axis lies within the rank", shape{F, {}}, shape{I, {}}));
static_assert(fails(gather{}, errc::shape_mismatch, "indices are integers", shape{F, {2}}, shape{F, {}}));
static_assert(fails(gather{}, errc::limit, "the result has no more dims than a tensor may have",
                    shape{F, {1, 1, 1, 1, 1}}, shape{I, {1, 1, 1, 1, 1}}));

TEST(gather, picks_slices) {
  KILN_EXPECT_RUN(f32({2, 2}, 3, 1, 6, 4), gather{1}, f32({2, 3}, 1, 2, 3, 4, 5, 6), i64({2}, 2, -3));
  KILN_EXPECT_RUN(f32({3}, 4, 5, 6), gather{}, f32({2, 3}, 1, 2, 3, 4, 5, 6), i64({}, 1));
  KILN_EXPECT_RUN(f32({0, 3}), gather{}, f32({2, 3}, 1, 2, 3, 4, 5, 6), i64({0}));
}
TEST(gather, an_index_outside_is_an_error) {
  EXPECT_TRUE(out_of_range([] { (void)run(gather{}, f32({2}, 1, 2), i64({}, 2)); }));
  EXPECT_TRUE(out_of_range([] { (void)run(gather{}, f32({2}, 1, 2), i64({}, -3)); }));
  EXPECT_TRUE(out_of_range([] { (void)run(gather{}, f32({0}), i64({}, 0)); }));
}
TEST(gather, moves_every_type_and_dimensions) {
  expect_same_in(dtypes::all, 1, gather{1}, whole_numbers(dtype::f64, {2, 3, 2}, 0, 1), i64({2, 2}, 0, 2, 1, -1));
  const dimension n = dimension::symbol("n");
  EXPECT_TRUE(run(gather{}, symbols(n, 3, n * 2), i64({2}, 2, 0)) == symbols(n * 2, n));
  EXPECT_EQ(shape_from(gather{1}, shape{F, {n, 3}}, shape{I, {4, n}}), (shape{F, {n, 4, n}}));
}

// gather_elements

static_assert(shape_from(gather_elements{1}, shape{F, {2, 3}}, shape{dtype::i32, {1, 5}}) == shape{F, {1, 5}});
static_assert(fails(gather_elements{}, errc::invalid_argument, "number of inputs", shape{F, {2}}));
static_assert(fails(gather_elements{1}, errc::shape_mismatch, "the axis lies within the rank", shape{F, {2}},
                    shape{I, {2}}));
static_assert(fails(gather_elements{}, errc::shape_mismatch, "indices are integers", shape{F, {2}}, shape{B, {2}}));
static_assert(fails(gather_elements{}, errc::shape_mismatch, "indices have the data's rank", shape{F, {2}},
                    shape{I, {2, 1}}));
static_assert(fails(gather_elements{}, errc::shape_mismatch, "indices reach no further than the data beside the axis",
                    shape{F, {2, 3}}, shape{I, {1, 4}}));

TEST(gather_elements, picks_single_elements) {
  KILN_EXPECT_RUN(f32({2, 2}, 1, 1, 4, 3), gather_elements{1}, f32({2, 2}, 1, 2, 3, 4), i64({2, 2}, 0, 0, 1, 0));
  KILN_EXPECT_RUN(f32({2, 2}, 5, 8, 1, 2), gather_elements{}, f32({3, 3}, 1, 2, 3, 4, 8, 6, 5, 7, 9),
                  i64({2, 2}, -1, 1, 0, 0));
  EXPECT_TRUE(out_of_range([] { (void)run(gather_elements{}, f32({2}, 1, 2), i64({1}, 2)); }));
}
TEST(gather_elements, equals_the_definition_in_every_type) {
  const literal data = whole_numbers(F, {3, 4, 5}, 0, 1), indices = whole_numbers(I, {2, 6, 5}, -4, 3, 2);
  tensor x(data), i(indices), y(extents(indices));
  each_index(y.lens, [&](const index& at) {
    const auto k = static_cast<std::int64_t>(i(at));
    y(at) = x({at[0], k < 0 ? k + 4 : k, at[2]});
  });
  EXPECT_TRUE(run_bytes_all(gather_elements{1}, data, indices)[0] == y.as(F));
  expect_same_in(dtypes::all, 1, gather_elements{1}, converted(data, dtype::f64), indices);
  const dimension n = dimension::symbol("n");
  EXPECT_TRUE(run(gather_elements{}, symbols(n, 3), i64({1}, 0)) == symbols(n));
}

// gather_nd

static_assert(shape_from(gather_nd{}, shape{F, {2, 3, 4}}, shape{I, {5, 2}}) == shape{F, {5, 4}});
static_assert(shape_from(gather_nd{}, shape{F, {2, 3}}, shape{I, {2}}) == shape{F, {}});
static_assert(shape_from(gather_nd{1}, shape{F, {2, 3, 4}}, shape{I, {2, 7, 1}}) == shape{F, {2, 7, 4}});
static_assert(shape_from(gather_nd{}, shape{F, {2, 3}}, shape{I, {4, 0}}) == shape{F, {4, 2, 3}});
static_assert(fails(gather_nd{}, errc::invalid_argument, "number of inputs", shape{F, {2}}));
static_assert(fails(gather_nd{}, errc::shape_mismatch, "indices are integers", shape{F, {2}}, shape{F, {1}}));
static_assert(fails(gather_nd{}, errc::shape_mismatch, "data and indices have at least one dim", shape{F, {2}},
                    shape{I, {}}));
static_assert(fails(gather_nd{1}, errc::shape_mismatch, "batch_dims is less than both ranks", shape{F, {2, 3}},
                    shape{I, {1}}));
static_assert(fails(gather_nd{-1}, errc::shape_mismatch, "batch_dims is less than both ranks", shape{F, {2, 3}},
                    shape{I, {1}}));
static_assert(fails(gather_nd{1}, errc::shape_mismatch, "batch dims agree", shape{F, {2, 3}}, shape{I, {3, 1}}));
static_assert(fails(gather_nd{1}, errc::shape_mismatch,
                    "an index tuple is no longer than the data's dims after the batch", shape{F, {2, 3}},
                    shape{I, {2, 2}}));
static_assert(fails(gather_nd{}, errc::limit, "the result has no more dims than a tensor may have",
                    shape{F, {1, 1, 1, 1, 1, 1}}, shape{I, {1, 1, 1, 1, 1}}));

TEST(gather_nd, picks_slices_by_tuples) {
  KILN_EXPECT_RUN(i64({2}, 0, 3), gather_nd{}, i64({2, 2}, 0, 1, 2, 3), i64({2, 2}, 0, 0, -1, 1));
  KILN_EXPECT_RUN(i64({2, 2}, 2, 3, 0, 1), gather_nd{}, i64({2, 2}, 0, 1, 2, 3), i64({2, 1}, 1, 0));
  KILN_EXPECT_RUN(i64({2, 2}, 2, 3, 4, 5), gather_nd{1}, i64({2, 2, 2}, 0, 1, 2, 3, 4, 5, 6, 7), i64({2, 1}, 1, 0));
  KILN_EXPECT_RUN(i64({2, 2}, 7, 8, 7, 8), gather_nd{}, i64({2}, 7, 8), i64({2, 0}));
  EXPECT_TRUE(out_of_range([] { (void)run(gather_nd{}, f32({2, 1}, 1, 2), i64({2}, 0, 1)); }));
}
TEST(gather_nd, moves_every_type_and_dimensions) {
  expect_same_in(dtypes::all, 1, gather_nd{1}, whole_numbers(dtype::f64, {2, 3, 2}, 0, 1),
                 i64({2, 2, 2}, 0, 1, 2, 0, 1, 1, 0, 0));
  const dimension n = dimension::symbol("n"), m = dimension::symbol("m", 1, 3);
  EXPECT_TRUE(run(gather_nd{}, symbols(n, 3), i64({1}, 0)) == literal::of_dimensions({}, small_vector<dimension>{n}));
  EXPECT_TRUE(fails(gather_nd{}, errc::unsupported, "length of an index tuple", shape{F, {2, 3}}, shape{I, {m}}));
}

// scatter_elements

constexpr shape board{F, {3, 3}}, board_at{I, {2, 3}}, board_new{F, {2, 3}};
static_assert(shape_from(scatter_elements{}, board, board_at, board_new) == board);
static_assert(fails(scatter_elements{}, errc::invalid_argument, "number of inputs", board, board_at));
static_assert(fails(scatter_elements{-3}, errc::shape_mismatch, "the axis lies within the rank", board, board_at,
                    board_new));
static_assert(fails(scatter_elements{}, errc::shape_mismatch, "indices are integers", board, board_new, board_new));
static_assert(fails(scatter_elements{}, errc::shape_mismatch, "updates have the data's dtype", board, board_at,
                    board_new.with(dtype::f64)));
static_assert(fails(scatter_elements{}, errc::shape_mismatch, "indices have the data's rank", board, shape{I, {2}},
                    shape{F, {2}}));
static_assert(fails(scatter_elements{}, errc::shape_mismatch, "updates and indices have equal dims", board, board_at,
                    board));
static_assert(fails(scatter_elements{}, errc::shape_mismatch, "indices reach no further than the data beside the axis",
                    board, shape{I, {2, 4}}, shape{F, {2, 4}}));

TEST(scatter_elements, places_updates) {
  KILN_EXPECT_RUN(f32({1, 5}, 1, 11, 3, 21, 5), scatter_elements{1}, f32({1, 5}, 1, 2, 3, 4, 5), i64({1, 2}, 1, -2),
                  f32({1, 2}, 11, 21));
  KILN_EXPECT_RUN(f32({2, 2}, 7, 1, 1, 9), scatter_elements{}, f32({2, 2}, 1, 1, 1, 1), i64({1, 2}, 0, 1),
                  f32({1, 2}, 7, 9));
  EXPECT_TRUE(out_of_range([] { (void)run(scatter_elements{}, f32({1}, 1), i64({1}, 1), f32({1}, 1)); }));
}
TEST(scatter_elements, combines_updates_in_order) {
  constexpr auto with = [](scatter_mode m) { return scatter_elements{.axis = 0, .reduction = m}; };
  KILN_EXPECT_RUN(i64({2}, 4, 8), with(scatter_mode::none), i64({2}, 4, 5), i64({2}, 1, 1), i64({2}, 3, 8));
  KILN_EXPECT_RUN(i64({2}, 4, 16), with(scatter_mode::add), i64({2}, 4, 5), i64({2}, 1, 1), i64({2}, 3, 8));
  KILN_EXPECT_RUN(i64({2}, 4, 120), with(scatter_mode::mul), i64({2}, 4, 5), i64({2}, 1, 1), i64({2}, 3, 8));
  KILN_EXPECT_RUN(i64({2}, 4, 3), with(scatter_mode::min), i64({2}, 4, 5), i64({2}, 1, 1), i64({2}, 3, 8));
  KILN_EXPECT_RUN(i64({2}, 4, 8), with(scatter_mode::max), i64({2}, 4, 5), i64({2}, 1, 1), i64({2}, 3, 8));
  KILN_EXPECT_RUN(lit(dtype::i8, {1}, -128), with(scatter_mode::add), lit(dtype::i8, {1}, 127), i64({1}, 0),
                  lit(dtype::i8, {1}, 1));
  KILN_EXPECT_RUN(i64({1}, std::numeric_limits<std::int64_t>::min()), with(scatter_mode::add),
                  i64({1}, std::numeric_limits<std::int64_t>::max()), i64({1}, 0), i64({1}, 1));
  KILN_EXPECT_RUN(lit(B, {2}, 1, 1), with(scatter_mode::add), lit(B, {2}, 1, 0), i64({2}, 0, 1), lit(B, {2}, 1, 1));
  KILN_EXPECT_RUN(lit(B, {2}, 1, 0), with(scatter_mode::mul), lit(B, {2}, 1, 1), i64({2}, 0, 1), lit(B, {2}, 1, 0));
  KILN_EXPECT_RUN(lit(B, {2}, 1, 0), with(scatter_mode::min), lit(B, {2}, 1, 1), i64({2}, 0, 1), lit(B, {2}, 1, 0));
  KILN_EXPECT_RUN(lit(B, {2}, 1, 1), with(scatter_mode::max), lit(B, {2}, 0, 1), i64({2}, 0, 1), lit(B, {2}, 1, 0));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(run(with(scatter_mode::max), f32({1}, nan), i64({1}, 0), f32({1}, 1)).at<float>(0)));
  EXPECT_TRUE(std::isnan(run(with(scatter_mode::min), f32({1}, 1), i64({1}, 0), f32({1}, nan)).at<float>(0)));
}
TEST(scatter_elements, equals_the_definition_in_every_type) {
  const literal data = whole_numbers(F, {3, 4, 2}, 0, 1), indices = whole_numbers(I, {2, 6, 2}, -4, 3, 2),
                updates = whole_numbers(F, {2, 6, 2}, 0, 1, 3);
  tensor y(data), i(indices), u(updates);
  each_index(i.lens, [&](const index& at) {
    const auto k = static_cast<std::int64_t>(i(at));
    y({at[0], k < 0 ? k + 4 : k, at[2]}) = u(at);
  });
  EXPECT_TRUE(run_bytes_all(scatter_elements{1}, data, indices, updates)[0] == y.as(F));
  for (std::size_t k = 0; k < dtype_count; ++k) {
    const auto t = static_cast<dtype>(k);
    EXPECT_TRUE(run_bytes_all(scatter_elements{1}, converted(data, t), indices, converted(updates, t))[0] == y.as(t));
  }
  const dimension n = dimension::symbol("n", 1, 9);
  EXPECT_TRUE(run(scatter_elements{}, symbols(n, 3), i64({1}, 1), symbols(n * 2)) == symbols(n, n * 2));
  EXPECT_TRUE(run(scatter_elements{.reduction = scatter_mode::add}, symbols(n, 3), i64({1}, 1), symbols(n)) ==
              symbols(n, n + 3));
  EXPECT_TRUE(run(scatter_elements{.reduction = scatter_mode::max}, symbols(n, 3), i64({1}, 0), i64({1}, 0)) ==
              symbols(n, 3));
}

// scatter_nd

static_assert(shape_from(scatter_nd{}, shape{F, {4, 3}}, shape{I, {2, 1}}, shape{F, {2, 3}}) == shape{F, {4, 3}});
static_assert(shape_from(scatter_nd{}, shape{F, {4}}, shape{I, {1}}, shape{F, {}}) == shape{F, {4}});
static_assert(fails(scatter_nd{}, errc::invalid_argument, "number of inputs", board));
static_assert(fails(scatter_nd{}, errc::shape_mismatch, "indices are integers", board, board, board));
static_assert(fails(scatter_nd{}, errc::shape_mismatch, "updates have the data's dtype", board, shape{I, {1, 1}},
                    shape{I, {1, 3}}));
static_assert(fails(scatter_nd{}, errc::shape_mismatch, "data and indices have at least one dim", shape{F, {}},
                    shape{I, {1}}, shape{F, {}}));
static_assert(fails(scatter_nd{}, errc::shape_mismatch, "an index tuple is no longer than the data's dims", board,
                    shape{I, {1, 3}}, shape{F, {1}}));
static_assert(fails(scatter_nd{}, errc::shape_mismatch, "updates hold one slice for each index tuple", board,
                    shape{I, {2, 1}}, shape{F, {2, 2}}));

TEST(scatter_nd, places_and_combines_slices) {
  KILN_EXPECT_RUN(f32({4}, 1, 9, 3, 8), scatter_nd{}, f32({4}, 1, 2, 3, 4), i64({2, 1}, 1, -1), f32({2}, 9, 8));
  KILN_EXPECT_RUN(f32({2, 2}, 1, 2, 7, 9), scatter_nd{.reduction = scatter_mode::add}, f32({2, 2}, 1, 2, 3, 4),
                  i64({1, 1}, 1), f32({1, 2}, 4, 5));
  KILN_EXPECT_RUN(f32({2, 2}, 1, 16, 3, 4), scatter_nd{.reduction = scatter_mode::mul}, f32({2, 2}, 1, 2, 3, 4),
                  i64({2, 2}, 0, 1, 0, 1), f32({2}, 2, 4));
  KILN_EXPECT_RUN(f32({2}, 1, 2), scatter_nd{}, f32({2}, 1, 2), i64({0, 1}), f32({0}));
  EXPECT_TRUE(out_of_range([] { (void)run(scatter_nd{}, f32({2}, 1, 2), i64({1, 1}, 2), f32({1}, 1)); }));
}
TEST(scatter_nd, moves_every_type_and_dimensions) {
  for (std::size_t k = 0; k < dtype_count; ++k) {
    const auto t = static_cast<dtype>(k);
    EXPECT_TRUE(run_bytes_all(scatter_nd{}, lit(t, {3}, 0, 1, 0), i64({1, 1}, 2), lit(t, {1}, 1))[0] ==
                lit(t, {3}, 0, 1, 1));
  }
  const dimension n = dimension::symbol("n"), m = dimension::symbol("m", 1, 3);
  EXPECT_TRUE(run(scatter_nd{}, symbols(n, 3), i64({1, 1}, 1), symbols(n)) == symbols(n, n));
  EXPECT_TRUE(fails(scatter_nd{}, errc::unsupported, "length of an index tuple", board, shape{I, {m}}, board));
}

// concat

static_assert(shape_from(concat{1}, shape{F, {2, 3}}, shape{F, {2, 0}}, shape{F, {2, 4}}) == shape{F, {2, 7}});
static_assert(shape_from(concat{-1}, shape{B, {2}}) == shape{B, {2}});
static_assert(fails(concat{}, errc::invalid_argument, "number of inputs"));
static_assert(fails(concat{}, errc::shape_mismatch, "the axis lies within the rank", shape{F, {}}, shape{F, {}}));
static_assert(fails(concat{}, errc::shape_mismatch, "operands have one dtype", shape{F, {2}}, shape{I, {2}}));
static_assert(fails(concat{}, errc::shape_mismatch, "operands have one rank", shape{F, {2}}, shape{F, {2, 1}}));
static_assert(fails(concat{}, errc::shape_mismatch, "extents beside the axis agree", shape{F, {2, 3}},
                    shape{F, {2, 4}}));

TEST(concat, joins_along_the_axis) {
  KILN_EXPECT_RUN(f32({3, 2}, 1, 2, 3, 4, 5, 6), concat{}, f32({1, 2}, 1, 2), f32({2, 2}, 3, 4, 5, 6));
  KILN_EXPECT_RUN(f32({2, 3}, 1, 3, 4, 2, 5, 6), concat{-1}, f32({2, 1}, 1, 2), f32({2, 0}), f32({2, 2}, 3, 4, 5, 6));
  KILN_EXPECT_RUN(f32({0, 3}), concat{1}, f32({0, 1}), f32({0, 2}));
}
TEST(concat, moves_every_type_and_dimensions) {
  expect_same_in(dtypes::all, 2, concat{1}, whole_numbers(dtype::f64, {2, 3, 2}, 0, 1),
                 whole_numbers(dtype::f64, {2, 1, 2}, 0, 1, 2));
  const dimension n = dimension::symbol("n"), past = dimension::symbol("past");
  EXPECT_TRUE(run(concat{}, symbols(n), i64({2}, -1, 4), symbols(n + 1)) == symbols(n, -1, 4, n + 1));
  EXPECT_EQ(shape_from(concat{2}, shape{F, {1, 4, past, 8}}, shape{F, {1, 4, n, 8}}), (shape{F, {1, 4, past + n, 8}}));
}

// pad

static_assert(shape_from(pad{.pads = {1, 0, 2, -1}}, shape{F, {2, 3}}) == shape{F, {5, 2}});
static_assert(shape_from(pad{}, shape{F, {}}) == shape{F, {}});
static_assert(shape_from(pad{.pads = {1, 1}}, shape{I, {0}}, shape{I, {1}}) == shape{I, {2}});
static_assert(fails(pad{}, errc::invalid_argument, "number of inputs"));
static_assert(fails(pad{.pads = {1}}, errc::shape_mismatch, "pads has a begin and an end for each dim", shape{F, {2}}));
static_assert(fails(pad{.pads = {1, 1}}, errc::shape_mismatch, "the constant has the data's dtype", shape{F, {2}},
                    shape{I, {}}));
static_assert(fails(pad{.pads = {1, 1}}, errc::shape_mismatch, "the constant is one element", shape{F, {2}},
                    shape{F, {2}}));
static_assert(fails(pad{.pads = {-2, -1}}, errc::shape_mismatch, "pads crop no more than there is", shape{F, {2}}));
static_assert(fails(pad{.pads = {-3, 5}}, errc::shape_mismatch, "pads crop no more than there is", shape{F, {2}}));
static_assert(fails(pad{.mode = pad_mode::edge, .pads = {1, 0}}, errc::shape_mismatch,
                    "a padded extent has an element to repeat", shape{F, {0}}));

TEST(pad, surrounds_with_a_constant) {
  KILN_EXPECT_RUN(f32({2, 4}, 0, 1, 2, 0, 0, 3, 4, 0), (pad{.pads = {0, 1, 0, 1}}), f32({2, 2}, 1, 2, 3, 4));
  KILN_EXPECT_RUN(f32({4}, 9, 1, 2, 9), (pad{.pads = {1, 1}}), f32({2}, 1, 2), f32({}, 9));
  KILN_EXPECT_RUN(lit(B, {3}, 1, 0, 1), (pad{.pads = {1, 1}}), lit(B, {1}, 0), lit(B, {1}, 1));
  KILN_EXPECT_RUN(f32({2, 2}, 2, 0, 4, 0), (pad{.pads = {0, -1, 0, 1}}), f32({2, 2}, 1, 2, 3, 4));
  KILN_EXPECT_RUN(f32({}, 3), pad{}, f32({}, 3));
}
TEST(pad, repeats_what_is_there) {
  constexpr auto with = [](pad_mode m, dimension begin, dimension end) {
    pad p{.mode = m};
    p.pads.push_back(begin), p.pads.push_back(end);
    return p;
  };
  KILN_EXPECT_RUN(f32({7}, 3, 2, 1, 2, 3, 2, 1), with(pad_mode::reflect, 2, 2), f32({3}, 1, 2, 3));
  KILN_EXPECT_RUN(f32({7}, 1, 2, 1, 2, 1, 2, 1), with(pad_mode::reflect, 4, 1), f32({2}, 1, 2));
  KILN_EXPECT_RUN(f32({3}, 5, 5, 5), with(pad_mode::reflect, 1, 1), f32({1}, 5));
  KILN_EXPECT_RUN(f32({6}, 1, 1, 1, 2, 3, 3), with(pad_mode::edge, 2, 1), f32({3}, 1, 2, 3));
  KILN_EXPECT_RUN(f32({9}, 2, 3, 1, 2, 3, 1, 2, 3, 1), with(pad_mode::wrap, 2, 4), f32({3}, 1, 2, 3));
  // cropped first
  KILN_EXPECT_RUN(f32({4}, 2, 3, 2, 3), with(pad_mode::reflect, -1, 2), f32({3}, 1, 2, 3));
  KILN_EXPECT_RUN(f32({3}, 2, 3, 2), with(pad_mode::wrap, -1, 1), f32({3}, 1, 2, 3));
}
TEST(pad, moves_every_type_and_dimensions) {
  for (pad_mode m : {pad_mode::constant, pad_mode::reflect, pad_mode::edge, pad_mode::wrap})
    expect_same_in(dtypes::all, 1, pad{.mode = m, .pads = {1, 2, 0, 1}}, whole_numbers(dtype::f64, {2, 3}, 0, 1));
  const dimension n = dimension::symbol("n", 1, 64);
  EXPECT_TRUE(run(pad{.pads = {1, 0}}, symbols(n, 2)) == symbols(0, n, 2));
  EXPECT_TRUE(run(pad{.pads = {1, 0}}, symbols(n, 2), i64({}, 1)) == symbols(1, n, 2));
  EXPECT_EQ(shape_from(pad{.pads = {n, 1}}, shape{F, {n}}).lens[0], n * 2 + 1);
}

}  // namespace
}  // namespace kiln::test
