#include <algorithm>

#include "kiln/onnx/impl/importer_scope.hpp"
#include "kiln/onnx/impl/order.hpp"
#include "kiln/onnx/impl/parse_body.hpp"
#include "kiln/op/dynamic/branch.hpp"
#include "kiln/op/dynamic/optional_rank.hpp"

// A value has one rank. What follows from a tensor that has one of several is therefore built for each of them.
namespace kiln::onnx {

namespace {
constexpr std::size_t most_rank_copies = 512;
}

bool importer::is_open(scope& names, std::string_view name) {
  for (scope* s = &names; s; s = s->outer)
    if (const auto found = s->names.find(name); found != s->names.end()) {
      const entry& e = found->second;
      return !e.lost && !e.held.either.empty() && !known_first(e);
    }
  return false;
}

// The bool that says whether an open tensor has the first of two types: the condition of the branch that made it.
value importer::decider(const variable& open, frame& home) {
  if (open.either.size() != 2) return {};
  const auto& made = home.build.module().producer(open.tensor.id());
  const auto* b = made.kind == instruction_kind::op ? made.op.get_if<op::branch>() : nullptr;
  if (!b) return {};
  const auto gives = [&](module_ref r, const shape& type) {
    const module_graph& body = bodies_[r.index - 1];
    const auto& held = body.producer(body.outputs[open.tensor.id().result]);
    return held.kind == instruction_kind::op && held.op.is<op::make_optional>() && held.inputs.size() == 1 &&
           body.shape_of(held.inputs[0]).rank() == type.rank();
  };
  if (!gives(b->then_body, open.either[0]) || !gives(b->else_body, open.either[1])) return {};
  return home.build.wrap(made.inputs[0]);
}

// Whether an open tensor has its first type, where the graph at work is built for one outcome of what decides that: it
// captured the condition as a constant.
std::optional<bool> importer::known_first(const entry& e) {
  if (e.held.either.empty() || e.home == frame_) return std::nullopt;
  value v = decider(e.held, *e.home);
  if (!v) return std::nullopt;
  std::vector<frame*> way;
  for (frame* f = frame_; f && f != e.home; f = f->outer) way.push_back(f);
  for (std::size_t k = way.size(); k-- > 0;) {
    const auto& captured = way[k]->captured;
    const auto found =
        std::find_if(captured.begin(), captured.end(), [&](const auto& c) { return c.first.id() == v.id(); });
    if (found == captured.end()) return std::nullopt;
    v = found->second;
    const auto& made = way[k]->build.module().producer(v.id());
    if (made.kind == instruction_kind::literal) return made.constant.at<bool>(0);
  }
  return std::nullopt;
}

// An open tensor, and with it all that one condition decides, is of its first type or of one of the others.
void importer::narrow(scope& names, std::string_view open, const variable& held, bool first) {
  std::vector<std::pair<std::string_view, variable>> decided;
  const value condition = decider(held, *frame_);
  for (scope* s = &names; s && condition; s = s->outer)
    for (const auto& [name, e] : s->names) {
      if (e.lost || e.held.either.empty() || e.home != frame_) continue;
      if (const value other = decider(e.held, *frame_); other && other.id() == condition.id())
        decided.emplace_back(name, e.held);
    }
  for (const auto& [name, v] : decided) names.names[name] = {of_types(frame_->build, v, first), frame_};
  if (decided.empty()) names.names[open] = {of_types(frame_->build, held, first), frame_};
}

void importer::import_nodes(scope& names, const std::vector<node>& nodes, const std::vector<std::size_t>& order,
                            std::span<const std::string_view> wanted) {
  std::vector<std::size_t> later;
  std::unordered_set<std::string_view> waiting;
  std::string_view open;
  for (const std::size_t k : order) {
    bool waits = false;
    for (const std::string_view read : ranks_open_ ? names_read(nodes[k]) : std::vector<std::string_view>()) {
      const bool opens = is_open(names, read);
      if (opens && open.empty()) open = read;
      waits = waits || opens || waiting.contains(read);
    }
    if (!waits) {
      import_node(names, nodes[k], k);
      continue;
    }
    later.push_back(k);
    waiting.insert(nodes[k].outputs.begin(), nodes[k].outputs.end());
  }
  if (!later.empty()) import_by_rank(names, nodes, later, open, wanted);
}

void importer::import_by_rank(scope& names, const std::vector<node>& nodes, const std::vector<std::size_t>& order,
                              std::string_view open, std::span<const std::string_view> wanted) {
  graph rest;
  rest.name = "rest";
  value_info input;
  input.name = std::string(open);
  rest.inputs.push_back(input);
  std::unordered_map<std::string_view, std::string_view> made;  // as the graph itself names them
  for (const std::size_t k : order) {
    rest.nodes.push_back(nodes[k]);
    for (const std::string& o : nodes[k].outputs) made.emplace(o, o);
  }
  std::vector<std::string_view> results;
  for (const std::string_view w : wanted) {
    const auto found = made.find(w);
    if (found == made.end()) continue;
    results.push_back(found->second);
    value_info output;
    output.name = std::string(w);
    rest.outputs.push_back(output);
  }
  const node& first = nodes[order[0]];
  const std::string who = describe(first, order[0]);
  const std::size_t missing = missing_.size(), broken = broken_.size();
  const restored no_bodies(bodies_here_, 0u);
  way_.push_back(static_cast<std::uint32_t>(order[0]));
  const popped_at_end way(way_);
  const restored here(current_, &names);
  variables outputs;
  try {
    const entry& opened = *find(names, open);
    const variable held = local(opened);
    value is_first = decider(opened.held, *opened.home);
    if (is_first) is_first = inside(is_first, *opened.home, *frame_);
    frame_->build.label = text(first.name.empty() ? first.op_type + "_" + std::to_string(nodes_) : first.name);
    call c{frame_->build, first, 1, {}, this};
    std::optional<body_module> one = try_for(rest, held, is_first, true);
    std::optional<body_module> others;
    try {
      others = try_for(rest, held, is_first, false);
    } catch (const error& e) {
      // greater ranks may leave no room for what follows
      const bool spent = rank_copies_ > most_rank_copies || body_nodes_ > most_body_nodes_;
      if (!one || spent || e.code() != errc::limit) throw;
    }
    if (one.has_value() != others.has_value()) {
      // the model means what its nodes can take; a run with another rank is an error
      missing_.resize(missing);
      broken_.forget_from(broken);
      narrow(names, open, held, one.has_value());
      return import_nodes(names, nodes, order, wanted);
    }
    if (one) {
      if (!is_first) {
        const auto rank = static_cast<std::int64_t>(held.either[0].rank());
        is_first = frame_->build.add(op::optional_rank{}, held.tensor).equal(frame_->build.scalar(dtype::i64, rank));
      }
      outputs = join_bodies(c, is_first, std::move(*one), std::move(*others));
    }
  } catch (error& e) {
    if (e.code() != errc::unsupported)
      throw e.at_instruction(first.name).at_source(place_.empty() ? who : place_ + ", " + who);
    give_up(who, {}, e.what());
  }
  const bool lost = missing_.size() + broken_.size() != missing + broken;
  for (std::size_t k = 0; k < results.size(); ++k) {
    entry& e = names.names[results[k]];
    if (lost || k >= outputs.size()) {
      e.lost = true;
      continue;
    }
    e.held = kept_apart(results[k], outputs[k]);
    e.home = frame_;
  }
}

// None where that finds faults, which are then noted.
std::optional<body_module> importer::try_for(const graph& rest, const variable& open, value is_first, bool first) {
  if (++rank_copies_ > most_rank_copies)
    raise(errc::limit, "what follows from tensors of several ranks is built for at most " +
                           std::to_string(most_rank_copies) + " of their combinations");
  const std::size_t missing = missing_.size(), broken = broken_.size();
  try {
    body_module made = build_for(rest, open, is_first, first);
    if (missing_.size() == missing && broken_.size() == broken) return made;
  } catch (const error& e) {
    const bool noted = missing_.size() + broken_.size() != missing + broken;
    if (!noted || (e.code() != errc::unsupported && e.code() != errc::malformed)) throw;
  }
  return std::nullopt;
}

// An open tensor that is known to have the first of its types, or not to.
variable importer::of_types(builder& b, variable open, bool first) {
  const auto all = std::span<const shape>(open.either.begin(), open.either.size());
  const auto types = first ? all.first(1) : all.subspan(1);
  if (types.size() == 1) return b.add(op::optional_get{types[0].type, types[0].lens}, open.tensor);
  open.either = shapes(types);
  return open;
}

// The rest of a graph for some of the types that an open tensor may have: one of them, or still open.
body_module importer::build_for(const graph& rest, const variable& open, value is_first, bool first) {
  scope around;
  around.outer = current_;
  around.home = frame_;
  around.versions = current_->versions;
  around.caller = current_->caller;
  around.callee = current_->callee;
  const restored outside(current_, &around);
  frame own;
  own.outer = frame_;
  own.build.fold_constants = true;
  own.build.label = frame_->build.label;
  own.build.module().name = text(rest.name);
  variable here = open;
  here.tensor = inside(open.tensor, *frame_, own);
  if (is_first) {
    const shape& one = is_first.get_shape();
    own.captured.emplace_back(is_first, own.build.scalar(dtype::boolean, first).reshape(one.lens));
  }
  here = of_types(own.build, here, first);
  const restored at_work(frame_, &own);
  const std::size_t given_up = missing_.size();
  variables outputs = import_body(rest, {here});
  if (missing_.size() != given_up) raise(errc::unsupported, "what follows from it cannot be imported");
  return finish_module(own, rest, std::move(outputs));
}

}  // namespace kiln::onnx
