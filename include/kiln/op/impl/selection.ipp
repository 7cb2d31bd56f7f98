#include "kiln/op/dynamic/selection.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "kiln/core/visit_size.hpp"
#include "kiln/op/impl/produced.hpp"

namespace kiln::op {

namespace {

using detail::around;
using detail::one;

argument indices(const dims& lens, const std::vector<std::int64_t>& values) {
  return argument::of<std::int64_t>(lens, std::span<const std::int64_t>(values));
}

// Calls f with what tells zeros of a dtype: bits to look at, in an unsigned type of its size. The sign of a float's
// zero is none.
template <class F> void visit_nonzero(dtype t, F&& f) {
  visit_size(size_of(t), [&]<class U>(U) {
    const U sign = static_cast<U>(U(1) << (8 * sizeof(U) - 1));
    f(is_float(t) ? static_cast<U>(~sign) : static_cast<U>(~U(0)));
  });
}

// The next row: the index without its last dim.
void from_next(ints& at, const ints& lens) {
  for (std::size_t d = at.size() - 1; d-- > 0;) {
    if (++at[d] < lens[d]) return;
    at[d] = 0;
  }
}

// Slices along an axis at these places.
argument taken(const argument& x, std::int64_t axis, const std::vector<std::int64_t>& places) {
  const around a(x.get_shape().lens, static_cast<std::size_t>(axis));
  shape type{x.get_shape().type, x.get_shape().lens};
  type.lens[static_cast<std::size_t>(axis)] = static_cast<std::int64_t>(places.size());
  argument out(type);
  const auto row = static_cast<std::size_t>(a.inner) * size_of(type.type);
  std::byte* to = out.data();
  const auto each = [&](auto&& copy) {
    for (std::int64_t o = 0; o < a.outer; ++o)
      for (const std::int64_t k : places) {
        copy(to, x.data() + static_cast<std::size_t>(o * a.extent + k) * row);
        to += row;
      }
  };
  if (row == size_of(type.type))
    visit_size(size_of(type.type), [&]<class U>(U) {
      each([](std::byte* at, const std::byte* from) { std::memcpy(at, from, sizeof(U)); });
    });
  else if (row)
    each([row](std::byte* at, const std::byte* from) { std::memcpy(at, from, row); });
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

// Equal elements: the first one's place, and where theirs are in the order of all.
struct run {
  std::int64_t first, from, count;
};
groups groups_of(std::vector<run> runs, const std::vector<std::int64_t>& order, bool ascending) {
  if (!ascending) std::sort(runs.begin(), runs.end(), [](const run& x, const run& y) { return x.first < y.first; });
  groups out;
  out.inverse.resize(order.size());
  out.first.reserve(runs.size());
  out.counts.reserve(runs.size());
  for (std::size_t g = 0; g < runs.size(); ++g) {
    out.first.push_back(runs[g].first);
    out.counts.push_back(runs[g].count);
    for (std::int64_t k = 0; k < runs[g].count; ++k)
      out.inverse[static_cast<std::size_t>(order[static_cast<std::size_t>(runs[g].from + k)])] =
          static_cast<std::int64_t>(g);
  }
  return out;
}
void extend(std::vector<run>& runs, std::int64_t place, std::size_t k, bool same) {
  if (same)
    ++runs.back().count;
  else
    runs.push_back({place, static_cast<std::int64_t>(k), 1});
}

template <class List> groups group(const List& values, const around& a, bool ascending) {
  const order_of_slices<List> compare{values, a};
  std::vector<std::int64_t> order(static_cast<std::size_t>(a.extent));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t x, std::int64_t y) { return compare(x, y) < 0; });
  std::vector<run> runs;
  for (std::size_t k = 0; k < order.size(); ++k)
    extend(runs, order[k], k, k > 0 && compare(order[k - 1], order[k]) == 0);
  return groups_of(std::move(runs), order, ascending);
}

// Numbers whose order is that of the elements; a NaN comes last.
template <class T> std::uint64_t key_of(T x) {
  constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  if constexpr (std::is_floating_point_v<T>) {
    if (x != x) return ~std::uint64_t{0};
    const auto bits = std::bit_cast<std::uint64_t>(x == 0 ? 0.0 : static_cast<double>(x));
    return bits & sign ? ~bits : bits | sign;
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<std::uint64_t>(x) ^ sign;
  } else {
    return static_cast<std::uint64_t>(x);
  }
}

// Of single elements: by counting where their numbers lie close together, else by sorting pairs.
template <class List> groups group_elements(const List& values, bool ascending) {
  struct numbered {
    std::uint64_t key;
    std::int64_t place;
  };
  const std::size_t n = values.size();
  std::vector<numbered> all(n);
  std::uint64_t least = ~std::uint64_t{0}, greatest = 0;
  for (std::size_t k = 0; k < n; ++k) {
    all[k] = {key_of(values[k]), static_cast<std::int64_t>(k)};
    least = std::min(least, all[k].key);
    greatest = std::max(greatest, all[k].key);
  }
  std::vector<std::int64_t> order(n);
  std::vector<run> runs;
  if (n > 0 && greatest - least < 2 * n + 1024) {
    std::vector<std::int64_t> at(greatest - least + 2);
    for (const numbered& x : all) ++at[x.key - least + 1];
    for (std::size_t v = 1; v < at.size(); ++v) {
      const std::int64_t count = at[v];
      at[v] += at[v - 1];
      if (count) runs.push_back({0, at[v - 1], count});
    }
    for (const numbered& x : all) order[static_cast<std::size_t>(at[x.key - least]++)] = x.place;
    for (run& r : runs) r.first = order[static_cast<std::size_t>(r.from)];
  } else {
    std::sort(all.begin(), all.end(),
              [](const numbered& x, const numbered& y) { return x.key != y.key ? x.key < y.key : x.place < y.place; });
    for (std::size_t k = 0; k < n; ++k) {
      order[k] = all[k].place;
      extend(runs, order[k], k, k > 0 && all[k - 1].key == all[k].key);
    }
  }
  return groups_of(std::move(runs), order, ascending);
}

struct box {
  float low[2], high[2];
  float area;
};

box box_of(const float* p, bool centered) {
  box b;
  for (int d = 0; d < 2; ++d) {
    const float x = centered ? p[1 - d] - p[3 - d] / 2 : p[d], y = centered ? p[1 - d] + p[3 - d] / 2 : p[d + 2];
    b.low[d] = std::min(x, y);
    b.high[d] = std::max(x, y);
  }
  b.area = (b.high[0] - b.low[0]) * (b.high[1] - b.low[1]);
  return b;
}

// Whether two boxes overlap by more than that much. Most don't meet, which takes no division.
inline bool overlap(const box& a, const box& b, float most) {
  float shared = 1;
  for (int d = 0; d < 2; ++d) shared *= std::max(0.0f, std::min(a.high[d], b.high[d]) - std::max(a.low[d], b.low[d]));
  const float both = a.area + b.area - shared;
  return (shared != 0 && both > 0 ? shared / both : 0) > most;
}

// Boxes that are kept. Most of them don't meet another one, which is seen of four at a time.
class kept_boxes {
 public:
  std::int64_t size() const { return static_cast<std::int64_t>(boxes_.size()); }
  void clear() { boxes_.clear(), fours_.clear(); }
  void add(const box& b) {
    const std::size_t lane = boxes_.size() % 4;
    const lanes none = lanes{} + std::numeric_limits<float>::infinity();
    if (lane == 0) fours_.push_back({{none, none}, {-none, -none}});
    boxes_.push_back(b);
    for (int d = 0; d < 2; ++d) fours_.back().low[d][lane] = b.low[d], fours_.back().high[d][lane] = b.high[d];
  }
  bool any_overlaps(const box& b, float most) const {
    const auto overlaps = [&](const box& kept) { return overlap(kept, b, most); };
    if (!(most >= 0)) return std::any_of(boxes_.begin(), boxes_.end(), overlaps);
    for (std::size_t k = 0; k < fours_.size(); ++k) {
      const auto apart = [&](int d) {
        const lanes low = fours_[k].low[d], high = fours_[k].high[d], least = lanes{} + b.high[d],
                    greatest = lanes{} + b.low[d];
        return (least < high ? least : high) - (low < greatest ? greatest : low) <= 0.0F;
      };
      const auto far = apart(0) | apart(1);
      if (far[0] & far[1] & far[2] & far[3]) continue;
      const auto first = boxes_.begin() + static_cast<std::ptrdiff_t>(4 * k);
      if (std::any_of(first, first + std::min<std::ptrdiff_t>(4, boxes_.end() - first), overlaps)) return true;
    }
    return false;
  }

 private:
  using lanes [[gnu::vector_size(16)]] = float;
  struct four {
    lanes low[2], high[2];
  };
  std::vector<box> boxes_;
  std::vector<four> fours_;
};

// Numbers of boxes in the order of their scores; of equal scores the first box's is greater.
std::uint64_t candidate(float score, std::int64_t place) {
  constexpr std::uint32_t sign = std::uint32_t{1} << 31;
  const auto bits = std::bit_cast<std::uint32_t>(score == 0 ? 0.0F : score);
  return std::uint64_t{bits & sign ? ~bits : bits | sign} << 32 | static_cast<std::uint32_t>(~place);
}
std::int64_t place_of(std::uint64_t candidate) { return static_cast<std::uint32_t>(~candidate); }

}  // namespace

small_vector<argument> nonzero::produce(std::span<const argument> in) const {
  argument x = in[0].contiguous();
  if (is_float(x.get_shape().type) && size_of(x.get_shape().type) == 1) {  // whose zeros have bits of their own
    const auto values = x.to<float>();
    argument wide(shape{dtype::f32, x.get_shape().lens});
    std::copy(values.begin(), values.end(), wide.as<float>().begin());
    x = wide;
  }
  const ints lens = to_ints(x.get_shape().lens);
  const std::size_t rank = lens.size();
  small_vector<argument> made;
  visit_nonzero(x.get_shape().type, [&]<class U>(U mask) {
    const U* const from = reinterpret_cast<const U*>(x.data());
    const std::int64_t all = x.elements(), width = rank == 0 ? 1 : lens[rank - 1];
    std::int64_t n = 0;
    constexpr std::int64_t block = 128;
    for (std::int64_t i = 0; i < all; i += block) {
      std::uint32_t some = 0;
      for (std::int64_t j = i; j < std::min(all, i + block); ++j) some += (from[j] & mask) != 0;
      n += some;
    }
    made = one(argument(shape{dtype::i64, {static_cast<std::int64_t>(rank), n}}));
    if (rank == 0 || n == 0) return;
    std::int64_t* const out = reinterpret_cast<std::int64_t*>(made[0].data());
    std::int64_t* const columns = out + static_cast<std::int64_t>(rank - 1) * n;
    ints at = lens;
    for (std::int64_t& k : at) k = 0;
    for (std::int64_t row = 0, found = 0; found < n; ++row, from_next(at, lens)) {
      // the column is written in any case, and kept where the next one goes elsewhere
      std::int64_t last = found;
      const U* const of = from + row * width;
      std::int64_t j = 0;
      for (; j < width && last + 1 < n; ++j) {
        columns[last] = j;
        last += (of[j] & mask) != 0;
      }
      for (; j < width && last < n; ++j)
        if ((of[j] & mask) != 0) columns[last++] = j;
      for (std::size_t d = 0; d + 1 < rank; ++d)
        std::fill(out + static_cast<std::int64_t>(d) * n + found, out + static_cast<std::int64_t>(d) * n + last, at[d]);
      found = last;
    }
  });
  return made;
}

std::vector<std::int64_t> compress::places(const argument& condition, std::int64_t extent) {
  const auto flags = condition.as<bool>();
  if (static_cast<std::int64_t>(flags.size()) > extent)
    raise(fault::of(errc::shape_mismatch, "a condition is no longer than the axis", extent, flags.size()));
  std::vector<std::int64_t> places(flags.size() + 1);
  std::size_t n = 0;
  for (std::size_t k = 0; k < flags.size(); ++k) {
    places[n] = static_cast<std::int64_t>(k);
    n += flags[k];
  }
  places.resize(n);
  return places;
}

small_vector<argument> compress::produce(std::span<const argument> in) const {
  const argument x = flat ? flattened(in[0]) : in[0].contiguous(), where = in[1].contiguous();
  const std::int64_t axis = flat ? 0 : normal_axis(along, x.get_shape().rank());
  return one(taken(x, axis, places(where, x.get_shape().lens[static_cast<std::size_t>(axis)].value())));
}

small_vector<argument> unique::produce(std::span<const argument> in) const {
  const argument x = flat ? flattened(in[0]) : in[0].contiguous();
  const std::int64_t axis = flat ? 0 : normal_axis(along, x.get_shape().rank());
  const around a(x.get_shape().lens, static_cast<std::size_t>(axis));
  groups g;
  if (x.get_shape().type == dtype::string)
    g = group(strings_of(x), a, ascending);
  else
    visit_compute(x.get_shape().type, [&]<class T>(type_tag<T>) {
      g = a.outer * a.inner == 1 ? group_elements(x.to<T>(), ascending) : group(x.to<T>(), a, ascending);
    });
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
  constexpr auto most_boxes = std::int64_t{1} << 32;
  if (n > most_boxes) raise(fault::of(errc::limit, "boxes of a batch", most_boxes, n));
  for (std::size_t i = 2; i < 5; ++i)
    if (in[i].get_shape().elements() == 0)
      raise(fault::of(errc::shape_mismatch, "elements of the most boxes, the greatest overlap and the least score", 1,
                      in[i].get_shape().lens));
  const std::int64_t most = in[2].to<std::int64_t>()[0];
  const float most_overlap = in[3].to<float>()[0], least_score = in[4].to<float>()[0];
  const auto corners = boxes.as<float>();
  const auto all = scores.as<float>();
  std::vector<std::int64_t> out;
  std::vector<std::uint64_t> left;  // a heap: of many candidates few are looked at
  kept_boxes kept;
  for (std::int64_t b = 0; b < batches; ++b)
    for (std::int64_t c = 0; c < classes; ++c) {
      const float* score = all.data() + (b * classes + c) * n;
      left.clear();
      for (std::int64_t k = 0; k < n; ++k)
        if (!has_least_score || score[k] > least_score) left.push_back(candidate(score[k], k));
      std::make_heap(left.begin(), left.end());
      kept.clear();
      while (!left.empty() && kept.size() < most) {
        std::pop_heap(left.begin(), left.end());
        const std::int64_t k = place_of(left.back());
        left.pop_back();
        const box next = box_of(corners.data() + (b * n + k) * 4, centered);
        if (kept.any_overlaps(next, most_overlap)) continue;
        kept.add(next);
        out.insert(out.end(), {b, c, k});
      }
    }
  return one(indices({static_cast<std::int64_t>(out.size() / 3), 3}, out));
}

}  // namespace kiln::op
