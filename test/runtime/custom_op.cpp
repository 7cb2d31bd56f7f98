#include "kiln/graph/custom_op.hpp"

#include <gmock/gmock.h>

#include <atomic>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/backend/reference/reference_target.hpp"
#include "kiln/graph/builder.hpp"
#include "kiln/graph/print.hpp"
#include "kiln/runtime/executable.hpp"

namespace {

using namespace kiln;

std::atomic<int> computations = 0;

shapes like_first(const custom_attributes&, std::span<const shape> in) {
  if (in.size() != 1) raise(fault::of(errc::invalid_argument, "number of inputs", 1, in.size()));
  return {in[0]};
}

// x * factors[0], for i32 and f32.
void scale(const custom_attributes& attributes, std::span<const argument> in, std::span<argument> out) {
  ++computations;
  const float factor = std::get<std::vector<float>>(attributes.at(0).values)[0];
  visit_storage(in[0].get_shape().type, [&]<class T>(type_tag<T>) {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, std::int32_t>)
      for (std::size_t i = 0; i < in[0].as<T>().size(); ++i)
        out[0].as<T>()[i] = static_cast<T>(static_cast<float>(in[0].as<T>()[i]) * factor);
  });
}

void define_once() {
  if (find_custom_op("test::scale")) return;
  define_custom_op({"test", "scale", true, like_first, scale});
  define_custom_op({"test", "counted", false, like_first, scale});
}

operation scaling(float factor, const char* name = "test::scale") {
  define_once();
  return make_custom_operation(name, {{"factors", std::vector<float>{factor}}});
}

program scaled_twice(const char* name, bool constant = false) {
  builder b;
  const dimension n = dimension::symbol("n", 1);
  const std::vector<float> ones(4, 1.0f);
  const auto x = constant ? b.constant(dtype::f32, {4}, std::span<const float>(ones)) : b.input("x", dtype::f32, {n});
  const auto twice = b.add_operation(scaling(2, name), {x.id()}), again = b.add_operation(scaling(2, name), {x.id()});
  b.output(twice + again, "y");
  return b.finish();
}

TEST(custom_op, runs_on_every_target_for_any_sizes) {
  for (const target* t :
       {static_cast<const target*>(new reference_target), static_cast<const target*>(new eigen_target)}) {
    const std::unique_ptr<const target> owned(t);
    const executable exe = compile(scaled_twice("test::counted"), *owned);
    for (const std::int64_t n : {1, 5}) {
      const std::vector<float> values(static_cast<std::size_t>(n), 1.5f);
      const argument y = exe.run({{"x", argument::of<float>({n}, std::span<const float>(values))}}).front();
      EXPECT_EQ(y.to<float>(), small_vector<float>(static_cast<std::size_t>(n), 6.0f)) << owned->name();
    }
    EXPECT_EQ(exe.report().steps[0].kernel, "test::counted (custom)");
  }
}

TEST(custom_op, equal_pure_instructions_are_merged_and_constants_folded) {
  const auto instructions = [](const program& p) {
    int count = 0;
    for (std::uint32_t i = 0; i < p.main().size(); ++i)
      count += p.main()[i].kind == instruction_kind::op && custom_call_of(p.main()[i].op);
    return count;
  };
  EXPECT_EQ(instructions(compile(scaled_twice("test::scale"), eigen_target()).optimized()), 1);
  EXPECT_EQ(instructions(compile(scaled_twice("test::counted"), eigen_target()).optimized()), 2);
  EXPECT_EQ(instructions(compile(scaled_twice("test::counted", true), eigen_target()).optimized()), 2);
  const executable folded = compile(scaled_twice("test::scale", true), eigen_target());
  EXPECT_EQ(instructions(folded.optimized()), 0);
  const int before = computations;
  EXPECT_EQ(folded.run(std::span<const argument>()).front().to<float>(), small_vector<float>(4, 4.0f));
  EXPECT_EQ(computations, before);
}

TEST(custom_op, folds_elements_that_compute_in_another_type) {
  builder b;
  const std::vector<std::int32_t> values = {-3, 70000};
  const auto x = b.constant(dtype::i32, {2}, std::span<const std::int32_t>(values));
  b.output(b.add_operation(scaling(2), {x.id()}), "y");
  const executable exe = compile(b.finish(), reference_target());
  EXPECT_EQ(exe.run(std::span<const argument>()).front().to<std::int32_t>(), (small_vector<std::int32_t>{-6, 140000}));
}

TEST(custom_op, attributes_make_operations_equal) {
  EXPECT_TRUE(scaling(2) == scaling(2));
  EXPECT_FALSE(scaling(2) == scaling(3));
  EXPECT_FALSE(scaling(2) == scaling(2, "test::counted"));
  EXPECT_EQ(scaling(2).hash(), scaling(2).hash());
  EXPECT_FALSE(custom_call_of(operation(op::relu{})));
  EXPECT_EQ(custom_call_of(scaling(2))->op, find_custom_op("test::scale"));
}

TEST(custom_op, prints_its_name_and_attributes) {
  define_once();
  builder b;
  const auto x = b.input("x", dtype::f32, {2});
  const custom_attributes all = {{"axes", std::vector<std::int64_t>{1, 2}},
                                 {"factors", std::vector<float>{0.5f}},
                                 {"mode", std::vector<std::string>{"up"}}};
  b.output(b.add_operation(make_custom_operation("test::scale", all), {x.id()}), "y");
  EXPECT_THAT(print(b.finish()).str(),
              testing::HasSubstr("test::scale{axes = [1, 2], factors = [0.5], mode = [up]}(%0) : f32[2]"));
}

TEST(custom_op, is_defined_once_and_before_it_is_used) {
  define_once();
  const auto code_of = [](const auto& f) {
    try {
      f();
    } catch (const error& e) {
      return e.code();
    }
    return errc::internal;
  };
  EXPECT_EQ(code_of([] { define_custom_op({"test", "scale", true, like_first, scale}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { define_custom_op({"test", "", true, like_first, scale}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { define_custom_op({"test", "nothing", true, like_first, {}}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { (void)make_custom_operation("test::unknown"); }), errc::not_found);
  EXPECT_EQ(find_custom_op("test::unknown"), nullptr);
}

TEST(custom_op, faults_name_it) {
  builder b;
  const auto x = b.input("x", dtype::f32, {2}), s = b.input("s", dtype::string, {2});
  const operation op = scaling(1);
  const auto what = [&](const auto& f) -> std::string {
    try {
      f();
    } catch (const error& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_EQ(what([&] {
              b.add_operation(op, {x.id(), x.id()});
            }),
            "invalid argument: test::scale: number of inputs: expected 1, found 2");
  EXPECT_THAT(what([&] { b.add_operation(op, {s.id()}); }),
              testing::HasSubstr("expected a number or bool, found string"));
}

}  // namespace
