#include <cmath>
#include <random>

#include "driver/program.hpp"

// What kiln quantize reports, keeps and refuses on networks with a flaw.
namespace kiln::driver {
namespace {

using test::attr, test::floats, test::node, test::value_info;

class accuracy_program : public program {
 protected:
  std::vector<float> random(std::size_t count, float most = 1) {
    std::uniform_real_distribution<float> at(-most, most);
    std::vector<float> out(count);
    for (float& x : out) x = at(engine_);
    return out;
  }
  // Three layers; what the second one reads has a feature so many times the others, which bytes may then lose.
  void write_network(float times) {
    test::graph_parts g;
    g.inputs = {value_info("x", 1, {4, 32})};
    g.outputs = {value_info("scores", 1, {4, 32})};
    std::vector<float> spread(32, 1.0f);
    spread[5] = times;
    std::vector<float> second = random(32 * 32);
    for (std::size_t k = 0; k < 32; ++k) second[5 * 32 + k] /= times;
    g.initializers = {floats("w1", {32, 32}, random(32 * 32)), floats("spread", {32}, spread),
                      floats("w2", {32, 32}, second), floats("w3", {32, 32}, random(32 * 32))};
    g.nodes = {node("MatMul", {"x", "w1"}, {"a"}, {}, "first"), node("Mul", {"a", "spread"}, {"s"}, {}, "scaled"),
               node("Relu", {"s"}, {"b"}, {}, "planted"),       node("MatMul", {"b", "w2"}, {"c"}, {}, "second"),
               node("Tanh", {"c"}, {"t"}, {}, "bounded"),       node("MatMul", {"t", "w3"}, {"scores"}, {}, "third")};
    write("net.onnx", test::model(test::graph(g)));
  }
  void write_sample(const std::string& folder, const std::string& input, const dims& lens,
                    const std::vector<float>& values) {
    fs::create_directories(at(folder));
    onnx::write_tensor(at(folder + "/" + input + ".pb"), argument::of<float>(lens, std::span<const float>(values)));
  }

  std::mt19937 engine_{7};
};

TEST_F(accuracy_program, a_planted_bad_layer_comes_first_and_is_drawn_so) {
  write_network(1);
  for (const std::string name : {"data/1", "data/2", "data/3"}) write_sample(name, "x", {4, 32}, random(4 * 32));
  write("t.json", R"({"x": 1, "planted": 12, "bounded": 0.05})");  // the last one's values reach 1
  const outcome o = kiln("quantize " + at("net.onnx") + " --to int8 --table " + at("t.json") + " --data " + at("data") +
                         " -o " + at("q.onnx") + " --report --json --svg " + at("noise.svg"));
  ASSERT_EQ(o.status, 0) << o.error;
  const json said = json::parse(o.out).at("accuracy");
  EXPECT_EQ(said.at("samples"), 3);
  const json& worst = said.at("tensors").at(0);
  EXPECT_EQ(worst.at("name"), "bounded");
  EXPECT_EQ(worst.at("type"), "u8");
  for (const char* key : {"low", "high", "scale", "zero_point", "saturation", "sqnr", "cosine", "added_noise"})
    EXPECT_TRUE(worst.at(key).is_number()) << key;
  EXPECT_NEAR(worst.at("scale").get<double>(), .1 / 255, 1e-6);
  EXPECT_GT(worst.at("saturation"), .5);
  EXPECT_LT(worst.at("sqnr"), 10);
  const json& output = said.at("outputs").at(0);
  for (const char* key : {"sqnr", "cosine", "top1"}) EXPECT_TRUE(output.at(key).is_number()) << key;
  EXPECT_THAT(content(at("noise.svg")), AllOf(HasSubstr("<title>bounded: "), HasSubstr("<title>scores: ")));
  expect_refused("quantize " + at("net.onnx") + " --to bf16 -o " + at("r.onnx") + " --svg " + at("r.svg"),
                 "--svg compares on samples");
}

TEST_F(accuracy_program, the_layer_that_bytes_spoil_stays_in_floats) {
  write_network(1000);
  write_sample("data", "x", {4, 32}, random(4 * 32));
  const outcome o = kiln("quantize " + at("net.onnx") + " --to int8 --data " + at("data") + " -o " + at("q.onnx") +
                         " --min-sqnr 25 --report --json");
  ASSERT_EQ(o.status, 0) << o.error;
  const json said = json::parse(o.out);
  EXPECT_EQ(said.at("quantized").at("dot"), 2);
  EXPECT_THAT(said.at("remarks").dump(), HasSubstr("'second' stays in floats: outputs would be less than 25"));
  EXPECT_GE(said.at("accuracy").at("outputs").at(0).at("sqnr"), 25);
}

TEST_F(accuracy_program, values_beyond_halves_stay_in_floats_and_are_named) {
  test::graph_parts g;
  g.inputs = {value_info("x", 1, {2, 4})};
  g.outputs = {value_info("y", 1, {2, 4})};
  g.initializers = {floats("by", {}, {1000}), floats("back", {}, {.001f})};
  g.nodes = {node("Mul", {"x", "by"}, {"large"}, {}, "grown"), node("Abs", {"large"}, {"size"}, {}, "sized"),
             node("Sqrt", {"size"}, {"root"}, {}, "root"), node("Mul", {"root", "back"}, {"y"}, {}, "shrunk")};
  write("large.onnx", test::model(test::graph(g)));
  write_sample("data", "x", {2, 4}, std::vector<float>(8, 100));  // values of 1e5
  const auto greatest = [&](const std::string& more) {
    const outcome o = kiln("quantize " + at("large.onnx") + " --to fp16 -o " + at("h.onnx") + " --json" + more);
    EXPECT_EQ(o.status, 0) << o.error;
    EXPECT_EQ(kiln("run " + at("h.onnx") + " --input x=" + at("data/x.pb") + " --output-dir " + at("out")).status, 0);
    return std::pair(onnx::read_tensor(at("out/output_0.pb")).value.to_literal().to<float>()[0],
                     json::parse(o.out).at("remarks").dump());
  };
  EXPECT_TRUE(std::isinf(greatest("").first));
  const auto [value, remarks] = greatest(" --data " + at("data"));
  EXPECT_NEAR(value, .3162f, 2e-3);
  EXPECT_THAT(remarks, AllOf(HasSubstr("'grown' stays in f32"), HasSubstr("100000")));
}

TEST_F(accuracy_program, data_that_cannot_calibrate_is_refused_by_name) {
  test::graph_parts g;
  g.inputs = {value_info("left", 1, {2, 8}), value_info("right", 1, {2, 8})};
  g.outputs = {value_info("y", 1, {2, 8})};
  g.initializers = {floats("w", {8, 8}, random(64))};
  g.nodes = {node("Add", {"left", "right"}, {"sum"}, {}, "sum"), node("MatMul", {"sum", "w"}, {"y"}, {}, "dot")};
  write("two.onnx", test::model(test::graph(g)));
  const std::string start = "quantize " + at("two.onnx") + " --to int8 -o " + at("q.onnx") + " --data ";
  fs::create_directories(at("empty"));
  expect_refused(start + at("empty"), "left.npy");
  write_sample("half", "left", {2, 8}, random(16));
  expect_refused(start + at("half"), "it has no input 'right'");
  write_sample("whole/1", "left", {2, 8}, random(16));
  write_sample("whole/1", "right", {2, 8}, random(16));
  EXPECT_EQ(kiln(start + at("whole")).status, 0);
  std::vector<float> broken = random(16);
  broken[3] = NAN;
  write_sample("whole/2", "left", {2, 8}, random(16));
  write_sample("whole/2", "right", {2, 8}, broken);
  fs::remove(at("q.onnx"));
  expect_refused(start + at("whole"), "1 NaN in 'sum'");
  EXPECT_FALSE(fs::exists(at("q.onnx")));

  // the folder of a sample is named by every use of samples
  write_sample("whole/2", "right", {1, 8}, random(8));
  for (const std::string& more : {std::string(), std::string(" --min-sqnr 5"), " --report --table " + at("t.json")}) {
    write("t.json", R"({"sum": 2})");
    expect_refused(start + at("whole") + more, "sample " + at("whole/2") + ": ");
  }
  expect_refused(
      "quantize " + at("two.onnx") + " --to int4 --weight-method gptq -o " + at("q.onnx") + " --data " + at("whole"),
      "sample " + at("whole/2") + ": ");
}

// What was quantized, what was not, and why.
TEST_F(accuracy_program, show_tells_what_a_table_quantizes) {
  write_network(1);
  const auto remarks = [&](const std::string& table) {
    write("t.json", table);
    const outcome o = kiln("show " + at("net.onnx") + " --int8 --table " + at("t.json") + " --json");
    EXPECT_EQ(o.status, 0) << o.error;
    return json::parse(o.out).at("remarks").dump();
  };
  EXPECT_THAT(remarks(R"({"x": 1, "planted": 1000, "bounded": 1})"), HasSubstr("in int8: 3 dot, 3 values"));
  EXPECT_THAT(remarks(R"({"x": 1, "bounded": 1})"),
              AllOf(HasSubstr("in int8: 2 dot, 2 values"), HasSubstr("ranges fit 2 of 3 values"),
                    HasSubstr("'second' stays in floats: its operand 'planted' has no range")));
  write("t.json", R"({"nobody": 1, "no one": 2})");
  expect_refused("run " + at("net.onnx") + " --int8 --table " + at("t.json"),
                 "ranges fit 0 of 3 values that a dot or convolution with constant weights reads, such as 'x': found 2 "
                 "of other names, such as 'no one'");
  expect_refused("run " + at("net.onnx") + " --int8", "int8 needs the ranges");
}

// Bytes are no slower than floats: the best of some adjacent pairs of runs, in which other programs' work evens out.
TEST_F(accuracy_program, bytes_are_not_slower_than_floats) {
  test::graph_parts g;
  constexpr std::int64_t channels = 64;
  g.inputs = {value_info("x", 1, {1, channels, 28, 28})};
  g.outputs = {value_info("y", 1, {1, channels, 28, 28})};
  std::string before = "x";
  for (int k = 0; k < 4; ++k) {
    const std::string n = std::to_string(k), after = k == 3 ? "y" : "r" + n;
    g.initializers.push_back(floats("w" + n, {channels, channels, 3, 3}, random(channels * channels * 9, .05f)));
    g.nodes.push_back(
        node("Conv", {before, "w" + n}, {"c" + n}, {attr("pads", std::vector<std::int64_t>{1, 1, 1, 1})}, "conv" + n));
    g.nodes.push_back(node("Relu", {"c" + n}, {after}, {}, "relu" + n));
    before = after;
  }
  write("conv.onnx", test::model(test::graph(g)));
  write_sample("data", "x", {1, channels, 28, 28}, random(channels * 28 * 28));
  fs::create_directories(at("scans"));
  fs::copy_file(digits + "/calibration.pb", at("scans/image.pb"));
  struct network {
    std::string model, data, sizes;
  };
  for (const auto& [model, data, sizes] :
       {network{at("conv.onnx"), "data", ""}, {digits + "/model.onnx", "scans", " --dim batch=64"}}) {
    ASSERT_EQ(kiln("quantize " + model + " --to int8 --data " + at(data) + " --save-table " + at("t.json") + " -o " +
                   at("q.onnx"))
                  .status,
              0);
    const auto median = [&, command = "perf " + model + sizes](const std::string& more) {
      const outcome o = kiln(command + " --budget-ms 150 --threads 1 --json" + more);
      EXPECT_EQ(o.status, 0) << o.error;
      return o.status == 0 ? json::parse(o.out).at("median_ms").get<double>() : 1;
    };
    double least = INFINITY;
    for (int pair = 0; pair < 5 && least > 1; ++pair)
      least = std::min(least, median(" --int8 --table " + at("t.json")) / median(""));
    EXPECT_LE(least, 1.05) << model;
  }
}

}  // namespace
}  // namespace kiln::driver
