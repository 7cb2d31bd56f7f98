#include <algorithm>

#include "kiln/backend/eigen/block_program.hpp"
#include "kiln/backend/eigen/impl/tile_memory.hpp"
#include "kiln/core/visit_size.hpp"

namespace kiln::eigen {
namespace {

// A tile of `natural`s as what dtype `t` can hold, in its compute type; or, with `stores`, as that dtype.
void convert_tile(dtype natural, const std::byte* from, dtype t, bool stores, std::byte* to, std::int64_t n) {
  if (stores)
    if (const convert_function convert = kiln_eigen_typed_tiles()->convert(natural, t)) return convert(from, to, n);
  visit_compute(natural, [&]<class From>(type_tag<From>) {
    visit_storage(t, [&]<class S>(type_tag<S>) {
      visit_compute(t, [&]<class C>(type_tag<C>) {
        const From* in = reinterpret_cast<const From*>(from);
        C* out = reinterpret_cast<C*>(to);
        for (std::int64_t i = 0; i < n; ++i) out[i] = convert_value<C>(convert_value<S>(in[i]));
      });
    });
  });
}

// n times the element of that many bytes.
void repeat(std::size_t width, const std::byte* from, std::byte* to, std::int64_t n) {
  visit_size(width, [&]<class T>(T value) {
    std::memcpy(&value, from, sizeof(T));
    std::fill_n(reinterpret_cast<T*>(to), n, value);
  });
}

// A tile of elements that are stored as dtype `t`, `step` apart, and held as `held`.
void load_tile(dtype t, dtype held, const std::byte* from, std::ptrdiff_t step, std::byte* to, std::int64_t n) {
  if (held != t) return gather(t, from, step, to, n);
  if (step == 0) return repeat(size_of(t), from, to, n);
  copy_elements(size_of(t), from, step, to, 1, n);
}
void store_tile(dtype t, dtype held, const std::byte* from, std::byte* to, std::ptrdiff_t step, std::int64_t n) {
  if (held != t) return scatter(t, from, to, step, n);
  copy_elements(size_of(t), from, 1, to, step, n);
}

}  // namespace

tile_program::cursor::cursor(const tile_program& p, std::byte* scratch, std::int64_t row) : program_(p), row_(row) {
  const auto carve = [&](std::size_t bytes) {
    std::byte* at = scratch;
    scratch += padded_bytes(bytes);
    return at;
  };
  const std::size_t streams = p.parameters_.size() + p.results_.size(), values = p.values_.size();
  streams_ = reinterpret_cast<stream*>(carve(streams * sizeof(stream)));
  for (std::size_t k = 0; k < streams; ++k) streams_[k] = {};
  if (p.blocks_) {
    std::byte* const at = carve(sizeof(block_cursor));
    blocks_ = new (at) block_cursor(*p.blocks_, scratch, row, 0);
    return;
  }
  home_ = reinterpret_cast<std::byte**>(carve(values * sizeof(std::byte*)));
  at_ = reinterpret_cast<std::byte**>(carve(values * sizeof(std::byte*)));
  const std::size_t tile_bytes =
      padded_bytes(static_cast<std::size_t>(std::clamp<std::int64_t>(row, 1, p.tile())) * p.width_);
  std::byte* tiles = scratch;
  scratch += (p.slots_ + 1) * tile_bytes;
  spare_ = tiles + p.slots_ * tile_bytes;
  for (std::size_t v = 0; v < values; ++v) {
    const value& what = p.values_[v];
    if (!what.full)
      home_[v] = scratch, scratch += 64;
    else if (what.kept)
      home_[v] = carve(static_cast<std::size_t>(row) * p.width_);
    else
      home_[v] = tiles + what.slot * tile_bytes;
    at_[v] = home_[v];
    if (what.from != source::constant) continue;
    const literal& l = what.constant;
    const dtype t = l.get_shape().type;
    load_tile(t, p.held(t), l.bytes(), 0, home_[v], !what.full ? 1 : std::clamp<std::int64_t>(row, 1, p.tile()));
  }
}

// a block cursor owns nothing
tile_program::cursor::~cursor() {
  if (blocks_ && past_cache_) kiln_eigen_isa()->blocks()->fence();
}

void tile_program::cursor::fetch_ahead(std::size_t stream, std::int64_t bytes) {
  if (blocks_) blocks_->fetch_ahead(stream, bytes);
}
void tile_program::cursor::fetch_rows(bool yes) {
  if (blocks_) blocks_->fetch_rows(yes);
}

void tile_program::run_call(const call& c, const cursor& k, std::int64_t n) const {
  const value& out = values_[c.out];
  switch (c.kind) {
    case call::what::repeat: return repeat(size_of(c.compute), k.at_[c.in[0]], k.at_[c.out], n);
    case call::what::fold:
      if (c.typed_fold) return c.typed_fold(c.op.data(), k.at_[c.in[0]], n, k.at_[c.out]);
      if (c.float_fold)
        return c.float_fold(c.op.data(), reinterpret_cast<const float*>(k.at_[c.in[0]]), n,
                            reinterpret_cast<float*>(k.at_[c.out]));
      return c.op.table().fold(c.op.data(), c.compute, k.at_[c.in[0]], n, k.at_[c.out]);
    case call::what::tile:
      if (c.convert) return c.convert(k.at_[c.in[0]], k.at_[c.out], n);
  }
  const void* in[6];
  for (std::size_t i = 0; i < c.in.size(); ++i) in[i] = k.at_[c.in[i]];
  const bool stored = held(out.type) == out.type && out.type == c.natural;
  std::byte* to = stored ? k.at_[c.out] : k.spare_;
  if (c.tile)
    c.tile(c.op.data(), in, to, n);
  else
    c.op.table().tile(c.op.data(), c.compute, in, to, n);
  if (!stored) convert_tile(c.natural, to, out.type, held(out.type) == out.type, k.at_[c.out], n);
}

void tile_program::cursor::call_per_row(int level) {
  for (const call& c : program_.calls_)
    if (c.per_row && c.level == level) program_.run_call(c, *this, 1);
}

void tile_program::cursor::begin_row() {
  if (blocks_) return blocks_->begin_row(streams_);
  if (!program_.reduces_) return;
  for (std::uint32_t v : program_.parameters_) {
    const value& what = program_.values_[v];
    if (!what.full) load_tile(what.type, program_.held(what.type), streams_[what.index].at, 0, home_[v], 1);
  }
  for (const call& c : program_.calls_)
    if (c.kind == call::what::fold) c.op.table().start(c.op.data(), c.compute, home_[c.out]);
  call_per_row(0);
}

void tile_program::cursor::load(std::uint32_t v, std::int64_t from, std::int64_t n) {
  const value& what = program_.values_[v];
  const stream& s = streams_[what.index];
  std::byte* const first = s.at + from * s.step * static_cast<std::ptrdiff_t>(size_of(what.type));
  const dtype held = program_.held(what.type);
  if (s.step == 1 && held == what.type) {
    at_[v] = first;
    return;
  }
  at_[v] = home_[v];
  load_tile(what.type, held, first, s.step, home_[v], n);
}

void tile_program::cursor::store_result(std::size_t k, std::int64_t from, std::int64_t n) {
  const std::uint32_t v = program_.results_[k];
  const stream& s = result(k);
  const dtype t = program_.values_[v].type;
  std::byte* const first = s.at + from * s.step * static_cast<std::ptrdiff_t>(size_of(t));
  if (at_[v] != first) store_tile(t, program_.held(t), at_[v], first, s.step, n);
}

void tile_program::cursor::run(int level, std::int64_t at, std::int64_t n) {
  if (blocks_) return blocks_->run(streams_, level, at, n, past_cache_);
  const bool last = level + 1 == program_.levels_;
  const std::int64_t tile = program_.tile();
  for (std::int64_t from = 0; from < n; from += tile) {
    const std::int64_t count = std::min(tile, n - from);
    for (std::uint32_t v : program_.loads_[static_cast<std::size_t>(level)]) load(v, from, count);
    for (std::size_t v = 0; v < program_.values_.size(); ++v) {
      const value& what = program_.values_[v];
      if (!what.full || what.from != source::computed) continue;
      if (what.kept) at_[v] = home_[v] + static_cast<std::size_t>(at + from) * size_of(program_.held(what.type));
      if (what.result < 0) continue;
      const stream& s = result(static_cast<std::size_t>(what.result));
      if (s.step == 1 && program_.held(what.type) == what.type)
        at_[v] = s.at + from * static_cast<std::ptrdiff_t>(size_of(what.type));
    }
    for (const call& c : program_.calls_)
      if (c.level == level && !c.per_row) program_.run_call(c, *this, count);
    if (last)
      for (std::size_t k = 0; k < program_.results_.size(); ++k)
        if (program_.values_[program_.results_[k]].full) store_result(k, from, count);
  }
}

void tile_program::cursor::end_level(int level, std::int64_t row) {
  if (blocks_) return blocks_->end_level(streams_, level, row);
  for (const call& c : program_.calls_)
    if (c.kind == call::what::fold && c.level == level) {
      const dtype t = program_.values_[c.out].type;  // an empty fold gives that dtype's extreme, not the compute type's
      c.op.table().finish(c.op.data(), t, home_[c.out], row);
      const dtype held = program_.held(t);
      if (held != c.natural || held != t) {
        convert_tile(c.natural, home_[c.out], t, held == t, spare_, 1);
        std::memcpy(home_[c.out], spare_, size_of(held));
      }
    }
  call_per_row(level + 1);
  if (level + 1 != program_.levels_) return;
  for (std::size_t k = 0; k < program_.results_.size(); ++k)
    if (!program_.values_[program_.results_[k]].full) store_result(k, 0, 1);
}

}  // namespace kiln::eigen
