#pragma once
#include <optional>

#include "kiln/graph/rewriter.hpp"
#include "kiln/op/index.hpp"
#include "kiln/op/nn/grid_sample.hpp"
#include "kiln/op/nn/resample.hpp"
#include "kiln/op/pointwise.hpp"
#include "kiln/op/view.hpp"
#include "kiln/pass/note.hpp"

namespace kiln {

namespace detail {

/// Writes `resample` and `grid_sample` as gathered elements and their weights.
template <class Module> class sampling_expander {
 public:
  constexpr sampling_expander(Module& m, pass_note& note) : r_(m), note_(note) {}

  constexpr void run() {
    const std::uint32_t n = r_.size();
    for (std::uint32_t i = 0; i < n; ++i) {
      if (const auto* found = r_.template get_if<op::resample>({i, 0})) {
        r_.replace({i, 0}, resampled(op::resample(*found), r_[i].inputs));
        note_.count("resample");
      } else if (const auto* grid = r_.template get_if<op::grid_sample>({i, 0})) {
        const shape result = r_[i].results[0];
        r_.replace({i, 0}, sampled(op::grid_sample(*grid), r_[i].inputs, result));
        note_.count("grid_sample");
      }
    }
  }

 private:
  using values = small_vector<value_id>;

  constexpr value_id as(value_id x, dtype t) { return r_.shape_of(x).type == t ? x : r_.add(op::convert{t}, {x}); }
  constexpr value_id spread(value_id x, const dims& lens) {
    return r_.shape_of(x).lens == lens ? x : r_.add(op::multibroadcast{lens}, {x});
  }
  /// A number for each element of x.
  constexpr value_id number(value_id x, double v) {
    const shape s = r_.shape_of(x);
    return spread(r_.add_literal(literal::scalar(s.type, v)), s.lens);
  }
  constexpr value_id extent(value_id x, dimension n) {
    const shape s = r_.shape_of(x);
    return spread(as(r_.add_literal(literal::of_dimensions({}, {n})), s.type), s.lens);
  }
  constexpr value_id part(value_id x, std::int64_t axis, std::int64_t k) {
    return r_.add(op::squeeze{{axis}}, {r_.add(op::slice{{axis}, {k}, {k + 1}, {}}, {x})});
  }
  constexpr value_id sum(value_id a, value_id b) { return r_.add(op::add{}, {a, b}); }
  constexpr value_id difference(value_id a, value_id b) { return r_.add(op::sub{}, {a, b}); }
  constexpr value_id product(value_id a, value_id b) { return r_.add(op::mul{}, {a, b}); }
  constexpr value_id choose(value_id c, value_id a, value_id b) { return r_.add(op::where{}, {c, a, b}); }

  constexpr value_id resampled(const op::resample& o, const values in) {
    const dtype type = r_.shape_of(in[0]).type, sums = is_float(type) ? type : dtype::f32;
    value_id x = o.weighted ? as(in[0], sums) : in[0];
    for (std::size_t k = 0; k < o.axes.size(); ++k) {
      const value_id at = in[o.table(k)];
      const std::int64_t taps = r_.shape_of(at).lens[0].value();
      value_id all;
      for (std::int64_t t = 0; t < taps; ++t) {
        value_id term = r_.add(op::gather{o.axes[k]}, {x, part(at, 0, t)});
        if (o.weighted) term = product(term, along(part(in[o.table(k) + 1], 0, t), o.axes[k], r_.shape_of(term)));
        all = t == 0 ? term : sum(all, term);
      }
      x = all;
    }
    if (!o.weighted || is_float(type)) return x;
    const value_id slack = number(x, op::resample::byte_slack), zero = number(x, 0);
    const value_id near = choose(r_.add(op::less{}, {x, zero}), r_.add(op::ceil{}, {difference(x, slack)}),
                                 r_.add(op::floor{}, {sum(x, slack)}));
    const bool is_signed = type == dtype::i8;
    return as(r_.add(op::clip{}, {near, number(x, is_signed ? -128 : 0), number(x, is_signed ? 127 : 255)}), type);
  }
  constexpr value_id along(value_id w, std::int64_t axis, const shape s) {
    dims lens(s.rank(), dimension(1));
    lens[static_cast<std::size_t>(axis)] = r_.shape_of(w).lens[0];
    return spread(r_.add(op::reshape{lens}, {as(w, s.type)}), s.lens);
  }

  // What positions and sums are computed in, as the op's own computation does.
  static constexpr dtype computed_in(dtype t) { return t == dtype::f64 ? t : dtype::f32; }

  /// Along one axis: i64 positions, and weights; each of [n, points].
  struct tap {
    value_id at, weight;
  };

  constexpr value_id sampled(const op::grid_sample& o, const values in, const shape& result) {
    const dims lens = r_.shape_of(in[0]).lens;
    const std::size_t axes = lens.size() - 2;
    dimension points = 1, plane = 1;
    for (std::size_t d = 2; d < result.rank(); ++d) points = points * result.lens[d];
    for (std::size_t d = 2; d < lens.size(); ++d) plane = plane * lens[d];
    if (plane == dimension(0))  // nothing but padding
      return spread(r_.add_literal(literal::scalar(result.type, 0)), result.lens);
    const value_id grid = r_.add(op::reshape{{lens[0], points, static_cast<std::int64_t>(axes)}}, {in[1]});
    const value_id image = r_.add(op::reshape{{lens[0], lens[1], plane}}, {in[0]});
    const dtype wide = computed_in(result.type);
    // taps of all axes so far, as positions in the plane and weights
    small_vector<tap> all;
    for (std::size_t d = 0; d < axes; ++d) {
      const small_vector<tap> own = taps_of(o, as(part(grid, 2, o.coordinate(d, axes)), wide), lens[d + 2]);
      small_vector<tap> joined;
      for (const tap& a : all)
        for (const tap& b : own)
          joined.push_back({sum(product(a.at, extent(a.at, lens[d + 2])), b.at), product(a.weight, b.weight)});
      all = d == 0 ? own : joined;
    }
    const dims each{lens[0], lens[1], points}, one{lens[0], 1, points};
    value_id y;
    for (std::size_t k = 0; k < all.size(); ++k) {
      const value_id at = spread(r_.add(op::reshape{one}, {all[k].at}), each),
                     weight = spread(r_.add(op::reshape{one}, {all[k].weight}), each);
      const value_id term = product(as(r_.add(op::gather_elements{2}, {image, at}), wide), weight);
      y = k == 0 ? term : sum(y, term);
    }
    return as(r_.add(op::reshape{result.lens}, {y}), result.type);
  }
  /// As `op::grid_sample::taps_at`.
  constexpr small_vector<tap> taps_of(const op::grid_sample& o, value_id g, dimension n) {
    using op::sampling_mode, op::sampling_padding;
    const value_id count = extent(g, n), one = number(g, 1), half = number(g, .5);
    value_id at = g;
    if (o.normalized && o.align_corners)
      at = product(product(sum(g, one), difference(count, one)), half);
    else if (o.normalized)
      at = product(difference(product(sum(g, one), count), one), half);
    small_vector<tap> taps;
    if (o.mode == sampling_mode::nearest) {
      taps.push_back(placed(o, r_.add(op::round{}, {at}), one, n, o.padding));
      return taps;
    }
    const bool linear = o.mode == sampling_mode::linear, zeros = o.padding == sampling_padding::zeros;
    if (linear && !zeros) at = inside(o, at, n, o.padding);
    const value_id low = r_.add(op::floor{}, {at}), above = difference(at, low);
    if (linear) {
      const auto rule = zeros ? o.padding : sampling_padding::border;
      taps.push_back(placed(o, low, difference(one, above), n, rule));
      taps.push_back(placed(o, sum(low, one), above, n, rule));
      return taps;
    }
    for (int k = 0; k < 4; ++k) {
      const value_id x = r_.add(op::abs{}, {difference(above, number(g, k - 1))});
      const auto scaled = [&](double v) { return number(g, v * -.75); };
      const value_id far =
          difference(product(sum(product(difference(product(x, scaled(1)), scaled(5)), x), scaled(8)), x), scaled(4));
      const value_id near = sum(product(product(difference(product(x, number(g, 1.25)), number(g, 2.25)), x), x), one);
      taps.push_back(placed(o, sum(low, number(g, k - 1)), k == 0 || k == 3 ? far : near, n, o.padding));
    }
    return taps;
  }
  constexpr tap placed(const op::grid_sample& o, value_id at, value_id weight, dimension n, op::sampling_padding rule) {
    const value_id zero = number(at, 0);
    if (rule == op::sampling_padding::zeros) {
      const value_id last = difference(extent(at, n), number(at, 1));
      const value_id is_inside = r_.add(
          op::logical_and{}, {r_.add(op::greater_or_equal{}, {at, zero}), r_.add(op::less_or_equal{}, {at, last})});
      weight = choose(is_inside, weight, zero);
    }
    const dtype type = r_.shape_of(at).type;
    value_id place = as(inside(o, at, n, rule), dtype::i64);
    // n - 1 may be n as a float of fewer digits
    constexpr std::int64_t exact = std::int64_t{1} << 24;
    if (type != dtype::f64 && !(n.is_constant() && n.value() <= exact))
      place = r_.add(op::min{}, {place, extent(place, n - 1)});
    return {place, weight};
  }
  constexpr value_id inside(const op::grid_sample& o, value_id at, dimension n, op::sampling_padding rule) {
    const value_id zero = number(at, 0), last = difference(extent(at, n), number(at, 1));
    if (rule == op::sampling_padding::reflection) {
      const value_id edge = number(at, .5), low = o.align_corners ? zero : difference(zero, edge),
                     high = o.align_corners ? last : sum(last, edge), span = difference(high, low);
      const value_id away = r_.add(op::abs{}, {difference(at, low)}), none = r_.add(op::equal{}, {span, zero});
      const value_id whole = choose(none, number(at, 1), span);
      const value_id times = r_.add(op::floor{}, {r_.add(op::div{}, {away, whole})});
      const value_id rest = difference(away, product(times, whole)), pairs = product(times, edge);
      const value_id even = r_.add(op::equal{}, {r_.add(op::floor{}, {pairs}), pairs});
      at = choose(none, low, choose(even, sum(low, rest), difference(high, rest)));
    }
    // a NaN is at 0
    const value_id positive = r_.add(op::greater{}, {at, zero});
    return choose(positive, choose(r_.add(op::less{}, {at, last}), at, last), zero);
  }

  rewriter<Module> r_;
  pass_note& note_;
};

}  // namespace detail

/// Writes `resample` and `grid_sample` as gathers and pointwise ops, for targets and formats that have neither.
template <class Program> constexpr pass_note expand_sampling(Program& p) {
  return run_on_modules<detail::sampling_expander>("expand_sampling", p);
}

/// The program with them written so; empty where it has none.
std::optional<program> without_sampling(const program& p);

}  // namespace kiln
