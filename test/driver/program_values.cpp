#include "driver/program.hpp"

// Models, shapes and values that verbs take, and what the program says of them.
namespace kiln::driver {
namespace {

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
  write("x.pb", test::tensor<std::uint8_t>("x", 17, {3}, {0x38, 0xc4, 0x4e}));  // 1, -3, 7
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
  const std::vector<std::vector<std::string>> added = {{"kiln: imported program", "kiln: optimized program"},
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
