#include "kiln/onnx/impl/ops/microsoft/attention.hpp"
#include "kiln/op/index/scatter_nd.hpp"

// Attention over caches that are buffers: block-sparse, paged, and by steps of one token (com.microsoft).
namespace kiln::onnx {

namespace {

value number(node_context& c, dimension d) { return dimensions_value(c.build, {}, {d}); }

// Which blocks of keys each block of queries sees, bool[layouts, blocks, blocks], from the compressed sparse rows that
// inputs 5 and 6 are.
value block_mask(node_context& c) {
  const literal *const rows = c.constant(5), *const columns = c.constant(6);
  if (!rows || !columns) c.unsupported("a layout of blocks that only a run knows");
  const auto plane = [](const literal& l) {
    return l.get_shape().rank() == 2 && l.get_shape().lens[0].is_constant() && l.get_shape().lens[1].is_constant();
  };
  if (!plane(*rows) || !plane(*columns) || !(rows->get_shape().lens[0] == columns->get_shape().lens[0]) ||
      rows->get_shape().lens[1].value() < 2)
    c.malformed("block_row_indices [layouts, blocks + 1] and block_col_indices [layouts, blocks seen], found " +
                kiln::to_string(rows->get_shape()) + " and " + kiln::to_string(columns->get_shape()));
  const std::int64_t layouts = rows->get_shape().lens[0].value(), blocks = rows->get_shape().lens[1].value() - 1,
                     width = columns->get_shape().lens[1].value();
  constexpr std::int64_t most = 1 << 12;
  if (blocks > most) c.unsupported(std::to_string(blocks) + " blocks; at most " + std::to_string(most));
  const auto begin = c.numbers(5, "the layout's rows"), column = c.numbers(6, "the layout's columns");
  std::vector<std::uint8_t> seen(static_cast<std::size_t>(layouts * blocks * blocks), 0);
  for (std::int64_t l = 0; l < layouts; ++l)
    for (std::int64_t r = 0; r < blocks; ++r) {
      const std::int64_t from = begin[static_cast<std::size_t>(l * (blocks + 1) + r)],
                         to = begin[static_cast<std::size_t>(l * (blocks + 1) + r + 1)];
      if (from < 0 || to < from || to > width)
        c.malformed("block_row_indices ascend from 0 to at most " + std::to_string(width) + ", found " +
                    std::to_string(from) + " and then " + std::to_string(to));
      for (std::int64_t i = from; i < to; ++i) {
        const std::int64_t k = column[static_cast<std::size_t>(l * width + i)];
        if (k < 0 || k >= blocks)
          c.malformed("block_col_indices are below " + std::to_string(blocks) + ", found " + std::to_string(k));
        seen[static_cast<std::size_t>((l * blocks + r) * blocks + k)] = 1;
      }
    }
  return c.build.constant<std::uint8_t>(dtype::boolean, {layouts, blocks, blocks}, seen);
}

}  // namespace

// Inputs: query (or all three packed), key, value, past key, past value, the layout's rows and columns, total length,
// lengths, cos, sin. Heads take the layouts in turn.
variables import_sparse_attention(node_context& c) {
  attention_inputs a;
  read_grouped_heads(c, a);
  const std::int64_t size = c.integer("sparse_block_size", 0);
  if (size < 1) c.malformed("sparse_block_size is positive, not " + std::to_string(size));
  const value seen = block_mask(c);
  const dimension heads = a.q.dim(1), layouts = seen.dim(0), batch = a.q.dim(0), now = a.q.dim(2);
  if (!(heads % layouts == dimension(0)))
    c.malformed("num_heads is a multiple of the number of layouts, " + kiln::to_string(layouts));
  a.offset = c.in(3).dim(2);
  const key_order order = order_of_keys(c, a, 3, 7, c.has(8) ? c.in(8).convert(dtype::i64) : value());
  a.batch_offset = order.first;
  const value from = order.first ? order.first.reshape({batch, 1}) : number(c, a.offset);
  const value at = indices_along(c, 2, 1, now) + from;  // [batch or 1, now]
  if (c.flag("do_rotary")) {
    a.q = rotated(c, a.q, at, c.in(9), c.in(10));
    a.k = rotated(c, a.k, at, c.in(9), c.in(10));
  }
  a.k = ordered_keys(c, c.in(3), a.k, order);
  a.v = ordered_keys(c, c.in(4), a.v, order);
  const value keys = indices_along(c, 1, 0, a.k.dim(2));
  // [layouts, batch or 1, now, keys]; keys of a buffer that no block covers are after all queries
  const value blocks = seen.gather(at / size, 1).gather((keys / size).min(number(c, seen.dim(2) - 1)), 3);
  const dims lens = blocks.get_shape().lens;
  a.mask = blocks.transpose({1, 0, 2, 3})
               .unsqueeze({1})
               .broadcast_to({lens[1], heads / layouts, layouts, lens[2], lens[3]})
               .reshape({lens[1], heads, lens[2], lens[3]});
  a.causal = true;
  a.scale = attention_scale(c, a.q);
  return {join_heads(attend(c, a).y), a.k, a.v};
}

// Tokens of several sequences one after the other. Inputs: query (or all three packed) [tokens, heads * depth], key,
// value, caches of keys and values [blocks, block size, heads, depth], where each sequence begins [batch + 1], numbers
// of past tokens [batch], blocks of each sequence [batch, blocks], cos, sin, places in the cache [tokens], sinks, gains
// of the heads' norms.
variables import_paged_attention(node_context& c) {
  if (c.choice("kv_cache_layout", {"SEPARATE", "LATENT"}) != "SEPARATE") c.unsupported("a latent cache");
  for (const std::string_view kind : {"k_quant_type", "v_quant_type"})
    if (c.choice(kind, {"NONE", "PER_TENSOR", "PER_CHANNEL"}) != "NONE") c.unsupported("a quantized cache");
  if (c.integer("v_head_size", 0) != 0 || c.integer("rotary_offset", 0) != 0)
    c.unsupported("v_head_size and rotary_offset, which latent caches have");
  if (!c.has(3) || !c.has(4)) c.malformed("caches of keys and values are inputs");
  attention_inputs a;
  variables rows = c.inputs;
  for (std::size_t i = 0; i < 3; ++i)
    if (c.has(i)) {
      if (c.in(i).rank() != 2) c.malformed("query, key and value are [tokens, heads * depth]");
      rows[i] = variable(c.in(i).unsqueeze({0}));
    }
  node_context whole = c.with_inputs(std::move(rows));
  read_grouped_heads(whole, a);
  if (c.has(12) != c.has(13)) c.malformed("q_norm_weight and k_norm_weight come together");
  if (c.has(12)) {
    a.q = normalized_heads(c, a.q, c.in(12));
    a.k = normalized_heads(c, a.k, c.in(13));
  }
  const value cache = c.in(3), table = c.in(7).convert(dtype::i64);
  if (cache.rank() != 4 || table.rank() != 2)
    c.malformed("caches are [blocks, block size, heads, depth] and the block table is [batch, blocks]");
  const dimension tokens = a.q.dim(2), batch = table.dim(0), size = cache.dim(1), slots = cache.dim(0) * size,
                  each = table.dim(1) * size;
  const value zero = c.build.scalar(dtype::i64, 0), block = number(c, size);
  // the sequence of each token and its place in it, [tokens]
  const value begins = c.in(5).convert(dtype::i64), past = c.in(6).convert(dtype::i64);
  const value ends = begins.slice({{0}, {1}, {batch + 1}, {}}), token = indices_along(c, 1, 0, tokens);
  const value sequence =
      not_greater(ends.unsqueeze({0}), token.unsqueeze({1})).convert(dtype::i64).reduce_sum({1}).squeeze({1});
  const value place = token - begins.gather(sequence, 0) + past.gather(sequence, 0);
  if (c.flag("do_rotary")) {
    a.q = rotated(c, a.q, place, c.in(8), c.in(9));
    a.k = rotated(c, a.k, place, c.in(8), c.in(9));
  }
  const auto pairs = [](value x, value y) { return x.unsqueeze({1}).concat(y.unsqueeze({1}), 1); };
  const value own = c.has(10) ? c.in(10).convert(dtype::i64)
                              : c.build.add(op::gather_nd{}, table, pairs(sequence, place / block)) * block +
                                    c.build.add(op::mod{}, place, block);
  // a place of -1 is not written: it goes into a row after the cache
  const value to = (own < zero).where(number(c, slots), own).unsqueeze({1});
  const auto written = [&](value held, value now) {
    const dims lens = held.get_shape().lens;
    const value flat = held.reshape({slots, lens[2], lens[3]});
    const value spare = c.build.add(op::fill{{1, lens[2], lens[3]}, 0, held.type()});
    return c.build.add(op::scatter_nd{}, flat.concat(spare, 0), to, now.squeeze({0}).transpose({1, 0, 2}))
        .slice({{0}, {0}, {slots}, {}});
  };
  const value flat_k = written(cache, a.k), flat_v = written(c.in(4), a.v);
  // all keys of all sequences, [batch * each]; a token sees those of its own sequence
  const value slot = (table.max(zero).unsqueeze({2}) * block + indices_along(c, 3, 2, size)).reshape({batch * each});
  const auto read = [&](value flat) { return flat.gather(slot, 0).transpose({1, 0, 2}).unsqueeze({0}); };
  a.k = read(flat_k);
  a.v = read(flat_v);
  const value key = indices_along(c, 1, 0, batch * each).unsqueeze({0}), length = number(c, each);
  const value key_place = c.build.add(op::mod{}, key, length), query_place = place.unsqueeze({1});
  const value new_tokens = ends - begins.slice({{0}, {0}, {batch}, {}});
  const value last = (past + new_tokens).gather(sequence, 0).unsqueeze({1});
  a.mask = both((key / length).equal(sequence.unsqueeze({1})),
                c.flag("is_causal", true) ? not_greater(key_place, query_place) : key_place < last);
  if (const std::int64_t window = c.integer("local_window_size", -1); window > 0)
    a.mask = both(a.mask, query_place - key_place < c.build.scalar(dtype::i64, window));
  if (c.has(11))
    a.sinks = c.in(11);
  else if (c.flag("use_smooth_softmax"))
    a.sinks = c.build.scalar(dtype::f32, 0.0f);
  a.scale = attention_scale(c, a.q);
  a.softcap = c.real("softcap", 0);
  variables out{join_heads(attend(c, a).y).squeeze({0})};
  const dims lens = cache.get_shape().lens;
  for (const value flat : {flat_k, flat_v}) out.push_back(flat.reshape(lens));
  return out;
}

// One query a sequence. Inputs: query (or all three packed), key, value, padding, addend to the scores, past key, past
// value, number of past keys, beams, whose keys a beam has [batch, beams, keys], bias. The past is a buffer, the new
// key is written after the past ones; without a past, keys and values [batch, heads, sequence, depth] are whole.
variables import_decoder_masked_multi_head(node_context& c) {
  const std::int64_t heads = c.integer("num_heads", 0);
  attention_inputs a;
  const dimension width = c.has(1) ? c.in(0).dim(2) : c.in(0).dim(2) / 3;
  const auto biased = [&](value x, std::int64_t k) {
    return c.has(10) ? x + c.in(10).slice({{0}, {width * k}, {width * (k + 1)}, {}}) : x;
  };
  const auto part = [&](std::int64_t k) {
    return c.has(1) ? c.in(static_cast<std::size_t>(k)) : c.in(0).slice({{2}, {width * k}, {width * (k + 1)}, {}});
  };
  if (!(c.in(0).dim(1) == dimension(1)))
    c.malformed("one query for each sequence, not " + kiln::to_string(c.in(0).dim(1)));
  a.q = split_heads(c, biased(part(0), 0), heads);
  value present_k, present_v;
  if (!c.has(5)) {
    if (!c.has(1) || c.in(1).rank() != 4 || c.in(2).rank() != 4)
      c.malformed("without a past, key and value are [batch, heads, sequence, depth]");
    a.k = c.in(1);
    a.v = c.in(2);
  } else {
    if (!c.flag("past_present_share_buffer") || !c.has(6) || !c.has(7))
      c.malformed("a past is a buffer that the present shares, with its value and past_sequence_length");
    const value past_k = c.in(5), past_v = c.in(6), at = c.in(7).convert(dtype::i64).reshape({1});
    const dimension batch = past_k.dim(0), room = past_k.dim(2);
    const value key = indices_along(c, 4, 2, room);
    const value is_new = key.equal(at.reshape({1, 1, 1, 1}));
    const auto present = [&](value past, std::int64_t k) {
      return is_new.where(split_heads(c, biased(part(k), k), heads), past);
    };
    present_k = present(past_k, 1);
    present_v = present(past_v, 2);
    a.k = present_k;
    a.v = present_v;
    if (c.has(9)) {
      // past keys of each beam come from the row that it was made of
      const value from = c.in(9).convert(dtype::i64);
      const dimension beams = from.dim(1);
      const value row = (indices_along(c, 3, 0, batch / beams) * number(c, beams) + from).reshape({batch, room});
      const auto gathered = [&](value past, value now) {
        const value own =
            c.build.add(op::gather_nd{1}, past.transpose({2, 0, 1, 3}), row.transpose({1, 0}).unsqueeze({2}));
        return is_new.where(now, own.transpose({1, 2, 0, 3}));
      };
      a.k = gathered(past_k, present_k);
      a.v = gathered(past_v, present_v);
    }
    a.key_lengths = at + c.build.scalar(dtype::i64, 1);
  }
  read_padding(c, a, 3);
  read_bias(c, a, 4);
  a.scale = attention_scale(c, a.q);
  a.keeps_scores = c.wants(3);
  const attention_result r = attend(c, a);
  variables out{join_heads(r.y), present_k, present_v};
  if (!c.wants(3)) return out;
  // of the keys so far
  const dimension keys =
      c.has(5) ? c.dimensions_of(c.in(7).reshape({1}), "past_sequence_length", 0)[0] + 1 : a.k.dim(2);
  out.push_back(r.scores.slice({{3}, {0}, {keys}, {}}));
  return out;
}

}  // namespace kiln::onnx
