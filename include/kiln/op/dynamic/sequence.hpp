#pragma once
#include "kiln/op/concepts.hpp"

// Sequences and optionals that only a run knows. Each is one value: a rank 0 tensor whose element is the object.
namespace kiln::detail {

/// The result of an op whose first operand is a sequence or an optional, or the fault.
constexpr result<shape> read_from(dtype holder, std::span<const shape> in, shape made) {
  if (in.empty()) return fault::of(errc::invalid_argument, "number of inputs", "at least 1", in.size());
  if (in[0].type != holder || in[0].rank() != 0)
    return fault::of(errc::shape_mismatch, "type of the first operand", shape{holder, {}}, in[0]);
  return made;
}

}  // namespace kiln::detail

namespace kiln::op {

/// The operands, in order, as a sequence.
struct make_sequence {
  result<shape> compute_shape(std::span<const shape>) const { return shape{dtype::sequence, {}}; }
  small_vector<argument> produce(std::span<const argument> in) const;
};

/// The item at a position (an integer, negative: from the end), which has the stated type.
struct sequence_at {
  dtype type = dtype::f32;
  dims lens{};
  result<shape> compute_shape(std::span<const shape> in) const {
    return detail::read_from(dtype::sequence, in, {type, lens});
  }
  small_vector<argument> produce(std::span<const argument> in) const;
};

/// The sequence with one more item: operand 1, before the position that operand 2 names, or at the end.
struct sequence_insert {
  result<shape> compute_shape(std::span<const shape> in) const {
    return detail::read_from(dtype::sequence, in, {dtype::sequence, {}});
  }
  small_vector<argument> produce(std::span<const argument> in) const;
};

/// The sequence without the item at the position that operand 1 names, or without the last.
struct sequence_erase {
  result<shape> compute_shape(std::span<const shape> in) const {
    return detail::read_from(dtype::sequence, in, {dtype::sequence, {}});
  }
  small_vector<argument> produce(std::span<const argument> in) const;
};

/// The number of items, i64.
struct sequence_length {
  result<shape> compute_shape(std::span<const shape> in) const {
    return detail::read_from(dtype::sequence, in, {dtype::i64, {}});
  }
  small_vector<argument> produce(std::span<const argument> in) const;
};

/// A tensor cut along an axis: into pieces of operand 1's extent (a scalar; the last may be shorter), of its extents (a
/// vector), or, without it, of extent 1, whose dim goes unless `keep` says otherwise.
struct split_sequence {
  std::int64_t axis = 0;
  bool keep = true;
  result<shape> compute_shape(std::span<const shape> in) const {
    if (in.empty() || normal_axis(axis, in[0].rank()) < 0)
      return fault::of(errc::shape_mismatch, "the axis lies within the rank", in.empty() ? 0 : in[0].rank(), axis);
    return shape{dtype::sequence, {}};
  }
  small_vector<argument> produce(std::span<const argument> in) const;
};

/// The items one after the other along an axis, or stacked along a new one; the result has the stated type.
struct join_sequence {
  std::int64_t along = 0;
  bool stacks = false;
  dtype type = dtype::f32;
  dims lens{};
  result<shape> compute_shape(std::span<const shape> in) const {
    return detail::read_from(dtype::sequence, in, {type, lens});
  }
  small_vector<argument> produce(std::span<const argument> in) const;
};

/// An optional that holds the operand, or, without one, nothing.
struct make_optional {
  result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() > 1) return fault::of(errc::invalid_argument, "number of inputs", "0 or 1", in.size());
    return shape{dtype::optional, {}};
  }
  small_vector<argument> produce(std::span<const argument> in) const;
};

/// Whether an optional holds something, one bool.
struct optional_has {
  result<shape> compute_shape(std::span<const shape> in) const {
    return detail::read_from(dtype::optional, in, {dtype::boolean, {}});
  }
  small_vector<argument> produce(std::span<const argument> in) const;
};

/// What an optional holds, which has the stated type; an empty one is an `invalid_argument` error of the run.
struct optional_get {
  dtype type = dtype::f32;
  dims lens{};
  result<shape> compute_shape(std::span<const shape> in) const {
    return detail::read_from(dtype::optional, in, {type, lens});
  }
  small_vector<argument> produce(std::span<const argument> in) const;
};

}  // namespace kiln::op
