// Where values are: views, concatenations, transposed and shuffled results, the caller's buffers, copies.
#include "lower/planned.hpp"

namespace kiln::testing {
namespace {

TEST(memory_plan, views_map_layouts) {
  constexpr auto build = [](auto& b) {
    const auto x = b.input("x", dtype::f32, {4, 6});
    b.output(x.transpose({1, 0}).slice({.axes = {0}, .starts = {2}, .ends = {6}}).reshape({2, 2, 4}).exp());
  };
  KILN_EXPECT_PLAN(true, build,
                   "exp(i0[2,1,6]+2) > o0\n"
                   "return o0");
}

TEST(memory_plan, operands_are_written_where_a_concatenation_has_them) {
  constexpr auto build = [](auto& b) {
    const auto x = b.input("x", dtype::f32, {3, 4}), y = b.input("y", dtype::f32, {3, 5});
    b.output(x.relu().concat(y.exp(), 1).concat(x.neg(), 1).exp());
  };
  KILN_EXPECT_PLAN(true, build,
                   "relu(i0) > a0[13,1]\n"
                   "exp(i1) > a0[13,1]+4\n"
                   "neg(i0) > a1\n"
                   "copy for concat(a1) > a0[13,1]+9\n"
                   "exp(a0) > o0\n"
                   "return o0");
}

TEST(memory_plan, a_kernel_that_cannot_write_a_part_has_a_buffer_and_a_copy) {
  constexpr auto build = [](auto& b) {
    const auto x = b.input("x", dtype::f32, {3, 4}), y = b.input("y", dtype::f32, {6, 1});
    b.output(x.neg().concat(x.floor(), 0).concat(y, 1).exp());
    b.output(x.floor().concat(x, 1).transpose({1, 0}).exp());
  };
  KILN_EXPECT_PLAN(true, build,
                   "neg(i0) > a0\n"
                   "floor(i0) > a1[5,1]+15\n"
                   "copy for concat(a0) > a1[5,1]\n"
                   "copy for concat(i1) > a1[5,1]+4\n"
                   "exp(a1) > o0\n"
                   "floor(i0) > a2\n"
                   "copy for concat(a2) > a3[1,3]\n"
                   "copy for concat(i0) > a3[1,3]+12\n"
                   "exp(a3) > o1\n"
                   "return o0, o1");
}

TEST(memory_plan, a_result_is_written_transposed_where_a_transposition_alone_reads_it) {
  constexpr auto build = [](auto& b) {
    const auto x = b.input("x", dtype::f32, {2, 3, 4});
    b.output(x.exp().transpose({2, 0, 1}).reshape({4, 6}).sin());    // whatever the strides
    b.output(x.floor().transpose({1, 0, 2}).reshape({3, 8}).sin());  // rows stay rows
    b.output(x.floor().transpose({2, 1, 0}).reshape({4, 6}).sin());  // and these would not: a copy
    const auto twice = x.log();
    b.output(twice.sin());
    b.output(twice.transpose({0, 2, 1}).sin());
    b.output(x.exp().transpose({0, 2, 1}));                                         // into the caller's buffer
    b.output(x.ceil().transpose({0, 2, 1}).concat(x.reshape({2, 4, 3}), 2).sin());  // and into a part
  };
  KILN_EXPECT_PLAN(true, build,
                   "exp(i0) > a0[3,1,6]\n"
                   "sin(a0) > o0\n"
                   "floor(i0) > a1[4,8,1]\n"
                   "sin(a1) > o1\n"
                   "floor(i0) > a2\n"
                   "copy for reshape(a2[1,4,12]) > a3\n"
                   "sin(a3) > o2\n"
                   "log(i0) > a4\n"
                   "sin(a4) > o3\n"
                   "sin(a4[12,1,4]) > o4\n"
                   "exp(i0) > o5[12,1,3]\n"
                   "ceil(i0) > a5[24,1,6]\n"
                   "copy for concat(i0) > a5[24,6,1]+3\n"
                   "sin(a5) > o6\n"
                   "return o0, o1, o2, o3, o4, o5, o6");
}

TEST(memory_plan, a_result_is_written_shuffled_where_a_channel_shuffle_alone_reads_it) {
  constexpr auto shuffle = [](auto x) {
    return x.reshape({1, 2, 3, 2, 2}).transpose({0, 2, 1, 3, 4}).reshape({1, 6, 2, 2});
  };
  constexpr auto build = [shuffle](auto& b) {
    const auto x = b.input("x", dtype::f32, {1, 6, 2, 2}), y = b.input("y", dtype::f32, {1, 3, 2, 2});
    b.output(shuffle(x.sin()).exp());
    b.output(shuffle(x.exp()).exp());                      // a writer without two dims of channels
    b.output(shuffle(y.exp().concat(y.relu(), 1)).exp());  // each operand is one of the runs
    b.output(shuffle(x.sin()));
    b.output(shuffle(x.sin()).concat(x, 3).exp());  // rows with gaps
    const auto pieces = [&](const dims& split, const dims& joined) {
      return x.sin().reshape(split).transpose({0, 2, 1, 3, 4}).reshape(joined).exp();
    };
    b.output(pieces({1, 2, 3, 1, 4}, {1, 6, 2, 2}));  // these are no shuffles of channels
    b.output(pieces({1, 2, 3, 2, 2}, {1, 6, 4, 1}));
    const auto z = b.input("z", dtype::f32, {1, 4, 2, 2}), w = b.input("w", dtype::f32, {1, 2, 2, 2});
    b.output(shuffle(z.exp().concat(w.relu(), 1)).exp());  // operands that are no runs
    b.output(
        y.log().concat(y.sqrt(), 2).reshape({1, 1, 3, 4, 2}).transpose({0, 2, 1, 3, 4}).reshape({1, 3, 4, 2}).exp());
    b.output(shuffle(x.tanh()).exp());  // NHWC: the copy is such that the view shows NHWC
  };
  KILN_EXPECT_PLAN(true, build,
                   "sin(i0) > a0[1,4,8,2,1]\n"
                   "exp(a0) > o0\n"
                   "exp(i0) > a1\n"
                   "copy for reshape(a1[24,4,12,2,1]) > a2\n"
                   "exp(a2) > o1\n"
                   "exp(i1) > a3[1,8,2,1]\n"
                   "relu(i1) > a3[1,8,2,1]+4\n"
                   "exp(a3) > o2\n"
                   "sin(i0) > o3[1,4,8,2,1]\n"
                   "sin(i0) > a4\n"
                   "copy for reshape(a4[24,4,12,2,1]) > a5\n"
                   "copy for concat(a5) > a6[48,8,4,1]\n"
                   "copy for concat(i0) > a6[48,8,4,1]+2\n"
                   "exp(a6) > o4\n"
                   "sin(i0) > a7\n"
                   "copy for reshape(a7[24,4,12,4,1]) > a8\n"
                   "exp(a8) > o5\n"
                   "sin(i0) > a9\n"
                   "copy for reshape(a9[24,4,12,2,1]) > a10\n"
                   "exp(a10) > o6\n"
                   "exp(i2) > a11\n"
                   "relu(i3) > a11+16\n"
                   "copy for reshape(a11[24,4,12,2,1]) > a12\n"
                   "exp(a12) > o7\n"
                   "log(i1) > a13[24,8,2,1]\n"
                   "sqrt(i1) > a13[24,8,2,1]+4\n"
                   "exp(a13) > o8\n"
                   "tanh(i0) > a14[24,1,12,6]\n"
                   "copy for reshape(a14[1,1,3,12,6]) > a15[1,2,1,12,6]\n"
                   "exp(a15[1,1,12,6]) > o9\n"
                   "return o0, o1, o2, o3, o4, o5, o6, o7, o8, o9");
}

TEST(memory_plan, results_go_to_the_callers_buffers) {
  constexpr auto build = [](auto& b) {
    const auto x = b.input("x", dtype::f32, {2, 3}), e = x.exp();
    b.output(e, "first");
    b.output(e, "again");
    b.output(x.relu().reshape({6}).unsqueeze({0}), "flat");
    b.output(x, "input");
    const auto turned = e.transpose({1, 0});
    b.output(turned, "turned");
    b.output(x.log().transpose({1, 0}).reshape({6}), "written_there");
    b.output(x.transpose({1, 0}).reshape({6}), "copied_there");
    b.output(turned.reshape({6}), "copied_twice");
    b.output(x.sin().slice({.axes = {0}, .starts = {0}, .ends = {1}}), "part");
  };
  KILN_EXPECT_PLAN(true, build,
                   "exp(i0) > o0\n"
                   "relu(i0) > o2\n"
                   "log(i0) > o5[1,2]\n"
                   "copy for reshape(i0[1,3]) > o6\n"
                   "copy for reshape(o0[1,3]) > a0\n"
                   "sin(i0) > a1\n"
                   "copy for again(o0) > o1\n"
                   "copy for input(i0) > o3\n"
                   "copy for turned(o0[1,3]) > o4\n"
                   "copy for copied_twice(a0) > o7\n"
                   "copy for part(a1) > o8\n"
                   "return o0, o1, o2, o3, o4, o5, o6, o7, o8");
  KILN_EXPECT_PLAN(false, build,
                   "exp(i0) > a0\n"
                   "relu(i0) > a1\n"
                   "log(i0) > a2[1,2]\n"
                   "copy for reshape(i0[1,3]) > a3\n"
                   "copy for reshape(a0[1,3]) > a4\n"
                   "sin(i0) > a5\n"
                   "copy for input(i0) > a6\n"
                   "return a0, a0, a1, a6, a4, a2, a3, a4, a5");
}

TEST(memory_plan, an_input_may_be_the_first_output) {
  constexpr auto build = [](auto& b) { b.output(b.input("x", dtype::f32, {2, 3})); };
  KILN_EXPECT_PLAN(true, build,
                   "copy for output_0(i0) > o0\n"
                   "return o0");
}

TEST(memory_plan, inputs_and_weights_have_numbers_of_their_own) {
  constexpr auto build = [](auto& b) {
    const auto x = b.input("x", dtype::f32, {3}), u = b.weight("u", dtype::f32, {3});
    const auto y = b.input("y", dtype::f32, {3}), w = b.weight("w", dtype::f32, {3});
    const auto a = x * u, c = y * w;
    b.output(a + c);
  };
  KILN_EXPECT_PLAN(true, build,
                   "mul(i0, w0) > a0\n"
                   "mul(i1, w1) > a1\n"
                   "add(a0, a1) > o0\n"
                   "return o0");
}

TEST(memory_plan, an_output_grows_in_an_input) {
  constexpr auto build = [](auto& b) {
    const auto old = b.input("old", dtype::f32, {2, 3, 4}), x = b.input("x", dtype::f32, {2, 1, 4});
    const auto all = old.concat(x.exp(), 1);
    b.output(all.relu());
    b.output(all);
    b.output(all);
  };
  constexpr auto grown = [build](auto builder) {
    const lower::growing_output g[] = {{2, 0, 1, 16}};
    return planned<decltype(builder), true>(build, g);
  };
  constexpr std::string_view expected =
      "exp(i1) > o2[64,4,1]+12\n"
      "relu(o2[64,4,1]) > o0\n"
      "copy for output_1(o2[64,4,1]) > o1\n"
      "return o0, o1, o2[64,4,1]";
  static_assert(grown(static_builder<>()) == expected);
  EXPECT_EQ(grown(builder()).view(), expected);
}

TEST(memory_plan, one_copy_serves_all_readers_that_take_the_same_layout) {
  constexpr auto build = [](auto& b) {
    const auto x = b.input("x", dtype::f32, {1, 2, 3, 4}), turned = x.transpose({0, 1, 3, 2});
    const auto root = turned.sqrt(), shown = turned.cos();
    b.output(turned.sqrt());
    b.output(turned.cos());
    b.output(root - shown);
    b.output(turned.reshape({24}).exp());
  };
  KILN_EXPECT_PLAN(true, build,
                   "copy for copy(i0[24,12,1,4]) > a0\n"
                   "sqrt(a0) > a1\n"
                   "copy for copy(i0[24,12,1,4]) > a2[24,1,6,2]\n"
                   "cos(a2[24,1,6,2]) > a3\n"
                   "sqrt(a0) > o0\n"
                   "cos(a2[24,1,6,2]) > o1\n"
                   "sub(a1, a3) > o2\n"
                   "exp(a0) > o3\n"
                   "return o0, o1, o2, o3");
}

TEST(memory_plan, results_in_nhwc) {
  constexpr auto build = [](auto& b) {
    const auto x = b.input("x", dtype::f32, {1, 2, 3, 4});
    b.output(x.tanh().cos());
    b.output(x.tanh().transpose({0, 2, 3, 1}).exp());  // NHWC as the rows of another tensor
  };
  KILN_EXPECT_PLAN(true, build,
                   "tanh(i0) > a0[24,1,8,2]\n"
                   "cos(a0[24,1,8,2]) > o0\n"
                   "tanh(i0) > a1[24,1,8,2]\n"
                   "exp(a1) > o1\n"
                   "return o0, o1");
}

TEST(memory_plan, constants_have_a_buffer_where_a_step_reads_them) {
  constexpr auto build = [](auto& b) {
    const float numbers[6]{1, 2, 3, 4, 5, 6};
    const auto c = b.template constant<float>(dtype::f32, {2, 3}, numbers);
    const auto x = b.input("x", dtype::f32, {2, 3});
    b.output(x.max(c.floor()));
    b.output(c.min(x));
    b.output(c);
  };
  KILN_EXPECT_PLAN(true, build,
                   "floor(c0) > a0\n"
                   "max(i0, a0) > o0\n"
                   "min(c0, i0) > o1\n"
                   "copy for output_2(c0) > o2\n"
                   "return o0, o1, o2; constants: 1");
}

// A constant that a kernel holds in a form of its own, after a view that nothing else reads; another reader keeps it.
TEST(memory_plan, a_constant_that_its_reader_holds_itself_has_no_buffer) {
  constexpr auto build = [](auto& b, bool read_again) {
    const float numbers[4]{1, 2, 3, 4};
    const value_id x = b.input("x", dtype::f32, {2, 2}).id(),
                   c = b.template constant<float>(dtype::f32, {2, 2}, numbers).id();
    auto& m = b.module();  // whose ops are not folded
    m[c.instruction].name = text("c");
    const value_id turned = m.add(op::transpose{{1, 0}}, {c}), held = m.add(op::abs{}, {turned});
    m.outputs = {m.add(op::add{}, {held, x})};
    m.output_names = {"out"};
    if (read_again) m.outputs.push_back(m.add(op::exp{}, {c})), m.output_names.push_back("again");
  };
  constexpr auto held = [build](auto& b) { build(b, false); };
  KILN_EXPECT_PLAN(true, held,
                   "abs() > a0\n"
                   "add(a0, i0) > o0\n"
                   "return o0; nothing reads c");
  constexpr auto read = [build](auto& b) { build(b, true); };
  KILN_EXPECT_PLAN(true, read,
                   "abs() > a0\n"
                   "add(a0, i0) > o0\n"
                   "exp(c0) > o1\n"
                   "return o0, o1; constants: 1");
}

TEST(memory_plan, buffers_share_the_arena_by_liveness) {
  constexpr auto build = [](auto& b) {
    const auto x = b.input("x", dtype::f32, {16});  // 64 bytes each
    const auto kept = x.exp();
    b.output(x.log());  // lives to the end
    b.output(x.relu().exp().relu().exp() + kept);
  };
  constexpr auto bytes = [build](auto builder) {
    build(builder);
    const auto p = builder.finish();
    printed_plan<std::remove_cvref_t<decltype(p)>, false> plan(p);
    plan.print({});
    return plan.bytes();
  };
  static_assert(bytes(static_builder<>()) == 4 * 64);
  EXPECT_EQ(bytes(builder()), 4 * 64);
}

// The reader of one result says nothing about another result of the same instruction.
TEST(memory_plan, results_of_one_instruction_have_placements_of_their_own) {
  constexpr auto build = [](auto& b) {
    const auto x = b.input("x", dtype::f32, {4, 6});
    const auto values = b.add(op::topk{.k = 3, .axis = 1}, x);
    b.output(values.result(1).transpose({1, 0}));
    const auto again = b.add(op::topk{.k = 2, .axis = 0}, x);
    b.output(again.result(1).reshape({12}));
    b.output(again.exp());
  };
  KILN_EXPECT_PLAN(true, build,
                   "topk(i0) > a0, o0[1,4]\n"
                   "topk(i0) > a1, o1\n"
                   "exp(a1) > o2\n"
                   "return o0, o1, o2");
}

}  // namespace
}  // namespace kiln::testing
