#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <utility>

#include "kiln/core/mapped_file.hpp"
#include "kiln/core/simd.hpp"
#include "kiln/core/transpose_block.hpp"
#include "kiln/pass/constants.hpp"
#include "kiln/pass/impl/pair_runs.hpp"
#include "kiln/pass/lent_threads.hpp"
#include "kiln/pass/merge_products.hpp"

namespace kiln::detail {
namespace {

// `at` with as few dims as say the same.
layout joined(const layout& at) {
  layout out{{}, {}, at.offset};
  for (std::size_t d = 0; d < at.lens.size(); ++d) {
    if (at.lens[d] == dimension(1)) continue;
    if (!out.lens.empty() && out.strides.back() == at.strides[d] * at.lens[d]) {
      out.lens.back() *= at.lens[d];
      out.strides.back() = at.strides[d];
    } else {
      out.lens.push_back(at.lens[d]);
      out.strides.push_back(at.strides[d]);
    }
  }
  return out;
}

// Elements may stand at any address.
template <std::size_t Bytes>
void copy_row(const std::byte* from, std::int64_t step, std::int64_t count, std::byte* to) {
  if (step == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * Bytes);
    return;
  }
  if (step == 0 && count > 0) {
    const std::size_t all = static_cast<std::size_t>(count) * Bytes;
    std::memcpy(to, from, Bytes);
    for (std::size_t done = Bytes; done < all; done *= 2) std::memcpy(to + done, to, std::min(done, all - done));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i, to += Bytes)
    std::memcpy(to, from + i * step * static_cast<std::int64_t>(Bytes), Bytes);
}

// Rows whose elements are `step` apart and which begin one element apart. Lines of both sides of a tile lie in one
// place while it is turned: steps that are multiples of a page would have all of them in one set of the cache.
template <std::size_t Bytes>
void copy_turned(const std::byte* from, std::int64_t step, std::int64_t rows, std::int64_t count, std::byte* to,
                 std::int64_t to_row) {
  using element = std::conditional_t<
      Bytes == 1, std::uint8_t,
      std::conditional_t<Bytes == 2, std::uint16_t, std::conditional_t<Bytes == 4, std::uint32_t, std::uint64_t>>>;
  constexpr auto each = static_cast<std::int64_t>(Bytes);
  constexpr std::int64_t side = 64;
  alignas(64) element tile[side * side];
  for (std::int64_t r = 0; r < rows; r += side)
    for (std::int64_t i = 0; i < count; i += side) {
      const std::int64_t some = std::min(side, rows - r), lines = std::min(side, count - i);
      for (std::int64_t k = 0; k < lines; ++k) {
        const std::byte* const line = from + (r + (i + k) * step) * each;
        if (some == side)  // of a known size, which takes no call
          std::memcpy(tile + k * side, line, sizeof(tile) / side);
        else
          std::memcpy(tile + k * some, line, static_cast<std::size_t>(some) * Bytes);
      }
      transpose_block(tile, some, reinterpret_cast<element*>(to) + r * to_row + i, to_row, some, lines);
    }
}

template <std::size_t Bytes> void copy_elements(const layout& at, const std::byte* from, std::byte* to) {
  constexpr auto each = static_cast<std::int64_t>(Bytes);
  constexpr std::int64_t much = 1 << 20;
  const layout l = joined(at);
  ints outer = to_ints(l.lens), strides = to_ints(l.strides), to_strides = to_ints(row_major(l.lens));
  if (product(outer) == 0) return;
  std::int64_t count = 1, step = 1;
  if (!outer.empty()) {
    count = outer.back(), step = strides.back();
    outer.pop_back();
  }
  // a dim of contiguous elements goes with the last one, and parts share it
  std::size_t turned = outer.size();
  for (std::size_t d = 0; d < outer.size() && step != 0 && step != 1; ++d)
    if (strides[d] == 1) turned = d;
  const bool turns = turned < outer.size();
  const std::int64_t rows = turns ? std::exchange(outer[turned], 1) : 1;
  const std::int64_t parts = std::clamp<std::int64_t>(product(outer) * rows * count * each / much, 1, rows);
  for_each_part(parts, [&](std::int64_t part) {
    const std::int64_t begin = rows * part / parts, end = rows * (part + 1) / parts;
    ints index(outer.size(), 0);
    do {
      std::int64_t source = l.offset.value() + begin, place = turns ? begin * to_strides[turned] : 0;
      for (std::size_t d = 0; d < outer.size(); ++d) source += index[d] * strides[d], place += index[d] * to_strides[d];
      if (turns)
        copy_turned<Bytes>(from + source * each, step, end - begin, count, to + place * each, to_strides[turned]);
      else
        copy_row<Bytes>(from + source * each, step, count, to + place * each);
    } while (next_index(index, outer));
  });
}

// What was read and is rarely read again need not stay in memory beside what was made of it.
void forget(const literal& l) {
  constexpr std::size_t least = std::size_t{1} << 20;  // the system takes some time for each call
  if (l.data().size() >= least) forget_pages(l.data());
}

// Of f32, at any address.
bool are_finite(const std::byte* bytes, std::int64_t n) {
  using words = vec<std::int32_t, 4>;
  constexpr std::int64_t each = lanes<words>;
  words most{};  // of each lane the greatest magnitude, whose bits are in the same order as its values
  for (std::int64_t i = 0; i < n; i += each) {
    words bits{};
    if (i + each <= n)
      std::memcpy(&bits, bytes + i * 4, sizeof bits);
    else
      std::memcpy(&bits, bytes + i * 4, static_cast<std::size_t>(n - i) * 4);
    bits &= 0x7fff'ffff;
    most = select(bits > most, bits, most);
  }
  for (int k = 0; k < each; ++k)
    if (most[k] >= 0x7f80'0000) return false;
  return true;
}

// The pieces that a tensor is computed in: ranges of one dim, with all of the dims after it, of at most `most` elements
// or one of them.
class tensor_pieces {
 public:
  tensor_pieces(const dims& lens, std::int64_t most) : lens_(lens), split_(lens.size()) {
    while (split_ > 0 && inner_ * lens[split_ - 1].value() <= most) inner_ *= lens[--split_].value();
    extent_ = split_ > 0 ? lens[split_ - 1].value() : 1;
    rows_ = std::clamp<std::int64_t>(most / std::max<std::int64_t>(inner_, 1), 1, extent_);
    ranges_ = (extent_ + rows_ - 1) / rows_;
    for (std::size_t d = 0; d + 1 < split_; ++d) outer_.push_back(lens[d].value());
  }

  std::int64_t count() const { return product(outer_) * ranges_; }
  /// Elements of the largest piece.
  std::int64_t most() const { return rows_ * inner_; }
  /// Where a piece begins among the tensor's elements, row-major.
  std::int64_t first(std::int64_t piece) const { return (piece / ranges_ * extent_ + row(piece)) * inner_; }
  /// What a piece sees of an operand that the tensor sees through `at`.
  layout of(const layout& at, std::int64_t piece) const {
    layout l{lens_, at.strides, at.offset};
    std::int64_t rest = piece / ranges_;
    for (std::size_t d = outer_.size(); d-- > 0; rest /= outer_[d]) {
      l.lens[d] = 1;
      l.offset += at.strides[d] * (rest % outer_[d]);
    }
    if (split_ == 0) return l;
    l.lens[split_ - 1] = std::min(rows_, extent_ - row(piece));
    l.offset += at.strides[split_ - 1] * row(piece);
    return l;
  }
  /// Calls f with ranges of the pieces, from the lent threads.
  template <class F> void share(F&& f) const {
    const std::int64_t all = count(), tasks = std::min<std::int64_t>(all, 64);
    for_each_part(tasks, [&](std::int64_t task) { f(all * task / tasks, all * (task + 1) / tasks); });
  }

 private:
  std::int64_t row(std::int64_t piece) const { return piece % ranges_ * rows_; }

  dims lens_;
  std::size_t split_;
  std::int64_t inner_ = 1, extent_ = 1, rows_ = 1, ranges_ = 1;
  ints outer_;
};

// Whether the last elements that a layout shows neither follow each other nor are one.
bool is_turned(const layout& at) {
  for (std::size_t d = at.lens.size(); d-- > 0;)
    if (!(at.lens[d] == dimension(1))) return !(at.strides[d] == dimension(0)) && !(at.strides[d] == dimension(1));
  return false;
}

// One piece of what fold_pairs folds, its last dim from `column` on. How many elements it has.
std::int64_t fold_piece(const operation& op, pair_run run, std::span<const literal* const> from,
                        std::span<const layout> at, const bool* turned, const tensor_pieces& pieces, std::int64_t piece,
                        std::int64_t column, std::byte* second, float* out) {
  layout l[2];
  const std::byte* begin[2];
  for (std::size_t k = 0; k < 2; ++k) {
    l[k] = pieces.of(at[k], piece);
    if (column != 0) l[k].offset += at[k].strides.back() * column;
    begin[k] = from[k]->bytes();
    if (!turned[k]) continue;
    std::byte* const copy = k == 1 && turned[0] ? second : reinterpret_cast<std::byte*>(out);
    copy_laid_out(l[k], sizeof(float), begin[k], copy);
    l[k] = layout::standard(l[k].lens);
    begin[k] = copy;
  }
  const runs_of_pairs runs(l[0].lens, l);
  ints index(runs.outer.size(), 0);
  float* next = out;
  do {
    run_operand in[2];
    for (std::size_t k = 0; k < 2; ++k) {
      std::int64_t place = l[k].offset.value();
      for (std::size_t d = 0; d < index.size(); ++d) place += index[d] * runs.strides[k][d];
      in[k] = {begin[k] + place * static_cast<std::int64_t>(sizeof(float)), runs.goes_on[k]};
    }
    run(op.data(), in[0], in[1], next, runs.length);
    next += runs.length;
  } while (next_index(index, runs.outer));
  return next - out;
}

// An op of two floats over constants that are seen through layouts of the result's extents. A turned operand is copied
// to where the result will be, by squares, and computed with in place. `finite` gets whether all results are.
void fold_pairs(const operation& op, pair_run run, std::span<const literal* const> from, std::span<const layout> at,
                const dims& lens, float* to, std::optional<bool>* finite) {
  const bool turned[] = {is_turned(at[0]), is_turned(at[1])}, turns = turned[0] || turned[1];
  // A piece stays in the cache. Of a turned operand it reads whole lines, whose elements go to different rows: some of
  // them, and of long ones a strip, which is computed apart and copied to its place.
  const std::int64_t some = std::int64_t{1} << 14, last = lens.size() == 0 ? 1 : lens.back().value();
  const std::int64_t width = turns ? std::min(last, some) : last;
  std::atomic<bool> all_finite = finite != nullptr;
  const auto fold_strips = [&](std::int64_t begin, std::int64_t end) {  // of the last dim, all as wide
    dims of = lens;
    const std::int64_t wide = std::min(width, last - begin), strips = (end - begin) / wide;
    if (wide != last) of.back() = wide;
    const tensor_pieces pieces(of, turns ? std::max(4 * some, 16 * wide) : some);
    const std::int64_t all = pieces.count() * strips, tasks = std::min<std::int64_t>(all, 64);
    for_each_part(tasks, [&](std::int64_t task) {
      const auto bytes = static_cast<std::size_t>(pieces.most()) * sizeof(float);
      buffer second, apart;  // where both are turned, and of strips
      if (turned[0] && turned[1]) second = buffer::allocate(bytes);
      if (wide != last) apart = buffer::allocate(bytes);
      for (std::int64_t k = all * task / tasks; k < all * (task + 1) / tasks; ++k) {
        const std::int64_t piece = k / strips, column = begin + k % strips * wide;
        float* const place = to + (apart ? pieces.first(piece) / wide * last + column : pieces.first(piece));
        float* const out = apart ? reinterpret_cast<float*>(apart.data()) : place;
        const std::int64_t made = fold_piece(op, run, from, at, turned, pieces, piece, column, second.data(), out);
        if (apart)
          for (std::int64_t row = 0; row * wide < made; ++row)
            std::memcpy(place + row * last, out + row * wide, static_cast<std::size_t>(wide) * sizeof(float));
        if (all_finite.load(std::memory_order_relaxed) && !are_finite(reinterpret_cast<const std::byte*>(out), made))
          all_finite.store(false, std::memory_order_relaxed);
      }
    });
  };
  const std::int64_t whole = last / width * width;
  fold_strips(0, whole);
  if (whole != last) fold_strips(whole, last);
  if (finite) *finite = all_finite;
}

}  // namespace

void copy_laid_out(const layout& at, std::size_t bytes, const std::byte* from, std::byte* to) {
  const auto copy = bytes == 1   ? &copy_elements<1>
                    : bytes == 2 ? &copy_elements<2>
                    : bytes == 4 ? &copy_elements<4>
                                 : &copy_elements<8>;
  copy(at, from, to);
}

literal joined_columns(const small_vector<literal>& parts, const shape& s) {
  buffer made = buffer::allocate(static_cast<std::size_t>(s.bytes().value()));
  const std::size_t last = s.rank() - 1, row = static_cast<std::size_t>(s.lens[last].value()) * size_of(s.type);
  const std::int64_t rows = row ? static_cast<std::int64_t>(made.size() / row) : 0;
  const std::int64_t tasks = std::clamp<std::int64_t>(static_cast<std::int64_t>(made.size() >> 20), 1, 64);
  for_each_part(tasks, [&](std::int64_t task) {
    for (std::int64_t r = rows * task / tasks; r < rows * (task + 1) / tasks; ++r) {
      std::byte* to = made.data() + static_cast<std::size_t>(r) * row;
      for (const literal& l : parts) {
        const std::size_t part = static_cast<std::size_t>(l.get_shape().lens[last].value()) * size_of(s.type);
        if (part != 0) std::memcpy(to, l.bytes() + static_cast<std::size_t>(r) * part, part);
        to += part;
      }
    }
  });
  for (const literal& l : parts) forget(l);
  return literal(s, std::move(made));
}

bool finite_floats(const literal& l) {
  constexpr std::int64_t some = std::int64_t{1} << 16;
  const std::int64_t n = l.elements();
  std::atomic<bool> finite = true;
  for_each_part((n + some - 1) / some, [&](std::int64_t part) {
    const std::int64_t begin = part * some;
    if (!are_finite(l.bytes() + begin * 4, std::min(some, n - begin))) finite = false;
  });
  return finite;
}

literal fold_laid_out(const operation& op, std::span<const literal* const> from, std::span<const layout> at,
                      const shape& result, std::optional<bool>* finite) {
  const dims lens = result.lens;
  buffer made = buffer::allocate(static_cast<std::size_t>(result.bytes().value()));
  if (product(to_ints(lens)) == 0) return literal(result, made);
  const auto is_f32 = [](const literal* l) { return l->get_shape().type == dtype::f32; };
  if (from.size() == 2 && result.type == dtype::f32 && std::all_of(from.begin(), from.end(), is_f32))
    if (const pair_run run = pair_run_of(op)) {
      fold_pairs(op, run, from, at, lens, reinterpret_cast<float*>(made.data()), finite);
      for (const literal* l : from) forget(*l);
      return literal(result, made);
    }
  const tensor_pieces pieces(lens, 8192);  // of which operands and result stay in the cache
  const auto most = static_cast<std::size_t>(pieces.most());
  pieces.share([&](std::int64_t first, std::int64_t end) {
    small_vector<buffer> copies;
    small_vector<evaluation::operand> in(from.size()), out(1);
    for (const literal* l : from) copies.push_back(buffer::allocate(most * size_of(l->get_shape().type)));
    buffer decoded = buffer::allocate((from.size() + 1) * (most + 16) * 8);
    for (std::int64_t piece = first; piece < end; ++piece) {
      dimension elements = 1;
      for (std::size_t k = 0; k < from.size(); ++k) {
        const layout l = pieces.of(at[k], piece);
        const dtype type = from[k]->get_shape().type;
        const std::size_t each = size_of(type);
        elements = product(l.lens);
        in[k].type = shape(type, {elements});  // a pointwise op asks for no more
        // inputs are only read
        in[k].bytes = const_cast<std::byte*>(from[k]->bytes()) + l.offset.value() * static_cast<std::int64_t>(each);
        if (!l.dense() || reinterpret_cast<std::uintptr_t>(in[k].bytes) % each != 0) {
          copy_laid_out(l, each, from[k]->bytes(), copies[k].data());
          in[k].bytes = copies[k].data();
        }
      }
      out[0].type = shape(result.type, {elements});
      out[0].bytes = made.data() + pieces.first(piece) * static_cast<std::int64_t>(size_of(result.type));
      evaluation e(in, out, {decoded.data(), decoded.size()});
      op.evaluate(e, false);
      e.finish();
    }
  });
  for (const literal* l : from) forget(*l);
  return literal(result, made);
}

}  // namespace kiln::detail
