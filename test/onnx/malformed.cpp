#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "kiln/onnx/import.hpp"
#include "onnx/model_writer.hpp"
#include "support/temporary_folder.hpp"

namespace kiln::test {
namespace {

const std::string digits = KILN_SOURCE_DIR "/examples/models/digits/model.onnx";

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span(s.data(), s.size())); }

// The error of an import that must fail.
error failure(std::span<const std::byte> bytes, const onnx::import_options& options = {}) {
  try {
    onnx::parse_model(bytes, ".", options);
  } catch (const error& e) {
    return e;
  }
  ADD_FAILURE() << "the model was imported";
  return {errc::internal, ""};
}
error failure(const message& m, const onnx::import_options& options = {}) { return failure(m.bytes(), options); }
bool says(const error& e, std::string_view words) {
  if (std::string_view(e.what()).find(words) != std::string_view::npos) return true;
  ADD_FAILURE() << "'" << words << "' is not in: " << e.what();
  return false;
}

const auto x_in = value_info("x", 1, {2});
const auto y_out = value_info("y", 1, {2});

TEST(malformed_model, empty_and_missing_files_are_named) {
  const temporary_folder folder;
  const std::string path = folder.write("empty.onnx", "").string();
  try {
    onnx::read_model(path);
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::malformed);
    EXPECT_TRUE(says(e, path));
  }
  std::filesystem::remove(path);
  try {
    onnx::read_model(path);
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::not_found);
    EXPECT_TRUE(says(e, path));
  }
}

TEST(malformed_model, every_truncation_is_an_error) {
  const std::string whole = slurp(digits);
  ASSERT_NO_THROW(onnx::parse_model(bytes_of(whole)));
  for (std::size_t n = 0; n < whole.size(); n += 97) {
    const error e = failure(bytes_of(whole).first(n));
    EXPECT_EQ(e.code(), errc::malformed) << n << " bytes: " << e.what();
  }
}

TEST(malformed_model, random_bytes_never_crash) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string noise(random() % 300, '\0');
    for (char& c : noise) c = static_cast<char>(random());
    EXPECT_THROW(onnx::parse_model(bytes_of(noise)), error);
  }
}

TEST(malformed_model, damaged_bytes_give_a_model_or_an_error) {
  const std::string whole = slurp(digits);
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    std::string damaged = whole;
    // the first and last kilobytes hold structure, the middle weights
    for (int k = 0; k < 4; ++k) {
      const std::size_t at = random() % 3000;
      damaged[random() % 2 ? at : damaged.size() - 1 - at] = static_cast<char>(random());
    }
    try {
      onnx::parse_model(bytes_of(damaged));
    } catch (const error&) {
    }
  }
}

TEST(malformed_model, names_defined_twice_or_never_are_reported) {
  error e = failure(
      model(graph({{node("Relu", {"x"}, {"y"}), node("Abs", {"x"}, {"y"}, {}, "second")}, {}, {x_in}, {y_out}})));
  EXPECT_EQ(e.code(), errc::malformed);
  EXPECT_TRUE(says(e, "'y' is defined twice") && says(e, "'second' (Abs)"));
  e = failure(model(graph({{node("Relu", {"x"}, {"x"})}, {}, {x_in}, {x_in}})));
  EXPECT_TRUE(says(e, "'x' is defined twice"));
  e = failure(model(graph({{node("Add", {"x", "ghost"}, {"y"}, {}, "sum")}, {}, {x_in}, {y_out}})));
  EXPECT_EQ(e.code(), errc::malformed);
  EXPECT_TRUE(says(e, "ghost") && says(e, "'sum' (Add)"));
  e = failure(model(graph({{node("Relu", {"x"}, {"z"})}, {}, {x_in}, {y_out}})));
  EXPECT_TRUE(says(e, "output 'y'"));
  e = failure(model(graph({{node("Add", {"x", "ghost"}, {"y"}), node("Mul", {"y", "spirit"}, {"z"})},
                           {},
                           {x_in},
                           {y_out, value_info("w")}})));
  EXPECT_TRUE(says(e, "3 parts") && says(e, "'ghost'") && says(e, "'spirit'") && says(e, "output 'w'")) << e.what();
  e = failure(model(graph({{}, {floats("x", {2}, {1, 2}), floats("x", {2}, {1, 2})}, {}, {x_in}})));
  EXPECT_TRUE(says(e, "'x' is defined twice"));
}

TEST(malformed_model, cycles_are_reported) {
  const error e = failure(model(graph(
      {{node("Add", {"x", "b"}, {"a"}, {}, "one"), node("Relu", {"a"}, {"b"}, {}, "two"), node("Relu", {"b"}, {"y"})},
       {},
       {x_in},
       {y_out}})));
  EXPECT_EQ(e.code(), errc::malformed);
  EXPECT_TRUE(says(e, "cycle"));
}

TEST(malformed_model, faults_of_a_node_name_the_node) {
  const auto wide = value_info("w", 1, {3});
  error e = failure(model(graph({{node("Add", {"x", "w"}, {"y"}, {}, "sum")}, {}, {x_in, wide}, {y_out}})));
  EXPECT_EQ(e.code(), errc::shape_mismatch);
  EXPECT_EQ(e.instruction(), "sum");
  EXPECT_TRUE(says(e, "'sum' (Add)"));
  e = failure(model(graph({{node("LeakyRelu", {"x"}, {"y"}, {attr("alpha", 3)}, "leak")}, {}, {x_in}, {y_out}})));
  EXPECT_EQ(e.code(), errc::malformed);
  EXPECT_TRUE(says(e, "'alpha'") && says(e, "an int"));
  e = failure(model(graph({{node("Add", {"x"}, {"y"})}, {}, {x_in}, {y_out}})));
  EXPECT_TRUE(says(e, "input 1 is missing") && says(e, "node 0 (Add)"));
}

TEST(malformed_model, all_faults_are_told_together) {
  error e = failure(model(
      graph({{node("LeakyRelu", {"x"}, {"a"}, {attr("alpha", 3)}, "leak"), node("Nowhere", {"x"}, {"b"}, {}, "strange"),
              node("Concat", {"x", "x"}, {"c"}, {attr("axis", 7)}, "joined"),
              node("Sum", {"a", "b", "c"}, {"y"}, {}, "last")},
             {},
             {x_in},
             {y_out}})));
  EXPECT_EQ(e.code(), errc::malformed);
  EXPECT_TRUE(says(e, "3 parts") && says(e, "'leak'") && says(e, "'joined'") && says(e, "Nowhere"));
  EXPECT_EQ(std::string_view(e.what()).find("'last'"), std::string_view::npos) << e.what();
  const auto external = [](std::string_view name, std::string_view file) {
    return message().number(1, 2).number(2, 1).text(8, name).number(14, 1).add(
        13, message().text(1, "location").text(2, file));
  };
  e = failure(model(graph({{node("Sum", {"x", "v", "w", "u"}, {"y"})},
                           {external("v", "no_such_v.bin"), external("w", "no_such_w.bin"), floats("u", {2}, {1})},
                           {x_in},
                           {y_out}})));
  EXPECT_EQ(e.code(), errc::not_found);
  EXPECT_TRUE(says(e, "no_such_v.bin") && says(e, "no_such_w.bin") && says(e, "'u'"));
}

TEST(malformed_model, initializers_must_fit_their_extents) {
  const error e = failure(model(graph({{node("Add", {"x", "w"}, {"y"})}, {floats("w", {2}, {1})}, {x_in}, {y_out}})));
  EXPECT_EQ(e.code(), errc::malformed);
  EXPECT_TRUE(says(e, "'w'"));
}

TEST(malformed_model, operator_sets_must_be_stated) {
  EXPECT_EQ(failure(model(graph({{node("Relu", {"x"}, {"y"})}, {}, {x_in}, {y_out}}), {})).code(), errc::malformed);
  const error e =
      failure(model(graph({{node("Relu", {"x"}, {"y"})}, {}, {x_in}, {y_out}}), {opset(1, "com.microsoft")}));
  EXPECT_EQ(e.code(), errc::malformed);
  EXPECT_TRUE(says(e, "ai.onnx"));
}

TEST(malformed_model, functions_that_call_themselves_end) {
  message f;
  f.text(1, "again")
      .text(4, "a")
      .text(5, "b")
      .add(7, node("again", {"a"}, {"b"}, {}, "", "own"))
      .add(9, opset(1, "own"))
      .text(10, "own");
  const error e = failure(model(graph({{node("again", {"x"}, {"y"}, {}, "", "own")}, {}, {x_in}, {y_out}}),
                                {opset(17), opset(1, "own")}, {f}));
  EXPECT_EQ(e.code(), errc::limit);
}

TEST(malformed_model, doubling_functions_meet_the_limit_of_nodes) {
  std::vector<message> functions;
  for (int k = 0; k < 40; ++k) {
    const std::string next = k == 39 ? "Relu" : "f" + std::to_string(k + 1), domain = k == 39 ? "" : "own";
    message f;
    f.text(1, "f" + std::to_string(k)).text(4, "a").text(5, "c");
    f.add(7, node(next, {"a"}, {"b"}, {}, "", domain)).add(7, node(next, {"b"}, {"c"}, {}, "", domain));
    functions.push_back(f.add(9, opset(17)).add(9, opset(1, "own")).text(10, "own"));
  }
  onnx::import_options options;
  options.max_nodes = 2000;
  const error e = failure(model(graph({{node("f0", {"x"}, {"y"}, {}, "", "own")}, {}, {x_in}, {y_out}}),
                                {opset(17), opset(1, "own")}, functions),
                          options);
  EXPECT_EQ(e.code(), errc::limit);
}

TEST(malformed_model, counts_without_bound_are_refused) {
  constexpr std::int64_t huge = std::int64_t{1} << 40;
  const auto code = [](const message& n, const std::vector<dim>& x, const std::vector<message>& constants = {}) {
    return failure(model(graph({{n}, constants, {value_info("x", 1, x)}, {value_info("y")}}), {opset(18)})).code();
  };
  EXPECT_EQ(code(node("Split", {"x"}, {"y"}, {attr("num_outputs", huge)}), {4}), errc::malformed);
  EXPECT_EQ(code(node("SplitToSequence", {"x"}, {"y"}), {huge}), errc::limit);
  EXPECT_EQ(code(node("DepthToSpace", {"x"}, {"y"}, {attr("blocksize", huge)}), {1, "c", 4, 4}), errc::malformed);
  EXPECT_EQ(code(node("DepthToSpace", {"x"}, {"y"}, {attr("blocksize", 5)}), {1, 4, 4, 4}), errc::malformed);
  EXPECT_EQ(code(node("SpaceToDepth", {"x"}, {"y"}, {attr("blocksize", huge)}), {1, 4, 4, 4}), errc::malformed);
  const std::vector<std::int64_t> two{2};
  EXPECT_EQ(code(node("LpPool", {"x"}, {"y"}, {attr("kernel_shape", two), attr("p", huge)}), {1, 1, 10}), errc::limit);
  EXPECT_EQ(code(node("Pad", {"x", "p"}, {"y"}), {2}, {integers("p", {2}, {-3, 0})}), errc::shape_mismatch);
  EXPECT_EQ(code(node("Resize", {"x", "", "", "s"}, {"y"}), {4}, {integers("s", {1}, {huge})}), errc::limit);
}

TEST(malformed_model, mel_filters_lie_within_the_spectrum) {
  const auto fault = [](std::int64_t rate, float lowest, float highest) {
    const auto n = node("MelWeightMatrix", {"mels", "length", "rate", "lowest", "highest"}, {"y"}, {}, "mel");
    return failure(model(graph({{n},
                                {integers("mels", {}, {8}), integers("length", {}, {256}), integers("rate", {}, {rate}),
                                 floats("lowest", {}, {lowest}), floats("highest", {}, {highest})},
                                {},
                                {value_info("y")}})));
  };
  for (const error& e : {fault(8000, 0, 9000), fault(8000, -5, 3000), fault(8000, 3000, 100), fault(0, 100, 3000)}) {
    EXPECT_EQ(e.code(), errc::malformed);
    EXPECT_TRUE(says(e, "'mel'") && says(e, "within the spectrum"));
  }
}

TEST(malformed_model, options_must_name_what_the_model_has) {
  const auto m = model(graph({{node("Relu", {"x"}, {"y"})}, {}, {value_info("x", 1, {"n", 3})}, {y_out}}));
  onnx::import_options options;
  options.dimensions = {{"m", 3}};
  EXPECT_TRUE(says(failure(m, options), "'m'"));
  options = {};
  options.shapes = {{"z", {1, 3}}};
  EXPECT_EQ(failure(m, options).code(), errc::not_found);
  options.shapes = {};
  options.overrides = {"w"};
  EXPECT_EQ(failure(m, options).code(), errc::not_found);
  options.overrides = {};
  options.shapes = {{"x", {1, 3, 4}}};
  EXPECT_EQ(failure(m, options).code(), errc::shape_mismatch);
  options = {};
  options.values = {{"x", literal::scalar(dtype::i64, 1)}};
  EXPECT_EQ(failure(m, options).code(), errc::shape_mismatch);
}

}  // namespace
}  // namespace kiln::test
