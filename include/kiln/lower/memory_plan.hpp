#pragma once
#include "kiln/lower/arena.hpp"
#include "kiln/lower/shuffles.hpp"
#include "kiln/lower/strides.hpp"

namespace kiln::lower {

/// An output in the memory of an input, which has room for `capacity` along `axis`.
struct growing_output {
  std::uint32_t output = 0, input = 0;
  std::size_t axis = 0;
  dimension capacity;
  /// The layout of a tensor of these extents in that memory.
  constexpr layout where(const dims& lens) const {
    dims whole = lens;
    whole[axis] = capacity;
    return {lens, row_major(whole), 0};
  }
};

/// What a memory plan asks of the executor that it serves.
///
/// `callers_outputs`: whether outputs are buffers of the caller; else they are row-major in the arena.
/// `prefers_nhwc(v)`: whether an instruction's result, where nothing else says its layout, is to be in NHWC.
/// `operand_of_nhwc_view(i)`: the layout of the operand of a view that makes the view NHWC, where that is preferred.
/// `writes(v, where)`: whether the steps that make a result can write it so. A layout with one dim more than the result
/// has its channels as two dims. What only writes a result as a whole, row-major, says no.
/// `make_step(i)`: makes the steps of an instruction that is no view and no concatenation, with `placement_of` its
/// operands, `copy_of` those that it can't read so, and `result`.
/// `make_copy(from, to, type, why)`: makes a step that copies a tensor; `why` is what the copy is for.
template <class E>
concept memory_executor = requires(E& e, value_id v, const layout& where, const placement& at, const shape& type) {
  { E::callers_outputs } -> std::convertible_to<bool>;
  { e.prefers_nhwc(v) } -> std::same_as<bool>;
  { e.operand_of_nhwc_view(std::uint32_t{}) } -> std::same_as<std::optional<layout>>;
  { e.writes(v, where) } -> std::same_as<bool>;
  e.make_step(std::uint32_t{});
  e.make_copy(at, at, type, std::string_view());
};

/// Decides where every value of a program's main module is. Views map layouts; the operands of a concatenation are
/// written to their parts of its result; a result goes to the caller's buffer if it is an output, to the placement of
/// its view if a transposition or channel shuffle alone reads it, or to a buffer of its own. A reader that can't take
/// a layout gets a copy, one for all such readers. The same template plans executables, static
/// programs (in constant evaluation) and exported ones.
template <class Program, class Executor> class memory_plan {
 public:
  using module_type = typename Program::module_type;
  using instruction = typename module_type::instruction;

  constexpr memory_plan(const Program& p, Executor& e) : graph_(p.main()), executor_(e), uses_(graph_) {
    static_assert(memory_executor<Executor>);
    placements_.resize(graph_.size());
    for (std::uint32_t i = 0; i < graph_.size(); ++i) placements_[i].resize(graph_[i].results.size());
  }

  // ---- the plan: growing outputs, instructions in their order, outputs
  constexpr void grow(std::span<const growing_output> growing) {
    for (const growing_output& g : growing)
      growing_.push_back({g, add_buffer(memory::output, graph_.shape_of(graph_.outputs[g.output]).bytes(), g.output)});
  }
  constexpr void place(std::uint32_t i) {
    const instruction& ins = graph_[i];
    if (ins.kind == instruction_kind::parameter)
      placements_[i][0] = parameter(ins);
    else if (is_view(ins))
      place_view(i);
    else if (is_concat(ins))
      join(i);
    else if (ins.kind == instruction_kind::op)
      executor_.make_step(i);
  }
  constexpr void place_output(std::uint32_t k) {
    const value_id v = graph_.outputs[k];
    placement at = placement_of(v);
    const buffer& b = buffers_[at.buffer];
    const shape& s = graph_.shape_of(v);
    if constexpr (Executor::callers_outputs) {
      if (b.kind != memory::output || b.index != k) {
        const placement to = output(k);
        executor_.make_copy(at, to, s, graph_.output_names[k].view());
        at = to;
      }
    } else {
      if (b.kind != memory::arena || !at.where.dense()) at = copy_of(v, false, graph_.output_names[k].view());
      touch(at.buffer, none);
    }
    outputs_.push_back(at);
  }

  // ---- for the executor's steps
  /// Where an earlier value is.
  constexpr placement placement_of(value_id v) {
    placement& at = placements_[v.instruction][v.result];
    if (at.buffer == none && graph_.producer(v).kind == instruction_kind::literal) {
      const auto index = static_cast<std::uint32_t>(constants_.size());
      const shape& s = graph_.shape_of(v);
      at = {add_buffer(memory::constant, s.bytes(), index), layout::standard(s.lens)};
      constants_.push_back(v.instruction);
    }
    return at;
  }
  /// Where a result goes.
  constexpr placement result(value_id v) {
    placement& at = placements_[v.instruction][v.result];
    if (at.buffer == none) at = choose(v);
    return at;
  }
  /// A value as a row-major copy, or one in NHWC.
  constexpr placement copy_of(value_id v, bool nhwc, std::string_view why) {
    for (const copied& c : copies_)
      if (c.value == v && c.nhwc == nhwc) return c.at;
    const shape& s = graph_.shape_of(v);
    std::optional<placement> to;
    if (!nhwc && output_of(v) == none) to = output_after(v);
    if (!to) to = fresh(s, nhwc);
    executor_.make_copy(placement_of(v), *to, s, why);
    copies_.push_back({v, nhwc, *to});
    return *to;
  }
  constexpr std::uint32_t add_buffer(memory kind, dimension bytes, std::uint32_t index = 0) {
    buffers_.push_back({kind, index, bytes});
    return static_cast<std::uint32_t>(buffers_.size() - 1);
  }
  /// A step touches these buffers: the first call is of step 0.
  constexpr void add_step(std::span<const std::uint32_t> touched) {
    for (const std::uint32_t b : touched) touch(b, steps_);
    ++steps_;
  }
  /// Gives the arena's buffers their offsets where all sizes are constants; returns the arena's bytes.
  constexpr std::int64_t share_arena() {
    small_vector<std::uint32_t> order = arena_;
    return place_arena({order.data(), order.size()}, constant_sizes{buffers_});
  }
  /// Readers of values: an executor whose steps keep their own form of a constant leaves that.
  constexpr uses& readers() { return uses_; }

  // ---- what was decided
  constexpr small_vector<buffer>& buffers() { return buffers_; }
  constexpr const small_vector<buffer>& buffers() const { return buffers_; }
  /// The arena's buffers that a step touches, by first use.
  constexpr const small_vector<std::uint32_t>& arena() const { return arena_; }
  /// The literals of buffers of kind `constant`.
  constexpr const small_vector<std::uint32_t>& constants() const { return constants_; }
  constexpr const small_vector<placement>& outputs() const { return outputs_; }

 private:
  struct constant_sizes {
    small_vector<buffer>& all;
    constexpr std::int64_t bytes(std::uint32_t b) const { return (all[b].bytes.value() + 63) / 64 * 64; }
    constexpr std::int64_t& offset(std::uint32_t b) const { return all[b].offset; }
    constexpr bool meet(std::uint32_t a, std::uint32_t b) const {
      return all[a].last >= all[b].first && all[b].last >= all[a].first;
    }
  };
  struct grown_output {
    growing_output as;
    std::uint32_t buffer;
  };
  struct copied {
    value_id value;
    bool nhwc = false;
    placement at;
  };

  constexpr void touch(std::uint32_t b, std::uint32_t now) {
    buffer& to = buffers_[b];
    if (to.first == none) {
      to.first = now;
      if (to.kind == memory::arena) arena_.push_back(b);
    }
    to.last = now;
  }
  constexpr placement fresh(const shape& s, bool nhwc = false) {
    return {add_buffer(memory::arena, shape(s.type, s.lens).bytes()),
            layout{s.lens, nhwc ? nhwc_strides(s.lens) : row_major(s.lens)}};
  }

  // ---- the caller's buffers
  constexpr const grown_output* grown(std::uint32_t growing_output::*which, std::uint32_t k) const {
    for (const grown_output& g : growing_)
      if (g.as.*which == k) return &g;
    return nullptr;
  }
  constexpr placement parameter(const instruction& ins) {
    const shape& s = ins.results[0];
    const std::uint32_t k = ins.is_weight ? weights_++ : inputs_++;
    if (const grown_output* g = ins.is_weight ? nullptr : grown(&growing_output::input, k))
      return {g->buffer, g->as.where(s.lens)};
    return {add_buffer(ins.is_weight ? memory::weight : memory::input, s.bytes(), k), layout::standard(s.lens)};
  }
  constexpr placement output(std::uint32_t k) {
    const shape& s = graph_.shape_of(graph_.outputs[k]);
    if (const grown_output* g = grown(&growing_output::output, k)) return {g->buffer, g->as.where(s.lens)};
    return {add_buffer(memory::output, s.bytes(), k), layout::standard(s.lens)};
  }
  // The output that a value is: one that grows, or else the first.
  constexpr std::uint32_t output_of(value_id v) const {
    for (const grown_output& g : growing_)
      if (graph_.outputs[g.as.output] == v) return g.as.output;
    for (std::uint32_t k = 0; k < graph_.outputs.size(); ++k)
      if (graph_.outputs[k] == v) return k;
    return none;
  }
  // The caller's buffer of the output that a value is, or becomes under other dims.
  constexpr std::optional<placement> output_after(value_id v) {
    if constexpr (!Executor::callers_outputs) return std::nullopt;
    if (const std::uint32_t k = output_of(v); k != none) return output(k);
    const dims& lens = graph_.shape_of(v).lens;
    for (const uses::user& u : uses_.beside(v)) {
      if (u.result != v.result || u.instruction == none || !renames_dims(graph_[u.instruction], lens)) continue;
      auto after = output_after({u.instruction, 0});
      if (!after) continue;
      after->where = layout::standard(lens);
      return after;
    }
    return std::nullopt;
  }

  // ---- where a result goes
  constexpr placement choose(value_id v) {
    if (const auto to = output_after(v)) return *to;
    if (const auto to = part_of_concat(v, [&](const layout& where) { return executor_.writes(v, where); })) return *to;
    if (const auto to = before_transpose(v)) return *to;
    if (const auto to = before_shuffle(v)) return *to;
    return fresh(graph_.shape_of(v), executor_.prefers_nhwc(v));
  }
  // Operand k's part of a concatenation's result.
  constexpr placement concat_part(std::uint32_t concat, std::size_t k) {
    placement whole = result({concat, 0});
    whole.where = part_of(graph_, graph_[concat], k, whole.where);
    return whole;
  }
  template <class Fits> constexpr std::optional<placement> part_of_concat(value_id v, const Fits& fits) {
    for (const uses::user& u : uses_.beside(v)) {
      if (u.instruction == none || !is_concat(graph_[u.instruction])) continue;
      const auto& inputs = graph_[u.instruction].inputs;
      for (std::size_t k = 0; k < inputs.size(); ++k) {
        if (!(inputs[k] == v)) continue;
        const placement part = concat_part(u.instruction, k);
        if (fits(part.where)) return part;
      }
    }
    return std::nullopt;
  }
  // The placement of a view whose operand is written there directly; no buffer yet if it has none of its own.
  constexpr placement destination(value_id view) {
    if (const auto to = output_after(view)) return *to;
    if (const auto to = part_of_concat(view, [](const layout&) { return true; })) return *to;
    return {none, layout::standard(graph_.shape_of(view).lens)};
  }
  constexpr placement settled(const placement& to, const layout& where, const shape& s) {
    return {to.buffer == none ? fresh(s).buffer : to.buffer, where};
  }
  // A result whose only reader transposes it is written transposed.
  constexpr std::optional<placement> before_transpose(value_id v) {
    const shape& s = graph_.shape_of(v);
    const std::uint32_t t = uses_.only_reader(v);
    if (t == none) return std::nullopt;
    const auto axes = permutation_of(graph_[t], s.lens);
    if (!axes) return std::nullopt;
    const placement to = destination({t, 0});
    const layout at = before_permutation(*axes, s.lens, to.where);
    if (!executor_.writes(v, at)) return std::nullopt;
    return settled(to, at, s);
  }
  // A result in NCHW whose only reader shuffles its channels is written shuffled: its layout has two dims of channels.
  constexpr std::optional<placement> before_shuffle(value_id v) {
    if (executor_.prefers_nhwc(v)) return std::nullopt;
    const auto shuffle = shuffle_after(graph_, uses_, v);
    if (!shuffle) return std::nullopt;
    const placement to = destination({shuffle->join, 0});
    const auto at = shuffle->before(to.where);
    if (!at || !dense_from(*at, 3) || !(executor_.writes(v, *at) || joins_runs(graph_, v, *shuffle)))
      return std::nullopt;
    return settled(to, *at, graph_.shape_of(v));
  }

  // ---- views and concatenations
  constexpr void place_view(std::uint32_t i) {
    if (uses_.unread(i)) return;  // of a constant that steps hold in a form of their own
    const instruction& ins = graph_[i];
    const shape& s = graph_.shape_of(ins.inputs[0]);
    placement at = placement_of(ins.inputs[0]);
    auto mapped = ins.op.map(at.where);
    if (!mapped) {
      if (const auto source = executor_.operand_of_nhwc_view(i)) {
        const placement to{fresh(s).buffer, *source};
        executor_.make_copy(at, to, s, ins.op.name());
        at = to;
      } else {
        at = copy_of(ins.inputs[0], false, ins.op.name());  // row-major: every view maps that
      }
      mapped = ins.op.map(at.where);
    }
    placements_[i][0] = {at.buffer, mapped.value()};
  }
  constexpr void join(std::uint32_t i) {
    const instruction& ins = graph_[i];
    result({i, 0});
    for (std::size_t k = 0; k < ins.inputs.size(); ++k) {
      const placement part = concat_part(i, k), at = placement_of(ins.inputs[k]);
      if (at == part) continue;
      executor_.make_copy(at, part, graph_.shape_of(ins.inputs[k]),
                          ins.name.empty() ? std::string_view("concat") : ins.name.view());
    }
  }

  const module_type& graph_;
  Executor& executor_;
  uses uses_;
  small_vector<grown_output> growing_;
  small_vector<small_vector<placement>> placements_;
  small_vector<buffer> buffers_;
  small_vector<copied> copies_;
  small_vector<std::uint32_t> arena_, constants_;
  small_vector<placement> outputs_;
  std::uint32_t steps_ = 0, inputs_ = 0, weights_ = 0;
};

}  // namespace kiln::lower
