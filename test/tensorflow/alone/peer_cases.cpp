// Runs the models that tfjs_cases.mjs or tflite_cases.mjs wrote, and compares what kiln computes of them with what the
// peer did.
//
//     peer_cases FILE PEER CASES
//
// Numbers agree within 2e-5 of the greatest of an output, or what a case states; shapes, types and integers are equal,
// quantized ones as far as the case's steps. tfjs has i32 in the place of i64. There are at least so many cases.
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

// The types of inputs by letter, and of outputs by the peers' names.
struct peer_type {
  std::string_view letter, tfjs, tflite;
  dtype own;
};
constexpr peer_type types[] = {
    {"f", "float32", "FLOAT32", dtype::f32}, {"i", "int32", "INT32", dtype::i32},
    {"b", "bool", "BOOL", dtype::boolean},   {"q", "", "INT8", dtype::i8},
    {"u", "", "UINT8", dtype::u8},           {"s", "", "INT16", dtype::i16},
    {"l", "int32", "INT64", dtype::i64},     {"h", "", "FLOAT16", dtype::f16},
};

argument argument_of(const json& input) {
  const std::string type = input["type"];
  dtype own = dtype::f32;
  for (const peer_type& t : types)
    if (t.letter == type) own = t.own;
  argument out(shape{own, lens_of(input["shape"])});
  std::vector<double> v;
  for (const json& n : input["data"]) v.push_back(n.is_boolean() ? n.get<bool>() : n.get<double>());
  encode(out.get_shape().type, v.data(), out.data(), out.elements());
  return out;
}

// What is wrong with an output; empty where nothing is.
std::string difference(const argument& found, const json& wanted, double tolerance, double steps) {
  if (!(found.get_shape().lens == lens_of(wanted["shape"])))
    return fmt::format("has shape {}, the peer gives {}", to_string(found.get_shape()), wanted["shape"].dump());
  const std::string other_type = wanted["type"];
  const dtype own_type = found.get_shape().type;
  const auto* const row =
      std::find_if(std::begin(types), std::end(types), [&](const peer_type& t) { return t.own == own_type; });
  if (row == std::end(types) || (other_type != row->tfjs && other_type != row->tflite))
    return fmt::format("is of {}, the peer gives {}", to_string(found.get_shape()), other_type);
  const auto own = found.to<double>();
  if (own.size() != wanted["data"].size())
    return fmt::format("has {} elements, the peer gives {}", own.size(), wanted["data"].size());
  double greatest = 0;
  // JSON has no NaN
  const auto number = [](const json& n) { return n.is_null() ? NAN : n.get<double>(); };
  for (const json& n : wanted["data"]) greatest = std::max(greatest, std::abs(number(n)));
  const double most = is_float(own_type) ? tolerance * greatest : steps;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const double other = number(wanted["data"][i]);
    if (std::isnan(own[i]) != std::isnan(other) || std::abs(own[i] - other) > most)
      return fmt::format("is {} at {}, the peer gives {}", own[i], i, other);
  }
  return {};
}

std::string fault_of(const json& wanted) try {
  onnx::imported model;
  if (wanted.contains("file")) {
    model = tensorflow::read_model(wanted["file"]);
  } else {
    const std::string text = wanted["graph"];
    tensorflow::import_options how;
    for (const std::string name : wanted["names"]) how.outputs.push_back(name);
    model = tensorflow::parse_model(std::as_bytes(std::span(text)), how);
  }
  const executable made = compile(std::move(model.graph), eigen_target());
  std::vector<argument> inputs;
  for (const json& i : wanted["inputs"]) inputs.push_back(argument_of(i));
  const std::vector<argument> outputs = made.run(inputs);
  if (outputs.size() != wanted["outputs"].size()) return fmt::format("{} outputs", outputs.size());
  for (std::size_t k = 0; k < outputs.size(); ++k)
    if (const std::string why =
            difference(outputs[k], wanted["outputs"][k], wanted.value("tolerance", 2e-5), wanted.value("steps", 0));
        !why.empty())
      return fmt::format("output {} {}", k, why);
  return {};
} catch (const error& e) {
  return e.what();
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) return fmt::print(stderr, "usage: peer_cases FILE PEER CASES\n"), 2;
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
  fmt::print("{} of {} models give what {}'s do\n", passed, all, words[2]);
  return all < std::stoi(words[3]) || passed != all;
}
