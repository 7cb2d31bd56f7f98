#pragma once
#include "kiln/lower/buffer.hpp"
#include "kiln/op/words.hpp"

/// The frozen form of a static program: records of numbers in one array of words.
namespace kiln::aot {

using lower::memory;

/// Where a buffer is.
struct location {
  memory where = memory::arena;
  std::int64_t index = 0;  ///< which input, weight or constant
  std::int64_t base = 0;   ///< position in the arena or among prepared weights in bytes
};

/// A value in memory: its buffer, and its layout there, in elements.
struct place {
  location at{};
  dtype type = dtype::f32;
  ints lens{}, strides{};
  std::int64_t offset = 0;
};

/// An instruction inside a step. Parameter k of a body reads input k of its step.
struct node {
  static constexpr std::int64_t parameter = -1, literal = -2;
  std::int64_t op = parameter;  ///< place in the registry
  op_kind kind = op_kind::pointwise;
  std::int64_t attributes = 0;  ///< position of its words; the element's bits of a literal
  dtype type = dtype::f32;
  ints lens{};
  inline_vector<std::uint32_t, 6> inputs{};
};

/// `winograd_nchw` reads and writes NCHW; the last three are convolutions with results in NHWC, and `windows` products
/// of rows with a matrix, too.
enum class step_kind : std::uint8_t {
  copy,
  pointwise,
  reduce,
  product,
  other,
  winograd_nchw,
  windows,
  winograd_nhwc,
  depthwise
};

/// A range of records of one type.
struct table {
  std::int64_t at = 0, count = 0;
};

/// What a step computes: all but which buffers it reads and writes. Steps that compute the same share one.
struct kernel {
  step_kind kind = step_kind::copy;
  std::int64_t op = -1, attributes = 0;  ///< kind other
  table inputs{}, outputs{};             ///< places whose `at` is left open
  table nodes{}, results{};              ///< the body and, for each output, the node that makes it
};

/// One call of a kernel.
struct step {
  std::int64_t kernel = 0;   ///< position of its words
  table buffers{};           ///< a location for each input, then for each output
  std::int64_t scratch = 0;  ///< position in the arena of memory of its own
};

/// A parameter or result of the whole program.
struct signature {
  place where{};
  table name{};
  std::int64_t elements = 0;
};

/// What stands at the front of the words.
struct header {
  table steps{}, inputs{}, weights{}, outputs{}, constants{};
  table prepared{};  ///< weights that steps read in another form (prepared_weight)
  std::int64_t arena_bytes = 0, prepared_bytes = 0;
  table fault{};    ///< why the program cannot be built, in the user's words
  table printed{};  ///< the optimized program as text, where it was asked for
};

/// A constant that the program embeds: its elements follow each other, one word each.
struct constant {
  dtype type = dtype::f32;
  table values{};
};

/// The K-th record of a table.
template <class T> constexpr T record(const std::int64_t* all, const table& t, std::size_t k) {
  return from_words<T>(all + static_cast<std::size_t>(t.at) + k * word_count<T>);
}

}  // namespace kiln::aot
