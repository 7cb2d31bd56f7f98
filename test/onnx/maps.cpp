#include <complex>

#include "onnx/run_model.hpp"

// Maps and complex tensors: what a run holds as objects.
namespace kiln::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

message ml_node(std::string_view op, const strings& in, const strings& out, const std::vector<message>& attrs) {
  return node(op, in, out, attrs, "", "ai.onnx.ml");
}
message map_info(std::string_view name, int key, int element) {
  const message value = message().add(1, message().number(1, element).add(2, message()));
  return message().text(1, name).add(2, message().add(5, message().number(1, key).add(2, value)));
}
argument numbered(const std::vector<std::int64_t>& keys, const std::vector<argument>& values) {
  return map_argument(whole({static_cast<std::int64_t>(keys.size())}, keys), values);
}
argument text(const std::string& v) { return texts({}, {v}); }

TEST(import_maps, zip_map_pairs_scores_with_labels) {
  for (const bool named : {false, true}) {
    const auto keys = named ? strings_attr("classlabels_strings", {"dog", "cat"})
                            : attr("classlabels_int64s", std::vector<std::int64_t>{7, 3});
    const auto m =
        model_of({{ml_node("ZipMap", {"x"}, {"z"}, {keys})}, {}, {value_info("x", 1, {"n", 2})}, {value_info("z")}});
    const auto made = run_on_targets(m, {reals({2, 2}, {1, 2, 3, 4})});
    const auto& items = items_of(made[0]);
    ASSERT_EQ(items.size(), 2u);
    const map_object& second = entries_of(items[1]);  // by the order of the keys
    if (named)
      EXPECT_THAT(strings_of(second.keys), ElementsAre("cat", "dog"));
    else
      EXPECT_THAT(second.keys.to<std::int64_t>(), ElementsAre(3, 7));
    EXPECT_THAT(floats_of(second.values[0]), ElementsAre(4));
    EXPECT_EQ(lens_of(second.values[1]), std::vector<std::int64_t>{});
  }
}

// ONNX Runtime's Identity takes no sequence of maps; nor does it take a domain that the model does not import.
TEST(import_maps, are_written_under_the_names_of_outputs) {
  const auto keys = attr("classlabels_int64s", std::vector<std::int64_t>{7, 3});
  const message zip = ml_node("ZipMap", {"x"}, {"z"}, {keys});
  const auto written = [](const graph_parts& parts) {
    return onnx::export_model(onnx::parse_model(model_of(parts).bytes()).graph);
  };
  const std::string outside = written({{zip}, {}, {value_info("x", 1, {"n", 2})}, {value_info("z")}});
  EXPECT_EQ(outside.find("Identity"), std::string::npos);
  const message body = graph({{zip}, {}, {}, {value_info("z")}});
  const std::string inside =
      written({{node("If", {"c"}, {"y"}, {graph_attr("then_branch", body), graph_attr("else_branch", body)})},
               {},
               {value_info("c", 9, {}), value_info("x", 1, {"n", 2})},
               {value_info("y")}});
  EXPECT_EQ(inside.find("Identity"), std::string::npos);
  // a model ends with what it imports: the domain's name, its version
  for (const std::string& bytes : {outside, inside}) EXPECT_THAT(bytes, HasSubstr(opset(3, "ai.onnx.ml").str()));
}

TEST(import_maps, a_row_of_a_vocabulary_takes_what_a_map_has) {
  const auto m = model_of(
      {{ml_node("DictVectorizer", {"d"}, {"y"}, {attr("int64_vocabulary", std::vector<std::int64_t>{5, 2, 9})})},
       {},
       {map_info("d", 7, 1)},
       {value_info("y")}});
  const auto out = run_on_targets(m, {numbered({2, 5, 1}, {reals({}, {.5f}), reals({1}, {.25f}), reals({}, {8})})})[0];
  EXPECT_EQ(lens_of(out), (std::vector<std::int64_t>{1, 3}));
  EXPECT_THAT(floats_of(out), ElementsAre(.25f, .5f, 0));
  EXPECT_THAT(floats_of(run_on_targets(m, {numbered({}, {})})[0]), ElementsAre(0, 0, 0));
  EXPECT_THAT(failure(m, {numbered({2}, {reals({2}, {1, 2})})}), HasSubstr("map's value"));
  EXPECT_THAT(failure(m, {map_argument(texts({1}, {"a"}), {reals({}, {1})})}), HasSubstr("map's keys"));
}

TEST(import_maps, cast_map_packs_values_or_places_them_by_key) {
  const auto cast = [&](const std::vector<message>& attributes, int element) {
    return model_of(
        {{ml_node("CastMap", {"d"}, {"y"}, attributes)}, {}, {map_info("d", 7, element)}, {value_info("y")}});
  };
  const argument words = numbered({3, 1}, {text("30"), text("1.5")});
  EXPECT_THAT(floats_of(run_on_targets(cast({}, 8), {words})[0]), ElementsAre(1.5f, 30));
  EXPECT_THAT(floats_of(run_on_targets(cast({attr("map_form", "SPARSE"), attr("max_map", 4)}, 8), {words})[0]),
              ElementsAre(0, 1.5f, 0, 30));
  const argument amounts = numbered({0, 2}, {reals({}, {2.5f}), reals({}, {4})});
  EXPECT_THAT(run_on_targets(cast({attr("cast_to", "TO_INT64")}, 1), {amounts})[0].to<std::int64_t>(),
              ElementsAre(2, 4));
  EXPECT_THAT(strings_of(run_on_targets(cast({attr("cast_to", "TO_STRING")}, 1), {amounts})[0]),
              ElementsAre("2.5", "4.0"));
}

TEST(import_maps, keys_stand_once_and_pass_through_nodes) {
  EXPECT_THROW(numbered({1, 1}, {reals({}, {1}), reals({}, {2})}), error);
  EXPECT_THROW(numbered({1}, {}), error);
  const auto m = model_of({{node("Identity", {"d"}, {"y"})}, {}, {map_info("d", 7, 1)}, {value_info("y")}});
  const argument given = numbered({4}, {reals({2}, {1, 2})});
  EXPECT_TRUE(equal_values(run_on_targets(m, {given})[0], given));
}

TEST(import_maps, that_nobody_reads_are_written_as_inputs_all_the_same) {
  const auto m =
      model_of({{node("Relu", {"x"}, {"y"})}, {}, {map_info("d", 8, 1), value_info("x", 1, {1})}, {value_info("y")}});
  const std::string bytes = onnx::export_model(onnx::parse_model(m.bytes()).graph);
  EXPECT_EQ(onnx::parse_model(std::as_bytes(std::span(bytes))).graph.main().parameters().size(), 2u);
}

TEST(import_complex, tensors_move) {
  const auto m = model_of({{node("Transpose", {"z"}, {"t"}), node("Concat", {"t", "t"}, {"c"}, {attr("axis", 0)}),
                            node("Gather", {"c", "rows"}, {"g"}), node("Where", {"b", "g", "g2"}, {"y"}),
                            node("Reshape", {"g", "flat"}, {"f"}), node("Identity", {"f"}, {"g3"})},
                           {integers("rows", {2}, {3, 0}), integers("flat", {1}, {-1})},
                           {value_info("z", 14, {1, 2}), value_info("b", 9, {2, 1}), value_info("g2", 14, {1, 1})},
                           {value_info("y"), value_info("g3")}});
  const std::vector<std::complex<double>> z = {{1, 2}, {3, -4}}, other = {{9, 9}};
  const bool first[] = {true, false};
  const auto out = run_model(m, {complex_argument(dtype::c64, {1, 2}, z), argument::of<bool>({2, 1}, first),
                                 complex_argument(dtype::c64, {1, 1}, other)});
  EXPECT_EQ(out[0].get_shape(), shape(dtype::c64, {2, 1}));
  EXPECT_THAT(complexes_of(out[0]), ElementsAre(z[1], other[0]));
  EXPECT_THAT(complexes_of(out[1]), ElementsAre(z[1], z[0]));
  const auto sum = model_of({{node("Add", {"z", "z"}, {"y"})}, {}, {value_info("z", 15, {1})}, {value_info("y")}});
  EXPECT_THAT(failure(sum, {complex_argument(dtype::c128, {1}, other)}), HasSubstr("c128"));
}

}  // namespace
}  // namespace kiln::test
