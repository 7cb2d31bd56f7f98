// Every generated kernel compiles for each architecture whose compiler is here; no device is needed.
#include <gmock/gmock.h>

#include "kiln/backend/hip/compile.hpp"
#include "kiln/backend/hip/hip_target.hpp"
#include "kiln/graph/builder.hpp"
#include "kiln/op/dynamic/selection.hpp"
#include "kiln/op/more.hpp"
#include "kiln/op/ops.hpp"
#include "kiln/runtime/executable.hpp"
#include "pass/rotary_row.hpp"

namespace kiln::testing {
namespace {

hip_options for_architecture(const char* name) {
  hip_options options;
  options.architecture = name;
  options.keep = false;
  return options;
}

class hip_compiles : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string why = hip::why_not_compiled(hip::architecture::named(GetParam()));
    if (!why.empty()) GTEST_SKIP() << "SKIPPED: kernels for " << GetParam() << " are not checked: " << why;
  }
  // Compiles for the architecture; no step may be left to the host.
  executable compiled(const std::function<void(builder&)>& make) {
    builder b;
    make(b);
    executable e = compile(b.finish(), hip_target(for_architecture(GetParam())));
    for (const step_info& s : e.report().steps) EXPECT_FALSE(s.fallback) << s.kernel;
    return e;
  }
};

// One of each kind that computations run in; the other dtypes differ from these in how they are read and stored.
constexpr dtype kinds[] = {dtype::f32, dtype::i64, dtype::u8, dtype::boolean};
constexpr dtype some_dtypes[] = {dtype::f32, dtype::f64, dtype::f16, dtype::bf16,
                                 dtype::i64, dtype::i8,  dtype::u32, dtype::boolean};

template <class Op> void add_pointwise(builder& b, value x, value condition) {
  constexpr op_info info = info_of<Op>();
  if constexpr (info.kind == op_kind::pointwise) {
    if (!info.types.contains(x.get_shape().type)) return;
    small_vector<value> in;
    for (int k = 0; k < info.inputs; ++k) in.push_back(k < info.conditions ? condition : x);
    b.output(b.add(Op{}, in));
  }
}

template <class Op> void add_reduction(builder& b, value x, const ints& axes, std::vector<value>& to) {
  constexpr op_info info = info_of<Op>();
  if constexpr (info.kind == op_kind::reduction)
    if (info.types.contains(x.get_shape().type)) to.push_back(b.add(Op{.axes = axes}, x));
}

template <class F, std::size_t... I> void each_op(F&& f, std::index_sequence<I...>) {
  (f.template operator()<default_registry::at<I>>(), ...);
}
constexpr auto all_ops = std::make_index_sequence<default_registry::size>{};

// Extents that no vector divides: a kernel holds each op's text once. Ops that read one value share a kernel, eight to
// each here.
TEST_P(hip_compiles, every_pointwise_op) {
  for (const dtype t : kinds) {
    SCOPED_TRACE(std::string(to_string(t)));
    compiled([&](builder& b) {
      int count = 0;
      value x, condition;
      const auto add = [&]<class Op>() {
        if constexpr (info_of<Op>().kind == op_kind::pointwise) {
          if (count++ % 8 == 0) {
            const std::string n = std::to_string(count);
            x = b.input("x" + n, t, {3, 5});
            condition = b.input("c" + n, dtype::boolean, {3, 1}).broadcast_to({3, 5});
          }
          add_pointwise<Op>(b, x, condition);
        }
      };
      each_op(add, all_ops);
    });
  }
}

TEST_P(hip_compiles, arithmetic_in_every_dtype) {
  for (const dtype t : some_dtypes) {
    SCOPED_TRACE(std::string(to_string(t)));
    if (t == dtype::boolean) continue;
    compiled([&](builder& b) {
      const value x = b.input("x", t, {8, 256});
      b.output((x * x + x).relu());
      b.output(b.add(op::max{}, x, b.input("row", t, {256}).broadcast_to({8, 256})));
    });
  }
}

TEST_P(hip_compiles, every_reduction) {
  for (const dtype t : kinds) {
    SCOPED_TRACE(std::string(to_string(t)));
    compiled([&](builder& b) {
      const value x = b.input("x", t, {4, 6, 40});
      for (const ints& axes : {ints{2}, ints{1}}) {
        std::vector<value> all;
        each_op([&]<class Op>() { add_reduction<Op>(b, x, axes, all); }, all_ops);
        if (all.empty()) continue;
        value sum = all[0];  // a kernel folds all that it adds up
        for (std::size_t k = 1; k < all.size(); ++k)
          sum = t == dtype::boolean ? b.add(op::logical_or{}, sum, all[k]) : sum + all[k];
        b.output(sum);
        b.output(b.add(op::reduce_max{.axes = axes}, b.input("alone" + std::to_string(axes[0]), t, {4, 6, 40})));
      }
    });
  }
}

TEST_P(hip_compiles, conversions_between_dtypes) {
  compiled([](builder& b) {
    for (const dtype from : some_dtypes) {
      const value x = b.input("x" + std::string(to_string(from)), from, {64});
      for (const dtype to : some_dtypes) b.output(b.add(op::convert{.to = to}, x));
    }
  });
}

// Rows in registers, rows read again, parts of a row joined by a second kernel, rows side by side, one element a row.
TEST_P(hip_compiles, bodies_of_rows) {
  for (const auto& [rows, length] : {std::pair<std::int64_t, std::int64_t>{64, 4096}, {3, 70000}, {5, 1}}) {
    compiled([&, rows = rows, length = length](builder& b) {
      const value x = b.input("x", dtype::f16, {rows, length});
      b.output(x.softmax());
      b.output(x.normalize({-1}) * b.input("scale", dtype::f16, {length}));
      b.output(b.add(op::reduce_max{.axes = {0}}, x) + b.add(op::reduce_sum{.axes = {0}}, x));
      b.output(b.add(op::reduce_sum{.axes = {0, 1}}, x));
      b.output(x.softmax(0));
    });
  }
  for (const std::int64_t depth : {6, 128}) {
    const executable e = compiled([&](builder& b) { kiln::test::rms_norm_and_rotary(b, dtype::f16, depth); });
    EXPECT_EQ(e.report().steps.size(), 1u);
  }
}

TEST_P(hip_compiles, symbolic_sizes_share_a_kernel) {
  const dimension n = dimension::symbol("n", 1, 100000);
  builder b;
  const value x = b.input("x", dtype::f32, {n, 96});
  b.output(x.softmax() + x);
  const executable e = compile(b.finish(), hip_target(for_architecture(GetParam())));
  EXPECT_EQ(e.report().steps.size(), 1u);
}

TEST_P(hip_compiles, moves_and_index_ops) {
  for (const dtype t : {dtype::f16, dtype::i64}) {
    SCOPED_TRACE(std::string(to_string(t)));
    compiled([&](builder& b) {
      const value x = b.input("x", t, {4, 8, 16}), rows = b.input("rows", dtype::i64, {5}),
                  each = b.input("each", dtype::i32, {4, 8, 16}), pairs = b.input("pairs", dtype::i64, {3, 2});
      b.output(x.transpose({0, 2, 1}));
      b.output(b.add(op::slice{.axes = {1}, .starts = {1}, .ends = {4}}, x));
      b.output(b.add(op::concat{.axis = 2}, x, x.transpose({0, 1, 2})));
      b.output(b.add(op::gather{.axis = 1}, x, rows));
      b.output(b.add(op::gather_elements{.axis = 1}, x, each));
      b.output(b.add(op::gather_nd{}, x, pairs));
      b.output(b.add(op::scatter_elements{.axis = 1}, x, each, x));
      b.output(b.add(op::scatter_elements{.axis = 1, .reduction = op::scatter_mode::add}, x, each, x));
      for (const op::scatter_mode mode : {op::scatter_mode::max, op::scatter_mode::add, op::scatter_mode::none})
        b.output(b.add(op::scatter_nd{.reduction = mode}, x, pairs,
                       b.input("u" + std::to_string(static_cast<int>(mode)), t, {3, 16})));
      b.output(b.add(op::pad{.mode = op::pad_mode::reflect, .pads = {1, 1, 1, 1, -1, 1}}, x));
      b.output(b.add(op::tri{}, x));
      b.output(b.add(op::one_hot{.depth = 5}, rows, b.input("values", t, {2})));
    });
  }
}

// Kernels whose sizes stand in their text, dense copies, images of few channels, transforms by blocks.
TEST_P(hip_compiles, what_has_many_elements) {
  const dtype t = dtype::f16;
  compiled([&](builder& b) {
    const value x = b.input("x", t, {64, 72, 65}), rows = b.input("rows", dtype::i64, {4096}),
                each = b.input("each", dtype::i32, {64, 72, 65}), pairs = b.input("pairs", dtype::i64, {4096, 2});
    b.output(b.add(op::gather{.axis = 0}, x, b.input("some", dtype::i64, {70})));
    b.output(b.add(op::gather_elements{.axis = 1}, x, each));
    b.output(b.add(op::gather_nd{}, x, pairs));
    b.output(b.add(op::scatter_elements{.axis = 1}, x, each, x));
    b.output(b.add(op::scatter_nd{.reduction = op::scatter_mode::max}, x, pairs, b.input("u", t, {4096, 65})));
    b.output(b.add(op::pad{.mode = op::pad_mode::wrap, .pads = {1, 0, 2, 1, -1, 1}}, x));
    b.output(b.add(op::tri{}, x));
    b.output(b.add(op::one_hot{.depth = 65}, rows, b.input("values", t, {2})));
    b.output(b.input("row", t, {64, 1, 65}).broadcast_to({64, 72, 65}));
    const value image = b.input("image", t, {4, 3, 256, 256}), planes = b.input("planes", t, {1, 64, 66, 65});
    for (const op::pooling_mode mode : {op::pooling_mode::max, op::pooling_mode::average})
      for (const std::int64_t dilation : {1, 2})
        b.output(b.add(
            op::pooling{.mode = mode, .lengths = {3, 3}, .dilation = {1, dilation}, .pads = {1, dilation, 1, dilation}},
            planes));
    const shape weights(t, {8, 3, 7, 7});
    b.output(image.conv(b.constant(literal(weights, buffer::allocate(8 * 3 * 49 * 2))),
                        {.stride = {2, 2}, .pads = {3, 3, 3, 3}}));
    for (const std::int64_t n : {60, 128, 400, 4099})
      b.output(b.add(op::dft{.axis = 1}, b.input("signals" + std::to_string(n), dtype::f32, {3, n, 1})));
    for (const dtype of : {dtype::f64, dtype::f16})
      b.output(b.add(op::dft{.axis = 1, .inverse = true},
                     b.input("spectra " + std::string(to_string(of)), of, {3, of == dtype::f64 ? 4096 : 100, 2})));
  });
}

// What a device counts is no step of the host.
TEST_P(hip_compiles, ops_that_find_how_many_results_there_are) {
  const executable e = compiled([&](builder& b) {
    int n = 0;
    const auto count = [&] { return dimension::symbol(("n" + std::to_string(n++)).c_str()); };
    for (const dtype t : {dtype::f32, dtype::f16, dtype::i64, dtype::u8, dtype::boolean}) {
      const value x = b.input("x" + std::to_string(n), t, {5, dimension::symbol("rows"), 7});
      const value c = b.input("c" + std::to_string(n), dtype::boolean, {5});
      b.output(b.add(op::nonzero{count()}, x));
      b.output(b.add(op::compress{.along = 0, .count = count()}, x, c));
      b.output(b.add(op::compress{.flat = true, .count = count()}, x, c));
    }
    const value boxes = b.input("boxes", dtype::f32, {2, 30, 4}), scores = b.input("scores", dtype::f32, {2, 3, 30}),
                most = b.input("most", dtype::i64, {1}), overlap = b.input("overlap", dtype::f32, {1}),
                least = b.input("least", dtype::f32, {1});
    for (const bool flag : {true, false})
      b.output(b.add(op::non_max_suppression{flag, !flag, count()}, boxes, scores, most, overlap, least));
  });
  for (const step_info& s : e.report().steps) EXPECT_THAT(s.kernel, ::testing::Not(::testing::HasSubstr("host")));
}

TEST_P(hip_compiles, ops_along_an_axis_and_windows) {
  for (const dtype t : {dtype::f16, dtype::i32}) {
    SCOPED_TRACE(std::string(to_string(t)));
    compiled([&](builder& b) {
      const value x = b.input("x", t, {4, 8, 160}), image = b.input("image", t, {1, 8, 16, 16});
      for (const std::int64_t axis : {1, 2}) {
        b.output(b.add(op::arg_max{.axis = axis}, x));
        b.output(b.add(op::arg_min{.axis = axis, .select_last_index = true}, x));
        b.output(b.add(op::cumsum{.axis = axis, .reverse = true}, x));
        b.output(b.add(op::topk{.k = 4, .axis = axis}, x));
      }
      b.output(b.add(op::pooling{.lengths = {2, 2}}, image));
      if (!is_float(t)) return;
      // rows of several tiles, with more results than one sorts
      b.output(b.add(op::topk{.k = 3000}, b.input("long", dtype::i64, {2, 5000})));
      // selected from parts of rows, of neighboring ones, of 64-bit types
      b.output(b.add(op::topk{.k = 700}, b.input("parts", t, {70001})));
      b.output(b.add(op::topk{.k = 100, .axis = 0}, b.input("tall", t, {9001, 19})));
      b.output(b.add(op::topk{.k = 300}, b.input("wide", dtype::i64, {70001})));
      b.output(b.add(op::pooling{.mode = op::pooling_mode::average, .lengths = {3, 3}, .pads = {1, 1, 1, 1}}, image));
      b.output(b.add(op::pooling{.mode = op::pooling_mode::lp, .lengths = {2, 2}, .lp_order = 3}, image));
      b.output(b.add(op::lrn{.size = 3}, image));
    });
  }
}

// Images backwards, of three dims, and of a channel each; recurrences and ops of a kernel of their own; numbers of at
// most eight bits.
TEST_P(hip_compiles, what_stands_alone) {
  const dtype t = dtype::f16;
  compiled([&](builder& b) {
    const value image = b.input("image", t, {1, 16, 8, 8});
    b.output(b.add(op::deconvolution{.stride = {2, 2}}, image, b.input("back", t, {16, 8, 3, 3})));
    b.output(b.add(op::deconvolution{.stride = {2, 2}}, image, b.input("even", t, {16, 8, 4, 4})));  // in phases
    b.output(b.input("volume", t, {1, 4, 5, 5, 5}).conv(b.input("cubes", t, {4, 4, 3, 3, 3}), {}));
    b.output(image.conv(b.input("planes", t, {16, 1, 3, 3}), {.group = 16}).relu());
    const value last = b.input("last", t, {1, 8, 8, 16}).transpose({0, 3, 1, 2});
    b.output(last.conv(b.input("channels", t, {16, 1, 3, 3}), {.group = 16}).transpose({0, 2, 3, 1}));
    for (const std::int64_t gates : {3, 4}) {
      const std::string n = std::to_string(gates);
      op::recurrent r;
      r.cell = gates == 3 ? op::cell_kind::gru : op::cell_kind::lstm;
      for (std::int64_t k = 2; k < gates; ++k)
        r.functions.push_back(op::cell_function::sigmoid), r.alpha.push_back(0), r.beta.push_back(0);
      small_vector<value> in;
      for (const dims& lens : {dims{2, 2, 4 * gates}, dims{4, 4 * gates}, dims{4 * gates}, dims{2, 4}})
        in.push_back(b.input("x" + n + std::to_string(in.size()), t, lens));
      in.push_back(b.input("lengths" + n, dtype::i64, {2}));
      if (gates == 4) in.push_back(b.input("cell", t, {2, 4})), in.push_back(b.input("peepholes", t, {12}));
      b.output(b.add(r, in));
    }
    const value squares = b.input("squares", t, {2, 3, 3});
    b.output(b.add(op::det{}, squares)), b.output(b.add(op::inverse{}, squares));
    b.output(b.add(op::random_uniform{.lens = {7}, .type = t}));
    b.output(b.add(op::roi_align{}, image, b.input("rois", t, {2, 4}), b.input("which", dtype::i64, {2})));
    const value k = b.input("k", t, {2, 3, 2, 4});
    b.output(b.add(op::linear_attention{}, k, k, b.input("v", t, {2, 3, 2, 5}), b.input("state", t, {2, 2, 4, 5}), k,
                   b.input("beta", t, {2, 3, 2})));
    const value q = b.input("q", dtype::f64, {1, 2, 3, 8});
    b.output(b.add(op::attention{}, q, q, q));
    const value number = b.input("number", dtype::f32, {64});
    for (int to = static_cast<int>(dtype::f8e4m3fn); to <= static_cast<int>(dtype::u2); ++to) {
      const value short_one = b.add(op::convert{.to = static_cast<dtype>(to)}, number);
      b.output(b.add(op::convert{.to = dtype::f16}, short_one));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(architectures, hip_compiles, ::testing::Values("sm_90", "gfx90a", "gfx1030"),
                         [](const auto& info) { return std::string(info.param); });

TEST(hip, an_architecture_has_a_known_form) {
  EXPECT_EQ(hip::architecture::named("gfx90a").lanes, 64);
  EXPECT_EQ(hip::architecture::named("sm_90").lanes, 32);
  for (const char* name : {"", "gfx", "sm_", "avx", "sm_9!"})
    EXPECT_THROW(hip::architecture::named(name), error) << name;
}

// Blocks that are put in place early take so much memory that no more than needed are on one multiprocessor.
TEST(hip, few_blocks_of_chained_kernels_keep_apart) {
  hip::architecture where = hip::architecture::named("sm_90");
  const std::size_t all = where.shared_bytes + 1024, small = 1000;
  const auto together = [&](std::int64_t blocks, int cluster = 1) {
    return all / (where.shared_bytes_apart(small, blocks, cluster) + 1024);
  };
  EXPECT_EQ(together(1), 1u);
  EXPECT_EQ(together(132), 1u);
  EXPECT_EQ(together(133), 2u);
  EXPECT_EQ(together(528), 4u);
  EXPECT_EQ(where.shared_bytes_apart(small, 529), small);
  EXPECT_EQ(together(128, 8), 2u) << "clusters of eight don't fill every group of multiprocessors";
  EXPECT_EQ(where.shared_bytes_apart(200 * 1024, 1), 200u * 1024) << "what they need stays";
  EXPECT_EQ(hip::architecture::named("gfx90a").shared_bytes_apart(small, 1), small) << "nothing is put in place early";
}

TEST(hip, a_library_too_old_for_a_device_is_an_error_and_no_crash) {
  const hip::architecture where = hip::architecture::named("gfx1999");
  EXPECT_NE(hip::why_not_compiled(where), "");
  EXPECT_THROW(hip::compile({"f", "extern \"C\" __global__ void f() {}"}, where, ""), error);
}

TEST(hip, an_executable_for_an_absent_device_compiles_but_does_not_run) {
  if (const std::string why = hip::why_not_compiled(hip::architecture::named("sm_90")); !why.empty())
    GTEST_SKIP() << "SKIPPED: " << why;
  builder b;
  b.output(b.input("x", dtype::f32, {4}).relu());
  const executable e = compile(b.finish(), hip_target(for_architecture("sm_90")));
  const argument x(shape{dtype::f32, {4}});
  EXPECT_THROW(e.run({{"x", x}}), error);
}

TEST(hip, without_a_device_the_target_says_what_it_looked_for) {
  if (hip::device_count(hip::platform::amd) + hip::device_count(hip::platform::nvidia) > 0) return;
  try {
    hip_target();
    FAIL();
  } catch (const error& e) {
    EXPECT_THAT(e.what(), ::testing::HasSubstr("libcuda.so.1"));
    EXPECT_THAT(e.what(), ::testing::HasSubstr("libamdhip64.so"));
  }
}

}  // namespace
}  // namespace kiln::testing
