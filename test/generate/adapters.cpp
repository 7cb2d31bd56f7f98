// Adapters: files, what they may give, and that a model with one is the model with its updates in the weights.
#include "kiln/generate/adapters.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "generate/tiny_llama.hpp"
#include "kiln/core/error.hpp"
#include "support/temporary_folder.hpp"

namespace kiln::language::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::shared_ptr<const language_model>& adaptable() {
  static const auto model = tiny_llama::load(tiny_llama::file());
  return model;
}
const tokens prompt{3, 1, 4, 1, 5, 9, 2, 6};

std::vector<float> scores(generator& g) {
  const argument a = g.logits();
  const auto all = a.as<float>();
  return {all.begin(), all.end()};
}
void expect_near(const std::vector<float>& found, const std::vector<float>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t k = 0; k < found.size(); ++k) ASSERT_NEAR(found[k], wanted[k], 2e-5) << k;
}
template <class F> std::string fault_of(errc code, F&& f) {
  try {
    f();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), code) << e.message();
    return e.message();
  }
  return "no error";
}

generator started(std::shared_ptr<const language_model> m) {
  search_options o;
  o.max_length = 40;
  return generator(std::move(m), o);
}

TEST(adapters, parameters_are_the_inputs_with_a_default) {
  std::vector<std::string> names;
  for (const port& p : adaptable()->parameters()) names.push_back(p.name);
  EXPECT_EQ(names, (std::vector<std::string>{"q.A", "q.B", "v.A", "v.B", "head.A", "head.B", "head.bias"}));
  EXPECT_TRUE(tiny_llama::load(tiny_llama::file(tiny_llama::update(2, 5)))->parameters().empty());
}

TEST(adapters, one_is_as_if_its_updates_were_in_the_weights) {
  adapters all(adaptable());
  for (const std::int64_t rank : {1, 3}) {
    const adapter a = tiny_llama::update(rank, 10u * static_cast<unsigned>(rank));
    const std::string name = "rank " + std::to_string(rank);
    all.load(a, name);
    generator own = started(adaptable()), other = started(tiny_llama::load(tiny_llama::file(a)));
    own.set_active_adapter(all, name);
    own.append_tokens(prompt), other.append_tokens(prompt);
    for (int step = 0; step < 12; ++step) {
      expect_near(scores(own), scores(other));
      own.generate_next_token(), other.generate_next_token();
    }
    EXPECT_EQ(own.sequence(0), other.sequence(0));
  }
}

// A caller's own values come after those of adapters, in place of those given before; none: none.
TEST(adapters, own_values_replace_each_other) {
  adapters all(adaptable());
  all.load(tiny_llama::update(3, 5), "a");
  const auto after = [&](auto&& set) {
    generator g = started(adaptable());
    set(g);
    g.append_tokens(prompt);
    return scores(g);
  };
  const auto own = [](generator& g, std::int64_t rank, unsigned seed) {
    g.set_parameters(tiny_llama::update(rank, seed));
  };
  const auto last = after([&](generator& g) { own(g, 4, 9); });
  EXPECT_EQ(after([&](generator& g) { own(g, 2, 1), own(g, 4, 9); }), last);
  EXPECT_EQ(after([&](generator& g) { own(g, 4, 9), g.set_active_adapter(all, "a"); }), last);
  adapter one = tiny_llama::update(3, 5);
  const auto only_a = after([&](generator& g) { g.set_active_adapter(all, "a"); });
  EXPECT_EQ(after([&](generator& g) { g.set_active_adapter(all, "a"), own(g, 4, 9), g.set_parameters({}); }), only_a);
  one.parameters.resize(1);
  one.parameters[0].first = "q.C";
  EXPECT_EQ(after([&](generator& g) {
              own(g, 4, 9);
              EXPECT_THAT(fault_of(errc::not_found, [&] { g.set_parameters(one); }), HasSubstr("q.C"));
            }),
            last);
  EXPECT_NE(last, only_a);
}

TEST(adapters, generators_side_by_side_have_their_own) {
  adapters all(adaptable());
  all.load(tiny_llama::update(2, 1), "a"), all.load(tiny_llama::update(4, 9), "b");
  const auto alone = [&](const char* name) {
    generator g = started(adaptable());
    if (name) g.set_active_adapter(all, name);
    g.append_tokens(prompt);
    while (!g.is_done()) g.generate_next_token();
    return g.sequence(0);
  };
  const tokens plain = alone(nullptr), a = alone("a"), b = alone("b");
  EXPECT_NE(a, b);
  EXPECT_NE(a, plain);
  generator first = started(adaptable()), second = started(adaptable()), third = started(adaptable());
  first.set_active_adapter(all, "a"), second.set_active_adapter(all, "b");
  for (generator* g : {&first, &second, &third}) g->append_tokens(prompt);
  while (!first.is_done())
    for (generator* g : {&first, &second, &third}) g->generate_next_token();
  EXPECT_EQ(first.sequence(0), a);
  EXPECT_EQ(second.sequence(0), b);
  EXPECT_EQ(third.sequence(0), plain);
  first.clear_adapters();
  first.rewind_to(0);
  first.append_tokens(prompt);
  while (!first.is_done()) first.generate_next_token();
  EXPECT_EQ(first.sequence(0), plain);
}

TEST(adapters, those_of_two_files_join_and_the_later_one_wins) {
  const adapter whole = tiny_llama::update(2, 1);
  adapter first = whole, last;
  first.parameters.resize(4);  // q and v
  last.parameters = {whole.parameters.begin() + 4, whole.parameters.end()};
  adapters all(adaptable());
  all.load(first, "first"), all.load(last, "last"), all.load(whole, "whole"), all.load(tiny_llama::update(2, 50), "x");
  generator g = started(adaptable()), wanted = started(adaptable());
  EXPECT_THAT(
      fault_of(errc::shape_mismatch, [&] { g.set_active_adapter(all, "first"); }),
      AllOf(HasSubstr("'head.A', axis 1"), HasSubstr("expected 2 for 'lora_r' as in parameter 'q.A', found 0")));
  g.set_active_adapter(all, "x"), g.set_active_adapter(all, "first"), g.set_active_adapter(all, "last");
  wanted.set_active_adapter(all, "whole");
  g.append_tokens(prompt), wanted.append_tokens(prompt);
  EXPECT_EQ(scores(g), scores(wanted));
}

TEST(adapters, names_are_taken_and_given_back) {
  adapters all(adaptable());
  all.load(tiny_llama::update(2, 1), "a");
  EXPECT_EQ(all.names(), std::vector<std::string>{"a"});
  EXPECT_EQ(fault_of(errc::invalid_argument, [&] { all.load(tiny_llama::update(1, 1), "a"); }),
            "Adapter already loaded: a");
  EXPECT_EQ(fault_of(errc::not_found, [&] { all.unload("b"); }), "Adapter not found: b");
  {
    generator g = started(adaptable());
    EXPECT_EQ(fault_of(errc::not_found, [&] { g.set_active_adapter(all, "b"); }), "Adapter not found: b");
    g.set_active_adapter(all, "a");
    EXPECT_EQ(fault_of(errc::invalid_argument, [&] { all.unload("a"); }), "Adapter still in use: a");
    g.clear_adapters();
    all.unload("a");
    all.load(tiny_llama::update(1, 1), "a");
    g.set_active_adapter(all, "a");
  }
  all.unload("a");
  EXPECT_TRUE(all.names().empty());
  generator other = started(tiny_llama::load(tiny_llama::file()));
  all.load(tiny_llama::update(1, 1), "a");
  EXPECT_THAT(fault_of(errc::invalid_argument, [&] { other.set_active_adapter(all, "a"); }),
              HasSubstr("loaded for another model"));
}

TEST(adapters, faults_name_the_parameter) {
  adapters all(adaptable());
  const auto fault = [&](errc code, std::size_t k, const std::string& name, argument value) {
    adapter a = tiny_llama::update(2, 1);
    a.parameters[k] = {name, std::move(value)};
    return fault_of(code, [&] { all.load(a, "x"); });
  };
  const auto of = [](const dims& lens) { return argument(shape{dtype::f32, lens}); };
  EXPECT_THAT(fault(errc::not_found, 0, "k.A", of({32, 2})), AllOf(HasSubstr("'k.A'"), HasSubstr("'head.bias'")));
  EXPECT_THAT(fault(errc::shape_mismatch, 0, "q.A", of({15, 2})),
              HasSubstr("parameter 'q.A', axis 0: expected 32, found 15"));
  EXPECT_THAT(fault(errc::shape_mismatch, 1, "q.B", of({3, 32})), HasSubstr("'q.B', axis 0: expected 2 for 'lora_r'"));
  EXPECT_THAT(fault(errc::shape_mismatch, 0, "q.A", of({32, 2, 1})), HasSubstr("parameter 'q.A': expected f32"));
  EXPECT_THAT(fault(errc::shape_mismatch, 0, "q.A", argument(shape{dtype::f16, {32, 2}})), HasSubstr("found f16"));
  EXPECT_THAT(fault(errc::malformed, 0, "q.B", of({2, 32})), HasSubstr("'q.B' is given twice"));
  adapters none(tiny_llama::load(tiny_llama::file(tiny_llama::update(2, 1))));
  EXPECT_THAT(fault_of(errc::not_found, [&] { none.load(tiny_llama::update(2, 1), "x"); }), HasSubstr("it has none"));
}

TEST(adapter_file, is_read_as_it_was_written) {
  adapter a = tiny_llama::update(3, 4);
  a.adapter_version = 7, a.model_version = -2;
  a.parameters.emplace_back("half", argument(shape{dtype::f16, {2, 0, 3}}));
  a.parameters.emplace_back("one", argument::of<std::int64_t>({}, std::vector<std::int64_t>{42}));
  const auto bytes = adapter_bytes(a);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()) + 4, 4), "TORT");
  const test::temporary_folder folder;
  const std::string path =
      folder.write("read.onnx_adapter", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const adapter back = read_adapter(path);
  EXPECT_EQ(back.adapter_version, 7);
  EXPECT_EQ(back.model_version, -2);
  ASSERT_EQ(back.parameters.size(), a.parameters.size());
  for (std::size_t k = 0; k < a.parameters.size(); ++k) {
    const auto& [name, value] = a.parameters[k];
    EXPECT_EQ(back.parameters[k].first, name);
    EXPECT_EQ(back.parameters[k].second.get_shape(), value.get_shape()) << name;
    EXPECT_EQ(std::memcmp(back.parameters[k].second.data(), value.data(),
                          static_cast<std::size_t>(value.get_shape().bytes().value())),
              0)
        << name;
  }
  adapters all(adaptable());
  EXPECT_THROW(all.load(path, "x"), error);  // 'half' is none of the model
}

TEST(adapter_file, broken_ones_are_errors) {
  const auto good = adapter_bytes(tiny_llama::update(2, 1));
  const auto code = [](std::span<const std::byte> bytes) -> std::optional<errc> {
    try {
      parse_adapter(bytes);
    } catch (const error& e) {
      return e.code();
    }
    return std::nullopt;
  };
  EXPECT_EQ(code(good), std::nullopt);
  EXPECT_EQ(code({}), errc::malformed);
  for (std::size_t n = 0; n < good.size(); n += 3) EXPECT_TRUE(code(std::span(good).first(n))) << n;
  // whatever one byte says, it is an error or another adapter, and never read beyond the file
  for (std::size_t k = 0; k < good.size(); k += 7)
    for (const int v : {0, 0x7f, 0xff}) {
      auto bad = good;
      bad[k] = static_cast<std::byte>(v);
      code(bad);
    }
  auto other = good;
  other[4] = std::byte{'X'};
  EXPECT_EQ(code(other), errc::malformed);
  EXPECT_THAT(fault_of(errc::not_found, [] { read_adapter("/nowhere.onnx_adapter"); }), HasSubstr("/nowhere"));
}

}  // namespace
}  // namespace kiln::language::testing
