#pragma once
#include <gmock/gmock.h>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/backend/reference/reference_target.hpp"
#include "kiln/core/object.hpp"
#include "kiln/onnx/export.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/runtime/executable.hpp"
#include "onnx/model_writer.hpp"

namespace kiln::test {

/// Imports a model, compiles it for every target and runs it: what only a run decides is decided there.
inline std::vector<argument> run_on_targets(const message& m, const std::vector<argument>& inputs) {
  std::vector<argument> first;
  const reference_target reference;
  const eigen_target eigen;
  for (const target* t : std::initializer_list<const target*>{&reference, &eigen}) {
    const executable e = compile(onnx::parse_model(m.bytes()).graph, *t);
    std::vector<argument> out = e.run(inputs);
    if (first.empty()) {
      first = std::move(out);
      continue;
    }
    for (std::size_t k = 0; k < out.size(); ++k) EXPECT_TRUE(equal_values(out[k], first[k])) << t->name() << " " << k;
  }
  return first;
}

/// The same; written as ONNX and read again it gives the same.
inline std::vector<argument> run_model(const message& m, const std::vector<argument>& inputs) {
  std::vector<argument> first = run_on_targets(m, inputs);
  const reference_target reference;
  const std::string exported = onnx::export_model(onnx::parse_model(m.bytes()).graph);
  const auto bytes = std::as_bytes(std::span(exported.data(), exported.size()));
  const std::vector<argument> again = compile(onnx::parse_model(bytes).graph, reference).run(inputs);
  for (std::size_t k = 0; k < again.size(); ++k) EXPECT_TRUE(equal_values(again[k], first[k])) << "exported " << k;
  return first;
}

inline argument reals(const dims& lens, const std::vector<float>& v) {
  return argument::of<float>(lens, std::span<const float>(v));
}
inline argument whole(const dims& lens, const std::vector<std::int64_t>& v) {
  return argument::of<std::int64_t>(lens, std::span<const std::int64_t>(v));
}
inline argument truth(bool v) { return argument::of<bool>({}, std::span<const bool>(&v, 1)); }
inline argument texts(const dims& lens, const strings& v) { return string_argument(lens, v); }

inline std::vector<float> floats_of(const argument& a) {
  const auto v = a.to<float>();
  return {v.begin(), v.end()};
}
inline std::vector<std::int64_t> lens_of(const argument& a) {
  const ints lens = to_ints(a.get_shape().lens);
  return {lens.begin(), lens.end()};
}

inline message string_tensor(std::string_view name, const std::vector<std::int64_t>& lens, const strings& values) {
  message t;
  t.numbers(1, lens).number(2, 8).text(8, name);
  for (const auto& v : values) t.text(6, v);
  return t;
}
inline message strings_attr(std::string_view name, const strings& values) {
  message a = attribute(name, 8);
  for (const auto& v : values) a.text(9, v);
  return a;
}
/// A value_info of a sequence or optional of tensors; field 4 is a sequence, 9 an optional.
inline message holder_info(std::string_view name, int field, int type, const std::vector<dim>& lens) {
  message shape;
  for (const dim& d : lens)
    shape.add(1, d.name.empty() && d.value < 0 ? message()
                 : d.name.empty()              ? message().number(1, d.value)
                                               : message().text(2, d.name));
  const message tensor_type = message().add(1, message().number(1, type).add(2, shape));
  return message().text(1, name).add(2, message().add(field, message().add(1, tensor_type)));
}

/// A model of these nodes at a version of ai.onnx.
inline message model_of(const graph_parts& parts, std::int64_t version = 17) {
  return model(graph(parts), {opset(version), opset(3, "ai.onnx.ml")});
}

inline std::string failure(const message& m, const std::vector<argument>& inputs) {
  try {
    run_model(m, inputs);
  } catch (const error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace kiln::test
