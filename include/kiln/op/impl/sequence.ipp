#include "kiln/op/dynamic/sequence.hpp"

#include "kiln/op/impl/produced.hpp"

namespace kiln::op {

namespace {

using detail::around;
using detail::one;

argument number(std::int64_t n) { return argument::of<std::int64_t>({}, std::span<const std::int64_t>(&n, 1)); }

// Operand k as a place in [0, end), `otherwise` where it is not given.
std::size_t place(std::span<const argument> in, std::size_t k, std::size_t items, std::size_t end,
                  std::size_t otherwise) {
  if (k >= in.size()) return otherwise;
  const auto given = in[k].to<std::int64_t>();
  if (given.size() != 1) raise(fault::of(errc::shape_mismatch, "a position is one number", 1, given.size()));
  const std::int64_t at = given[0] < 0 ? given[0] + static_cast<std::int64_t>(items) : given[0];
  if (at < 0 || at >= static_cast<std::int64_t>(end))
    raise(fault::of(errc::invalid_argument, "a position lies within the sequence", end, given[0]));
  return static_cast<std::size_t>(at);
}

argument piece(const argument& x, std::size_t axis, std::int64_t from, std::int64_t n, bool keep) {
  const shape& s = x.get_shape();
  const around a(s.lens, axis);
  if (n < 0 || from + n > a.extent)
    raise(fault::of(errc::shape_mismatch, "pieces take no more than there is", a.extent, from + n));
  shape type{s.type, s.lens};
  type.lens[axis] = n;
  argument out(type);
  const auto row = static_cast<std::size_t>(a.inner) * size_of(s.type);
  for (std::int64_t o = 0; o < a.outer; ++o)
    std::memcpy(out.data() + static_cast<std::size_t>(o * n) * row,
                x.data() + static_cast<std::size_t>(o * a.extent + from) * row, static_cast<std::size_t>(n) * row);
  if (is_object(s.type)) out = retained(type, out.data());
  if (keep) return out;
  dims rest;
  for (std::size_t d = 0; d < s.rank(); ++d)
    if (d != axis) rest.push_back(s.lens[d]);
  return argument(out.to_literal().reshaped(rest));
}

// A tensor of a type that only the run knows is handed on inside an optional.
argument as_stated(dtype stated, argument a) { return stated == dtype::optional ? optional_argument(std::move(a)) : a; }

}  // namespace

small_vector<argument> make_sequence::produce(std::span<const argument> in) const {
  return one(sequence_argument({in.begin(), in.end()}));
}

small_vector<argument> sequence_at::produce(std::span<const argument> in) const {
  const auto& items = items_of(in[0]);
  return one(as_stated(type, items[place(in, 1, items.size(), items.size(), 0)]));
}

small_vector<argument> sequence_insert::produce(std::span<const argument> in) const {
  std::vector<argument> items = items_of(in[0]);
  const std::size_t at = place(in, 2, items.size(), items.size() + 1, items.size());
  items.insert(items.begin() + static_cast<std::ptrdiff_t>(at), in[1]);
  return one(sequence_argument(std::move(items)));
}

small_vector<argument> sequence_erase::produce(std::span<const argument> in) const {
  std::vector<argument> items = items_of(in[0]);
  if (items.empty()) raise(errc::invalid_argument, "nothing can be taken from an empty sequence");
  const std::size_t at = place(in, 1, items.size(), items.size(), items.size() - 1);
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(at));
  return one(sequence_argument(std::move(items)));
}

small_vector<argument> sequence_length::produce(std::span<const argument> in) const {
  return one(number(static_cast<std::int64_t>(items_of(in[0]).size())));
}

small_vector<argument> split_sequence::produce(std::span<const argument> in) const {
  const argument x = in[0].contiguous();
  const auto at = static_cast<std::size_t>(normal_axis(axis, x.get_shape().rank()));
  const std::int64_t extent = x.get_shape().lens[at].value();
  std::vector<std::int64_t> sizes;
  const bool listed = in.size() > 1 && in[1].get_shape().rank() == 1;
  if (listed) {
    const auto given = in[1].to<std::int64_t>();
    sizes.assign(given.begin(), given.end());
  } else {
    const std::int64_t each = in.size() > 1 ? in[1].to<std::int64_t>()[0] : 1;
    if (each < 1) raise(fault::of(errc::invalid_argument, "a piece's extent is positive", "at least 1", each));
    for (std::int64_t from = 0; from < extent; from += each) sizes.push_back(std::min(each, extent - from));
  }
  std::vector<argument> pieces;
  std::int64_t from = 0;
  for (const std::int64_t n : sizes) {
    pieces.push_back(piece(x, at, from, n, keep || in.size() > 1));
    from += n;
  }
  if (from != extent) raise(fault::of(errc::shape_mismatch, "pieces make up the extent", extent, from));
  return one(sequence_argument(std::move(pieces)));
}

small_vector<argument> join_sequence::produce(std::span<const argument> in) const {
  const auto& items = items_of(in[0]);
  if (items.empty()) raise(errc::invalid_argument, "there is nothing to concatenate");
  const shape& first = items[0].get_shape();
  const std::int64_t a = normal_axis(along, first.rank() + (stacks ? 1 : 0));
  if (a < 0) raise(fault::of(errc::shape_mismatch, "the axis lies within the rank", first.rank(), along));
  const auto axis = static_cast<std::size_t>(a);
  const auto widened = [&](const shape& s) {  // with an extent along the axis
    if (!stacks) return s.lens;
    dims out;
    for (std::size_t d = 0; d <= s.rank(); ++d)
      out.push_back(d < axis ? s.lens[d] : d == axis ? dimension(1) : s.lens[d - 1]);
    return out;
  };
  shape whole{first.type, widened(first)};
  whole.lens[axis] = 0;
  for (const argument& item : items) {
    dims lens = widened(item.get_shape());
    if (item.get_shape().type != first.type || lens.size() != whole.rank())
      raise(fault::of(errc::shape_mismatch, "items have one dtype and rank", first, item.get_shape()));
    whole.lens[axis] += lens[axis];
    lens[axis] = whole.lens[axis];
    if (!(lens == whole.lens))
      raise(fault::of(errc::shape_mismatch, "extents beside the axis agree", whole.lens, lens));
  }
  argument out(whole);
  const around all(whole.lens, axis);
  const auto row = static_cast<std::size_t>(all.inner) * size_of(first.type);
  std::int64_t from = 0;
  for (const argument& item : items) {
    const argument dense = item.contiguous();
    const std::int64_t n = around(widened(item.get_shape()), axis).extent;
    for (std::int64_t o = 0; o < all.outer; ++o)
      std::memcpy(out.data() + static_cast<std::size_t>(o * all.extent + from) * row,
                  dense.data() + static_cast<std::size_t>(o * n) * row, static_cast<std::size_t>(n) * row);
    from += n;
  }
  return one(as_stated(type, is_object(whole.type) ? retained(whole, out.data()) : out));
}

small_vector<argument> make_optional::produce(std::span<const argument> in) const {
  return one(in.empty() ? empty_optional() : optional_argument(in[0]));
}

small_vector<argument> optional_has::produce(std::span<const argument> in) const {
  const bool has = value_of_optional(in[0]) != nullptr;
  return one(argument::of<bool>({}, std::span<const bool>(&has, 1)));
}

// Where the stated type is an optional, what it holds has a type that only the run knows.
small_vector<argument> optional_get::produce(std::span<const argument> in) const {
  const argument* held = value_of_optional(in[0]);
  if (!held) raise(errc::invalid_argument, "an optional that is read holds something");
  return one(*held);
}

}  // namespace kiln::op
