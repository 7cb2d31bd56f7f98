#include "kiln/onnx/export.hpp"
#include "onnx/dynamic_models.hpp"
#include "peer/compare.hpp"

// Control flow, sizes and lists of the run give what ONNX Runtime gives, as imported and as exported.
namespace kiln::peer {
namespace {

class dynamic_peers : public ::testing::TestWithParam<test::dynamic_model> {};

TEST_P(dynamic_peers, agree) {
  const test::dynamic_model& m = GetParam();
  const std::map<std::string, argument> given(m.inputs.begin(), m.inputs.end());
  compare_with_peer(m.bytes.bytes(), ".", {given});
  const auto path = library();
  if (!path) return;
  const program p = onnx::parse_model(m.bytes.bytes()).graph;
  const std::string bytes = onnx::export_model(p);
  const std::vector<argument> expected = compile(p, eigen_target()).run(given);
  const std::span<const std::byte> exported(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
  expect_equal_outputs(session(*path, exported).run(given), expected, 1e-5);
}

std::vector<test::dynamic_model> peers_models() {
  std::vector<test::dynamic_model> out;
  for (test::dynamic_model& m : test::dynamic_models())
    if (m.is_peers) out.push_back(std::move(m));
  return out;
}

INSTANTIATE_TEST_SUITE_P(models, dynamic_peers, ::testing::ValuesIn(peers_models()),
                         [](const auto& i) { return i.param.name; });

}  // namespace
}  // namespace kiln::peer
