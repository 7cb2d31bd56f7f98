#include <limits>
#include <numeric>

#include "kiln/onnx/export.hpp"
#include "onnx/run_model.hpp"

// Extents and attributes that the run computes: each result has exactly the size the operator says.
namespace kiln::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using lens = std::vector<std::int64_t>;

// Runs one operator whose inputs, lists of numbers too, all come with the run; "n" keeps an extent symbolic.
std::vector<argument> run_open(const std::string& op, std::int64_t version, const std::vector<argument>& inputs,
                               const std::vector<message>& attributes = {}, std::size_t outputs = 1) {
  graph_parts parts;
  strings names, results;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const shape& s = inputs[i].get_shape();
    names.push_back(s == shape() ? "" : "in" + std::to_string(i));
    if (names.back().empty()) continue;
    std::vector<dim> open;  // the first operand's extents are symbols, lists of numbers have a known length
    for (std::size_t d = 0; d < s.rank(); ++d)
      open.emplace_back(i != 0 || (s.type == dtype::i64 && s.rank() == 1) ? dim(s.lens[d].value()) : dim(-1));
    parts.inputs.push_back(value_info(names.back(), static_cast<int>(onnx::to_element(s.type)), open));
  }
  for (std::size_t k = 0; k < outputs; ++k) {
    results.push_back("out" + std::to_string(k));
    parts.outputs.push_back(value_info(results.back()));
  }
  parts.nodes.push_back(node(op, names, results, attributes));
  std::vector<argument> given;
  for (const argument& a : inputs)
    if (!(a.get_shape() == shape())) given.push_back(a);
  return run_model(model_of(parts, version), given);
}

TEST(run_time_sizes, nonzero_and_compress) {
  const argument x = reals({2, 3}, {0, 1, 0, 2, 0, 3});
  const auto found = run_open("NonZero", 13, {x});
  EXPECT_EQ(lens_of(found[0]), (lens{2, 3}));
  EXPECT_THAT(floats_of(found[0]), ElementsAre(0, 1, 1, 1, 0, 2));
  EXPECT_EQ(lens_of(run_open("NonZero", 13, {reals({2}, {0, 0})})[0]), (lens{1, 0}));
  const bool flags[] = {false, true};
  const argument keep = argument::of<bool>({2}, std::span<const bool>(flags));
  EXPECT_THAT(floats_of(run_open("Compress", 11, {x, keep}, {attr("axis", 0)})[0]), ElementsAre(2, 0, 3));
  EXPECT_THAT(floats_of(run_open("Compress", 11, {x, keep})[0]), ElementsAre(1));
}

TEST(run_time_sizes, what_follows_is_sized_too) {
  const auto m = model_of(
      {{node("NonZero", {"x"}, {"at"}), node("Transpose", {"at"}, {"rows"}), node("GatherND", {"x", "rows"}, {"kept"}),
        node("Mul", {"kept", "kept"}, {"y"}), node("ReduceSum", {"y"}, {"sum"}), node("Shape", {"y"}, {"size"})},
       {},
       {value_info("x", 1, {dim("n"), 2})},
       {value_info("y"), value_info("sum"), value_info("size")}});
  for (const std::vector<float>& x : {std::vector<float>{0, 2, 3, 0, 4, 0}, {0, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 1, 2}}) {
    std::vector<float> squares;
    float sum = 0;
    for (const float v : x)
      if (v != 0) squares.push_back(v * v), sum += v * v;
    const auto out = run_model(m, {reals({3, 2}, x)});
    EXPECT_EQ(floats_of(out[0]), squares);
    EXPECT_THAT(floats_of(out[1]), ElementsAre(sum));
    EXPECT_THAT(floats_of(out[2]), ElementsAre(squares.size()));
  }
}

TEST(run_time_sizes, a_view_of_an_earlier_stage_is_read_later) {
  const auto m = model_of({{node("Relu", {"x"}, {"r"}), node("NonZero", {"x"}, {"at"}), node("Shape", {"at"}, {"size"}),
                            node("Slice", {"size", "one", "two", "zero"}, {"count"}),
                            node("Slice", {"r", "zero", "count", "zero"}, {"cut"}), node("NonZero", {"cut"}, {"y"})},
                           {integers("zero", {1}, {0}), integers("one", {1}, {1}), integers("two", {1}, {2})},
                           {value_info("x", 1, {5})},
                           {value_info("y")}});
  EXPECT_THAT(floats_of(run_model(m, {reals({5}, {0, 3, -1, 5, 0})})[0]), ElementsAre(1));
}

TEST(run_time_sizes, reshape_resolves_what_the_run_says) {
  const argument x = reals({2, 6}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  EXPECT_EQ(lens_of(run_open("Reshape", 14, {x, whole({3}, {3, -1, 2})})[0]), (lens{3, 2, 2}));
  EXPECT_EQ(lens_of(run_open("Reshape", 14, {x, whole({2}, {0, 6})})[0]), (lens{2, 6}));
  EXPECT_EQ(lens_of(run_open("Reshape", 14, {x, whole({1}, {12})})[0]), lens{12});
  EXPECT_EQ(lens_of(run_open("Reshape", 14, {reals({0, 2}, {}), whole({2}, {5, 0})}, {attr("allowzero", 1)})[0]),
            (lens{5, 0}));
  EXPECT_NE(run_open("Reshape", 14, {x, whole({2}, {4, 3})}).size(), 0u);
  EXPECT_ANY_THROW(run_open("Reshape", 14, {x, whole({2}, {4, 4})}));
  EXPECT_ANY_THROW(run_open("Reshape", 14, {x, whole({2}, {5, -1})}));
  EXPECT_ANY_THROW(run_open("Reshape", 14, {x, whole({2}, {-1, -1})}));
}

TEST(run_time_sizes, expand_and_tile) {
  const argument row = reals({1, 2}, {1, 2});
  const auto expand = [&](const std::vector<std::int64_t>& to) {
    const auto rank = static_cast<std::int64_t>(to.size());
    return run_model(model_of({{node("Expand", {"x", "to"}, {"y"})},
                               {},
                               {value_info("x", 1, {1, 2}), value_info("to", 7, {rank})},
                               {value_info("y")}}),
                     {row, whole({rank}, to)})[0];
  };
  EXPECT_EQ(lens_of(expand({2, 3, 1})), (lens{2, 3, 2}));
  EXPECT_THAT(floats_of(expand({2, 2})), ElementsAre(1, 2, 1, 2));
  EXPECT_ANY_THROW(expand({1, 3}));
  EXPECT_THAT(floats_of(run_open("Tile", 13, {row, whole({2}, {2, 2})})[0]), ElementsAre(1, 2, 1, 2, 1, 2, 1, 2));
}

TEST(run_time_sizes, slices_of_either_sign) {
  const argument x = reals({5}, {0, 1, 2, 3, 4});
  const auto slice = [&](std::int64_t from, std::int64_t to) {
    return floats_of(run_open("Slice", 13, {x, whole({1}, {from}), whole({1}, {to})})[0]);
  };
  EXPECT_THAT(slice(1, 3), ElementsAre(1, 2));
  EXPECT_THAT(slice(-2, std::numeric_limits<std::int64_t>::max()), ElementsAre(3, 4));
  EXPECT_THAT(slice(-100, -3), ElementsAre(0, 1));
  EXPECT_THAT(slice(4, 2), ElementsAre());
  EXPECT_ANY_THROW(run_open("Split", 18, {x, whole({2}, {2, 2})}, {}, 2));
  EXPECT_THAT(floats_of(run_open("Split", 18, {x, whole({2}, {2, 3})}, {}, 2)[1]), ElementsAre(2, 3, 4));
}

TEST(run_time_sizes, slices_along_axes_that_a_run_names) {
  std::vector<float> counted(24);
  std::iota(counted.begin(), counted.end(), 0.0f);
  const argument x = reals({4, 6}, counted);
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = -(least + 1);
  const auto slice = [&](const std::vector<std::int64_t>& from, const std::vector<std::int64_t>& to,
                         const std::vector<std::int64_t>& axes, const std::vector<std::int64_t>& steps = {}) {
    const dims n{static_cast<std::int64_t>(axes.size())};
    std::vector<argument> in{x, whole(n, from), whole(n, to), whole(n, axes)};
    if (!steps.empty()) in.push_back(whole(n, steps));
    return run_open("Slice", 13, in)[0];
  };
  EXPECT_EQ(lens_of(slice({1}, {3}, {0})), (lens{2, 6}));
  EXPECT_THAT(floats_of(slice({1, -2}, {3, most}, {0, 1})), ElementsAre(10, 11, 16, 17));
  EXPECT_THAT(floats_of(slice({-2, 1}, {most, 3}, {-1, -2})), ElementsAre(10, 11, 16, 17));
  EXPECT_THAT(floats_of(slice({-1, 0}, {least, 1}, {1, 0}, {-2, 1})), ElementsAre(5, 3, 1));
  EXPECT_THAT(floats_of(slice({0, 100}, {most, 2}, {0, 1}, {3, -3})), ElementsAre(5, 23));
  EXPECT_THAT(floats_of(slice({2, 0}, {3, most}, {0, 1}, {most, most})), ElementsAre(12));
  EXPECT_THAT(floats_of(slice({3, 5}, {least, least}, {0, 1}, {least, least})), ElementsAre(23));
  EXPECT_EQ(lens_of(slice({3, 9}, {2, 12}, {0, 1})), (lens{0, 0}));
  EXPECT_ANY_THROW(slice({0}, {1}, {2}));
  EXPECT_ANY_THROW(slice({0}, {1}, {-3}));
  EXPECT_ANY_THROW(slice({0, 0}, {1, 1}, {1, -1}));
  // what follows reads the slice, and it is no part of what it is from
  const auto m = model_of(
      {{node("Slice", {"x", "from", "to", "axes"}, {"part"}), node("Neg", {"part"}, {"y"})},
       {},
       {value_info("x", 1, {4, 6}), value_info("from", 7, {1}), value_info("to", 7, {1}), value_info("axes", 7, {1})},
       {value_info("y"), value_info("part")}});
  const auto both = run_model(m, {x, whole({1}, {4}), whole({1}, {5}), whole({1}, {1})});
  EXPECT_THAT(floats_of(both[0]), ElementsAre(-4, -10, -16, -22));
  EXPECT_THAT(floats_of(both[1]), ElementsAre(4, 10, 16, 22));
}

TEST(run_time_sizes, slices_into_memory_of_what_they_are_from) {
  const auto m = model_of(
      {{node("Slice", {"x", "from", "to", "axes"}, {"y"}), node("Neg", {"x"}, {"z"})},
       {},
       {value_info("x", 1, {5}), value_info("from", 7, {1}), value_info("to", 7, {1}), value_info("axes", 7, {1})},
       {value_info("z"), value_info("y")}});
  const auto exe = compile(onnx::parse_model(m.bytes()).graph, eigen_target());
  argument x = reals({5}, {1, 2, 3, 4, 5});
  const std::vector<argument> in{x, whole({1}, {1}), whole({1}, {5}), whole({1}, {0})};
  std::vector<argument> out{argument({dtype::f32, {5}}, x.data()), argument(shape(dtype::f32, {4}))};
  workspace w = exe.make_workspace();
  exe.run(w, in, out);
  EXPECT_THAT(floats_of(out[0]), ElementsAre(-1, -2, -3, -4, -5));
  EXPECT_THAT(floats_of(out[1]), ElementsAre(2, 3, 4, 5));
}

TEST(run_time_sizes, slices_of_numbers_that_a_run_makes) {
  const auto m = model_of({{node("Shape", {"x"}, {"lens"}), node("Slice", {"lens", "from", "to", "axes"}, {"y"}),
                            node("Neg", {"y"}, {"z"})},
                           {},
                           {value_info("x", 1, {dim("n"), 3, dim("m")}), value_info("from", 7, {1}),
                            value_info("to", 7, {1}), value_info("axes", 7, {1})},
                           {value_info("y"), value_info("z")}});
  const auto out =
      run_model(m, {argument(shape(dtype::f32, {2, 3, 5})), whole({1}, {1}), whole({1}, {3}), whole({1}, {0})});
  EXPECT_THAT(floats_of(out[0]), ElementsAre(3, 5));
  EXPECT_THAT(floats_of(out[1]), ElementsAre(-3, -5));
}

TEST(run_time_sizes, slices_and_ranges_are_written_as_onnx) {
  const auto m = model_of(
      {{node("Slice", {"x", "from", "to", "axes", "steps"}, {"y"}), node("Range", {"a", "b", "c"}, {"z"})},
       {},
       {value_info("x", 1, {2, 3}), value_info("from", 7, {1}), value_info("to", 7, {1}), value_info("axes", 7, {1}),
        value_info("steps", 7, {1}), value_info("a", 7, {1}), value_info("b", 7, {}), value_info("c", 7, {1})},
       {value_info("y"), value_info("z")}});
  const std::string written = onnx::export_model(onnx::parse_model(m.bytes()).graph);
  const auto again = compile(onnx::parse_model(std::as_bytes(std::span(written))).graph, eigen_target());
  const auto out = again.run({{reals({2, 3}, {0, 1, 2, 3, 4, 5}), whole({1}, {-1}), whole({1}, {-9}), whole({1}, {1}),
                               whole({1}, {-2}), whole({1}, {1}), whole({}, {4}), whole({1}, {2})}});
  EXPECT_THAT(floats_of(out[0]), ElementsAre(2, 0, 5, 3));
  EXPECT_THAT(floats_of(out[1]), ElementsAre(1, 3));
}

TEST(run_time_sizes, pads_add_and_crop) {
  EXPECT_THAT(floats_of(run_open("Pad", 13, {reals({3}, {1, 2, 3}), whole({2}, {2, -1})})[0]), ElementsAre(0, 0, 1, 2));
  EXPECT_THAT(floats_of(run_open("Pad", 13, {reals({2}, {1, 2}), whole({2}, {1, 1})}, {attr("mode", "edge")})[0]),
              ElementsAre(1, 1, 2, 2));
}

TEST(run_time_sizes, ranges_and_filled_tensors) {
  const auto range = [](const argument& a, const argument& b, const argument& c) {
    return floats_of(run_open("Range", 11, {a, b, c})[0]);
  };
  EXPECT_THAT(range(whole({}, {2}), whole({}, {9}), whole({}, {3})), ElementsAre(2, 5, 8));
  EXPECT_THAT(range(whole({}, {3}), whole({}, {-2}), whole({}, {-2})), ElementsAre(3, 1, -1));
  EXPECT_THAT(range(whole({}, {3}), whole({}, {2}), whole({}, {1})), ElementsAre());
  EXPECT_ANY_THROW(range(whole({}, {3}), whole({}, {2}), whole({}, {0})));
  EXPECT_THAT(range(reals({1}, {1}), reals({1}, {2.1f}), reals({1}, {.25f})), ElementsAre(1, 1.25f, 1.5f, 1.75f, 2));
  EXPECT_ANY_THROW(range(reals({1}, {1}), reals({1}, {std::numeric_limits<float>::infinity()}), reals({1}, {1})));
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(range(whole({}, {-(least + 1)}), whole({}, {least}), whole({}, {least / 2})).size(), 4U);
  for (const std::int64_t n : {15, 16, 17, 50'000}) {  // lanes, tasks, and what is left of them
    const auto longs = run_open("Range", 11, {whole({}, {5}), whole({}, {5 - 3 * n}), whole({}, {-3})})[0];
    const auto halves = range(reals({1}, {-2}), reals({1}, {static_cast<float>(n) / 2 - 2}), reals({1}, {.5f}));
    ASSERT_EQ(longs.elements(), n);
    ASSERT_EQ(static_cast<std::int64_t>(halves.size()), n);
    std::int64_t wrong = 0;
    for (std::int64_t k = 0; k < n; ++k)
      wrong += longs.as<std::int64_t>()[static_cast<std::size_t>(k)] != 5 - 3 * k ||
               halves[static_cast<std::size_t>(k)] != static_cast<float>(k) / 2 - 2;
    EXPECT_EQ(wrong, 0);
  }
  const auto one = [](std::int16_t v) { return argument::of<std::int16_t>({}, std::vector<std::int16_t>{v}); };
  const argument shorts = run_open("Range", 11, {one(20'000), one(-20'000), one(-1)})[0];
  ASSERT_EQ(shorts.elements(), 40'000);
  EXPECT_EQ(shorts.as<std::int16_t>()[39'999], -19'999);
  EXPECT_EQ(lens_of(run_open("ConstantOfShape", 9, {whole({2}, {2, 0})})[0]), (lens{2, 0}));
  EXPECT_THAT(floats_of(run_open("ConstantOfShape", 9, {whole({1}, {2})})[0]), ElementsAre(0, 0));
  EXPECT_ANY_THROW(run_open("ConstantOfShape", 9, {whole({1}, {-2})}));
}

TEST(run_time_sizes, top_k_one_hot_and_diagonals) {
  const auto best = run_open("TopK", 11, {reals({4}, {3, 1, 4, 1}), whole({1}, {2})}, {}, 2);
  EXPECT_THAT(floats_of(best[0]), ElementsAre(4, 3));
  EXPECT_THAT(floats_of(best[1]), ElementsAre(2, 0));
  EXPECT_THAT(floats_of(run_open("OneHot", 11, {whole({2}, {1, 0}), whole({1}, {3}), reals({2}, {0, 5})})[0]),
              ElementsAre(0, 5, 0, 5, 0, 0));
  EXPECT_THAT(floats_of(run_open("Trilu", 14, {reals({2, 2}, {1, 2, 3, 4}), whole({1}, {1})})[0]),
              ElementsAre(0, 2, 0, 0));
  EXPECT_THAT(floats_of(run_open("Trilu", 14, {reals({2, 2}, {1, 2, 3, 4}), whole({1}, {-1})}, {attr("upper", 0)})[0]),
              ElementsAre(0, 0, 3, 0));
}

TEST(run_time_sizes, boxes_are_kept_by_score_and_overlap) {
  const argument boxes = reals({1, 3, 4}, {0, 0, 1, 1, 0, .1f, 1, 1.1f, 0, 10, 1, 11}),
                 scores = reals({1, 1, 3}, {.9f, .75f, .6f});
  const auto m = model_of({{node("NonMaxSuppression", {"b", "s", "most", "overlap", "least"}, {"y"})},
                           {},
                           {value_info("b", 1, {1, dim("n"), 4}), value_info("s", 1, {1, 1, dim("n")}),
                            value_info("most", 7, {1}), value_info("overlap", 1, {1}), value_info("least", 1, {1})},
                           {value_info("y")}});
  const auto kept = [&](std::int64_t most, float overlap, float least) {
    return floats_of(run_model(m, {boxes, scores, whole({1}, {most}), reals({1}, {overlap}), reals({1}, {least})})[0]);
  };
  EXPECT_THAT(kept(3, .5f, 0), ElementsAre(0, 0, 0, 0, 0, 2));
  EXPECT_THAT(kept(3, .99f, .7f), ElementsAre(0, 0, 0, 0, 0, 1));
  EXPECT_THAT(kept(1, .5f, 0), ElementsAre(0, 0, 0));
  EXPECT_THAT(kept(0, .5f, 0), ElementsAre());
}

TEST(run_time_sizes, of_equal_scores_the_first_box_is_kept) {
  std::vector<float> corners, scores;
  for (int k = 0; k < 9; ++k) {  // three places of three boxes each, all of one score but the last
    const auto x = static_cast<float>(k % 3 * 10);
    corners.insert(corners.end(), {x, x, x + 1, x + 1});
    scores.push_back(k == 8 ? .9f : .5f);
  }
  const argument boxes = reals({1, 9, 4}, corners), each = reals({1, 1, 9}, scores);
  const auto out = run_open("NonMaxSuppression", 11, {boxes, each, whole({1}, {9}), reals({1}, {.5f})}, {});
  EXPECT_THAT(floats_of(out[0]), ElementsAre(0, 0, 8, 0, 0, 0, 0, 0, 1));
}

TEST(run_time_sizes, unique_gives_values_places_and_counts) {
  const auto out = run_open("Unique", 11, {reals({5}, {2, 1, 1, 3, 2})}, {attr("sorted", 0)}, 4);
  EXPECT_THAT(floats_of(out[0]), ElementsAre(2, 1, 3));
  EXPECT_THAT(floats_of(out[1]), ElementsAre(0, 1, 3));
  EXPECT_THAT(floats_of(out[2]), ElementsAre(0, 1, 1, 2, 0));
  EXPECT_THAT(floats_of(out[3]), ElementsAre(2, 2, 1));
}

TEST(run_time_sizes, the_reshape_keeps_what_is_known_of_it) {
  const auto m = model_of({{node("Concat", {"n", "minus"}, {"to"}, {attr("axis", 0)}),
                            node("Reshape", {"x", "to"}, {"y"}), node("MatMul", {"y", "w"}, {"z"})},
                           {integers("minus", {1}, {2}), floats("w", {2, 1}, {1, 10})},
                           {value_info("x", 1, {6}), value_info("n", 7, {1})},
                           {value_info("z")}});
  EXPECT_THAT(floats_of(run_model(m, {reals({6}, {1, 2, 3, 4, 5, 6}), whole({1}, {-1})})[0]), ElementsAre(21, 43, 65));
}

// What each target says of a run.
std::string refusal(const message& m, const std::vector<argument>& inputs) {
  std::string said;
  const reference_target reference;
  const eigen_target eigen;
  for (const target* t : std::initializer_list<const target*>{&reference, &eigen}) {
    const executable e = compile(onnx::parse_model(m.bytes()).graph, *t);
    try {
      e.run(inputs);
      said += "nothing";
    } catch (const error& why) {
      said += why.what() + std::string("\n");
    }
  }
  return said;
}

TEST(run_time_sizes, a_window_that_does_not_fit_is_refused) {
  for (const std::string op : {"Conv", "MaxPool", "ConvTranspose"})
    for (const bool followed : {false, true}) {
      const bool transposed = op == "ConvTranspose";
      std::vector<message> attributes{attr("kernel_shape", lens{3, 3})};
      if (transposed) attributes.push_back(attr("pads", lens{3, 0, 3, 0}));
      graph_parts parts{
          {node(op, op == "MaxPool" ? strings{"x"} : strings{"x", "w"}, {followed ? "c" : "y"}, attributes)},
          {floats("w", {1, 1, 3, 3}, std::vector<float>(9, 1))},
          {value_info("x", 1, {1, 1, dim("h"), dim("w")})},
          {value_info("y")}};
      if (followed) parts.nodes.push_back(node("Relu", {"c"}, {"y"}));
      for (const lens& extents : {lens{2, 5}, lens{1, 5}}) {
        const argument x(literal::of<float>({dtype::f32, {1, 1, extents[0], extents[1]}},
                                            std::vector<float>(static_cast<std::size_t>(extents[0] * extents[1]), 1)));
        const std::string said = refusal(model_of(parts, 18), {x});
        EXPECT_THAT(said, testing::Not(HasSubstr("nothing"))) << op << followed;
        if (!transposed) {
          EXPECT_THAT(said, HasSubstr("a window fits into the padded input: expected 3, found")) << op;
        }
        EXPECT_THAT(said, HasSubstr("(at " + op)) << op << followed;
      }
    }
}

TEST(run_time_sizes, a_shape_asked_for_by_another_name_is_compared) {
  const auto m = model_of({{node("Shape", {"b"}, {"s"}), node("Expand", {"a", "s"}, {"y"})},
                           {},
                           {value_info("a", 1, {dim("n"), 2}), value_info("b", 1, {dim("m"), 2})},
                           {value_info("y")}},
                          18);
  EXPECT_THAT(refusal(m, {reals({1, 2}, {1, 2}), reals({2, 2}, {0, 0, 0, 0})}), testing::Not(HasSubstr("nothing")));
  EXPECT_THAT(floats_of(run_model(m, {reals({1, 2}, {1, 2}), reals({1, 2}, {0, 0})})[0]), ElementsAre(1, 2));
}

}  // namespace
}  // namespace kiln::test
