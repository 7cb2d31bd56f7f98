#include <algorithm>

#include "kiln/onnx/impl/parse_body.hpp"
#include "kiln/onnx/impl/run_axes.hpp"

namespace kiln::onnx {

namespace {

// Resolves 0 (an extent kept) and -1 (what remains) against the input's extents.
value reshape_to(call& c, std::span<const dimension> wanted) {
  const value x = c.in(0);
  const dims from = x.get_shape().lens;
  const bool keeps_zeros = c.flag("allowzero");
  if (wanted.size() > max_rank) c.unsupported("reshapes to " + std::to_string(wanted.size()) + " dims");
  dims to;
  std::size_t open = max_rank;
  dimension known = 1;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    dimension d = wanted[i];
    if (d == dimension(0) && !keeps_zeros) {
      if (i >= from.size()) c.malformed("shape keeps dim " + std::to_string(i) + ", which the input does not have");
      d = from[i];
    }
    to.push_back(d);
    if (!(wanted[i] == dimension(-1))) {
      known *= d;
      continue;
    }
    if (open != max_rank) c.malformed("shape has more than one -1");
    open = i;
  }
  if (open != max_rank) {
    if (known == dimension(0)) c.malformed("shape has -1 beside an extent of 0");
    to[open] = product(from) / known;
  }
  return x.reshape(to);
}

variables parse_reshape_1(call& c) {
  small_vector<dimension> wanted;
  for (const std::int64_t d : c.integers("shape")) wanted.push_back(d);
  return {reshape_to(c, wanted)};
}
// Numbers that a run computes may be 0 and -1 too: they are resolved there.
small_vector<dimension> resolved_in_run(call& c, value shape) {
  const dims from = c.in(0).get_shape().lens;
  const auto known = known_elements(c, shape, "the shape");
  const auto number = [&](std::int64_t n) { return c.build.scalar(dtype::i64, n); };
  const auto rank = static_cast<std::int64_t>(known.size());
  value wanted = shape.convert(dtype::i64);
  if (!c.flag("allowzero")) {
    small_vector<dimension> kept;  // what a 0 stands for; beyond the input's rank that is an error
    for (std::size_t i = 0; i < known.size(); ++i) kept.push_back(i < from.size() ? from[i] : dimension(-2));
    wanted = wanted.equal(number(0)).where(dimensions_value(c.build, {rank}, std::move(kept)), wanted);
  }
  const value open = wanted.equal(number(-1)), others = open.where(number(1), wanted).reduce_prod({0});
  const value whole = dimensions_value(c.build, {}, small_vector<dimension>{product(from)});
  const value rest = whole / others.equal(number(0)).where(number(1), others);
  small_vector<dimension> out = c.bound(open.where(rest, wanted), "the shape", 0);
  for (std::size_t i = 0; i < out.size(); ++i)  // an extent that is known says more than a name
    if (known[i] && known[i]->min() > 0) out[i] = *known[i];
  return out;
}

variables parse_reshape(call& c) {
  if (c.constant(1)) return {reshape_to(c, c.dimensions(1, "the shape"))};
  return {c.in(0).reshape(dims(std::span<const dimension>(resolved_in_run(c, c.in(1)))))};
}

variables parse_flatten(call& c) { return {c.in(0).flatten(c.integer("axis", 1))}; }

body_module reshaping(value x, const dims& to) {
  builder b;
  const value in = b.input("x", x.type(), x.get_shape().lens), out = in.reshape(to);
  b.output(out);
  body_module m;
  m.captured = {x};
  variable result;
  result.type = out.get_shape();
  m.outputs.push_back(result);
  m.graph = std::move(b.module());
  return m;
}

variables squeeze_axes(call& c, const ints& axes) {
  const value x = c.in(0);
  if (!axes.empty()) {
    const ints gone = axes_within(c, axes, x.rank());
    dims lens = x.get_shape().lens;
    for (const std::int64_t a : gone)
      if (dimension& d = lens[static_cast<std::size_t>(a)]; !same(d, dimension(1))) d = 1;  // the run compares
    return {(lens == x.get_shape().lens ? x : x.expect_dims(lens)).squeeze(gone)};
  }
  dims certain, if_one;  // without the extents that are 1, and without the one that may be
  std::optional<dimension> open;
  for (const dimension d : x.get_shape().lens) {
    const auto one = same(d, dimension(1));
    if (one && *one) continue;
    certain.push_back(d);
    if (one) {
      if_one.push_back(d);
      continue;
    }
    if (open)
      c.unsupported("squeezes every extent of 1, which may be " + kiln::to_string(*open) + " and " +
                    kiln::to_string(d));
    open = d;
  }
  if (!open) return {certain.size() == x.rank() ? x : x.reshape(certain)};
  const value is_one = dimensions_value(c.build, {}, {*open}).equal(c.build.scalar(dtype::i64, 1));
  return join_bodies(c, is_one, reshaping(x, if_one), reshaping(x, certain));
}
variables parse_squeeze_1(call& c) { return squeeze_axes(c, c.short_integers("axes")); }
variables parse_squeeze(call& c) {
  if (is_open(c, 1)) {
    const value x = c.in(0);
    const std::size_t dropped = axis_count(c, c.in(1));
    if (dropped > x.rank()) c.malformed("there are more axes than dims");
    const value flags = axis_flags(c, counted_axes(c, 1, x.rank()), x.rank());
    return {x.reshape(extents_left(c, x.get_shape().lens, flags, x.rank() - dropped))};
  }
  return squeeze_axes(c, c.has(1) ? ints(as_span(c.numbers(1, "the list of axes"))) : ints{});
}
variables parse_unsqueeze_1(call& c) { return {c.in(0).unsqueeze(c.short_integers("axes"))}; }
// Where an axis is new the extent is 1, elsewhere the next one of the input.
variables unsqueeze_in_run(call& c) {
  const value x = c.in(0);
  const std::size_t rank = x.rank() + axis_count(c, c.in(1));
  if (rank > max_rank) c.unsupported("makes a tensor of rank " + std::to_string(rank));
  const value fresh = axis_flags(c, counted_axes(c, 1, rank), rank);
  small_vector<dimension> own{dimension(1)};  // what stands before the first of the input's
  for (const dimension d : x.get_shape().lens) own.push_back(d);
  const auto length = static_cast<std::int64_t>(own.size());
  const value next = fresh.logical_not().convert(dtype::i64) | op::cumsum{0};
  const value lens =
      fresh.where(c.build.scalar(dtype::i64, 1), dimensions_value(c.build, {length}, std::move(own)).gather(next));
  return {x.reshape(dims(std::span<const dimension>(c.bound(lens, "an extent", 0))))};
}
variables parse_unsqueeze(call& c) {
  if (is_open(c, 1)) return unsqueeze_in_run(c);
  return {c.in(0).unsqueeze(ints(as_span(c.numbers(1, "the list of axes"))))};
}

variables parse_transpose(call& c) { return {c.in(0).transpose(c.short_integers("perm"))}; }

// Where the run says how far, 1 keeps the input's extent.
small_vector<dimension> expanded_in_run(call& c, value shape) {
  const dims from = c.in(0).get_shape().lens;
  const auto known = known_elements(c, shape, "the shape");
  const auto rank = static_cast<std::int64_t>(known.size());
  small_vector<dimension> own(known.size(), dimension(1));
  for (std::size_t i = 0; i < std::min(from.size(), own.size()); ++i)
    own[own.size() - 1 - i] = from[from.size() - 1 - i];
  const value wanted = shape.convert(dtype::i64), is_one = wanted.equal(c.build.scalar(dtype::i64, 1));
  small_vector<dimension> out = c.bound(is_one.where(dimensions_value(c.build, {rank}, own), wanted), "the shape", 0);
  for (std::size_t i = 0; i < out.size(); ++i)
    if (known[i]) out[i] = *known[i];
  return out;
}
variables parse_expand(call& c) {
  const dims from = c.in(0).get_shape().lens;
  if (c.constant(1)) {
    const auto wanted = c.dimensions(1, "the shape");
    dims to = broadcast(from, dims(std::span<const dimension>(wanted))).value();
    // of two names the one asked for: the run compares
    for (std::size_t i = 0; i < std::min(from.size(), wanted.size()); ++i) {
      const dimension asked = wanted[wanted.size() - 1 - i];
      if (!asked.is_constant() && !from[from.size() - 1 - i].is_constant()) to[to.size() - 1 - i] = asked;
    }
    return {c.in(0).broadcast_to(to)};
  }
  // an extent that only the run knows stays a symbol: the run then checks it against the input's
  const auto wanted = expanded_in_run(c, c.in(1));
  dims to(std::max(from.size(), wanted.size()), dimension(1));
  for (std::size_t i = 0; i < to.size(); ++i) {
    const dimension own = i < from.size() ? from[from.size() - 1 - i] : dimension(1);
    const dimension asked = i < wanted.size() ? wanted[wanted.size() - 1 - i] : dimension(1);
    const auto both = broadcast(own, asked);
    if (!both) c.malformed("the shape broadcasts with the input");
    to[to.size() - 1 - i] = asked.is_constant() ? *both : asked;
  }
  return {c.in(0).broadcast_to(to)};
}

// Extents of 1 are broadcast; others are repeated through a dim of their own.
value tile_by(value x, std::span<const dimension> repeats) {
  dims spread = x.get_shape().lens;
  small_vector<std::size_t> copied;
  for (std::size_t d = 0; d < repeats.size(); ++d) {
    if (spread[d] == dimension(1))
      spread[d] = repeats[d];
    else if (!(repeats[d] == dimension(1)))
      copied.push_back(d);
  }
  x = x.broadcast_to(spread);
  for (const std::size_t d : copied) {
    // dims before and behind become one each, so that there is room for the repeats at any rank
    const dims lens = x.get_shape().lens;
    dimension before = 1, behind = 1;
    for (std::size_t i = 0; i < d; ++i) before *= lens[i];
    for (std::size_t i = d; i < lens.size(); ++i) behind *= lens[i];
    dims to = lens;
    to[d] *= repeats[d];
    x = x.reshape({before, 1, behind}).broadcast_to({before, repeats[d], behind}).reshape(to);
  }
  return x;
}
variables parse_tile(call& c) {
  const auto repeats = c.bound(listed(c.in(1), c.in(0).rank()), "the list of repeats", 0);
  if (repeats.size() != c.in(0).rank()) c.malformed("there is a repeat for each dim of the input");
  return {tile_by(c.in(0), repeats)};
}
// The first version repeats one axis.
variables parse_tile_1(call& c) {
  const value x = c.in(0);
  const auto tiles = c.extents(1, "the number of tiles");
  const auto axis = c.numbers(2, "the axis");
  if (tiles.size() != 1 || axis.size() != 1) c.malformed("tiles and axis are one number each");
  small_vector<dimension> repeats(x.rank(), dimension(1));
  repeats[static_cast<std::size_t>(axis_within(c, axis[0], x.rank()))] = tiles[0];
  return {tile_by(x, repeats)};
}

constexpr std::int64_t most_blocksize = std::int64_t{1} << 24;  // so that its square is an extent

variables parse_depth_to_space(call& c) {
  const value x = c.in(0);
  const std::int64_t b = c.integer("blocksize", 0);
  if (x.rank() != 4 || b < 1) c.malformed("the input has rank 4 and blocksize is positive");
  const dims l = x.get_shape().lens;
  if (b > most_blocksize || (l[1].min() > 0 && b > l[1].max())) c.malformed("blocksize is at most the channels");
  const dimension depth = l[1] / (b * b);
  const bool columns = c.text("mode", "DCR") == "CRD";
  const value split = columns ? x.reshape({l[0], depth, b, b, l[2], l[3]}).transpose({0, 1, 4, 2, 5, 3})
                              : x.reshape({l[0], b, b, depth, l[2], l[3]}).transpose({0, 3, 4, 1, 5, 2});
  return {split.reshape({l[0], depth, l[2] * b, l[3] * b})};
}
variables parse_space_to_depth(call& c) {
  const value x = c.in(0);
  const std::int64_t b = c.integer("blocksize", 0);
  if (x.rank() != 4 || b < 1) c.malformed("the input has rank 4 and blocksize is positive");
  const dims l = x.get_shape().lens;
  if (b > most_blocksize) c.malformed("blocksize is at most the extents");
  return {x.reshape({l[0], l[1], l[2] / b, b, l[3] / b, b})
              .transpose({0, 3, 5, 1, 2, 4})
              .reshape({l[0], l[1] * (b * b), l[2] / b, l[3] / b})};
}

}  // namespace

std::span<const row> view_rows() {
  static constexpr row rows[] = {
      {"", "DepthToSpace", 1, parse_depth_to_space},
      {"", "Expand", 8, parse_expand},
      {"", "Flatten", 1, parse_flatten},
      {"", "Reshape", 1, parse_reshape_1},
      {"", "Reshape", 5, parse_reshape},
      {"", "SpaceToDepth", 1, parse_space_to_depth},
      {"", "Squeeze", 1, parse_squeeze_1},
      {"", "Squeeze", 13, parse_squeeze},
      {"", "Tile", 1, parse_tile_1},
      {"", "Tile", 6, parse_tile},
      {"", "Transpose", 1, parse_transpose},
      {"", "Unsqueeze", 1, parse_unsqueeze_1},
      {"", "Unsqueeze", 13, parse_unsqueeze},
  };
  return rows;
}

}  // namespace kiln::onnx
