#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "driver/compare.hpp"
#include "kiln/onnx/tensor.hpp"
#include "onnx/model_writer.hpp"

namespace kiln::driver {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string digits = KILN_SOURCE_DIR "/examples/models/digits";

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class program : public testing::Test {
 protected:
  program() : root_(fs::temp_directory_path() / ("kiln_program_" + std::to_string(::getpid()))) {
    fs::create_directories(root_);
  }
  ~program() override { fs::remove_all(root_); }

  struct outcome {
    int status = -1;
    std::string out, error;
  };
  outcome kiln(const std::string& arguments) {
    const std::string command =
        KILN_PROGRAM " " + arguments + " >" + at("stdout") + " 2>" + at("stderr") + " </dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content(at("stdout")), content(at("stderr"))};
  }
  std::string at(const std::string& name) const { return (root_ / name).string(); }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name, std::ios::binary) << text;
  }
  void expect_refused(const std::string& arguments, const std::string& why) {
    const outcome o = kiln(arguments);
    EXPECT_EQ(o.status, 2) << arguments;
    EXPECT_THAT(o.error, HasSubstr(why)) << arguments;
    EXPECT_THAT(o.out, IsEmpty()) << arguments;
  }
  void write(const std::string& name, const test::message& m) { write(name, m.str()); }
  // What went wrong, as the one object on standard output says it.
  std::string refusal_in_json(const std::string& arguments) {
    const outcome o = kiln(arguments + " --json");
    EXPECT_EQ(o.status, 2) << arguments;
    EXPECT_THAT(o.error, HasSubstr("kiln: error: "));
    if (!json::accept(o.out)) {
      ADD_FAILURE() << arguments << ": not one object: " << o.out;
      return {};
    }
    return json::parse(o.out).at("error").at("code");
  }
  fs::path root_;
};

TEST_F(program, says_what_it_is) {
  EXPECT_THAT(kiln("--version").out, testing::MatchesRegex("kiln [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  const outcome help = kiln("--help");
  EXPECT_EQ(help.status, 0);
  for (const char* verb : {"run", "test", "perf", "show", "verify", "ops"}) {
    EXPECT_THAT(help.out, HasSubstr(verb));
    EXPECT_EQ(kiln(std::string(verb) + " --help").status, 0);
  }
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
  ASSERT_FALSE(j.at("steps").empty());
  EXPECT_GT(j.at("steps").at(0).at("gflops").get<double>(), 0);
  EXPECT_THAT(kiln("perf " + digits + "/model.onnx --budget-ms 1").out, HasSubstr("median_ms "));
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
              AllOf(HasSubstr("== imported"), HasSubstr("== optimised"), HasSubstr("== plan"), HasSubstr("== report")));
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

TEST_F(program, verify_compares_with_the_reference) {
  const outcome o = kiln("verify " + digits + "/model.onnx --dim batch=5 --json");
  EXPECT_EQ(o.status, 0) << o.out << o.error;
  EXPECT_EQ(json::parse(o.out).at("equal"), true);
  const outcome strict = kiln("verify " + digits + "/model.onnx --dim batch=5 --rtol 0 --atol 0");
  EXPECT_EQ(strict.status, 1) << "rounding differs somewhere";
  EXPECT_THAT(strict.out, HasSubstr("first difference: "));
}

TEST_F(program, json_is_one_object_about_errors_too) {
  const std::string model = digits + "/model.onnx";
  EXPECT_EQ(refusal_in_json("run " + at("none.onnx")), "not found");
  EXPECT_EQ(refusal_in_json("show " + model + " --shape image=1,1,8,9"), "shape mismatch");
  EXPECT_EQ(refusal_in_json("perf " + model + " --frobnicate"), "usage");
  EXPECT_EQ(refusal_in_json("test " + at("none")), "not found");
  EXPECT_EQ(refusal_in_json("ops now"), "usage");
  EXPECT_EQ(refusal_in_json("verify"), "usage");
}

TEST_F(program, a_full_device_is_an_error) {
  const std::string model = digits + "/model.onnx";
  const std::string verbs[] = {"ops", "ops --json", "--help", "--version", "run " + model, "show " + model + " --json"};
  for (const std::string& verb : verbs)
    EXPECT_EQ(WEXITSTATUS(std::system((KILN_PROGRAM " " + verb + " >/dev/full 2>" + at("stderr")).c_str())), 2) << verb;
  EXPECT_THAT(content(at("stderr")), HasSubstr("No space left"));
  expect_refused("show " + model + " --svg /dev/full", "/dev/full");
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(program, a_picture_replaces_what_a_link_points_to) {
  write("real.svg", "old");
  fs::create_symlink("real.svg", at("link.svg"));
  EXPECT_EQ(kiln("show " + digits + "/model.onnx --svg " + at("link.svg")).status, 0);
  EXPECT_TRUE(fs::is_symlink(at("link.svg")));
  EXPECT_THAT(content(at("real.svg")), HasSubstr("<svg"));
}

TEST_F(program, refuses_what_is_said_twice_or_never_ends) {
  const std::string model = digits + "/model.onnx";
  expect_refused("run " + model + " --dim batch=1 --dim batch=2", "'batch' is given twice");
  expect_refused("run " + model + " --shape image=1,1,8,", "last comma");
  for (const char* amount : {"nan", "inf", "-1", "1x"})
    expect_refused("perf " + model + " --budget-ms=" + amount, std::string("'") + amount + "'");
  expect_refused("verify " + model + " --rtol nan", "nan");
}

TEST_F(program, a_shape_contradicts_no_declared_number) {
  for (const char* verb : {"run ", "show ", "perf ", "verify "})
    expect_refused(verb + digits + "/model.onnx --shape image=1,2,8,8", "axis 1: expected 1, found 2");
}

TEST_F(program, every_verb_takes_models_whose_shapes_hang_on_values) {
  using namespace test;
  write("case/model.onnx", model(graph({{node("Reshape", {"x", "to"}, {"y"})},
                                        {},
                                        {value_info("x", 1, {2, 3}), value_info("to", 7, {2})},
                                        {value_info("y")}})));
  write("to.pb", integers("to", {2}, {3, 2}));
  const std::string given = " --input to=" + at("to.pb") + " --json";
  for (const char* verb : {"run ", "show ", "perf --budget-ms 1 ", "verify "}) {
    const std::string command = verb + at("case/model.onnx");
    const outcome o = kiln(command + given);
    EXPECT_EQ(o.status, 0) << verb << o.error;
    EXPECT_TRUE(json::accept(o.out));
    // made-up numbers are no shape that six elements have
    if (verb != std::string_view("show ")) expect_refused(command, "(at Reshape_0): expected 1, found 6");
  }
  // a device's kernels wait for the sizes, too
  const outcome crossed = kiln("show " + at("case/model.onnx") + " --target hip:sm_90");
  EXPECT_TRUE(crossed.status == 0 || crossed.error.find("nvrtc") != std::string::npos) << crossed.error;
  const json ran = json::parse(kiln("run " + at("case/model.onnx") + given).out);
  EXPECT_EQ(ran.at("outputs").at(0).at("dims"), json({3, 2}));
}

TEST_F(program, test_binds_files_by_position) {
  using namespace test;
  write("case/model.onnx", model(graph({{node("Reshape", {"x", "to"}, {"r"}), node("Add", {"r", "w"}, {"y"})},
                                        {floats("w", {1}, {10})},
                                        {value_info("w", 1, {1}), value_info("x", 1, {2, 3}), value_info("to", 7, {2})},
                                        {value_info("y")}})));
  write("case/test_data_set_0/input_0.pb", floats("to", {2, 3}, {1, 2, 3, 4, 5, 6}));  // the names mislead
  write("case/test_data_set_0/input_1.pb", integers("w", {2}, {3, 2}));
  write("case/test_data_set_0/output_0.pb", floats("z", {3, 2}, {11, 12, 13, 14, 15, 16}));
  const outcome o = kiln("test " + at("case"));
  EXPECT_EQ(o.status, 0) << o.out << o.error;
  EXPECT_THAT(o.out, HasSubstr("1 passed"));
  fs::remove(root_ / "case/test_data_set_0/input_1.pb");
  EXPECT_THAT(kiln("test " + at("case")).out, HasSubstr("1 input files, but the model takes 2: x, to"));
}

TEST_F(program, reads_prints_and_writes_narrow_types) {
  using namespace test;
  write(
      "model.onnx",
      model(graph({{node("Cast", {"x"}, {"y"}, {attr("to", 22)})}, {}, {value_info("x", 17, {3})}, {value_info("y")}}),
            {opset(21)}));
  write("x.pb", tensor<std::uint8_t>("x", 17, {3}, {0x38, 0xc4, 0x4e}));  // 1, -3, 7
  for (const char* target : {"reference", "eigen"}) {
    const outcome o = kiln("run " + at("model.onnx") + " --input x=" + at("x.pb") + " --output-dir " + at("out") +
                           " --target " + target);
    EXPECT_THAT(o.out, HasSubstr("i4[3] {1, -3, 7}")) << o.error;
    EXPECT_EQ(onnx::read_tensor(at("out/output_0.pb")).value.to<int>(), (small_vector<int>{1, -3, 7}));
  }
}

TEST_F(program, verify_takes_extents_of_1_that_broadcast) {
  const outcome o = kiln("verify " KILN_SOURCE_DIR "/examples/models/scripture/model.onnx --json");
  EXPECT_EQ(o.status, 0) << o.out << o.error;
}

TEST_F(program, an_input_replaces_a_default) {
  using namespace test;
  write("model.onnx", model(graph({{node("Add", {"x", "w"}, {"y"})},
                                   {floats("w", {2}, {10, 20})},
                                   {value_info("x", 1, {2}), value_info("w", 1, {2})},
                                   {value_info("y")}})));
  write("x.pb", floats("x", {2}, {1, 2}));
  write("w.pb", floats("w", {2}, {3, 4}));
  const std::string command = "run " + at("model.onnx") + " --input x=" + at("x.pb");
  EXPECT_THAT(kiln(command).out, HasSubstr("{11, 22}"));
  EXPECT_THAT(kiln(command + " --input w=" + at("w.pb")).out, HasSubstr("{4, 6}"));
}

TEST_F(program, a_mean_over_padding_alone_is_zero_on_every_target) {
  using namespace test;
  // as ONNX Runtime has it; a dilated window of two steps over the only element
  write("model.onnx", model(graph({{node("AveragePool", {"x"}, {"y"},
                                         {attr("kernel_shape", std::vector<std::int64_t>{2}),
                                          attr("pads", std::vector<std::int64_t>{1, 1}),
                                          attr("dilations", std::vector<std::int64_t>{2})})},
                                   {},
                                   {value_info("x", 1, {1, 1, 1})},
                                   {value_info("y")}}),
                            {opset(19)}));
  for (const char* target : {"reference", "eigen"})
    EXPECT_THAT(kiln("run " + at("model.onnx") + " --target " + target).out, HasSubstr("{0}")) << target;
}

TEST_F(program, a_newer_operator_set_stands_in_the_report) {
  using namespace test;
  write("model.onnx",
        model(graph({{node("Relu", {"x"}, {"y"})}, {}, {value_info("x", 1, {2})}, {value_info("y")}}), {opset(99)}));
  EXPECT_THAT(json::parse(kiln("show " + at("model.onnx") + " --json").out).at("remarks").dump(),
              HasSubstr("operator set 99"));
}

TEST_F(program, perf_times_a_cache_that_grows_in_place) {
  const std::string model = "perf " KILN_SOURCE_DIR
                            "/examples/models/scripture/model.onnx --dim batch_size=1 --dim sequence_length=1 "
                            "--dim past_sequence_length=9 --dim total_sequence_length=10 --budget-ms 1 --per-kernel "
                            "--json";
  std::string aliases;
  for (const char* layer : {"0", "1", "2", "3", "4", "5"})
    for (const char* part : {".key", ".value"})
      aliases += std::string(" --alias present.") + layer + part + "=past_key_values." + layer + part;
  const outcome plain = kiln(model), growing = kiln(model + aliases);
  ASSERT_EQ(growing.status, 0) << growing.error;
  EXPECT_LE(json::parse(growing.out).at("steps").size() + 12, json::parse(plain.out).at("steps").size());
  EXPECT_EQ(kiln(model + " --alias present.0.key=input_ids").status, 2);
}

TEST_F(program, ops_lists_the_registry) {
  const json j = json::parse(kiln("ops --json").out);
  bool found = false;
  for (const json& op : j.at("ops"))
    if (op.at("name") == "leaky_relu") {
      found = true;
      EXPECT_EQ(op.at("kind"), "pointwise");
      EXPECT_THAT(op.at("attributes").get<std::string>(), HasSubstr("alpha"));
    } else if (op.at("name") == "gather") {
      EXPECT_THAT(op.at("types").dump(), AllOf(HasSubstr("f8e5m2"), HasSubstr("u2")));
    }
  EXPECT_TRUE(found);
  EXPECT_THAT(kiln("ops").out, HasSubstr("convolution"));
}

TEST_F(program, logs_only_where_asked) {
  const std::string command = "run " + digits + "/model.onnx --json";
  EXPECT_THAT(kiln(command).error, IsEmpty());
  // by level, what it adds: graph, what each pass changed, plan, the kernels' source, timings
  const std::vector<std::vector<std::string>> added = {{"kiln: imported program", "kiln: optimised program"},
                                                       {"kiln: pass fuse_contraction"},
                                                       {"kiln: plan\n"},
                                                       {"kiln: source\n", "is operand"},
                                                       {"kiln: report\n", " ms "}};
  for (std::size_t level = 1; level <= added.size(); ++level) {
    ::setenv("KILN_DEBUG", std::to_string(level).c_str(), 1);
    const outcome o = kiln(command);
    ::unsetenv("KILN_DEBUG");
    EXPECT_TRUE(json::accept(o.out));
    for (std::size_t of = 1; of <= added.size(); ++of) {
      if (of > level) {
        EXPECT_THAT(o.error, Not(HasSubstr(added[of - 1].front()))) << level;
        continue;
      }
      for (const std::string& words : added[of - 1]) EXPECT_THAT(o.error, HasSubstr(words)) << level;
    }
  }
}

}  // namespace
}  // namespace kiln::driver
