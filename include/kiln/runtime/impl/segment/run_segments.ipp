#include <algorithm>
#include <chrono>

#include "kiln/core/object.hpp"
#include "kiln/op/dynamic/branch.hpp"
#include "kiln/op/dynamic/loop.hpp"
#include "kiln/op/dynamic/progression.hpp"
#include "kiln/op/dynamic/selection.hpp"
#include "kiln/runtime/impl/segment/device_place.hpp"

namespace kiln::detail {
namespace {

using clock = std::chrono::steady_clock;

// Whether a step makes its results anew, or hands on operands as they are.
bool makes_own_memory(const host_step& s) {
  return !s.bodies.empty() || s.op.is<op::compress>() || s.op.is<op::nonzero>() || s.op.is<op::unique>() ||
         s.op.is<op::non_max_suppression>() || s.op.is<op::progression>();
}

// How many of a step's operands the host reads: a body takes what follows them where it lies.
std::size_t read_on_host(const host_step& s) {
  return s.op.is<op::branch>() ? 1 : s.op.is<op::loop>() ? 2 : s.in.size();
}

// One run; its slots are released when it ends.
class segment_run {
 public:
  /// `outputs`: the caller's, some of which grow in place. `wanted`: by slot, the caller's memory for what it will
  /// hold.
  segment_run(const segmentation& cut, std::vector<run_memory>& inner, std::span<argument> outputs,
              const run_options& options, thread_pool& pool, const device_place& place, known_symbols symbols,
              std::map<std::uint32_t, argument> wanted)
      : cut_(cut),
        inner_(inner),
        outputs_(outputs),
        options_(options),
        pool_(pool),
        place_(place),
        symbols_(std::move(symbols)),
        wanted_(std::move(wanted)) {
    slots_.resize(cut.slots);
    own_.resize(cut.slots);
    for (const auto& [at, value] : cut.constants) slots_[at] = value;
  }

  void put(std::uint32_t k, const argument& value) { slots_[k] = value; }
  /// What a slot holds; numbers that mention symbols have the values of now.
  argument value(std::uint32_t k) const {
    const auto found = cut_.symbolic.find(k);
    if (found == cut_.symbolic.end()) return slots_[k];
    small_vector<dimension> numbers = found->second.to<dimension>();
    for (dimension& d : numbers) d = symbols_.values.evaluate(d);
    const shape& type = found->second.get_shape();
    return argument(literal::of_dimensions(type.lens, std::move(numbers), type.type));
  }

  /// The same for an output; what steps made is the caller's, once.
  argument take_value(std::uint32_t k, bool& own) {
    own = own_[k] && slots_[k].get_shape().standard();
    own_[k] = false;
    return value(k);
  }

  void run() {
    for (const segment& s : cut_.segments) {
      if (s.planned) run_planned(s);
      for (const host_step& h : s.steps) run_step(h);
    }
  }

 private:
  // The memory of what comes next, in order.
  std::span<run_memory> take(std::size_t n) {
    while (inner_.size() < used_ + n) inner_.emplace_back();
    used_ += n;
    return std::span<run_memory>(inner_).subspan(used_ - n, n);
  }

  std::vector<argument> gather(const std::vector<std::uint32_t>& from) const {
    std::vector<argument> out;
    out.reserve(from.size());
    for (const std::uint32_t k : from) out.push_back(value(k));
    return out;
  }

  argument wanted(std::uint32_t slot) const {
    const auto found = wanted_.find(slot);
    return found == wanted_.end() ? argument() : found->second;
  }

  // Whether what is made has this shape, as far as that is known now.
  bool will_be(const shape& made, const shape& given) const {
    bool same = made.type == given.type && made.rank() == given.rank();
    for (std::size_t d = 0; same && d < made.rank(); ++d)
      same = symbols_.values.substitute(made.lens[d]) == given.lens[d];
    return same;
  }

  void run_planned(const segment& s) {
    const std::vector<argument> in = gather(s.in);
    std::vector<argument> out(s.out.size());
    for (std::size_t k = 0; k < out.size(); ++k) {
      const argument given = wanted(s.out[k]);
      if (given && will_be(s.planned->ports.outputs[k].type, given.get_shape())) out[k] = given;
    }
    for (const auto& [own, of] : s.growing) out[own] = outputs_[of];
    std::vector<bool> fresh;
    for (const argument& a : out) fresh.push_back(is_unset(a));
    run_options shifted;
    shifted.cancel = options_.cancel;
    const std::size_t first = step_;
    if (options_.profile) shifted.profile = [&](std::size_t i, double t) { options_.profile(first + i, t); };
    if (options_.observe)
      shifted.observe = [&](std::size_t i, std::span<const tensor> made) { options_.observe(first + i, made); };
    s.planned->run(take(1)[0], in, out, shifted, symbols_.list);
    step_ += s.planned->report.steps.size();
    for (const auto& [own, of] : s.growing) outputs_[of] = out[own];
    for (std::size_t k = 0; k < out.size(); ++k) slots_[s.out[k]] = std::move(out[k]), own_[s.out[k]] = fresh[k];
  }

  void run_step(const host_step& s) {
    if (options_.cancel && options_.cancel->load(std::memory_order_relaxed))
      raise(errc::canceled, "the run was stopped before step " + std::to_string(step_));
    const auto start = options_.profile ? clock::now() : clock::time_point();
    try {
      std::vector<argument> in = gather(s.in);
      if (s.counts && place_) {
        slots_[s.out[0]] = place_.run_counting(s, in, take(1)[0], wanted(s.out[0]));
        own_[s.out[0]] = false;
        symbols_.match(s.results[0], slots_[s.out[0]].get_shape(), "result 0");
        return finish_step(s, start);
      }
      for (std::size_t k = is_view(s); k < std::min(in.size(), read_on_host(s)); ++k) in[k] = place_.on_host(in[k]);
      if (is_view(s)) viewed_.push_back(in[0]);
      std::vector<argument> room;
      for (const std::uint32_t k : s.out)
        room.push_back(s.bodies.empty() && place_.holds(wanted(k)) ? argument() : wanted(k));
      auto made = run_host_step(s, in, symbols_, take(s.bodies.size()), options_, room, pool_, place_);
      for (std::size_t k = 0; k < made.size(); ++k) {
        symbols_.match(s.results[k], made[k].get_shape(), "result " + std::to_string(k));
        const auto is_there = [&](const argument& a) { return a.data() == made[k].data(); };
        own_[s.out[k]] = makes_own_memory(s) && std::none_of(in.begin(), in.end(), is_there) &&
                         std::none_of(room.begin(), room.end(), is_there);
        slots_[s.out[k]] = std::move(made[k]);
      }
      if (s.op.table().bind) {
        const std::vector<argument> results = gather(s.out);
        bindings bound = symbols_.values;
        s.op.table().bind(s.op.data(), results, bound);
        small_vector<dimension> named;
        s.op.symbols(named);
        for (const dimension d : named)
          if (const auto v = bound.find(d)) symbols_.bind(d, *v);
      }
    } catch (error& e) {
      e.at_instruction(s.name);
      throw;
    }
    finish_step(s, start);
  }

  void finish_step(const host_step& s, clock::time_point start) {
    if (options_.profile) options_.profile(step_, std::chrono::duration<double>(clock::now() - start).count());
    if (options_.observe) {
      std::vector<argument> here;
      std::vector<tensor> seen;
      for (const std::uint32_t k : s.out) seen.push_back(tensor_of(here.emplace_back(place_.on_host(slots_[k]))));
      options_.observe(step_, seen);
    }
    ++step_;
  }

  const segmentation& cut_;
  std::vector<run_memory>& inner_;
  const std::span<argument> outputs_;
  const run_options& options_;
  thread_pool& pool_;
  const device_place& place_;
  known_symbols symbols_;
  std::vector<argument> slots_;
  std::vector<bool> own_;         // by slot: a step made it, in memory that nothing else has
  std::vector<argument> viewed_;  // what views in slots lie in
  std::map<std::uint32_t, argument> wanted_;
  std::size_t used_ = 0, step_ = 0;
};

class segmented_program final : public runner {
 public:
  segmented_program(segmentation cut, const compiled_program& of, const target& t)
      : cut_(std::move(cut)),
        ports_(of.ports),
        pool_(*of.pool),
        where_(t.get_device()),
        copies_(where_ ? t.make_copy(nullptr) : nullptr),
        grows_(of.ports.outputs.size(), false) {
    for (const segment& s : cut_.segments)
      for (const auto& [own, of] : s.growing) grows_[of] = true;
  }

  void bind(run_memory&, std::span<const shape> inputs) const override { ports_.check(inputs); }

  std::vector<shape> output_shapes(std::span<const shape> inputs) const override {
    bindings values;
    for (const signature::symbol_source& s : ports_.symbols) values.bind(s.symbol, inputs[s.input].lens[s.dim].raw());
    std::vector<shape> open;
    for (const port& p : ports_.outputs) {
      open.push_back({p.type.type, {}});
      for (const dimension d : p.type.lens) open.back().lens.push_back(values.substitute(d));
    }
    return open;
  }

  void run(run_memory& w, std::span<const argument> inputs, std::span<argument> outputs,
           const run_options& options) const override {
    ports_.check_count(inputs.size());
    if (outputs.size() != ports_.outputs.size())
      raise(fault::of(errc::invalid_argument, "number of outputs", ports_.outputs.size(), outputs.size()));
    for (std::size_t i = 0; i < inputs.size(); ++i) ports_.check_type(i, inputs[i].get_shape());
    ports_.check_data(inputs);
    if (where_ && options.stream) where_->make_queue(options.stream)->wait();  // segments have a queue of their own
    const device_place place(where_, copies_.get(), w, pool_);
    segment_run r(cut_, w.inner, outputs, options, pool_, place, symbols_of(w.outer, inputs),
                  memory_of(inputs, outputs));
    for (std::size_t i = 0; i < inputs.size(); ++i) r.put(static_cast<std::uint32_t>(i), inputs[i]);
    r.run();
    for (const std::uint32_t slot : cut_.outputs)
      if (const argument made = r.value(slot); is_overwritten(made, outputs))
        r.put(slot, place.holds(made) ? place.on_host(made) : made.copy());
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      if (grows_[k]) continue;
      bool own = false;
      const argument made = r.take_value(cut_.outputs[k], own);
      hand_out(made, own, k, outputs[k], place);
    }
  }

 private:
  // What the caller has for slots, where writing there early harms nothing that is read or written: by slot.
  std::map<std::uint32_t, argument> memory_of(std::span<const argument> inputs,
                                              std::span<const argument> outputs) const {
    std::map<std::uint32_t, argument> found;
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const memory_extent own(outputs[k]);
      bool alone =
          own.first && !grows_[k] && !is_object(outputs[k].get_shape().type) && outputs[k].get_shape().standard();
      for (const argument& a : inputs) alone = alone && !own.meets(memory_extent(a));
      for (std::size_t j = 0; alone && j < outputs.size(); ++j) alone = j == k || !own.meets(memory_extent(outputs[j]));
      if (alone) found.emplace(cut_.outputs[k], outputs[k]);
    }
    return found;
  }

  // Whether handing out results writes where one still lies: a view of an input, whose memory an output may have.
  static bool is_overwritten(const argument& made, std::span<const argument> outputs) {
    if (is_unset(made) || is_object(made.get_shape().type)) return false;
    return std::any_of(outputs.begin(), outputs.end(), [&](const argument& o) {
      const bool is_there = o.data() == made.data() && made.get_shape().standard();
      return !is_unset(o) && !is_there && memory_extent(o).meets(memory_extent(made));
    });
  }

  known_symbols symbols_of(const symbol_values& outer, std::span<const argument> inputs) const {
    known_symbols known(outer);
    for (const signature::symbol_source& s : ports_.symbols)
      known.bind(s.symbol, inputs[s.input].get_shape().lens[s.dim].raw());
    for (std::size_t i = 0; i < inputs.size(); ++i)
      known.match(ports_.inputs[i].type, {inputs[i].get_shape().type, inputs[i].get_shape().lens},
                  "input '" + ports_.inputs[i].name + "'");
    return known;
  }

  // What a run gives is the caller's to write: never a constant's memory, an input's or another output's.
  void hand_out(const argument& value, bool own, std::size_t k, argument& to, const device_place& place) const {
    const shape made(value.get_shape().type, value.get_shape().lens);
    if (is_object(made.type)) {
      to = value.owned();
      return;
    }
    if (is_unset(to) && own && !place.holds(value)) {
      to = value;
      return;
    }
    if (is_unset(to)) to = argument(made);
    const shape& given = to.get_shape();
    if (given.type != made.type || !(given.lens == made.lens) || !given.standard())
      raise(errc::shape_mismatch, "output '" + ports_.outputs[k].name + "': expected row-major " + to_string(made) +
                                      ", found " + to_string(given));
    if (value.data() == to.data() && value.get_shape().standard()) return;  // it was made there
    place.copy(value, to);
  }

  const segmentation cut_;
  const signature& ports_;
  thread_pool& pool_;
  const std::shared_ptr<const device> where_;  // null: all memory is the host's
  const std::unique_ptr<kernel> copies_;
  std::vector<bool> grows_;  // by output
};

}  // namespace

std::unique_ptr<const runner> make_segmented_program(compiled_program& p, const target& t, const plan_choices& choices,
                                                     const std::vector<output_alias>& aliases) {
  return std::make_unique<segmented_program>(cut_program(p, t, choices, aliases), p, t);
}

}  // namespace kiln::detail
