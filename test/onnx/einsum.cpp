#include <cmath>

#include "onnx/one_operator.hpp"
#include "onnx/run_model.hpp"

namespace kiln::test {
namespace {

outcome einsum(const char* equation, const std::vector<given>& inputs) {
  return compute({"Einsum", 12, {attr("equation", equation)}}, inputs);
}
const given m{{2, 3}, {1, 2, 3, 4, 5, 6}}, v{{3}, {1, 10, 100}};

TEST(einsum, one_operand_is_permuted_summed_or_cut_to_its_diagonal) {
  EXPECT_EQ(einsum("ij->ji", {m}), (outcome{{3, 2}, {1, 4, 2, 5, 3, 6}}));
  EXPECT_EQ(einsum("ij -> i", {m}), (outcome{{2}, {6, 15}}));
  EXPECT_EQ(einsum("ba", {m}).lens, (ints{3, 2}));
  EXPECT_EQ(einsum("ii->i", {{{2, 2}, {1, 2, 3, 4}}}), (outcome{{2}, {1, 4}}));
  EXPECT_EQ(einsum("ii", {{{2, 2}, {1, 2, 3, 4}}}), (outcome{{}, {5}}));
}

TEST(einsum, two_operands_contract_what_the_result_leaves_out) {
  EXPECT_EQ(einsum("ij,j->i", {m, v}), (outcome{{2}, {321, 654}}));
  EXPECT_EQ(einsum("i,j->ij", {{{2}, {1, 2}}, v}), (outcome{{2, 3}, {1, 10, 100, 2, 20, 200}}));
  EXPECT_EQ(einsum("ij,ij->", {m, m}), (outcome{{}, {91}}));
  EXPECT_EQ(einsum("bij,bjk->bki", {{{1, 2, 3}, m.values}, {{1, 3, 1}, v.values}}), (outcome{{1, 1, 2}, {321, 654}}));
}

TEST(einsum, three_operands_keep_what_later_ones_need) {
  EXPECT_EQ(einsum("ij,j,i->j", {m, v, {{2}, {1, -1}}}), (outcome{{3}, {-3, -30, -300}}));
}

TEST(einsum, an_ellipsis_broadcasts) {
  const given stack{{2, 1, 3}, {1, 0, 0, 0, 0, 1}};
  EXPECT_EQ(einsum("...ij,jk->...ik", {stack, {{3, 1}, v.values}}), (outcome{{2, 1, 1}, {1, 100}}));
  EXPECT_EQ(einsum("...i,...i->...", {{{2, 3}, m.values}, {{1, 3}, v.values}}), (outcome{{2}, {321, 654}}));
}

TEST(einsum, equations_must_fit) {
  EXPECT_THROW(einsum("ij,j->i", {m}), error);
  EXPECT_THROW(einsum("ijk->i", {m}), error);
  EXPECT_THROW(einsum("ij->k", {m}), error);
  EXPECT_THROW(einsum("ij->ii", {m}), error);
  try {
    einsum("ii->i", {m});
    ADD_FAILURE() << "a diagonal of a matrix that is not square";
  } catch (const error& e) {
    EXPECT_NE(std::string(e.what()).find("label 'i' stands for extents of 2 and 3"), std::string::npos) << e.what();
  }
}

TEST(einsum, a_diagonal_of_extents_of_the_run_is_checked_by_it) {
  const auto m = model_of({{node("Einsum", {"x"}, {"y"}, {attr("equation", "ii->i")})},
                           {},
                           {value_info("x", 1, {dim("n"), dim("m")})},
                           {value_info("y")}});
  EXPECT_THAT(floats_of(run_model(m, {reals({2, 2}, {1, 2, 3, 4})})[0]), testing::ElementsAre(1, 4));
  EXPECT_THAT(failure(m, {reals({2, 3}, {1, 2, 3, 4, 5, 6})}), testing::HasSubstr("expect"));
}

TEST(frames, fit_the_signal_and_the_window) {
  const auto stft = [](std::int64_t window, std::int64_t frame) {
    graph_parts parts{{node("STFT", {"x", "step", "w", "n"}, {"y"})},
                      {integers("step", {}, {2}), integers("n", {}, {frame}),
                       floats("w", {window}, std::vector<float>(static_cast<std::size_t>(window), 1.0f))},
                      {value_info("x", 1, {1, 8, 1})},
                      {value_info("y")}};
    const auto p = onnx::parse_model(model(graph(parts), {opset(17)}).bytes()).graph;
    return p.main().shape_of(p.main().outputs[0]).lens;
  };
  EXPECT_EQ(stft(4, 4), (dims{1, 3, 3, 2}));
  EXPECT_EQ(stft(8, 8), (dims{1, 1, 5, 2}));
  EXPECT_THROW(stft(9, 9), error);
  EXPECT_THROW(stft(1, 4), error);
}

TEST(windows, are_periodic_unless_told_otherwise) {
  expect_near(compute({"HannWindow", 17}, {}, {integers("number0", {}, {4})}), {{4}, {0, .5f, 1, .5f}});
  expect_near(compute({"HannWindow", 17, {attr("periodic", 0)}}, {}, {integers("number0", {}, {3})}), {{3}, {0, 1, 0}});
  expect_near(compute({"BlackmanWindow", 17}, {}, {integers("number0", {}, {2})}), {{2}, {0, 1}});
}

}  // namespace
}  // namespace kiln::test
