#include <algorithm>

#include "kiln/core/object.hpp"
#include "kiln/core/visit_size.hpp"
#include "kiln/op/dynamic/branch.hpp"
#include "kiln/op/dynamic/loop.hpp"
#include "kiln/op/dynamic/progression.hpp"
#include "kiln/op/dynamic/selection.hpp"
#include "kiln/op/dynamic/slice_at.hpp"
#include "kiln/op/index/common.hpp"
#include "kiln/runtime/impl/segment/device_place.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::detail {

namespace {

using arguments = small_vector<argument>;

struct caller {
  const host_step& step;
  const known_symbols& symbols;
  std::span<run_memory> inner;
  const run_options& options;
  std::span<const argument> wanted;
  thread_pool& pool;
  const device_place& place;

  /// Outputs that have memory are written there.
  void run_body(std::size_t k, std::span<const argument> in, std::span<argument> out, void* stream = nullptr) const {
    run_options plain;
    plain.cancel = options.cancel;
    plain.stream = stream;
    step.bodies[k]->run(inner[k], in, out, plain, symbols.list);
  }
  const shape& made_by(std::size_t body, std::size_t output) const {
    return step.bodies[body]->ports.outputs[output].type;
  }
  /// The memory that the caller has for a result of this shape, or nothing.
  argument memory_for(std::size_t result, const shape& s) const {
    return result < wanted.size() && has_fixed_bytes(s) && wanted[result].get_shape().type == s.type &&
                   wanted[result].get_shape().lens == s.lens
               ? wanted[result]
               : argument();
  }
  /// Whether values of this shape always take the same number of bytes, and some.
  static bool has_fixed_bytes(const shape& s) {
    return s.is_constant() && !is_object(s.type) && bits_of(s.type) >= 8 && s.elements().value() > 0;
  }
};

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

// Pieces of one shape as one tensor with a new first dim; of no piece only the stated extents are known, others are 0.
argument stack(const std::vector<argument>& pieces, const shape& stated, const bindings& symbols) {
  const auto n = static_cast<std::int64_t>(pieces.size());
  shape whole{stated.type, {n}};
  if (pieces.empty()) {
    for (std::size_t d = 1; d < stated.rank(); ++d) {
      const dimension extent = symbols.substitute(stated.lens[d]);
      whole.lens.push_back(extent.is_constant() ? extent : dimension(0));
    }
    return argument(whole);
  }
  for (const dimension d : pieces[0].get_shape().lens) whole.lens.push_back(d);
  argument out(whole);
  const std::size_t bytes = static_cast<std::size_t>(pieces[0].get_shape().bytes().value());
  for (std::size_t k = 0; k < pieces.size(); ++k) {
    if (!(pieces[k].get_shape().lens == pieces[0].get_shape().lens))
      raise(fault::of(errc::shape_mismatch, "what a loop collects has one shape in all iterations",
                      pieces[0].get_shape(), pieces[k].get_shape()));
    if (bytes) std::memcpy(out.data() + k * bytes, pieces[k].contiguous().data(), bytes);
  }
  return is_object(whole.type) ? retained(whole, out.data()) : out;
}

// What a loop carries from one iteration to the next. Where its shape is fixed, two memories serve by turns, and the
// last iteration that may come writes to the caller's.
class carried_value {
 public:
  /// `there`: all of it lies on the device.
  carried_value(const caller& c, std::size_t result, std::int64_t most, bool there)
      : made_(c.made_by(0, 1 + result)), place_(c.place), there_(there) {
    if (!caller::has_fixed_bytes(made_)) return;
    fixed_ = true;
    argument& last = turns_[most % 2 == 0 ? 1 : 0] = c.memory_for(result, made_);
    if (!there_ && place_.holds(last)) last = argument();
  }
  argument memory(std::int64_t iteration) {
    if (!fixed_) return {};
    argument& turn = turns_[iteration % 2];
    if (!turn) turn = there_ ? place_.allocate(made_) : argument(made_);
    return turn;
  }

 private:
  const shape& made_;
  const device_place& place_;
  bool there_, fixed_ = false;
  argument turns_[2];
};

// What a loop collects. Where pieces have a fixed shape, they are made where they are stacked: in the caller's memory,
// or in one that doubles when it is full.
class collected_value {
 public:
  /// `whole`: all iterations come, and none is waited for.
  collected_value(const caller& c, std::size_t result, std::int64_t most, bool whole)
      : made_(c.made_by(0, 1 + result)), stated_(c.step.results[result]), most_(most) {
    if (!caller::has_fixed_bytes(made_)) return;
    bytes_ = static_cast<std::size_t>(made_.bytes().value());
    if (whole) {
      given_ = c.memory_for(result, stack_of(most));
      if (!c.place.holds(given_)) given_ = c.place.allocate(stack_of(most));
      room_ = most, at_ = given_.data();
      return;
    }
    if (result >= c.wanted.size() || c.wanted[result].get_shape().rank() != made_.rank() + 1) return;
    given_ = c.memory_for(result, stack_of(c.wanted[result].get_shape().lens[0].raw()));
    if (c.place.holds(given_)) given_ = argument();
    if (given_) room_ = given_.get_shape().lens[0].raw(), at_ = given_.data();
  }
  argument memory(std::int64_t iteration) {
    if (bytes_ == 0) return {};
    if (iteration == room_) enlarge();
    return {made_, at_ + static_cast<std::size_t>(iteration) * bytes_};
  }
  void take(argument made) {
    if (bytes_ == 0) pieces_.push_back(std::move(made));
  }
  argument stacked(std::int64_t iterations, const bindings& symbols) {
    if (bytes_ == 0 || iterations == 0) return stack(pieces_, stated_, symbols);
    if (at_ == given_.data() && iterations == room_) return given_;
    const argument out(stack_of(iterations), own_, at_);
    return 2 * iterations < room_ ? out.copy() : out;  // a result is kept longer than a run: without unused room
  }

 private:
  shape stack_of(std::int64_t n) const {
    shape s{made_.type, {n}};
    for (const dimension d : made_.lens) s.lens.push_back(d);
    return s;
  }
  void enlarge() {
    constexpr std::size_t first = std::size_t{64} << 10;
    const std::int64_t begin = std::max<std::int64_t>(8, static_cast<std::int64_t>(first / bytes_)),
                       room = std::min(most_, std::max(begin, 2 * room_));
    buffer larger = buffer::allocate(static_cast<std::size_t>(room) * bytes_);
    if (room_ > 0) std::memcpy(larger.data(), at_, static_cast<std::size_t>(room_) * bytes_);
    own_ = std::move(larger), at_ = own_.data(), room_ = room;
  }

  const shape &made_, &stated_;
  std::int64_t most_, room_ = 0;  // pieces
  std::size_t bytes_ = 0;         // of a piece; 0: they differ
  argument given_;
  buffer own_;
  std::byte* at_ = nullptr;
  std::vector<argument> pieces_;
};

// What a loop's body is told and says, on a device: then iterations are given to its queue without a wait in between.
// Only where it runs as often as it may whatever it computes, and all that it makes has its place before.
class unwatched_loop {
 public:
  unwatched_loop(const caller& c, std::int64_t most, bool goes_on) {
    constexpr std::int64_t many = std::int64_t{1} << 20;
    if (!c.place || !goes_on || most < 2 || most > many || !never_ends(*c.step.bodies[0])) return;
    for (const port& p : c.step.bodies[0]->ports.outputs)
      if (!caller::has_fixed_bytes(p.type)) return;
    numbers_ = c.place.allocate(shape{dtype::i64, {most, apart}});
    argument here(numbers_.get_shape());
    for (std::int64_t k = 0; k < most * apart; ++k) here.as<std::int64_t>()[static_cast<std::size_t>(k)] = k / apart;
    c.place.copy(here, numbers_);
    condition = c.place.allocate(shape{dtype::boolean, {}});
    argument yes(condition.get_shape());
    yes.as<bool>()[0] = true;
    c.place.copy(yes, condition);
    answer = c.place.allocate(c.made_by(0, 0));
    for (const auto& s : c.step.bodies[0]->runs->whole_plan()->steps)
      if (s.run->reports_faults() && !checked_) checked_ = s.run.get();
    if (checked_) found_ = c.place.allocate(shape{dtype::i32, {most}});
  }
  explicit operator bool() const { return static_cast<bool>(numbers_); }
  argument number(std::int64_t k) const {
    return {shape{dtype::i64, {}}, const_cast<std::byte*>(numbers_.data()) + k * apart * std::int64_t{sizeof(k)}};
  }

  /// Notes whether iteration `k`, which `w` ran, met data that its kernels can't compute.
  void note_faults(const caller& c, const run_memory& w, std::int64_t k) {
    if (checked_) c.place.copy_bytes(found_.data() + 4 * k, w.on_device.faults, sizeof(std::int32_t));
  }
  /// Waits for all iterations; raises what they noted.
  void finish(const caller& c) const {
    c.place.wait();
    if (!checked_) return;
    const argument found = c.place.on_host(found_);
    for (const std::int32_t n : found.as<std::int32_t>())
      if (n != 0) raise(errc::invalid_argument, checked_->fault_text());
  }

  argument condition, answer;

 private:
  static constexpr std::int64_t apart = 2;  // numbers lie where kernels expect operands: at multiples of 16 bytes

  // Whether a body's condition is true, or the one that it was given, and all its kernels are the device's.
  static bool never_ends(const compiled_program& body) {
    const plan* const steps = body.runs->whole_plan();
    if (!steps ||
        std::any_of(steps->steps.begin(), steps->steps.end(), [](const auto& s) { return !s.run->on_device(); }))
      return false;
    const module_graph& m = body.optimized.main();
    const auto& from = m.producer(m.outputs[0]);
    if (from.kind == instruction_kind::parameter) return m.outputs[0].instruction == m.parameters()[1].instruction;
    return from.kind == instruction_kind::literal && from.constant.get_shape().type == dtype::boolean &&
           from.constant.get_shape().elements() == 1 && from.constant.to<bool>()[0];
  }
  argument numbers_, found_;
  const kernel* checked_ = nullptr;  // null: no kernel reports faults
};

arguments run_loop(const caller& c, std::span<const argument> in) {
  const auto& op = *c.step.op.get_if<op::loop>();
  const auto carried = static_cast<std::size_t>(op.carried), results = c.step.results.size();
  const std::int64_t most = std::max<std::int64_t>(0, in[0].contiguous().as<std::int64_t>()[0]);
  bool goes_on = one_bool(in[1], "a loop's condition");
  argument number(shape{dtype::i64, {}}), condition(shape{dtype::boolean, {}});
  unwatched_loop unwatched(c, most, goes_on);
  arguments given(in);  // the number, the condition, carried values, then what the body reads besides
  given[0] = number, given[1] = unwatched ? unwatched.condition : condition;
  for (std::size_t i = 2; unwatched && i < given.size(); ++i)
    if (!is_object(given[i].get_shape().type) && given[i].elements() != 0 && !c.place.holds(given[i]))
      given[i] = c.place.copied(given[i]);
  std::vector<carried_value> states;
  std::vector<collected_value> stacks;
  for (std::size_t k = 0; k < carried; ++k) states.emplace_back(c, k, most, static_cast<bool>(unwatched));
  for (std::size_t k = carried; k < results; ++k) stacks.emplace_back(c, k, most, static_cast<bool>(unwatched));
  const argument answer = unwatched                                  ? unwatched.answer
                          : caller::has_fixed_bytes(c.made_by(0, 0)) ? argument(c.made_by(0, 0))
                                                                     : argument();
  arguments out(1 + results);
  std::int64_t k = 0;
  for (; k < most && goes_on; ++k) {
    if (c.options.cancel && c.options.cancel->load(std::memory_order_relaxed))
      raise(errc::canceled, "the run was stopped before iteration " + std::to_string(k) + " of a loop");
    if (unwatched) {
      given[0] = unwatched.number(k);
    } else {
      number.as<std::int64_t>()[0] = k;
      condition.as<bool>()[0] = goes_on;
    }
    out[0] = answer;
    for (std::size_t i = 0; i < carried; ++i) out[1 + i] = states[i].memory(k);
    for (std::size_t i = carried; i < results; ++i) out[1 + i] = stacks[i - carried].memory(k);
    c.run_body(0, given, {out.data(), out.size()}, unwatched ? c.place.stream() : nullptr);
    if (unwatched)
      unwatched.note_faults(c, c.inner[0], k);
    else
      goes_on = one_bool(out[0], "a loop's condition");
    for (std::size_t i = 0; i < carried; ++i) given[2 + i] = std::move(out[1 + i]);
    for (std::size_t i = carried; i < results; ++i) stacks[i - carried].take(std::move(out[1 + i]));
  }
  if (unwatched) unwatched.finish(c);
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
