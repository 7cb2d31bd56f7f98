#include "onnx/run_model.hpp"

// Sequences and optionals, of which the run alone knows what they hold.
namespace kiln::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

argument sequence_of(std::vector<argument> items) { return sequence_argument(std::move(items)); }
const message sequence_in = holder_info("s", 4, 1, {dim("n")});

TEST(import_sequences, of_the_run_are_indexed_inserted_and_erased) {
  const auto m = model_of({{node("SequenceInsert", {"s", "x", "at"}, {"t"}), node("SequenceErase", {"t", "out"}, {"u"}),
                            node("SequenceLength", {"u"}, {"length"}), node("SequenceAt", {"u", "at"}, {"item"})},
                           {},
                           {sequence_in, value_info("x", 1, {1}), value_info("at", 7, {}), value_info("out", 7, {})},
                           {value_info("length"), value_info("item"), value_info("u")}});
  const argument s = sequence_of({reals({1}, {1}), reals({2}, {2, 3})});
  const auto out = run_model(m, {s, reals({1}, {9}), whole({}, {-1}), whole({}, {0})});
  EXPECT_THAT(floats_of(out[0]), ElementsAre(2));
  EXPECT_THAT(floats_of(out[1]), ElementsAre(2, 3));
  ASSERT_EQ(items_of(out[2]).size(), 2u);
  EXPECT_THAT(floats_of(items_of(out[2])[0]), ElementsAre(9));
  EXPECT_THAT(failure(m, {s, reals({1}, {9}), whole({}, {5}), whole({}, {0})}), HasSubstr("within the sequence"));
}

TEST(import_sequences, are_split_from_and_joined_to_tensors) {
  const auto m = model_of({{node("SplitToSequence", {"x", "parts"}, {"s"}, {attr("axis", 1)}),
                            node("ConcatFromSequence", {"s"}, {"y"}, {attr("axis", 0)})},
                           {},
                           {value_info("x", 1, {1, 4}), value_info("parts", 7, {2})},
                           {value_info("s"), value_info("y")}});
  const auto out = run_model(m, {reals({1, 4}, {1, 2, 3, 4}), whole({2}, {2, 2})});
  EXPECT_THAT(floats_of(items_of(out[0])[1]), ElementsAre(3, 4));
  EXPECT_EQ(lens_of(out[1]), (std::vector<std::int64_t>{2, 2}));
  EXPECT_THAT(failure(m, {reals({1, 4}, {1, 2, 3, 4}), whole({2}, {2, 3})}), HasSubstr("pieces"));
  EXPECT_THAT(failure(m, {reals({1, 4}, {1, 2, 3, 4}), whole({2}, {3, 1})}), HasSubstr("beside the axis"));
}

TEST(import_sequences, known_items_become_a_sequence_at_the_output) {
  const auto m = model_of({{node("SequenceConstruct", {"x", "x"}, {"s"}), node("Relu", {"x"}, {"r"}),
                            node("SequenceInsert", {"s", "r"}, {"t"})},
                           {},
                           {value_info("x", 1, {2})},
                           {value_info("t")}});
  const auto out = run_model(m, {reals({2}, {-1, 1})});
  ASSERT_EQ(items_of(out[0]).size(), 3u);
  EXPECT_THAT(floats_of(items_of(out[0])[2]), ElementsAre(0, 1));
}

// A program says nothing of what a sequence holds: its makers do, and where nothing does, nothing is made up.
TEST(import_sequences, of_open_rank_keep_their_type_when_exported) {
  const auto m = model_of({{node("SequenceConstruct", {"x", "v"}, {"s"}), node("SequenceAt", {"s", "k"}, {"y"})},
                           {},
                           {value_info("x", 7, {1, 1}), value_info("v", 7, {1}), value_info("k", 7, {})},
                           {value_info("y")}});
  const std::string bytes = onnx::export_model(onnx::parse_model(m.bytes()).graph);
  const message any_i64 = message().add(1, message().number(1, 7));
  EXPECT_THAT(bytes, HasSubstr(any_i64.str()));
  const auto passed =
      model_of({{node("Identity", {"s"}, {"y"})}, {}, {holder_info("s", 4, 7, {dim(-1)})}, {value_info("y")}});
  EXPECT_THROW((void)onnx::export_model(onnx::parse_model(passed.bytes()).graph), error);
}

// Bodies pass on what they are given; who gives it, and who reads it outside, tells what it holds.
TEST(import_sequences, in_bodies_keep_their_type_when_exported) {
  const auto list_of = [](int type) {
    return message().add(4, message().add(1, message().add(1, message().number(1, type)))).str();
  };
  const message as_it_is = graph({{node("Identity", {"s"}, {"a"})}, {}, {}, {value_info("a")}}),
                shorter = graph({{node("SequenceErase", {"s", "k"}, {"b"})}, {}, {}, {value_info("b")}}),
                turn = graph({{node("Identity", {"go"}, {"again"}), node("SequenceErase", {"t", "k"}, {"next"})},
                              {},
                              {value_info("i", 7, {}), value_info("go", 9, {}), value_info("t")},
                              {value_info("again"), value_info("next")}});
  const auto m =
      model_of({{node("SequenceConstruct", {"x", "x", "x"}, {"s"}),
                 node("If", {"c"}, {"y"}, {graph_attr("then_branch", as_it_is), graph_attr("else_branch", shorter)}),
                 node("Loop", {"k", "", "y"}, {"z"}, {graph_attr("body", turn)}), node("SequenceLength", {"z"}, {"n"})},
                {},
                {value_info("x", 7, {1}), value_info("k", 7, {}), value_info("c", 9, {})},
                {value_info("n")}});
  EXPECT_THAT(floats_of(run_model(m, {whole({1}, {5}), whole({}, {1}), truth(false)})[0]), ElementsAre(1));
  const std::string bytes = onnx::export_model(onnx::parse_model(m.bytes()).graph);
  EXPECT_EQ(bytes.find(list_of(1)), std::string::npos);
}

TEST(import_sequences, hold_items_of_one_type) {
  const auto made = [](const std::vector<message>& nodes) {
    return failure(
        model_of(
            {nodes, {}, {value_info("x", 1, {1}), value_info("k", 7, {}), value_info("c", 9, {})}, {value_info("y")}}),
        {});
  };
  const std::string why = "one type, found f32 and i64";
  EXPECT_THAT(made({node("SequenceConstruct", {"x", "k"}, {"y"})}), HasSubstr(why));
  const message of_x = node("SequenceConstruct", {"x"}, {"s"});
  EXPECT_THAT(made({of_x, node("SequenceInsert", {"s", "k"}, {"y"})}), HasSubstr(why));
  EXPECT_THAT(made({of_x, node("SequenceInsert", {"s", "k", "k"}, {"y"})}), HasSubstr(why));
  const message first = graph({{node("SequenceConstruct", {"x"}, {"a"})}, {}, {}, {value_info("a")}}),
                second = graph({{node("SequenceConstruct", {"k"}, {"b"})}, {}, {}, {value_info("b")}});
  EXPECT_THAT(made({node("If", {"c"}, {"y"}, {graph_attr("then_branch", first), graph_attr("else_branch", second)})}),
              HasSubstr(why));
}

TEST(import_sequences, map_runs_a_body_for_each_item) {
  const message body = graph({{node("Add", {"a", "b"}, {"c"}), node("Shape", {"a"}, {"d"})},
                              {},
                              {value_info("a", 1, {dim("n")}), value_info("b", 1, {1})},
                              {value_info("c"), value_info("d")}});
  const auto m = model_of({{node("SequenceMap", {"s", "x"}, {"t", "u"}, {graph_attr("body", body)})},
                           {},
                           {sequence_in, value_info("x", 1, {1})},
                           {value_info("t"), value_info("u")}});
  const auto out = run_model(m, {sequence_of({reals({1}, {1}), reals({3}, {2, 3, 4})}), reals({1}, {10})});
  ASSERT_EQ(items_of(out[0]).size(), 2u);
  EXPECT_THAT(floats_of(items_of(out[0])[1]), ElementsAre(12, 13, 14));
  EXPECT_THAT(floats_of(items_of(out[1])[1]), ElementsAre(3));
  EXPECT_EQ(items_of(run_model(m, {sequence_of({}), reals({1}, {10})})[0]).size(), 0u);
}

TEST(import_optionals, may_hold_nothing) {
  const message given = holder_info("o", 9, 1, {2});
  const auto has = model_of({{node("OptionalHasElement", {"o"}, {"y"})}, {}, {given}, {value_info("y")}}, 18);
  EXPECT_THAT(floats_of(run_model(has, {empty_optional()})[0]), ElementsAre(0));
  EXPECT_THAT(floats_of(run_model(has, {optional_argument(reals({2}, {1, 2}))})[0]), ElementsAre(1));
  const auto get = model_of(
      {{node("OptionalGetElement", {"o"}, {"x"}), node("Neg", {"x"}, {"y"})}, {}, {given}, {value_info("y")}}, 18);
  EXPECT_THAT(floats_of(run_model(get, {optional_argument(reals({2}, {1, 2}))})[0]), ElementsAre(-1, -2));
  EXPECT_THAT(failure(get, {empty_optional()}), HasSubstr("holds something"));
}

TEST(import_optionals, are_made_of_values_and_of_types) {
  const auto made =
      model_of({{node("Optional", {"x"}, {"y"})}, {}, {value_info("x", 1, {1})}, {holder_info("y", 9, 1, {1})}});
  const auto out = run_model(made, {reals({1}, {4})});
  ASSERT_NE(value_of_optional(out[0]), nullptr);
  EXPECT_THAT(floats_of(*value_of_optional(out[0])), ElementsAre(4));
}

}  // namespace
}  // namespace kiln::test
