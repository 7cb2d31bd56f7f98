#include "peer/plugin.hpp"

#include <gmock/gmock.h>

#include "kiln/interface/named_target.hpp"
#include "kiln/interface/onnxruntime/context.hpp"
#include "kiln/quantize/int8.hpp"
#include "kiln/quantize/table.hpp"
#include "peer/compare.hpp"
#include "peer/one_node.hpp"
#include "runtime/compare.hpp"
#include "support/temporary_folder.hpp"

// kiln's execution provider in the stock ONNX Runtime, beside ONNX Runtime's own on the CPU.
namespace kiln::peer {
namespace {

using test::attr;
using test::message;
using test::node;
constexpr int text = 8;

const std::string kilns = "KilnExecutionProvider";
const text_pairs nothing_else{{"session.disable_cpu_ep_fallback", "1"}};

class plugin : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!library()) GTEST_SKIP() << "ONNX Runtime is not in build/peer (cmake/peer.sh)";
  }
  // Both providers' outputs, and how many parts the plugin was given.
  static void compare(const message& model, const std::map<std::string, argument>& given, std::size_t parts,
                      const text_pairs& entries = {}) {
    const session peer(*library(), model.bytes());
    const plugin_host host;
    const plugin_session own(host, model.bytes(), {}, entries);
    expect_equal_outputs(own.run(given), peer.run(given), 1e-5);
    EXPECT_EQ(own.assigned(kilns).second, parts);
  }
};

// y = relu(x w + b) of any number of rows
message dense() {
  std::vector<float> w(12), b{.5f, -.25f, .125f, 0};
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i) * .25f - 1;
  return test::model(test::graph({{node("MatMul", {"x", "w"}, {"p"}), node("Add", {"p", "b"}, {"s"}),
                                   node("Erf", {"s"}, {"e"}), node("Relu", {"e"}, {"y"})},
                                  {test::floats("w", {3, 4}, w), test::floats("b", {4}, b)},
                                  {test::value_info("x", f32, {"rows", 3})},
                                  {test::value_info("y", f32, {"rows", 4})}}));
}

argument rows(std::int64_t n, unsigned seed = 3) { return testing::random_argument({dtype::f32, {n, 3}}, seed); }

TEST_F(plugin, is_registered_again_and_offers_a_device) {
  const plugin_host host;
  EXPECT_EQ(host.devices().size(), 1u);
  host.remove();
  EXPECT_TRUE(host.devices().empty());
  host.add();
  EXPECT_EQ(host.devices().size(), 1u);
}

TEST_F(plugin, takes_migraphx_name_where_it_is_registered_under_it) {
  const plugin_host host("MIGraphXExecutionProvider");
  const plugin_session own(host, dense().bytes(), {}, nothing_else);
  EXPECT_EQ(own.assigned("MIGraphXExecutionProvider").second, 1u);
}

TEST_F(plugin, runs_a_whole_model_of_any_extents) {
  const message model = dense();
  const session peer(*library(), model.bytes());
  const plugin_host host;
  const plugin_session own(host, model.bytes(), {}, nothing_else);
  for (const std::int64_t n : {2, 3, 1, 0, 7}) {
    SCOPED_TRACE(n);
    const std::map<std::string, argument> given{{"x", rows(n)}};
    expect_equal_outputs(own.run(given), peer.run(given), 1e-6);
  }
}

TEST_F(plugin, splits_around_what_kiln_does_not_run) {
  // strings do not cross, so that the nodes between them are left
  const message model = test::model(test::graph(
      {{node("Relu", {"x"}, {"a"}), node("Cast", {"a"}, {"t"}, {attr("to", text)}),
        node("Cast", {"t"}, {"b"}, {attr("to", f32)}), node("Neg", {"b"}, {"c"}), node("Add", {"c", "a"}, {"y"})},
       {},
       {test::value_info("x", f32, {"rows", 3})},
       {test::value_info("y", f32, {"rows", 3}), test::value_info("t", text, {"rows", 3})}}));
  const plugin_host host;
  const plugin_session own(host, model.bytes());
  EXPECT_EQ(own.assigned(kilns), (std::pair<std::size_t, std::size_t>{3, 2}));
}

message branch(std::string_view op, std::string_view out) {
  return test::graph({{node(op, {"h"}, {std::string(out)})}, {}, {}, {test::value_info(out, f32, {"rows", 3})}}, "b");
}

TEST_F(plugin, takes_branches_with_their_node) {
  const message model =
      test::model(test::graph({{node("Neg", {"x"}, {"h"}), node("If", {"c"}, {"y"},
                                                                {test::graph_attr("then_branch", branch("Relu", "p")),
                                                                 test::graph_attr("else_branch", branch("Exp", "q"))})},
                               {},
                               {test::value_info("x", f32, {"rows", 3}), test::value_info("c", boolean, {})},
                               {test::value_info("y", f32, {"rows", 3})}}));
  for (const bool c : {true, false}) {
    argument which(shape{dtype::boolean, {}});
    which.as<bool>()[0] = c;
    compare(model, {{"x", rows(2)}, {"c", which}}, 1, nothing_else);
  }
}

// Models with an operator that kiln lacks, MurmurHash3 of com.microsoft, between others in a body.
std::vector<message> around_a_hash(const std::string& from, const std::string& to) {
  return {node("Relu", {from}, {to + "_r"}), node("Neg", {to + "_r"}, {to + "_n"}),
          node("MurmurHash3", {to + "_n"}, {to + "_h"}, {}, "", microsoft),
          node("Cast", {to + "_h"}, {to + "_f"}, {attr("to", f32)}), node("Mul", {to + "_f", to + "_n"}, {to})};
}
std::vector<message> two_domains() { return {test::opset(17), test::opset(1, microsoft)}; }
message of_rows(const char* name) { return test::value_info(name, f32, {"rows", 3}); }

TEST_F(plugin, takes_parts_of_branches_whose_node_it_leaves) {
  const message hashes = test::graph({around_a_hash("x", "p"), {}, {}, {of_rows("p")}}, "b");
  const message model = test::model(
      test::graph(
          {{node("If", {"c"}, {"y"},
                 {test::graph_attr("then_branch", hashes), test::graph_attr("else_branch", branch("Exp", "q"))}),
            node("Neg", {"x"}, {"h"}), node("Abs", {"h"}, {"z"})},
           {},
           {of_rows("x"), test::value_info("c", boolean, {})},
           {of_rows("y"), of_rows("z")}}),
      two_domains());
  argument yes(shape{dtype::boolean, {}});
  yes.as<bool>()[0] = true;
  compare(model, {{"x", rows(2)}, {"c", yes}}, 3);
}

TEST_F(plugin, takes_parts_of_loops_whose_node_it_leaves) {
  std::vector<message> nodes = around_a_hash("h", "next");
  nodes.push_back(node("Identity", {"go"}, {"again"}));
  const message body = test::graph({nodes,
                                    {},
                                    {test::value_info("i", i64, {}), test::value_info("go", boolean, {}), of_rows("h")},
                                    {test::value_info("again", boolean, {}), of_rows("next")}},
                                   "b");
  const message model =
      test::model(test::graph({{node("Loop", {"n", "", "x"}, {"y"}, {test::graph_attr("body", body)})},
                               {test::integers("n", {}, {3})},
                               {of_rows("x")},
                               {of_rows("y")}}),
                  two_domains());
  compare(model, {{"x", rows(2)}}, 2);
}

TEST_F(plugin, outputs_that_only_a_run_can_size) {
  const message model = test::model(test::graph({{node("Relu", {"x"}, {"r"}), node("NonZero", {"r"}, {"y"})},
                                                 {},
                                                 {test::value_info("x", f32, {"rows", 3})},
                                                 {test::value_info("y", i64, {2, "found"})}}));
  compare(model, {{"x", rows(4)}}, 1, nothing_else);
}

TEST_F(plugin, an_output_bound_to_an_inputs_memory) {
  const message model = test::model(test::graph({{node("CumSum", {"x", "axis"}, {"s"}), node("Add", {"s", "x"}, {"y"})},
                                                 {test::integers("axis", {}, {0})},
                                                 {test::value_info("x", f32, {"rows", 3})},
                                                 {test::value_info("y", f32, {"rows", 3})}}));
  const plugin_host host;
  const plugin_session own(host, model.bytes(), {}, nothing_else);
  const argument x = rows(5);
  const std::vector<argument> expected = own.run({{"x", x}});
  argument shared = x.copy();
  const std::vector<argument> found = own.run({{"x", shared}}, {{"y", shared}});
  expect_equal_outputs(found, expected, 0);
  expect_equal_outputs({shared}, expected, 0);
}

TEST_F(plugin, digits_with_weights_that_onnx_runtime_gives_up) {
  const std::string bytes = read_bytes(std::string(KILN_SOURCE_DIR) + "/examples/models/digits/model.onnx");
  const auto model = std::as_bytes(std::span(bytes));
  const session peer(*library(), model);
  const plugin_host host;
  const plugin_session own(host, model, {}, nothing_else);
  const std::map<std::string, argument> given{
      {own.inputs.front(), testing::random_argument({dtype::f32, {5, 1, 8, 8}}, 1)}};
  expect_equal_outputs(own.run(given), peer.run(given), 1e-5);
}

TEST_F(plugin, fp16_computes_in_halves) {
  const message model = dense();
  const plugin_host host;
  const plugin_session whole(host, model.bytes(), {}, nothing_else);
  const plugin_session half(host, model.bytes(), {{"migraphx_fp16_enable", "1"}}, nothing_else);
  const std::map<std::string, argument> given{{"x", rows(6)}};
  const auto x = whole.run(given).front().to<float>(), y = half.run(given).front().to<float>();
  EXPECT_NE(x, y);
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 4e-3) << i;
}

TEST_F(plugin, int8_computes_by_a_table) {
  const message model = dense();
  const test::temporary_folder folder;
  const std::string table = folder / "table.json";
  const program network = quantize::prepared(onnx::parse_model(model.bytes()).graph);
  bool given_one = false;
  const auto ranges = quantize::calibrate(network, quantize::values_to_quantize(network), eigen_target(), [&] {
    return std::exchange(given_one, true) ? std::optional<quantize::sample>() : quantize::sample{{"x", rows(64)}};
  });
  quantize::write_table(table, ranges, quantize::table_form::json);
  const plugin_host host;
  const plugin_session whole(host, model.bytes(), {}, nothing_else);
  const plugin_session bytes(host, model.bytes(),
                             {{"migraphx_int8_enable", "1"}, {"migraphx_int8_calibration_table_name", table}},
                             nothing_else);
  const std::map<std::string, argument> given{{"x", rows(6)}};
  const auto x = whole.run(given).front().to<float>(), y = bytes.run(given).front().to<float>();
  EXPECT_NE(x, y);
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 3e-2) << i;
}

TEST_F(plugin, a_cache_keeps_what_was_compiled) {
  const message model = dense();
  const test::temporary_folder temporary;
  const std::string folder = temporary / "cache";
  const plugin_host host;
  const std::map<std::string, argument> given{{"x", rows(6)}};
  std::vector<float> first;
  for (int round = 0; round < 2; ++round) {
    const plugin_session own(host, model.bytes(), {{"migraphx_model_cache_dir", folder}}, nothing_else);
    const auto found = own.run(given).front().to<float>();
    if (round == 0) first.assign(found.begin(), found.end());
    EXPECT_EQ(std::vector<float>(found.begin(), found.end()), first);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  }
}

// A model of two partitions in a folder of its own, and that model with contexts.
struct context_files {
  test::temporary_folder folder;
  std::filesystem::path model = folder / "model.onnx", compiled = folder / "model_ctx.onnx";
  std::map<std::string, argument> given{{"x", rows(2)}};
  std::vector<argument> expected;

  context_files(const plugin_host& host, const std::string& embed) {
    std::vector<message> nodes = around_a_hash("x", "y");
    const message m = test::model(test::graph({nodes, {}, {of_rows("x")}, {of_rows("y")}}), two_domains());
    std::ofstream(model, std::ios::binary) << m.str();
    const plugin_session own(host, model, {}, {{"ep.context_enable", "1"}, {"ep.context_embed_mode", embed}});
    expected = own.run(given);
  }
  // Writes the compiled model with other bytes in place of these.
  void replace(const std::string& from, const std::string& to) const {
    std::string bytes = read_bytes(compiled.string());
    ASSERT_EQ(from.size(), to.size());
    for (std::size_t at = 0; (at = bytes.find(from, at)) != bytes.npos; at += to.size())
      if (bytes[at - 1] != ';') bytes.replace(at, to.size(), to);  // what says the compatibility stays
    std::ofstream(compiled, std::ios::binary) << bytes;
  }
};

using ep_context = plugin;

TEST_F(ep_context, contexts_run_without_the_nodes_they_were_made_of) {
  const plugin_host host;
  for (const char* embed : {"0", "1"}) {
    SCOPED_TRACE(embed);
    const context_files files(host, embed);
    const plugin_session again(host, files.compiled);
    expect_equal_outputs(again.run(files.given), files.expected, 0);
    EXPECT_EQ(again.assigned(kilns), (std::pair<std::size_t, std::size_t>{2, 2}));  // two EPContext nodes
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(files.folder), {}), embed[0] == '0' ? 4 : 2);
  }
}

TEST_F(ep_context, contexts_of_others_and_of_other_machines_are_refused) {
  const plugin_host host;
  const auto fault_of = [&](const context_files& files) -> std::string {
    try {
      const plugin_session again(host, files.compiled);
    } catch (const error& e) {
      return e.what();
    }
    return {};
  };
  const context_files files(host, "0");
  const std::string here = named_target("cpu")->binary_format();
  std::string elsewhere = here;
  elsewhere.back() = elsewhere.back() == '1' ? '2' : '1';
  files.replace(here, elsewhere);
  EXPECT_THAT(fault_of(files), ::testing::HasSubstr("hardware_architecture"));
  files.replace(elsewhere, here);
  EXPECT_EQ(fault_of(files), "");
  files.replace(kilns, "OtherExecutionProvids");
  EXPECT_THAT(fault_of(files), ::testing::Not(::testing::HasSubstr("hardware_architecture")));
  EXPECT_NE(fault_of(files), "");  // nobody runs it
}

TEST_F(ep_context, says_whether_a_compiled_model_runs_here) {
  const auto here = named_target("cpu");
  const std::string info = ort::compatibility_info(*here);
  EXPECT_EQ(ort::judge_compatibility(info, *here), ort::compatibility::optimal);
  EXPECT_EQ(ort::judge_compatibility("kiln;0.0.1;other", *here), ort::compatibility::unsupported);
  EXPECT_EQ(ort::judge_compatibility("something else", *here), ort::compatibility::not_applicable);
}

TEST_F(plugin, options_that_are_none_are_errors_of_the_session) {
  const plugin_host host;
  const auto message_of = [&](const text_pairs& options) -> std::string {
    try {
      plugin_session(host, dense().bytes(), options);
    } catch (const error& e) {
      return e.what();
    }
    return {};
  };
  EXPECT_THAT(message_of({{"migraphx_fp61_enable", "1"}}), ::testing::HasSubstr("migraphx_fp16_enable"));
  EXPECT_THAT(message_of({{"migraphx_fp16_enable", "yes"}}), ::testing::HasSubstr("true or false"));
  EXPECT_THAT(message_of({{"migraphx_int8_enable", "1"}}), ::testing::HasSubstr("calibration_table"));
  EXPECT_THAT(message_of({{"fp16_enable", "1"}, {"migraphx_fp16_enable", "0"}}), ::testing::HasSubstr("one value"));
}

}  // namespace
}  // namespace kiln::peer
