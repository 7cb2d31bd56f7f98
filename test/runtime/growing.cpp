// Outputs that grow in the memory of an input (a key-value cache), and what is checked of the caller's buffers.
#include <gmock/gmock.h>

#include "kiln/onnx/import.hpp"
#include "kiln/op/dynamic/selection.hpp"
#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const dimension past = dimension::symbol("past"), fresh = dimension::symbol("fresh");

// A cache of two heads, what is read from it, and a second result that is not in it.
void cache(builder& b) {
  const value old = b.input("old", dtype::f32, {1, 2, past, 4}), x = b.input("x", dtype::f32, {1, 2, fresh, 4});
  const value all = old.concat(x.exp(), 2);
  b.output(all, "all");
  b.output(all.reduce_sum({2}), "sum");
}

executable compile_growing(const std::function<void(builder&)>& make, const target& t) {
  builder b;
  make(b);
  compile_options o = plain_options();
  o.aliases = {{"all", "old"}};
  return compile(b.finish(), t, o);
}

argument part(const argument& memory, std::int64_t length) { return leading_part(memory, {1, 2, length, 4}); }

TEST(growing, a_cache_keeps_its_memory_from_run_to_run) {
  const executable plain = compile_eigen(cache);
  const eigen_target eigen;
  const reference_target reference;
  for (const target* t : {static_cast<const target*>(&eigen), static_cast<const target*>(&reference)}) {
    const executable e = compile_growing(cache, *t);
    workspace w = e.make_workspace();
    argument memory(shape{dtype::f32, {1, 2, 9, 4}});
    for (float& v : memory.as<float>()) v = -7;
    argument expected(shape{dtype::f32, {1, 2, 0, 4}});
    std::int64_t length = 0;
    for (const std::int64_t more : {3, 1, 2, 1, 2}) {
      const argument x = random_argument({dtype::f32, {1, 2, more, 4}}, static_cast<unsigned>(length));
      const std::vector<argument> in{part(memory, length), x};
      std::vector<argument> out{part(memory, length + more), argument(shape{dtype::f32, {1, 2, 1, 4}})};
      e.run(w, in, out);
      length += more;
      const auto wanted = plain.run(std::vector<argument>{expected, x});
      expect_close(out[0], wanted[0]);
      expect_close(out[1], wanted[1]);
      expected = wanted[0];
    }
    EXPECT_EQ(length, 9);
  }
}

// What is appended depends on numbers whose count only a run knows: the program is cut, and a part appends.
void cut_cache(builder& b) {
  const dimension found = dimension::symbol("found");
  const value old = b.input("old", dtype::f32, {1, 2, past, 4}), x = b.input("x", dtype::f32, {1, 2, fresh, 4});
  const value flat = x.reshape({fresh * 8}), at = b.add(op::nonzero{found}, flat.relu()).reshape({found});
  const value all = old.concat(x * flat.gather(at, 0).reduce_sum({0}).reshape({1, 1, 1, 1}), 2);
  b.output(all.reduce_sum({2}), "sum");
  b.output(all, "all");
}

TEST(growing, a_cache_of_a_program_in_parts_keeps_its_memory) {
  const executable plain = compile_eigen(cut_cache), e = compile_growing(cut_cache, eigen_target());
  workspace w = e.make_workspace();
  const argument memory(shape{dtype::f32, {1, 2, 9, 4}});
  argument expected(shape{dtype::f32, {1, 2, 0, 4}});
  std::int64_t length = 0;
  for (const std::int64_t more : {3, 1, 2, 1, 2}) {
    const argument x = random_argument({dtype::f32, {1, 2, more, 4}}, static_cast<unsigned>(length));
    const std::vector<argument> in{part(memory, length), x};
    std::vector<argument> out(2);
    if (more > 1) out[1] = part(memory, length + more);
    e.run(w, in, out);
    length += more;
    EXPECT_EQ(out[1].data(), memory.data());
    const auto wanted = plain.run(std::vector<argument>{expected, x});
    expect_close(out[0], wanted[0]);
    if (more > 1) expect_close(out[1], wanted[1]);
    expect_close(part(memory, length), wanted[1]);
    expected = wanted[1];
  }
  const auto full = error_of([&] {
    e.run(std::vector<argument>{part(memory, 9), argument(shape{dtype::f32, {1, 2, 1, 4}})});
  });
  EXPECT_EQ(full.first, errc::limit);
  EXPECT_THAT(full.second, AllOf(HasSubstr("'all'"), HasSubstr("'old'"), HasSubstr("room for 9")));
}

TEST(growing, nothing_is_copied_and_nothing_behind_the_result_is_written) {
  const executable plain = compile_eigen(cache), e = compile_growing(cache, eigen_target());
  const auto copies = [](const executable& x) {
    std::size_t n = 0;
    for (const step_info& s : x.report().steps) n += s.copy;
    return n;
  };
  EXPECT_EQ(copies(plain), 1u);
  EXPECT_EQ(copies(e), 0u);
  argument memory(shape{dtype::f32, {1, 2, 5, 4}});
  for (float& v : memory.as<float>()) v = 3;
  e.run(std::vector<argument>{part(memory, 2), argument(shape{dtype::f32, {1, 2, 1, 4}})});
  for (const std::size_t row : {0, 1, 3, 4, 5, 6, 8, 9}) EXPECT_EQ(memory.as<float>()[4 * row], 3) << row;
}

TEST(growing, a_run_without_outputs_gives_a_view_of_the_cache) {
  const executable e = compile_growing(cache, eigen_target());
  const argument memory(shape{dtype::f32, {1, 2, 5, 4}});
  const auto out = e.run(std::vector<argument>{part(memory, 2), random_argument({dtype::f32, {1, 2, 3, 4}}, 1)});
  EXPECT_EQ(out[0].data(), memory.data());
  EXPECT_EQ(out[0].get_shape().lens, (dims{1, 2, 5, 4}));
}

TEST(growing, a_full_cache_and_memory_that_is_not_shared_are_errors) {
  const executable e = compile_growing(cache, eigen_target());
  const argument memory(shape{dtype::f32, {1, 2, 5, 4}}), other(shape{dtype::f32, {1, 2, 5, 4}}),
      narrow(shape{dtype::f32, {1, 2, 4, 4}}), sum(shape{dtype::f32, {1, 2, 1, 4}});
  const auto failure = [&](const argument& old, std::int64_t more, const argument& all) {
    return error_of([&] {
      workspace w = e.make_workspace();
      const std::vector<argument> in{old, argument(shape{dtype::f32, {1, 2, more, 4}})};
      std::vector<argument> out{all, sum};
      e.run(w, in, out);
    });
  };
  auto found = error_of([&] {
    e.run(std::vector<argument>{part(memory, 4), argument(shape{dtype::f32, {1, 2, 2, 4}})});
  });
  EXPECT_EQ(found.first, errc::limit);
  EXPECT_THAT(found.second, AllOf(HasSubstr("'all'"), HasSubstr("'old'"), HasSubstr("room for 5")));
  EXPECT_EQ(failure(part(memory, 2), 1, part(other, 3)).first, errc::invalid_argument);
  EXPECT_EQ(
      failure(part(memory, 2), 1, argument(shape{dtype::f32, {1, 2, 3, 4}}, const_cast<std::byte*>(memory.data())))
          .first,
      errc::invalid_argument);
  found = failure(argument(shape{dtype::f32, {1, 2, 2, 4}, {1, 20, 8, 2}}, const_cast<std::byte*>(memory.data())), 1,
                  part(memory, 3));
  EXPECT_EQ(found.first, errc::shape_mismatch);
  EXPECT_THAT(found.second, HasSubstr("'old'"));
  EXPECT_EQ(error_of([&] { part(narrow, 5); }).first, errc::shape_mismatch);
}

TEST(growing, only_a_concatenation_that_begins_with_the_input_may) {
  const auto failure = [](const std::function<void(builder&)>& make, std::vector<output_alias> aliases) {
    return error_of([&] {
      compile_options o = plain_options();
      o.aliases = std::move(aliases);
      compile_eigen(make, o);
    });
  };
  const auto not_first = [](builder& b) {
    const value old = b.input("old", dtype::f32, {2, past}), x = b.input("x", dtype::f32, {2, fresh});
    b.output(x.concat(old, 1), "all");
    b.output(old.neg(), "sum");
  };
  for (const char* output : {"all", "sum"}) {
    const auto found = failure(not_first, {{output, "old"}});
    EXPECT_EQ(found.first, errc::unsupported);
    EXPECT_THAT(found.second, AllOf(HasSubstr(output), HasSubstr("'old'")));
  }
  EXPECT_THAT(failure(cache, {{"al", "old"}}).second, AllOf(HasSubstr("'all', 'sum'"), HasSubstr("'al'")));
  EXPECT_THAT(failure(cache, {{"all", "young"}}).second, HasSubstr("'old', 'x'"));
  EXPECT_EQ(failure(cache, {{"all", "old"}, {"all", "old"}}).first, errc::invalid_argument);
}

TEST(growing, a_language_models_caches_grow_in_place) {
  const std::string path = "examples/models/scripture/model.onnx";
  const executable plain = compile(onnx::read_model(path).graph, eigen_target(), plain_options());
  compile_options o = plain_options();
  for (const port& p : plain.outputs())
    if (p.name.starts_with("present.")) o.aliases.push_back({p.name, "past_key_values." + p.name.substr(8)});
  ASSERT_FALSE(o.aliases.empty());
  const executable e = compile(onnx::read_model(path).graph, eigen_target(), o);
  EXPECT_LT(e.report().steps.size(), plain.report().steps.size());

  std::map<std::string, argument> kept, memory, now;
  for (const output_alias& a : o.aliases) {
    kept[a.input] = argument(shape{dtype::f32, {1, 2, 0, 32}});
    memory[a.input] = argument(shape{dtype::f32, {1, 2, 12, 32}});
  }
  std::int64_t length = 0;
  for (const std::int64_t more : {4, 1, 1, 3}) {
    std::vector<std::int64_t> ids, positions, mask(static_cast<std::size_t>(length + more), 1);
    for (std::int64_t i = 0; i < more; ++i) ids.push_back(17 * (length + i) + 3), positions.push_back(length + i);
    const auto row = [](const std::vector<std::int64_t>& v) {
      return argument::of<std::int64_t>({1, static_cast<std::int64_t>(v.size())}, v);
    };
    for (auto* feeds : {&kept, &now}) {
      (*feeds)["input_ids"] = row(ids);
      (*feeds)["position_ids"] = row(positions);
      (*feeds)["attention_mask"] = row(mask);
    }
    for (const auto& [name, whole] : memory) now[name] = leading_part(whole, {1, 2, length, 32});
    const auto expected = plain.run(kept), found = e.run(now);
    for (std::size_t k = 0; k < expected.size(); ++k) {
      expect_close(found[k], expected[k], {1e-4, 1e-4});
      for (const output_alias& a : o.aliases)
        if (a.output == plain.outputs()[k].name) kept[a.input] = expected[k];
    }
    length += more;
  }
}

TEST(caller_memory, an_output_over_an_input_or_another_output_is_an_error_that_names_both) {
  const executable e = compile_eigen([](builder& b) {
    const value x = b.input("x", dtype::f32, {2, 3}), y = b.input("y", dtype::f32, {2, 3});
    b.output(x + y, "sum");
    b.output(x - y, "gap");
  });
  argument room(shape{dtype::f32, {32}});
  const auto at = [&](std::int64_t first) { return argument(shape{dtype::f32, {2, 3}}, room.data() + 4 * first); };
  const auto failure = [&](std::vector<argument> in, std::vector<argument> out) {
    return error_of([&] {
      workspace w = e.make_workspace();
      e.run(w, in, out);
    });
  };
  const auto over_input = failure({at(0), at(6)}, {at(11), at(20)});
  EXPECT_EQ(over_input.first, errc::invalid_argument);
  EXPECT_THAT(over_input.second, AllOf(HasSubstr("'sum'"), HasSubstr("'y'")));
  const auto over_output = failure({at(0), at(0)}, {at(12), at(7)});
  EXPECT_EQ(over_output.first, errc::invalid_argument);
  EXPECT_THAT(over_output.second, AllOf(HasSubstr("'gap'"), HasSubstr("'sum'")));
  workspace w = e.make_workspace();
  const std::vector<argument> in{at(0), at(0)};
  std::vector<argument> beside{at(6), at(12)};
  e.run(w, in, beside);
  // a strided input is copied before anything is written
  const std::vector<argument> strided{argument(shape{dtype::f32, {2, 3}, {1, 2}}, room.data()), at(6)};
  const std::vector<argument> copied{strided[0].copy(), at(6).copy()};
  std::vector<argument> over{at(0), at(12)};
  e.run(w, strided, over);
  expect_close(over[0], e.run(copied)[0]);
}

}  // namespace
}  // namespace kiln::testing
