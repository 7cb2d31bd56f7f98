#pragma once
#include <cstddef>

#include "kiln/kernel/index/problem.hpp"
#include "kiln/kernel/index/short_list.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::kernels {

/// How elements of a type become keys.
template <class Key>
using key_maker = void (*)(const void* from, std::int64_t n, bool least, Key* to, std::int64_t to_step);

template <class K> class top {
  using best = candidate<K>;
  static constexpr std::int64_t chunk = 4096, few = 16, columns = 16, by_ranks = 96;

 public:
  /// What a thread needs: keys of a chunk or of a block of columns, and candidates.
  static std::size_t worker_bytes(const top_problem& p) {
    return round64(sizeof(K) * key_count(p)) + round64(sizeof(best) * candidates(p));
  }
  static std::size_t scratch_bytes(const top_problem& p, unsigned threads) {
    const std::int64_t stretches = p.stretches(threads);
    return worker_bytes(p) * threads + (stretches > 1 ? sizeof(best) * static_cast<std::size_t>(p.k * stretches) : 0);
  }

  /// Elements have `size` bytes.
  top(const top_problem& p, std::size_t size, key_maker<K> make, std::byte* scratch)
      : p_(p), size_(static_cast<std::int64_t>(size)), make_(make), scratch_(scratch) {}
  void run(thread_pool& pool) const {
    const top_problem& p = p_;
    if (p.outer * p.inner * p.k == 0) return;
    if (p.stretches(pool.size()) > 1) return cut(pool);
    if (p.inner > 1) return across(pool);
    const std::int64_t each = std::max<std::int64_t>(1, 8192 / p.extent);
    pool.parallel_for((p.outer + each - 1) / each, [&](std::int64_t task, unsigned worker) {
      for (std::int64_t o = task * each; o < std::min(p.outer, (task + 1) * each); ++o)
        write(row(o, 0, 0, p.extent, worker), o, 0);
    });
  }

 private:
  static std::size_t round64(std::size_t n) { return (n + 63) / 64 * 64; }
  static std::size_t key_count(const top_problem& p) {
    return static_cast<std::size_t>(p.inner > 1 ? p.extent * columns : std::min(p.extent, chunk));
  }
  // Of many wanted ones all are candidates at once.
  static bool dense(const top_problem& p) { return p.k > few && (p.k * 8 >= p.extent); }
  static std::size_t candidates(const top_problem& p) {
    return static_cast<std::size_t>(p.k <= few ? few : dense(p) ? 2 * p.extent : 2 * p.k + 256);
  }
  K* keys_of(unsigned worker) const { return reinterpret_cast<K*>(scratch_ + worker * worker_bytes(p_)); }
  best* candidates_of(unsigned worker) const {
    return reinterpret_cast<best*>(scratch_ + worker * worker_bytes(p_) + round64(sizeof(K) * key_count(p_)));
  }
  const std::byte* element(std::int64_t o, std::int64_t at, std::int64_t i) const {
    return static_cast<const std::byte*>(p_.x) + ((o * p_.extent + at) * p_.inner + i) * size_;
  }

  // Collects what may be among the k best of a row, whose keys come in order.
  class selection {
   public:
    selection(best* memory, std::int64_t k, std::int64_t capacity) : list_(memory), k_(k), capacity_(capacity) {}

    void add(const K* keys, std::int64_t n, std::uint32_t first) {
      using V = native_vec<K>;
      const auto take = [&](std::int64_t i) { insert({keys[i], first + static_cast<std::uint32_t>(i)}); };
      std::int64_t i = 0;
      for (; i < n && size_ < k_; ++i) take(i);
      for (; i + lanes<V> <= n; i += lanes<V>) {
        if (!elementary::native_ops<V>::any((V)(load<V>(keys + i) > broadcast<V>(least_)))) continue;
        for (std::int64_t j = i; j < i + lanes<V>; ++j)
          if (keys[j] > least_) take(j);
      }
      for (; i < n; ++i)
        if (keys[i] > least_) take(i);
    }
    best* sorted() {
      if (size_ > k_) std::nth_element(list_, list_ + k_ - 1, list_ + size_);
      std::sort(list_, list_ + k_);
      return list_;
    }

   private:
    void insert(best x) {
      list_[size_++] = x;
      if (size_ == k_ && least_ == 0) {
        K least = list_[0].key();
        for (std::int64_t j = 1; j < k_; ++j) least = std::min(least, list_[j].key());
        least_ = least;
      }
      if (size_ < capacity_) return;
      std::nth_element(list_, list_ + k_ - 1, list_ + size_);
      least_ = list_[k_ - 1].key();
      size_ = k_;
    }

    best* list_;
    std::int64_t k_, capacity_, size_ = 0;
    K least_ = 0;
  };

  // The k best of the elements [first, last) of a row of keys that `read(at, n)` gives by chunks.
  template <class Read>
  best* select(best* memory, std::int64_t first, std::int64_t last, std::int64_t k, const Read& read) const {
    if (k == 1) return select_one(memory, first, last, chunk, read), memory;
    if (k > 8 && last - first <= by_ranks) {
      select_by_ranks(memory, read(first, last - first), last - first, k, static_cast<std::uint32_t>(first));
      return memory;
    }
    if (k <= 8) return select_few<8>(memory, first, last, k, chunk, read), memory;
    if (k <= few) return select_few<few>(memory, first, last, k, chunk, read), memory;
    if (!dense(p_)) {
      selection s(memory, k, static_cast<std::int64_t>(candidates(p_)));
      for (std::int64_t at = first; at < last; at += chunk) {
        const std::int64_t n = std::min(chunk, last - at);
        s.add(read(at, n), n, static_cast<std::uint32_t>(at));
      }
      return s.sorted();
    }
    best* const other = memory + p_.extent;
    for (std::int64_t at = first; at < last; at += chunk) {
      const std::int64_t n = std::min(chunk, last - at);
      const K* const keys = read(at, n);
      for (std::int64_t i = 0; i < n; ++i) memory[at + i] = {keys[i], static_cast<std::uint32_t>(at + i)};
    }
    std::int64_t n = last;
    if (k < n && n > 1024) {  // else sorting all takes no longer
      std::copy_n(memory, n, other);
      std::nth_element(other, other + k - 1, other + n);
      const best worst = other[k - 1];
      std::int64_t kept = 0;
      for (std::int64_t i = 0; i < n; ++i) {
        const best x = memory[i];
        memory[kept] = x;
        kept += !(worst < x);
      }
      n = k;
    }
    return sort_by_digits(memory, other, n);
  }
  best* row(std::int64_t o, std::int64_t i, std::int64_t first, std::int64_t last, unsigned worker) const {
    K* const keys = keys_of(worker);
    return select(candidates_of(worker), first, last, p_.k, [&](std::int64_t at, std::int64_t n) {
      make_(element(o, at, i), n, !p_.largest, keys, 1);
      return keys;
    });
  }
  void write(const best* found, std::int64_t o, std::int64_t i) const {
    for (std::int64_t j = 0; j < p_.k; ++j) {
      const std::int64_t to = (o * p_.k + j) * p_.inner + i, at = found[j].place();
      p_.places[to] = at;
      copy_element(to, element(o, at, i));
    }
  }
  void copy_element(std::int64_t to, const std::byte* from) const {
    std::byte* const value = static_cast<std::byte*>(p_.values) + to * size_;
    switch (size_) {
      case 1: *value = *from; break;
      case 2: __builtin_memcpy(value, from, 2); break;
      case 4: __builtin_memcpy(value, from, 4); break;
      default: __builtin_memcpy(value, from, 8); break;
    }
  }
  // A block of columns is turned into rows of keys.
  void across(thread_pool& pool) const {
    const std::int64_t blocks = (p_.inner + columns - 1) / columns;
    pool.parallel_for(p_.outer * blocks, [&](std::int64_t task, unsigned worker) {
      const std::int64_t o = task / blocks, first = task % blocks * columns, n = std::min(columns, p_.inner - first);
      K* const keys = keys_of(worker);
      for (std::int64_t at = 0; at < p_.extent; ++at)
        make_(element(o, at, first), n, !p_.largest, keys + at, p_.extent);
      for (std::int64_t i = 0; i < n; ++i)
        write(select(candidates_of(worker), 0, p_.extent, p_.k,
                     [&](std::int64_t at, std::int64_t) { return keys + i * p_.extent + at; }),
              o, first + i);
    });
  }
  void cut(thread_pool& pool) const {
    const std::int64_t stretches = p_.stretches(pool.size());
    // of nearly equal length: none is shorter than k
    const auto begin = [&](std::int64_t s) { return s * p_.extent / stretches; };
    auto* const merged = reinterpret_cast<best*>(scratch_ + worker_bytes(p_) * pool.size());
    for (std::int64_t o = 0; o < p_.outer; ++o)
      for (std::int64_t i = 0; i < p_.inner; ++i) {
        pool.parallel_for(stretches, [&](std::int64_t s, unsigned worker) {
          const best* const found = stretch(o, i, begin(s), begin(s + 1), worker);
          std::copy_n(found, p_.k, merged + s * p_.k);
        });
        std::nth_element(merged, merged + p_.k - 1, merged + stretches * p_.k);
        std::sort(merged, merged + p_.k);
        write(merged, o, i);
      }
  }
  best* stretch(std::int64_t o, std::int64_t i, std::int64_t first, std::int64_t last, unsigned worker) const {
    if (p_.inner == 1) return row(o, i, first, last, worker);
    K* const keys = keys_of(worker);
    return select(candidates_of(worker), first, last, p_.k, [&](std::int64_t at, std::int64_t n) {
      for (std::int64_t j = 0; j < n; ++j) make_(element(o, at + j, i), 1, !p_.largest, keys + j, 1);
      return keys;
    });
  }

  const top_problem& p_;
  std::int64_t size_;
  key_maker<K> make_;
  std::byte* scratch_;
};

}  // namespace kiln::kernels
