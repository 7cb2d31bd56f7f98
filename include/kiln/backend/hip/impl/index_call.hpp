#pragma once
#include "kiln/backend/hip/impl/row_program.hpp"
#include "kiln/backend/hip/lower.hpp"

namespace kiln::hip {

/// One launch of a kernel whose threads each call one device function.
struct index_call {
  std::string entry;               ///< the kernel's name
  std::string header;              ///< of kernels/, where the function is
  std::vector<std::string> types;  ///< of the operands as the kernel sees them: inputs, results, scratch
  std::string call;                ///< over p0, p1, …, n (the numbers), at or row and lane, and faults
  std::vector<std::int64_t> numbers;
  std::int64_t work = 0;  ///< threads, or rows
  int lanes = 0;          ///< threads that work a row; 0: each thread works one element
};

/// A tensor around one axis: [outer, extent, inner].
struct axis_extents {
  std::int64_t outer = 1, extent = 1, inner = 1;
  axis_extents(const ints& lens, std::int64_t axis) {
    const std::int64_t a = normal_axis(axis, lens.size());
    for (std::size_t d = 0; d < lens.size(); ++d) {
      const auto at = static_cast<std::int64_t>(d);
      (at < a ? outer : at == a ? extent : inner) *= lens[d];
    }
  }
};

/// Builds and gives such calls; several of them run one behind the other.
class index_kernel : public gpu_kernel {
 public:
  using gpu_kernel::gpu_kernel;
  void prepare(std::span<const tensor> in, std::span<const tensor> out) const override {
    for (const index_call& c : calls(in, out, nullptr)) function_of(c);
  }
  bool reports_faults() const override { return checks_; }
  std::string fault_text() const override { return name_ + ": an index lies within the extent"; }
  void run(const launch& l) const override;

 protected:
  virtual std::vector<index_call> calls(std::span<const tensor> in, std::span<const tensor> out,
                                        const bindings* symbols) const = 0;
  bool checks_ = false;

 private:
  std::shared_ptr<const function> function_of(const index_call& c) const;
  by_sizes<std::shared_ptr<const function>> built_;
};

/// A type of as many bytes, and how many elements `each` of that size fill one: what moves data, whatever it means.
struct mover {
  std::string type;
  std::int64_t elements = 1;
  mover(dtype t, std::int64_t contiguous, std::span<const tensor> operands);
};

/// The name of the type that serves indices of this dtype.
inline std::string name_of(dtype t) { return std::string(stored_name(t)); }

}  // namespace kiln::hip
