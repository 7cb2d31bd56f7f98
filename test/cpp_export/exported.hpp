#pragma once
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "kiln/core/argument.hpp"
#include "kiln/cpp_export/cpp_export.hpp"
#include "kiln/pass/pipeline.hpp"
#include "pass/evaluate.hpp"
#include "support/temporary_folder.hpp"

/// Exported programs in tests: written, compiled and run as a user would.
namespace kiln::test {

inline void write_bytes(const std::filesystem::path& path, const void* data, std::size_t bytes) {
  std::ofstream(path, std::ios::binary).write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
}

/// Compiles an exported project without CMake and runs it on these inputs; empty where the compiler or the program
/// failed. `flags` choose the instruction set and the effort.
inline std::vector<literal> run_exported(const program& optimized, const std::vector<literal>& inputs,
                                         const std::string& flags = "-O1") {
  const temporary_folder folder;
  const cpp_project project = to_cpp(optimized, {.name = "exported", .origin = "a test"});
  for (const auto& file : project.files) write_bytes(folder / file.name, file.text.data(), file.text.size());
  write_bytes(folder / project.weights_name, project.weights.data(), project.weights.size());
  const std::string at = folder.path().string();
  if (std::system(("cd " + at + " && ${CXX:-g++} -std=c++20 -Wall -Wextra -Werror -Wno-psabi " + flags +
                   " main.cpp exported_weights.S -o program")
                      .c_str()) != 0)
    return {};
  std::string command = "cd " + at + " && ./program";
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const std::string name = "in" + std::to_string(k);
    write_bytes(folder / name, inputs[k].bytes(), inputs[k].get_shape().bytes().value());
    command += " " + name;
  }
  const auto& outputs = optimized.main().outputs;
  for (std::size_t k = 0; k < outputs.size(); ++k) command += " out" + std::to_string(k);
  if (std::system(command.c_str()) != 0) return {};
  std::vector<literal> results;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const shape& s = optimized.main().shape_of(outputs[k]);
    std::ifstream file(folder / ("out" + std::to_string(k)), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    if (static_cast<std::int64_t>(bytes.size()) != s.bytes().value()) return {};
    argument a(s);
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(a.data()));
    results.push_back(a.to_literal());
  }
  return results;
}

/// Exports a program whose weights have these values, and compares with what is expected on the other ones.
inline void expect_exported(program p, std::span<const literal> values, std::span<const literal> expected,
                            double tolerance) {
  std::vector<literal> inputs;
  const auto parameters = p.main().parameters();
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    auto& parameter = p.main()[parameters[k].instruction];
    if (!parameter.is_weight) {
      inputs.push_back(values[k]);
      continue;
    }
    parameter.kind = instruction_kind::literal;
    parameter.is_weight = false;
    parameter.constant = values[k];
  }
  optimize(p);
  const std::vector<literal> found = run_exported(p, inputs);
  ASSERT_EQ(found.size(), expected.size()) << "the exported program does not build or run";
  for (std::size_t k = 0; k < found.size(); ++k)
    EXPECT_TRUE(close(found[k], expected[k], tolerance)) << "output " << k << " of the exported program";
}

}  // namespace kiln::test
