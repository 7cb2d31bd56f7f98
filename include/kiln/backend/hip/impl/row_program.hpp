#pragma once
#include <optional>
#include <string>
#include <vector>

#include "kiln/backend/hip/context.hpp"
#include "kiln/core/trace.hpp"
#include "kiln/runtime/kernel.hpp"

namespace kiln::hip {

/// A value of a fused body, as rows see it: full (an element for each of the row's) or one a row. Stage s is one pass
/// over the row; what a reduction of that pass gives belongs to stage s + 1.
struct row_value {
  enum class origin : std::uint8_t { parameter, constant, computed } from = origin::computed;
  dtype type = dtype::f32;
  bool row = false;
  bool fold = false;  ///< a reduction over the row
  int stage = 0;
  std::uint32_t index = 0;  ///< of the parameter
  operation op;
  std::vector<std::uint32_t> in;
  literal constant;
};

/// A fused body of pointwise ops and reductions over one set of axes, ready to be written as a kernel.
struct row_program {
  std::vector<row_value> values;
  std::vector<std::uint32_t> parameters, results;
  std::vector<bool> full_result;  ///< a result of full extents
  std::vector<bool> folded;       ///< by dim; empty without reductions
  int stages = 1;                 ///< passes over a row
  dims full;                      ///< extents of full values
  bool one_element_rows = false;  ///< every folded extent is 1

  bool reduces() const { return !folded.empty(); }
  /// Whether every float in memory has 16 bits, so that computations in float need not be exact to their last bit.
  bool short_floats() const;
  bool full_parameter(std::size_t k) const { return !values[parameters[k]].row; }
  /// Nothing where the body holds something else, or a dtype without a kernel.
  static std::optional<row_program> make(const module_graph& body);
};

/// Text of a kernel under construction.
class kernel_text {
 public:
  template <class... Parts>
  void line(const Parts&... parts) {
    text_.append(static_cast<std::size_t>(depth_) * 2, ' ');
    (add(parts), ...);
    text_ += '\n';
  }
  template <class... Parts>
  void open(const Parts&... parts) {
    line(parts..., " {");
    ++depth_;
  }
  /// Opens a kernel: its threads a block and, where registers are to be few enough for that, blocks that run together
  /// on a multiprocessor; then what stands between those and its body. A kernel that `waits` itself calls await_last().
  struct bounds {
    bounds(int threads, int together = 1, bool waits = false) : threads(threads), together(together), waits(waits) {}
    int threads, together;
    bool waits;
  };
  template <class... Parts>
  void open_kernel(const bounds& b, const Parts&... parts) {
    open("extern \"C\" __global__ void __launch_bounds__(", b.threads,
         b.together > 1 ? ", " + std::to_string(b.together) : "", ") ", parts...);
    line(b.waits ? "let_next_begin();" : "begin_kernel();");
  }
  void close(std::string_view end = "}") {
    --depth_;
    line(end);
  }
  const std::string& str() const { return text_; }

 private:
  void add(std::string_view part) { text_ += part; }
  void add(const std::string& part) { text_ += part; }
  void add(const char* part) { text_ += part; }
  template <class N>
  requires std::is_integral_v<N>
  void add(N number) { text_ += std::to_string(number); }
  std::string text_;
  int depth_ = 0;
};

/// Names of types in kernels.
std::string_view stored_name(dtype t);
std::string_view value_name(dtype t);
scalar_kind kind_of_values(dtype t);
/// What a generated kernel of this text begins with: the headers of what it calls, and no more, since reading them is
/// most of a compilation.
std::string prelude(std::string_view text);
/// A kernel's whole source. With `short_floats`, functions are the shorter ones of elements.hpp.
source whole_source(std::string entry, std::string text, bool short_floats);
/// A constant of the dtype's compute type.
std::string constant_text(dtype t, const literal& value);
/// The start of a fold.
std::string identity_text(const row_value& fold);
/// What a fold over nothing gives.
std::string empty_text(const row_value& fold);
/// A part of an op over named values, as an expression; statements it needs go to `out` before.
std::string traced(kernel_text& out, const operation& op, trace_part part, dtype type,
                   const std::vector<std::string>& names, std::size_t conditions, const std::string& temporary);
/// Writes `const T v<k> = …;` for a computed value that is no fold, its operands being named v<i>.
void write_value(kernel_text& out, const row_program& p, std::uint32_t k);

/// Loops over operands (parameters, then results): extents, and each operand's steps, outermost first. Dims are joined
/// where every operand lies evenly across them.
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
  std::size_t partial_bytes = 0;  ///< scratch of the first of two kernels
  source second;                  ///< of two stages: joins the parts of a row
  extent3 second_grid;
};

row_kernel_plan plan_pointwise(const row_program& p, std::span<const tensor> in, std::span<const tensor> out,
                               bool dynamic);
row_kernel_plan plan_reduce(const row_program& p, std::span<const tensor> in, std::span<const tensor> out, bool dynamic,
                            const architecture& where);

}  // namespace kiln::hip
