#include "driver/program.hpp"
#include "kiln/onnx/import.hpp"

// kiln quantize, and verbs that compile in another precision.
namespace kiln::driver {
namespace {

const std::string network = digits + "/model.onnx";

class quantize_program : public program {
 protected:
  quantize_program() {
    fs::create_directories(at("data/one"));
    fs::copy_file(digits + "/calibration.pb", at("data/one/image.pb"));
  }
};

TEST_F(quantize_program, int8_is_written_as_onnx_and_runs) {
  const outcome o = kiln("quantize " + network + " --to int8 --data " + at("data") + " -o " + at("q.onnx") +
                         " --save-table " + at("t.json") + " --report --json");
  ASSERT_EQ(o.status, 0) << o.error;
  const json said = json::parse(o.out);
  EXPECT_GE(said.at("quantized").at("convolution"), 2);
  EXPECT_GE(said.at("quantized").at("dot"), 1);
  EXPECT_GT(said.at("accuracy").at("outputs").at(0).at("sqnr"), 20);
  EXPECT_EQ(said.at("accuracy").at("outputs").at(0).at("top1"), 1);
  const std::string bytes = content(at("q.onnx"));
  EXPECT_THAT(bytes, AllOf(HasSubstr("QuantizeLinear"), HasSubstr("DequantizeLinear")));
  EXPECT_EQ(kiln("verify " + at("q.onnx") + " --dim batch=3 --rtol 1e-2 --atol 1e-2").status, 0);

  // the table drives a run of its own: the same bits
  ASSERT_EQ(kiln("run " + at("q.onnx") + " --dim batch=2 --output-dir " + at("a")).status, 0);
  ASSERT_EQ(
      kiln("run " + network + " --int8 --table " + at("t.json") + " --dim batch=2 --output-dir " + at("b")).status, 0);
  EXPECT_EQ(content(at("a/output_0.pb")), content(at("b/output_0.pb")));
  const json show = json::parse(kiln("show " + network + " --int8 --table " + at("t.json") + " --json").out);
  EXPECT_THAT(show.dump(), HasSubstr("integer_convolution"));
}

TEST_F(quantize_program, sixteen_bits_are_near) {
  for (const std::string to : {"fp16", "bf16"}) {
    ASSERT_EQ(kiln("quantize " + network + " --to " + to + " -o " + at(to + ".onnx")).status, 0);
    ASSERT_EQ(kiln("run " + network + " --dim batch=2 --output-dir " + at("a")).status, 0);
    ASSERT_EQ(kiln("run " + at(to + ".onnx") + " --dim batch=2 --output-dir " + at("b")).status, 0);
    ASSERT_EQ(kiln("run " + network + " --" + to + " --dim batch=2 --output-dir " + at("c")).status, 0);
    const auto floats = [&](const std::string& folder) {
      return onnx::read_tensor(at(folder + "/output_0.pb")).value.to_literal().to<float>();
    };
    const auto a = floats("a"), b = floats("b"), c = floats("c");
    for (std::size_t k = 0; k < a.size(); ++k) {
      EXPECT_NEAR(a[k], b[k], 2e-2) << to;
      EXPECT_NEAR(b[k], c[k], 2e-2) << to;
    }
  }
}

TEST_F(quantize_program, mistakes_name_what_is_missing) {
  const std::string start = "quantize " + network + " --to int8 -o " + at("q.onnx");
  expect_refused(start, "int8 needs the ranges");
  expect_refused(start + " --data " + at("none"), "no folder of samples");
  fs::create_directories(at("empty"));
  expect_refused(start + " --data " + at("empty"), "no sample in");
  expect_refused(start + " --data " + at("data") + " --exclude nobody", "no dot or convolution 'nobody'");
  expect_refused(start + " --data " + at("data") + " --exclude /net/net.2/Relu", "no dot or convolution");
  expect_refused(start + " --data " + at("data/one/image.pb"), "image.pb is a file");
  expect_refused("quantize " + network + " --to int8 --data -o " + at("q.onnx"), "'-o' is an option");
  expect_refused(start + " --data " + at("data") + " --ops softmax", "found 'softmax'");
  write("bad.json", "{");
  expect_refused(start + " --table " + at("bad.json"), "bad.json");
  expect_refused("quantize " + network + " --to int3 -o x.onnx", "int3");
  expect_refused("run " + network + " --fp16 --bf16", "--fp16");
  EXPECT_FALSE(fs::exists(at("q.onnx")));
}

// What would be ignored is refused.
TEST_F(quantize_program, what_has_no_use_is_named) {
  const std::string out = " -o " + at("q.onnx"), data = " --data " + at("data");
  const std::string int8 = "quantize " + network + " --to int8" + out,
                    halves = "quantize " + network + " --to fp16" + out,
                    bf16 = "quantize " + network + " --to bf16" + out;
  ASSERT_EQ(kiln(int8 + data + " --save-table " + at("t.json")).status, 0);
  const std::string table = " --table " + at("t.json");
  fs::remove(at("q.onnx"));
  expect_refused(int8 + data + table, "samples have no use: ranges are given");
  expect_refused(bf16 + data, "samples have no use: bf16 needs none");
  expect_refused(bf16 + table, "--table is of ranges");
  expect_refused(bf16 + data + " --report --save-table " + at("u.json"), "--save-table is of ranges");
  expect_refused(halves + " --save-table " + at("u.json"), "give samples with --data");
  expect_refused(int8 + table + " --report", "give them with --data");
  expect_refused(halves + " --exclude /net/net.0/Conv", "means nothing to fp16");
  expect_refused(bf16 + " --no-per-channel", "means nothing to bf16");
  expect_refused(halves + " --ops softmax", "no op 'softmax'");
  EXPECT_FALSE(fs::exists(at("q.onnx")));
  EXPECT_FALSE(fs::exists(at("u.json")));

  expect_refused("run " + network + table, "--table is of ranges");
  expect_refused("run " + network + " --bf16" + table, "--table is of ranges");
  ASSERT_EQ(kiln("compile " + network + " -o " + at("m.kiln")).status, 0);
  expect_refused("run " + at("m.kiln") + table, "--table is of ranges");
  EXPECT_EQ(kiln(int8 + data + table + " --report").status, 0);
  EXPECT_EQ(kiln(halves + " --ops dot,convolution").status, 0);
  EXPECT_EQ(kiln("run " + network + " --fp16" + table + " --dim batch=1").status, 0);
}

TEST_F(quantize_program, folded_convolutions_are_excluded_by_their_own_names) {
  const outcome o = kiln("quantize " + network + " --to int8 --data " + at("data") + " -o " + at("q.onnx") +
                         " --exclude /net/net.0/Conv --exclude /net/net.3/Conv --json");
  ASSERT_EQ(o.status, 0) << o.error;
  EXPECT_EQ(json::parse(o.out).at("quantized").at("convolution"), 1);
}

TEST_F(quantize_program, an_error_names_the_folder_of_its_sample) {
  fs::create_directories(at("data/two"));
  fs::copy_file(digits + "/labels.pb", at("data/two/image.pb"));
  const std::string start = "quantize " + network + " --to int8 -o " + at("q.onnx");
  expect_refused(start + " --data " + at("data"), "sample " + at("data/two") + ": ");
  fs::remove(at("data/two/image.pb"));
  write("data/two/input_0.pb", "");
  expect_refused(start + " --data " + at("data"), at("data/two"));
}

// A cache shows that calibration and comparison compile with the options that were given.
TEST_F(quantize_program, options_of_compilation_reach_every_run) {
  const auto cached = [&] { return std::distance(fs::directory_iterator(at("cache")), fs::directory_iterator()); };
  const std::string start =
      "quantize " + network + " --to int8 --data " + at("data") + " --cache " + at("cache") + " -o " + at("q.onnx");
  ASSERT_EQ(kiln(start).status, 0);
  const auto calibrated = cached();
  EXPECT_GE(calibrated, 1);
  ASSERT_EQ(kiln(start + " --report").status, 0);
  EXPECT_GE(cached(), calibrated + 2);
}

// Its scales and weights again, and no second rounding.
TEST_F(quantize_program, a_quantized_model_is_quantized_once) {
  ASSERT_EQ(kiln("quantize " + network + " --to int8 --data " + at("data") + " -o " + at("q.onnx")).status, 0);
  const outcome o =
      kiln("quantize " + at("q.onnx") + " --to int8 --data " + at("data") + " -o " + at("r.onnx") + " --json");
  ASSERT_EQ(o.status, 0) << o.error;
  EXPECT_FALSE(json::parse(o.out).at("quantized").contains("values")) << o.out;
  ASSERT_EQ(kiln("run " + at("q.onnx") + " --dim batch=2 --output-dir " + at("a")).status, 0);
  ASSERT_EQ(kiln("run " + at("r.onnx") + " --dim batch=2 --output-dir " + at("b")).status, 0);
  const auto a = onnx::read_tensor(at("a/output_0.pb")).value.to_literal().to<float>(),
             b = onnx::read_tensor(at("b/output_0.pb")).value.to_literal().to<float>();
  for (std::size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(a[k], b[k], 1e-4);
}

TEST_F(quantize_program, dynamic_integers_need_no_samples) {
  const outcome o = kiln("quantize " + network + " --to dynamic-int8 -o " + at("q.onnx") + " --json");
  ASSERT_EQ(o.status, 0) << o.error;
  EXPECT_EQ(json::parse(o.out).at("to"), "dynamic-int8");
  EXPECT_EQ(json::parse(o.out).at("quantized").at("dot"), 2);
  EXPECT_THAT(content(at("q.onnx")), AllOf(HasSubstr("DynamicQuantizeLinear"), HasSubstr("MatMulInteger")));
  ASSERT_EQ(kiln("run " + at("q.onnx") + " --dim batch=2 --output-dir " + at("a")).status, 0);
  ASSERT_EQ(kiln("run " + network + " --dynamic-int8 --dim batch=2 --output-dir " + at("b")).status, 0);
  EXPECT_EQ(content(at("a/output_0.pb")), content(at("b/output_0.pb")));
  const json show = json::parse(kiln("show " + network + " --dynamic-int8 --json").out);
  EXPECT_THAT(show.dump(), HasSubstr("integer_dot"));
  EXPECT_EQ(kiln("compile " + network + " --dynamic-int8 --portable -o " + at("m.kiln")).status, 0);
  EXPECT_EQ(kiln("run " + at("m.kiln") + " --dim batch=2").status, 0);
  const std::string start = "quantize " + network + " --to dynamic-int8 -o " + at("r.onnx");
  EXPECT_EQ(kiln(start + " --no-per-channel --report --data " + at("data")).status, 0);
  expect_refused(start + " --data " + at("data"), "samples have no use");
  expect_refused(start + " --symmetric-activations", "means nothing");
  expect_refused(start + " --ops convolution", "found none");
}

TEST_F(quantize_program, convolutions_are_quantized_dynamically_where_asked) {
  ASSERT_EQ(kiln("quantize " + network + " --to dynamic-int8 --convolutions -o " + at("q.onnx")).status, 0);
  EXPECT_THAT(content(at("q.onnx")), AllOf(HasSubstr("ConvInteger"), HasSubstr("MatMulInteger")));
  EXPECT_EQ(kiln("verify " + at("q.onnx") + " --dim batch=3 --rtol 1e-3 --atol 1e-3").status, 0);
  expect_refused("quantize " + network + " --to int4 --convolutions -o " + at("r.onnx"), "means nothing");
}

TEST_F(quantize_program, operators_on_integers_are_written_where_asked) {
  const std::string start = "quantize " + network + " --data " + at("data") + " --to int8";
  const outcome o = kiln(start + " --format qoperator -o " + at("q.onnx") + " --report --json");
  ASSERT_EQ(o.status, 0) << o.error;
  EXPECT_EQ(json::parse(o.out).at("accuracy").at("outputs").at(0).at("top1"), 1);
  const std::string bytes = content(at("q.onnx"));
  EXPECT_THAT(bytes, AllOf(HasSubstr("QLinearConv"), HasSubstr("QGemm")));
  // what the graph returns is of floats, and so is what computes it of the last product's result
  std::size_t dequantized = 0;
  for (std::size_t at = 0; (at = bytes.find("DequantizeLinear", at)) != bytes.npos; ++at) ++dequantized;
  EXPECT_EQ(dequantized, 1u);
  EXPECT_EQ(kiln("verify " + at("q.onnx") + " --dim batch=3 --rtol 1e-2 --atol 1e-2").status, 0);

  ASSERT_EQ(kiln("quantize " + network + " --to int4 --format qdq -o " + at("b.onnx")).status, 0);
  EXPECT_THAT(content(at("b.onnx")), AllOf(HasSubstr("DequantizeLinear"), Not(HasSubstr("MatMulNBits"))));
  ASSERT_EQ(kiln("run " + at("b.onnx") + " --dim batch=2 --output-dir " + at("a")).status, 0);
  ASSERT_EQ(kiln("run " + network + " --int4-weights --dim batch=2 --output-dir " + at("c")).status, 0);
  const auto a = onnx::read_tensor(at("a/output_0.pb")).value.to_literal().to<float>(),
             c = onnx::read_tensor(at("c/output_0.pb")).value.to_literal().to<float>();
  for (std::size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(a[k], c[k], 1e-4);
  expect_refused("quantize " + network + " --to fp16 --format qdq -o " + at("r.onnx"), "means nothing");
  expect_refused(start + " --format both -o " + at("r.onnx"), "both");
}

TEST_F(quantize_program, what_costs_too_much_accuracy_stays_in_floats) {
  const std::string start = "quantize " + network + " --to int8 -o " + at("q.onnx");
  const auto dots_and_convolutions = [&](const std::string& more) {
    const outcome o = kiln(start + more + " --json --report --data " + at("data"));
    EXPECT_EQ(o.status, 0) << o.error;
    const json said = json::parse(o.out);
    return std::pair(said.at("quantized"), said.at("accuracy").at("outputs").at(0).at("sqnr"));
  };
  const auto all = dots_and_convolutions(" --min-sqnr 0");
  EXPECT_EQ(all.first.at("dot").get<int>() + all.first.at("convolution").get<int>(), 5);
  const double wanted = all.second.get<double>() + 3;
  const auto some = dots_and_convolutions(" --min-sqnr " + std::to_string(wanted));
  EXPECT_LT(some.first.value("dot", 0) + some.first.value("convolution", 0), 5);
  EXPECT_TRUE(some.second == "inf" || some.second.get<double>() >= wanted);
  write("t.json", R"({"image": 16})");
  expect_refused(start + " --min-sqnr 30 --table " + at("t.json"), "min_sqnr compares on samples");
  expect_refused("quantize " + network + " --to fp16 --min-sqnr 30 -o " + at("q.onnx"), "means nothing");
}

TEST_F(quantize_program, weights_of_four_bits_are_written_as_onnx_and_run) {
  const std::string start = "quantize " + network + " --to int4";
  const outcome o = kiln(start + " -o " + at("q.onnx") + " --json");
  ASSERT_EQ(o.status, 0) << o.error;
  EXPECT_EQ(json::parse(o.out).at("quantized").at("dot"), 2);
  EXPECT_THAT(content(at("q.onnx")), HasSubstr("MatMulNBits"));
  ASSERT_EQ(kiln("run " + at("q.onnx") + " --dim batch=2 --output-dir " + at("a")).status, 0);
  ASSERT_EQ(kiln("run " + network + " --int4-weights --dim batch=2 --output-dir " + at("b")).status, 0);
  EXPECT_EQ(content(at("a/output_0.pb")), content(at("b/output_0.pb")));

  const outcome all = kiln(start +
                           " --weight-method gptq --block-size 64 --asymmetric --bits 8 --accuracy-level-4 --report "
                           "--json --data " +
                           at("data") + " -o " + at("g.onnx"));
  ASSERT_EQ(all.status, 0) << all.error;
  EXPECT_GT(json::parse(all.out).at("accuracy").at("outputs").at(0).at("sqnr"), 30);
  EXPECT_EQ(kiln("verify " + at("g.onnx") + " --dim batch=3 --rtol 5e-2 --atol 2e-2").status, 0);

  expect_refused(start + " -o " + at("r.onnx") + " --weight-method gptq", "needs samples");
  expect_refused(start + " -o " + at("r.onnx") + " --block-size 20", "power of two");
  expect_refused(start + " -o " + at("r.onnx") + " --bits 3", "2, 4 or 8");
  expect_refused(start + " -o " + at("r.onnx") + " --exclude none", "'none'");
  expect_refused(start + " -o " + at("r.onnx") + " --reduce-range", "means nothing");
  expect_refused("quantize " + network + " --to fp16 --block-size 64 -o " + at("r.onnx"), "means nothing");
}

TEST_F(quantize_program, floats_of_eight_bits_are_written_as_onnx_and_run) {
  for (const std::string type : {"f8e4m3fn", "f8e5m2"}) {
    const outcome o = kiln("quantize " + network + " --to fp8 --fp8-type " + type + " --data " + at("data") + " -o " +
                           at("q.onnx") + " --save-table " + at("t.json") + " --report --json");
    ASSERT_EQ(o.status, 0) << o.error;
    const json said = json::parse(o.out);
    EXPECT_EQ(said.at("to"), "fp8");
    EXPECT_EQ(said.at("quantized").at("convolution").get<int>() + said.at("quantized").at("dot").get<int>(), 5);
    EXPECT_GT(said.at("accuracy").at("outputs").at(0).at("sqnr"), 15);
    EXPECT_EQ(kiln("verify " + at("q.onnx") + " --dim batch=3 --rtol 1e-2 --atol 1e-2").status, 0);
  }
  ASSERT_EQ(kiln("quantize " + network + " --to fp8 --data " + at("data") + " -o " + at("q.onnx")).status, 0);
  const std::string flags = " --fp8 --table " + at("t.json") + " --dim batch=2";
  ASSERT_EQ(kiln("run " + at("q.onnx") + " --dim batch=2 --output-dir " + at("a")).status, 0);
  ASSERT_EQ(kiln("run " + network + flags + " --output-dir " + at("b")).status, 0);
  const auto a = onnx::read_tensor(at("a/output_0.pb")).value.to_literal().to<float>(),
             b = onnx::read_tensor(at("b/output_0.pb")).value.to_literal().to<float>();
  for (std::size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(a[k], b[k], 1e-4);
  EXPECT_EQ(kiln("verify " + network + flags).status, 0);
  EXPECT_EQ(kiln("perf " + network + flags + " --budget-ms 1").status, 0);
  EXPECT_EQ(kiln("compile " + network + " --fp8 --table " + at("t.json") + " -o " + at("m.kiln")).status, 0);
  EXPECT_EQ(kiln("run " + at("m.kiln") + " --dim batch=2").status, 0);
  const std::string start = "quantize " + network + " --to fp8 -o " + at("r.onnx");
  expect_refused(start, "fp8 needs the ranges");
  expect_refused(start + " --activation-type u16", "means nothing to fp8");
  expect_refused("quantize " + network + " --to int8 --fp8-type f8e5m2 -o " + at("r.onnx"), "means nothing to int8");
  expect_refused("run " + network + " --fp8", "fp8 needs the ranges");
}

TEST_F(quantize_program, floats_in_blocks_are_written_as_onnx_and_run) {
  for (const std::string to : {"mxfp4", "nvfp4", "mxfp8"}) {
    const outcome o = kiln("quantize " + network + " --to " + to + " -o " + at("q.onnx") + " --json");
    ASSERT_EQ(o.status, 0) << o.error;
    EXPECT_EQ(json::parse(o.out).at("quantized").at("dot"), 2);
    ASSERT_EQ(kiln("run " + at("q.onnx") + " --dim batch=2 --output-dir " + at("a")).status, 0);
    ASSERT_EQ(kiln("run " + network + " --" + to + " --dim batch=2 --output-dir " + at("b")).status, 0);
    const auto a = onnx::read_tensor(at("a/output_0.pb")).value.to_literal().to<float>(),
               b = onnx::read_tensor(at("b/output_0.pb")).value.to_literal().to<float>();
    for (std::size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(a[k], b[k], 1e-4);
    EXPECT_THAT(kiln("show " + network + " --" + to + " --json").out, HasSubstr("float blocks"));
    expect_refused("quantize " + network + " --to " + to + " --bits 8 -o " + at("r.onnx"), "means nothing");
  }
}

TEST_F(quantize_program, options_of_integers) {
  const std::string start = "quantize " + network + " --to int8 --data " + at("data") + " -o " + at("q.onnx");
  const auto quantized = [&](const std::string& more) {
    const outcome o = kiln(start + " --json" + more);
    EXPECT_EQ(o.status, 0) << o.error;
    EXPECT_EQ(kiln("verify " + at("q.onnx") + " --dim batch=3 --rtol 1e-2 --atol 1e-2").status, 0) << more;
    return o.status == 0 ? json::parse(o.out) : json();
  };
  quantized(" --activation-type u16 --weight-type i16");
  quantized(" --activation-type i8 --weight-type u8 --asymmetric-weights --no-per-channel");
  quantized(" --float-weights --minimum-range 0.5");
  EXPECT_GE(quantized(" --quantize-bias").at("quantized").at("bias"), 3);
  EXPECT_EQ(quantized(" --only /net/net.0/Conv").at("quantized").at("convolution"), 1);
  EXPECT_THAT(quantized(" --smooth-quant 0.5").at("remarks").dump(), HasSubstr("values are smoothed"));
  quantized(" --smooth-quant 0.8 --no-smooth-quant-folding");
  write("o.json", R"({"image": {"type": "i8", "low": -1, "high": 20}})");
  quantized(" --overrides " + at("o.json"));
  write("o.json", R"({"image": {"kind": "i8"}})");
  expect_refused(start + " --overrides " + at("o.json"), "'image', kind");
  write("o.json", R"({"nobody": {"type": "i8"}})");
  expect_refused(start + " --overrides " + at("o.json"), "'nobody'");
  expect_refused(start + " --only nobody", "'nobody'");
  expect_refused(start + " --smooth-quant 2", "alpha");
  expect_refused(start + " --no-smooth-quant-folding", "is of 'smooth_quant'");
  expect_refused(start + " --weight-type f32", "weight-type");
}

}  // namespace
}  // namespace kiln::driver
