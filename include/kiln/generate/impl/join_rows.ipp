#include "kiln/generate/impl/join_rows.hpp"

#include <algorithm>
#include <optional>

#include "kiln/generate/impl/probe.hpp"
#include "kiln/graph/rewriter.hpp"
#include "kiln/op/index/concat.hpp"
#include "kiln/op/nn/attention.hpp"
#include "kiln/op/nn/paged_attention.hpp"
#include "kiln/op/pointwise/convert.hpp"
#include "kiln/op/view/multibroadcast.hpp"
#include "kiln/op/view/reshape.hpp"

namespace kiln::language::detail {

namespace {

using instruction = basic_instruction<operation>;

// Keys or values of an attention, with those of earlier tokens before them.
struct grown {
  std::uint32_t joint = 0;  // the concatenation
  std::size_t cache = 0;    // of the ports'
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
        if (r.get_if<op::attention>({i, 0})) why = page(r, i, batch, layers);
      if (!why.empty()) return why;
      if (layers.empty()) return "there is no attention over caches";
    }
    drop_present();
    make_positions_an_input();
    if (std::string why = drop_parameters(); !why.empty()) return why;
    return check_rows_apart(p_, ports_.now);
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
    for (std::size_t k = 0; k < m_.outputs.size(); ++k)
      if (m_.output_names[k] == ports_.caches[g.cache].output) return m_.outputs[k].instruction == g.joint;
    return false;
  }

  // The concatenation that keys or values are made of, through what goes element by element.
  std::optional<grown> find_grown(const rewriter<module_graph>& r, value_id v) const {
    for (;;) {
      const instruction& i = r.producer(v);
      if (i.kind != instruction_kind::op) return std::nullopt;
      if (const auto* joins = i.op.get_if<op::concat>()) {
        const instruction& first = r.producer(i.inputs[0]);
        if (i.inputs.size() != 2 || normal_axis(joins->axis, 4) != 2 || first.kind != instruction_kind::parameter)
          return std::nullopt;
        for (std::size_t k = 0; k < ports_.caches.size(); ++k)
          if (first.name == ports_.caches[k].input) return grown{v.instruction, k};
        return std::nullopt;
      }
      std::optional<value_id> next;
      for (const value_id in : i.inputs)
        if (v.instruction < from_.size() && in.instruction < from_.size() && (from_[in.instruction] & of_cache)) {
          if (next) return std::nullopt;
          next = in;
        }
      if (!next || i.op.kind() != op_kind::pointwise) return std::nullopt;
      v = *next;
    }
  }
  // The same value of the new tokens alone.
  std::optional<value_id> without_past(rewriter<module_graph>& r, value_id v, const grown& g) {
    if (v.instruction == g.joint) return r.input(v, 1);
    const instruction i = r.producer(v);
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
      if (!wide) return std::nullopt;
      op::multibroadcast narrow = *wide;
      for (dimension& d : narrow.to)
        if (d == ports_.past + ports_.now) d = ports_.now;
      x = r.add(narrow, {r.input(x, 0)});
    }
    return r.add(i.op, std::move(in), i.name.view());
  }

  std::string page(rewriter<module_graph>& r, std::uint32_t at, value_id batch, std::vector<joined_layer>& layers) {
    const instruction i = r[at];
    const op::attention attention = *i.op.get_if<op::attention>();
    const std::string name = i.name.empty() ? "an attention" : "attention '" + std::string(i.name.view()) + "'";
    const auto keys = find_grown(r, i.inputs[1]), values = find_grown(r, i.inputs[2]);
    if (!keys || !values) return name + " reads keys and values that are no past followed by new ones";
    for (const grown* g : {&*keys, &*values}) {
      if (!stays(*g))
        return "'" + ports_.caches[g->cache].output + "' is not '" + ports_.caches[g->cache].input +
               "' with new ones after it";
    }
    std::int64_t window = 0;
    if (i.inputs.size() > 3) {
      if (from_[i.inputs[3].instruction] & (of_tokens | of_cache)) return "the mask of " + name + " depends on tokens";
      const auto found = probe_.window_of(i.inputs[3], attention.causal);
      if (!found) return "the mask of " + name + " is not causal, or adds to scores";
      window = *found;
    } else if (!attention.causal) {
      return name + " is not causal";
    }
    const auto k = without_past(r, i.inputs[1], *keys), v = without_past(r, i.inputs[2], *values);
    if (!k || !v) return name + " reads keys or values by their positions";
    joined_layer layer;
    const shape &ks = r.shape_of(*k), &vs = r.shape_of(*v);
    if (!ks.lens[1].is_constant() || !ks.lens[3].is_constant() || !vs.lens[3].is_constant())
      return name + " has heads of unknown sizes";
    layer.kv_heads = ks.lens[1].value(), layer.depth = ks.lens[3].value(), layer.value_depth = vs.lens[3].value();
    layer.type = r[keys->joint].results[0].type;
    const auto wide = [&](value_id x) {
      return r.shape_of(x).type == dtype::f32 ? x : r.add(op::convert{dtype::f32}, {x});
    };
    const op::paged_attention paged{static_cast<std::int64_t>(layers.size()), window, attention.scale, 0};
    value_id out = r.add(paged, {wide(i.inputs[0]), wide(*k), wide(*v), batch}, i.name.view());
    if (const dtype t = i.results[0].type; t != dtype::f32) out = r.add(op::convert{t}, {out});
    r.replace({at, 0}, out);
    layers.push_back(layer);
    return {};
  }

  // Values that count the new tokens from the past on become the input for positions.
  void make_positions_an_input() {
    const std::string name(ports_.positions.empty() ? positions_input : std::string_view(ports_.positions));
    if (ports_.positions.empty()) m_.add_parameter(name, shape(dtype::i64, {1, ports_.now}));
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

std::string join_rows(program& p, const decoder_ports& ports, std::vector<joined_layer>& layers) {
  return row_joiner(p, ports).run(layers);
}

}  // namespace kiln::language::detail
