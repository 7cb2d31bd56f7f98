// A language model from an ONNX file continues prompts token by token, its key-value cache growing by one each time,
// and is checked against the continuations that PyTorch found.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/runtime/executable.hpp"

namespace {

using nlohmann::json;
using ids = std::vector<std::int64_t>;
const std::string folder = "examples/models/scripture/";
json read_json(const std::string& name) { return json::parse(std::ifstream(folder + name)); }

kiln::argument row(const ids& values) {
  return kiln::argument::of<std::int64_t>({1, static_cast<std::int64_t>(values.size())}, values);
}

// The tokens' spellings by id; byte-level BPE writes a space and a newline as these two letters.
std::vector<std::string> spellings() {
  const json vocabulary = read_json("tokenizer.json")["model"]["vocab"];
  std::vector<std::string> out(vocabulary.size());
  for (const auto& [spelling, id] : vocabulary.items()) {
    std::string& to = out.at(id.get<std::size_t>()) = spelling;
    for (const auto& [letter, meant] : {std::pair("\u0120", " "), std::pair("\u010a", "\n")})
      for (std::size_t at; (at = to.find(letter)) != to.npos;) to.replace(at, 2, meant);
  }
  return out;
}

class generator {
 public:
  generator(const kiln::executable& model, const json& decoder)
      : model_(model), inputs_(decoder["inputs"]), outputs_(decoder["outputs"]) {
    const int heads = decoder["num_key_value_heads"], depth = decoder["head_size"];
    for (int layer = 0; layer < decoder["num_hidden_layers"]; ++layer)
      for (const std::string part : {"key_names", "value_names"}) {
        std::string past = inputs_["past_" + part], present = outputs_["present_" + part];
        for (std::string* name : {&past, &present}) name->replace(name->find("%d"), 2, std::to_string(layer));
        feeds_[past] = kiln::argument(kiln::shape(kiln::dtype::f32, {1, heads, 0, depth}));
        past_of_[present] = past;
      }
  }

  /// Feeds tokens behind those fed before; returns the likeliest next one.
  std::int64_t feed(const ids& tokens) {
    ids positions;
    for (std::size_t i = 0; i < tokens.size(); ++i) positions.push_back(length_++);
    feeds_[inputs_["input_ids"]] = row(tokens);
    feeds_[inputs_["position_ids"]] = row(positions);
    feeds_[inputs_["attention_mask"]] = row(ids(static_cast<std::size_t>(length_), 1));
    const std::vector<kiln::argument> made = model_.run(feeds_);
    std::int64_t next = -1;
    for (std::size_t k = 0; k < made.size(); ++k) {
      const std::string& name = model_.outputs()[k].name;
      if (past_of_.contains(name)) feeds_[past_of_[name]] = made[k];
      if (outputs_["logits"] != name) continue;
      const auto last = made[k].as<float>().last(static_cast<std::size_t>(made[k].get_shape().lens.back().value()));
      next = std::max_element(last.begin(), last.end()) - last.begin();
    }
    return next;
  }

 private:
  const kiln::executable& model_;
  json inputs_, outputs_;
  std::map<std::string, kiln::argument> feeds_;
  std::map<std::string, std::string> past_of_;
  std::int64_t length_ = 0;
};

}  // namespace

int main() try {
  const json decoder = read_json("genai_config.json")["model"]["decoder"];
  const std::string file = decoder["filename"];
  const kiln::executable model = kiln::compile(kiln::onnx::read_model(folder + file).graph, kiln::eigen_target());
  const std::vector<std::string> words = spellings();
  int wrong = 0;
  for (const json& golden : read_json("golden.json")) {
    const ids expected = golden["greedy_ids"];
    ids tokens = golden["prompt_ids"];
    generator next(model, decoder);
    std::int64_t token = next.feed(tokens);
    for (tokens.push_back(token); tokens.size() < expected.size(); tokens.push_back(token)) token = next.feed({token});
    for (const std::int64_t id : tokens) fmt::print("{}", words.at(static_cast<std::size_t>(id)));
    fmt::print("\n[{} tokens, {}]\n", tokens.size(), tokens == expected ? "as expected" : "NOT as expected");
    wrong += tokens != expected;
  }
  return wrong ? 1 : 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "scripture: {}\n", e.what());
  return 2;
}
