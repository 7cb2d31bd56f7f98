// Runs the graphs that tfjs_cases.mjs wrote, and compares what kiln computes of them with what tfjs did.
//
//     tfjs_cases FILE
//
// Numbers agree within 2e-5 of the greatest of an output; shapes, types and integers are equal. tfjs has no i64.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/runtime/executable.hpp"
#include "kiln/tensorflow/import.hpp"

namespace {

using namespace kiln;
using nlohmann::json;

dims lens_of(const json& extents) {
  dims out;
  for (const std::int64_t n : extents) out.push_back(n);
  return out;
}

argument argument_of(const json& input) {
  const std::string type = input["type"];
  argument out(shape{type == "f" ? dtype::f32 : type == "i" ? dtype::i32 : dtype::boolean, lens_of(input["shape"])});
  std::vector<double> v;
  for (const json& n : input["data"]) v.push_back(n.is_boolean() ? n.get<bool>() : n.get<double>());
  encode(out.get_shape().type, v.data(), out.data(), out.elements());
  return out;
}

// What is wrong with an output; empty where nothing is.
std::string difference(const argument& found, const json& wanted) {
  if (!(found.get_shape().lens == lens_of(wanted["shape"])))
    return fmt::format("has shape {}, tfjs gives {}", to_string(found.get_shape()), wanted["shape"].dump());
  const std::string other_type = wanted["type"];
  const dtype own_type = found.get_shape().type;
  for (const auto& [name, type] :
       {std::pair("float32", dtype::f32), std::pair("int32", dtype::i32), std::pair("bool", dtype::boolean)})
    if (own_type == type && other_type != name)
      return fmt::format("is of {}, tfjs gives {}", to_string(found.get_shape()), other_type);
  const auto own = found.to<double>();
  double greatest = 0;
  // JSON has no NaN
  const auto number = [](const json& n) { return n.is_null() ? NAN : n.get<double>(); };
  for (const json& n : wanted["data"]) greatest = std::max(greatest, std::abs(number(n)));
  const double most = is_float(found.get_shape().type) ? 2e-5 * greatest : 0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const double other = number(wanted["data"][i]);
    if (std::isnan(own[i]) != std::isnan(other) || std::abs(own[i] - other) > most)
      return fmt::format("is {} at {}, tfjs gives {}", own[i], i, other);
  }
  return {};
}

std::string fault_of(const json& wanted) try {
  const std::string text = wanted["graph"];
  tensorflow::import_options how;
  for (const std::string name : wanted["names"]) how.outputs.push_back(name);
  onnx::imported model = tensorflow::parse_model(std::as_bytes(std::span(text)), how);
  const executable made = compile(std::move(model.graph), eigen_target());
  std::vector<argument> inputs;
  for (const json& i : wanted["inputs"]) inputs.push_back(argument_of(i));
  const std::vector<argument> outputs = made.run(inputs);
  if (outputs.size() != wanted["outputs"].size()) return fmt::format("{} outputs", outputs.size());
  for (std::size_t k = 0; k < outputs.size(); ++k)
    if (const std::string why = difference(outputs[k], wanted["outputs"][k]); !why.empty())
      return fmt::format("output {} {}", k, why);
  return {};
} catch (const error& e) {
  return e.what();
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return fmt::print(stderr, "usage: tfjs_cases FILE\n"), 2;
  std::ifstream in(words[1]);
  int passed = 0, all = 0;
  for (std::string line; std::getline(in, line); ++all) {
    const json wanted = json::parse(line);
    const std::string why = fault_of(wanted);
    if (why.empty())
      ++passed;
    else
      fmt::print("{}: {}\n", wanted["name"].get<std::string>(), why);
  }
  fmt::print("{} of {} graphs equal tfjs'\n", passed, all);
  return all < 300 || passed != all;
}
