#include <algorithm>
#include <limits>

#include "kiln/core/transpose_block.hpp"
#include "kiln/runtime/fallback_kernel.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln {
namespace {

using detail::transpose_block;

struct walk {
  ints lens, from, to;
};

// Drops extents of 1 and joins neighbors that are contiguous in both layouts; the destination's smallest stride ends
// up innermost, because scattered writes cost more than scattered reads.
walk simplify(const tensor& from, const tensor& to) {
  walk w;
  for (std::size_t d = 0; d < to.lens.size(); ++d) {
    if (to.lens[d] == 1) continue;
    w.lens.push_back(to.lens[d]);
    w.from.push_back(from.strides[d]);
    w.to.push_back(to.strides[d]);
  }
  for (std::size_t i = 1; i < w.lens.size(); ++i)  // insertion sort by destination stride, outermost first
    for (std::size_t j = i; j > 0 && std::abs(w.to[j - 1]) < std::abs(w.to[j]); --j) {
      std::swap(w.lens[j - 1], w.lens[j]);
      std::swap(w.from[j - 1], w.from[j]);
      std::swap(w.to[j - 1], w.to[j]);
    }
  for (std::size_t d = w.lens.size(); d-- > 1;)
    if (w.from[d - 1] == w.from[d] * w.lens[d] && w.to[d - 1] == w.to[d] * w.lens[d]) {
      w.lens[d - 1] *= w.lens[d];
      w.from[d - 1] = w.from[d];
      w.to[d - 1] = w.to[d];
      w.lens.erase(d), w.from.erase(d), w.to.erase(d);
    }
  return w;
}

// Rows of Size to twice as many bytes, by their first and last ones.
template <std::size_t Size, class T>
void copy_row_ends(const T* from, std::int64_t from_outer, T* to, std::int64_t to_outer, std::int64_t rows,
                   std::size_t bytes) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto* const in = reinterpret_cast<const std::byte*>(from + r * from_outer);
    auto* const out = reinterpret_cast<std::byte*>(to + r * to_outer);
    std::byte head[Size], tail[Size];
    std::memcpy(head, in, Size);
    std::memcpy(tail, in + bytes - Size, Size);
    std::memcpy(out, head, Size);
    std::memcpy(out + bytes - Size, tail, Size);
  }
}
// Rows of at most 64 bytes, without a call for each.
template <class T>
void copy_short_rows(const T* from, std::int64_t from_outer, T* to, std::int64_t to_outer, std::int64_t rows,
                     std::int64_t cols) {
  const std::size_t bytes = static_cast<std::size_t>(cols) * sizeof(T);
  if (bytes > 32) return copy_row_ends<32>(from, from_outer, to, to_outer, rows, bytes);
  if (bytes > 16) return copy_row_ends<16>(from, from_outer, to, to_outer, rows, bytes);
  if (bytes >= 8) return copy_row_ends<8>(from, from_outer, to, to_outer, rows, bytes);
  if (bytes >= 4) return copy_row_ends<4>(from, from_outer, to, to_outer, rows, bytes);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < cols; ++c) to[r * to_outer + c] = from[r * from_outer + c];
}

// Rows that jump from place to place: the lines of later ones are prefetched meanwhile, which hardware doesn't do.
template <class T>
void copy_rows(const T* from, std::int64_t from_outer, T* to, std::int64_t to_outer, std::int64_t rows,
               std::int64_t cols) {
  constexpr std::int64_t ahead = 4096, line = 64;
  const std::int64_t bytes = cols * static_cast<std::int64_t>(sizeof(T));
  const std::int64_t distance = (ahead + bytes - 1) / bytes;
  if (bytes <= 64) return copy_short_rows(from, from_outer, to, to_outer, rows, cols);
  const bool asks = bytes <= ahead && rows > 2 * distance && (from_outer != cols || to_outer != cols);
  for (std::int64_t r = 0; r < rows; ++r) {
    if (asks && r + distance < rows) {
      const auto* const in = reinterpret_cast<const std::byte*>(from + (r + distance) * from_outer);
      const auto* const out = reinterpret_cast<const std::byte*>(to + (r + distance) * to_outer);
      for (std::int64_t b = 0; b < bytes; b += line) __builtin_prefetch(in + b), __builtin_prefetch(out + b);
    }
    std::memcpy(to + r * to_outer, from + r * from_outer, static_cast<std::size_t>(bytes));
  }
}

// n elements of one value: by vectors of any processor, the last of which ends with them, or by memset, which knows
// wider ones, where all bytes are equal.
template <class T> void fill_row(T* to, std::int64_t n, T value) {
  constexpr std::int64_t many = 256;
  if (n >= many && value == static_cast<T>(static_cast<T>(~T(0)) / 255 * (value & 255)))
    return std::memset(to, static_cast<int>(value & 255), static_cast<std::size_t>(n) * sizeof(T)), void();
  constexpr auto lanes = static_cast<std::int64_t>(16 / sizeof(T));
  using V [[gnu::vector_size(16)]] = T;
  if (n < lanes) return std::fill_n(to, n, value), void();
  const V all = V{} + value;
  const auto store = [&](std::int64_t k) { std::memcpy(to + k, &all, sizeof all); };
  std::int64_t k = 0;
  for (; k + 4 * lanes <= n; k += 4 * lanes) store(k), store(k + lanes), store(k + 2 * lanes), store(k + 3 * lanes);
  for (; k + lanes <= n; k += lanes) store(k);
  store(n - lanes);
}

template <class T>
void copy_block(const T* from, std::int64_t from_outer, std::int64_t from_inner, T* to, std::int64_t to_outer,
                std::int64_t to_inner, std::int64_t rows, std::int64_t cols) {
  if (from_inner == 1 && to_inner == 1) return copy_rows(from, from_outer, to, to_outer, rows, cols);
  if (from_inner == 0 && to_inner == 1) {
    for (std::int64_t r = 0; r < rows; ++r) fill_row(to + r * to_outer, cols, from[r * from_outer]);
    return;
  }
  if (from_outer == 1 && to_inner == 1) return transpose_block(from, from_inner, to, to_outer, rows, cols);
  constexpr std::int64_t block = 16;  // a block's lines of both sides stay in L1
  for (std::int64_t r0 = 0; r0 < rows; r0 += block)
    for (std::int64_t c0 = 0; c0 < cols; c0 += block)
      for (std::int64_t r = r0; r < std::min(rows, r0 + block); ++r)
        for (std::int64_t c = c0; c < std::min(cols, c0 + block); ++c)
          to[r * to_outer + c * to_inner] = from[r * from_outer + c * from_inner];
}

// out[k * step + r] = in[r * run + k] for r < Runs: runs of elements are interleaved, four of each at a time.
template <int Runs>
void interleave(const std::uint32_t* in, std::int64_t run, std::uint32_t* out, std::int64_t step, std::int64_t each) {
  using V = std::uint32_t __attribute__((vector_size(16)));
  const auto load = [](const std::uint32_t* from) {
    V v;
    std::memcpy(&v, from, sizeof v);
    return v;
  };
  const auto store = [](std::uint32_t* to, V v) { std::memcpy(to, &v, sizeof v); };
  std::int64_t k = 0;
  for (; k + 4 <= each; k += 4) {
    const V a = load(in + k), b = load(in + run + k);
    const V low = __builtin_shufflevector(a, b, 0, 4, 1, 5), high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    std::uint32_t* const to = out + k * step;
    if constexpr (Runs == 2) {
      store(to, low), store(to + 4, high);
    } else {
      const V c = load(in + 2 * run + k), d = load(in + 3 * run + k);
      const V low2 = __builtin_shufflevector(c, d, 0, 4, 1, 5), high2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      store(to, __builtin_shufflevector(low, low2, 0, 1, 4, 5));
      store(to + step, __builtin_shufflevector(low, low2, 2, 3, 6, 7));
      store(to + 2 * step, __builtin_shufflevector(high, high2, 0, 1, 4, 5));
      store(to + 3 * step, __builtin_shufflevector(high, high2, 2, 3, 6, 7));
    }
  }
  for (; k < each; ++k)
    for (std::int64_t r = 0; r < Runs; ++r) out[k * step + r] = in[r * run + k];
}

// A small transposition repeated over contiguous results (a channel shuffle): runs are interleaved where they are two
// or a multiple of four, else where each element comes from is looked up.
template <class T> bool copy_repeated(const walk& w, const tensor& from, const tensor& to, thread_pool* pool) {
  constexpr std::int64_t most = 4096, grain = 16384;
  if (w.lens.size() != 3 || w.to[2] != 1 || w.to[1] != w.lens[2]) return false;
  const std::int64_t each = w.lens[1] * w.lens[2], times = w.lens[0];
  if (each > most || times < 8 || w.from[0] < 0 || w.from[1] < 0 || w.from[2] <= 1) return false;
  constexpr auto side = static_cast<std::int64_t>(16 / sizeof(T));
  const bool interleaves = sizeof(T) == sizeof(std::uint32_t) && w.lens[2] % 4 == 0;
  const bool of_two = sizeof(T) == sizeof(std::uint32_t) && w.lens[2] == 2;
  if (w.from[1] == 1 && w.lens[1] >= side && w.lens[2] >= side && !interleaves) return false;  // squares
  if (w.from[1] == 1 && w.lens[1] >= 4 * side && w.lens[2] < side && !of_two) return false;    // a few planes
  if ((w.lens[1] - 1) * w.from[1] + (w.lens[2] - 1) * w.from[2] > std::numeric_limits<std::int32_t>::max())
    return false;
  std::int32_t source[most];
  for (std::int64_t i = 0; i < each; ++i)
    source[i] = static_cast<std::int32_t>(i / w.lens[2] * w.from[1] + i % w.lens[2] * w.from[2]);
  const auto body = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t r = first; r < last; ++r) {
      const T* const in = from.as<const T>() + r * w.from[0];
      T* const out = to.as<T>() + r * w.to[0];
      if constexpr (sizeof(T) == sizeof(std::uint32_t)) {
        const std::int64_t runs = w.lens[2], run = w.from[2];
        if (w.from[1] == 1 && runs == 2) {
          interleave<2>(in, run, out, runs, w.lens[1]);
          continue;
        }
        if (w.from[1] == 1 && runs % 4 == 0) {
          for (std::int64_t s = 0; s < runs; s += 4) interleave<4>(in + s * run, run, out + s, runs, w.lens[1]);
          continue;
        }
      }
      std::int64_t i = 0;
      for (; i + 4 <= each; i += 4) {
        const T a = in[source[i]], b = in[source[i + 1]], c = in[source[i + 2]], d = in[source[i + 3]];
        out[i] = a, out[i + 1] = b, out[i + 2] = c, out[i + 3] = d;
      }
      for (; i < each; ++i) out[i] = in[source[i]];
    }
  };
  const std::int64_t a_task = std::max<std::int64_t>(1, grain / each), tasks = (times + a_task - 1) / a_task;
  if (pool && tasks > 1)
    pool->parallel_for(tasks, [&](std::int64_t t, unsigned) { body(t * a_task, std::min(times, (t + 1) * a_task)); });
  else
    body(0, times);
  return true;
}

// Whether a dim repeats what is inside of it, which is dense in the result and stays in a cache until it is copied.
template <class T> bool repeats_written(const walk& w, std::size_t d) {
  constexpr std::int64_t cached = 1 << 18;
  std::int64_t inside = 1;
  for (std::size_t k = w.lens.size(); --k > d; inside *= w.lens[k])
    if (w.to[k] != inside) return false;
  return w.from[d] == 0 && w.to[d] == inside && inside * static_cast<std::int64_t>(sizeof(T)) <= cached;
}

// Dims from `d` on, of which there are two or more; each result that repeats another one is copied from that.
template <class T> void copy_repeats(const walk& w, std::size_t d, const T* from, T* to) {
  if (w.lens.size() - d == 2)
    return copy_block(from, w.from[d], w.from[d + 1], to, w.to[d], w.to[d + 1], w.lens[d], w.lens[d + 1]);
  if (!repeats_written<T>(w, d)) {
    for (std::int64_t i = 0; i < w.lens[d]; ++i) copy_repeats(w, d + 1, from + i * w.from[d], to + i * w.to[d]);
    return;
  }
  copy_repeats(w, d + 1, from, to);
  for (std::int64_t i = 1; i < w.lens[d]; ++i)
    std::memcpy(to + i * w.to[d], to, static_cast<std::size_t>(w.to[d]) * sizeof(T));
}

// Rows that outer dims repeat (tiles along several axes): a repetition is one copy of all its rows. Threads share the
// outermost dims, as many as make a task for each.
template <class T> bool copy_repeated_rows(const walk& w, const tensor& from, const tensor& to, thread_pool* pool) {
  constexpr std::int64_t grain = std::max<std::int64_t>(16384, 65536 / sizeof(T));
  const std::size_t rank = w.lens.size();
  bool repeats = false;
  for (std::size_t d = 0; d + 2 < rank; ++d) repeats = repeats || repeats_written<T>(w, d);
  if (!repeats || w.to[rank - 1] != 1 || w.from[rank - 1] < 0 || w.from[rank - 1] > 1) return false;
  const std::int64_t threads = pool ? pool->size() : 1, all = to.elements();
  const std::int64_t wanted = threads == 1 || all <= grain ? 1 : (all / grain + threads) / threads * threads;
  std::size_t outer = 0;
  std::int64_t parts = 1;
  while (outer + 2 < rank && parts < wanted) parts *= w.lens[outer++];
  const std::int64_t tasks = std::min(parts, wanted);
  const auto body = [&](std::int64_t task, unsigned) {
    for (std::int64_t part = task * parts / tasks; part < (task + 1) * parts / tasks; ++part) {
      std::int64_t rest = part, source = 0, result = 0;
      for (std::size_t d = outer; d-- > 0; rest /= w.lens[d]) {
        source += rest % w.lens[d] * w.from[d];
        result += rest % w.lens[d] * w.to[d];
      }
      copy_repeats(w, outer, from.as<const T>() + source, to.as<T>() + result);
    }
  };
  if (tasks == 1)
    body(0, 0);
  else
    pool->parallel_for(tasks, body);
  return true;
}

template <class T> void copy_typed(const tensor& from, const tensor& to, thread_pool* pool) {
  walk w = simplify(from, to);
  if (copy_repeated<T>(w, from, to, pool) || copy_repeated_rows<T>(w, from, to, pool)) return;
  while (w.lens.size() < 2) {
    w.lens.insert(0, 1);
    w.from.insert(0, 0);
    w.to.insert(0, 0);
  }
  const std::size_t rank = w.lens.size();
  // the two innermost loops are one block; of the others (and the block's rows) come tasks
  std::size_t row_dim = rank - 2;
  if (w.from[rank - 1] != 1)  // a transposition: pair the destination's inner dim with the source's
    for (std::size_t d = 0; d + 1 < rank; ++d)
      if (w.from[d] == 1) row_dim = d;
  std::swap(w.lens[row_dim], w.lens[rank - 2]);
  std::swap(w.from[row_dim], w.from[rank - 2]);
  std::swap(w.to[row_dim], w.to[rank - 2]);
  std::int64_t outer = 1;
  for (std::size_t d = 0; d + 2 < rank; ++d) outer *= w.lens[d];
  const std::int64_t rows = w.lens[rank - 2], cols = w.lens[rank - 1];
  const bool transposes = w.from[rank - 2] == 1 && w.from[rank - 1] != 1 && w.to[rank - 1] == 1;
  // elements a task should at least move: 64 KiB of rows, or so many that are transposed one by one
  constexpr std::int64_t few = 16384, of_rows = 65536 / static_cast<std::int64_t>(sizeof(T));
  const std::int64_t grain = w.from[rank - 1] == 1 && w.to[rank - 1] == 1 ? std::max(few, of_rows) : few;
  const std::int64_t most = transposes ? grain / std::min<std::int64_t>(rows, 64) : std::max(grain, of_rows);
  std::int64_t parts = (cols + most - 1) / most;
  if (const std::int64_t threads = pool ? pool->size() : 1; parts > 1 && parts < 8 * threads)
    parts = (parts + threads - 1) / threads * threads;  // as many for each thread
  const std::int64_t cols_a_task = (cols + parts - 1) / parts;
  const std::int64_t rows_a_task = std::clamp<std::int64_t>((grain + cols_a_task - 1) / cols_a_task, 1, rows);
  const std::int64_t col_chunks = (cols + cols_a_task - 1) / cols_a_task;
  const std::int64_t chunks = (rows + rows_a_task - 1) / rows_a_task * col_chunks;
  const std::int64_t outer_a_task =
      chunks > 1 ? 1 : std::max<std::int64_t>(1, grain / std::max<std::int64_t>(rows * cols, 1));
  const std::int64_t outer_tasks = (outer + outer_a_task - 1) / outer_a_task;
  const auto body = [&](std::int64_t task, unsigned) {
    const std::int64_t chunk = task % chunks, first = task / chunks * outer_a_task;
    const T* outer_src = from.as<const T>();
    T* outer_dst = to.as<T>();
    std::int64_t at[max_rank] = {};
    for (std::int64_t d = static_cast<std::int64_t>(rank) - 3, rest = first; d >= 0; rest /= w.lens[d], --d) {
      at[d] = rest % w.lens[d];
      outer_src += at[d] * w.from[d];
      outer_dst += at[d] * w.to[d];
    }
    for (std::int64_t o = first; o < std::min(outer, first + outer_a_task); ++o) {
      const T* const src = outer_src;
      T* const dst = outer_dst;
      for (std::size_t d = rank - 2; d-- > 0;) {  // on to the next
        outer_src += w.from[d], outer_dst += w.to[d];
        if (++at[d] < w.lens[d]) break;
        outer_src -= at[d] * w.from[d], outer_dst -= at[d] * w.to[d];
        at[d] = 0;
      }
      const std::int64_t r0 = chunk / col_chunks * rows_a_task, r1 = std::min(rows, r0 + rows_a_task);
      const std::int64_t c0 = chunk % col_chunks * cols_a_task, c1 = std::min(cols, c0 + cols_a_task);
      copy_block(src + r0 * w.from[rank - 2] + c0 * w.from[rank - 1], w.from[rank - 2], w.from[rank - 1],
                 dst + r0 * w.to[rank - 2] + c0 * w.to[rank - 1], w.to[rank - 2], w.to[rank - 1], r1 - r0, c1 - c0);
    }
  };
  const std::int64_t tasks = outer_tasks * chunks;
  if (pool && tasks > 1)
    pool->parallel_for(tasks, body);
  else
    for (std::int64_t t = 0; t < tasks; ++t) body(t, 0);
}

class copy_kernel final : public kernel {
 public:
  std::string name() const override { return "copy"; }
  stride_support input_strides(std::size_t) const override { return stride_support::any; }
  stride_support output_strides(std::size_t) const override { return stride_support::any; }
  void run(const launch& l) const override { copy_tensor(l.in[0], l.out[0], l.pool); }
};

}  // namespace

void copy_tensor(const tensor& from, const tensor& to, thread_pool* pool) {
  if (to.elements() == 0) return;
  switch (size_of(to.type)) {
    case 1: return copy_typed<std::uint8_t>(from, to, pool);
    case 2: return copy_typed<std::uint16_t>(from, to, pool);
    case 4: return copy_typed<std::uint32_t>(from, to, pool);
    default: return copy_typed<std::uint64_t>(from, to, pool);
  }
}

std::unique_ptr<kernel> target::make_copy(const derived_data*) const { return make_copy_kernel(); }

std::unique_ptr<kernel> make_copy_kernel() { return std::make_unique<copy_kernel>(); }

}  // namespace kiln
