// Adapters' files are read alike by ONNX Runtime, and mean the same to a model.
#include "generate/tiny_llama.hpp"
#include "peer/onnxruntime.hpp"

#include <gtest/gtest.h>

namespace kiln::peer {
namespace {

using namespace language;
namespace tiny_llama = language::testing::tiny_llama;

TEST(adapters, give_the_same_logits_in_onnxruntime) {
  const auto library = peer::library();
  if (!library) GTEST_SKIP() << "ONNX Runtime is not here";
  const std::string model = tiny_llama::file();
  const auto own = tiny_llama::load(model);
  const tokens prompt{3, 1, 4, 1, 5, 9, 2, 6};
  const std::vector<std::int64_t> ids(prompt.begin(), prompt.end()), ones(prompt.size(), 1);
  const auto n = static_cast<std::int64_t>(ids.size());
  const argument past(shape{dtype::f32, {1, 1, 0, tiny_llama::depth}});
  const std::map<std::string, argument> inputs{{"input_ids", argument::of<std::int64_t>({1, n}, ids)},
                                               {"attention_mask", argument::of<std::int64_t>({1, n}, ones)},
                                               {"past_key_values.0.key", past},
                                               {"past_key_values.0.value", past}};
  std::vector<float> plain;
  for (const std::int64_t rank : {0, 1, 4}) {
    session peer(*library, std::as_bytes(std::span(model)));
    generator g(own);
    adapters all(own);
    if (rank > 0) {
      const auto file = adapter_bytes(tiny_llama::update(rank, 3));
      peer.use_adapter(file);
      all.load(file, "a");
      g.set_active_adapter(all, "a");
    }
    const argument theirs = peer.run(inputs).at(0);
    g.append_tokens(prompt);
    const argument mine = g.logits();
    const auto last = theirs.as<float>().last(tiny_llama::vocabulary);
    for (std::size_t k = 0; k < last.size(); ++k) ASSERT_NEAR(mine.as<float>()[k], last[k], 2e-5) << rank << " " << k;
    const std::vector<float> now(last.begin(), last.end());
    if (rank == 0)
      plain = now;
    else
      EXPECT_NE(now, plain);
  }
}

}  // namespace
}  // namespace kiln::peer
