#pragma once
#include <cstring>

#include "kiln/backend/eigen/affine.hpp"
#include "kiln/backend/eigen/impl/int8/integer_epilogue.hpp"
#include "kiln/kernel/int8/problem.hpp"

/// What integer products add to their sums, for one unit.
namespace kiln::eigen::integer_epilogues {

// The addends of an integer product: numbers for each column, numbers for each pixel of an image and column, and what
// only the run knows.
class integer_addends {
 public:
  // Begins with numbers for the columns; a convolution's columns are dim 1 of what it adds, a product's the last dim.
  void begin(std::vector<std::int32_t> of_columns, bool convolves) {
    columns_ = static_cast<std::int64_t>(of_columns.size());
    shift_ = std::move(of_columns);
    shift_.resize(shift_.size() + 64, 0);
    convolves_ = convolves;
  }

  // A constant addend with one number for each column, or, in a convolution, for each pixel of an image and column,
  // joins what the kernel keeps; others stay open until the run.
  void take(const integer_addend& a, const kernel_request& r) {
    const literal* const l = r.constants[a.input];
    const layout& at = r.constant_layouts[a.input];
    if (!l || !is_constant(at.lens)) return open_.push_back(a);
    const ints lens = to_ints(at.lens), strides = to_ints(at.strides);
    const auto step_of = [&](std::size_t d) { return lens[d] == 1 ? 0 : strides[d]; };
    const auto column_bytes = static_cast<std::size_t>(columns_) * 4;
    // calls f(values) with the constant's numbers from its first one on
    const auto reading = [&](auto&& f) {
      const argument aligned(*l);
      f(aligned.as<std::int32_t>().data() + at.offset.value());
    };
    if (!has_other_dims(lens, strides)) {
      const buffer sums = r.packed(column_bytes, [&](std::byte* memory) {
        auto* const to = reinterpret_cast<std::int32_t*>(memory);
        std::copy_n(shift_.begin(), columns_, to);
        reading([&](const std::int32_t* from) {
          for (std::int64_t n = 0; n < columns_; ++n) add_to(to[n], a.sign, from[n * step_of(column_dim(lens.size()))]);
        });
      });
      std::memcpy(shift_.data(), sums.data(), column_bytes);
      taken_.push_back(a.input);
      return;
    }
    if (!convolves_ || step_of(0) != 0) return open_.push_back(a);
    ints pixels, index;
    for (std::size_t d = 2; d < lens.size(); ++d) pixels.push_back(lens[d]);
    const std::size_t bytes = static_cast<std::size_t>(product(pixels)) * column_bytes;
    if (less_ && less_.size() != bytes) return open_.push_back(a);
    taken_.push_back(a.input);
    less_ = r.packed(bytes, [&, before = less_](std::byte* memory) {
      if (before)
        std::memcpy(memory, before.data(), bytes);
      else
        std::memset(memory, 0, bytes);
      index.resize(pixels.size(), 0);
      auto* to = reinterpret_cast<std::int32_t*>(memory);
      reading([&](const std::int32_t* from) {
        do {
          std::int64_t offset = 0;
          for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * step_of(d + 2);
          for (std::int64_t n = 0; n < columns_; ++n) add_to(*to++, -a.sign, from[offset + n * step_of(1)]);
        } while (next_index(index, pixels));
      });
    });
  }

  // Whether the kernel keeps input `i`.
  bool took(std::size_t i) const { return std::find(taken_.begin(), taken_.end(), i) != taken_.end(); }
  // Whether numbers for the columns may be all that is added, and whether they are in a run.
  bool by_columns() const { return !less_; }
  bool by_columns(std::span<const tensor> in) const { return by_columns() && open_by_columns(in); }
  std::size_t kept_bytes() const { return less_.size(); }
  // 32-bit numbers of memory that `describe` takes.
  std::int64_t open_numbers(std::int64_t rows) const { return open_.empty() ? 0 : (rows + 1) * (columns_ + 64); }

  // Writes them to `p`. `seen(t)` is an operand of the result's rank with its columns last, `lens` the extents of the
  // result so.
  template <class Seen>
  void describe(kernels::integer_problem& p, std::span<const tensor> in, const ints& lens, std::int32_t* memory,
                const Seen& seen) const {
    p.shift = shift_.data();
    if (less_) {
      p.less = reinterpret_cast<const std::int32_t*>(less_.data());
      p.less_row = columns_;
      p.less_rows = static_cast<std::int64_t>(less_.size()) / 4 / columns_;
    }
    if (open_.empty()) return;
    if (open_by_columns(in))
      add_columns(p, in, memory);
    else
      add_rows(p, in, lens, memory, seen);
  }

 private:
  std::size_t column_dim(std::size_t rank) const { return convolves_ ? 1 : rank - 1; }

  bool open_by_columns(std::span<const tensor> in) const {
    return std::none_of(open_.begin(), open_.end(),
                        [&](const integer_addend& a) { return has_other_dims(in[a.input].lens, in[a.input].strides); });
  }

  // 32-bit sums wrap.
  static void add_to(std::int32_t& sum, std::int32_t sign, std::int32_t x) {
    const auto more = static_cast<std::uint32_t>(x);
    sum = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum) + (sign < 0 ? 0 - more : more));
  }

  // Whether an addend differs along another dim than the columns.
  template <class Lens, class Strides> bool has_other_dims(const Lens& lens, const Strides& strides) const {
    bool others = false;
    for (std::size_t d = 0; d < lens.size(); ++d)
      others = others || (d != column_dim(lens.size()) && lens[d] != 1 && strides[d] != 0);
    return others;
  }

  void add_columns(kernels::integer_problem& p, std::span<const tensor> in, std::int32_t* to) const {
    std::copy(shift_.begin(), shift_.end(), to);
    for (const integer_addend& a : open_) {
      const tensor& t = in[a.input];
      const std::size_t column = column_dim(t.rank());
      const std::int64_t step = t.lens[column] == 1 ? 0 : t.strides[column];
      for (std::int64_t n = 0; n < columns_; ++n) add_to(to[n], a.sign, t.as<const std::int32_t>()[n * step]);
    }
    p.shift = to;
  }
  template <class Seen>
  void add_rows(kernels::integer_problem& p, std::span<const tensor> in, const ints& lens, std::int32_t* to,
                const Seen& seen) const {
    for (std::int64_t r = 0; r < p.m; ++r)
      if (p.less)
        std::copy_n(p.less + r % p.less_rows * p.less_row, columns_, to + r * columns_);
      else
        std::fill_n(to + r * columns_, columns_, 0);
    for (const integer_addend& a : open_) {
      const tensor rows = seen(in[a.input]);
      const auto* const from = rows.as<const std::int32_t>();
      ints index(rows.rank(), 0);
      std::int32_t* next = to;
      do {
        std::int64_t offset = 0;
        for (std::size_t d = 0; d < index.size(); ++d) offset += rows.lens[d] == 1 ? 0 : index[d] * rows.strides[d];
        add_to(*next++, -a.sign, from[offset]);
      } while (next_index(index, lens));
    }
    p.less = to;
    p.less_row = columns_;
    p.less_rows = p.m;
  }

  std::int64_t columns_ = 0;
  bool convolves_ = false;
  buffer less_;                       // for each pixel of an image and column
  std::vector<std::int32_t> shift_;   // for each column, and those of a last vector
  std::vector<integer_addend> open_;  // what the run adds
  std::vector<std::size_t> taken_;    // inputs that are part of shift_ and less_
};

}  // namespace kiln::eigen::integer_epilogues
