#pragma once
#include <flatbuffers/idl.h>

#include <fstream>

#include "tensorflow/graph_text.hpp"

// TFLite's files from their JSON, as flatc makes them.
namespace kiln::tensorflow {

/// A parser that has TFLite's description.
inline flatbuffers::Parser& tflite_parser() {
  static flatbuffers::Parser* const parser = [] {
    auto* const p = new flatbuffers::Parser;
    std::ifstream in(KILN_SOURCE_DIR "/include/kiln/tensorflow/impl/tflite/tflite_file.fbs");
    const std::string schema{std::istreambuf_iterator<char>(in), {}};
    EXPECT_TRUE(p->Parse(schema.c_str())) << p->error_;
    return p;
  }();
  return *parser;
}
/// Makes a file of JSON; false where it is none of TFLite's.
inline bool parse_tflite(const std::string& json, std::string& file) {
  flatbuffers::Parser& parser = tflite_parser();
  if (!parser.Parse(json.c_str())) return false;
  file.assign(reinterpret_cast<const char*>(parser.builder_.GetBufferPointer()), parser.builder_.GetSize());
  return true;
}
inline std::string tflite(const std::string& json) {
  std::string file;
  EXPECT_TRUE(parse_tflite(json, file)) << tflite_parser().error_;
  return file;
}
/// A file as JSON.
inline std::string tflite_json(const std::string& file) {
  std::string out;
  EXPECT_TRUE(flatbuffers::GenerateText(tflite_parser(), file.data(), &out));
  return out;
}

template <class T> std::string buffer_of(const std::vector<T>& numbers) {
  std::string out = "{ data: [";
  for (const std::byte b : std::as_bytes(std::span(numbers))) out += std::to_string(std::to_integer<int>(b)) + ",";
  return out + "] },";
}
inline std::string list_of_numbers(const std::vector<int>& v) {
  std::string out = "[";
  for (const int n : v) out += std::to_string(n) + ",";
  return out + "]";
}

/// A tensor of a type and extents; `more` are other fields of it.
inline std::string tensor(const std::string& name, const std::string& type, const std::vector<int>& lens,
                          const std::string& more = {}) {
  return "{ name: '" + name + "', type: '" + type + "', shape: " + list_of_numbers(lens) + ", " + more + "},";
}
inline std::string call(int code, const std::vector<int>& inputs, const std::vector<int>& outputs,
                        const std::string& options = {}) {
  return "{ opcode_index: " + std::to_string(code) + ", inputs: " + list_of_numbers(inputs) +
         ", outputs: " + list_of_numbers(outputs) + ", " + options + "},";
}
inline std::string subgraph(const std::string& tensors, const std::vector<int>& inputs, const std::vector<int>& outputs,
                            const std::string& operators) {
  return "{ tensors: [" + tensors + "], inputs: " + list_of_numbers(inputs) + ", outputs: " + list_of_numbers(outputs) +
         ", operators: [" + operators + "] },";
}
/// `codes` are the operators' names, `buffers` follow buffer 0.
inline std::string model_text(const std::vector<std::string>& codes, const std::string& subgraphs,
                              const std::string& buffers = {}, const std::string& more = {}) {
  std::string operators;
  for (const std::string& c : codes) operators += "{ builtin_code: '" + c + "' },";
  return "{ version: 3, operator_codes: [" + operators + "], subgraphs: [" + subgraphs + "], buffers: [{}, " + buffers +
         "], " + more + " }";
}

}  // namespace kiln::tensorflow
