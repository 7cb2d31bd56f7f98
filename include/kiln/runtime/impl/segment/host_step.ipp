#include <algorithm>

#include "kiln/core/object.hpp"
#include "kiln/core/visit_size.hpp"
#include "kiln/op/dynamic/branch.hpp"
#include "kiln/op/dynamic/loop.hpp"
#include "kiln/op/dynamic/progression.hpp"
#include "kiln/op/dynamic/selection.hpp"
#include "kiln/op/dynamic/slice_at.hpp"
#include "kiln/op/index/common.hpp"
#include "kiln/runtime/impl/segment/unwatched_loop.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::detail {

namespace {

using arguments = small_vector<argument>;

bool one_bool(const argument& a, const char* what) {
  if (a.elements() != 1) raise(fault::of(errc::shape_mismatch, "number of elements of a condition", 1, a.elements()));
  if (a.get_shape().type != dtype::boolean) raise(errc::shape_mismatch, std::string(what) + " is a bool");
  return a.contiguous().as<bool>()[0];
}

arguments run_branch(const caller& c, std::span<const argument> in) {
  const auto& op = *c.step.op.get_if<op::branch>();
  const auto first = static_cast<std::size_t>(op.then_inputs);
  const std::size_t body = one_bool(in[0], "a condition") ? 0 : 1;
  arguments out(c.step.results.size());
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = c.memory_for(k, c.made_by(body, k));
  c.run_body(body, body == 0 ? in.subspan(1, first) : in.subspan(1 + first), {out.data(), out.size()});
  return out;
}

arguments run_loop(const caller& c, std::span<const argument> in) {
  const auto& op = *c.step.op.get_if<op::loop>();
  const auto carried = static_cast<std::size_t>(op.carried), results = c.step.results.size();
  const std::size_t asked = c.step.loop.asks ? 1 : 0;
  const std::int64_t most = std::max<std::int64_t>(0, in[0].contiguous().as<std::int64_t>()[0]);
  bool goes_on = one_bool(in[1], "a loop's condition");
  argument number(shape{dtype::i64, {}}), condition(shape{dtype::boolean, {}});
  unwatched_loop unwatched(c, in, carried, most, goes_on);
  arguments given(in);  // the number, the condition, carried values, then what the body reads besides
  given[0] = number, given[1] = condition;
  std::vector<carried_value> states;
  std::vector<collected_value> stacks;
  for (std::size_t k = 0; k < carried; ++k) states.emplace_back(c, k, most, unwatched.room());
  for (std::size_t k = carried; k < results; ++k) stacks.emplace_back(c, k, most, unwatched.room());
  if (unwatched) unwatched.begin(given);
  std::vector<sliced_value> slices;
  for (const std::uint32_t k : c.step.loop.sliced) slices.emplace_back(k, given[k]);
  const argument answer = asked && caller::has_fixed_bytes(c.made_by(0, 0)) ? argument(c.made_by(0, 0)) : argument();
  arguments out(asked + results);
  const auto iterate = [&](std::int64_t k, void* stream) {
    for (const sliced_value& s : slices) given[s.operand()] = s.at(k);
    if (asked) out[0] = answer;
    for (std::size_t i = 0; i < carried; ++i) out[asked + i] = states[i].memory(k);
    for (std::size_t i = carried; i < results; ++i) out[asked + i] = stacks[i - carried].memory(k);
    c.run_body(0, given, {out.data(), out.size()}, stream);
  };
  const unwatched_loop::iterations under_way(unwatched);
  std::int64_t k = 0;
  if (unwatched) {
    std::vector<std::byte*> places{unwatched.number(most).data()};
    for (std::size_t i = 1; i < given.size(); ++i) places.push_back(given[i].data());
    for (carried_value& s : states) places.push_back(s.memory(0).data()), places.push_back(s.memory(1).data());
    for (collected_value& s : stacks) places.push_back(s.memory(0).data());
    std::vector<shape> shapes{number.get_shape()};
    for (std::size_t i = 1; i < given.size(); ++i) shapes.push_back(given[i].get_shape());
    for (const sliced_value& s : slices) shapes[s.operand()] = s.each();
    const arguments first(given);
    unwatched.give_all(shapes, places, [&](std::int64_t n) {
      given[0] = unwatched.number(n);
      for (std::size_t i = 0; i < carried; ++i) given[2 + i] = n == 0 ? first[2 + i] : states[i].memory(n - 1);
      iterate(n, c.place.stream());
    });
    k = most;
    for (std::size_t i = 0; i < carried; ++i) given[2 + i] = states[i].memory(most - 1);
    unwatched.finish();
  }
  for (; k < most && goes_on; ++k) {
    if (c.stopped()) caller::stop(k);
    number.as<std::int64_t>()[0] = k;
    condition.as<bool>()[0] = goes_on;
    iterate(k, nullptr);
    if (asked) goes_on = one_bool(out[0], "a loop's condition");
    for (std::size_t i = 0; i < carried; ++i) given[2 + i] = std::move(out[asked + i]);
    for (std::size_t i = carried; i < results; ++i) stacks[i - carried].take(std::move(out[asked + i]));
  }
  arguments made;
  for (std::size_t i = 0; i < carried; ++i) made.push_back(given[2 + i]);
  for (collected_value& s : stacks) made.push_back(s.stacked(k, c.symbols.values));
  return made;
}

// Slices are written where the caller wants them, by threads.
arguments run_compress(const caller& c, std::span<const argument> in) {
  const auto& op = *c.step.op.get_if<op::compress>();
  const argument x = in[0].contiguous();
  shape type{x.get_shape().type, x.get_shape().lens};
  if (op.flat) type.lens = {x.elements()};
  const auto axis = static_cast<std::size_t>(op.flat ? 0 : normal_axis(op.along, type.rank()));
  const auto a = split_at(to_ints(type.lens), static_cast<std::int64_t>(axis));
  const std::vector<std::int64_t> places = op::compress::places(in[1].contiguous(), a.extent);
  const auto count = static_cast<std::int64_t>(places.size());
  type.lens[axis] = count;
  argument out = c.memory_for(0, type);
  if (is_unset(out)) out = argument(type);
  const std::size_t element = size_of(type.type), slice = static_cast<std::size_t>(a.inner) * element;
  const auto copy = [&](std::int64_t first, std::int64_t last, auto&& move) {
    std::byte* to = out.data() + static_cast<std::size_t>(first) * slice;
    std::int64_t o = first / count, k = first % count;
    for (std::int64_t i = first; i < last; ++i, to += slice) {
      move(to, x.data() + static_cast<std::size_t>(o * a.extent + places[static_cast<std::size_t>(k)]) * slice);
      if (++k == count) k = 0, ++o;
    }
  };
  constexpr std::size_t task_bytes = 32768;
  const std::int64_t slices = a.outer * count,
                     each = static_cast<std::int64_t>(task_bytes / std::clamp<std::size_t>(slice, 8, task_bytes));
  if (slice == 0 || slices == 0) return {out};
  c.pool.parallel_for((slices + each - 1) / each, [&](std::int64_t task, unsigned) {
    const std::int64_t first = task * each, last = std::min(slices, first + each);
    if (slice == element)
      visit_size(element, [&]<class U>(U) {
        copy(first, last, [](std::byte* to, const std::byte* from) { std::memcpy(to, from, sizeof(U)); });
      });
    else
      copy(first, last, [slice](std::byte* to, const std::byte* from) { std::memcpy(to, from, slice); });
  });
  return {out};
}

arguments run_progression(const caller& c, std::span<const argument> in) {
  constexpr std::int64_t grain = 16384;
  const std::int64_t n = op::progression::size(in);
  const shape type{in[0].get_shape().type, {n}};
  argument out = c.memory_for(0, type);
  if (is_unset(out)) out = argument(type);
  c.pool.parallel_for((n + grain - 1) / grain, [&](std::int64_t task, unsigned) {
    op::progression::write(in, task * grain, std::min(n, (task + 1) * grain), out.data());
  });
  return {out};
}

}  // namespace

bool is_view(const host_step& step) { return step.op.is<op::slice_at>() && !is_object(step.results[0].type); }

small_vector<argument> run_host_step(const host_step& step, std::span<const argument> in, const known_symbols& symbols,
                                     std::span<run_memory> inner, const run_options& options,
                                     std::span<const argument> wanted, thread_pool& pool, const device_place& place) {
  const caller c{step, symbols, inner, options, wanted, pool, place};
  if (step.op.is<op::branch>()) return run_branch(c, in);
  if (step.op.is<op::loop>()) return run_loop(c, in);
  if (step.op.is<op::compress>() && !is_object(in[0].get_shape().type)) return run_compress(c, in);
  if (step.op.is<op::progression>()) return run_progression(c, in);
  if (is_view(step)) return {op::slice_at::view(in)};
  operation op = step.op;
  op.substitute(symbols.values);
  if (op.table().produce) return op.produce(in);
  return evaluate_op(op, in);
}

}  // namespace kiln::detail
