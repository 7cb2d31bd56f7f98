#include <dlfcn.h>

#include <atomic>
#include <thread>

#include "kiln/interface/onnxruntime/abi_device.hpp"
#include "peer/ep/ep_host.hpp"

// Sessions on a GPU, with the one of tests in its place: its memory can't be touched from outside, and nothing is
// computed in a stream before somebody waits for it.
namespace kiln::peer {
namespace {

namespace more {
constexpr ort::slot<48, OrtStatus*(OrtAllocator*, const std::int64_t*, std::size_t, int, OrtValue**)> make_tensor;
constexpr ort::slot<131, OrtStatus*(const OrtSession*, const OrtMemoryInfo*, OrtAllocator**)> make_allocator;
constexpr ort::slot<132, void(OrtAllocator*)> release_allocator;
constexpr ort::slot<386,
                    OrtStatus*(const OrtEnv*, const OrtValue* const*, OrtValue* const*, OrtSyncStream*, std::size_t)>
    copy_tensors;
}  // namespace more

const std::string& plugin_path() {
  static const std::string path = KILN_BINARY_DIR "/test/libkiln_onnxruntime_ep_fake_gpu.so";
  return path;
}

// Sessions get the GPU alone.
const plugin_host& host() {
  static const auto* const out = [] {
    auto* const made = new plugin_host("KilnExecutionProvider", plugin_path());
    made->only = ort::hardware::gpu;
    return made;
  }();
  return *out;
}

struct gpu_use {
  std::size_t bytes = 0, copies = 0, streams = 0;
};
gpu_use use() {
  static const auto ask = reinterpret_cast<void (*)(std::size_t*, std::size_t*, std::size_t*)>(
      dlsym(dlopen(plugin_path().c_str(), RTLD_NOW | RTLD_LOCAL), "kiln_onnxruntime_fake_gpu"));
  gpu_use out;
  ask(&out.bytes, &out.copies, &out.streams);
  return out;
}

class ep_gpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!library()) GTEST_SKIP() << "ONNX Runtime is not in build/peer (cmake/peer.sh)";
    host();
  }
  static std::vector<float> expected(const std::map<std::string, argument>& given) {
    return floats_of(plugin_session(host(), ep_dense().bytes(), {{"target", "ref"}}), given);
  }
};

// y = relu(x w), z = If(c) y + 1 else y, u = erf(z).
message with_choice() {
  const auto branch = [](const char* name, const message& body, const std::vector<message>& constants) {
    return test::graph({{body}, constants, {}, {test::value_info(name, f32, {"rows", 4})}});
  };
  const message yes = branch("a", test::node("Add", {"y", "one"}, {"a"}), {test::floats("one", {1}, {1})});
  const message no = branch("b", test::node("Identity", {"y"}, {"b"}), {});
  constexpr int boolean = 9;
  return test::model(test::graph(
      {{test::node("MatMul", {"x", "w"}, {"p"}), test::node("Relu", {"p"}, {"y"}),
        test::node("If", {"c"}, {"z"}, {test::graph_attr("then_branch", yes), test::graph_attr("else_branch", no)}),
        test::node("Erf", {"z"}, {"u"})},
       {test::floats("w", {3, 4}, std::vector<float>(12, .25f))},
       {test::value_info("x", f32, {"rows", 3}), test::value_info("c", boolean, {1})},
       {test::value_info("u", f32, {"rows", 4})}}));
}

TEST_F(ep_gpu, is_offered_beside_the_processor) {
  EXPECT_EQ(host().devices().size(), 1u);
  EXPECT_EQ(host().devices(ort::hardware::cpu).size(), 1u);
}

TEST_F(ep_gpu, runs_a_session_with_tensors_in_its_memory) {
  const auto given = ep_rows(5);
  const std::size_t before = use().copies;
  const plugin_session own(host(), ep_dense().bytes(), {}, {{"session.disable_cpu_ep_fallback", "1"}});
  EXPECT_EQ(floats_of(own, given), expected(given));
  EXPECT_GT(use().copies, before);
  EXPECT_GT(use().bytes, 0u);
  for (std::int64_t n = 1; n <= 4; ++n) EXPECT_EQ(floats_of(own, ep_rows(n)), expected(ep_rows(n)));
}

TEST_F(ep_gpu, gives_its_memory_back) {
  {
    const plugin_session own(host(), ep_dense().bytes());
    floats_of(own, ep_rows(3));
    EXPECT_GT(use().streams, 0u);
  }
  EXPECT_EQ(use().streams, 0u);
}

TEST_F(ep_gpu, leaves_target_cpu_in_the_hosts_memory) {
  const std::size_t before = use().copies;
  const plugin_session own(host(), ep_dense().bytes(), {{"target", "cpu"}}, {{"session.disable_cpu_ep_fallback", "1"}});
  EXPECT_EQ(own.run(ep_rows(2)).size(), 1u);
  EXPECT_EQ(use().copies, before);
}

TEST_F(ep_gpu, copies_between_its_nodes_and_those_of_others) {
  const plugin_session own(host(), with_choice().bytes(), {{"cpu_control_flow", "0"}});
  const plugin_session plain(host(), with_choice().bytes(), {{"target", "ref"}});
  EXPECT_EQ(own.assigned("KilnExecutionProvider").second, 2u);
  for (const bool c : {false, true}) {
    auto given = ep_rows(3);
    bool value[] = {c};
    given["c"] = argument({dtype::boolean, {1}}, value).copy();
    EXPECT_EQ(floats_of(own, given), floats_of(plain, given));
  }
}

TEST_F(ep_gpu, takes_and_gives_tensors_that_lie_on_it) {
  const plugin_session own(host(), ep_dense().bytes());
  const ort::host& api = host().runtime;
  auto* const memory = api.get<OrtMemoryInfo*>(ort::api::create_memory_info, "kiln", ort::hardware::gpu, 0xFA4Eu,
                                               std::int32_t{0}, ort::memory_type::of_device, std::size_t{0}, 0);
  auto* const there = api.get<OrtAllocator*>(more::make_allocator, own.handle(), memory);
  auto* const cpu = api.get<OrtAllocator*>(ort::api::default_allocator);
  const std::int64_t in[] = {5, 3}, out[] = {5, 4};
  const auto tensor = [&](OrtAllocator* with, const std::int64_t* extents) {
    return api.get<OrtValue*>(more::make_tensor, with, extents, std::size_t{2}, 1);
  };
  OrtValue *host_x = tensor(cpu, in), *x = tensor(there, in), *y = tensor(there, out), *host_y = tensor(cpu, out);
  const auto given = ep_rows(5);
  std::size_t before = use().copies;
  floats_of(own, given);
  const std::size_t of_host_tensors = use().copies - before;
  std::memcpy(api.get<void*>(ort::api::tensor_data, host_x), given.at("x").data(), 60);
  api.call(more::copy_tensors, host().env, &host_x, &x, nullptr, 1);
  before = use().copies;
  const char *x_name = "x", *y_name = "y";
  api.call(ort::api::run, own.handle(), nullptr, &x_name, &x, 1, &y_name, 1, &y);
  const std::size_t within = use().copies - before;
  api.call(more::copy_tensors, host().env, &y, &host_y, nullptr, 1);
  const auto* const got = static_cast<const float*>(api.get<void*>(ort::api::tensor_data, host_y));
  EXPECT_EQ(std::vector<float>(got, got + 20), expected(given));
  EXPECT_EQ(within, of_host_tensors - 2);  // none for the session's input and output
  for (OrtValue* v : {host_x, x, y, host_y}) api.call(ort::api::release_value, v);
  api.call(more::release_allocator, there);
  api.call(ort::api::release_memory_info, memory);
}

TEST_F(ep_gpu, keeps_within_the_memory_limit) {
  const plugin_session own(host(), ep_dense().bytes(), {{"migraphx_mem_limit", "65536"}});
  EXPECT_EQ(floats_of(own, ep_rows(5)), expected(ep_rows(5)));
  EXPECT_THROW(floats_of(own, ep_rows(20000)), error);
  EXPECT_EQ(floats_of(own, ep_rows(6)), expected(ep_rows(6)));
}

TEST_F(ep_gpu, serves_threads_at_once) {
  const plugin_session own(host(), ep_dense().bytes());
  std::vector<std::vector<float>> wanted;
  for (std::int64_t n = 1; n <= 7; ++n) wanted.push_back(expected(ep_rows(n)));
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 40; ++i) {
        const std::int64_t n = 1 + (i + t) % 7;
        if (floats_of(own, ep_rows(n)) != wanted[static_cast<std::size_t>(n - 1)]) ++wrong;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(ep_gpu, of_another_number_is_an_error) {
  try {
    const plugin_session own(host(), ep_dense().bytes(), {{"device_id", "3"}});
    FAIL();
  } catch (const error& e) {
    EXPECT_THAT(e.what(),
                ::testing::HasSubstr("device_id is one of the session's GPUs: the first of them: expected 0, found 3"));
  }
}

}  // namespace
}  // namespace kiln::peer
