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

}  // namespace kiln::tensorflow
