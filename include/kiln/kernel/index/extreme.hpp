#pragma once
#include <cstring>

#include "kiln/kernel/index/order.hpp"
#include "kiln/kernel/index/problem.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::kernels {

/// Places of extremes of T: see `extreme_problem`. `Last`: of equals the last one.
template <class T, bool Last> class extremes {
  using V = keyed_vec<T>;
  using K = key_of<T>;
  using U = rebind_t<V, K>;
  static constexpr int width = lanes<V>;
  static constexpr std::int64_t grain = 16384;

 public:
  explicit extremes(const extreme_problem& p) : p_(p), turn_(broadcast<U>(p.least ? ~K(0) : K(0))) {}
  void run(thread_pool& pool) const {
    const extreme_problem& p = p_;
    if (p.outer * p.inner == 0) return;
    if (p.inner > 1) return across(pool);
    if (p.outer < static_cast<std::int64_t>(pool.size()) && p.extent >= 2 * grain) return in_stretches(pool);
    const std::int64_t each = std::max<std::int64_t>(1, grain / std::max<std::int64_t>(1, p.extent));
    pool.parallel_for((p.outer + each - 1) / each, [&](std::int64_t task, unsigned) {
      for (std::int64_t o = task * each; o < std::min(p.outer, (task + 1) * each); ++o)
        p_.places[o] = along(at(o, 0, 0), p_.extent).place;
    });
  }

 private:
  struct found {
    K key = 0;
    std::int64_t place = 0;
    void take(K other, std::int64_t at) {
      if (other > key || (other == key && (Last ? at > place : at < place))) key = other, place = at;
    }
  };
  static KILN_FN U better(U x, U best) {
    if constexpr (Last)
      return (U)(x >= best);
    else
      return (U)(x > best);
  }
  const T* at(std::int64_t o, std::int64_t k, std::int64_t i) const {
    return static_cast<const T*>(p_.x) + (o * p_.extent + k) * p_.inner + i;
  }
  KILN_FN U load_keys(const T* from) const { return keys<T>(load_keyed(from), turn_, broadcast<U>(~K(0))); }
  static KILN_FN U numbered(std::int64_t first) {
    U n;
    for (int lane = 0; lane < width; ++lane) n[lane] = static_cast<K>(first + lane);
    return n;
  }

  // Of a row of bytes: the greatest of all, then its place among them.
  found along_bytes(const T* from, std::int64_t n) const {
    using B = native_vec<std::uint8_t>;
    constexpr std::int64_t bytes = lanes<B>;
    const auto* const at = reinterpret_cast<const std::uint8_t*>(from);
    const auto turn = static_cast<std::uint8_t>((std::is_signed_v<T> ? 0x80 : 0) ^ (p_.least ? 0xff : 0));
    std::uint8_t greatest = 0;
    std::int64_t k = 0;
    if (n >= bytes) {
      const B turns = broadcast<B>(turn);
      B best{};
      const auto take = [&](std::int64_t i) __attribute__((always_inline)) {
        const B x = load<B>(at + i) ^ turns;
        best = x > best ? x : best;
      };
      for (; k + bytes <= n; k += bytes) take(k);
      take(n - bytes);  // some again
      for (std::int64_t b = 0; b < bytes; ++b) greatest = std::max<std::uint8_t>(greatest, best[b]);
    } else {
      for (; k < n; ++k) greatest = std::max(greatest, static_cast<std::uint8_t>(at[k] ^ turn));
    }
    const int value = greatest ^ turn;
    const void* place = nullptr;
    if constexpr (Last) {
      std::int64_t last = n - 1;
      while (at[last] != value) --last;
      place = at + last;
    } else {
      place = std::memchr(at, value, static_cast<std::size_t>(n));
    }
    return {greatest, static_cast<const std::uint8_t*>(place) - at};
  }

  // Of a row of neighbors. Each lane keeps the best of every width-th element.
  found along(const T* from, std::int64_t n) const {
    if constexpr (sizeof(T) == 1) return along_bytes(from, n);
    U best, place;
    if (n < width) {
      T padded[width];
      std::fill_n(padded, width, from[0]);
      std::copy_n(from, n, padded);
      best = load_keys(padded);
      place = numbered(0);
      place = place < broadcast<U>(static_cast<K>(n)) ? place : broadcast<U>(0);
    } else {
      best = load_keys(from);
      place = numbered(0);
      U here = place;
      const auto take = [&](std::int64_t k) __attribute__((always_inline)) {
        const U x = load_keys(from + k), takes = better(x, best);
        best = (rebind_t<U, std::make_signed_t<K>>)takes ? x : best;
        place = (rebind_t<U, std::make_signed_t<K>>)takes ? here : place;
      };
      std::int64_t k = width;
      for (; k + width <= n; k += width) here += K(width), take(k);
      if (k < n) here = numbered(n - width), take(n - width);  // some again
    }
    const K greatest = reduce_max(best);
    const U has = (U)(best == broadcast<U>(greatest));
    const K at = Last ? reduce_max(place & has) : reduce_min(place | ~has);
    return {greatest, static_cast<std::int64_t>(at)};
  }
  void in_stretches(thread_pool& pool) const {
    constexpr std::int64_t most = 64;
    const std::int64_t stretches = std::min(most, 2 * static_cast<std::int64_t>(pool.size()));
    const std::int64_t each = (p_.extent + stretches - 1) / stretches;
    for (std::int64_t o = 0; o < p_.outer; ++o) {
      found part[most];
      pool.parallel_for(stretches, [&](std::int64_t s, unsigned) {
        part[s] = along(at(o, s * each, 0), std::min(each, p_.extent - s * each));
        part[s].place += s * each;
      });
      found all = part[0];
      for (std::int64_t s = 1; s < stretches; ++s) all.take(part[s].key, part[s].place);
      p_.places[o] = all.place;
    }
  }

  void across(thread_pool& pool) const {
    constexpr std::int64_t block = 4 * width;
    const std::int64_t blocks = (p_.inner + block - 1) / block;
    const std::int64_t each = std::max<std::int64_t>(1, grain / (p_.extent * std::min(p_.inner, block)));
    pool.parallel_for((p_.outer * blocks + each - 1) / each, [&](std::int64_t task, unsigned) {
      for (std::int64_t t = task * each; t < std::min(p_.outer * blocks, (task + 1) * each); ++t) {
        const std::int64_t o = t / blocks, first = t % blocks * block, n = std::min(block, p_.inner - first);
        if (n < width)
          few_columns(o, first, n);
        else if (n > 2 * width)
          columns<4>(o, first, n);
        else
          columns<2>(o, first, n);
      }
    });
  }
  // What each of these columns comes to; `read(k, b)` gives block b of row k.
  template <int N, class Read> KILN_FN void fold(const Read& read, U (&place)[N]) const {
    using S = rebind_t<U, std::make_signed_t<K>>;
    U best[N], here = broadcast<U>(0);
#pragma GCC unroll 4
    for (int b = 0; b < N; ++b) best[b] = read(0, b), place[b] = broadcast<U>(0);
    for (std::int64_t k = 1; k < p_.extent; ++k) {
      here += K(1);
#pragma GCC unroll 4
      for (int b = 0; b < N; ++b) {
        const U x = read(k, b), takes = better(x, best[b]);
        best[b] = (S)takes ? x : best[b];
        place[b] = (S)takes ? here : place[b];
      }
    }
  }
  // N registers; those that reach past the n-th column end there instead, and do some twice.
  template <int N> void columns(std::int64_t o, std::int64_t i, std::int64_t n) const {
    U place[N];
    std::int64_t column[N];
    for (int b = 0; b < N; ++b) column[b] = i + std::min<std::int64_t>(b * width, n - width);
    fold<N>(
        [&](std::int64_t k, int b) __attribute__((always_inline)) { return load_keys(at(o, k, column[b])); }, place);
    for (int b = 0; b < N; ++b) write(o, column[b], width, place[b]);
  }
  void few_columns(std::int64_t o, std::int64_t i, std::int64_t n) const {
    U place[1];
    T padded[width] = {};
    fold<1>(
        [&](std::int64_t k, int) {
          std::copy_n(at(o, k, i), n, padded);
          return load_keys(padded);
        },
        place);
    write(o, i, n, place[0]);
  }
  void write(std::int64_t o, std::int64_t i, std::int64_t n, U place) const {
    for (std::int64_t j = 0; j < n; ++j) p_.places[o * p_.inner + i + j] = static_cast<std::int64_t>(place[j]);
  }

  const extreme_problem& p_;
  U turn_;
};

}  // namespace kiln::kernels
