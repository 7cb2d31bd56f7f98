#include "kiln/pass/sink_into_branches.hpp"

#include "pass/evaluate.hpp"

namespace kiln::test {
namespace {

constexpr auto run = [](auto& p) { return sink_into_branches(p); };

// How often an op stands directly behind a concatenation.
std::size_t behind_concatenations(const program& p) {
  std::size_t n = 0;
  const auto& m = p.main();
  for (std::uint32_t i = 0; i < m.size(); ++i)
    for (value_id v : m[i].inputs)
      n += m[v.instruction].kind == instruction_kind::op && m[v.instruction].op.template is<op::concat>();
  return n;
}

template <class Build> void expect_left(const Build& build, std::size_t left) {
  auto p = built<builder>(build);
  run(p);
  EXPECT_TRUE(same_results(built<builder>(build), p, 0)) << print(p).view();
  EXPECT_EQ(behind_concatenations(p), left) << print(p).view();
}

constexpr op::pooling means{.mode = op::pooling_mode::average, .lengths = {2, 2}};

TEST(sink_into_branches, each_branch_takes_it) {
  expect_left(
      [](auto& b) {
        auto x = b.input("x", dtype::f32, {1, 2, 4, 4});
        auto y = x.conv(b.weight("w", dtype::f32, {3, 2, 1, 1}));
        auto z = x.conv(b.weight("k", dtype::f32, {5, 2, 3, 3}), {.pads = {1, 1, 1, 1}})
                     .add_along(1, b.weight("bias", dtype::f32, {5}));
        b.output(y.concat(z, 1).tanh());
        b.output(
            x.conv(b.weight("v", dtype::f32, {3, 2, 1, 1})).concat(x.sigmoid().pool({.lengths = {1, 1}}), 1).relu());
        b.output(x.relu().pool(means).concat(x.conv(b.weight("u", dtype::f32, {3, 2, 2, 2})), 1).relu());
      },
      0);
}

TEST(sink_into_branches, what_gains_nothing_stays) {
  expect_left(
      [](auto& b) {
        auto x = b.input("x", dtype::f32, {1, 2, 4, 4});
        auto product = [&](const char* name) { return x.conv(b.weight(name, dtype::f32, {3, 2, 1, 1})); };
        b.output(product("a").concat(x, 1).relu());                    // may be negative
        b.output(product("b").concat(x.relu().neg(), 1).exp().neg());  // no epilogue, and no relu
        auto read = product("c").concat(product("d"), 1);
        b.output(read.relu());
        b.output(read);  // others read the concatenation
        auto branch = product("e");
        b.output(branch.concat(product("f"), 1).relu());
        b.output(branch);  // or a branch
      },
      4);
}

TEST(sink_into_branches, names_stay) {
  for (const bool named : {true, false}) {
    auto p = built<builder>([](auto& b) {
      const auto x = b.input("x", dtype::f32, {1, 2, 4, 4});
      const auto y = x.conv(b.weight("w", dtype::f32, {3, 2, 1, 1})),
                 z = x.conv(b.weight("k", dtype::f32, {5, 2, 1, 1}));
      b.output(y.concat(z, 1).relu());
    });
    auto& m = p.main();
    for (std::uint32_t i = 0; i < m.size(); ++i) {
      if (m[i].kind != instruction_kind::op || (!named && m[i].op.is<op::relu>())) continue;
      m[i].name = text(m[i].op.name()).append(m[i].results[0].lens[1].raw());
    }
    run(p);
    std::vector<std::string> sunk, joined;
    for (std::uint32_t i = 0; i < m.size(); ++i) {
      if (m[i].kind != instruction_kind::op) continue;
      if (m[i].op.is<op::relu>()) sunk.push_back(m[i].name.str());
      if (m[i].op.is<op::concat>()) joined.push_back(m[i].name.str());
    }
    EXPECT_EQ(sunk, (std::vector<std::string>{"convolution3", "convolution5"})) << "each by its branch";
    EXPECT_EQ(joined, (std::vector<std::string>{named ? "relu8" : "concat8"}));
  }
}

// A window outside of the image has no greatest element: it is minus infinity, which relu changes.
TEST(sink_into_branches, windows_of_padding_alone) {
  expect_left(
      [](auto& b) {
        auto x = b.input("x", dtype::f32, {1, 2, 4, 4});
        auto y = x.relu().pool({.lengths = {2, 2}, .stride = {2, 2}, .pads = {2, 2, 2, 2}});
        b.output(y.concat(x.conv(b.weight("w", dtype::f32, {3, 2, 1, 1})), 1).relu());
        auto narrow = b.input("narrow", dtype::f32, {1, 2, 2, 2});  // windows reach from its one side to the other
        auto z = narrow.relu().pool({.lengths = {2, 2}, .dilation = {3, 3}, .pads = {1, 1, 1, 1}});
        b.output(z.concat(narrow.conv(b.weight("k", dtype::f32, {3, 2, 2, 2})), 1).relu());
      },
      2);
}

}  // namespace
}  // namespace kiln::test
