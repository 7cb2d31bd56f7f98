#include <cmath>
#include <numeric>

#include "onnx/one_operator.hpp"
#include "runtime/compare.hpp"

// Attention over caches that are buffers, where ONNX Runtime has no kernel for the CPU or wants its outputs in the
// inputs' memory.
namespace kiln::test {
namespace {

using testing::random_argument;

struct operand {
  std::string name;
  int type = 1;
  many lens{};
  std::vector<std::int64_t> values{};  ///< of integers
  bool constant = false;
};
struct call_of {
  std::string op;
  std::vector<operand> inputs;
  std::vector<message> attributes;
  std::size_t outputs;
};

// Operands of the same name have the same values in all calls.
argument value_of(const operand& o) {
  const unsigned seed =
      std::accumulate(o.name.begin(), o.name.end(), 0u, [](unsigned s, char c) { return s * 31 + c; });
  const shape s{*onnx::to_dtype(static_cast<onnx::element>(o.type)), to_dims(o.lens)};
  return o.values.empty() ? random_argument(s, seed) : argument(literal::of<std::int64_t>(s, o.values));
}

// The operator's outputs on the Eigen target, and what its inputs were: those in `given` have their values there.
std::vector<argument> run(const call_of& call, std::map<std::string, argument>& given) {
  graph_parts parts;
  strings names, results;
  std::map<std::string, argument> inputs;
  for (const operand& o : call.inputs) {
    names.push_back(o.name);
    if (o.name.empty()) continue;
    given.try_emplace(o.name, value_of(o));
    if (o.constant) {
      parts.initializers.push_back(
          tensor(o.name, o.type, o.lens, std::vector<std::int32_t>(o.values.begin(), o.values.end())));
      continue;
    }
    std::vector<dim> lens(o.lens.begin(), o.lens.end());
    parts.inputs.push_back(value_info(o.name, o.type, lens));
    inputs[o.name] = given.at(o.name);
  }
  for (std::size_t k = 0; k < call.outputs; ++k) {
    results.push_back("y" + std::to_string(k));
    parts.outputs.push_back(value_info(results.back()));
  }
  parts.nodes.push_back(node(call.op, names, results, call.attributes, "", "com.microsoft"));
  const auto p = onnx::parse_model(model(graph(parts), {opset(20), opset(1, "com.microsoft")}).bytes()).graph;
  return compile(p, eigen_target(), testing::plain_options()).run(inputs);
}

// Two sequences with 5 and no past tokens get 1 and 3 new ones; four query heads over two of keys and values, 8 wide;
// blocks of four tokens.
constexpr std::size_t heads = 4, own = 2, depth = 8, size = 4, blocks = 6, each = 2;
const std::vector<std::int64_t> begins{0, 1, 4}, pasts{5, 0}, table{3, 1, 0, 4};

struct paged_options {
  bool turns = false, sinks = false, skips = false, packed = false;
  std::int64_t window = -1;
  float softcap = 0;
};

using numbers = std::vector<float>;
void turn(float* x, const numbers& cos, const numbers& sin, std::size_t place) {
  constexpr std::size_t half = depth / 2;
  for (std::size_t i = 0; i < half; ++i) {
    const float a = x[i], b = x[half + i], c = cos[place * half + i], s = sin[place * half + i];
    x[i] = a * c - b * s, x[half + i] = a * s + b * c;
  }
}

void expect_paged(const paged_options& o) {
  call_of call{"PagedAttention", {}, {attr("num_heads", 4), attr("kv_num_heads", 2)}, 3};
  const operand none{""};
  if (o.packed)
    call.inputs = {{"query", 1, {4, 64}}, none, none};
  else
    call.inputs = {{"query", 1, {4, 32}}, {"key", 1, {4, 16}}, {"value", 1, {4, 16}}};
  call.inputs.insert(call.inputs.end(), {{"key_cache", 1, {6, 4, 2, 8}},
                                         {"value_cache", 1, {6, 4, 2, 8}},
                                         {"begins", 6, {3}, begins},
                                         {"pasts", 6, {2}, pasts},
                                         {"table", 6, {2, 2}, table}});
  call.inputs.push_back(o.turns ? operand{"cos", 1, {8, 4}} : none);
  call.inputs.push_back(o.turns ? operand{"sin", 1, {8, 4}} : none);
  call.inputs.push_back(o.skips ? operand{"places", 6, {4}, {5, -1, 1, 2}} : none);
  call.inputs.push_back(o.sinks ? operand{"sinks", 1, {4}} : none);
  if (o.turns) call.attributes.push_back(attr("do_rotary", 1));
  if (o.window > 0) call.attributes.push_back(attr("local_window_size", o.window));
  if (o.softcap > 0) call.attributes.push_back(attr("softcap", o.softcap));
  std::map<std::string, argument> given;
  const std::vector<argument> found = run(call, given);

  const auto real = [&](const char* name) {
    const auto v = given.at(name).to<float>();
    return numbers(v.begin(), v.end());
  };
  numbers q = real("query"), k, v, kept_k = real("key_cache"), kept_v = real("value_cache");
  if (o.packed) {
    numbers all = q;
    q.clear();
    for (std::size_t t = 0; t < 4; ++t) {
      const auto at = all.begin() + static_cast<std::ptrdiff_t>(64 * t);
      q.insert(q.end(), at, at + 32), k.insert(k.end(), at + 32, at + 48), v.insert(v.end(), at + 48, at + 64);
    }
  } else {
    k = real("key"), v = real("value");
  }
  const auto slot = [&](std::size_t b, std::size_t place) {
    return static_cast<std::size_t>(table[b * each + place / size]) * size + place % size;
  };
  std::vector<std::size_t> sequence, place;
  for (std::size_t b = 0; b < 2; ++b)
    for (auto t = begins[b]; t < begins[b + 1]; ++t) {
      sequence.push_back(b);
      place.push_back(static_cast<std::size_t>(pasts[b] + t - begins[b]));
    }
  for (std::size_t t = 0; t < 4; ++t) {
    if (o.turns) {
      for (std::size_t h = 0; h < heads; ++h) turn(&q[(t * heads + h) * depth], real("cos"), real("sin"), place[t]);
      for (std::size_t h = 0; h < own; ++h) turn(&k[(t * own + h) * depth], real("cos"), real("sin"), place[t]);
    }
    if (o.skips && t == 1) continue;
    const std::size_t to = slot(sequence[t], place[t]) * own * depth;
    std::copy_n(&k[t * own * depth], own * depth, &kept_k[to]);
    std::copy_n(&v[t * own * depth], own * depth, &kept_v[to]);
  }
  numbers y;
  for (std::size_t t = 0; t < 4; ++t)
    for (std::size_t h = 0; h < heads; ++h) {
      numbers p;
      std::vector<double> sum(depth, 0.0);
      double all = o.sinks ? std::exp(double(real("sinks")[h])) : 0;
      for (std::size_t j = 0; j <= place[t]; ++j) {
        if (o.window > 0 && place[t] - j >= static_cast<std::size_t>(o.window)) continue;
        const std::size_t at = (slot(sequence[t], j) * own + h / 2) * depth;
        double score = 0;
        for (std::size_t d = 0; d < depth; ++d) score += double(q[(t * heads + h) * depth + d]) * kept_k[at + d];
        score /= std::sqrt(double(depth));
        if (o.softcap > 0) score = o.softcap * std::tanh(score / o.softcap);
        const double e = std::exp(score);
        all += e;
        for (std::size_t d = 0; d < depth; ++d) sum[d] += e * kept_v[at + d];
      }
      for (const double s : sum) y.push_back(static_cast<float>(s / all));
    }
  testing::expect_close(found[0], argument(literal::of<float>({dtype::f32, {4, 32}}, y)));
  testing::expect_close(found[1], argument(literal::of<float>({dtype::f32, {6, 4, 2, 8}}, kept_k)));
  testing::expect_close(found[2], argument(literal::of<float>({dtype::f32, {6, 4, 2, 8}}, kept_v)));
}

TEST(paged_attention, reads_and_writes_the_blocks_of_each_sequence) { expect_paged({}); }
TEST(paged_attention, turns_packed_heads_by_their_places) { expect_paged({.turns = true, .packed = true}); }
TEST(paged_attention, has_sinks_windows_and_caps) {
  expect_paged({.sinks = true});
  expect_paged({.turns = true, .window = 2});
  expect_paged({.softcap = .5f});
}
TEST(paged_attention, does_not_write_where_the_place_is_minus_one) { expect_paged({.skips = true}); }

// Keys of two sequences of 33 and 20 tokens, with three new ones each, in a buffer for 48.
call_of over_buffer(const std::string& op, const std::vector<operand>& layout, std::int64_t short_by) {
  call_of call{op,
               {{"query", 1, {2, 3, 64}},
                {"key", 1, {2, 3, 32}},
                {"value", 1, {2, 3, 32}},
                {"past_key", 1, {2, 2, 48, 16}},
                {"past_value", 1, {2, 2, 48, 16}}},
               {attr("num_heads", 4), attr("kv_num_heads", 2), attr("do_rotary", 1)},
               3};
  const operand total{"total", 6, {}, {33}, true},
      lengths{layout.empty() ? "ends" : "lengths", 6, {2}, {33 - short_by, 20 - short_by}, false};
  if (layout.empty()) {
    call.inputs.insert(call.inputs.end(), {lengths, total});
  } else {
    call.inputs.insert(call.inputs.end(), layout.begin(), layout.end());
    call.inputs.insert(call.inputs.end(), {total, lengths});
    call.attributes.push_back(attr("sparse_block_size", 16));
  }
  call.inputs.insert(call.inputs.end(), {{"cos", 1, {48, 8}}, {"sin", 1, {48, 8}}});
  return call;
}

TEST(sparse_attention, of_all_blocks_is_attention_of_groups) {
  const std::vector<operand> dense{{"rows", 6, {1, 4}, {0, 1, 3, 6}, true},
                                   {"columns", 6, {1, 6}, {0, 0, 1, 0, 1, 2}, true}};
  std::map<std::string, argument> given;
  const std::vector<argument> found = run(over_buffer("SparseAttention", dense, 0), given),
                              expected = run(over_buffer("GroupQueryAttention", {}, 1), given);
  for (std::size_t k = 0; k < 3; ++k) testing::expect_close(found[k], expected[k]);
}

// Heads of 16 are divided by their root mean square and multiplied by gains before they turn.
// Two sequences of two beams, four past keys: those of a beam lie in rows of the beams that it was made of.
TEST(masked_attention, of_beams_reads_the_rows_that_they_were_made_of) {
  const operand none{""}, room{"past_key", 1, {4, 4, 8, 8}};
  const many rows{0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0};
  call_of plain{"DecoderMaskedMultiHeadAttention",
                {{"query", 1, {4, 1, 32}},
                 {"key", 1, {4, 1, 32}},
                 {"value", 1, {4, 1, 32}},
                 none,
                 none,
                 room,
                 {"past_value", 1, {4, 4, 8, 8}},
                 {"past", 6, {1}, {4}}},
                {attr("num_heads", 4), attr("past_present_share_buffer", 1)},
                3},
      beams = plain;
  beams.inputs.insert(beams.inputs.end(), {{"width", 6, {1}, {2}}, {"rows", 6, {2, 2, 8}, rows}});
  std::map<std::string, argument> given, by_hand;
  const std::vector<argument> found = run(beams, given);
  for (const char* name : {"past_key", "past_value"}) {
    argument moved = given.at(name).copy();
    const auto from = given.at(name).as<float>();
    const auto to = moved.as<float>();
    for (std::size_t b = 0; b < 4; ++b)
      for (std::size_t h = 0; h < 4; ++h)
        for (std::size_t t = 0; t < 4; ++t)
          for (std::size_t d = 0; d < 8; ++d) {
            const std::size_t row = b / 2 * 2 + static_cast<std::size_t>(rows[b * 8 + t]);
            to[((b * 4 + h) * 8 + t) * 8 + d] = from[((row * 4 + h) * 8 + t) * 8 + d];
          }
    by_hand.emplace(name, moved);
  }
  testing::expect_close(found[0], run(plain, by_hand)[0]);
  const std::vector<argument> kept = run(plain, given);
  for (const std::size_t k : {1, 2}) testing::expect_close(found[k], kept[k]);
}

TEST(group_query_attention, of_normalized_heads) {
  call_of plain = over_buffer("GroupQueryAttention", {}, 1), normed = plain;
  normed.inputs.insert(normed.inputs.end(), 5, {""});
  normed.inputs.insert(normed.inputs.end(), {{"q_gains", 1, {16}}, {"k_gains", 1, {16}}});
  normed.attributes.push_back(attr("qk_norm_epsilon", .25f));
  std::map<std::string, argument> given, by_hand;
  const std::vector<argument> found = run(normed, given);
  for (const auto& [name, gains] : {std::pair("query", "q_gains"), std::pair("key", "k_gains")}) {
    argument x = given.at(name).copy();
    const auto values = x.as<float>();
    for (std::size_t h = 0; h < values.size(); h += 16) {
      double sum = 0;
      for (std::size_t d = 0; d < 16; ++d) sum += double(values[h + d]) * values[h + d];
      const double factor = 1 / std::sqrt(sum / 16 + .25);
      for (std::size_t d = 0; d < 16; ++d)
        values[h + d] = static_cast<float>(values[h + d] * factor * given.at(gains).as<float>()[d]);
    }
    by_hand.emplace(name, x);
  }
  const std::vector<argument> expected = run(plain, by_hand);
  for (std::size_t k = 0; k < 3; ++k) testing::expect_close(found[k], expected[k]);
}

TEST(sparse_attention, names_faults_of_its_layout) {
  const auto fails = [](const many& rows, const many& columns, bool constant, const char* why) {
    std::map<std::string, argument> given;
    try {
      run(over_buffer("SparseAttention",
                      {{"rows", 6, {1, 4}, rows, constant}, {"columns", 6, {1, 6}, columns, constant}}, 0),
          given);
      ADD_FAILURE() << why;
    } catch (const error& e) {
      EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
    }
  };
  const many rows{0, 1, 3, 6}, columns{0, 0, 1, 0, 1, 2};
  fails({0, 1, 3, 7}, columns, true, "at most 6, found 3 and then 7");
  fails({0, 3, 1, 6}, columns, true, "found 3 and then 1");
  fails(rows, {0, 0, 1, 0, 1, 3}, true, "block_col_indices are below 3, found 3");
  fails(rows, columns, false, "a layout of blocks that only a run knows");
}

}  // namespace
}  // namespace kiln::test
