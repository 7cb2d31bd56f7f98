#include "cpp_export/exported.hpp"
#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/runtime/executable.hpp"

namespace kiln::test {
namespace {

const std::string models = std::string(KILN_SOURCE_DIR) + "/examples/models/";

// A trained model with its dims given, exported, against the executable on the same inputs.
void expect_model(const std::string& name, std::vector<std::pair<std::string, std::int64_t>> dims,
                  std::size_t most_kernels) {
  onnx::import_options options;
  options.dimensions = std::move(dims);
  const program p = onnx::read_model(models + name + "/model.onnx", options).graph;
  dice d{7};
  std::vector<literal> inputs;
  std::vector<argument> arguments;
  for (value_id v : p.main().parameters()) {
    const shape& s = p.main().shape_of(v);
    small_vector<double> values;  // ids and masks of 1: the tokens of a prompt that is all alike
    for (std::int64_t i = s.elements().value(); i > 0; --i) values.push_back(is_float(s.type) ? d.real() : 1.0);
    inputs.push_back(literal::of<double>(s, values));
    argument a(s);
    std::copy_n(inputs.back().bytes(), s.bytes().value(), a.data());
    arguments.push_back(std::move(a));
  }
  const executable exe = compile(p, eigen_target());
  const std::vector<argument> expected = exe.run(arguments);
  program optimized = p;
  optimize(optimized);
  EXPECT_LE(to_cpp(optimized).steps, most_kernels);
  const std::vector<literal> found = run_exported(optimized, inputs, "-O2 -march=native");
  ASSERT_EQ(found.size(), expected.size()) << "the exported program does not build or run";
  for (std::size_t k = 0; k < found.size(); ++k)
    EXPECT_TRUE(close(found[k], expected[k].to_literal(), 2e-5)) << "output " << k;
}

TEST(exported_model, digits) { expect_model("digits", {{"batch", 1}}, 8); }

TEST(exported_model, a_decode_step_of_scripture) {
  expect_model("scripture",
               {{"batch_size", 1}, {"sequence_length", 1}, {"past_sequence_length", 20}, {"total_sequence_length", 21}},
               110);
}

// What cannot be exported is refused by name.
errc refusal(program p, const std::string& mentions, const cpp_options& options = {}) {
  try {
    to_cpp(p, options);
  } catch (const error& e) {
    EXPECT_NE(std::string(e.what()).find(mentions), std::string::npos) << e.what();
    return e.code();
  }
  return errc::internal;
}

TEST(exported_model, refuses_what_has_no_text) {
  {
    builder b;
    b.output(b.input("x", dtype::f16, {4}).relu());
    EXPECT_EQ(refusal(b.finish(), "f16"), errc::unsupported);
  }
  {
    builder b;
    b.output(b.input("x", dtype::f32, {2, 3}).dot(b.weight("w", dtype::f32, {3, 4})));
    EXPECT_EQ(refusal(b.finish(), "'w'"), errc::unsupported);
  }
  {
    builder b;
    b.output(b.input("x", dtype::f32, {2}).relu());
    EXPECT_EQ(refusal(b.finish(), "identifier", {.name = "3d model", .origin = ""}), errc::invalid_argument);
  }
  const program symbolic = onnx::read_model(models + "digits/model.onnx").graph;
  EXPECT_EQ(refusal(symbolic, "fixed dims"), errc::unsupported);
}

}  // namespace
}  // namespace kiln::test
