#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "kiln/onnx/import.hpp"
#include "onnx/anonymous_memory.hpp"
#include "onnx/model_writer.hpp"
#include "support/temporary_folder.hpp"

namespace kiln::test {
namespace {

class external_weights : public testing::Test {
 protected:
  static message weight(const std::string& name, int type, std::vector<std::int64_t> lens, std::int64_t offset,
                        std::int64_t length) {
    message t;
    t.numbers(1, lens).number(2, type).text(8, name).number(14, 1);
    for (const auto& [key, value] : {std::pair<std::string, std::string>{"location", "weights.bin"},
                                     {"offset", std::to_string(offset)},
                                     {"length", std::to_string(length)}})
      t.add(13, message().text(1, key).text(2, value));
    return t;
  }
  temporary_folder folder_;
};

TEST_F(external_weights, of_two_gigabytes_is_mapped_and_never_copied) {
  if (anonymous_bytes() < 0) GTEST_SKIP() << "this system does not tell anonymous memory";
  constexpr std::int64_t layers = 8, side = 8192, bytes = side * side * 4;
  const auto data = folder_ / "weights.bin";
  std::ofstream(data).close();
  std::filesystem::resize_file(data, layers * bytes);  // without blocks on the disk
  graph_parts parts;
  parts.inputs = {value_info("x0", 1, {1, side})};
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string k = std::to_string(i), next = std::to_string(i + 1);
    parts.initializers.push_back(weight("w" + k, 1, {side, side}, i * bytes, bytes));
    parts.nodes.push_back(node("MatMul", {"x" + k, "w" + k}, {"x" + next}));
  }
  parts.outputs = {value_info("x" + std::to_string(layers))};
  const message m = model(graph(parts));
  const std::int64_t before = anonymous_bytes();
  const auto read = onnx::parse_model(m.bytes(), folder_.path().string());
  EXPECT_LT(anonymous_bytes() - before, 16 << 20);
  EXPECT_GE(read.graph.main().size(), 2 * layers);
}

TEST_F(external_weights, of_a_link_stay_in_the_models_folder) {
  namespace fs = std::filesystem;
  const fs::path models = folder_ / "models", store = folder_ / "store";
  for (const fs::path& f : {models, store}) fs::create_directory(f);
  std::ofstream(store / "data", std::ios::binary) << "\x01\x02";
  fs::create_symlink("../store/data", models / "weights.bin");
  graph_parts parts{{node("Identity", {"w"}, {"y"})}, {weight("w", 3, {2}, 0, 2)}, {}, {value_info("y")}};
  const message m = model(graph(parts));
  try {
    onnx::parse_model(m.bytes(), models.string());
    ADD_FAILURE() << "a link out of the folder was followed";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::malformed);
    EXPECT_NE(std::string(e.what()).find("'weights.bin' is a link"), std::string::npos) << e.what();
  }
  // caches of models keep the model and its data behind links into one folder
  std::ofstream(store / "model", std::ios::binary) << m.str();
  fs::create_symlink("../store/model", models / "model.onnx");
  EXPECT_EQ(onnx::read_model((models / "model.onnx").string()).graph.main().outputs.size(), 1u);
}

TEST_F(external_weights, of_packed_numbers_is_unpacked) {
  std::ofstream(folder_ / "weights.bin", std::ios::binary) << "??\x21\x43";
  graph_parts parts{{node("Identity", {"w"}, {"y"})}, {weight("w", 22, {3}, 2, 2)}, {}, {value_info("y")}};
  const auto p = onnx::parse_model(model(graph(parts)).bytes(), folder_.path().string()).graph;
  const literal& w = p.main().producer(p.main().outputs[0]).constant;
  EXPECT_EQ(w.get_shape(), shape(dtype::i4, {3}));
  EXPECT_EQ(w.to<int>(), (small_vector<int>{1, 2, 3}));
}

}  // namespace
}  // namespace kiln::test
