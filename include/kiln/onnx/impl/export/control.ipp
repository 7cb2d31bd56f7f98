#include <algorithm>
#include <set>

#include "kiln/core/object.hpp"
#include "kiln/onnx/element.hpp"
#include "kiln/onnx/impl/export/exporter.hpp"
#include "kiln/onnx/impl/restored.hpp"
#include "kiln/op/dynamic/branch.hpp"
#include "kiln/op/dynamic/loop.hpp"
#include "kiln/op/dynamic/map.hpp"
#include "kiln/op/dynamic/sequence.hpp"

// Bodies as graph attributes, where symbols are read, and what sequences, optionals and maps contain.
namespace kiln::onnx {

namespace {

// ONNX declares what a sequence contains. A program does not: the ops that insert or extract items show it.
class content_search {
 public:
  explicit content_search(const program& p) : program_(p) {}

  bool given = false;  ///< the content may come from a caller

  std::optional<content_type> of(const module_graph& m, value_id v) {
    if (!seen_.emplace(&m, value_key(v)).second) return std::nullopt;
    given = given || (&m == &program_.main() && m.producer(v).kind == instruction_kind::parameter);
    if (const auto made = by_maker(m, v)) return made;
    for (std::uint32_t u = 0; u < m.size(); ++u)
      for (std::size_t k = 0; k < m[u].inputs.size(); ++k)
        if (m[u].inputs[k] == v)
          if (const auto read = by_reader(m, u, k)) return read;
    return by_caller(m, v);
  }

 private:
  std::optional<content_type> content(const module_graph& m, value_id v) {
    const dtype t = m.shape_of(v).type;
    if (t != dtype::sequence) return content_type{t};
    auto inner = of(m, v);
    if (inner) inner->in_sequence = true;
    return inner;
  }
  static std::optional<content_type> by_value(const argument& a) {
    const dtype t = a.get_shape().type;
    if (t == dtype::sequence)
      return items_of(a).empty() ? std::nullopt : std::optional(content_type{items_of(a)[0].get_shape().type});
    if (t != dtype::optional) return std::nullopt;
    const argument* value = value_of_optional(a);
    if (!value) return std::nullopt;
    return value->get_shape().type == dtype::sequence ? with_sequence(by_value(*value))
                                                      : std::optional(content_type{value->get_shape().type});
  }
  // A body's parameters come from its caller, its outputs go there; their ranks may differ.
  std::optional<content_type> by_caller(const module_graph& m, value_id v) {
    const auto parameters = m.parameters();
    const auto index =
        static_cast<std::size_t>(std::find(parameters.begin(), parameters.end(), v) - parameters.begin());
    for (std::uint32_t r = 0; r < program_.modules(); ++r) {
      const module_graph& around = program_.module({r});
      for (std::uint32_t u = 0; u < around.size(); ++u) {
        const auto& i = around[u];
        const auto* l = i.op.get_if<op::loop>();
        const auto* b = i.op.get_if<op::branch>();
        const bool loops = l && &program_.module(l->iteration) == &m,
                   is_then = b && &program_.module(b->then_body) == &m,
                   is_else = b && &program_.module(b->else_body) == &m;
        if (!loops && !is_then && !is_else) continue;
        const std::size_t first = loops ? 0 : is_then ? 1 : 1 + static_cast<std::size_t>(b->then_inputs);
        if (index < parameters.size())
          if (const auto from = of_any_rank(of(around, i.inputs[first + index]))) return from;
        for (std::uint32_t k = loops ? 1 : 0; k < m.outputs.size(); ++k)
          if (m.outputs[k] == v)
            if (const auto to = of_any_rank(of(around, {u, loops ? k - 1 : k}))) return to;
      }
    }
    return std::nullopt;
  }
  static std::optional<content_type> of_any_rank(std::optional<content_type> t) {
    if (t) t->rank = content_type().rank;
    return t;
  }
  std::optional<content_type> by_maker(const module_graph& m, value_id v) {
    const auto& i = m.producer(v);
    if (i.kind == instruction_kind::literal) return by_value(argument(i.constant));
    if (i.kind != instruction_kind::op) return std::nullopt;
    const auto& in = i.inputs;
    if (i.op.is<op::make_sequence>() || i.op.is<op::split_sequence>() || i.op.is<op::make_optional>())
      return in.empty() ? std::nullopt : content(m, in[0]);
    if (i.op.is<op::sequence_insert>()) return item_like(m.shape_of(in[1]));
    if (i.op.is<op::zip_maps>()) return content_type{m.shape_of(in[0]).type, false, 0, true, m.shape_of(in[1]).type};
    if (i.op.is<op::optional_get>()) return without_sequence(of(m, in[0]));
    if (i.op.is<op::sequence_at>() || i.op.is<op::join_sequence>()) return of_unknown_rank(of(m, in[0]));
    if (const auto* l = i.op.get_if<op::loop>()) {
      if (static_cast<std::int64_t>(v.result) >= l->carried) return std::nullopt;
      const module_graph& body = program_.module(l->iteration);
      const auto before = of(m, in[2 + v.result]);
      return before ? before : of(body, body.outputs[1 + v.result]);
    }
    if (const auto* b = i.op.get_if<op::branch>()) {
      const module_graph &then_body = program_.module(b->then_body), &else_body = program_.module(b->else_body);
      const auto first = of(then_body, then_body.outputs[v.result]);
      return first ? first : of(else_body, else_body.outputs[v.result]);
    }
    return in.empty() || m.shape_of(in[0]).type != m.shape_of(v).type ? std::nullopt : of(m, in[0]);
  }
  std::optional<content_type> by_reader(const module_graph& m, std::uint32_t u, std::size_t k) {
    const auto& i = m[u];
    if (i.results[0].type == dtype::optional && (i.op.is<op::sequence_at>() || i.op.is<op::join_sequence>()))
      return of_unknown_rank(of(m, {u, 0}));
    if (const auto* at = i.op.get_if<op::sequence_at>())
      return content_type{at->type, false, static_cast<int>(at->lens.size())};
    if (const auto* join = i.op.get_if<op::join_sequence>())
      return content_type{join->type, false, static_cast<int>(join->lens.size()) - (join->stacks ? 1 : 0)};
    if (const auto* get = i.op.get_if<op::optional_get>()) {
      if (get->type == dtype::optional) return std::nullopt;
      return get->type == dtype::sequence ? with_sequence(of(m, {u, 0}))
                                          : content_type{get->type, false, static_cast<int>(get->lens.size())};
    }
    if (i.op.is<op::sequence_insert>()) return item_like(m.shape_of(i.inputs[1]));
    if (i.op.is<op::make_optional>()) return without_sequence(of(m, {u, 0}));
    if (const auto* row = i.op.get_if<op::map_row>())
      return content_type{row->type, false, -1, true, m.shape_of(i.inputs[1]).type};
    if (const auto* all = i.op.get_if<op::map_values>()) return content_type{all->type, false, -1, true};
    if (const auto* l = i.op.get_if<op::loop>()) {
      const module_graph& body = program_.module(l->iteration);
      return of(body, body.parameters()[k]);
    }
    if (const auto* b = i.op.get_if<op::branch>()) {
      const std::size_t first = static_cast<std::size_t>(b->then_inputs);
      const module_graph& body = program_.module(k - 1 < first ? b->then_body : b->else_body);
      auto inner = of(body, body.parameters()[k - 1 < first ? k - 1 : k - 1 - first]);
      // each body may extract another rank
      if (inner && m.shape_of(i.inputs[k]).type == dtype::optional) inner->rank = content_type().rank;
      return inner;
    }
    return m.shape_of({u, 0}).type == m.shape_of(i.inputs[k]).type ? of(m, {u, 0}) : std::nullopt;
  }
  static content_type item_like(const shape& s) { return {s.type, false, static_cast<int>(s.rank())}; }
  static std::optional<content_type> of_unknown_rank(std::optional<content_type> t) {
    return t ? std::optional(content_type{t->type}) : std::nullopt;
  }
  static std::optional<content_type> with_sequence(std::optional<content_type> t) {
    if (t) t->in_sequence = true;
    return t;
  }
  static std::optional<content_type> without_sequence(std::optional<content_type> t) {
    if (t) t->in_sequence = false;
    return t;
  }

  const program& program_;
  std::set<std::pair<const module_graph*, std::uint64_t>> seen_;
};

}  // namespace

content_type exporter::content_of(const module_graph& m, value_id v) const {
  const dtype t = m.shape_of(v).type;
  if (t != dtype::sequence && t != dtype::optional && t != dtype::map) return {t};
  content_search search(program_);
  const auto found = search.of(m, v);
  const auto& outputs = program_.main().outputs;
  if (!found && search.given && &m == &program_.main() && std::find(outputs.begin(), outputs.end(), v) != outputs.end())
    unsupported("an output passes on what a caller gives, and nothing in the program tells the type of its elements");
  content_type any;  // right where nothing is inserted or extracted
  any.in_map = t == dtype::map;
  return found.value_or(any);
}

void exporter::declare(onnx_proto::ValueInfoProto& to, const std::string& name, const shape& s,
                       content_type held) const {
  to.set_name(name);
  onnx_proto::TypeProto* type = to.mutable_type();
  if (s.type == dtype::optional) type = type->mutable_optional_type()->mutable_elem_type();
  if (s.type == dtype::sequence || (s.type == dtype::optional && held.in_sequence))
    type = type->mutable_sequence_type()->mutable_elem_type();
  if (held.in_map) {
    auto& map = *type->mutable_map_type();
    map.set_key_type(static_cast<int>(to_element(held.key)));
    type = map.mutable_value_type();
  }
  auto& tensor = *type->mutable_tensor_type();
  if (is_object(s.type) && s.type != dtype::string && !is_complex(s.type)) {
    tensor.set_elem_type(static_cast<int>(to_element(held.type)));
    for (int d = 0; d < held.rank; ++d) tensor.mutable_shape()->add_dim();
    if (held.rank == 0) tensor.mutable_shape();
    return;
  }
  tensor.set_elem_type(static_cast<int>(to_element(s.type)));
  auto& lens = *tensor.mutable_shape();
  for (const dimension d : s.lens) {
    auto& dim = *lens.add_dim();
    if (d.is_constant())
      dim.set_dim_value(d.value());
    else if (is_symbol(d))
      dim.set_dim_param(symbol_name(d));
  }
}

std::string exporter::object_constant(const argument& a, content_type held) {
  if (a.get_shape().type == dtype::optional) {
    const argument* value = value_of_optional(a);
    if (value) {
      const bool list = value->get_shape().type == dtype::sequence;
      held.in_sequence = false;
      return make("Optional", {list ? object_constant(*value, held) : constant(value->to_literal())});
    }
    std::string none = fresh("none");
    write("Optional", {}, {none}).set_type("type", held);
    return none;
  }
  names items;
  for (const argument& item : items_of(a)) items.push_back(constant(item.to_literal()));
  if (!items.empty()) return make("SequenceConstruct", items);
  std::string none = fresh("none");
  write("SequenceEmpty", {}, {none}).set("dtype", static_cast<std::int64_t>(to_element(held.type)));
  return none;
}

void exporter::learn(dimension d, source from) {
  if (is_symbol(d) && sources_.try_emplace(d.raw(), std::move(from)).second) sources_known_.push_back(d.raw());
}
void exporter::learn_extents(const std::string& name, const shape& s) {
  for (std::size_t d = 0; d < s.rank(); ++d) learn(s.lens[d], {name, static_cast<std::int64_t>(d), true});
}
void exporter::learn_elements(const std::string& name, std::span<const dimension> symbols) {
  for (std::size_t k = 0; k < symbols.size(); ++k) learn(symbols[k], {name, static_cast<std::int64_t>(k), false});
}

// i64[1].
std::string exporter::symbol_value(dimension d) {
  const auto found = sources_.find(d.raw());
  if (found == sources_.end()) unsupported("the symbol '" + symbol_name(d) + "' is no value's extent");
  const source at = found->second;
  const std::int64_t index[] = {at.at};
  std::string out = fresh("extent");
  if (at.is_extent)
    write("Shape", {at.name}, {out}).set("start", at.at).set("end", at.at + 1);
  else
    write("Gather", {at.name, integers(index)}, {out});
  return out;
}

void exporter::write_body(onnx_proto::GraphProto& to, module_ref body, std::span<const content_type> inputs,
                          const names& others) {
  const restored there(graph_, &to);
  // names made inside are unknown outside
  const std::size_t dims_outside = dims_named_.size(), sources_outside = sources_known_.size();
  const module_graph& m = program_.module(body);
  to.set_name(std::string(std::string_view(m.name)));
  std::map<std::uint64_t, std::string> held;
  const auto parameters = m.parameters();
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const shape& s = m.shape_of(parameters[k]);
    std::string name = k < inputs.size() ? fresh("parameter") : others[k - inputs.size()];
    if (k < inputs.size()) declare(*to.add_input(), name, s, inputs[k]);
    learn_extents(name, s);
    held[value_key(parameters[k])] = std::move(name);
  }
  write_module(m, held, prefix_);
  std::set<std::string> named;
  for (const value_id v : m.outputs) {
    const shape& s = m.shape_of(v);
    // Identity does not take sequences of maps: such a value is an output by its own name, once
    const std::string& made = held.at(value_key(v));
    const bool own = m.producer(v).kind == instruction_kind::op && content_of(m, v).in_map && named.insert(made).second;
    const std::string name = own ? made : make("Identity", {made});
    auto& out = *to.add_output();
    declare(out, name, s, content_of(m, v));
    // a symbol may differ from one iteration to the next
    if (out.type().has_tensor_type())
      for (auto& d : *out.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim()) d.clear_dim_param();
  }
  const auto forget = [](auto& map, std::vector<std::int64_t>& keys, std::size_t outside) {
    for (; keys.size() > outside; keys.pop_back()) map.erase(keys.back());
  };
  forget(dims_, dims_named_, dims_outside);
  forget(sources_, sources_known_, sources_outside);
}

void exporter::scan(const scan_over& over, const names& out, const std::vector<shape>& stacked,
                    const std::function<names(const names&)>& body) {
  names in = over.states;
  in.insert(in.end(), over.sliced.begin(), over.sliced.end());
  const std::vector<std::int64_t> axes_in(over.sliced.size(), over.axis), axes_out(stacked.size(), over.axis),
      ways_in(over.sliced.size(), over.reverse), ways_out(stacked.size(), over.reverse);
  node_writer n = write("Scan", in, out);
  n.set("num_scan_inputs", static_cast<std::int64_t>(over.sliced.size()));
  n.set("scan_input_axes", std::span(axes_in)).set("scan_output_axes", std::span(axes_out));
  n.set("scan_input_directions", std::span(ways_in)).set("scan_output_directions", std::span(ways_out));
  onnx_proto::GraphProto& to = n.set_graph("body");
  to.set_name("step");
  const restored there(graph_, &to);
  const restored dims_outside(dims_, dims_);
  names given;
  for (const shape& s : over.types) {
    given.push_back(fresh("parameter"));
    declare(*to.add_input(), given.back(), s, {});
  }
  const names made = body(given);
  for (std::size_t k = 0; k < made.size(); ++k)
    declare(*to.add_output(), make("Identity", {made[k]}),
            k < over.states.size() ? over.types[k] : stacked[k - over.states.size()], {});
}

void exporter::branch(const exported& e) {
  const auto& o = *e.op.get_if<op::branch>();
  const auto first = e.in.begin() + 1, after = first + static_cast<std::ptrdiff_t>(o.then_inputs);
  node_writer n = write("If", {e.in[0]}, e.out);
  write_body(n.set_graph("then_branch"), o.then_body, {}, {first, after});
  write_body(n.set_graph("else_branch"), o.else_body, {}, {after, e.in.end()});
}

void exporter::loop(const exported& e) {
  const auto& o = *e.op.get_if<op::loop>();
  const std::size_t declared = 2 + static_cast<std::size_t>(o.carried);
  std::vector<content_type> held(declared);
  for (std::size_t k = 2; k < declared; ++k) held[k] = content_of(*e.home, (*e.home)[e.at].inputs[k]);
  const auto after = e.in.begin() + static_cast<std::ptrdiff_t>(declared);
  node_writer n = write("Loop", {e.in.begin(), after}, e.out);
  write_body(n.set_graph("body"), o.iteration, held, {after, e.in.end()});
}

}  // namespace kiln::onnx
