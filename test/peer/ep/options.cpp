#include <dlfcn.h>

#include <atomic>

#include "kiln/interface/onnxruntime/session_settings.hpp"
#include "peer/ep/ep_host.hpp"

namespace kiln::peer {
namespace {

using test::node;
using ::testing::HasSubstr;
using ::testing::Not;
using ep_options = ep_test;

TEST_F(ep_options, a_session_takes_every_name_of_the_table) {
  for (const ort::provider_option& o : ort::provider_option_table()) {
    EXPECT_EQ(ep_fault(ep_dense(), {{std::string(o.name), o.default_text()}}), "") << o.name;
    for (const std::string_view name : o.also)
      EXPECT_EQ(ep_fault(ep_dense(), {{std::string(name), o.default_text()}}), "") << name;
  }
  EXPECT_THAT(ep_fault(ep_dense(), {{"migraphx_fp61_enable", "1"}}), HasSubstr("migraphx_fp16_enable"));
}

TEST_F(ep_options, every_spelling_of_a_precision_changes_results_and_the_environment_comes_before) {
  const plugin_session whole(ep_host(), ep_dense().bytes());
  const auto exact = floats_of(whole, ep_rows(6));
  for (const char* name : {"migraphx_fp16_enable", "fp16_enable", "trt_fp16_enable", "migx_fp16_enable",
                           "migraphx_bf16_enable", "bf16_enable"})
    for (const char* yes : {"1", "true", "True"}) {
      const plugin_session half(ep_host(), ep_dense().bytes(), {{name, yes}});
      EXPECT_NE(floats_of(half, ep_rows(6)), exact) << name;
      const plugin_session off(ep_host(), ep_dense().bytes(), {{name, yes[0] == '1' ? "0" : "False"}});
      EXPECT_EQ(floats_of(off, ep_rows(6)), exact) << name;
    }
  const variable off("ORT_MIGRAPHX_FP16_ENABLE", "0");
  const plugin_session by_environment(ep_host(), ep_dense().bytes(), {{"fp16_enable", "1"}});
  EXPECT_EQ(floats_of(by_environment, ep_rows(6)), exact);
}

// x of 256 columns times weights of 256 KiB
message wide() {
  return test::model(
      test::graph({{node("MatMul", {"x", "w"}, {"p"}), node("Relu", {"p"}, {"q"}), node("MatMul", {"q", "w"}, {"y"})},
                   {test::floats("w", {256, 256}, std::vector<float>(65536, .01f))},
                   {test::value_info("x", f32, {"rows", 256})},
                   {test::value_info("y", f32, {"rows", 256})}}));
}
std::map<std::string, argument> wide_rows(std::int64_t n) {
  return {{"x", testing::random_argument({dtype::f32, {n, 256}}, 5)}};
}

TEST_F(ep_options, a_memory_limit_stops_a_session_or_a_run_with_the_numbers) {
  EXPECT_THAT(ep_fault(wide(), {{"migraphx_mem_limit", "65536"}}),
              AllOf(HasSubstr("at most 65536 bytes"), HasSubstr("are asked for")));
  const plugin_session enough(ep_host(), wide().bytes(), {{"migx_mem_limit", "8000000"}});
  const plugin_session none(ep_host(), wide().bytes(), {{"migraphx_mem_limit", "18446744073709551615"}});
  EXPECT_EQ(floats_of(enough, wide_rows(4)), floats_of(none, wide_rows(4)));
  try {
    enough.run(wide_rows(20000));  // the value between takes 20 MB
    FAIL() << "a run beyond the limit";
  } catch (const error& e) {
    EXPECT_THAT(e.what(), HasSubstr("at most 8000000 bytes"));
  }
  EXPECT_EQ(floats_of(enough, wide_rows(4)), floats_of(none, wide_rows(4)));
}

std::atomic<int> allocated, freed, emptied;
void* count_alloc(std::size_t bytes) {
  ++allocated;
  return std::malloc(bytes);
}
void count_free(void* memory) {
  ++freed;
  std::free(memory);
}
void count_emptied() { ++emptied; }
template <class Function> std::string address_of(Function* f) {
  return std::to_string(reinterpret_cast<std::uintptr_t>(f));
}

TEST_F(ep_options, an_allocator_of_the_caller_serves_weights_and_workspaces) {
  allocated = freed = emptied = 0;
  {
    const plugin_session own(ep_host(), wide().bytes(),
                             {{"migraphx_external_alloc", address_of(&count_alloc)},
                              {"migraphx_external_free", address_of(&count_free)},
                              {"migraphx_external_empty_cache", address_of(&count_emptied)}});
    const int of_weights = allocated;
    EXPECT_GT(of_weights, 0);
    const plugin_session plain(ep_host(), wide().bytes());
    EXPECT_EQ(floats_of(own, wide_rows(4)), floats_of(plain, wide_rows(4)));
    const int with_workspace = allocated;
    EXPECT_GT(with_workspace, of_weights);
    own.run(wide_rows(4));
    EXPECT_EQ(allocated, with_workspace);  // a run of the same extents allocates nothing
    emptied = 0;
  }
  EXPECT_EQ(allocated, freed);
  EXPECT_GT(emptied, 0);
  EXPECT_THAT(ep_fault(wide(), {{"migraphx_external_alloc", "4096"}}), HasSubstr("come together"));
}

TEST_F(ep_options, memory_grows_by_powers_of_two_or_as_requested) {
  const auto taken = [](ort::arena_growth growth, std::size_t bytes) {
    ort::provider_options o;
    o.arena = growth, o.mem_limit = 1'000'000'000;
    const auto source = ort::memory_of(o);
    const memory_scope scope(source);
    const buffer kept = buffer::allocate(bytes);
    return source->bytes();
  };
  EXPECT_EQ(taken(ort::arena_growth::next_power_of_two, 5 << 20), 8u << 20);
  EXPECT_LT(taken(ort::arena_growth::same_as_requested, 5 << 20), (5u << 20) + 4096);
}

TEST_F(ep_options, a_run_that_fits_its_limit_is_not_refused_for_the_next_power_of_two) {
  const auto runs_within = [&](const char* growth, std::size_t limit) {
    const plugin_session own(
        ep_host(), wide().bytes(),
        {{"migraphx_arena_extend_strategy", growth}, {"migraphx_mem_limit", std::to_string(limit)}});
    try {
      own.run(wide_rows(1100));  // 1.1 MB between the products
      return true;
    } catch (const error&) {
      return false;
    }
  };
  std::size_t least = 1 << 20;
  while (!runs_within("kSameAsRequested", least)) least += 64 << 10;
  EXPECT_GT(least, std::size_t{1} << 20);
  EXPECT_LT(least, std::size_t{4} << 20);
  EXPECT_TRUE(runs_within("kNextPowerOfTwo", least)) << least;
}

TEST_F(ep_options, batches_are_compiled_ahead_and_others_run_too) {
  const plugin_session plain(ep_host(), wide().bytes());
  const logged_session own(wide(), {{"migraphx_compile_batches", "1,4"}});
  EXPECT_THAT(own.log, HasSubstr("of rows = 1: compiled"));
  EXPECT_THAT(own.log, HasSubstr("of rows = 4: compiled"));
  for (const std::int64_t n : {1, 2, 4, 5, 1}) {
    SCOPED_TRACE(n);
    expect_equal_outputs(own.of->run(wide_rows(n)), plain.run(wide_rows(n)), 1e-6);
  }
  const logged_session three(wide(), {{"max_dynamic_batch", "16"}, {"migraphx_max_compiled_models", "3"}});
  for (const char* n : {"1", "4", "16"})
    EXPECT_THAT(three.log, HasSubstr("of rows = " + std::string(n) + ": compiled"));
  logged_session lazy(wide(), {{"compile_batches", "3"}, {"precompile_at_load", "0"}});
  EXPECT_THAT(lazy.log, Not(HasSubstr("rows = 3")));
  ep_lines().clear();
  expect_equal_outputs(lazy.of->run(wide_rows(3)), plain.run(wide_rows(3)), 1e-6);
  EXPECT_THAT(joined(ep_lines()), HasSubstr("of rows = 3: compiled"));
  ep_lines().clear();
  lazy.of->run(wide_rows(3));
  EXPECT_EQ(joined(ep_lines()), "");
}

TEST_F(ep_options, programs_of_a_cache_are_told_apart_by_what_they_are) {
  const test::temporary_folder folder;
  const text_pairs cached{{"cache_dir", folder.path().string()}};
  const message a = ep_dense(), b = ep_dense(.5f);
  const logged_session first(a, cached);
  const auto of_a = std::filesystem::directory_iterator(folder)->path();
  const logged_session second(b, cached);
  auto of_b = of_a;
  for (const auto& e : std::filesystem::directory_iterator(folder))
    if (e.path() != of_a) of_b = e.path();
  ASSERT_NE(of_a, of_b);
  std::filesystem::rename(of_a, folder / "other");
  std::filesystem::rename(of_b, of_a);
  std::filesystem::rename(folder / "other", of_b);
  const logged_session again(a, cached), also(b, cached);
  for (const auto* s : {&again, &also})
    EXPECT_THAT(s->log, AllOf(HasSubstr("has another program (weights: expected"), HasSubstr(": compiled in ")));
  EXPECT_EQ(floats_of(*again.of, ep_rows(5)), floats_of(*first.of, ep_rows(5)));
  EXPECT_EQ(floats_of(*also.of, ep_rows(5)), floats_of(*second.of, ep_rows(5)));
  EXPECT_THAT(logged_session(a, cached).log, HasSubstr(": loaded from " + of_a.string()));  // written anew
}

TEST_F(ep_options, a_cache_is_read_left_alone_or_written_anew) {
  const test::temporary_folder folder;
  const text_pairs cached{{"migraphx_model_cache_dir", folder.path().string()}};
  const auto with = [&](const char* name) {
    text_pairs out = cached;
    out.emplace_back(name, "1");
    return out;
  };
  const logged_session untouched(ep_dense(), with("disable_caching"));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  const logged_session first(ep_dense(), cached);
  EXPECT_THAT(first.log, HasSubstr(": compiled in "));
  const logged_session second(ep_dense(), cached);
  EXPECT_THAT(second.log, AllOf(HasSubstr(": loaded from " + folder.path().string()), HasSubstr(": partitioned in "),
                                HasSubstr(": read and hashed in ")));
  EXPECT_EQ(floats_of(*second.of, ep_rows(5)), floats_of(*first.of, ep_rows(5)));
  const logged_session forced(ep_dense(), with("force_recompile"));
  EXPECT_THAT(forced.log, HasSubstr(": compiled in "));
  const logged_session other(ep_dense(.5f), cached);
  EXPECT_THAT(other.log, HasSubstr(": compiled in "));
  EXPECT_NE(floats_of(*other.of, ep_rows(5)), floats_of(*first.of, ep_rows(5)));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 2);
  const auto file = std::filesystem::directory_iterator(folder)->path();
  for (const auto& e : std::filesystem::directory_iterator(folder)) std::filesystem::resize_file(e.path(), 300);
  const logged_session damaged(ep_dense(), cached);
  EXPECT_THAT(damaged.log, AllOf(HasSubstr("damaged"), HasSubstr(": compiled in ")));
}

TEST_F(ep_options, a_cache_keeps_to_its_limit) {
  const test::temporary_folder folder;
  const plugin_session own(ep_host(), wide().bytes(), {{"cache_dir", folder.path().string()}, {"cache_limit", "0"}});
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST_F(ep_options, control_flow_is_left_where_it_is_not_wanted) {
  const auto branch = [](const char* op, const char* out) {
    return test::graph({{node(op, {"x"}, {out})}, {}, {}, {test::value_info(out, f32, {"rows", 3})}}, "b");
  };
  const message model =
      test::model(test::graph({{node("If", {"c"}, {"y"},
                                     {test::graph_attr("then_branch", branch("Relu", "p")),
                                      test::graph_attr("else_branch", branch("Exp", "q"))})},
                               {},
                               {test::value_info("x", f32, {"rows", 3}), test::value_info("c", boolean, {})},
                               {test::value_info("y", f32, {"rows", 3})}}));
  const plugin_session own(ep_host(), model.bytes()), left(ep_host(), model.bytes(), {{"cpu_control_flow", "0"}});
  EXPECT_EQ(own.assigned(ep_host().name).first, 1u);
  EXPECT_EQ(left.assigned(ep_host().name).first, 0u);
}

TEST_F(ep_options, an_architecture_is_noted_and_what_kiln_does_not_do_refused) {
  EXPECT_THAT(logged_session(ep_dense(), {{"model_arch", "bert"}}).log, HasSubstr("model_arch 'bert'"));
  EXPECT_THAT(ep_fault(ep_dense(), {{"hip_graph_enable", "1"}}), HasSubstr("not captured"));
  EXPECT_THAT(ep_fault(ep_dense(), {{"static_pad_seq", "1"}}), HasSubstr("any extents"));
  EXPECT_THAT(ep_fault(ep_dense(), {{"compute_mode", "0"}, {"exhaustive_tune", "1"}}), HasSubstr("exclude"));
}

TEST_F(ep_options, maximum_times_kernels_and_keeps_the_times) {
  const test::temporary_folder folder;
  const message fixed = test::model(test::graph({{node("MatMul", {"x", "w"}, {"y"})},
                                                 {test::floats("w", {256, 256}, std::vector<float>(65536, .01f))},
                                                 {test::value_info("x", f32, {16, 256})},
                                                 {test::value_info("y", f32, {16, 256})}}));
  const plugin_session own(ep_host(), fixed.bytes(),
                           {{"compute_mode", "100"}, {"problem_cache", (folder / "tuned.tsv").string()}});
  EXPECT_TRUE(std::filesystem::exists(folder / "tuned.tsv"));
}

TEST_F(ep_options, the_library_tells_what_a_session_gets) {
  void* const plugin = dlopen(KILN_BINARY_DIR "/lib/libkiln_onnxruntime_ep.so", RTLD_NOW);
  const auto table = reinterpret_cast<const char* (*)()>(dlsym(plugin, "kiln_onnxruntime_option_table"));
  const auto resolve = reinterpret_cast<int (*)(const char* const*, const char* const*, std::size_t, char**)>(
      dlsym(plugin, "kiln_onnxruntime_resolved_options"));
  const auto release = reinterpret_cast<void (*)(char*)>(dlsym(plugin, "kiln_onnxruntime_free"));
  ASSERT_TRUE(table && resolve && release);
  EXPECT_THAT(table(), HasSubstr("\"name\":\"migraphx_fp16_enable\""));
  const variable set("ORT_MIGRAPHX_BF16_ENABLE", "1");
  const char *key = "device_id", *value = "0";
  char* text = nullptr;
  EXPECT_EQ(resolve(&key, &value, 1, &text), 0);
  EXPECT_THAT(text, HasSubstr("\"migraphx_bf16_enable\":\"1\""));
  release(text);
  key = "fp61_enable";
  EXPECT_EQ(resolve(&key, &value, 1, &text), 1);
  EXPECT_THAT(text, HasSubstr("fp16_enable"));
  release(text);
  const auto expect_fault = [&](const char* const* keys, const char* const* values, const char* fault) {
    EXPECT_EQ(resolve(keys, values, 1, &text), 1);
    EXPECT_THAT(text, HasSubstr(fault));
    release(text);
  };
  const char *none = nullptr, *device = "device_id";
  expect_fault(&none, &value, "option 0 has no key");
  expect_fault(&device, &none, "option 0 (device_id) has no value");
  expect_fault(nullptr, &value, "keys and values");
  EXPECT_EQ(resolve(&device, &value, 1, nullptr), 1);
  dlclose(plugin);
}

}  // namespace
}  // namespace kiln::peer
