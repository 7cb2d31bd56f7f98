#pragma once
#include "kiln/backend/eigen/tile_program.hpp"

namespace kiln::eigen {

/// Up to N trivial values, of which only those in use are ever touched.
template <class T, std::size_t N> class stack_list {
 public:
  void push_back(const T& value) {
    if (count_ == N) raise(fault::of(errc::limit, "operands of one kernel", N, N + 1));
    new (bytes_ + count_++ * sizeof(T)) T(value);
  }
  std::size_t size() const { return count_; }
  T* begin() { return reinterpret_cast<T*>(bytes_); }
  T* end() { return begin() + count_; }
  const T* begin() const { return reinterpret_cast<const T*>(bytes_); }
  const T* end() const { return begin() + count_; }
  T& operator[](std::size_t i) { return begin()[i]; }
  const T& operator[](std::size_t i) const { return begin()[i]; }

 private:
  static_assert(std::is_trivially_destructible_v<T>);
  std::size_t count_ = 0;
  alignas(T) std::byte bytes_[N * sizeof(T)];
};

/// The loops around a tile program for given operands: dims kept and folded, each joined where every operand is
/// contiguous across them.
struct row_loops {
  static constexpr std::size_t most_operands = 48;
  ints kept, folded;  // extents
  // steps in elements, by operand (parameters, then results)
  struct steps {
    ints kept, folded;
  };
  stack_list<steps, most_operands> operand;

  std::int64_t rows() const { return product(kept); }
  std::int64_t row() const { return product(folded); }
};

/// Runs a program over whole tensors; scratch as `rows_scratch_bytes` says.
void run_rows(const tile_program& p, const launch& l);
std::size_t rows_scratch_bytes(const tile_program& p, std::span<const tensor> in, std::span<const tensor> out,
                               unsigned threads);

/// A kernel that runs a fused pointwise or reduction body; `parameters` are their extents before they are broadcast to
/// those of the body, at its rank, if known.
std::unique_ptr<kernel> make_rows_kernel(const module_graph& body, std::string name,
                                         std::span<const dims> parameters = {});

}  // namespace kiln::eigen
