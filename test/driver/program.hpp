#pragma once
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "driver/compare.hpp"
#include "kiln/onnx/tensor.hpp"
#include "onnx/model_writer.hpp"
#include "support/temporary_folder.hpp"

namespace kiln::driver {
namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

inline const std::string digits = KILN_SOURCE_DIR "/examples/models/digits";

inline std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class program : public testing::Test {
 protected:
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
  void write(const std::string& name, const std::string& text) { root_.write(name, text); }
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
  test::temporary_folder root_;
};

}  // namespace kiln::driver
