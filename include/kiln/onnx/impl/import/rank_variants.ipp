#include "kiln/onnx/impl/import/rank_variants.hpp"

#include "kiln/onnx/impl/ops/bodies.hpp"
#include "kiln/onnx/impl/restored.hpp"
#include "kiln/op/dynamic/optional_rank.hpp"

namespace kiln::onnx {

rank_variants::rank_variants(import_state& s, body_builder& bodies_of, const graph& part, const variable& tensor,
                             value is_first)
    : state_(s), builder_(bodies_of), part_(part), tensor_(tensor), is_first_(is_first) {
  constexpr std::size_t most = 4096;
  for (std::size_t k = 0; k < tensor.possible_types.size(); ++k) {
    if (++state_.rank_variants > most)
      state_.faults.exhausted("what follows from tensors of several ranks is built for at most " +
                              std::to_string(most) + " of their combinations");
    import_faults faults;
    if (auto made = builder_.attempt(faults, [&] { return build(k); })) {
      types.push_back(k);
      bodies.push_back(std::move(*made));
    } else if (why.size() == 0 || faults.size() < why.size()) {
      why = std::move(faults);
    }
  }
}

body_module rank_variants::build(std::size_t type) {
  scope around = state_.names->nested(state_.frame);
  const restored outside(state_.names, &around);
  module_frame own{state_.frame};
  own.build.fold_constants = true;
  own.build.label = state_.frame->build.label;
  own.build.module().name = text(part_.name);
  variable here = tensor_;
  here.tensor = own.inside(tensor_.tensor, *state_.frame);
  if (is_first_) {
    const shape& one = is_first_.get_shape();
    own.captured.emplace_back(is_first_, own.build.scalar(dtype::boolean, type == 0).reshape(one.lens));
  }
  here = narrowed(own.build, here, {type});
  const restored at_work(state_.frame, &own);
  const std::size_t faults_before = state_.faults.unsupported();
  variables outputs = builder_.import_body(part_, {here});
  if (state_.faults.unsupported() != faults_before) raise(errc::unsupported, "what follows from it cannot be imported");
  return builder_.finish(own, part_, std::move(outputs));
}

// The instructions of a body join the module being built.
variables rank_variants::inlined(const body_module& body) {
  builder& build = state_.frame->build;
  std::vector<value_id> first(body.graph.size());
  const auto here = [&](value_id v) -> value_id {
    const value_id base = first[v.instruction];
    return {base.instruction, base.result + v.result};
  };
  std::size_t given = 0;
  for (std::uint32_t i = 0; i < body.graph.size(); ++i) {
    const auto& from = body.graph[i];
    if (from.kind == instruction_kind::parameter) {
      first[i] = body.captured[given++].id();
    } else if (from.kind == instruction_kind::literal) {
      first[i] = build.module().add_literal(from.constant);
    } else {
      small_vector<value_id> inputs;
      for (const value_id v : from.inputs) inputs.push_back(here(v));
      first[i] = build.module().add_with_shapes(from.op, std::move(inputs), from.results, from.name.view());
    }
  }
  variables out = body.outputs;
  for (std::size_t k = 0; k < out.size(); ++k) out[k].tensor = build.wrap(here(body.graph.outputs[k]));
  return out;
}

// Two bodies, by a condition, as one body.
body_module rank_variants::joined_body(const node& first, value condition, body_module one, body_module other) {
  module_frame own{state_.frame};
  own.build.label = state_.frame->build.label;
  own.build.module().name = text(part_.name);
  const value known = own.inside(condition, *state_.frame);
  for (body_module* b : {&one, &other})
    for (value& v : b->captured) v = own.inside(v, *state_.frame);
  const restored at_work(state_.frame, &own);
  node_context c{own.build, first, 1, {}, &builder_};
  return builder_.finish(own, part_, join_bodies(c, known, std::move(one), std::move(other)));
}

value rank_variants::has_type(std::size_t k, value rank) {
  const auto n = static_cast<std::int64_t>(tensor_.possible_types[types[k]].rank());
  return is_first_ ? is_first_ : rank.equal(state_.frame->build.scalar(dtype::i64, n));
}

variables rank_variants::join(const node& first) {
  for (body_module& b : bodies) b.graph.compact();
  if (bodies.size() == 1) return inlined(bodies[0]);
  builder& build = state_.frame->build;
  const value rank = is_first_ ? value() : build.add(op::optional_rank{}, tensor_.tensor);
  std::size_t k = bodies.size() - 1;
  body_module others = std::move(bodies[k]);
  while (--k > 0) others = joined_body(first, has_type(k, rank), std::move(bodies[k]), std::move(others));
  node_context c{build, first, 1, {}, &builder_};
  return join_bodies(c, has_type(0, rank), std::move(bodies[0]), std::move(others));
}

}  // namespace kiln::onnx
