#pragma once
#include <gmock/gmock.h>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/runtime/executable.hpp"
#include "kiln/tensorflow/import.hpp"
#include "quantize/message_of.hpp"
#include "runtime/compare.hpp"

// Graphs as text, and what they compute.
namespace kiln::tensorflow {

using test::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

inline std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span(s)); }
inline onnx::imported parse(const std::string& text, const import_options& how = {}) {
  return parse_model(bytes_of(text), how);
}
inline std::string fault(const std::string& text, const import_options& how = {}) {
  return message_of([&] { parse(text, how); });
}
inline std::vector<argument> run(const std::string& text, const std::vector<argument>& inputs,
                                 const import_options& how = {}) {
  return compile(parse(text, how).graph, eigen_target()).run(inputs);
}
inline argument floats(const dims& lens, const std::vector<float>& v) {
  return argument::of<float>(lens, std::span<const float>(v));
}
inline argument counted(const dims& lens) {
  argument out(shape{dtype::f32, lens});
  for (std::int64_t i = 0; i < out.elements(); ++i) reinterpret_cast<float*>(out.data())[i] = static_cast<float>(i);
  return out;
}
inline std::vector<double> numbers(const argument& a) {
  const auto v = a.to<double>();
  return {v.begin(), v.end()};
}

inline std::string placeholder(const std::string& name, const std::string& extents,
                               const std::string& type = "DT_FLOAT") {
  std::string dims;
  std::string word;
  for (const char c : extents + " ") {
    if (c != ' ') {
      word += c;
    } else if (!word.empty()) {
      dims += "dim { size: " + word + " } ";
      word.clear();
    }
  }
  return "node { name: '" + name + "' op: 'Placeholder' attr { key: 'dtype' value { type: " + type +
         " } } attr { key: 'shape' value { shape { " + dims + "} } } }\n";
}
inline std::string node(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
                        const std::string& attributes = {}) {
  std::string out = "node { name: '" + name + "' op: '" + op + "'";
  for (const std::string& i : inputs) out += " input: '" + i + "'";
  return out + " " + attributes + " }\n";
}
inline std::string attribute(const std::string& key, const std::string& value) {
  return "attr { key: '" + key + "' value { " + value + " } } ";
}
inline std::string constant(const std::string& name, const std::string& tensor) {
  return node(name, "Const", {}, attribute("value", "tensor { " + tensor + " }"));
}
/// A scalar or list of i32.
inline std::string integers(const std::string& name, const std::string& values, const std::string& extents = "") {
  return constant(name, "dtype: DT_INT32 tensor_shape { " + (extents.empty() ? "" : "dim { size: " + extents + " }") +
                            " } int_val: [" + values + "]");
}
/// An attribute that names a function.
inline std::string function_attribute(const std::string& key, const std::string& name) {
  return attribute(key, "func { name: '" + name + "' }");
}
/// A function of a library; results are pairs of a name and a value.
inline std::string function(const std::string& name, const std::vector<std::string>& inputs,
                            const std::vector<std::pair<std::string, std::string>>& results, const std::string& nodes,
                            const std::string& more = {}) {
  std::string out = "function { signature { name: '" + name + "'";
  for (const std::string& i : inputs) out += " input_arg { name: '" + i + "' type: DT_FLOAT }";
  for (const auto& [result, value] : results) out += " output_arg { name: '" + result + "' type: DT_FLOAT }";
  out += " }\n";
  for (const auto& [result, value] : results) out += "ret { key: '" + result + "' value: '" + value + "' }\n";
  std::string defs = nodes;
  for (std::size_t at = 0; (at = defs.find("node {", at)) != std::string::npos; at += 10)
    defs.replace(at, 4, "node_def");
  return out + defs + more + "}\n";
}
inline std::string library(const std::string& functions) { return "library {\n" + functions + "}\n"; }

}  // namespace kiln::tensorflow
