// What a device counts, transforms and recurs over, beside the ops' own computations, where there is a device.
#include "hip_kernels/on_device.hpp"
#include "kiln/op/dynamic/loop.hpp"
#include "kiln/op/dynamic/selection.hpp"
#include "kiln/op/linear/dft.hpp"
#include "kiln/op/more.hpp"
#include "kiln/runtime/device.hpp"

namespace kiln::testing {
namespace {

class found_on_device : public tile_kernels_on_device {};

TEST_P(found_on_device, elements_and_slices) {
  const dtype t = GetParam();
  check([&](builder& b) {
    const value some = b.input("x", t, {5, 33, 7}).relu();
    b.output(b.add(op::nonzero{dimension::symbol("elements")}, some));
    b.output(b.add(op::nonzero{dimension::symbol("ones")}, b.input("one", t, {})));
    // slices of an odd count of elements, by a condition that is shorter than the axis
    const value holds = b.input("holds", dtype::boolean, {30});
    b.output(b.add(op::compress{.along = 1, .count = dimension::symbol("slices")}, some, holds));
    b.output(b.add(op::compress{.flat = true, .count = dimension::symbol("few")}, some, holds));
  });
}

TEST_P(found_on_device, boxes) {
  if (GetParam() != dtype::f32) GTEST_SKIP() << "boxes are f32";
  const auto one = [](dtype t, double x) { return literal::of<double>({t, {1}}, std::span<const double>(&x, 1)); };
  check([&](builder& b) {
    b.output(b.add(op::non_max_suppression{false, false, dimension::symbol("many")},
                   b.input("corners", dtype::f32, {1, 3000, 4}), b.input("scores", dtype::f32, {1, 5, 3000}),
                   b.constant(one(dtype::i64, 700)), b.constant(one(dtype::f32, 0.5)), b.constant(one(dtype::f32, 0))));
  });
  for (const bool centered : {false, true})
    for (const bool least : {false, true})
      check([&](builder& b) {
        b.output(b.add(op::non_max_suppression{centered, least, dimension::symbol("boxes")},
                       b.input("corners", dtype::f32, {2, 300, 4}), b.input("scores", dtype::f32, {2, 3, 300}),
                       b.constant(one(dtype::i64, 20)), b.constant(one(dtype::f32, 0.25)),
                       b.constant(one(dtype::f32, -0.5))));
      });
}

// Lengths of small factors, and a prime.
TEST_P(found_on_device, spectra) {
  if (GetParam() != dtype::f32) GTEST_SKIP() << "signals of f32";
  const dtype t = dtype::f32;
  for (const std::int64_t n : {60, 100, 4099})
    check([&](builder& b) {
      const value small = b.scalar(t, 1.0f / 16);
      const value real = b.input("real", t, {3, n, 1}) * small, both = b.input("both", t, {2, n, 2}) * small;
      b.output(b.add(op::dft{.axis = 1}, real));
      b.output(b.add(op::dft{.axis = 1, .one_sided = true}, real));
      b.output(b.add(op::dft{.axis = 1}, both));
      b.output(b.add(op::dft{.axis = 1, .inverse = true}, both));
    });
}

TEST_P(found_on_device, linear_attention) {
  const dtype t = GetParam();
  check([&](builder& b) {
    const value quarter = b.scalar(t, 0.25f);
    const value q = b.input("q", t, {2, 9, 3, 16}), k = b.input("k", t, {2, 9, 3, 16}) * quarter,
                v = b.input("v", t, {2, 9, 3, 24}), state = b.input("state", t, {2, 3, 16, 24}),
                decay = b.input("decay", t, {2, 9, 3, 16}) * quarter, beta = b.input("beta", t, {2, 9, 3});
    for (const bool corrects : {false, true}) {
      const value y = b.add(op::linear_attention{.scale = 0.25f, .corrects = corrects}, q, k, v, state, decay, beta);
      b.output(y), b.output(y.result(1));
    }
  });
}

// A decaying sum of rows that keeps what it was, again and again over the same memory: its iterations are recorded in
// the second run and replayed from then on. Rows of 33 elements begin where kernels don't expect operands.
TEST_P(found_on_device, loops) {
  const dtype t = GetParam();
  constexpr std::int64_t steps = 150;
  for (const std::int64_t n : {33, 64}) {
    SCOPED_TRACE(n);
    const auto make = [&] {
      builder body;
      const value number = body.input("number", dtype::i64, {}), go = body.input("go", dtype::boolean, {}),
                  sum = body.input("sum", t, {n}), rows = body.input("rows", t, {steps, n});
      body.output(go);
      body.output(sum * body.scalar(t, 0.5f) + body.add(op::gather{}, rows, number));
      body.output(sum);
      program p;
      module_graph& m = p.main();
      small_vector<value_id> in;
      in.push_back(m.add_parameter("most", {dtype::i64, {}}));
      in.push_back(m.add_parameter("begins", {dtype::boolean, {}}));
      in.push_back(m.add_parameter("first", {t, {n}}));
      in.push_back(m.add_parameter("rows", {t, {steps, n}}));
      const module_ref iteration = p.add_module(module_graph(body.finish().main()));
      const value_id made = p.main().add_with_shapes(op::loop{iteration, 1}, in,
                                                     {shape(t, {n}), shape(t, {dimension::symbol("rounds"), n})});
      for (const char* const name : {"last", "all"}) {
        p.main().outputs.push_back({made.instruction, static_cast<std::uint32_t>(p.main().outputs.size())});
        p.main().output_names.push_back(text(name));
      }
      return p;
    };
    const hip_target gpu;
    const executable exe = compile(make(), gpu, plain_options()), reference = compile(make(), reference_target());
    const argument there[] = {gpu.allocate({t, {n}}), gpu.allocate({t, {steps, n}})};
    std::vector<argument> out{gpu.allocate({t, {n}}), gpu.allocate({t, {steps, n}})};
    workspace w = exe.make_workspace();
    const auto queue = gpu.get_device()->make_queue();
    for (unsigned run = 0; run < 4; ++run) {
      SCOPED_TRACE("run " + std::to_string(run));
      const bool yes = true;
      const std::int64_t most = steps;
      std::vector<argument> in{argument::of<std::int64_t>({}, std::span(&most, 1)),
                               argument::of<bool>({}, std::span(&yes, 1)), random_argument({t, {n}}, run),
                               random_argument({t, {steps, n}}, 9 + run)};
      const auto expected = reference.run(in);
      for (std::size_t k = 0; k < 2; ++k) {
        queue->copy(const_cast<std::byte*>(there[k].data()), in[2 + k].data(),
                    static_cast<std::size_t>(in[2 + k].get_shape().bytes().value()));
        in[2 + k] = there[k];
      }
      queue->wait();
      exe.run(w, in, out);
      const double bound = t == dtype::f32 ? 2e-5 : t == dtype::f16 ? 4e-3 : 3e-2;
      for (std::size_t k = 0; k < 2; ++k) expect_close(gpu.to_host(out[k]), expected[k], {bound, bound * 4});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(dtypes, found_on_device, ::testing::Values(dtype::f16, dtype::bf16, dtype::f32),
                         [](const auto& at) { return std::string(to_string(at.param)); });

}  // namespace
}  // namespace kiln::testing
