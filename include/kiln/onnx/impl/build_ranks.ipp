#include <algorithm>

#include "kiln/onnx/impl/importer_scope.hpp"
#include "kiln/onnx/impl/parse_body.hpp"
#include "kiln/op/dynamic/optional_rank.hpp"
#include "kiln/op/dynamic/sequence.hpp"

// A part of a graph for each rank that a tensor may have, and these as one.
namespace kiln::onnx {

namespace {
constexpr std::size_t most_rank_copies = 4096;
}

std::optional<body_module> importer::tried(fault_notes& why, const std::function<body_module()>& build) {
  fault_notes outside = std::exchange(faults_, {});
  const std::size_t modules = bodies_.size();
  std::optional<body_module> made;
  try {
    made = build();
  } catch (const error& e) {
    if (spent_ || e.code() == errc::internal) throw;
    if (faults_.size() == 0) faults_.broken.add(e);
  }
  why = std::exchange(faults_, std::move(outside));
  if (why.size() == 0) return made;
  bodies_.resize(modules);
  return std::nullopt;
}

std::optional<body_module> importer::try_module(const graph& body, std::span<const body_parameter> parameters,
                                                std::span<const std::pair<std::string, variable>> visible,
                                                fault_notes& why) {
  constexpr std::size_t most = 6;  // each level of a nest doubles what is built
  const restored deeper(trials_, trials_ + 1);
  if (trials_ > most) return build_module(body, parameters, visible);
  return tried(why, [&] { return build_module(body, parameters, visible); });
}

// Of types that the nodes cannot take, `why` is what the one with the fewest faults has: it is the likeliest.
importer::ranked importer::build_ranks(const graph& part, const variable& open, value is_first) {
  ranked out;
  for (std::size_t k = 0; k < open.either.size(); ++k) {
    if (++rank_copies_ > most_rank_copies)
      exhausted("what follows from tensors of several ranks is built for at most " + std::to_string(most_rank_copies) +
                " of their combinations");
    fault_notes why;
    if (auto made = tried(why, [&] { return build_for(part, open, is_first, k); })) {
      out.types.push_back(k);
      out.bodies.push_back(std::move(*made));
    } else if (out.why.size() == 0 || why.size() < out.why.size()) {
      out.why = std::move(why);
    }
  }
  return out;
}

// A part of a graph for one of the types that an open tensor may have.
body_module importer::build_for(const graph& part, const variable& open, value is_first, std::size_t place) {
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
  own.build.module().name = text(part.name);
  variable here = open;
  here.tensor = inside(open.tensor, *frame_, own);
  if (is_first) {
    const shape& one = is_first.get_shape();
    own.captured.emplace_back(is_first, own.build.scalar(dtype::boolean, place == 0).reshape(one.lens));
  }
  here = of_types(own.build, here, {place});
  const restored at_work(frame_, &own);
  const std::size_t given_up = faults_.missing.size();
  variables outputs = import_body(part, {here});
  if (faults_.missing.size() != given_up) raise(errc::unsupported, "what follows from it cannot be imported");
  return finish_module(own, part, std::move(outputs));
}

// One body in place: its instructions join the module being built.
variables importer::spliced(const body_module& body) {
  builder& build = frame_->build;
  std::vector<value_id> first(body.graph.size());
  std::size_t given = 0;
  for (std::uint32_t i = 0; i < body.graph.size(); ++i) {
    const auto& from = body.graph[i];
    if (from.kind == instruction_kind::parameter) {
      first[i] = body.captured[given++].id();
      continue;
    }
    small_vector<value_id> inputs;
    for (const value_id v : from.inputs) {
      const value_id base = first[v.instruction];
      inputs.push_back({base.instruction, base.result + v.result});
    }
    first[i] = from.kind == instruction_kind::literal
                   ? build.module().add_literal(from.constant)
                   : build.module().add_with_shapes(from.op, std::move(inputs), from.results, from.name.view());
  }
  variables out = body.outputs;
  for (std::size_t k = 0; k < out.size(); ++k) {
    const value_id v = body.graph.outputs[k], base = first[v.instruction];
    out[k].tensor = build.wrap({base.instruction, base.result + v.result});
  }
  return out;
}

// Two bodies, by a condition, as one body.
body_module importer::wrapped(const graph& part, const node& first, value condition, body_module one,
                              body_module other) {
  frame own;
  own.outer = frame_;
  own.build.label = frame_->build.label;
  own.build.module().name = text(part.name);
  const value known = inside(condition, *frame_, own);
  for (body_module* b : {&one, &other})
    for (value& v : b->captured) v = inside(v, *frame_, own);
  const restored at_work(frame_, &own);
  call c{own.build, first, 1, {}, this};
  return finish_module(own, part, join_bodies(c, known, std::move(one), std::move(other)));
}

variables importer::join_ranks(const graph& part, const node& first, const variable& open, value is_first,
                               ranked made) {
  if (made.bodies.size() == 1) return spliced(made.bodies[0]);
  builder& build = frame_->build;
  const value rank = is_first ? value() : build.add(op::optional_rank{}, open.tensor);
  const auto has = [&](std::size_t k) {
    const auto n = static_cast<std::int64_t>(open.either[made.types[k]].rank());
    return is_first ? is_first : rank.equal(build.scalar(dtype::i64, n));
  };
  std::size_t k = made.bodies.size() - 1;
  body_module others = std::move(made.bodies[k]);
  while (--k > 0) others = wrapped(part, first, has(k), std::move(made.bodies[k]), std::move(others));
  call c{build, first, 1, {}, this};
  return join_bodies(c, has(0), std::move(made.bodies[0]), std::move(others));
}

}  // namespace kiln::onnx
