// How tokens are chosen of scores: sampling, rules, beams.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "kiln/generate/impl/take_beams.hpp"
#include "kiln/generate/sampler.hpp"

namespace kiln::language::testing {
namespace {

constexpr float never = std::numeric_limits<float>::lowest();

search_options sampling(std::int64_t top_k, double top_p, double temperature = 1) {
  search_options o;
  o.do_sample = true, o.top_k = top_k, o.top_p = top_p, o.temperature = temperature, o.random_seed = 7;
  return o;
}

// Draws often and compares the counts with probabilities by chi-square; 40 is beyond 1 in 10^4 for 12 tokens.
void expect_distribution(const search_options& o, std::span<const float> logits, std::span<const double> weights) {
  constexpr int draws = 100000;
  sampler s(o);
  std::vector<int> counts(logits.size(), 0);
  for (int k = 0; k < draws; ++k) ++counts[static_cast<std::size_t>(s.choose(logits))];
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  double chi = 0;
  for (std::size_t k = 0; k < counts.size(); ++k) {
    const double wanted = draws * weights[k] / sum;
    if (wanted == 0)
      EXPECT_EQ(counts[k], 0) << k;
    else
      chi += (counts[k] - wanted) * (counts[k] - wanted) / wanted;
  }
  EXPECT_LT(chi, 40);
}

const std::vector<float> some{1.f, 0.2f, -1.f, 2.f, 0.7f, -3.f, 1.5f, 0.f, 0.1f, 2.2f};

TEST(sampler, draws_from_the_softmax) {
  std::vector<double> all;
  for (const float x : some) all.push_back(std::exp(x));
  expect_distribution(sampling(0, 0), some, all);
}
TEST(sampler, temperature_divides_the_scores) {
  std::vector<double> all;
  for (const float x : some) all.push_back(std::exp(x / 0.5));
  expect_distribution(sampling(0, 0, 0.5), some, all);
}
TEST(sampler, top_k_keeps_the_likeliest) {
  std::vector<double> kept(some.size(), 0);
  for (const std::size_t k : {9, 3, 6}) kept[k] = std::exp(some[k]);
  expect_distribution(sampling(3, 0), some, kept);
}
TEST(sampler, top_p_keeps_the_fewest_that_reach_it) {
  // of the probabilities in order, 0.297, 0.243, 0.148, 0.09: three pass 0.6
  std::vector<double> kept(some.size(), 0);
  for (const std::size_t k : {9, 3, 6}) kept[k] = std::exp(some[k]);
  expect_distribution(sampling(0, 0.6), some, kept);
}
TEST(sampler, top_p_counts_within_top_k) {
  // of the four likeliest, the shares are 0.382, 0.313, 0.19, 0.115: two pass 0.6
  std::vector<double> kept(some.size(), 0);
  for (const std::size_t k : {9, 3}) kept[k] = std::exp(some[k]);
  expect_distribution(sampling(4, 0.6), some, kept);
}
TEST(sampler, a_seed_gives_the_same_draws_and_greedy_none) {
  sampler a(sampling(0, 0)), b(sampling(0, 0));
  for (int k = 0; k < 100; ++k) EXPECT_EQ(a.choose(some), b.choose(some));
  for (const search_options& o : {search_options(), sampling(1, 0), sampling(50, 0, 0)}) {
    sampler greedy(o);
    for (int k = 0; k < 20; ++k) EXPECT_EQ(greedy.choose(some), 9);
  }
}
TEST(sampler, nan_and_infinity_are_not_chosen) {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> odd{nan, -infinity, -2.f, nan};
  sampler s(sampling(0, 0));
  for (int k = 0; k < 50; ++k) EXPECT_EQ(s.choose(odd), 2);
  EXPECT_EQ(likeliest(odd), 2);
  EXPECT_EQ(likeliest(std::vector<float>{1.f, 3.f, 3.f}), 1);
}

TEST(rules, repetition_counts_each_token_once) {
  search_options o;
  o.repetition_penalty = 2;
  std::vector<float> x{4.f, -4.f, 1.f, 1.f};
  apply_rules(x, tokens{0, 0, 1, 3}, {}, o);
  EXPECT_EQ(x, (std::vector<float>{2.f, -8.f, 1.f, 0.5f}));
}
TEST(rules, no_ngram_comes_twice) {
  search_options o;
  o.no_repeat_ngram_size = 3;
  std::vector<float> x(6, 1.f);
  apply_rules(x, tokens{1, 2, 3, 1, 2, 4, 1, 2}, {}, o);
  EXPECT_EQ(x, (std::vector<float>{1.f, 1.f, 1.f, never, never, 1.f}));
  o.no_repeat_ngram_size = 1;
  std::vector<float> y(4, 1.f);
  apply_rules(y, tokens{2, 0}, {}, o);
  EXPECT_EQ(y, (std::vector<float>{never, 1.f, never, 1.f}));
}
TEST(rules, no_end_before_min_length) {
  search_options o;
  o.min_length = 3;
  std::vector<float> x{1.f, 2.f};
  apply_rules(x, tokens{0, 0}, tokens{1}, o);
  EXPECT_EQ(x, (std::vector<float>{1.f, never}));
  x = {1.f, 2.f};
  apply_rules(x, tokens{0, 0, 0}, tokens{1}, o);
  EXPECT_EQ(x, (std::vector<float>{1.f, 2.f}));
}

// A model of five tokens whose scores depend on the sequence; 0 ends it.
std::vector<float> scores_after(const tokens& sequence) {
  std::vector<float> x;
  unsigned state = 12345;
  for (const token t : sequence) state = state * 1664525u + static_cast<unsigned>(t) * 7919u + 1013904223u;
  for (int k = 0; k < 5; ++k) x.push_back(static_cast<float>((state >> (3 * k)) & 63u) / 16.f);
  return x;
}
double log_probability(const std::vector<float>& x, std::size_t k) {
  double sum = 0;
  for (const float v : x) sum += std::exp(v);
  return x[k] - std::log(sum);
}

std::vector<tokens> beams_after(search_options o, std::size_t steps, std::size_t count) {
  detail::beam_search search(o, tokens{0});
  std::vector<tokens> rows(static_cast<std::size_t>(o.num_beams), tokens{3});
  for (std::size_t k = 0; k < steps && !search.is_done(); ++k) {
    std::vector<float> all;
    for (const tokens& r : rows)
      for (const float x : scores_after(r)) all.push_back(x);
    const auto chosen = search.step(all, rows);
    if (search.is_done()) break;
    std::vector<tokens> next;
    for (const auto& c : chosen) next.push_back(rows[c.from]), next.back().push_back(c.next);
    rows = std::move(next);
  }
  return search.best(rows, count);
}

// With as many beams as there are sequences, nothing is lost: the best of all of them is found.
TEST(beam_search, wide_beams_find_the_best_sequence) {
  for (const double penalty : {0.0, 1.0, 2.0}) {
    struct found {
      tokens sequence;
      double score;
    };
    std::vector<found> all;
    std::function<void(tokens, double)> visit = [&](tokens s, double sum) {
      if (s.size() == 4) {
        all.push_back({s, sum / std::pow(4.0, penalty)});
        return;
      }
      const auto x = scores_after(s);
      all.push_back({s, (sum + log_probability(x, 0)) / std::pow(double(s.size()), penalty)});
      for (token t = 1; t < 5; ++t) {
        tokens more = s;
        more.push_back(t);
        visit(more, sum + log_probability(x, static_cast<std::size_t>(t)));
      }
    };
    visit({3}, 0);
    std::sort(all.begin(), all.end(), [](const found& a, const found& b) { return a.score > b.score; });
    search_options o;
    o.num_beams = 64, o.early_stopping = false, o.length_penalty = penalty;
    const auto best = beams_after(o, 3, 3);
    ASSERT_EQ(best.size(), 3u);
    EXPECT_EQ(best[0], all[0].sequence) << penalty;
  }
}
TEST(beam_search, many_end_tokens_leave_open_beams) {
  search_options o;
  o.num_beams = 2;
  detail::beam_search search(o, tokens{0, 1, 2});
  const std::vector<float> row{9.f, 8.f, 7.f, 1.f, 0.5f}, nan{std::nanf(""), -1.f, std::nanf(""), 1.f, std::nanf("")};
  std::vector<float> all = row;
  all.insert(all.end(), row.begin(), row.end());
  const auto chosen = search.step(all, std::vector<tokens>{{3}, {3}});
  ASSERT_EQ(chosen.size(), 2u);
  EXPECT_EQ(chosen[0].next, 3);
  EXPECT_EQ(chosen[1].next, 4);
  all = nan;
  all.insert(all.end(), nan.begin(), nan.end());
  detail::beam_search odd(o, tokens{0});
  EXPECT_EQ(odd.step(all, std::vector<tokens>{{3}, {3}})[0].next, 3);
}
TEST(beam_search, one_beam_is_greedy_and_ends_without_its_end_token) {
  search_options o;
  o.num_beams = 1;
  tokens greedy{3};
  for (int k = 0; k < 8; ++k) {
    const token t = likeliest(scores_after(greedy));
    if (t == 0) break;
    greedy.push_back(t);
  }
  EXPECT_EQ(beams_after(o, 8, 1)[0], greedy);
}

// A state that moves as a sequence's does: what is moved from is empty.
struct moving_state {
  std::unique_ptr<int> own;
  bool fails = false;
  moving_state clone() const {
    if (fails) throw std::runtime_error("no memory");
    return {std::make_unique<int>(*own), false};
  }
};
struct moving_row {
  tokens seen, real;
  moving_state state;
};
std::vector<moving_row> three_rows() {
  std::vector<moving_row> out(3);
  for (int k = 0; k < 3; ++k) out[static_cast<std::size_t>(k)] = {{5, k}, {k}, {std::make_unique<int>(k), false}};
  return out;
}

TEST(take_beams, rows_go_on_from_where_they_were_chosen) {
  auto rows = three_rows();
  const int* const first = rows[0].state.own.get();
  detail::take_beams<moving_row>(rows, std::vector<detail::beam_search::choice>{{2, 7}, {0, 8}, {0, 9}});
  EXPECT_EQ(rows[0].seen, (tokens{5, 2, 7}));
  EXPECT_EQ(rows[1].seen, (tokens{5, 0, 8}));
  EXPECT_EQ(rows[2].seen, (tokens{5, 0, 9}));
  EXPECT_EQ(rows[2].real, (tokens{0, 9}));
  EXPECT_EQ(*rows[0].state.own, 2);
  EXPECT_EQ(*rows[1].state.own, 0);
  EXPECT_EQ(rows[2].state.own.get(), first) << "the last one takes what is there";
}
TEST(take_beams, rows_are_as_before_where_a_copy_throws) {
  auto rows = three_rows();
  rows[2].state.fails = true;
  EXPECT_THROW(detail::take_beams<moving_row>(rows, std::vector<detail::beam_search::choice>{{0, 7}, {2, 8}, {2, 9}}),
               std::runtime_error);
  for (int k = 0; k < 3; ++k) {
    const moving_row& r = rows[static_cast<std::size_t>(k)];
    ASSERT_TRUE(r.state.own) << k;
    EXPECT_EQ(*r.state.own, k);
    EXPECT_EQ(r.seen, (tokens{5, k}));
    EXPECT_EQ(r.real, tokens{k});
  }
}

}  // namespace
}  // namespace kiln::language::testing
