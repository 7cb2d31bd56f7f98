#include "kiln/graph/impl/gradient.hpp"

// Ops that pick, join and scatter.
namespace kiln::detail {

namespace {

void concat(backward_step& s) {
  const std::int64_t axis = normal_axis(s.as<op::concat>().axis, s.slope.rank());
  dimension from = 0;
  for (std::size_t i = 0; i < s.inputs(); ++i) {
    const dimension to = from + s.in_lens(i)[static_cast<std::size_t>(axis)];
    s.give(i, s.slope.slice({{axis}, {from}, {to}, {}}));
    from = to;
  }
}

// The picked slices are added where they came from, with the axis first.
void gather(backward_step& s) {
  const auto axis = static_cast<std::size_t>(normal_axis(s.as<op::gather>().axis, s.in(0).rank()));
  const value indices = s.in(1);
  const std::size_t picked = indices.rank(), rank = s.slope.rank();
  ints to_front = axes_between(axis, axis + picked);
  for (const std::int64_t d : axes_between(0, axis)) to_front.push_back(d);
  for (const std::int64_t d : axes_between(axis + picked, rank)) to_front.push_back(d);
  shape data = s.in(0).get_shape();
  const dimension extent = data.lens[axis];
  data.lens.erase(axis);
  data.lens.insert(0, extent);
  const value sum = s.build.add(op::scatter_nd{op::scatter_mode::add}, zeros(s.build, data),
                                indices.unsqueeze({static_cast<std::int64_t>(picked)}), s.slope.transpose(to_front));
  ints back = axes_between(1, axis + 1);
  back.push_back(0);
  for (const std::int64_t d : axes_between(axis + 1, s.in(0).rank())) back.push_back(d);
  s.give(0, sum.transpose(back));
}
void gather_elements(backward_step& s) {
  const std::int64_t axis = s.as<op::gather_elements>().axis;
  s.give(0, s.build.add(op::scatter_elements{axis, op::scatter_mode::add}, s.zeros_like(0), s.in(1), s.slope));
}
void gather_nd(backward_step& s) {
  if (s.as<op::gather_nd>().batch_dims) raise(errc::unsupported, "op 'gather_nd' with batch dims has no derivative");
  s.give(0, s.build.add(op::scatter_nd{op::scatter_mode::add}, s.zeros_like(0), s.in(1), s.slope));
}

// An update that replaces takes the element's slope.
template <class Scatter, class Gather> void scatter(backward_step& s, const Scatter& o, const Gather& read) {
  if (o.reduction != op::scatter_mode::none && o.reduction != op::scatter_mode::add)
    raise(errc::unsupported, "op '" + std::string(s.op.name()) + "' has no derivative with reduction '" +
                                 std::string(to_string(o.reduction)) + "'");
  Scatter replaced = o;
  s.give(0, o.reduction == op::scatter_mode::add ? s.slope : s.build.add(replaced, s.slope, s.in(1), s.zeros_like(2)));
  s.give(2, s.build.add(read, s.slope, s.in(1)));
}
void scatter_elements(backward_step& s) {
  const auto& o = s.as<op::scatter_elements>();
  scatter(s, o, op::gather_elements{o.axis});
}
void scatter_nd(backward_step& s) { scatter(s, s.as<op::scatter_nd>(), op::gather_nd{}); }

void pad(backward_step& s) {
  op::pad cropped = s.as<op::pad>();
  if (cropped.mode != op::pad_mode::constant)
    raise(errc::unsupported, "op 'pad' has no derivative in mode '" + std::string(to_string(cropped.mode)) + "'");
  for (dimension& d : cropped.pads) d = -d;
  const value inside = s.build.add(cropped, s.slope);
  s.give(0, inside);
  if (s.inputs() < 2) return;
  const ints all = axes_between(0, s.slope.rank());
  const auto total = [&](value x) { return all.empty() ? x : x.reduce_sum(all).squeeze(all); };
  s.give(1, (total(s.slope) - total(inside)).reshape(s.in_lens(1)));
}
void cumsum(backward_step& s) {
  op::cumsum back = s.as<op::cumsum>();
  back.reverse = !back.reverse;
  s.give(0, s.build.add(back, s.slope));
}
void tri(backward_step& s) { s.give(0, s.build.add(s.as<op::tri>(), s.slope)); }

constexpr gradient_rule rules[] = {
    {"concat", concat},
    {"cumsum", cumsum},
    {"gather", gather},
    {"gather_elements", gather_elements},
    {"gather_nd", gather_nd},
    {"pad", pad},
    {"scatter_elements", scatter_elements},
    {"scatter_nd", scatter_nd},
    {"tri", tri},
};

}  // namespace

std::span<const gradient_rule> index_gradients() { return rules; }

}  // namespace kiln::detail
