#pragma once
#include "kiln/kernel/index/order.hpp"

namespace kiln::kernels {

namespace short_lists {

/// Lanes move up by one; the first one is all bits.
template <is_vec V> KILN_FN V moved_up(V v) {
  const V ones = ~V{};
  return [&]<int... L>(std::integer_sequence<int, L...>) __attribute__((always_inline)) {
    return (V)__builtin_shufflevector(ones, v, (L == 0 ? 0 : lanes<V> + L - 1)...);
  }
  (std::make_integer_sequence<int, lanes<V>>{});
}

}  // namespace short_lists

/// The N greatest keys so far in a register, greatest first, with their places: an insertion has no branch. Of equal
/// keys those that were there stay before the new one. Of 64 bits a key of 0 is not taken.
template <class Key, int N> class short_list;

template <int N> class short_list<std::uint32_t, N> {
  using V = vec<std::uint64_t, N>;

 public:
  KILN_FN void insert(std::uint32_t key, std::uint32_t place) {
    const V x = broadcast<V>(candidate(key, place).both), before = short_lists::moved_up(all_);
    const V room = before < x ? before : x;
    all_ = all_ < room ? room : all_;
  }
  bool has(int i) const { return all_[i] != 0; }
  std::uint32_t key(int i) const { return static_cast<std::uint32_t>(all_[i] >> 32); }
  std::uint32_t place(int i) const { return 0xffff'ffffu - static_cast<std::uint32_t>(all_[i]); }

 private:
  using candidate = kernels::candidate<std::uint32_t>;
  V all_{};
};

template <int N> class short_list<std::uint64_t, N> {
  using V = vec<std::uint64_t, N>;

 public:
  KILN_FN void insert(std::uint64_t key, std::uint32_t place) {
    const V x = broadcast<V>(key), at = broadcast<V>(place), before = short_lists::moved_up(keys_);
    const auto here = x > keys_, earlier = x > before;
    places_ = here ? (earlier ? short_lists::moved_up(places_) : at) : places_;
    keys_ = here ? (earlier ? before : x) : keys_;
  }
  bool has(int i) const { return keys_[i] != 0; }
  std::uint64_t key(int i) const { return keys_[i]; }
  std::uint32_t place(int i) const { return static_cast<std::uint32_t>(places_[i]); }

 private:
  V keys_{}, places_{};
};

/// The k <= N best of the elements [first, last) of a row, whose keys `read(at, n)` gives by chunks.
template <int N, class Key, class Read>
void select_few(candidate<Key>* to, std::int64_t first, std::int64_t last, std::int64_t k, std::int64_t chunk,
                const Read& read) {
  using V = native_vec<Key>;
  const int least = static_cast<int>(k) - 1;
  short_list<Key, N> best;
  for (std::int64_t at = first; at < last; at += chunk) {
    const std::int64_t n = std::min(chunk, last - at);
    const Key* const keys = read(at, n);
    const auto insert = [&](std::int64_t i) { best.insert(keys[i], static_cast<std::uint32_t>(at + i)); };
    std::int64_t i = 0;
    if (at == first) {  // the first ones are better than what is there more often than not; two lists wait half as long
      const std::int64_t half = std::min<std::int64_t>(n / 2, 64);
      short_list<Key, N> second;
      for (; i < half; ++i) insert(i), second.insert(keys[half + i], static_cast<std::uint32_t>(at + half + i));
      for (int j = 0; j < k && second.has(j); ++j) best.insert(second.key(j), second.place(j));
      i = 2 * half;
      for (; i < std::min(n, k); ++i) insert(i);
    }
    for (; i + lanes<V> <= n; i += lanes<V>) {
      if (!elementary::native_ops<V>::any((V)(load<V>(keys + i) > broadcast<V>(best.key(least))))) continue;
      for (std::int64_t j = i; j < i + lanes<V>; ++j)
        if (keys[j] > best.key(least)) insert(j);
    }
    for (; i < n; ++i) insert(i);
  }
  int found = 0;
  for (; found < k && best.has(found); ++found) to[found] = {best.key(found), best.place(found)};
  for (std::int64_t at = first; found < k; at += chunk) {
    const std::int64_t n = std::min(chunk, last - at);
    const Key* const keys = read(at, n);
    for (std::int64_t i = 0; i < n && found < k; ++i)
      if (keys[i] == 0) to[found++] = {0, static_cast<std::uint32_t>(at + i)};
  }
}

/// The best of the elements [first, last) of a row.
template <class Key, class Read>
void select_one(candidate<Key>* to, std::int64_t first, std::int64_t last, std::int64_t chunk, const Read& read) {
  using V = native_vec<Key>;
  Key greatest = 0;
  std::int64_t place = first;
  for (std::int64_t at = first; at < last; at += chunk) {
    const std::int64_t n = std::min(chunk, last - at);
    const Key* const keys = read(at, n);
    V most = broadcast<V>(0);
    std::int64_t i = 0;
    for (; i + lanes<V> <= n; i += lanes<V>) {
      const V x = load<V>(keys + i);
      most = most < x ? x : most;
    }
    Key here = reduce_max(most);
    for (; i < n; ++i) here = std::max(here, keys[i]);
    if (here <= greatest) continue;
    greatest = here;
    place = at + std::distance(keys, std::find(keys, keys + n, here));
  }
  *to = {greatest, static_cast<std::uint32_t>(place)};
}

/// The k best of n keys of a short row by counting how many come before each one.
template <class Key>
void select_by_ranks(candidate<Key>* to, const Key* keys, std::int64_t n, std::int64_t k, std::uint32_t first) {
  using V = native_vec<Key>;
  constexpr int width = lanes<V>;
  V number;
  for (int lane = 0; lane < width; ++lane) number[lane] = static_cast<Key>(lane);
  for (std::int64_t i = 0; i < n; i += width) {
    Key own[width] = {};
    std::copy(keys + i, keys + std::min(n, i + width), own);
    const V x = load<V>(own), at = number + static_cast<Key>(i);
    V rank = broadcast<V>(0);  // what is true is all bits, -1
    for (std::int64_t j = 0; j < i; ++j) rank -= (V)(x <= broadcast<V>(keys[j]));
    for (std::int64_t j = i; j < std::min(n, i + width); ++j)
      rank -=
          (V)((x < broadcast<V>(keys[j])) | ((x == broadcast<V>(keys[j])) & (broadcast<V>(static_cast<Key>(j)) < at)));
    for (std::int64_t j = i + width; j < n; ++j) rank -= (V)(x < broadcast<V>(keys[j]));
    for (std::int64_t lane = 0; lane < std::min<std::int64_t>(width, n - i); ++lane)
      if (static_cast<std::int64_t>(rank[lane]) < k)
        to[rank[lane]] = {keys[i + lane], first + static_cast<std::uint32_t>(i + lane)};
  }
}

}  // namespace kiln::kernels
