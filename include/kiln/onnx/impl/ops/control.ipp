#include <algorithm>

#include "kiln/onnx/impl/file/fault_list.hpp"
#include "kiln/onnx/impl/ops/bodies.hpp"
#include "kiln/op/dynamic/branch.hpp"
#include "kiln/op/dynamic/loop.hpp"
#include "kiln/op/dynamic/sequence.hpp"

// If and Loop: their bodies become modules that a run calls, unless the condition is a constant.
namespace kiln::onnx {

variable as_one_value(node_context& c, std::size_t i) {
  if (!c.has(i)) c.malformed("input " + std::to_string(i) + " is missing");
  variable v = c.inputs[i];
  if (v.is_sequence) v.item = items_of(v);
  v.tensor = as_value(c.build, v);
  v.is_sequence = v.is_empty = false;
  v.items.clear();
  return v;
}

shapes every_rank(const node_context& c, dtype type) {
  shapes out;
  for (std::size_t rank = 0; rank <= max_rank; ++rank) out.push_back({type, c.fresh_dims(rank, "extent")});
  return out;
}

bool known_outside(dimension d, const small_vector<value>& given) {
  small_vector<dimension> read, mentioned;
  for (const value& v : given)
    for (const dimension e : v.get_shape().lens) collect_symbols(e, read);
  collect_symbols(d, mentioned);
  for (const dimension m : mentioned) {
    bool known = false;
    for (const dimension r : read) known = known || r == m;
    if (!known) return false;
  }
  return true;
}

namespace {

variables results_of(node_context& c, const operation& op, const small_vector<value>& operands, shapes results,
                     const small_vector<item_type>& items) {
  small_vector<value_id> ids;
  for (const value& v : operands) ids.push_back(v.id());
  const std::size_t n = results.size();
  const value_id first = c.build.module().add_with_shapes(op, std::move(ids), std::move(results), c.build.label.view());
  variables out;
  for (std::uint32_t k = 0; k < n; ++k) out.push_back({c.build.wrap({first.instruction, k}), items[k]});
  return out;
}

// The types that a body's result, or the value of a resulting optional, may have, in symbols that mean something
// outside.
shapes types_outside(node_context& c, const variable& v, const body_module& from) {
  shapes out = v.possible_types.empty() ? shapes{v.type} : v.possible_types;
  for (shape& s : out)
    for (dimension& d : s.lens)
      if (!known_outside(d, from.captured)) d = c.bodies->fresh_symbol("extent");
  return out;
}
// Types of both, one for each rank: extents that differ become symbols.
shapes joined_types(node_context& c, shapes all, const shapes& more) {
  for (const shape& s : more) {
    if (s.type != all[0].type)
      c.malformed("its branches give " + kiln::to_string(all[0]) + " and " + kiln::to_string(s) +
                  ", which differ in type");
    bool found = false;
    for (shape& old : all) {
      if (old.rank() != s.rank()) continue;
      found = true;
      for (std::size_t d = 0; d < s.rank(); ++d)
        if (!(old.lens[d] == s.lens[d])) old.lens[d] = c.bodies->fresh_symbol("extent");
    }
    if (!found) all.push_back(s);
  }
  return all;
}
// Puts a result whose rank only a run knows into an optional.
void wrap_result(body_module& b, std::size_t k) {
  if (b.outputs[k].possible_types.empty())
    b.graph.outputs[k] = b.graph.add(op::make_optional{}, small_vector<value_id>{b.graph.outputs[k]});
}

variables import_if(node_context& c) {
  const value condition = c.in(0);
  if (const auto one = same(condition.get_shape().elements(), 1); condition.type() != dtype::boolean || !one || !*one)
    c.malformed("the condition is one bool");
  const graph &then_graph = c.body("then_branch"), &else_graph = c.body("else_branch");
  const literal* known = c.constant(0);
  if (known && !known->has_symbols()) return c.bodies->import_body(known->at<bool>(0) ? then_graph : else_graph, {});
  body_module then_body = c.bodies->build_module(then_graph, {}, {});
  return join_bodies(c, condition, std::move(then_body), c.bodies->build_module(else_graph, {}, {}));
}

}  // namespace

variables join_bodies(node_context& c, value condition, body_module then_body, body_module else_body) {
  if (then_body.outputs.size() != else_body.outputs.size())
    c.malformed("its branches give " + std::to_string(then_body.outputs.size()) + " and " +
                std::to_string(else_body.outputs.size()) + " values");
  shapes results;
  small_vector<item_type> items;
  small_vector<shapes> types;
  for (std::size_t k = 0; k < then_body.outputs.size(); ++k) {
    const variable &a = then_body.outputs[k], &b = else_body.outputs[k];
    const bool lists = a.type.type == dtype::sequence && b.type.type == dtype::sequence;
    items.push_back(lists ? joined_items(c, a.item, b.item) : joined(a.item, b.item));
    const bool optionals = a.type.type == dtype::optional && b.type.type == dtype::optional;
    if (optionals && (a.possible_types.empty() || b.possible_types.empty())) {  // of which one may hold nothing
      types.push_back({a.type});
      results.push_back(a.type);
      continue;
    }
    types.push_back(joined_types(c, types_outside(c, a, then_body), types_outside(c, b, else_body)));
    if (types[k].size() > 1) {
      wrap_result(then_body, k);
      wrap_result(else_body, k);
    }
    results.push_back(optionals || types[k].size() > 1 ? shape{dtype::optional, {}} : types[k][0]);
  }
  small_vector<value> operands{condition};
  for (const body_module* b : {&then_body, &else_body})
    for (const value& v : b->captured) operands.push_back(v);
  op::branch op;
  op.then_inputs = static_cast<std::int64_t>(then_body.captured.size());
  op.then_body = c.bodies->add_module(std::move(then_body.graph));
  op.else_body = c.bodies->add_module(std::move(else_body.graph));
  variables out = results_of(c, op, operands, std::move(results), items);
  for (std::size_t k = 0; k < out.size(); ++k)
    if (types[k].size() > 1) out[k].possible_types = types[k];
  return out;
}

namespace {

// Builds a loop's body again and again, until the values that it carries have the types that it returns.
class loop_builder {
 public:
  loop_builder(node_context& c, const graph& body, const variables& carried, named_variables visible)
      : c_(c), source_(body), visible_(visible), memory_(c.bodies->remembered_loop()), mark_(c.bodies->mark()) {
    parameters_.push_back({shape{dtype::i64, {}}, {}});
    parameters_.push_back({shape{dtype::boolean, {}}, {}});
    for (const variable& v : carried) parameters_.push_back({v.tensor.get_shape(), v.item});
    varies_.resize(parameters_.size());
    for (std::size_t i = 0; i < varies_.size(); ++i)
      varies_[i] = small_vector<std::uint8_t>(parameters_[i].type.rank(), 0);
    recall();
  }

  body_module build() {
    for (;;) {
      body_module b = build_once();
      for (std::size_t k = 0; k < b.outputs.size(); ++k)
        if (const shapes& types = b.outputs[k].possible_types;
            types.size() > 1 && (k == 0 || k + 1 >= parameters_.size()))
          c_.unsupported("its body gives " + kiln::to_string(types[0]) + " or " + kiln::to_string(types[1]) +
                         (k ? ", and what a loop collects has one rank" : " as its condition"));
      if (b.outputs.size() + 1 < parameters_.size())
        c_.malformed("its body gives " + std::to_string(b.outputs.size()) + " values, at least " +
                     std::to_string(parameters_.size() - 1) + " are expected");
      if (!settled(b)) {
        c_.bodies->return_to(mark_);
        continue;
      }
      for (std::size_t i = 2; i < parameters_.size(); ++i)
        if (unwraps(i - 2) || (ranks_vary(i - 2) && b.outputs[i - 1].possible_types.empty()))
          b.graph.outputs[i - 1] = b.graph.add(op::make_optional{}, small_vector<value_id>{b.graph.outputs[i - 1]});
      return b;
    }
  }
  const body_parameter& carried(std::size_t i) const { return parameters_[2 + i]; }
  bool varies(std::size_t i, std::size_t d) const { return varies_[2 + i][d] != 0; }
  /// Whether a carried value begins as an optional, and the body returns the value in it.
  bool unwraps(std::size_t i) const { return i < held_.size() && held_[i].type != dtype::optional; }
  const shape& held(std::size_t i) const { return held_[i]; }
  /// Whether the rank of a carried tensor changes: an optional holds it then.
  bool ranks_vary(std::size_t i) const { return parameters_[2 + i].item.rank == changing_rank; }

 private:
  // A body with an inner body that the first iterations do not run may need other extents than theirs: it is tried with
  // symbolic extents, too.
  body_module build_once() {
    const auto calls = [](const node& n) {
      return std::any_of(n.attributes.begin(), n.attributes.end(),
                         [](const attribute& a) { return !a.graphs.empty(); });
    };
    const std::span<const body_parameter> all(parameters_);
    if (std::none_of(source_.nodes.begin(), source_.nodes.end(), calls))
      return c_.bodies->build_module(source_, all, visible_);
    import_faults why, ignored;
    if (auto made = c_.bodies->try_module(source_, all, visible_, why)) return std::move(*made);
    c_.bodies->return_to(mark_);
    bool is_changed = false;
    for (std::size_t i = 2; i < parameters_.size(); ++i)
      for (std::size_t d = 0; d < varies_[i].size(); ++d)
        if (!varies_[i][d]) make_symbolic(i, d), is_changed = true;
    if (is_changed)
      if (auto made = c_.bodies->try_module(source_, all, visible_, ignored)) {
        remember();
        return std::move(*made);
      }
    c_.bodies->report(why);
    c_.unsupported("its body cannot be imported");
  }
  void make_symbolic(std::size_t i, std::size_t d) {
    parameters_[i].type.lens[d] = c_.bodies->fresh_symbol("carried");
    varies_[i][d] = 1;
  }
  void make_rank_unknown(std::size_t i, dtype type) {
    parameters_[i] = {shape{dtype::optional, {}}, {type, changing_rank}};
    varies_[i].clear();
  }
  void recall() {
    for (std::size_t i = 2; i < std::min(parameters_.size(), memory_.varies.size()); ++i) {
      if (memory_.items[i].rank == changing_rank && !is_container(parameters_[i].type.type)) {
        make_rank_unknown(i, parameters_[i].type.type);
        continue;
      }
      if (memory_.varies[i].size() != varies_[i].size()) continue;
      for (std::size_t d = 0; d < varies_[i].size(); ++d)
        if (memory_.varies[i][d]) make_symbolic(i, d);
      parameters_[i].item = joined(parameters_[i].item, memory_.items[i]);
    }
  }
  void remember() {
    memory_.varies = varies_;
    memory_.items.clear();
    for (const body_parameter& p : parameters_) memory_.items.push_back(p.item);
  }
  // Makes extents and ranks symbolic or unknown that change from one iteration to the next; each at most once, so this
  // ends.
  bool settled(const body_module& b) {
    bool same = true;
    held_ = shapes(parameters_.size() - 2, shape{dtype::optional, {}});
    for (std::size_t i = 2; i < parameters_.size(); ++i) {
      body_parameter& p = parameters_[i];
      const variable& next = b.outputs[i - 1];
      const bool changes = ranks_vary(i - 2), holds = p.type.type == dtype::optional && !changes;
      const shape& found = next.possible_types.empty() || holds ? next.type : next.possible_types[0];
      const dtype carried = changes ? p.item.type : p.type.type;
      if (found.type == carried && (changes || !next.possible_types.empty() || found.rank() != p.type.rank())) {
        same = same && changes;
        if (!changes) make_rank_unknown(i, carried);
        continue;
      }
      if (p.type.type == dtype::optional && next.type.type != dtype::optional) {
        held_[i - 2] = next.type;
        continue;
      }
      if (found.type != carried)
        c_.unsupported("carries " + kiln::to_string(p.type) + " into an iteration and " + kiln::to_string(next.type) +
                       " out of it");
      for (std::size_t d = 0; d < p.type.rank(); ++d) {
        if (varies_[i][d] || next.type.lens[d] == p.type.lens[d]) continue;
        make_symbolic(i, d);
        same = false;
      }
      const item_type item =
          carried == dtype::sequence ? joined_items(c_, p.item, next.item) : joined(p.item, next.item);
      same = same && item == p.item;
      p.item = item;
    }
    if (!same) remember();
    return same;
  }

  node_context& c_;
  const graph& source_;
  named_variables visible_;
  small_vector<body_parameter> parameters_;
  loop_memory& memory_;
  body_mark mark_;
  small_vector<small_vector<std::uint8_t>> varies_;  // extents that change from one iteration to the next
  shapes held_;
};

bool is_true(const basic_instruction<operation>& i) {
  return i.kind == instruction_kind::literal && !i.constant.has_symbols() && i.constant.elements() == 1 &&
         i.constant.at<bool>(0);
}

// The number of iterations, if it is a constant and nothing can end the loop earlier.
std::optional<dimension> known_count(node_context& c, const body_module& b, value most, value condition) {
  const auto& limit = c.build.module().producer(most.id());
  const value_id again = b.graph.outputs[0];
  const bool passes_on = again == b.graph.parameters()[1] || is_true(b.graph.producer(again));
  if (limit.kind != instruction_kind::literal || !passes_on || !is_true(c.build.module().producer(condition.id())))
    return std::nullopt;
  const dimension n = limit.constant.at<dimension>(0);
  if (n == dimension(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  return larger(0, n);
}

variables import_loop(node_context& c) {
  const auto scalar = [&](std::size_t i, dtype t, value otherwise) {
    if (!c.has(i)) return otherwise;
    const value v = c.in(i);
    if (v.type() != t || v.rank() > 1)
      c.malformed("input " + std::to_string(i) + " is one " + std::string(to_string(t)));
    return v.reshape({});
  };
  variables carried;
  for (std::size_t i = 2; i < c.size(); ++i) carried.push_back(as_one_value(c, i));
  return run_loop(c, c.body("body"),
                  scalar(0, dtype::i64, c.build.scalar(dtype::i64, std::numeric_limits<std::int64_t>::max())),
                  scalar(1, dtype::boolean, c.build.scalar(dtype::boolean, true)), carried);
}

}  // namespace

variables run_loop(node_context& c, const graph& body, value most, value condition, const variables& carried,
                   named_variables visible) {
  loop_builder builder(c, body, carried, visible);
  body_module b = builder.build();
  shapes results;
  small_vector<item_type> items;
  small_vector<value> operands{most, condition};
  for (std::size_t i = 0; i < carried.size(); ++i) {
    shape s = builder.carried(i).type;
    for (std::size_t d = 0; d < s.rank(); ++d)
      if (builder.varies(i, d)) s.lens[d] = c.bodies->fresh_symbol("carried");
    results.push_back(s);
    items.push_back(builder.carried(i).item);
    operands.push_back(builder.ranks_vary(i) ? c.build.add(op::make_optional{}, carried[i].tensor) : carried[i].tensor);
  }
  small_vector<value> given = b.captured;
  for (const variable& v : carried) given.push_back(v.tensor);
  const auto known = known_count(c, b, most, condition);
  const dimension count = known ? *known : c.bodies->fresh_symbol("iterations");
  for (std::size_t k = 1 + carried.size(); k < b.outputs.size(); ++k) {
    const shape& piece = b.outputs[k].type;
    if (piece.rank() + 1 > max_rank) c.unsupported("collects tensors of rank " + std::to_string(piece.rank()));
    shape s{piece.type, {count}};
    for (const dimension d : piece.lens)
      s.lens.push_back(known_outside(d, given) ? d : c.bodies->fresh_symbol("collected"));
    results.push_back(s);
    items.push_back({});
  }
  for (const value& v : b.captured) operands.push_back(v);
  op::loop op;
  op.carried = static_cast<std::int64_t>(carried.size());
  op.iteration = c.bodies->add_module(std::move(b.graph));
  variables out = results_of(c, op, operands, std::move(results), items);
  for (std::size_t i = 0; i < carried.size(); ++i)
    if (builder.ranks_vary(i))
      out[i].possible_types = every_rank(c, builder.carried(i).item.type), out[i].item.rank = item_type::any;
    else if (builder.unwraps(i)) {
      const shape& s = builder.held(i);
      out[i] = {c.build.add(op::optional_get{s.type, c.fresh_dims(s.rank(), "held")}, out[i].tensor),
                {items[i].type, items[i].rank}};
    }
  return out;
}

std::span<const op_importer> control_importers() {
  static constexpr op_importer table[] = {
      {"", "If", 1, import_if},
      {"", "Loop", 1, import_loop},
  };
  return table;
}

}  // namespace kiln::onnx
