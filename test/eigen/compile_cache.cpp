// The folder of compiled programs: what is found in it, what is told apart, and what is forgotten.
#include "kiln/runtime/compile_cache.hpp"

#include <cstring>
#include <thread>

#include "eigen/saved_program.hpp"
#include "kiln/graph/custom_op.hpp"
#include "kiln/runtime/impl/saved/code_identity.hpp"
#include "kiln/runtime/impl/saved/saved_file.hpp"
#include "kiln/runtime/source_op.hpp"

namespace my {

struct tripled {
  template <class T> constexpr T operator()(T x) const { return x + x + x; }
};

}  // namespace my

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using compile_cache = saved_program_files;

compile_options cached(const std::filesystem::path& folder) {
  compile_options o = plain_options();
  o.cache = folder;
  return o;
}
bool was_compiled(const executable& exe) { return !exe.report().passes.empty(); }

TEST_F(compile_cache, the_cache_gives_back_what_was_compiled) {
  const compile_options options = cached(folder);
  const executable first = compile_eigen(network, options), second = compile_eigen(network, options);
  EXPECT_TRUE(was_compiled(first));
  EXPECT_FALSE(was_compiled(second));
  const auto inputs = random_inputs(network);
  EXPECT_TRUE(equal_values(second.run(inputs)[0], first.run(inputs)[0]));
  const auto kept = cached_programs(folder);
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].target, "eigen");
  EXPECT_THAT(kept[0].outputs, ::testing::ElementsAre("classes"));
}

TEST_F(compile_cache, the_cache_tells_other_programs_weights_and_options_apart) {
  const auto make = [](float bias) {
    return [bias](builder& b) {
      const value x = b.input("x", dtype::f32, {4, 300});
      b.output(x.dot(b.constant(weights({300, 300}))) + bias, "y");
    };
  };
  compile_options options = cached(folder);
  EXPECT_TRUE(was_compiled(compile_eigen(make(1), options)));
  EXPECT_TRUE(was_compiled(compile_eigen(make(2), options)));
  options.passes.fuse = false;
  EXPECT_TRUE(was_compiled(compile_eigen(make(1), options)));
  options.passes.fuse = true;
  EXPECT_FALSE(was_compiled(compile_eigen(make(1), options)));
  EXPECT_EQ(cached_programs(folder).size(), 3u);
}

// As the numbers and the scales of blocks that lie side by side in a file.
TEST_F(compile_cache, constants_of_the_same_bytes_are_kept_and_hashed_once) {
  const literal numbers = weights({256, 1024});
  const buffer data = numbers.data(), part = buffer_part(data, 0, 4096);
  detail::distinct_blocks blocks;
  EXPECT_EQ(blocks.add(data), 0u);
  EXPECT_EQ(blocks.add(part), 1u);
  EXPECT_EQ(blocks.add(data), 0u);
  EXPECT_EQ(blocks.all().size(), 2u);
  const auto make = [&](const literal& second) {
    return [&numbers, second](builder& b) {
      b.output(b.input("x", dtype::f32, {1024}) + b.constant(numbers));
      b.output(b.input("y", dtype::i32, {1024}) + b.constant(second));
    };
  };
  const shape integers(dtype::i32, {256, 1024});
  const auto saved_bytes = [&](const literal& second) {
    builder b;
    make(second)(b);
    save(b.finish(), file);
    return std::filesystem::file_size(file);
  };
  const literal same(integers, data), other = weights({256, 1024}, dtype::i32);
  EXPECT_GT(saved_bytes(other), 2 * data.size());
  EXPECT_LT(saved_bytes(same), data.size() + (64 << 10));
  const compile_options options = cached(folder);
  EXPECT_TRUE(was_compiled(compile_eigen(make(same), options)));
  EXPECT_FALSE(was_compiled(compile_eigen(make(same), options)));
  EXPECT_TRUE(was_compiled(compile_eigen(make(other), options)));
}

TEST_F(compile_cache, a_damaged_entry_of_the_cache_is_compiled_again) {
  const compile_options options = cached(folder);
  compile_eigen(network, options);
  file = cached_programs(folder)[0].file;
  write(bytes().substr(0, 1000));
  EXPECT_EQ(cached_programs(folder)[0].target, "");
  const executable again = compile_eigen(network, options);
  EXPECT_TRUE(was_compiled(again));
  EXPECT_THAT(again.report().remarks, ::testing::Contains(HasSubstr("compiled again")));
  EXPECT_FALSE(was_compiled(compile_eigen(network, options)));
}

TEST_F(compile_cache, the_cache_forgets_what_was_used_the_longest_ago) {
  const auto make = [](int size) {
    return [size](builder& b) {
      b.output(b.input("x", dtype::f32, {size, 300}).dot(b.constant(weights({300, 600}))), "y" + std::to_string(size));
    };
  };
  compile_options options = cached(folder);
  for (const int size : {4, 5, 6}) compile_eigen(make(size), options);
  const auto before = cached_programs(folder);
  ASSERT_EQ(before.size(), 3u);
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(5);
  for (const cached_program& p : before)
    if (p.outputs[0] != "y4") std::filesystem::last_write_time(p.file, long_ago);
  EXPECT_EQ(shrink_cache(folder, before[0].bytes + 100), before[1].bytes + before[2].bytes);
  ASSERT_EQ(cached_programs(folder).size(), 1u);
  EXPECT_EQ(cached_programs(folder)[0].outputs[0], "y4");
  options.cache_limit = 0;
  compile_eigen(make(7), options);
  EXPECT_THAT(cached_programs(folder), IsEmpty());
}

TEST_F(compile_cache, old_drafts_of_killed_processes_are_removed) {
  const compile_options options = cached(folder);
  const std::filesystem::path left = folder / "of_a_killed_process.kiln.7.1.part",
                              written = folder / "now.kiln.8.1.part";
  for (const auto& draft : {left, written}) std::ofstream(draft) << "half a program";
  std::filesystem::last_write_time(left, std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  compile_eigen(network, options);
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(written));
}

TEST_F(compile_cache, a_users_op_is_told_apart_by_the_build_of_its_code) {
  const auto make = [](builder& b) { b.output(b.add(my::tripled{}, {b.input("x", dtype::f32, {4})}), "y"); };
  EXPECT_NE(detail::build_id_of(reinterpret_cast<const void*>(table_of<my::tripled>().save)), "");
  EXPECT_EQ(detail::build_id_of(nullptr), "");
  const compile_options options = cached(folder);
  EXPECT_TRUE(was_compiled(compile_eigen(make, options)));
  EXPECT_FALSE(was_compiled(compile_eigen(make, options)));
}

TEST_F(compile_cache, a_custom_op_needs_a_version) {
  const auto define = [](const char* type, const char* version) {
    custom_op op;
    op.domain = "compile_cache", op.type = type, op.version = version;
    op.shape_rule = [](const custom_attributes&, std::span<const shape> in) { return shapes{in[0]}; };
    op.compute = [](const custom_attributes&, std::span<const argument> in, std::span<argument> out) {
      std::memcpy(out[0].data(), in[0].data(), static_cast<std::size_t>(in[0].get_shape().bytes().value()));
    };
    define_custom_op(std::move(op));
    return [type](builder& b) {
      const value x = b.input("x", dtype::f32, {4});
      b.output(b.add_operation(make_custom_operation(std::string("compile_cache::") + type), {x.id()}));
    };
  };
  const compile_options options = cached(folder);
  const auto open = define("open", ""), versioned = define("versioned", "1");
  compile_eigen(open, options);
  const executable again = compile_eigen(open, options);
  EXPECT_TRUE(was_compiled(again));
  EXPECT_THAT(again.report().remarks, ::testing::Contains(HasSubstr("neither a version nor a build id")));
  EXPECT_TRUE(was_compiled(compile_eigen(versioned, options)));
  EXPECT_FALSE(was_compiled(compile_eigen(versioned, options)));
}

TEST_F(compile_cache, an_op_from_source_has_a_version_of_its_own) {
  const auto define = [&](const std::string& domain, float slope, const char* version = "") {
    source_op op;
    op.domain = domain, op.type = "leaky", op.version = version;
    op.source = "return x > 0 ? x : slope * x;";
    op.attributes = {{"slope", std::vector<float>{slope}}};
    define_source_op(op, {"", folder / "code"});
    return find_custom_op(domain + "::leaky")->version;
  };
  const std::string first = define("source.a", 0.25f);
  EXPECT_NE(first, "");
  EXPECT_EQ(define("source.b", 0.25f), first);
  EXPECT_NE(define("source.c", 0.5f), first);  // the same text, another default
  EXPECT_EQ(define("source.d", 0.5f, "7"), "7");
  const auto make = [](builder& b) {
    b.output(b.add_operation(make_custom_operation("source.a::leaky"), {b.input("x", dtype::f32, {4}).id()}));
  };
  const compile_options options = cached(folder);
  EXPECT_TRUE(was_compiled(compile_eigen(make, options)));
  EXPECT_FALSE(was_compiled(compile_eigen(make, options)));
}

TEST_F(compile_cache, many_threads_share_a_cache) {
  const compile_options options = cached(folder);
  std::vector<std::thread> all;
  const auto inputs = random_inputs(network);
  const auto expected = compile_eigen(network).run(inputs);
  for (int i = 0; i < 4; ++i)
    all.emplace_back([&] {
      for (int k = 0; k < 5; ++k)
        EXPECT_TRUE(equal_values(compile_eigen(network, options).run(inputs)[0], expected[0]));
    });
  for (std::thread& t : all) t.join();
  EXPECT_EQ(cached_programs(folder).size(), 1u);
}

}  // namespace
}  // namespace kiln::testing
