#pragma once
#include <algorithm>
#include <utility>

#include "kiln/runtime/impl/segment/caller.hpp"

namespace kiln::detail {

/// Pieces of one shape as one tensor with a new first dim; of no piece only the stated extents are known, others are 0.
inline argument stack_pieces(const std::vector<argument>& pieces, const shape& stated, const bindings& symbols) {
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

/// What iterations on a device lie in: one piece of its memory, which the next run has, too. Asked for, then made.
class device_room {
 public:
  std::size_t take(const shape& s) {
    return std::exchange(bytes_, bytes_ + aligned(static_cast<std::size_t>(s.bytes().value())));
  }
  void make(run_memory& w) {
    w.grow(w.on_device.loop, bytes_);
    at_ = w.on_device.loop.data();
  }
  argument at(std::size_t place, const shape& s) const { return {s, at_ + place}; }

 private:
  std::size_t bytes_ = 0;
  std::byte* at_ = nullptr;
};

/// What a loop carries from one iteration to the next. Where its shape is fixed, two memories serve by turns, and the
/// last iteration that may come writes to the caller's.
class carried_value {
 public:
  /// `room`: all of it lies there, or in the caller's memory of the device; null: in the host's.
  carried_value(const caller& c, std::size_t result, std::int64_t most, device_room* room)
      : made_(c.made_each_time(result)), room_(room) {
    if (!caller::has_fixed_bytes(made_)) return;
    fixed_ = true;
    argument& last = turns_[most % 2 == 0 ? 1 : 0] = c.memory_for(result, made_);
    if (room_ ? !c.place.serves(last) : c.place.holds(last)) last = argument();
    for (std::size_t turn = 0; room && turn < 2; ++turn)
      if (!turns_[turn]) places_[turn] = room->take(made_);
  }
  argument memory(std::int64_t iteration) {
    if (!fixed_) return {};
    argument& turn = turns_[iteration % 2];
    if (!turn) turn = room_ ? room_->at(places_[iteration % 2], made_) : argument(made_);
    return turn;
  }

 private:
  const shape& made_;
  const device_room* room_;
  bool fixed_ = false;
  std::size_t places_[2] = {};  // in the room
  argument turns_[2];
};

/// An operand of which a loop's body is given a slice along the first dim.
class sliced_value {
 public:
  sliced_value(std::uint32_t operand, const argument& whole) : operand_(operand), whole_(whole) {
    const shape& s = whole.get_shape();
    const dims steps = s.element_strides();
    slice_ = shape{s.type, {}};
    for (std::size_t d = 1; d < s.rank(); ++d) slice_.lens.push_back(s.lens[d]);
    if (!s.standard())
      for (std::size_t d = 1; d < s.rank(); ++d) slice_.strides.push_back(steps[d]);
    step_ = steps[0].raw() * static_cast<std::int64_t>(size_of(s.type));
  }
  std::uint32_t operand() const { return operand_; }
  const shape& each() const { return slice_; }
  argument at(std::int64_t k) const {
    const std::int64_t extent = whole_.get_shape().lens[0].raw();
    if (k >= extent) raise(fault::of(errc::invalid_argument, "an index lies within the extent", extent, k));
    return {slice_, const_cast<std::byte*>(whole_.data()) + k * step_};  // which a body only reads
  }

 private:
  std::uint32_t operand_;
  argument whole_;
  shape slice_;
  std::int64_t step_ = 0;  // bytes
};

/// What a loop collects. Where pieces have a fixed shape, they are made where they are stacked: in the caller's memory,
/// or in one that doubles when it is full.
class collected_value {
 public:
  /// `room`: all iterations come, and the whole lies there or in the caller's memory of the device; null: in the
  /// host's.
  collected_value(const caller& c, std::size_t result, std::int64_t most, device_room* room)
      : made_(c.made_each_time(result)), stated_(c.step.results[result]), most_(most) {
    if (!caller::has_fixed_bytes(made_)) return;
    bytes_ = static_cast<std::size_t>(made_.bytes().value());
    if (room) {
      given_ = c.memory_for(result, stack_of(most));
      if (!c.place.holds(given_)) given_ = argument(), there_ = room, place_ = room->take(stack_of(most));
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
    if (there_ && !at_) given_ = there_->at(place_, stack_of(most_)), at_ = given_.data();
    if (iteration == room_) enlarge();
    return {made_, at_ + static_cast<std::size_t>(iteration) * bytes_};
  }
  void take(argument made) {
    if (bytes_ == 0) pieces_.push_back(std::move(made));
  }
  argument stacked(std::int64_t iterations, const bindings& symbols) {
    if (bytes_ == 0 || iterations == 0) return stack_pieces(pieces_, stated_, symbols);
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
  const device_room* there_ = nullptr;
  std::size_t place_ = 0;  // in the room
  argument given_;
  buffer own_;
  std::byte* at_ = nullptr;
  std::vector<argument> pieces_;
};

}  // namespace kiln::detail
