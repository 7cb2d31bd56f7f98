#pragma once
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "kiln/backend/eigen/index.hpp"
#include "kiln/op/index/common.hpp"
#include "kiln/runtime/thread_pool.hpp"

// What gathers and scatters share: indices as places, checked.
namespace kiln::eigen {

constexpr bool is_index_type(dtype t) { return t == dtype::i64 || t == dtype::i32; }
inline kernels::index_list index_list_of(const tensor& t) { return {t.data, t.type == dtype::i64}; }

[[noreturn]] inline void raise_index(std::int64_t index, std::int64_t extent, std::int64_t axis) {
  raise(fault::of(errc::invalid_argument, "an index along axis " + std::to_string(axis) + " lies within its extent",
                  "[-" + std::to_string(extent) + ", " + std::to_string(extent) + ")", index));
}
/// Raises for the first index from `first` on that lies outside; there is one.
[[noreturn]] inline void raise_first(const kernels::index_list& list, std::int64_t first, std::int64_t extent,
                                     std::int64_t axis) {
  while (list[first] >= -extent && list[first] < extent) ++first;
  raise_index(list[first], extent, axis);
}

/// Places of an extent that `count` indices name.
inline void find_places(thread_pool& pool, const kernels::index_list& list, std::int64_t count, std::int64_t extent,
                        std::int64_t axis, std::int64_t* to) {
  constexpr std::int64_t grain = 16384;
  pool.parallel_for((count + grain - 1) / grain, [&](std::int64_t task, unsigned) {
    const std::int64_t first = task * grain, n = std::min(grain, count - first);
    if (!kiln_eigen_index()->places(list, first, n, extent, 1, to + first)) raise_first(list, first, extent, axis);
  });
}

/// Index tuples over the dims of data from `first_dim` on, as places of the slices after them.
class tuple_places {
 public:
  tuple_places(const kernels::index_list& list, const ints& lens, std::size_t first_dim, std::size_t tuple)
      : list_(list), first_(first_dim), extents_(lens.begin() + first_dim, lens.begin() + first_dim + tuple) {}

  /// Places of tuples [first, first + n).
  void find(std::int64_t first, std::int64_t n, std::int64_t* to) const {
    if (extents_.size() == 1) {
      if (!kiln_eigen_index()->places(list_, first, n, extents_[0], 1, to))
        raise_first(list_, first, extents_[0], static_cast<std::int64_t>(first_));
    } else if (list_.wide) {
      find(static_cast<const std::int64_t*>(list_.at), first, n, to);
    } else {
      find(static_cast<const std::int32_t*>(list_.at), first, n, to);
    }
  }

 private:
  template <class Index> void find(const Index* indices, std::int64_t first, std::int64_t n, std::int64_t* to) const {
    const std::size_t tuple = extents_.size();
    indices += first * static_cast<std::int64_t>(tuple);
    for (std::int64_t r = 0; r < n; ++r, indices += tuple) {
      std::int64_t place = 0;
      for (std::size_t d = 0; d < tuple; ++d) {
        const std::int64_t extent = extents_[d], k = indices[d] < 0 ? indices[d] + extent : indices[d];
        if (static_cast<std::uint64_t>(k) >= static_cast<std::uint64_t>(extent))
          raise_index(indices[d], extent, static_cast<std::int64_t>(first_ + d));
        place = place * extent + k;
      }
      to[r] = place;
    }
  }

  kernels::index_list list_;
  std::size_t first_;
  std::vector<std::int64_t> extents_;
};

/// Positions of a block of indices.
using position_block = std::array<std::int64_t, kernels::index_block + 8>;

/// An index for each element, along an axis: stretches of indices whose elements lie in one region of the data.
class element_stretches {
 public:
  element_stretches(const ints& data, const ints& indices, std::int64_t axis) {
    const auto a = static_cast<std::size_t>(normal_axis(axis, data.size()));
    axis_ = static_cast<std::int64_t>(a);
    extent_ = data[a];
    step_ = detail::count(data, a + 1, data.size());
    // indices that reach less far than the data after the axis are taken by rows
    whole_ = std::equal(data.begin() + a + 1, data.end(), indices.begin() + a + 1);
    outer_ = whole_ ? a : data.size() - 1;
    length_ = detail::count(indices, outer_, indices.size());
    inner_ = whole_ ? step_ : length_;
    stretches_ = detail::count(indices, 0, outer_);
    // what lies before the axis is one stretch after the other where no dim but the first is cut
    follows_ = whole_ && (a == 0 || std::equal(data.begin() + 1, data.begin() + a, indices.begin() + 1));
    for (std::size_t d = 0; d < outer_; ++d) {
      lens_.push_back(indices[d]);
      steps_.push_back(d == a ? 0 : detail::count(data, d + 1, data.size()));
    }
  }

  std::int64_t axis() const { return axis_; }
  std::int64_t stretches() const { return stretches_; }
  std::int64_t length() const { return length_; }  ///< indices of a stretch
  std::int64_t inner() const { return inner_; }
  std::int64_t region() const { return extent_ * step_; }  ///< elements of a stretch's region
  bool whole() const { return whole_; }                    ///< each stretch has a region of its own

  /// The data's element from which the positions of stretch `s` count.
  std::int64_t base(std::int64_t s) const {
    std::int64_t at = 0;
    for (std::size_t d = outer_; d-- > 0; s /= lens_[d]) at += s % lens_[d] * steps_[d];
    return at;
  }
  bool follows() const { return follows_; }  ///< stretch s has region s of the data
  /// Positions of elements [first, first + n) of stretch s, n <= index_block, counted from its base. Where stretches
  /// follow each other, those after its last one are the next one's. `to` has room for a vector more.
  void positions(kernels::index_list list, std::int64_t s, std::int64_t first, std::int64_t n, std::int64_t* to) const {
    list.at = static_cast<const std::byte*>(list.at) + s * length_ * (list.wide ? 8 : 4);
    if (!kiln_eigen_index()->element_positions({list, inner_, step_, extent_, length_, follows_ ? region() : 0}, first,
                                               n, to))
      raise_first(list, first, extent_, axis_);
  }

 private:
  std::size_t outer_ = 0;
  std::int64_t axis_ = 0, extent_ = 1, step_ = 1, length_ = 1, inner_ = 1, stretches_ = 1;
  bool whole_ = true, follows_ = true;
  std::vector<std::int64_t> lens_, steps_;
};

/// Scatters, with any reduction.
std::unique_ptr<kernel> lower_scatter(const kernel_request& r);

}  // namespace kiln::eigen
