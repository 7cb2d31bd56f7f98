#pragma once
#include <optional>
#include <string>
#include <vector>

#include "kiln/backend/hip/context.hpp"
#include "kiln/core/source_writer.hpp"
#include "kiln/graph/op_source.hpp"
#include "kiln/lower/row_body.hpp"
#include "kiln/runtime/kernel.hpp"

namespace kiln::hip {

/// A row body ready to be written as a kernel: value k is what instruction k of the body gives.
struct row_program : lower::row_body<dims> {
  module_graph body;

  dtype type(std::uint32_t k) const { return body[k].results[0].type; }
  const operation& op(std::uint32_t k) const { return body[k].op; }
  bool full_parameter(std::size_t k) const { return values[parameters[k]].full; }
  bool is_full_parameter(std::uint32_t k) const { return values[k].op == lower::row_op::parameter && values[k].full; }
  /// Whether every float in memory has 16 bits, so that computations in float need not be exact to their last bit.
  bool short_floats() const;
  /// Whether a dtype `is_narrow`.
  bool narrow() const;
  /// Empty where the body is no row body, or has a dtype without a kernel.
  static std::optional<row_program> make(const module_graph& body);
};

/// Text of a kernel under construction.
class kernel_text : public source_writer {
 public:
  kernel_text() = default;
  /// Of a kernel that computes values of `p`; null for none.
  explicit kernel_text(const row_program* p) : short_floats_(p && p->short_floats()), narrow_(p && p->narrow()) {}
  template <class... Pieces> void open(const Pieces&... pieces) { line(pieces..., " {"); }
  void close(std::string_view end = "}") { line(end); }
  /// Opens a kernel: its threads a block and, where registers are to be few enough for that, blocks that run together
  /// on a multiprocessor; then what stands between those and its body. A kernel that `waits` itself calls await_last().
  struct bounds {
    bounds(int threads, int together = 0, bool waits = false) : threads(threads), together(together), waits(waits) {}
    int threads, together;
    bool waits;
  };
  template <class... Pieces> void open_kernel(const bounds& b, const Pieces&... pieces) {
    open("extern \"C\" __global__ void __launch_bounds__(", b.threads,
         b.together > 0 ? ", " + std::to_string(b.together) : "", ") ", pieces...);
    line(b.waits ? "let_next_begin();" : "begin_kernel();");
  }
  /// The kernel reads or writes elements of this type: what converts them is included.
  void moves(dtype t) { narrow_ = narrow_ || is_narrow(t); }
  /// A part of an op over named values, as an expression; statements that it needs become lines.
  std::string expression(const operation& op, trace_part part, dtype type, const std::vector<std::string>& names,
                         std::size_t conditions, std::string_view temporary);
  /// The whole source of the kernel `entry`: the headers of what it calls come first, and no more, since reading them
  /// is most of a compilation.
  source whole(std::string entry) const;
  /// What every kernel's source begins with: the headers of `functions` of kiln.
  static std::string prelude(std::span<const std::string> functions = {}, bool narrow = false);

 private:
  bool short_floats_ = false;  ///< functions are the shorter ones of elements.hpp
  bool narrow_ = false;
  std::vector<std::string> functions_;  ///< what expressions called
};

/// Whether a function of kiln that an op's text calls takes many instructions.
bool is_long_function(std::string_view name);

/// Names of types in kernels.
std::string_view stored_name(dtype t);
std::string_view value_name(dtype t);
/// A constant of the dtype's compute type.
std::string constant_text(dtype t, const literal& value);
/// Writes `const T v<k> = …;` for a constant or the value of a pointwise op, its operands being named v<i>; nothing for
/// views, which have the names of their sources.
void write_value(kernel_text& out, const row_program& p, std::uint32_t k);

/// Loops over operands (parameters, then results): extents, and each operand's steps, outermost first. Dims are joined
/// where every operand is contiguous across them.
struct loop_nest {
  std::vector<std::int64_t> extent;
  std::vector<std::vector<std::int64_t>> step;  ///< by operand
  std::int64_t total() const {
    std::int64_t n = 1;
    for (std::int64_t e : extent) n *= e;
    return n;
  }
};

/// The nest of the dims that `use` takes; `lens` are the full extents, an operand without a dim of that extent repeats.
/// With `sorted`, dims stand in the order of the last operand's steps, largest first.
loop_nest make_nest(std::span<const std::int64_t> lens, std::span<const tensor> in, std::span<const tensor> out,
                    const std::vector<bool>& use, bool sorted);

/// Whether an operand's elements along the last dim of the nest can be moved `width` at a time.
bool movable(const loop_nest& n, std::size_t operand, const tensor& t, std::int64_t width);

/// Numbers in a kernel: written into its text, or, where a program's sizes change from run to run, passed to it.
class numbers {
 public:
  explicit numbers(bool passed) : passed_(passed) {}
  /// The text of a number; 0 and 1 are always written, because they decide what the text is.
  std::string operator()(std::int64_t value) {
    if (!passed_ || value == 0 || value == 1) return std::to_string(value) + (value >> 31 ? "ll" : "");
    values_.push_back(value);
    return "index(z.at[" + std::to_string(values_.size() - 1) + "])";
  }
  bool passed() const { return passed_; }
  const std::vector<std::int64_t>& values() const { return values_; }

 private:
  bool passed_;
  std::vector<std::int64_t> values_;
};

/// Numbers that one kernel can be passed.
inline constexpr std::size_t most_numbers = 160;
struct passed_numbers {
  std::int64_t at[most_numbers] = {};
};

/// A kernel for certain sizes: its source, how it is launched, and the numbers to pass.
struct row_kernel_plan {
  source what;
  extent3 grid, block;
  std::vector<std::int64_t> numbers;
  bool passes_numbers = false;
  std::size_t partial_bytes = 0;  ///< scratch of several kernels
  struct stage {
    source what;
    extent3 grid, block;
  };
  std::vector<stage> later;  ///< kernels after the first, where blocks share rows
};

row_kernel_plan plan_pointwise(const row_program& p, std::span<const tensor> in, std::span<const tensor> out,
                               bool dynamic);
row_kernel_plan plan_reduce(const row_program& p, std::span<const tensor> in, std::span<const tensor> out, bool dynamic,
                            const architecture& where);

}  // namespace kiln::hip
