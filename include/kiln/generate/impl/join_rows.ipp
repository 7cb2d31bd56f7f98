#include "kiln/generate/impl/join_rows.hpp"

#include <algorithm>
#include <optional>

#include "kiln/generate/impl/probe.hpp"
#include "kiln/generate/impl/softmax_attention.hpp"
#include "kiln/graph/rewriter.hpp"
#include "kiln/op/index/concat.hpp"
#include "kiln/op/nn/paged_attention.hpp"
#include "kiln/op/pointwise/convert.hpp"
#include "kiln/op/view/multibroadcast.hpp"
#include "kiln/op/view/reshape.hpp"
#include "kiln/op/view/slice.hpp"
#include "kiln/op/view/transpose.hpp"
#include "kiln/pass/fuse_attention.hpp"

namespace kiln::language::detail {

namespace {

using instruction = basic_instruction<operation>;

// Keys or values of an attention, with those of earlier tokens before them.
struct grown {
  std::uint32_t joint = 0;          // the concatenation
  std::size_t cache = 0, part = 0;  // of the ports'; 0 keys, 1 values where both are in one
  bool is_whole = true;             // not both in one
};

class row_joiner {
 public:
  row_joiner(program& p, const decoder_ports& ports) : p_(p), m_(p.main()), ports_(ports), probe_(p, ports) {}

  std::string run(std::vector<joined_layer>& layers) {
    m_.add_parameter(batch_input, shape(dtype::i64, {1}));
    {
      rewriter<module_graph> r(m_);
      from_ = sources_of(m_, ports_);
      const value_id batch = m_.find_parameter(batch_input);
      std::string why;
      const std::uint32_t count = r.size();
      for (std::uint32_t i = 0; i < count && why.empty(); ++i)
        if (const auto found = find_attention(r, i)) why = page(r, i, *found, batch, layers);
      if (!why.empty()) return why;
      if (layers.empty()) return "there is no attention over caches";
    }
    drop_present();
    make_positions_an_input();
    return drop_parameters();
  }

 private:
  // Outputs without those that are caches.
  void drop_present() {
    small_vector<value_id> outputs;
    small_vector<text> names;
    for (std::size_t k = 0; k < m_.outputs.size(); ++k) {
      const auto is_it = [&](const auto& c) { return m_.output_names[k] == c.output; };
      if (std::any_of(ports_.caches.begin(), ports_.caches.end(), is_it)) continue;
      outputs.push_back(m_.outputs[k]);
      names.push_back(m_.output_names[k]);
    }
    m_.outputs = std::move(outputs);
    m_.output_names = std::move(names);
  }
  // Whether the model returns a concatenation as the cache that it begins with.
  bool stays(const grown& g) const {
    for (std::size_t k = 0; k < m_.outputs.size(); ++k) {
      if (!(m_.output_names[k] == ports_.caches[g.cache].output)) continue;
      value_id v = m_.outputs[k];
      if (!g.is_whole) {  // keys, then values
        const instruction& pair = m_.producer(v);
        const auto* joins = pair.kind == instruction_kind::op ? pair.op.get_if<op::concat>() : nullptr;
        if (!joins || pair.inputs.size() != 2 || normal_axis(joins->axis, 5) != 0) return false;
        v = pair.inputs[g.part];
        while (is_view(m_.producer(v)) && v.instruction != g.joint) v = m_.producer(v).inputs[0];
      }
      return v.instruction == g.joint;
    }
    return false;
  }

  // The cache that a value is, or the part of one that holds keys (0) or values (1).
  struct source {
    std::size_t cache = 0, part = 0;
    bool is_whole = true;
  };
  std::optional<source> find_cache(const rewriter<module_graph>& r, value_id v) const {
    source out;
    for (; r.is_kind(v, op_kind::view); v = r.input(v, 0))
      if (const auto* s = r.get_if<op::slice>(v)) {
        if (!out.is_whole || s->axes.size() != 1 || normal_axis(s->axes[0], 5) != 0 || r.shape_of(v).rank() != 5)
          return std::nullopt;
        out.is_whole = false;
        out.part = static_cast<std::size_t>(s->starts[0].is_constant() ? s->starts[0].value() : 2);
      }
    const instruction& i = r.producer(v);
    if (i.kind != instruction_kind::parameter || out.is_whole != (r.shape_of(v).rank() == 4) || out.part > 1)
      return std::nullopt;
    for (std::size_t k = 0; k < ports_.caches.size(); ++k)
      if (i.name == ports_.caches[k].input) return out.cache = k, out;
    return std::nullopt;
  }
  // The operand that a cache comes in by, if there is one alone.
  std::optional<std::size_t> cache_operand(const instruction& i) const {
    std::optional<std::size_t> found;
    for (std::size_t k = 0; k < i.inputs.size(); ++k) {
      if (i.inputs[k].instruction >= from_.size() || !(from_[i.inputs[k].instruction] & of_cache)) continue;
      if (found) return std::nullopt;
      found = k;
    }
    return found;
  }
  // The concatenation that keys or values are made of, each position by itself.
  std::optional<grown> find_grown(const rewriter<module_graph>& r, value_id v) const {
    for (;;) {
      const instruction& i = r.producer(v);
      if (i.kind != instruction_kind::op) return std::nullopt;
      if (const auto* joins = i.op.get_if<op::concat>()) {
        if (i.inputs.size() != 2 || i.results[0].rank() != 4 || normal_axis(joins->axis, 4) != 2) return std::nullopt;
        const auto from = find_cache(r, i.inputs[0]);
        return from ? std::optional(grown{v.instruction, from->cache, from->part, from->is_whole}) : std::nullopt;
      }
      const auto k = cache_operand(i);
      if (!k || !keeps_apart(m_, v.instruction, *k, ports_.past + ports_.now)) return std::nullopt;
      v = i.inputs[*k];
    }
  }
  // The same value of the new tokens alone.
  std::optional<value_id> without_past(rewriter<module_graph>& r, value_id v, const grown& g) {
    if (v.instruction == g.joint) return r.input(v, 1);
    const instruction i = r.producer(v);
    const auto shorter = [&](dims lens) {
      for (dimension& d : lens)
        if (d == ports_.past + ports_.now) d = ports_.now;
      return lens;
    };
    small_vector<value_id> in = i.inputs;
    for (value_id& x : in) {
      if (from_[x.instruction] & of_cache) {
        const auto made = without_past(r, x, g);
        if (!made) return std::nullopt;
        x = *made;
        continue;
      }
      if (!mentions(r.shape_of(x), ports_.past)) continue;
      const auto* wide = r.get_if<op::multibroadcast>(x);
      if (!wide || mentions(r.shape_of(r.input(x, 0)), ports_.past)) return std::nullopt;
      x = r.add(op::multibroadcast{shorter(wide->to)}, {r.input(x, 0)});
    }
    if (const auto* op = i.op.get_if<op::multibroadcast>()) return r.add(op::multibroadcast{shorter(op->to)}, in);
    if (const auto* op = i.op.get_if<op::reshape>()) return r.add(op::reshape{shorter(op->to)}, in);
    return r.add(i.op, std::move(in), i.name.view());
  }
  // New keys or values with each head once.
  std::optional<value_id> new_ones(rewriter<module_graph>& r, value_id v, const grown& g) {
    auto made = without_past(r, v, g);
    if (made)
      if (const value_id once = kiln::detail::ungrouped_heads(r, *made)) made = once;
    return made;
  }

  std::string page(rewriter<module_graph>& r, std::uint32_t at, const found_attention& found, value_id batch,
                   std::vector<joined_layer>& layers) {
    const instruction i = r[at];
    const std::string name = i.name.empty() ? "an attention" : "attention '" + std::string(i.name.view()) + "'";
    const auto keys = find_grown(r, found.k), values = find_grown(r, found.v);
    if (!keys || !values) return name + " reads keys and values that are no past followed by new ones";
    for (const grown* g : {&*keys, &*values})
      if (!stays(*g))
        return "'" + ports_.caches[g->cache].output + "' is not '" + ports_.caches[g->cache].input +
               "' with new ones after it";
    std::int64_t window = 0;
    bool causal = found.causal;
    for (const value_id mask : found.masks) {
      if (from_[mask.instruction] & (of_tokens | of_cache)) return "the mask of " + name + " depends on tokens";
      const auto seen = probe_.window_of(mask, found.causal);
      if (!seen) return "the mask of " + name + " is not causal, or adds to scores";
      if (*seen > 0) window = window > 0 ? std::min(window, *seen) : *seen;
      causal = true;
    }
    if (!causal) return name + " is not causal";
    auto k = new_ones(r, found.k, *keys);
    const auto v = new_ones(r, found.v, *values);
    if (!k || !v) return name + " reads keys or values by their positions";
    if (found.is_k_turned) k = r.add(op::transpose{{0, 1, 3, 2}}, {*k});
    joined_layer layer;
    const shape ks = r.shape_of(*k), vs = r.shape_of(*v);
    if (!ks.lens[1].is_constant() || !ks.lens[3].is_constant() || !vs.lens[3].is_constant() ||
        !(ks.lens[1] == vs.lens[1]))
      return name + " has heads of unknown or different sizes";
    layer.kv_heads = ks.lens[1].value(), layer.depth = ks.lens[3].value(), layer.value_depth = vs.lens[3].value();
    layer.type = r[keys->joint].results[0].type;
    const auto wide = [&](value_id x) {
      return r.shape_of(x).type == dtype::f32 ? x : r.add(op::convert{dtype::f32}, {x});
    };
    small_vector<value_id> in{wide(found.q), wide(*k), wide(*v), batch};
    if (found.sinks) {
      if (from_[found.sinks.instruction] != 0) return "the sinks of " + name + " are no constants";
      in.push_back(wide(r.add(op::reshape{{r.shape_of(found.sinks).elements()}}, {found.sinks})));
    }
    const op::paged_attention paged{static_cast<std::int64_t>(layers.size()), window, found.scale, found.softcap};
    value_id out = r.add(paged, std::move(in), i.name.view());
    if (const dtype t = i.results[0].type; t != dtype::f32) out = r.add(op::convert{t}, {out});
    r.replace({at, 0}, out);
    layers.push_back(layer);
    return {};
  }

  // Values that count the new tokens from the past on become the input for positions.
  void make_positions_an_input() {
    // an input that has each position several times is no such count
    const value_id given = ports_.positions.empty() ? value_id{} : m_.find_parameter(ports_.positions);
    const bool serves = given && m_.shape_of(given).elements() == ports_.now;
    const std::string name(serves ? std::string_view(ports_.positions) : positions_input);
    if (!serves) m_.add_parameter(name, shape(dtype::i64, {1, ports_.now}));
    rewriter<module_graph> r(m_);
    from_ = sources_of(m_, ports_);
    const value_id input = m_.find_parameter(name);
    const std::uint32_t count = r.size();
    for (std::uint32_t i = 0; i < count; ++i) {
      const instruction& at = r[i];
      if (at.kind == instruction_kind::parameter || at.results.size() != 1) continue;
      const shape s = at.results[0];
      if ((s.type != dtype::i64 && s.type != dtype::i32) || !(s.elements() == ports_.now)) continue;
      if ((from_[i] & (of_tokens | of_cache)) || !(from_[i] & (of_length | of_past))) continue;
      if (!probe_.is_positions({i, 0})) continue;
      value_id by = input;
      if (r.shape_of(by).type != s.type) by = r.add(op::convert{s.type}, {by});
      if (!(r.shape_of(by).lens == s.lens)) by = r.add(op::reshape{s.lens}, {by});
      r.replace({i, 0}, by);
    }
  }

  // Copies what the outputs need, without parameters that nothing reads.
  std::string drop_parameters() {
    m_.compact();
    from_ = sources_of(m_, ports_);
    for (const std::uint32_t i : needed_of(m_, m_.outputs))
      if (from_of_itself(m_, i, ports_) & (of_length | of_past | of_cache)) {
        const instruction& at = m_[i];
        const std::string name(at.kind == instruction_kind::op ? at.op.name() : at.name.view());
        return "'" + name +
               (at.name.empty() || at.kind != instruction_kind::op ? "" : " " + std::string(at.name.view())) +
               "' depends on how long one sequence is";
      }
    m_ = part_of(m_, m_.outputs, m_.output_names);
    return {};
  }

  program& p_;
  module_graph& m_;
  const decoder_ports& ports_;
  prober probe_;
  std::vector<std::uint8_t> from_;
};

}  // namespace

std::string join_rows(program& p, const decoder_ports& ports, std::vector<joined_layer>& layers, std::string& unsure) {
  std::string why = row_joiner(p, ports).run(layers);
  if (!why.empty()) return why;
  rows_verdict found = check_rows_apart(p, ports.now);
  unsure = std::move(found.unsure);
  return std::move(found.refused);
}

}  // namespace kiln::language::detail
