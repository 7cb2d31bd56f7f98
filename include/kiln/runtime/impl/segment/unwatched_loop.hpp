#pragma once
#include <atomic>

#include "kiln/runtime/impl/segment/loop_values.hpp"

namespace kiln::detail {

/// What a loop's body is told, on a device: then iterations are given to its queue without a wait for each.
/// Only where it runs as often as it may whatever it computes, and all that it makes has its place before.
class unwatched_loop {
 public:
  /// `in`: the loop's operands, of which `carried` are carried.
  unwatched_loop(const caller& c, std::span<const argument> in, std::size_t carried, std::int64_t most, bool goes_on)
      : call_(c), carried_(carried), most_(most) {
    constexpr std::int64_t many = std::int64_t{1} << 20;
    if (!c.place || !goes_on || most < 2 || most > many || c.step.loop.asks || !runs_there(*c.step.bodies[0])) return;
    for (const port& p : c.step.bodies[0]->ports.outputs)
      if (!caller::has_fixed_bytes(p.type)) return;
    for (std::size_t k = 0; k < carried; ++k)  // one binding of sizes serves all iterations
      if (!(in[2 + k].get_shape().lens == c.made_each_time(k).lens)) return;
    serves_ = true;
    for (const auto& s : c.step.bodies[0]->runs->whole_plan()->steps)
      if (s.run->reports_faults() && !checked_) checked_ = s.run.get();
  }
  unwatched_loop(const unwatched_loop&) = delete;
  unwatched_loop& operator=(const unwatched_loop&) = delete;

  explicit operator bool() const { return serves_; }
  /// Where what iterations make lies; null: in the host's memory.
  device_room* room() { return serves_ ? &room_ : nullptr; }

  /// Makes the memory of all that asked for some in the room, and moves there what the body is given: `given`, from the
  /// condition on.
  void begin(small_vector<argument>& given) {
    const device_place& place = call_.place;
    const shape numbers{dtype::i64, {most_, apart}}, found{dtype::i32, {most_}};
    const std::size_t numbers_at = room_.take(numbers), condition_at = room_.take({dtype::boolean, {}}),
                      found_at = checked_ ? room_.take(found) : 0;
    std::vector<std::pair<std::size_t, std::size_t>> moved;  // operands, and their places
    for (std::size_t i = 2; i < given.size(); ++i)
      if (!is_object(given[i].get_shape().type) && given[i].elements() != 0 && !place.serves(given[i]))
        moved.emplace_back(i, room_.take({given[i].get_shape().type, given[i].get_shape().lens}));
    run_memory& w = call_.inner[0];
    place.keep_there(w);
    room_.make(w);
    // Pieces of a stack and slices may lie at places that kernels don't expect: no iteration enlarges what those before
    // still use.
    std::size_t edges = alignment;
    for (std::size_t k = carried_; k < call_.step.results.size(); ++k)
      edges += aligned(static_cast<std::size_t>(call_.made_each_time(k).bytes().value()));
    for (const std::uint32_t k : call_.step.loop.sliced)
      if (const std::int64_t extent = given[k].get_shape().lens[0].raw())
        edges += aligned(static_cast<std::size_t>(given[k].get_shape().bytes().value() / extent));
    w.grow(w.on_device.edges, edges);
    numbers_ = room_.at(numbers_at, numbers);
    argument here(numbers);
    for (std::int64_t k = 0; k < most_ * apart; ++k) here.as<std::int64_t>()[static_cast<std::size_t>(k)] = k / apart;
    place.copy(here, numbers_);
    given[1] = room_.at(condition_at, {dtype::boolean, {}});
    argument yes(given[1].get_shape());
    yes.as<bool>()[0] = true;
    place.copy(yes, given[1]);
    if (checked_) found_ = room_.at(found_at, found);
    for (const auto& [i, at] : moved) {
      argument there = room_.at(at, {given[i].get_shape().type, given[i].get_shape().lens});
      place.copy(given[i], there);
      given[i] = std::move(there);
    }
  }
  argument number(std::int64_t k) const {
    return {shape{dtype::i64, {}}, const_cast<std::byte*>(numbers_.data()) + k * apart * std::int64_t{sizeof(k)}};
  }

  /// Gives the device all iterations; `iteration(k)` gives it one, whose operands have the shapes `given`; `places` is
  /// all memory that they work in. Where that is what it was in the run before, iterations are recorded, so many
  /// together, and replayed from then on.
  template <class Iteration>
  void give_all(std::span<const shape> given, const std::vector<std::byte*>& places, const Iteration& iteration) {
    // Of another body, and for other extents or symbols, this forgets what was recorded: a replay binds nothing.
    run_memory& body = call_.inner[0];
    body.outer_changed = body.outer_changed || body.outer != call_.symbols.list;
    body.outer = call_.symbols.list;
    call_.step.bodies[0]->runs->bind(body, given);
    device_memory& d = body.on_device;
    std::vector<run_memory>& kept = body.inner;
    const bool again = d.recorded == places && records();
    if (!again) kept.clear(), d.recording.reset();
    for (std::int64_t first = 0; first < most_; first += span) {
      if (first > 0) keep_pace();
      const auto some = [&] {
        for (std::int64_t k = first; k < std::min(first + span, most_); ++k) {
          if (call_.stopped()) call_.stop(k);
          d.last.clear();
          iteration(k);
          note_faults(k);
        }
      };
      const device_recording* const part = again ? recorded(static_cast<std::size_t>(first / span), some) : nullptr;
      if (!part) {
        some();
      } else {
        if (call_.stopped()) call_.stop(first);
        call_.place.queue().replay(*part);
      }
    }
    d.recorded = places;
  }
  /// Waits for all iterations; raises what they noted.
  void finish() {
    call_.place.wait();
    if (!checked_) return;
    const argument found = call_.place.on_host(found_);
    for (const std::int32_t n : found.as<std::int32_t>())
      if (n != 0) raise(errc::invalid_argument, checked_->fault_text());
  }

  /// Iterations under way, which end before the memory that was there before it goes, also where an error leaves the
  /// loop.
  class iterations {
   public:
    explicit iterations(const unwatched_loop& of) : of_(of) {}
    iterations(const iterations&) = delete;
    iterations& operator=(const iterations&) = delete;
    ~iterations() {
      if (!of_) return;
      try {
        of_.call_.place.wait();
      } catch (...) {  // the error that leaves the loop says more
      }
    }

   private:
    const unwatched_loop& of_;
  };

 private:
  static constexpr std::int64_t apart = 2;  // numbers lie where kernels expect operands: at multiples of 16 bytes

  static constexpr std::int64_t span = 64;  // iterations that are recorded together

  // Whether all kernels of a body are the device's.
  static bool runs_there(const compiled_program& body) {
    const plan* const steps = body.runs->whole_plan();
    return steps &&
           std::all_of(steps->steps.begin(), steps->steps.end(), [](const auto& s) { return s.run->on_device(); });
  }
  // Recordings take memory for each kernel.
  bool records() const {
    constexpr std::int64_t most_kernels = std::int64_t{1} << 15;
    const auto kernels = static_cast<std::int64_t>(call_.step.bodies[0]->runs->whole_plan()->steps.size());
    return most_ * (kernels + 2) <= most_kernels;
  }
  // Recording `n` of the loop's, made by `some` where there is none yet; null where the platform can't.
  template <class Some> const device_recording* recorded(std::size_t n, const Some& some) {
    std::vector<run_memory>& kept = call_.inner[0].inner;
    if (n < kept.size()) return kept[n].on_device.recording.get();
    device_queue& queue = call_.place.queue();
    std::unique_ptr<device_recording> made;
    if (queue.begin_recording()) {
      try {
        some();
      } catch (...) {
        queue.end_recording();
        throw;
      }
      made = queue.end_recording();
    }
    kept.emplace_back().on_device.recording = std::move(made);
    return kept.back().on_device.recording.get();
  }
  // Waits while the device has more than two times `span` iterations to do, so that who stops a run needn't wait for
  // all of it.
  void keep_pace() {
    if (reached_) reached_->wait();
    reached_ = call_.place.record();
  }
  // Notes whether iteration `k` met data that its kernels can't compute.
  void note_faults(std::int64_t k) {
    if (checked_) call_.place.copy_bytes(found_.data() + 4 * k, call_.inner[0].on_device.faults, sizeof(std::int32_t));
  }
  const caller& call_;
  const std::size_t carried_;
  const std::int64_t most_;
  bool serves_ = false;
  device_room room_;
  argument numbers_, found_;
  const kernel* checked_ = nullptr;  // null: no kernel reports faults
  std::unique_ptr<device_event> reached_;
};

}  // namespace kiln::detail
