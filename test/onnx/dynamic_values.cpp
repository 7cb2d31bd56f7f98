#include "onnx/run_model.hpp"

// Numbers that a node takes as inputs mean the same whether the model or the run has them.
namespace kiln::test {
namespace {

using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

std::vector<float> counted(std::size_t n) {
  std::vector<float> out;
  for (std::size_t k = 0; k < n; ++k) out.push_back(static_cast<float>((k * 7) % 11) - 4.5f);
  return out;
}

std::vector<argument> run_node(const std::string& op, std::int64_t version, const argument& x,
                               const std::vector<argument>& numbers, const std::vector<message>& attributes,
                               bool known) {
  graph_parts parts;
  strings names{"x"};
  const auto extents = [](const argument& a) {
    std::vector<dim> out;
    for (const std::int64_t d : lens_of(a)) out.emplace_back(d);
    return out;
  };
  parts.inputs.push_back(value_info("x", 1, extents(x)));
  std::vector<argument> given{x};
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    const argument& a = numbers[k];
    if (a.get_shape() == shape()) {
      names.push_back("");
      continue;
    }
    names.push_back("n" + std::to_string(k));
    const bool is_real = a.get_shape().type == dtype::f32;
    const auto values = a.to<std::int64_t>();
    if (known) {
      parts.initializers.push_back(is_real ? floats(names.back(), lens_of(a), floats_of(a))
                                           : integers(names.back(), lens_of(a), {values.begin(), values.end()}));
    } else {
      parts.inputs.push_back(value_info(names.back(), is_real ? 1 : 7, extents(a)));
      given.push_back(a);
    }
  }
  parts.outputs.push_back(value_info("y"));
  parts.nodes.push_back(node(op, names, {"y"}, attributes));
  // products are summed in another order on each target
  return compile(onnx::parse_model(model_of(parts, version).bytes()).graph, eigen_target()).run(given);
}

void expect_as_known(const std::string& op, std::int64_t version, const argument& x,
                     const std::vector<argument>& numbers, const std::vector<message>& attributes = {}) {
  SCOPED_TRACE(op);
  const argument known = run_node(op, version, x, numbers, attributes, true)[0],
                 found = run_node(op, version, x, numbers, attributes, false)[0];
  EXPECT_EQ(lens_of(found), lens_of(known));
  EXPECT_THAT(floats_of(found), Pointwise(FloatNear(1e-4f), floats_of(known)));
}

TEST(dynamic_values, axes_and_lengths_of_a_fourier_transform) {
  const argument real = reals({2, 4, 3, 1}, counted(24)), pairs = reals({2, 4, 3, 2}, counted(48));
  for (const std::int64_t axis : {0, 1, 2, -2, -4}) {
    expect_as_known("DFT", 20, real, {{}, whole({}, {axis})});
    expect_as_known("DFT", 20, pairs, {{}, whole({}, {axis})}, {attr("inverse", 1)});
  }
  expect_as_known("DFT", 20, real, {{}, whole({}, {1})}, {attr("onesided", 1)});
  expect_as_known("DFT", 20, pairs, {{}, whole({}, {1})}, {attr("onesided", 1), attr("inverse", 1)});
  for (const std::int64_t length : {3, 4, 6}) expect_as_known("DFT", 20, real, {whole({}, {length}), whole({}, {1})});
  for (const std::int64_t axis : {3, -1, 4, -5})
    EXPECT_THROW(run_node("DFT", 20, real, {{}, whole({}, {axis})}, {}, false), error) << axis;
}

TEST(dynamic_values, steps_between_frames) {
  const argument signal = reals({2, 13, 1}, counted(26)), window = reals({4}, {1, 2, 3, 1});
  for (const std::int64_t step : {1, 3, 20}) {
    expect_as_known("STFT", 17, signal, {whole({}, {step}), window});
    expect_as_known("STFT", 17, signal, {whole({}, {step}), {}, whole({}, {5})}, {attr("onesided", 0)});
  }
  EXPECT_THROW(run_node("STFT", 17, signal, {whole({}, {0}), window}, {}, false), error);
}

TEST(dynamic_values, images_of_columns) {
  const argument x = reals({2, 8, 10}, counted(160));
  expect_as_known("Col2Im", 18, x, {whole({2}, {4, 5}), whole({2}, {2, 2})},
                  {attr("pads", {1, 0, 0, 1}), attr("strides", {2, 1})});
  const auto misfit = [&] { run_node("Col2Im", 18, x, {whole({2}, {4, 4}), whole({2}, {2, 2})}, {}, false); };
  EXPECT_THROW(misfit(), error);
}

TEST(dynamic_values, images_of_columns_may_have_four_dims) {
  const argument x = reals({1, 8, 12}, counted(96));
  const auto image = [&](const std::vector<std::int64_t>& lens, const std::vector<std::int64_t>& block) {
    const auto n = static_cast<std::int64_t>(lens.size());
    return run_node("Col2Im", 18, x, {whole({n}, lens), whole({n}, block)}, {}, true)[0];
  };
  const argument flat = image({4, 5}, {2, 2}), deep = image({1, 4, 1, 5}, {1, 2, 1, 2});
  EXPECT_EQ(lens_of(deep), (std::vector<std::int64_t>{1, 2, 1, 4, 1, 5}));
  EXPECT_EQ(floats_of(deep), floats_of(flat));
  EXPECT_THROW(image({1, 1, 1, 1}, {2, 1, 1, 1}), error);
  EXPECT_THROW(image({1, 5, 1, 4}, {1, 3, 1, 1}), error);
}

argument with_extents(const std::string& op, std::int64_t version, const std::vector<argument>& given,
                      const std::vector<message>& attributes, bool known) {
  graph_parts parts;
  strings names;
  for (const argument& a : given) {
    names.push_back("x" + std::to_string(names.size()));
    std::vector<dim> lens;
    for (const std::int64_t d : lens_of(a)) lens.emplace_back(known ? dim(d) : dim(-1));
    parts.inputs.push_back(value_info(names.back(), a.get_shape().type == dtype::f32 ? 1 : 7, lens));
  }
  parts.outputs.push_back(value_info("y"));
  parts.nodes.push_back(node(op, names, {"y"}, attributes));
  return compile(onnx::parse_model(model_of(parts, version).bytes()).graph, eigen_target()).run(given)[0];
}
void expect_same_of_symbolic_extents(const std::string& op, std::int64_t version, const std::vector<argument>& given,
                                     const std::vector<message>& attributes) {
  SCOPED_TRACE(op);
  const argument known = with_extents(op, version, given, attributes, true),
                 dynamic = with_extents(op, version, given, attributes, false);
  EXPECT_EQ(lens_of(dynamic), lens_of(known));
  EXPECT_THAT(floats_of(dynamic), Pointwise(FloatNear(1e-4f), floats_of(known)));
}

TEST(extents_in_run, signals_are_real_or_complex) {
  const auto refuses = [](const std::string& op, const argument& x, const std::vector<message>& attributes) {
    std::vector<argument> given{x};
    if (op == "STFT") given.push_back(whole({}, {2})), given.push_back(reals({4}, {1, 2, 3, 1}));
    EXPECT_THROW(with_extents(op, 17, given, attributes, false), error) << op;
  };
  const argument real = reals({2, 6, 1}, counted(12)), pairs = reals({2, 6, 2}, counted(24)),
                 triples = reals({2, 6, 3}, counted(36));
  for (const argument& x : {real, pairs}) {
    expect_same_of_symbolic_extents("DFT", 17, {x}, {});
    expect_same_of_symbolic_extents("DFT", 17, {x}, {attr("inverse", 1)});
  }
  expect_same_of_symbolic_extents("DFT", 17, {real}, {attr("onesided", 1)});
  const std::vector<argument> frames{real, whole({}, {2}), reals({4}, {1, 2, 3, 1})};
  expect_same_of_symbolic_extents("STFT", 17, frames, {});
  expect_same_of_symbolic_extents("STFT", 17, {pairs, frames[1], frames[2]}, {attr("onesided", 0)});
  refuses("DFT", triples, {});
  refuses("DFT", pairs, {attr("onesided", 1)});
  refuses("STFT", triples, {attr("onesided", 0)});
}

TEST(extents_in_run, scales_of_groups_or_channels) {
  const argument x = reals({2, 4, 3}, counted(24)), two = reals({2}, {1, 3}), three = reals({3}, {1, 2, 3}),
                 four = reals({4}, {1, 2, 3, 4});
  const std::vector<message> groups{attr("num_groups", 2)};
  expect_same_of_symbolic_extents("GroupNormalization", 18, {x, two, two}, groups);
  expect_same_of_symbolic_extents("GroupNormalization", 21, {x, four, four}, groups);
  EXPECT_THROW(with_extents("GroupNormalization", 18, {x, three, three}, groups, false), error);
  EXPECT_THROW(with_extents("GroupNormalization", 21, {x, two, two}, groups, false), error);
  EXPECT_THROW(with_extents("GroupNormalization", 21, {reals({2, 3, 4}, counted(24)), three, three}, groups, true),
               error);
}

TEST(extents_in_run, images_of_columns_of_unknown_channels) {
  const argument x = reals({2, 8, 10}, counted(160));
  const auto image = [&](const std::vector<message>& attributes, bool known) {
    graph_parts parts;
    parts.inputs.push_back(value_info("x", 1, {2, known ? dim(8) : dim(-1), 10}));
    parts.initializers = {integers("image", {2}, {4, 5}), integers("block", {2}, {2, 2})};
    parts.outputs.push_back(value_info("y"));
    parts.nodes.push_back(node("Col2Im", {"x", "image", "block"}, {"y"}, attributes));
    return compile(onnx::parse_model(model_of(parts, 18).bytes()).graph, eigen_target())
        .run(std::vector<argument>{x})[0];
  };
  const std::vector<message> padded{attr("pads", {1, 0, 0, 1}), attr("strides", {2, 1})};
  EXPECT_EQ(lens_of(image(padded, false)), lens_of(image(padded, true)));
  EXPECT_THAT(floats_of(image(padded, false)), Pointwise(FloatNear(1e-4f), floats_of(image(padded, true))));
  try {
    image({attr("pads", {-1, 0, 0, 1})}, false);
    ADD_FAILURE() << "negative pads";
  } catch (const error& e) {
    EXPECT_THAT(e.what(), HasSubstr("or of channels that a run knows"));
  }
}

TEST(extents_in_run, the_greatest_of_nothing) {
  const argument nothing = reals({2, 0}, {});
  EXPECT_EQ(lens_of(with_extents("Hardmax", 13, {nothing}, {}, true)), (std::vector<std::int64_t>{2, 0}));
  EXPECT_THROW(with_extents("Hardmax", 13, {nothing}, {}, false), error);
}

TEST(extents_in_run, offsets_of_a_kernel) {
  const auto run = [](const argument& offset, bool known) {
    graph_parts parts;
    const auto lens = [&](const argument& a) {
      std::vector<dim> out;
      for (const std::int64_t d : lens_of(a)) out.emplace_back(known ? dim(d) : dim(-1));
      return out;
    };
    const argument x = reals({1, 1, 3, 3}, counted(9));
    parts.initializers.push_back(floats("w", {1, 1, 2, 2}, {1, 2, 3, 4}));
    parts.inputs = {value_info("x", 1, lens(x)), value_info("o", 1, lens(offset))};
    parts.outputs = {value_info("y")};
    parts.nodes = {node("DeformConv", {"x", "w", "o"}, {"y"})};
    return compile(onnx::parse_model(model_of(parts, 19).bytes()).graph, eigen_target()).run({{x, offset}})[0];
  };
  const argument fits = reals({1, 8, 2, 2}, counted(32));
  EXPECT_THAT(floats_of(run(fits, false)), Pointwise(FloatNear(1e-4f), floats_of(run(fits, true))));
  for (const bool known : {true, false}) {
    EXPECT_THROW(run(reals({1, 4, 2, 2}, counted(16)), known), error);
    EXPECT_THROW(run(reals({1, 8, 3, 2}, counted(48)), known), error);
  }
}

// As many as a list of detections of many images has.
TEST(extents_in_run, many_lengths_are_summed) {
  graph_parts parts;
  parts.inputs = {value_info("x", 1, {2})};
  strings all;
  for (int k = 0; k < 300; ++k) {
    all.push_back("y" + std::to_string(k));
    const std::string c = "c" + std::to_string(k % 3);
    parts.nodes.push_back(node("Compress", {"x", c}, {all.back()}, {attr("axis", 0)}));
  }
  for (int k = 0; k < 3; ++k) parts.inputs.push_back(value_info("c" + std::to_string(k), 9, {2}));
  parts.nodes.push_back(node("Concat", all, {"y"}, {attr("axis", 0)}));
  parts.nodes.push_back(node("Neg", {"y"}, {"z"}));
  parts.outputs = {value_info("z")};
  const bool both[] = {true, true}, one[] = {false, true}, none[] = {false, false};
  const auto flags = [](const bool(&v)[2]) { return argument::of<bool>({2}, std::span<const bool>(v)); };
  const executable e = compile(onnx::parse_model(model_of(parts, 18).bytes()).graph, eigen_target());
  EXPECT_EQ(lens_of(e.run({{reals({2}, {1, 2}), flags(both), flags(one), flags(none)}})[0]),
            std::vector<std::int64_t>{100 * 2 + 100});
}

TEST(dynamic_values, sizes_of_an_image_without_aliases) {
  const argument x = reals({1, 2, 5, 7}, counted(70));
  const auto attributes = [](const char* mode, int outside) {
    return std::vector<message>{attr("mode", mode), attr("antialias", 1), attr("exclude_outside", outside)};
  };
  expect_as_known("Resize", 18, x, {{}, {}, whole({4}, {1, 2, 2, 9})}, attributes("linear", 0));
  expect_as_known("Resize", 18, x, {{}, reals({4}, {1, 1, .3f, .6f})}, attributes("cubic", 0));
  expect_as_known("Resize", 18, x, {{}, reals({4}, {1, 1, .3f, .6f})}, attributes("cubic", 1));
}

TEST(dynamic_values, a_step_of_nothing_is_refused) {
  const argument x = reals({6}, counted(6)), ends[] = {whole({1}, {0}), whole({1}, {6}), whole({1}, {0})};
  EXPECT_NO_THROW(run_node("Slice", 13, x, {ends[0], ends[1], ends[2], whole({1}, {-1})}, {}, false));
  try {
    run_node("Slice", 13, x, {ends[0], ends[1], ends[2], whole({1}, {0})}, {}, false);
    ADD_FAILURE() << "no error";
  } catch (const error& e) {
    EXPECT_THAT(e.what(), HasSubstr("the size of a step"));
  }
}

TEST(dynamic_values, scanned_inputs_have_one_length) {
  const message body = graph({{node("Add", {"u", "v"}, {"w"}), node("Add", {"h", "w"}, {"next"})},
                              {},
                              {value_info("h", 1, {2}), value_info("u", 1, {2}), value_info("v", 1, {2})},
                              {value_info("next", 1, {2})}});
  const message m =
      model_of({{node("Scan", {"h0", "a", "b"}, {"y"}, {attr("num_scan_inputs", 2), graph_attr("body", body)})},
                {},
                {value_info("h0", 1, {2}), value_info("a", 1, {dim("n"), 2}), value_info("b", 1, {dim("m"), 2})},
                {value_info("y")}});
  const argument h = reals({2}, {0, 0}), three = reals({3, 2}, counted(6)), four = reals({4, 2}, counted(8));
  EXPECT_EQ(failure(m, {h, three, three}), "no error");
  EXPECT_THAT(failure(m, {h, three, four}), HasSubstr("'m' equals 'n'"));
  EXPECT_THAT(failure(m, {h, four, three}), HasSubstr("expected"));
}

// A product of more terms than a dimension holds is not refused: the run computes it.
TEST(dynamic_values, sizes_beyond_what_a_dimension_holds) {
  graph_parts parts;
  parts.inputs.push_back(value_info("x", 1, {"n"}));
  parts.nodes.push_back(node("Shape", {"x"}, {"s0"}));
  for (int i = 0; i < 12; ++i) {
    const std::string at = "s" + std::to_string(i), next = "s" + std::to_string(i + 1);
    parts.nodes.push_back(node(i % 4 == 3 ? "Sub" : "Mul", {at, i % 4 == 3 ? "s0" : at}, {next}));
  }
  parts.nodes.push_back(node("Div", {"s12", "s12"}, {"one"}));
  parts.nodes.push_back(node("ConstantOfShape", {"one"}, {"y"}));
  parts.outputs.push_back(value_info("y"));
  const auto model = onnx::parse_model(model_of(parts, 18).bytes()).graph;
  const std::vector<argument> given{reals({3}, {1, 2, 3})};
  EXPECT_EQ(lens_of(compile(model, eigen_target()).run(given)[0]), (std::vector<std::int64_t>{1}));
}

}  // namespace
}  // namespace kiln::test
