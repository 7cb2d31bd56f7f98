#include "driver/program.hpp"

// What each verb of the program does, and how it refuses.
namespace kiln::driver {
namespace {

TEST_F(program, says_what_it_is) {
  EXPECT_THAT(kiln("--version").out, testing::MatchesRegex("kiln [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST_F(program, refuses_bad_usage) {
  const std::string model = digits + "/model.onnx";
  expect_refused("", "subcommand");
  expect_refused("bake", "bake");
  expect_refused("run", "model is required");
  expect_refused("run " + model + " --target gpu", "gpu");
  expect_refused("run " + model + " --dim batch", "batch");
  expect_refused("run " + model + " --dim batch=-1", "-1");
  expect_refused("run " + model + " --shape image=1,x", "x");
  expect_refused("run " + model + " --input image", "image");
  expect_refused("run " + model + " --threads many", "many");
  expect_refused("perf " + model + " --frobnicate", "frobnicate");
}

TEST_F(program, names_what_is_wrong_with_a_model_or_input) {
  const std::string model = digits + "/model.onnx", scans = digits + "/test_data_set_0/input_0.pb";
  const std::string whole = content(model);
  write("empty.onnx", "");
  write("half.onnx", whole.substr(0, whole.size() / 2));
  write("noise.onnx", "this is no model");
  write("noise.npy", "this is no tensor");
  const std::string out = " --output-dir " + at("out");
  expect_refused("run " + at("none.onnx") + out, "none.onnx");
  for (const char* name : {"empty.onnx", "half.onnx", "noise.onnx"})
    for (const char* verb : {"run ", "perf ", "show ", "verify "}) expect_refused(verb + at(name), name);
  expect_refused("run " + model + " --input picture=" + scans + out, "picture");
  expect_refused("run " + model + " --input image=" + at("none.pb") + out, "none.pb");
  expect_refused("run " + model + " --input image=" + at("noise.npy") + out, "noise.npy");
  expect_refused("run " + model + " --input image=" + digits + "/labels.pb" + out, "image");
  expect_refused("run " + model + " --dim bunch=2" + out, "bunch");
  expect_refused("run " + model + " --shape picture=1,1,8,8" + out, "picture");
  expect_refused("run " + model + " --shape image=1,8,8" + out, "image");
  EXPECT_FALSE(fs::exists(at("out")) && !fs::is_empty(at("out")));
}

TEST_F(program, a_compiled_program_takes_the_place_of_a_model) {
  const std::string model = digits + "/model.onnx", scans = digits + "/test_data_set_0/input_0.pb";
  const outcome compiled = kiln("compile " + model + " -o " + at("digits.mxr"));
  ASSERT_EQ(compiled.status, 0) << compiled.error;
  EXPECT_THAT(compiled.out, AllOf(HasSubstr("digits.mxr"), HasSubstr("kernels for eigen")));
  const std::string input = " --input image=" + scans;
  const outcome direct = kiln("run " + model + input), loaded = kiln("run " + at("digits.mxr") + input);
  ASSERT_EQ(loaded.status, 0) << loaded.error;
  EXPECT_EQ(loaded.out, direct.out);
  EXPECT_EQ(kiln("run " + at("digits.mxr") + " --dim batch=7").status, 0);
  EXPECT_EQ(kiln("perf " + at("digits.mxr") + " --budget-ms 1").status, 0);
  EXPECT_THAT(kiln("show " + at("digits.mxr")).out,
              AllOf(HasSubstr("compiled for eigen"), HasSubstr("without its source")));
  expect_refused("run " + at("digits.mxr") + " --shape image=1,1,8,8", "--shape is for models");
  expect_refused("run " + at("digits.mxr") + " --dim bunch=2", "bunch");
  expect_refused("run " + at("digits.mxr") + " --target reference", "expected reference, found eigen");
  expect_refused("verify " + at("digits.mxr"), "with its source");
  expect_refused("compile " + model, "--output is required");
  expect_refused("compile " + model + " -o " + at("none/x.kiln"), "x.kiln");
}

TEST_F(program, a_portable_program_runs_on_another_target) {
  const std::string model = digits + "/model.onnx";
  ASSERT_EQ(kiln("compile " + model + " -o " + at("d.kiln") + " --portable").status, 0);
  EXPECT_EQ(kiln("run " + at("d.kiln") + " --target reference").status, 0);
  EXPECT_EQ(kiln("verify " + at("d.kiln")).status, 0);
  EXPECT_THAT(kiln("show " + at("d.kiln") + " --target reference").out, HasSubstr("compiled anew from the source"));
}

TEST_F(program, a_cache_keeps_compiled_programs) {
  const std::string model = digits + "/model.onnx", options = " --cache " + at("kept");
  const outcome first = kiln("run " + model + options), second = kiln("run " + model + options);
  EXPECT_EQ(first.status, 0) << first.error;
  EXPECT_EQ(second.out, first.out);
  const json listed = json::parse(kiln("cache " + at("kept") + " --json").out);
  ASSERT_EQ(listed.at("programs").size(), 1u);
  EXPECT_EQ(listed.at("programs").at(0).at("target"), "eigen");
  EXPECT_GT(listed.at("bytes"), 1000);
  EXPECT_EQ(json::parse(kiln("cache " + at("kept") + " --limit 0 --json").out).at("programs").size(), 0u);
}

TEST_F(program, run_writes_the_outputs) {
  const std::string set = digits + "/test_data_set_0";
  const outcome o = kiln("run " + digits + "/model.onnx --input image=" + set + "/input_0.pb --json --output-dir " +
                         at("new/folder"));
  ASSERT_EQ(o.status, 0) << o.error;
  const json j = json::parse(o.out);
  EXPECT_EQ(j.at("outputs").at(0).at("name"), "probabilities");
  EXPECT_EQ(j.at("outputs").at(0).at("dims"), json({360, 10}));
  const auto computed = onnx::read_tensor(at("new/folder/output_0.pb"));
  EXPECT_EQ(computed.name, "probabilities");
  EXPECT_THAT(compare(computed.value, onnx::read_tensor(set + "/output_0.pb").value, {}).reason, IsEmpty());
  EXPECT_EQ(std::distance(fs::directory_iterator(at("new/folder")), {}), 1) << "nothing temporary stays";
}

TEST_F(program, run_reads_npy_and_fills_the_rest) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1, 8, 8), }\n";
  write("zeros.npy", std::string("\x93NUMPY\1\0", 8) + static_cast<char>(header.size()) + '\0' + header +
                         std::string(2 * 64 * 4, '\0'));
  const outcome given = kiln("run " + digits + "/model.onnx --input image=" + at("zeros.npy"));
  ASSERT_EQ(given.status, 0) << given.error;
  EXPECT_THAT(given.out, HasSubstr("probabilities = f32[2, 10]"));
  EXPECT_THAT(kiln("run " + digits + "/model.onnx").out, HasSubstr("f32[1, 10]"));
  EXPECT_THAT(kiln("run " + digits + "/model.onnx --dim batch=3 --target reference").out, HasSubstr("f32[3, 10]"));
  EXPECT_THAT(kiln("run " + digits + "/model.onnx --shape image=4,1,8,8").out, HasSubstr("f32[4, 10]"));
}

TEST_F(program, test_counts_a_folder_once) {
  const outcome o = kiln("test " + digits + " " + digits + "/ " + digits + "/.");
  EXPECT_EQ(o.status, 0) << o.error;
  EXPECT_THAT(o.out, EndsWith("\n1 passed, 0 failed, 0 skipped\n"));
  EXPECT_EQ(kiln("test " + digits + " --target reference").status, 0);
  expect_refused("test " + at("none"), "none");
}

TEST_F(program, test_reports_and_saves_a_mismatch) {
  const std::string set = digits + "/test_data_set_0";
  fs::create_directories(at("case/test_data_set_7"));
  fs::copy(digits + "/model.onnx", at("case/model.onnx"));
  fs::copy(set + "/input_0.pb", at("case/test_data_set_7/input_0.pb"));
  argument wrong = onnx::read_tensor(set + "/output_0.pb").value.copy();
  wrong.as<float>()[31] += 0.25f;
  onnx::write_tensor(at("case/test_data_set_7/output_0.pb"), wrong);
  fs::create_directories(at("broken/test_data_set_0"));
  write("broken/model.onnx", "noise");
  fs::create_directories(at("bare"));
  fs::copy(digits + "/model.onnx", at("bare/model.onnx"));

  const std::string cases = at("case") + "/ " + at("broken") + " " + at("bare") + " " + digits;
  const outcome o = kiln("test " + cases + " --save " + at("saved"));
  EXPECT_EQ(o.status, 1);
  EXPECT_THAT(o.out, AllOf(HasSubstr("failed case"), HasSubstr("test_data_set_7: output 0 'probabilities': 1 of 3600"),
                           HasSubstr("[3, 1]"), HasSubstr("failed broken"), HasSubstr("malformed"),
                           HasSubstr("skipped bare"), EndsWith("\n1 passed, 2 failed, 1 skipped\n")));
  EXPECT_THAT(compare(onnx::read_tensor(at("saved/case/test_data_set_7/output_0.pb")).value,
                      onnx::read_tensor(set + "/output_0.pb").value, {})
                  .reason,
              IsEmpty());
  EXPECT_TRUE(fs::exists(at("saved/digits/test_data_set_0/output_0.pb")));

  const json j = json::parse(kiln("test " + cases + " --json").out);
  EXPECT_EQ(j.at("passed"), 1);
  EXPECT_EQ(j.at("failed"), 2);
  EXPECT_EQ(j.at("skipped"), 1);
  EXPECT_GT(j.at("steps"), 0);
  EXPECT_TRUE(j.at("fallbacks").empty());
  EXPECT_THAT(kiln("test " + at("case") + " --atol 0.3 --target reference").out, HasSubstr("steps by a fallback: "));
  EXPECT_EQ(j.at("cases").at(1).at("status"), "failed");
  EXPECT_EQ(kiln("test " + at("case") + " --atol 0.3").status, 0);
}

TEST_F(program, perf_prints_every_figure) {
  const outcome o = kiln("perf " + digits + "/model.onnx --budget-ms 20 --threads 1 --per-kernel --json");
  ASSERT_EQ(o.status, 0) << o.error;
  const json j = json::parse(o.out);
  for (const char* key : {"median_ms", "min_ms", "p95_ms", "load_ms", "compile_ms", "first_ms", "peak_bytes"})
    EXPECT_GT(j.at(key).get<double>(), 0) << key;
  EXPECT_LE(j.at("min_ms"), j.at("median_ms"));
  EXPECT_LE(j.at("median_ms"), j.at("p95_ms"));
  EXPECT_LE(j.at("compile_ms"), j.at("load_ms"));
  EXPECT_GE(j.at("runs"), 5);
  EXPECT_EQ(j.at("threads"), 1);
  std::size_t packed = 0;
  for (const auto& [kernel, bytes] : j.at("packed").items()) packed += bytes.get<std::size_t>();
  EXPECT_GT(packed, 0u);
  EXPECT_EQ(j.at("packed_bytes"), packed);
  ASSERT_FALSE(j.at("steps").empty());
  EXPECT_GT(j.at("steps").at(0).at("gflops").get<double>(), 0);
  EXPECT_GT(j.at("ceilings").at("gflops").get<double>(), 0);
  EXPECT_GT(j.at("ceilings").at("gb_s").get<double>(), 0);
  EXPECT_THAT(kiln("perf " + digits + "/model.onnx --budget-ms 1").out, HasSubstr("median_ms "));
}

TEST_F(program, perf_writes_a_trace) {
  const outcome o = kiln("perf " + digits + "/model.onnx --budget-ms 1 --trace " + at("trace.json"));
  ASSERT_EQ(o.status, 0) << o.error;
  std::size_t steps = 0;
  const json trace = json::parse(content(at("trace.json")));
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    ++steps;
    EXPECT_GT(event.at("dur").get<double>(), 0);
    EXPECT_FALSE(event.at("name").get<std::string>().empty());
  }
  EXPECT_GE(steps, 5u);
  EXPECT_EQ(kiln("perf " + digits + "/model.onnx --budget-ms 1 --trace " + at("no/where.json")).status, 2);
}

TEST_F(program, show_tells_graph_plan_and_picture) {
  const outcome o = kiln("show " + digits + "/model.onnx --json --svg " + at("graph.svg"));
  ASSERT_EQ(o.status, 0) << o.error;
  const json j = json::parse(o.out);
  EXPECT_EQ(j.at("inputs"), json::parse(R"([{"name": "image", "type": "f32", "dims": ["batch", 1, 8, 8]}])"));
  EXPECT_EQ(j.at("outputs"), json::parse(R"([{"name": "probabilities", "type": "f32", "dims": ["batch", 10]}])"));
  EXPECT_GT(j.at("kernels"), 0);
  EXPECT_LE(j.at("kernels"), 8);
  EXPECT_THAT(content(at("graph.svg")), AllOf(HasSubstr("<svg"), HasSubstr("</svg>")));
  EXPECT_THAT(kiln("show " + digits + "/model.onnx").out,
              AllOf(HasSubstr("== imported"), HasSubstr("== optimized"), HasSubstr("== plan"), HasSubstr("== report")));
}

TEST_F(program, show_counts_a_decode_step) {
  const outcome o = kiln("show " KILN_SOURCE_DIR
                         "/examples/models/scripture/model.onnx --dim batch_size=1 --dim sequence_length=1 "
                         "--dim past_sequence_length=100 --dim total_sequence_length=101 --json");
  ASSERT_EQ(o.status, 0) << o.error;
  const json j = json::parse(o.out);
  EXPECT_LE(j.at("kernels"), 110);
  EXPECT_EQ(j.at("outputs").at(0).at("dims"), json({1, 1, 2048}));
  EXPECT_EQ(j.at("inputs").at(3).at("dims"), json({1, 2, 100, 32}));
}

TEST_F(program, extents_of_1_broadcast_where_symbols_could_not) {
  // every dim is 1: the attention mask has one entry for two positions
  const outcome o = kiln("run " KILN_SOURCE_DIR "/examples/models/scripture/model.onnx");
  EXPECT_EQ(o.status, 0) << o.error;
  EXPECT_THAT(o.out, HasSubstr("logits = f32[1, 1, 2048]"));
}

}  // namespace
}  // namespace kiln::driver
