#pragma once
#include <cstring>

#include "kiln/backend/hip/impl/rows/row_program.hpp"
#include "kiln/backend/hip/kernels/index/arguments.hpp"
#include "kiln/backend/hip/kernels/reduce/arguments.hpp"
#include "kiln/backend/hip/lower.hpp"
#include "kiln/meta/type_name.hpp"

namespace kiln::hip {

/// The numbers of a call: a struct of kernels/ that host and device share, as bytes. None by default.
struct call_numbers {
  std::string type;
  std::vector<std::byte> value;
  call_numbers() = default;
  template <class T> call_numbers(const T& numbers) : type(type_name<T>()), value(sizeof numbers) {
    static_assert(sizeof(T) % 8 == 0, "numbers stand in a kernel's text as words of eight bytes");
    std::memcpy(value.data(), &numbers, sizeof numbers);
  }
};

/// One launch of a kernel whose threads each call one device function.
struct index_call {
  std::string entry;               ///< the kernel's name
  std::string header;              ///< of kernels/, where the function is
  std::vector<std::string> types;  ///< of the operands as the kernel sees them: inputs, results, scratch
  std::string call;                ///< over p0, p1, ..., n (the numbers), at or row and lane, and faults
  call_numbers numbers;
  std::int64_t work = 0;       ///< threads, or rows
  int lanes = 0;               ///< threads that work a row, of one block; 0: each thread works one element
  int cluster = 0;             ///< where not 0, `work` clusters of so many blocks of `lanes` threads run the call
  int shared_bytes = 0;        ///< of each block, at `shared`
  bool short_results = false;  ///< as in `source`
  int each = 0;   ///< of much work: elements that a thread has under way, all sizes being in the text; 0: never
  int makes = 1;  ///< elements, about, of a piece of work
};

/// What a kernel's text is made for beside its call.
struct call_form {
  bool narrow = false;  ///< int holds every place in the operands
  int each = 0;         ///< not 0: numbers and work stand in the text, and a thread works so many elements
  bool written() const { return each != 0; }
};
/// The text of a call's kernel.
std::string call_text(const index_call& c, const call_form& how);

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
  gpu::axis_sizes sizes(std::int64_t count = 1) const { return {extent, inner, count}; }
};

/// Builds such calls and launches them, one after the other.
class index_kernel : public gpu_kernel {
 public:
  using gpu_kernel::gpu_kernel;
  void prepare(std::span<const tensor> in, std::span<const tensor> out) const override;
  bool reports_faults() const override { return checks_; }
  std::string fault_text() const override { return name_ + ": an index lies within the extent"; }
  void run(const launch& l) const override;

 protected:
  virtual std::vector<index_call> calls(std::span<const tensor> in, std::span<const tensor> out,
                                        const bindings* symbols) const = 0;
  /// Launches calls whose operands are those of a launch, then `rooms`.
  void give(const launch& l, const std::vector<index_call>& calls, std::span<const std::byte* const> rooms) const;
  /// Builds their kernels.
  void build(const std::vector<index_call>& calls, std::span<const tensor> in, std::span<const tensor> out) const;
  /// Whether the device, where it is here, has room for the call's clusters.
  bool has_room(const index_call& c) const;
  bool checks_ = false;
  bool fixed_ = false;  ///< extents are the same in every run
  /// Whether sizes stand in the text of a call's kernel: of much work, whose divisions are then multiplications. Small
  /// ones of one kind share a kernel.
  bool is_written(const index_call& c) const {
    constexpr std::int64_t much = std::int64_t{1} << 18;
    return fixed_ && c.each > 0 && c.lanes == 0 && c.work >= much / c.makes;
  }

 private:
  call_form form_of(const index_call& c, std::span<const tensor> in, std::span<const tensor> out) const;
  std::shared_ptr<const function> function_of(const index_call& c, const call_form& how) const;
  by_sizes<std::shared_ptr<const function>> built_;
};

/// The calls of one op for certain operands; the op's attributes are bound to the run's symbols.
using calls_of = std::vector<index_call> (*)(const operation& op, std::span<const tensor> in,
                                             std::span<const tensor> out);
/// Bytes that such calls need beside their operands.
using room_of = std::size_t (*)(const operation& op, std::span<const tensor> in, std::span<const tensor> out);

/// An op of kiln's that has such calls.
struct index_family {
  bool (*is)(const operation& op);
  calls_of make;
  bool checks = false;    ///< indices are checked
  bool computes = false;  ///< values are computed with, not only moved
  room_of room = nullptr;
  int each = 0;  ///< of its calls
};
template <class Op> bool is_op(const operation& op) { return op.is<Op>(); }

/// The kernel of an op of a family for a request; with `clears` its room is zero when it begins.
std::unique_ptr<kernel> make_index_kernel(const context_pointer& where, const kernel_request& r,
                                          const index_family& family, bool clears = false);

/// A type of 1, 2, 4, 8 or 16 bytes in kernels that move words.
std::string_view word_name(std::size_t bytes);

/// A type of as many bytes, and how many elements `each` of that size fill one: what moves data, whatever it means.
struct mover {
  std::string type;
  std::int64_t elements = 1;
  mover(dtype t, std::int64_t contiguous, std::span<const tensor> operands);
};

/// The name of a dtype's elements in kernels.
inline std::string name_of(dtype t) { return std::string(stored_name(t)); }
}  // namespace kiln::hip
