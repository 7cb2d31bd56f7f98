#pragma once
#include <nlohmann/json.hpp>

#include "generate/weights/writers.hpp"
#include "onnx/model_writer.hpp"
#include "support/temporary_folder.hpp"

namespace kiln::language::testing {

/// A folder of sentence-transformers. Its model, in ONNX, has as the state of token t at place p: row t of a table,
/// plus p in the first number, plus the type's row.
struct embedding_folder {
  static constexpr std::int64_t vocabulary = 2048, width = 6;
  const test::temporary_folder own;

  static float number(std::int64_t token, std::int64_t k) {
    return static_cast<float>((token * 7 + k * 13) % 29) / 8.0F - 1.0F + static_cast<float>(token % 5 == k);
  }
  static float state(std::int64_t token, std::int64_t place, std::int64_t k) {
    return number(token, k) + (k == 0 ? static_cast<float>(place) : 0.5F);
  }

  explicit embedding_folder(const std::string& mode = "pooling_mode_mean_tokens", bool normalizes = true) {
    std::filesystem::create_directories(own.path() / "onnx");
    std::filesystem::create_directories(own.path() / "1_Pooling");
    nlohmann::json modules = {
        {{"idx", 0}, {"name", "0"}, {"path", ""}, {"type", "sentence_transformers.models.Transformer"}},
        {{"idx", 1}, {"name", "1"}, {"path", "1_Pooling"}, {"type", "sentence_transformers.models.Pooling"}}};
    if (normalizes)
      modules.push_back(
          {{"idx", 2}, {"name", "2"}, {"path", "2_Normalize"}, {"type", "sentence_transformers.models.Normalize"}});
    own.write("modules.json", modules.dump());
    nlohmann::json pooling = {{"word_embedding_dimension", width}, {"pooling_mode_cls_token", false}};
    pooling[mode] = true;
    own.write("1_Pooling/config.json", pooling.dump());
    own.write("sentence_bert_config.json", R"({"max_seq_length": 12, "do_lower_case": false})");
    own.write("onnx/model.onnx", model());
  }

  static std::string model() {
    using namespace kiln::test;
    graph_parts g;
    for (const char* name : {"input_ids", "attention_mask", "token_type_ids", "position_ids"})
      g.inputs.push_back(value_info(name, 7, {"batch_size", "sequence_length"}));
    std::vector<float> table, types(2 * width, 0.5F);
    types[0] = 0;
    for (std::int64_t t = 0; t < vocabulary; ++t)
      for (std::int64_t k = 0; k < width; ++k) table.push_back(number(t, k));
    std::vector<float> first(width, 0);
    first[0] = 1;
    g.initializers.push_back(floats("table", {vocabulary, width}, table));
    g.initializers.push_back(floats("types", {2, width}, types));
    g.initializers.push_back(floats("first", {width}, first));
    g.initializers.push_back(integers("last_axis", {1}, {2}));
    g.nodes.push_back(node("Gather", {"table", "input_ids"}, {"words"}));
    g.nodes.push_back(node("Gather", {"types", "token_type_ids"}, {"of_type"}));
    g.nodes.push_back(node("Cast", {"position_ids"}, {"places"}, {attr("to", 1)}));
    g.nodes.push_back(node("Unsqueeze", {"places", "last_axis"}, {"column"}));
    g.nodes.push_back(node("Mul", {"column", "first"}, {"place"}));
    g.nodes.push_back(node("Cast", {"attention_mask"}, {"mask"}, {attr("to", 1)}));
    g.nodes.push_back(node("Unsqueeze", {"mask", "last_axis"}, {"seen"}));
    g.nodes.push_back(node("Add", {"words", "of_type"}, {"both"}));
    g.nodes.push_back(node("Add", {"both", "place"}, {"all"}));
    g.nodes.push_back(node("Mul", {"all", "seen"}, {"last_hidden_state"}));
    g.outputs.push_back(value_info("last_hidden_state", 1, {"batch_size", "sequence_length", width}));
    return kiln::test::model(graph(g), {opset(17)}).str();
  }
};

}  // namespace kiln::language::testing
