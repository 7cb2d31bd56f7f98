#include "kiln/graph/rewriter.hpp"

#include <gtest/gtest.h>

#include "kiln/graph/builder.hpp"
#include "kiln/graph/print.hpp"
#include "kiln/graph/verify.hpp"

namespace kiln {
namespace {

TEST(rewriter, users_follow_redirects) {
  builder b;
  auto x = b.input("x", dtype::f32, {2});
  auto y = x.exp();
  b.output(y + y);
  b.output(y);
  program p = b.finish();
  {
    rewriter r(p.main());
    EXPECT_EQ(r.users(1).size(), 3u);  // two slots of the sum, one output
    EXPECT_FALSE(r.single_use({1, 0}));
    const value_id z = r.add(op::neg{}, {value_id{0, 0}});
    EXPECT_EQ(r.users(0).size(), 2u);
    r.replace({1, 0}, z);
    EXPECT_EQ(r.users(z.instruction).size(), 3u);
    EXPECT_TRUE(r.users(1).empty());
    EXPECT_EQ(r.users(0).size(), 1u);  // the dead exp is no user any more
  }
  EXPECT_TRUE(find_faults(p).empty());
  EXPECT_EQ(print(p).str(),
            "main:\n  %0 = x : f32[2]\n  %1 = neg(%0) : f32[2]\n  %2 = add(%1, %1) : f32[2]\n"
            "  return output_0 = %2\n  return output_1 = %1\n");
}

TEST(rewriter, a_chain_of_dead_ops_is_released) {
  builder b;
  auto x = b.input("x", dtype::f32, {2});
  b.output(x.exp().log().sqrt());
  program p = b.finish();
  rewriter r(p.main());
  r.replace({3, 0}, {0, 0});
  EXPECT_TRUE(r.users(1).empty());
  EXPECT_TRUE(r.users(2).empty());
  EXPECT_TRUE(r.single_use({0, 0}));
}

TEST(rewriter, one_result_of_several_is_redirected) {
  builder b;
  auto x = b.input("x", dtype::f32, {4});
  auto t = b.add(op::topk{.k = 4}, x);
  b.output(t);
  b.output(t.result(1));
  program p = b.finish();
  {
    rewriter r(p.main());
    r.replace({1, 0}, {0, 0});
    EXPECT_EQ(r.users(1).size(), 1u);
  }
  EXPECT_EQ(p.main().outputs[0], (value_id{0, 0}));
  EXPECT_EQ(p.main().outputs[1], (value_id{1, 1}));
}

TEST(rewriter, a_replacement_goes_by_the_old_name) {
  builder b;
  b.label = "encoder/relu";
  b.output(b.input("x", dtype::f32, {2}).relu());
  program p = b.finish();
  {
    rewriter r(p.main());
    r.replace({1, 0}, r.add(op::abs{}, {value_id{0, 0}}));
  }
  EXPECT_EQ(p.main()[1].name.view(), "encoder/relu");
  EXPECT_EQ(p.main()[1].op.name(), "abs");
}

}  // namespace
}  // namespace kiln
