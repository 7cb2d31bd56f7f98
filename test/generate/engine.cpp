// Requests that share steps: greedy results are a generator's, whatever else runs.
#include "kiln/generate/engine.hpp"

#include <gmock/gmock.h>

#include "generate/scripture.hpp"
#include "kiln/core/error.hpp"

namespace kiln::language::testing {
namespace {

using ::testing::HasSubstr;

// Prompts of several lengths, some of which begin alike.
std::vector<tokens> prompts(std::size_t count) {
  const auto golden = scripture_golden();
  std::vector<tokens> out;
  for (std::size_t k = 0; k < count; ++k) {
    const tokens& text = golden[k % golden.size()].all;
    tokens own(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(std::min(text.size(), 3 + (k * 11) % 45)));
    if (k % 3 == 2) own.back() = static_cast<token>(100 + k);
    out.push_back(own);
  }
  return out;
}
tokens alone(const tokens& prompt, std::int64_t max_length) {
  generator own(scripture(), options_of(max_length));
  own.append_tokens(prompt);
  return run_to_end(own);
}
std::shared_ptr<request> make_request(const tokens& prompt, std::int64_t max_length) {
  auto r = std::make_shared<request>(scripture(), options_of(max_length));
  r->add_tokens(prompt);
  return r;
}
std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const error& e) {
    return e.message();
  }
  return "no error";
}

void run_all(engine& e, std::size_t most = 2000) {
  for (std::size_t k = 0; e.has_pending() && k < most; ++k) e.step();
  ASSERT_FALSE(e.has_pending());
}

TEST(engine, requests_end_as_a_generator_does) {
  engine_options o;
  o.max_scheduled_tokens = 24;
  engine e(scripture(), o);
  const auto all = prompts(9);
  std::vector<std::shared_ptr<request>> requests;
  std::vector<tokens> streamed(all.size());
  std::size_t arrived = 0;
  for (int step = 0; step < 500 && (e.has_pending() || arrived < all.size()); ++step) {
    if (step % 3 == 0 && arrived < all.size()) {
      requests.push_back(make_request(all[arrived], 50 + static_cast<std::int64_t>(arrived)));
      e.add(requests.back());
      ++arrived;
    }
    for (const auto& r : e.step()) EXPECT_TRUE(r->has_unseen());
    for (std::size_t k = 0; k < requests.size(); ++k)
      while (requests[k]->has_unseen()) streamed[k].push_back(requests[k]->take_unseen());
  }
  ASSERT_FALSE(e.has_pending());
  for (std::size_t k = 0; k < all.size(); ++k) {
    const tokens wanted = alone(all[k], 50 + static_cast<std::int64_t>(k));
    EXPECT_EQ(requests[k]->sequence(), wanted) << k;
    EXPECT_EQ(streamed[k], tokens(wanted.begin() + static_cast<std::ptrdiff_t>(all[k].size()), wanted.end())) << k;
    EXPECT_TRUE(requests[k]->is_turn_complete());
  }
}

TEST(engine, too_few_blocks_interrupt_but_change_nothing) {
  engine_options o;
  o.cache_bytes = 5 * scripture()->block_bytes();
  o.share_prefixes = false;
  engine e(scripture(), o);
  const auto all = prompts(5);
  std::vector<std::shared_ptr<request>> requests;
  for (const tokens& p : all) e.add(requests.emplace_back(make_request(p, 100)));
  requests[4]->set_priority(3);
  std::size_t finished_first = 9;
  for (int k = 0; e.has_pending() && k < 2000; ++k) {
    e.step();
    EXPECT_LE(e.statistics().blocks, 5u);
    for (std::size_t r = 0; r < all.size() && finished_first == 9; ++r)
      if (requests[r]->is_turn_complete()) finished_first = r;
  }
  EXPECT_EQ(finished_first, 4u);
  EXPECT_GT(e.statistics().interruptions, 0u);
  for (std::size_t k = 0; k < all.size(); ++k) EXPECT_EQ(requests[k]->sequence(), alone(all[k], 100)) << k;
  EXPECT_THAT(message_of([&] { e.add(make_request(all[0], 200)); }), HasSubstr("needs 7 blocks"));
}

TEST(engine, prefixes_are_run_once) {
  engine e(scripture());
  tokens prompt = scripture_golden()[0].all;
  prompt.resize(80, 7);
  e.add(make_request(prompt, 100));
  run_all(e);
  const std::size_t before = e.statistics().run_tokens;
  tokens other = prompt;
  other[70] = 9;  // the first two blocks are the same
  const auto second = make_request(other, 100), third = make_request(prompt, 100);
  e.add(second);
  e.add(third);
  run_all(e);
  EXPECT_EQ(e.statistics().shared_tokens, 2u * 64);
  EXPECT_EQ(e.statistics().run_tokens, before + 2 * (99 - 64));
  EXPECT_EQ(second->sequence(), alone(other, 100));
  EXPECT_EQ(third->sequence(), alone(prompt, 100));
  EXPECT_GT(e.statistics().known_blocks, 0u);
}

TEST(engine, turns_go_on_and_requests_leave) {
  engine e(scripture());
  const auto all = prompts(3);
  const auto talk = make_request(all[0], 30), gone = make_request(all[1], 200);
  e.add(talk), e.add(gone);
  for (int k = 0; k < 5; ++k) e.step();
  e.remove(*gone);
  EXPECT_TRUE(gone->is_turn_complete());
  run_all(e);
  EXPECT_EQ(talk->sequence().size(), 30u);
  EXPECT_THAT(message_of([&] { talk->add_tokens(tokens{4}); }), HasSubstr("max length (30)"));
  e.remove(*talk);
  e.remove(*talk);
  EXPECT_FALSE(e.has_pending());
  EXPECT_EQ(e.statistics().blocks, e.statistics().known_blocks);

  config c = read_config(scripture_folder);
  const golden g = scripture_golden()[0];
  c.eos_token_id = {g.all[g.prompt.size() + 3]};
  const auto model = language_model::load(c, eigen_target());
  engine own(model);
  const auto turns = std::make_shared<request>(model, options_of(100));
  turns->add_tokens(g.prompt);
  own.add(turns);
  run_all(own);
  EXPECT_EQ(turns->sequence().back(), c.eos_token_id[0]);
  turns->add_tokens(tokens{11, 12});
  EXPECT_TRUE(own.has_pending());
  own.step();
  generator fresh(model, options_of(100));
  tokens whole(turns->sequence().begin(), turns->sequence().end() - 1);
  fresh.append_tokens(whole);
  fresh.generate_next_token();
  EXPECT_EQ(turns->sequence(), fresh.sequence(0));
}

TEST(engine, what_fails_for_one_fails_for_it_alone) {
  engine e(scripture());
  const auto all = prompts(2);
  const auto bad = make_request(all[0], 60), good = make_request(all[1], 60);
  bad->set_rule([](std::size_t, std::span<const token> sequence, std::span<float>) {
    if (sequence.size() > 40) throw std::runtime_error("no token fits");
  });
  e.add(bad), e.add(good);
  run_all(e);
  EXPECT_EQ(bad->failure(), "no token fits");
  EXPECT_EQ(good->sequence(), alone(all[1], 60));
  EXPECT_EQ(good->failure(), "");
}

TEST(engine, says_what_is_wrong) {
  search_options o = options_of(40);
  o.num_beams = 2;
  EXPECT_THAT(message_of([&] { request(scripture(), o); }), HasSubstr("expected num_beams 1, found 2"));
  o.num_beams = 1, o.batch_size = 3;
  EXPECT_THAT(message_of([&] { request(scripture(), o); }), HasSubstr("expected batch_size 1, found 3"));
  const auto r = make_request({5, 6}, 40);
  EXPECT_THAT(message_of([&] { r->add_tokens(tokens{4000}); }), HasSubstr("token 4000"));
  EXPECT_THAT(message_of([&] { r->take_unseen(); }), HasSubstr("no token"));
  engine e(scripture());
  e.add(r);
  EXPECT_THAT(message_of([&] { e.add(r); }), HasSubstr("added before"));
  engine other(scripture());
  EXPECT_THAT(message_of([&] { other.add(r); }), HasSubstr("another engine's"));
  e.step();
  EXPECT_THAT(message_of([&] { r->add_tokens(tokens{4}); }), HasSubstr("turn is complete"));
  EXPECT_THAT(message_of([&] { engine(scripture(), {.max_requests = 0}); }), HasSubstr("at least 1"));
}

}  // namespace
}  // namespace kiln::language::testing
