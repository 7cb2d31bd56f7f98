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

TEST(numbers_in_run, axes_and_lengths_of_a_fourier_transform) {
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

TEST(numbers_in_run, steps_between_frames) {
  const argument signal = reals({2, 13, 1}, counted(26)), window = reals({4}, {1, 2, 3, 1});
  for (const std::int64_t step : {1, 3, 20}) {
    expect_as_known("STFT", 17, signal, {whole({}, {step}), window});
    expect_as_known("STFT", 17, signal, {whole({}, {step}), {}, whole({}, {5})}, {attr("onesided", 0)});
  }
  EXPECT_THROW(run_node("STFT", 17, signal, {whole({}, {0}), window}, {}, false), error);
}

TEST(numbers_in_run, images_of_columns) {
  const argument x = reals({2, 8, 10}, counted(160));
  expect_as_known("Col2Im", 18, x, {whole({2}, {4, 5}), whole({2}, {2, 2})},
                  {attr("pads", {1, 0, 0, 1}), attr("strides", {2, 1})});
  const auto misfit = [&] { run_node("Col2Im", 18, x, {whole({2}, {4, 4}), whole({2}, {2, 2})}, {}, false); };
  EXPECT_THROW(misfit(), error);
}

TEST(numbers_in_run, sizes_of_an_image_without_aliases) {
  const argument x = reals({1, 2, 5, 7}, counted(70));
  const auto attributes = [](const char* mode, int outside) {
    return std::vector<message>{attr("mode", mode), attr("antialias", 1), attr("exclude_outside", outside)};
  };
  expect_as_known("Resize", 18, x, {{}, {}, whole({4}, {1, 2, 2, 9})}, attributes("linear", 0));
  expect_as_known("Resize", 18, x, {{}, reals({4}, {1, 1, .3f, .6f})}, attributes("cubic", 0));
  expect_as_known("Resize", 18, x, {{}, reals({4}, {1, 1, .3f, .6f})}, attributes("cubic", 1));
}

TEST(numbers_in_run, a_step_of_nothing_is_refused) {
  const argument x = reals({6}, counted(6)), ends[] = {whole({1}, {0}), whole({1}, {6}), whole({1}, {0})};
  EXPECT_NO_THROW(run_node("Slice", 13, x, {ends[0], ends[1], ends[2], whole({1}, {-1})}, {}, false));
  try {
    run_node("Slice", 13, x, {ends[0], ends[1], ends[2], whole({1}, {0})}, {}, false);
    ADD_FAILURE() << "no error";
  } catch (const error& e) {
    EXPECT_THAT(e.what(), HasSubstr("the size of a step"));
  }
}

TEST(numbers_in_run, scanned_inputs_have_one_length) {
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
TEST(numbers_in_run, sizes_beyond_what_a_dimension_holds) {
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
