#include <algorithm>

#include "kiln/onnx/impl/ops/bodies.hpp"
#include "kiln/onnx/impl/ops/dynamic_axes.hpp"

namespace kiln::onnx {

namespace {

// Resolves 0 (the input's extent) and -1 (the remaining elements).
value reshape_to(node_context& c, std::span<const dimension> wanted) {
  const value x = c.in(0);
  const dims from = x.get_shape().lens;
  const bool keeps_zeros = c.flag("allowzero");
  if (wanted.size() > max_rank) c.unsupported("reshapes to " + std::to_string(wanted.size()) + " dims");
  dims to;
  std::size_t inferred = max_rank;
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
    if (inferred != max_rank) c.malformed("shape has more than one -1");
    inferred = i;
  }
  if (inferred != max_rank) {
    if (known == dimension(0)) c.malformed("shape has -1 and an extent of 0");
    to[inferred] = product(from) / known;
  }
  return x.reshape(to);
}

variables import_reshape_1(node_context& c) {
  small_vector<dimension> wanted;
  for (const std::int64_t d : c.integers("shape")) wanted.push_back(d);
  return {reshape_to(c, wanted)};
}
// Extents that a run computes may be 0 or -1, which the program resolves.
small_vector<dimension> dynamic_reshape_extents(node_context& c, value shape) {
  const dims from = c.in(0).get_shape().lens;
  const auto known = known_elements(c, shape, "the shape");
  const auto number = [&](std::int64_t n) { return c.build.scalar(dtype::i64, n); };
  const auto rank = static_cast<std::int64_t>(known.size());
  value wanted = shape.convert(dtype::i64);
  if (!c.flag("allowzero")) {
    small_vector<dimension> kept;  // what 0 stands for: after the input's rank an error
    for (std::size_t i = 0; i < known.size(); ++i) kept.push_back(i < from.size() ? from[i] : dimension(-2));
    wanted = wanted.equal(number(0)).where(dimensions_value(c.build, {rank}, std::move(kept)), wanted);
  }
  const value is_inferred = wanted.equal(number(-1)), others = is_inferred.where(number(1), wanted).reduce_prod({0});
  const value whole = dimensions_value(c.build, {}, small_vector<dimension>{product(from)});
  const value rest = whole / others.equal(number(0)).where(number(1), others);
  small_vector<dimension> out = c.dimensions_of(is_inferred.where(rest, wanted), "the shape", 0);
  for (std::size_t i = 0; i < out.size(); ++i)  // known extents instead of symbols
    if (known[i] && known[i]->min() > 0) out[i] = *known[i];
  return out;
}

variables import_reshape(node_context& c) {
  if (c.constant(1)) return {reshape_to(c, c.dimensions(1, "the shape"))};
  return {c.in(0).reshape(dims(std::span<const dimension>(dynamic_reshape_extents(c, c.in(1)))))};
}

variables import_flatten(node_context& c) { return {c.in(0).flatten(c.integer("axis", 1))}; }

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

variables squeeze_axes(node_context& c, const ints& axes) {
  const value x = c.in(0);
  if (!axes.empty()) {
    const ints gone = axes_within(c, axes, x.rank());
    dims lens = x.get_shape().lens;
    for (const std::int64_t a : gone)
      if (dimension& d = lens[static_cast<std::size_t>(a)]; !same(d, dimension(1))) d = 1;  // the run compares
    return {(lens == x.get_shape().lens ? x : x.expect_dims(lens)).squeeze(gone)};
  }
  dims certain, if_one;  // without the extents that are 1; also without the one that may be 1
  std::optional<dimension> unsure;
  for (const dimension d : x.get_shape().lens) {
    const auto one = same(d, dimension(1));
    if (one && *one) continue;
    certain.push_back(d);
    if (one) {
      if_one.push_back(d);
      continue;
    }
    if (unsure)
      c.unsupported("squeezes every extent of 1, which may be " + kiln::to_string(*unsure) + " and " +
                    kiln::to_string(d));
    unsure = d;
  }
  if (!unsure) return {certain.size() == x.rank() ? x : x.reshape(certain)};
  const value is_one = dimensions_value(c.build, {}, {*unsure}).equal(c.build.scalar(dtype::i64, 1));
  return join_bodies(c, is_one, reshaping(x, if_one), reshaping(x, certain));
}
variables import_squeeze_1(node_context& c) { return squeeze_axes(c, c.short_integers("axes")); }
variables import_squeeze(node_context& c) {
  if (c.is_dynamic(1)) {
    const value x = c.in(0);
    const std::size_t dropped = axis_count(c, c.in(1));
    if (dropped > x.rank()) c.malformed("there are more axes than dims");
    const value flags = axis_flags(c, normalized_axes(c, 1, x.rank()), x.rank());
    return {x.reshape(remaining_extents(c, x.get_shape().lens, flags, x.rank() - dropped))};
  }
  return squeeze_axes(c, c.has(1) ? ints(as_span(c.numbers(1, "the list of axes"))) : ints{});
}
variables import_unsqueeze_1(node_context& c) { return {c.in(0).unsqueeze(c.short_integers("axes"))}; }
// A new axis has extent 1, another the next extent of the input.
variables dynamic_unsqueeze(node_context& c) {
  const value x = c.in(0);
  const std::size_t rank = x.rank() + axis_count(c, c.in(1));
  if (rank > max_rank) c.unsupported("makes a tensor of rank " + std::to_string(rank));
  const value fresh = axis_flags(c, normalized_axes(c, 1, rank), rank);
  small_vector<dimension> own{dimension(1)};  // read before the input's first extent
  for (const dimension d : x.get_shape().lens) own.push_back(d);
  const auto length = static_cast<std::int64_t>(own.size());
  const value next = fresh.logical_not().convert(dtype::i64) | op::cumsum{0};
  const value lens =
      fresh.where(c.build.scalar(dtype::i64, 1), dimensions_value(c.build, {length}, std::move(own)).gather(next));
  return {x.reshape(dims(std::span<const dimension>(c.dimensions_of(lens, "an extent", 0))))};
}
// [unsqueeze]
variables import_unsqueeze(node_context& c) {
  if (c.is_dynamic(1)) return dynamic_unsqueeze(c);
  return {c.in(0).unsqueeze(ints(as_span(c.numbers(1, "the list of axes"))))};
}
// [/unsqueeze]
variables import_expand_dims(node_context& c) {
  if (!(c.in(1).get_shape().elements() == dimension(1))) c.malformed("the axis is one number");
  return import_unsqueeze(c);
}

variables import_transpose(node_context& c) { return {c.in(0).transpose(c.short_integers("perm"))}; }

// Where a run computes the shape, 1 keeps the input's extent.
small_vector<dimension> dynamic_expand_extents(node_context& c, value shape) {
  const dims from = c.in(0).get_shape().lens;
  const auto known = known_elements(c, shape, "the shape");
  const auto rank = static_cast<std::int64_t>(known.size());
  small_vector<dimension> own(known.size(), dimension(1));
  for (std::size_t i = 0; i < std::min(from.size(), own.size()); ++i)
    own[own.size() - 1 - i] = from[from.size() - 1 - i];
  const value wanted = shape.convert(dtype::i64), is_one = wanted.equal(c.build.scalar(dtype::i64, 1));
  small_vector<dimension> out =
      c.dimensions_of(is_one.where(dimensions_value(c.build, {rank}, own), wanted), "the shape", 0);
  for (std::size_t i = 0; i < out.size(); ++i)
    if (known[i]) out[i] = *known[i];
  return out;
}
variables import_expand(node_context& c) {
  const dims from = c.in(0).get_shape().lens;
  if (c.constant(1)) {
    const auto wanted = c.dimensions(1, "the shape");
    dims to = broadcast(from, dims(std::span<const dimension>(wanted))).value();
    // of two symbols the wanted one: the run compares
    for (std::size_t i = 0; i < std::min(from.size(), wanted.size()); ++i) {
      const dimension asked = wanted[wanted.size() - 1 - i];
      if (!asked.is_constant() && !from[from.size() - 1 - i].is_constant()) to[to.size() - 1 - i] = asked;
    }
    return {c.in(0).broadcast_to(to)};
  }
  // a run checks symbolic extents against the input's
  const auto wanted = dynamic_expand_extents(c, c.in(1));
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

// Extents of 1 are broadcast; others are repeated through a dim of their own before theirs, as many at once as a rank
// has room for: neighbors that are not repeated become one dim.
value tile_by(value x, std::span<const dimension> repeats) {
  dims lens = x.get_shape().lens;
  small_vector<dimension> left;
  for (std::size_t d = 0; d < repeats.size(); ++d) {
    const bool spreads = lens[d] == dimension(1);
    if (spreads) lens[d] = repeats[d];
    left.push_back(spreads ? dimension(1) : repeats[d]);
  }
  x = x.broadcast_to(lens);
  const auto copied = [&](std::size_t d) { return !(left[d] == dimension(1)); };
  for (std::size_t next = 0; next < left.size();) {
    dims apart, repeated;
    dimension before = 1;  // dims that are not repeated, up to the next one that is
    for (std::size_t d = 0; d < lens.size(); ++d) {
      if (d < next || !copied(d) || apart.size() + 3 > max_rank) {
        before *= lens[d];
        continue;
      }
      apart.push_back(before), apart.push_back(1);
      repeated.push_back(before), repeated.push_back(left[d]);
      before = lens[d];
      lens[d] *= left[d];
      next = d + 1;
    }
    if (apart.empty()) break;
    apart.push_back(before), repeated.push_back(before);
    x = x.reshape(apart).broadcast_to(repeated).reshape(lens);
  }
  return x;
}
variables import_tile(node_context& c) {
  const auto repeats = c.dimensions_of(listed(c.in(1), c.in(0).rank()), "the list of repeats", 0);
  if (repeats.size() != c.in(0).rank()) c.malformed("there is a repeat for each dim of the input");
  return {tile_by(c.in(0), repeats)};
}
// The first version repeats one axis.
variables import_tile_1(node_context& c) {
  const value x = c.in(0);
  small_vector<dimension> repeats(x.rank(), dimension(1));
  const std::int64_t axis = axis_within(c, c.number(2, "the axis"), x.rank());
  repeats[static_cast<std::size_t>(axis)] = c.extent(1, "the number of tiles");
  return {tile_by(x, repeats)};
}

constexpr std::int64_t most_blocksize = std::int64_t{1} << 24;  // so that its square is an extent

// Attribute blocksize, for an input of rank 4.
std::int64_t block_of(const node_context& c) {
  const std::int64_t b = c.integer("blocksize", 0);
  if (c.in(0).rank() != 4 || b < 1) c.malformed("the input has rank 4 and blocksize is positive");
  if (b > most_blocksize) c.malformed("blocksize is at most " + std::to_string(most_blocksize));
  return b;
}
variables import_depth_to_space(node_context& c) {
  const std::int64_t b = block_of(c);
  const dims l = c.in(0).get_shape().lens;
  if (l[1].min() > 0 && b > l[1].max()) c.malformed("blocksize is at most the channels");
  const dimension depth = l[1] / (b * b);
  const bool columns = c.text("mode", "DCR") == "CRD";
  const value split = columns ? c.in(0).reshape({l[0], depth, b, b, l[2], l[3]}).transpose({0, 1, 4, 2, 5, 3})
                              : c.in(0).reshape({l[0], b, b, depth, l[2], l[3]}).transpose({0, 3, 4, 1, 5, 2});
  return {split.reshape({l[0], depth, l[2] * b, l[3] * b})};
}
variables import_space_to_depth(node_context& c) {
  const std::int64_t b = block_of(c);
  const dims l = c.in(0).get_shape().lens;
  return {c.in(0)
              .reshape({l[0], l[1], l[2] / b, b, l[3] / b, b})
              .transpose({0, 3, 5, 1, 2, 4})
              .reshape({l[0], l[1] * (b * b), l[2] / b, l[3] / b})};
}

}  // namespace

std::span<const op_importer> view_importers() {
  static constexpr op_importer table[] = {
      {"", "DepthToSpace", 1, import_depth_to_space},
      {"", "Expand", 8, import_expand},
      {"", "Flatten", 1, import_flatten},
      {"", "Reshape", 1, import_reshape_1},
      {"", "Reshape", 5, import_reshape},
      {"", "SpaceToDepth", 1, import_space_to_depth},
      {"", "Squeeze", 1, import_squeeze_1},
      {"", "Squeeze", 13, import_squeeze},
      {"", "Tile", 1, import_tile_1},
      {"", "Tile", 6, import_tile},
      {"", "Transpose", 1, import_transpose},
      {"", "Unsqueeze", 1, import_unsqueeze_1},
      {"", "Unsqueeze", 13, import_unsqueeze},
      {microsoft, "ExpandDims", 1, import_expand_dims},
  };
  return table;
}

}  // namespace kiln::onnx
