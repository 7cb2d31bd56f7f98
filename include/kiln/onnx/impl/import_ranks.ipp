#include "kiln/onnx/impl/importer_scope.hpp"
#include "kiln/onnx/impl/order.hpp"
#include "kiln/onnx/impl/parse_body.hpp"
#include "kiln/op/dynamic/optional_rank.hpp"

// A value has one rank. What follows from a tensor that has one of several is therefore built for each of them.
namespace kiln::onnx {

bool importer::is_open(const scope& names, std::string_view name) {
  for (const scope* s = &names; s; s = s->outer)
    if (const auto found = s->names.find(name); found != s->names.end())
      return !found->second.lost && !found->second.held.either.empty();
  return false;
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
    const variable held = local(*find(names, open));
    frame_->build.label = text(first.name.empty() ? first.op_type + "_" + std::to_string(nodes_) : first.name);
    call c{frame_->build, first, 1, {}, this};
    const auto types = std::span<const shape>(held.either.begin(), held.either.size());
    std::optional<body_module> one = try_for(rest, held, types.first(1));
    std::optional<body_module> others = try_for(rest, held, types.subspan(1));
    if (one.has_value() != others.has_value()) {
      // the model means what its nodes can take; a run with another rank is an error
      missing_.resize(missing);
      broken_.forget_from(broken);
      names.names[open] = {of_types(frame_->build, held, one ? types.first(1) : types.subspan(1)), frame_};
      return import_nodes(names, nodes, order, wanted);
    }
    if (one) {
      const value rank = frame_->build.add(op::optional_rank{}, held.tensor);
      const value is_first = rank.equal(frame_->build.scalar(dtype::i64, static_cast<std::int64_t>(types[0].rank())));
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
std::optional<body_module> importer::try_for(const graph& rest, const variable& open, std::span<const shape> types) {
  constexpr std::size_t most_copies = 64;
  if (++rank_copies_ > most_copies)
    raise(errc::limit, "what follows from tensors of several ranks is built for at most 64 of their combinations");
  const std::size_t missing = missing_.size(), broken = broken_.size();
  try {
    body_module made = build_for(rest, open, types);
    if (missing_.size() == missing && broken_.size() == broken) return made;
  } catch (const error& e) {
    const bool noted = missing_.size() + broken_.size() != missing + broken;
    if (!noted || (e.code() != errc::unsupported && e.code() != errc::malformed)) throw;
  }
  return std::nullopt;
}

// An open tensor that is known to have one of these types.
variable importer::of_types(builder& b, variable open, std::span<const shape> types) {
  if (types.size() == 1) return b.add(op::optional_get{types[0].type, types[0].lens}, open.tensor);
  open.either = shapes(types);
  return open;
}

// The rest of a graph for some of the types that an open tensor may have: one of them, or still open.
body_module importer::build_for(const graph& rest, const variable& open, std::span<const shape> types) {
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
  here = of_types(own.build, here, types);
  const restored at_work(frame_, &own);
  const std::size_t given_up = missing_.size();
  variables outputs = import_body(rest, {here});
  if (missing_.size() != given_up) raise(errc::unsupported, "what follows from it cannot be imported");
  return finish_module(own, rest, std::move(outputs));
}

}  // namespace kiln::onnx
