#include "peer/compare.hpp"
#include "runtime/compare.hpp"

namespace kiln::peer {
namespace {

using testing::random_argument;

const std::string models = std::string(KILN_SOURCE_DIR) + "/examples/models/";

TEST(networks, digits_at_several_batch_sizes) {
  const std::string bytes = read_bytes(models + "digits/model.onnx");
  std::vector<std::map<std::string, argument>> runs;
  for (const std::int64_t batch : {1, 3, 64})
    runs.push_back({{"image", random_argument({dtype::f32, {batch, 1, 8, 8}}, 7)}});
  compare_with_peer(std::as_bytes(std::span(bytes)), models + "digits", runs);
}

// A prompt and decode steps, each with a cache of the length it would have there.
TEST(networks, scripture_prompt_and_decode_steps) {
  const std::string folder = models + "scripture", bytes = read_bytes(folder + "/model.onnx");
  const program p = onnx::parse_model(std::as_bytes(std::span(bytes)), folder).graph;
  std::vector<std::map<std::string, argument>> runs;
  for (const auto& [batch, past, fresh] : {std::array<std::int64_t, 3>{1, 0, 9}, {1, 9, 1}, {2, 100, 1}, {3, 17, 4}}) {
    std::map<std::string, argument> inputs;
    unsigned seed = 1;
    const auto& m = p.main();
    for (const value_id v : m.parameters()) {
      const std::string name(m.producer(v).name.view());
      shape s = m.shape_of(v);
      if (s.type == dtype::f32) {
        s.lens[0] = batch;
        s.lens[2] = past;
        inputs[name] = random_argument(s, ++seed);
        continue;
      }
      s.lens = {batch, name == "attention_mask" ? past + fresh : fresh};
      argument ids(s);
      for (std::int64_t i = 0; i < ids.elements(); ++i)
        ids.as<std::int64_t>()[static_cast<std::size_t>(i)] = name == "attention_mask" ? 1
                                                              : name == "position_ids" ? past + i % fresh
                                                                                       : (i * 37 + 11) % 500;
      inputs[name] = std::move(ids);
    }
    runs.push_back(std::move(inputs));
  }
  compare_with_peer(std::as_bytes(std::span(bytes)), folder, runs);
}

}  // namespace
}  // namespace kiln::peer
