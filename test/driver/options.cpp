#include "kiln/runtime/options.hpp"

#include "driver/program.hpp"

// The flags that the table of options gives the program.
namespace kiln::driver {
namespace {

class option_flags : public program {
 protected:
  json shown(const std::string& flags) {
    const outcome o = kiln("show " + digits + "/model.onnx --json " + flags);
    EXPECT_EQ(o.status, 0) << flags << ": " << o.error;
    return o.status == 0 ? json::parse(o.out) : json();
  }
  const std::string run_digits = "run " + digits + "/model.onnx ";
};

std::string flag(std::string_view name) {
  std::string out = "--" + std::string(name);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

TEST_F(option_flags, every_verb_that_reads_a_model_has_one_for_each_row) {
  for (const char* verb : {"run", "test", "perf", "show", "verify", "export"}) {
    const std::string help = kiln(std::string(verb) + " --help").out;
    for (const compile_option& row : compile_option_table()) {
      EXPECT_THAT(help, HasSubstr(flag(row.name))) << verb;
      if (row.kind == option_kind::flag) {
        EXPECT_THAT(help, HasSubstr("--no-" + flag(row.name).substr(2))) << verb;
      }
    }
  }
}

TEST_F(option_flags, are_listed) {
  const json j = json::parse(kiln("options --json").out);
  const std::string text = kiln("options").out;
  const auto compare = [&](const json& listed, const auto& table) {
    ASSERT_EQ(listed.size(), table.size());
    for (std::size_t i = 0; i < table.size(); ++i) {
      EXPECT_EQ(listed.at(i).at("name"), table[i].name);
      EXPECT_EQ(listed.at(i).at("field"), table[i].field.view());
      EXPECT_EQ(listed.at(i).at("kind"), to_string(table[i].kind));
      EXPECT_EQ(listed.at(i).at("default"), table[i].default_text());
      EXPECT_EQ(listed.at(i).at("help"), table[i].help);
      EXPECT_THAT(text, HasSubstr(std::string(table[i].help)));
    }
  };
  compare(j.at("compile"), compile_option_table());
  compare(j.at("run"), run_option_table());
  EXPECT_EQ(j.at("compile").at(0).at("most"), 1024);
}

TEST_F(option_flags, reach_the_compilation) {
  const json usual = shown(""), unfused = shown("--no-fuse"), plain = shown("--no-fuse --no-simplify");
  EXPECT_LT(usual.at("kernels"), unfused.at("kernels"));
  EXPECT_LT(unfused.at("passes").size(), usual.at("passes").size());
  EXPECT_LT(plain.at("passes").size(), unfused.at("passes").size());
  EXPECT_EQ(shown("--no-fuse --fuse").at("kernels"), usual.at("kernels")) << "the last one counts";
  EXPECT_EQ(shown("--fuse=false").at("kernels"), unfused.at("kernels"));
  EXPECT_EQ(shown("--verify-passes").at("kernels"), usual.at("kernels"));
  const outcome o = kiln("perf " + digits + "/model.onnx --budget-ms 1 --threads 3 --json");
  ASSERT_EQ(o.status, 0) << o.error;
  EXPECT_EQ(json::parse(o.out).at("threads"), 3);
}

TEST_F(option_flags, tuning_keeps_its_choices_in_the_file_that_is_named) {
  const std::string sizes = "--dim batch=8 --tuning-file " + at("tuned.tsv");
  EXPECT_THAT(shown(sizes).at("remarks").dump(), Not(HasSubstr("tuning:")));
  EXPECT_FALSE(fs::exists(at("tuned.tsv")));
  EXPECT_THAT(shown(sizes + " --tune").at("remarks").dump(), HasSubstr("tuning: program "));
  EXPECT_THAT(content(at("tuned.tsv")), HasSubstr("kiln tuned kernels"));
  EXPECT_THAT(shown(sizes + " --tune --no-tune").at("remarks").dump(), Not(HasSubstr("tuning:")));
  EXPECT_EQ(kiln("verify " + digits + "/model.onnx --tune " + sizes).status, 0);
  expect_refused(run_digits + "--tune --target reference", "found target 'reference'");
}

TEST_F(option_flags, refuse_what_the_table_refuses) {
  expect_refused(run_digits + "--threads many", "--threads: expected a whole number from 0 to 1024, found 'many'");
  expect_refused(run_digits + "--threads 1025", "found '1025'");
  expect_refused(run_digits + "--threads -1", "found '-1'");
  expect_refused(run_digits + "--threads 1 --threads 2", "--threads");
  expect_refused(run_digits + "--threads", "--threads");
  expect_refused(run_digits + "--tuning-file", "--tuning-file");
  expect_refused(run_digits + "--tune=maybe", "maybe");
  expect_refused(run_digits + "--alias present", "--alias: expected NAME=NAME");
  expect_refused(run_digits + "--alias a=b --alias a=c", "found 'a=b,a=c'");
  expect_refused(run_digits + "--alias a=b", "'a'");
  EXPECT_EQ(refusal_in_json(run_digits + "--threads many"), "usage");
}

TEST_F(option_flags, outputs_that_grow_in_place_are_those_that_do_not) {
  const std::string model = KILN_SOURCE_DIR
      "/examples/models/scripture/model.onnx --dim batch_size=1 --dim sequence_length=1 --dim past_sequence_length=9 "
      "--dim total_sequence_length=10";
  std::string once, together = " --alias ";
  for (const char* layer : {"0", "1", "2", "3", "4", "5"})
    for (const char* part : {".key", ".value"}) {
      const std::string pair = std::string("present.") + layer + part + "=past_key_values." + layer + part;
      once += " --alias " + pair;
      together += (together.ends_with(' ') ? "" : ",") + pair;
    }
  const outcome plain = kiln("run " + model), growing = kiln("run " + model + once);
  ASSERT_EQ(growing.status, 0) << growing.error;
  EXPECT_EQ(growing.out, plain.out);
  EXPECT_EQ(kiln("run " + model + together).out, plain.out);
  EXPECT_EQ(kiln("verify " + model + together).status, 0);
  EXPECT_EQ(kiln("perf " + model + once + " --budget-ms 1 --per-kernel").status, 0);
}

}  // namespace
}  // namespace kiln::driver
