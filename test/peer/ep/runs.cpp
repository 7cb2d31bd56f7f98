#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "peer/ep/ep_host.hpp"

namespace kiln::peer {
namespace {

using ep_threads = ep_test;

void share_a_session(const text_pairs& options) {
  const logged_session own(ep_dense(), options, {{"session.disable_cpu_ep_fallback", "1"}});
  std::vector<std::vector<float>> expected;
  for (std::int64_t n = 1; n <= 7; ++n) expected.push_back(floats_of(*own.of, ep_rows(n)));
  ep_lines().clear();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const std::int64_t n = 1 + (i + t) % 7;
        if (floats_of(*own.of, ep_rows(n)) != expected[static_cast<std::size_t>(n - 1)]) ++wrong;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(joined(ep_lines()), "");
}

TEST_F(ep_threads, of_mixed_batches_get_what_one_gets_and_compile_nothing) { share_a_session({}); }
TEST_F(ep_threads, get_the_same_of_programs_for_single_batches) { share_a_session({{"compile_batches", "1,4"}}); }

using ep_profile = ep_test;

TEST_F(ep_profile, kernels_stand_in_the_trace_inside_their_node) {
  const test::temporary_folder folder;
  {
    const plugin_session own(ep_host(), ep_dense().bytes(), {}, {{"profile", (folder / "trace").string()}});
    for (int i = 0; i < 3; ++i) own.run(ep_rows(5));
  }
  ASSERT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  const auto events = nlohmann::json::parse(file_bytes(std::filesystem::directory_iterator(folder)->path()));
  std::vector<std::pair<std::int64_t, std::int64_t>> nodes;
  std::size_t kernels = 0, inside = 0;
  const auto when = [](const nlohmann::json& e) {
    return std::pair(e["ts"].get<std::int64_t>(), e["ts"].get<std::int64_t>() + e["dur"].get<std::int64_t>());
  };
  for (const auto& e : events)
    if (e["cat"] == "Node" && e["name"].get<std::string>().find("kernel_time") != std::string::npos)
      nodes.push_back(when(e));
  for (const auto& e : events) {
    if (e["cat"] != "Kernel" || !e["args"].contains("instruction")) continue;
    ++kernels;
    constexpr std::int64_t slack = 2;  // times are whole microseconds
    const auto [begin, end] = when(e);
    for (const auto& [from, to] : nodes) inside += begin >= from - slack && end <= to + slack;
  }
  EXPECT_GE(kernels, 3u);
  EXPECT_EQ(inside, kernels);
}

}  // namespace
}  // namespace kiln::peer
