// Attention beside the op's own computation, where there is a device.
#include "hip_kernels/on_device.hpp"
#include "kiln/op/more.hpp"

namespace kiln::testing {
namespace {

class attention_on_device : public tile_kernels_on_device {};

TEST_P(attention_on_device, heads) {
  const dtype t = GetParam();
  struct sizes {
    std::int64_t heads, kv, queries, keys, depth;
  };
  for (const sizes z : {sizes{4, 4, 128, 128, 64},
                        {12, 12, 512, 512, 64},
                        {4, 2, 33, 70, 40},
                        {8, 2, 1, 1000, 128},
                        {2, 2, 100, 100, 72},
                        {2, 1, 20, 20, 256},
                        {2, 1, 9, 20, 300},
                        {6, 2, 5, 700, 40},  // few rows, whose keys warps and blocks share
                        {4, 1, 2, 300, 256},
                        {64, 32, 70, 140, 128},  // blocks work tile after tile
                        {64, 64, 70, 140, 64},
                        {96, 48, 100, 70, 80},
                        {12, 12, 1280, 128, 64},  // with four groups of warps, and with one
                        {132, 132, 64, 70, 64}}) {
    SCOPED_TRACE(z.queries * 1000000 + z.keys * 1000 + z.depth);
    // kernels of one program are compiled at a time; the reference takes long over a large one
    const bool large = z.heads * z.queries * z.keys > 1000000;
    if (large && t == dtype::f32) continue;
    check([&](builder& b) {
      const value q = b.input("q", t, {2, z.heads, z.queries, z.depth}),
                  k = b.input("k", t, {2, z.kv, z.keys, z.depth}), v = b.input("v", t, {2, z.kv, z.keys, z.depth});
      const value seen = b.input("seen", dtype::boolean, {2, 1, 1, z.keys}),
                  added = b.input("added", t, {1, 1, z.queries, z.keys});
      for (const bool causal : {false, true})
        for (const value* mask : {static_cast<const value*>(nullptr), &seen, &added}) {
          if (large && (causal || mask)) continue;
          small_vector<value> in{q, k, v};
          if (mask) in.push_back(*mask);
          b.output(b.add(op::attention{.scale = 0.2f, .causal = causal}, in));
        }
    });
  }
}

// Four groups of warps in causal attention, which see different steps of a tile; rows that see no key, heads that share
// keys.
TEST_P(attention_on_device, units_that_see_fewer_keys) {
  const dtype t = GetParam();
  if (t == dtype::f32) GTEST_SKIP() << "attention of 16-bit floats";
  struct sizes {
    std::int64_t kv, keys, depth;
  };
  for (const sizes z : {sizes{66, 230, 64}, {33, 150, 40}}) {
    SCOPED_TRACE(z.keys);
    check([&](builder& b) {
      const value q = b.input("q", t, {2, 66, 200, z.depth}), k = b.input("k", t, {2, z.kv, z.keys, z.depth}),
                  v = b.input("v", t, {2, z.kv, z.keys, z.depth});
      b.output(b.add(op::attention{.scale = 0.2f, .causal = true}, q, k, v));
    });
  }
}

// Whose keys and values exceed a section, so that blocks take tiles from a counter: it starts at zero in every run.
TEST_P(attention_on_device, sections) {
  const dtype t = GetParam();
  if (t == dtype::f32) GTEST_SKIP() << "attention of 16-bit floats";
  const auto make = [&](builder& b) {
    const value q = b.input("q", t, {2, 128, 64, 128}), k = b.input("k", t, {2, 128, 1024, 128}),
                v = b.input("v", t, {2, 128, 1024, 128});
    b.output(b.add(op::attention{.scale = 0.2f, .causal = true}, q, k, v));
  };
  const std::vector<argument> inputs = random_inputs(make);
  const argument expected = reference_run(make, inputs)[0];
  builder b;
  make(b);
  const executable e = compile(b.finish(), hip_target(), plain_options());
  workspace w = e.make_workspace();
  std::vector<shape> shapes;
  for (const argument& a : inputs) shapes.push_back(a.get_shape());
  for (int run = 0; run < 2; ++run) {
    SCOPED_TRACE(run);
    std::vector<argument> found = e.make_outputs(shapes);
    e.run(w, inputs, found);
    const double bound = t == dtype::f16 ? 4e-3 : 3e-2;
    expect_close(found[0], expected, {bound, bound * 4});
  }
}

INSTANTIATE_TEST_SUITE_P(dtypes, attention_on_device, ::testing::Values(dtype::f16, dtype::bf16, dtype::f32),
                         [](const auto& at) { return std::string(to_string(at.param)); });

}  // namespace
}  // namespace kiln::testing
