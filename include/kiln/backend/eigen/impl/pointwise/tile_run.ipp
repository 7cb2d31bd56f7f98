#include <algorithm>

#include "kiln/backend/eigen/block_program.hpp"
#include "kiln/backend/eigen/impl/pointwise/tile_memory.hpp"

namespace kiln::eigen {
namespace {

// A tile of `natural`s as what dtype `t` can hold, in its compute type; or, with `stores`, as that dtype.
void convert_tile(dtype natural, const std::byte* from, dtype t, bool stores, std::byte* to, std::int64_t n) {
  const typed_tile_table& typed = *kiln_eigen_typed_tiles();
  if (stores) {
    if (const convert_function convert = typed.convert(natural, t)) return convert(from, to, n);
  } else if (natural == dtype::f32) {
    if (const convert_function round = typed.round(t)) return round(from, to, n);
  }
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

// A tile of elements that are stored as dtype `t`, `step` apart, and held as `held`.
void load_tile(dtype t, dtype held, const std::byte* from, std::ptrdiff_t step, std::byte* to, std::int64_t n) {
  if (held != t) return gather(t, from, step, to, n);
  if (step == 0) return kiln_eigen_typed_tiles()->repeat(size_of(t))(from, to, n);
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
  repeated_ = reinterpret_cast<repetition_run*>(carve(values * sizeof(repetition_run)));
  std::fill_n(repeated_, values, repetition_run{});
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
    load_tile(t, what.held, l.bytes(), 0, home_[v], !what.full ? 1 : std::clamp<std::int64_t>(row, 1, p.tile()));
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
    case call::what::repeat:
      return kiln_eigen_typed_tiles()->repeat(size_of(c.compute))(k.at_[c.in[0]], k.at_[c.out], n);
    case call::what::fold:
      if (c.typed_fold) return c.typed_fold(c.op.data(), k.at_[c.in[0]], n, k.at_[c.out]);
      if (c.float_fold)
        return c.float_fold(c.op.data(), reinterpret_cast<const float*>(k.at_[c.in[0]]), n,
                            reinterpret_cast<float*>(k.at_[c.out]));
      return c.op.table().fold(c.op.data(), c.compute, k.at_[c.in[0]], n, k.at_[c.out]);
    case call::what::tile:
      if (!c.convert) break;
      c.convert(k.at_[c.in[0]], k.at_[c.out], n);
      if (c.round) c.round(k.at_[c.out], k.at_[c.out], n);
      return;
  }
  const void* in[6];
  for (std::size_t i = 0; i < c.in.size(); ++i) in[i] = k.at_[c.in[i]];
  const bool stored = out.held == out.type && out.type == c.natural;
  std::byte* to = stored ? k.at_[c.out] : k.spare_;
  if (c.tile)
    c.tile(c.op.data(), in, to, n);
  else
    c.op.table().tile(c.op.data(), c.compute, in, to, n);
  if (!stored) convert_tile(c.natural, to, out.type, out.held == out.type, k.at_[c.out], n);
}

void tile_program::cursor::call_per_row(int level) {
  for (std::uint32_t c : program_.work_[static_cast<std::size_t>(level)].per_row)
    program_.run_call(program_.calls_[c], *this, 1);
}

void tile_program::cursor::begin_row() {
  if (blocks_) return blocks_->begin_row(streams_);
  if (!program_.reduces_) return;
  for (std::uint32_t v : program_.parameters_) {
    const value& what = program_.values_[v];
    if (!what.full) load_tile(what.type, what.held, streams_[what.index].at, 0, home_[v], 1);
  }
  for (const auto& work : program_.work_)
    for (std::uint32_t f : work.folds) {
      const call& c = program_.calls_[f];
      c.op.table().start(c.op.data(), c.compute, home_[c.out]);
    }
  call_per_row(0);
}

void tile_program::cursor::load(std::uint32_t v, std::int64_t from, std::int64_t n) {
  const value& what = program_.values_[v];
  const stream& s = streams_[what.index];
  std::byte* const first = s.at + from * s.step * static_cast<std::ptrdiff_t>(size_of(what.type));
  if (s.step == 1 && what.held == what.type) {
    at_[v] = first;
    return;
  }
  at_[v] = home_[v];
  repetition_run& earlier = repeated_[v];
  if (s.step == 0 && earlier.of == first && earlier.count >= n) return;
  load_tile(what.type, what.held, first, s.step, home_[v], n);
  earlier = s.step == 0 ? repetition_run{first, n} : repetition_run{};
}

void tile_program::cursor::store_result(std::size_t k, std::int64_t from, std::int64_t n) {
  const value& what = program_.values_[program_.results_[k]];
  const stream& s = result(k);
  std::byte* const first = s.at + from * s.step * static_cast<std::ptrdiff_t>(size_of(what.type));
  const std::byte* const at = at_[program_.results_[k]];
  if (at != first) store_tile(what.type, what.held, at, first, s.step, n);
}

void tile_program::cursor::run(int level, std::int64_t at, std::int64_t n) {
  if (blocks_) return blocks_->run(streams_, level, at, n, past_cache_);
  const bool last = level + 1 == program_.levels_;
  const level_work& work = program_.work_[static_cast<std::size_t>(level)];
  // Tiles keep what is between calls in L1: one call from operands to a result, in place, needs none.
  const auto lies_in_place = [&](const value& v, const stream& s) { return s.step == 1 && v.held == v.type && v.full; };
  const auto is_one_call = [&] {
    if (work.calls.size() != 1 || program_.results_.size() != 1 || program_.reduces_) return false;
    const call& c = program_.calls_[work.calls[0]];
    const value& out = program_.values_[c.out];
    if (c.out != program_.results_[0] || out.kept || !lies_in_place(out, result(0))) return false;
    return (c.convert || c.natural == out.type) && std::all_of(c.in.begin(), c.in.end(), [&](std::uint32_t v) {
             const value& in = program_.values_[v];
             return in.from == source::parameter && lies_in_place(in, streams_[in.index]);
           });
  };
  const std::int64_t tile = is_one_call() ? n : program_.tile();
  for (std::int64_t from = 0; from < n; from += tile) {
    const std::int64_t count = std::min(tile, n - from);
    for (std::uint32_t v : program_.loads_[static_cast<std::size_t>(level)]) load(v, from, count);
    for (std::uint32_t v : program_.placed_) {
      const value& what = program_.values_[v];
      if (what.kept) at_[v] = home_[v] + static_cast<std::size_t>(at + from) * size_of(what.held);
      if (what.result < 0 || what.held != what.type) continue;
      const stream& s = result(static_cast<std::size_t>(what.result));
      if (s.step == 1) at_[v] = s.at + from * static_cast<std::ptrdiff_t>(size_of(what.type));
    }
    for (std::uint32_t c : work.calls) program_.run_call(program_.calls_[c], *this, count);
    if (last)
      for (std::size_t k = 0; k < program_.results_.size(); ++k)
        if (program_.values_[program_.results_[k]].full) store_result(k, from, count);
  }
}

void tile_program::cursor::end_level(int level, std::int64_t row) {
  if (blocks_) return blocks_->end_level(streams_, level, row);
  for (std::uint32_t k : program_.work_[static_cast<std::size_t>(level)].folds) {
    const call& c = program_.calls_[k];
    const value& out = program_.values_[c.out];
    const dtype t = out.type;  // an empty fold gives that dtype's extreme, not the compute type's
    c.op.table().finish(c.op.data(), t, home_[c.out], row);
    if (out.held != c.natural || out.held != t) {
      convert_tile(c.natural, home_[c.out], t, out.held == t, spare_, 1);
      std::memcpy(home_[c.out], spare_, size_of(out.held));
    }
  }
  call_per_row(level + 1);
  if (level + 1 != program_.levels_) return;
  for (std::size_t k = 0; k < program_.results_.size(); ++k)
    if (!program_.values_[program_.results_[k]].full) store_result(k, 0, 1);
}

}  // namespace kiln::eigen
