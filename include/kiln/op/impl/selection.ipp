#include "kiln/op/dynamic/selection.hpp"

#include <algorithm>
#include <numeric>

#include "kiln/op/impl/produced.hpp"

namespace kiln::op {

namespace {

using detail::around;
using detail::one;

argument indices(const dims& lens, const std::vector<std::int64_t>& values) {
  return argument::of<std::int64_t>(lens, std::span<const std::int64_t>(values));
}

// Slices along an axis at these places.
argument taken(const argument& x, std::int64_t axis, const std::vector<std::int64_t>& places) {
  const around a(x.get_shape().lens, static_cast<std::size_t>(axis));
  shape type{x.get_shape().type, x.get_shape().lens};
  type.lens[static_cast<std::size_t>(axis)] = static_cast<std::int64_t>(places.size());
  argument out(type);
  const auto row = static_cast<std::size_t>(a.inner) * size_of(type.type);
  std::byte* to = out.data();
  for (std::int64_t o = 0; o < a.outer; ++o)
    for (const std::int64_t k : places) {
      if (row) std::memcpy(to, x.data() + static_cast<std::size_t>(o * a.extent + k) * row, row);
      to += row;
    }
  return is_object(type.type) ? retained(type, out.data()) : out;
}

argument flattened(const argument& x) {
  const argument dense = x.contiguous();
  return argument(dense.to_literal().reshaped({dense.elements()}));
}

template <class List> struct order_of_slices {
  const List& values;
  around a;
  // -1, 0 or 1, by the first element that differs
  int operator()(std::int64_t x, std::int64_t y) const {
    for (std::int64_t o = 0; o < a.outer; ++o)
      for (std::int64_t i = 0; i < a.inner; ++i) {
        const auto& l = values[static_cast<std::size_t>((o * a.extent + x) * a.inner + i)];
        const auto& r = values[static_cast<std::size_t>((o * a.extent + y) * a.inner + i)];
        if (l < r) return -1;
        if (r < l) return 1;
        const bool odd_l = !(l == l), odd_r = !(r == r);  // a NaN comes last and equals itself
        if (odd_l != odd_r) return odd_r ? -1 : 1;
      }
    return 0;
  }
};

struct groups {
  std::vector<std::int64_t> first, inverse, counts;
};

template <class List> groups group(const List& values, const around& a, bool ascending) {
  const order_of_slices<List> compare{values, a};
  std::vector<std::int64_t> order(static_cast<std::size_t>(a.extent));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t x, std::int64_t y) { return compare(x, y) < 0; });
  struct run {
    std::int64_t first, from, count;
  };
  std::vector<run> runs;
  for (std::size_t k = 0; k < order.size(); ++k)
    if (k == 0 || compare(order[k - 1], order[k]) != 0)
      runs.push_back({order[k], static_cast<std::int64_t>(k), 1});
    else
      ++runs.back().count;
  if (!ascending) std::sort(runs.begin(), runs.end(), [](const run& x, const run& y) { return x.first < y.first; });
  groups out;
  out.inverse.resize(order.size());
  for (std::size_t g = 0; g < runs.size(); ++g) {
    out.first.push_back(runs[g].first);
    out.counts.push_back(runs[g].count);
    for (std::int64_t k = 0; k < runs[g].count; ++k)
      out.inverse[static_cast<std::size_t>(order[static_cast<std::size_t>(runs[g].from + k)])] =
          static_cast<std::int64_t>(g);
  }
  return out;
}

struct box {
  float low[2], high[2];
  float area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
};

box box_of(const float* p, bool centered) {
  box b;
  for (int d = 0; d < 2; ++d) {
    const float x = centered ? p[1 - d] - p[3 - d] / 2 : p[d], y = centered ? p[1 - d] + p[3 - d] / 2 : p[d + 2];
    b.low[d] = std::min(x, y);
    b.high[d] = std::max(x, y);
  }
  return b;
}

float overlap(const box& a, const box& b) {
  float shared = 1;
  for (int d = 0; d < 2; ++d) shared *= std::max(0.0f, std::min(a.high[d], b.high[d]) - std::max(a.low[d], b.low[d]));
  const float both = a.area() + b.area() - shared;
  return both > 0 ? shared / both : 0;
}

}  // namespace

small_vector<argument> nonzero::produce(std::span<const argument> in) const {
  const argument x = in[0].contiguous();
  const ints lens = to_ints(x.get_shape().lens);
  std::vector<std::int64_t> found;
  visit_compute(x.get_shape().type, [&]<class T>(type_tag<T>) {
    const auto values = x.to<T>();
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i] != T(0)) found.push_back(static_cast<std::int64_t>(i));
  });
  const auto n = static_cast<std::int64_t>(found.size());
  std::vector<std::int64_t> out(lens.size() * found.size());
  const ints steps = row_major(lens);
  for (std::size_t d = 0; d < lens.size(); ++d)
    for (std::size_t k = 0; k < found.size(); ++k) out[d * found.size() + k] = found[k] / steps[d] % lens[d];
  return one(indices({static_cast<std::int64_t>(lens.size()), n}, out));
}

small_vector<argument> compress::produce(std::span<const argument> in) const {
  const argument x = flat ? flattened(in[0]) : in[0].contiguous(), where = in[1].contiguous();
  const std::int64_t axis = flat ? 0 : normal_axis(along, x.get_shape().rank());
  const std::int64_t extent = x.get_shape().lens[static_cast<std::size_t>(axis)].value();
  const auto flags = where.as<bool>();
  if (static_cast<std::int64_t>(flags.size()) > extent)
    raise(fault::of(errc::shape_mismatch, "a condition is no longer than the axis", extent, flags.size()));
  std::vector<std::int64_t> places;
  for (std::size_t k = 0; k < flags.size(); ++k)
    if (flags[k]) places.push_back(static_cast<std::int64_t>(k));
  return one(taken(x, axis, places));
}

small_vector<argument> unique::produce(std::span<const argument> in) const {
  const argument x = flat ? flattened(in[0]) : in[0].contiguous();
  const std::int64_t axis = flat ? 0 : normal_axis(along, x.get_shape().rank());
  const around a(x.get_shape().lens, static_cast<std::size_t>(axis));
  groups g;
  if (x.get_shape().type == dtype::string)
    g = group(strings_of(x), a, ascending);
  else
    visit_compute(x.get_shape().type, [&]<class T>(type_tag<T>) { g = group(x.to<T>(), a, ascending); });
  const auto n = static_cast<std::int64_t>(g.first.size());
  small_vector<argument> out;
  out.push_back(taken(x, axis, g.first));
  out.push_back(indices({n}, g.first));
  out.push_back(indices({a.extent}, g.inverse));
  out.push_back(indices({n}, g.counts));
  return out;
}

small_vector<argument> non_max_suppression::produce(std::span<const argument> in) const {
  const argument boxes = in[0].contiguous(), scores = in[1].contiguous();
  const auto lens = to_ints(scores.get_shape().lens);
  const std::int64_t batches = lens[0], classes = lens[1], n = lens[2];
  if (!(boxes.get_shape().lens == dims{batches, n, 4}))
    raise(fault::of(errc::shape_mismatch, "type of the boxes", dims{batches, n, 4}, boxes.get_shape().lens));
  const std::int64_t most = in[2].to<std::int64_t>()[0];
  const float most_overlap = in[3].to<float>()[0], least_score = in[4].to<float>()[0];
  const auto corners = boxes.as<float>();
  const auto all = scores.as<float>();
  std::vector<std::int64_t> out;
  for (std::int64_t b = 0; b < batches; ++b)
    for (std::int64_t c = 0; c < classes; ++c) {
      const float* score = all.data() + (b * classes + c) * n;
      std::vector<std::int64_t> order;
      for (std::int64_t k = 0; k < n; ++k)
        if (!has_least_score || score[k] > least_score) order.push_back(k);
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t x, std::int64_t y) { return score[x] > score[y]; });
      std::vector<box> kept;
      for (const std::int64_t k : order) {
        if (static_cast<std::int64_t>(kept.size()) >= most) break;
        const box next = box_of(corners.data() + (b * n + k) * 4, centered);
        if (std::any_of(kept.begin(), kept.end(), [&](const box& o) { return overlap(o, next) > most_overlap; }))
          continue;
        kept.push_back(next);
        out.insert(out.end(), {b, c, k});
      }
    }
  return one(indices({static_cast<std::int64_t>(out.size() / 3), 3}, out));
}

}  // namespace kiln::op
