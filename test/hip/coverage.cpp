// Which ops have a kernel is decided when a program is compiled: without a device, and without compiling the kernel.
#include <gtest/gtest.h>

#include <set>

#include "kiln/backend/hip/compile.hpp"
#include "kiln/backend/hip/hip_target.hpp"
#include "kiln/graph/builder.hpp"
#include "onnx/every_op.hpp"

namespace kiln::testing {
namespace {

// Asks the GPU's target for each kernel, notes what it has none for, and makes none.
class asking_target final : public target {
 public:
  explicit asking_target(const hip_options& options) : asked_(options) {}
  std::string_view name() const override { return "asking"; }
  lower::layout_role role(const program& whole, const basic_instruction<operation>& instruction) const override {
    return asked_.role(whole, instruction);
  }
  target_passes passes() const override { return asked_.passes(); }
  std::unique_ptr<kernel> make_kernel(const kernel_request& r) const override {
    ++asked;
    if (asked_.make_kernel(r)) return nullptr;
    std::string what(r.instruction.op.name());
    for (const shape& s : r.inputs) what += " " + std::string(to_string(s.type));
    what += " ->";
    for (const shape& s : r.instruction.results) what += " " + std::string(to_string(s.type));
    missing.insert(what);
    return nullptr;
  }
  mutable std::set<std::string> missing;
  mutable int asked = 0;

 private:
  hip_target asked_;
};

class hip_coverage : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"sm_90", "gfx90a"})
      if (hip::why_not_compiled(hip::architecture::named(name)).empty()) {
        hip_options options;
        options.architecture = name;
        options.keep = false;
        asked = std::make_unique<asking_target>(options);
        return;
      }
    GTEST_SKIP() << "SKIPPED: no compiler for kernels is here";
  }
  void ask(const std::function<void(builder&)>& make) {
    builder b;
    make(b);
    const int before = asked->asked;
    compile(b.finish(), *asked);
    EXPECT_GT(asked->asked, before);
  }
  void TearDown() override {
    if (asked)
      for (const std::string& one : asked->missing) ADD_FAILURE() << "no kernel for " << one;
  }
  std::unique_ptr<asking_target> asked;
};

constexpr auto last_number = static_cast<int>(dtype::u2);

// Every op that computes; views and concatenations are layouts.
TEST_F(hip_coverage, every_op) {
  for (const op_program& o : every_op_program()) {
    builder b;
    o.make(b);
    compile(b.finish(), *asked);
  }
  EXPECT_GT(asked->asked, 500);
}

TEST_F(hip_coverage, recurrences_and_draws) {
  for (const dtype t : {dtype::f32, dtype::f64, dtype::f16, dtype::bf16})
    for (int kind = 0; kind < 3; ++kind) {
      op::recurrent r;
      r.cell = static_cast<op::cell_kind>(kind);
      const std::int64_t gates = r.gates();
      for (int k = 0; k < kind; ++k)
        r.functions.push_back(op::cell_function::tanh), r.alpha.push_back(0), r.beta.push_back(0);
      ask([&](builder& b) {
        small_vector<value> in;
        int n = 0;
        for (const dims& lens : {dims{3, 2, 4 * gates}, dims{4, 4 * gates}, dims{4 * gates}, dims{2, 4}})
          in.push_back(b.input("x" + std::to_string(n++), t, lens));
        in.push_back(b.input("lengths", dtype::i64, {2}));
        if (kind == 2) in.push_back(b.input("cell", t, {2, 4})), in.push_back(b.input("peepholes", t, {12}));
        b.output(b.add(r, in));
        b.output(b.add(op::random_uniform{.lens = {7}, .type = t}) * b.input("y", t, {7}));
      });
    }
}

// Numbers of at most eight bits are converted, chosen and moved.
TEST_F(hip_coverage, every_dtype_converts_to_every_other) {
  ask([](builder& b) {
    for (int from = 0; from <= last_number; ++from) {
      const auto t = static_cast<dtype>(from);
      const std::string n(to_string(t));
      const value x = b.input("x" + n, t, {64}), c = b.input("c" + n, dtype::boolean, {64});
      for (int to = 0; to <= last_number; ++to)
        if (to != from) b.output(b.add(op::convert{.to = static_cast<dtype>(to)}, x));
      b.output(b.add(op::where{}, c, x, b.input("y" + n, t, {64})));
    }
  });
}

TEST_F(hip_coverage, moves_of_every_dtype) {
  for (int k = 0; k <= last_number; ++k) {
    const auto t = static_cast<dtype>(k);
    SCOPED_TRACE(std::string(to_string(t)));
    ask([&](builder& b) {
      const value x = b.input("x", t, {4, 8}), rows = b.input("rows", dtype::i64, {5}),
                  each = b.input("each", dtype::i32, {4, 8}), pairs = b.input("pairs", dtype::i64, {3, 1});
      b.output(x.transpose({1, 0}));
      b.output(b.add(op::concat{.axis = 1}, x, x));
      b.output(b.add(op::gather{.axis = 1}, x, rows));
      b.output(b.add(op::gather_elements{.axis = 1}, x, each));
      b.output(b.add(op::gather_nd{}, x, pairs));
      b.output(b.add(op::scatter_elements{.axis = 1}, x, each, x));
      b.output(b.add(op::scatter_nd{}, x, pairs, b.input("u", t, {3, 8})));
      b.output(b.add(op::pad{.pads = {1, 1, 1, 1}}, x));
      b.output(b.add(op::tri{}, x));
      b.output(b.add(op::one_hot{.depth = 5}, rows, b.input("values", t, {2})));
      b.output(b.add(op::bit_cast{bits_of(t) == 8 ? dtype::u8 : t}, x));
    });
  }
}

TEST_F(hip_coverage, numbers_of_every_dtype) {
  for (int k = 0; k < static_cast<int>(dtype::boolean); ++k) {
    const auto t = static_cast<dtype>(k);
    SCOPED_TRACE(std::string(to_string(t)));
    ask([&](builder& b) {
      const value x = b.input("x", t, {4, 8}), each = b.input("each", dtype::i64, {4, 8});
      const value image = b.input("image", t, {1, 8, 9, 9});
      b.output(x.dot(b.input("w", t, {8, 3})));
      b.output(b.add(op::scatter_elements{.axis = 1, .reduction = op::scatter_mode::mul}, x, each, x));
      b.output(b.add(op::pooling{.lengths = {2, 2}}, image));
      b.output(b.add(op::arg_max{.axis = 1}, x));
      b.output(b.add(op::cumsum{.axis = 1}, x));
      b.output(b.add(op::cumprod{.axis = 1}, x));
      b.output(b.add(op::topk{.k = 2, .axis = 1}, x));
      b.output(image.conv(b.input("filters", t, {4, 8, 3, 3}), {}));
      b.output(image.conv(b.input("depthwise", t, {8, 1, 3, 3}), {.group = 8}));
      b.output(b.input("row", t, {1, 2, 9}).conv(b.input("row_filters", t, {4, 2, 3}), {}));
      b.output(b.input("volume", t, {1, 2, 5, 5, 5}).conv(b.input("volume_filters", t, {4, 2, 3, 3, 3}), {}));
      if (!is_float(t)) return;
      b.output(x.softmax());
      b.output(x.normalize({-1}));
      b.output(b.add(op::deconvolution{.stride = {2, 2}}, image, b.input("back", t, {8, 4, 3, 3})));
      b.output(b.add(op::deconvolution{}, b.input("row_back", t, {1, 2, 9}), b.input("row_taps", t, {2, 4, 3})));
      b.output(b.add(op::deconvolution{}, b.input("volume_back", t, {1, 2, 3, 3, 3}),
                     b.input("volume_taps", t, {2, 1, 3, 3, 3})));
      b.output(b.add(op::det{}, b.input("squares", t, {2, 3, 3})));
      for (const std::int64_t depth : {16, 300}) {
        const std::string n = std::to_string(depth);
        b.output(b.add(op::attention{}, b.input("q" + n, t, {1, 2, 3, depth}), b.input("k" + n, t, {1, 2, 5, depth}),
                       b.input("v" + n, t, {1, 2, 5, depth})));
      }
    });
  }
}

// An op that only its reference computes: what the other tests look for is seen.
struct every_other {
  constexpr result<shape> compute_shape(std::span<const shape> in) const { return in[0]; }
  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto in = e.template in<T>(0);
    const auto out = e.template out<T>();
    for (std::int64_t k = 0, n = in.size(); k < n; ++k) out[k] = k % 2 == 0 ? in[k] : T(0);
  }
};

TEST_F(hip_coverage, an_op_without_a_kernel_is_noticed) {
  ask([](builder& b) { b.output(b.add(every_other{}, b.input("x", dtype::f32, {4}))); });
  ASSERT_EQ(asked->missing.size(), 1u);
  EXPECT_NE(asked->missing.begin()->find("every_other f32 -> f32"), std::string::npos);
  asked->missing.clear();
}

}  // namespace
}  // namespace kiln::testing
