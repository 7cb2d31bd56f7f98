#pragma once
#include "kiln/onnx/node.hpp"

// Attributes of nodes, made here or handed to ONNX's importers.
namespace kiln::tensorflow {

inline onnx::attribute number_attribute(std::string name, std::int64_t v) {
  onnx::attribute a;
  a.name = std::move(name);
  a.kind = onnx::attribute_kind::integer;
  a.integer = v;
  return a;
}
inline onnx::attribute numbers_attribute(std::string name, std::vector<std::int64_t> v) {
  onnx::attribute a;
  a.name = std::move(name);
  a.kind = onnx::attribute_kind::integers;
  a.integers = std::move(v);
  return a;
}
inline onnx::attribute real_attribute(std::string name, float v) {
  onnx::attribute a;
  a.name = std::move(name);
  a.kind = onnx::attribute_kind::real;
  a.real = v;
  return a;
}
inline onnx::attribute text_attribute(std::string name, std::string_view v) {
  onnx::attribute a;
  a.name = std::move(name);
  a.kind = onnx::attribute_kind::text;
  a.text = v;
  return a;
}

}  // namespace kiln::tensorflow
