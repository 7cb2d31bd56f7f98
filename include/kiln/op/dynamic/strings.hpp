#pragma once
#include "kiln/op/concepts.hpp"

// Ops over string tensors. What an op needs to know as text (stop words, a delimiter, a pattern) is an operand.
namespace kiln::detail {

/// Operands are so many strings tensors, or the fault.
constexpr std::optional<fault> strings_fault(std::span<const shape> in, std::size_t count) {
  if (in.size() != count) return fault::of(errc::invalid_argument, "number of inputs", count, in.size());
  for (const shape& s : in)
    if (s.type != dtype::string)
      return fault::of(errc::shape_mismatch, "element type of the operands", dtype::string, s.type);
  return std::nullopt;
}

}  // namespace kiln::detail

namespace kiln::op {

enum class letter_case : std::uint8_t { as_is, lower, upper };
constexpr std::string_view to_string(letter_case c) { return enumerator_name(c, {"as_is", "lower", "upper"}); }

/// The strings of [n] or [1, n] that are not stop words (operand 1), in another case (ONNX StringNormalizer); where all
/// are, one empty string.
struct normalize_strings {
  letter_case to = letter_case::as_is;
  bool case_matters = false;  ///< to what counts as a stop word
  dimension count = 0;

  result<shape> compute_shape(std::span<const shape> in) const {
    if (const auto f = detail::strings_fault(in, 2)) return *f;
    if (in[0].rank() == 1) return shape{dtype::string, {count}};
    if (in[0].rank() == 2 && same(in[0].lens[0], 1).value_or(true)) return shape{dtype::string, {1, count}};
    return fault::of(errc::shape_mismatch, "the operand has dims [n] or [1, n]", "one row", in[0].lens);
  }
  small_vector<argument> produce(std::span<const argument> in) const;
};

/// Concatenates the strings of both operands, elements paired as numpy broadcasts (ONNX StringConcat).
struct concat_strings {
  result<shape> compute_shape(std::span<const shape> in) const {
    if (const auto f = detail::strings_fault(in, 2)) return *f;
    const auto lens = kiln::broadcast(in[0].lens, in[1].lens);
    if (!lens) return lens.why();
    return shape{dtype::string, *lens};
  }
  small_vector<argument> produce(std::span<const argument> in) const;
};

/// Whether strings are equal, elements paired as numpy broadcasts.
struct equal_strings {
  result<shape> compute_shape(std::span<const shape> in) const {
    if (const auto f = detail::strings_fault(in, 2)) return *f;
    const auto lens = kiln::broadcast(in[0].lens, in[1].lens);
    if (!lens) return lens.why();
    return shape{dtype::boolean, *lens};
  }
  small_vector<argument> produce(std::span<const argument> in) const;
};

/// Elements of operand 1 where operand 0 (bool) holds, else of operand 2, as numpy broadcasts: handles of one dtype.
struct select_objects {
  result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 3) return fault::of(errc::invalid_argument, "number of inputs", 3, in.size());
    if (in[0].type != dtype::boolean)
      return fault::of(errc::shape_mismatch, "dtype of a condition", dtype::boolean, in[0].type);
    if (!is_object(in[1].type) || in[2].type != in[1].type)
      return fault::of(errc::shape_mismatch, "dtype of the second choice", in[1].type, in[2].type);
    const auto values = kiln::broadcast(in[1].lens, in[2].lens);
    if (!values) return values.why();
    const auto lens = kiln::broadcast(in[0].lens, *values);
    if (!lens) return lens.why();
    return shape{in[1].type, *lens};
  }
  small_vector<argument> produce(std::span<const argument> in) const;
};

/// Pieces of each string between delimiters (operand 1: one string; empty: runs of white space), padded with empty
/// strings in a new last dim, and how many there are (ONNX StringSplit).
struct split_strings {
  std::int64_t most = -1;  ///< splits of a string; -1: all
  dimension pieces = 0;

  result<shapes> compute_shape(std::span<const shape> in) const {
    if (const auto f = detail::strings_fault(in, 2)) return *f;
    if (in[0].rank() == max_rank)
      return fault::of(errc::limit, "the result has no more dims than a tensor may have", max_rank, in[0].rank() + 1);
    shape out{dtype::string, in[0].lens};
    out.lens.push_back(pieces);
    return shapes{out, shape{dtype::i64, in[0].lens}};
  }
  small_vector<argument> produce(std::span<const argument> in) const;
};

/// Whether the whole of each string matches a pattern (operand 1: one string; ECMAScript's grammar without references
/// to what was matched, which is most of RE2's; ONNX RegexFullMatch).
struct match_strings {
  result<shape> compute_shape(std::span<const shape> in) const {
    if (const auto f = detail::strings_fault(in, 2)) return *f;
    return shape{dtype::boolean, in[0].lens};
  }
  small_vector<argument> produce(std::span<const argument> in) const;
};

/// Numbers as text: the shortest decimals that read back as the same number (ONNX Cast to string).
struct print_numbers {
  result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 1) return fault::of(errc::invalid_argument, "number of inputs", 1, in.size());
    return shape{dtype::string, in[0].lens};
  }
  small_vector<argument> produce(std::span<const argument> in) const;
};

/// Text as numbers (ONNX Cast from string); a string that is none is an `invalid_argument` error of the run.
struct read_numbers {
  dtype to = dtype::f32;
  result<shape> compute_shape(std::span<const shape> in) const {
    if (const auto f = detail::strings_fault(in, 1)) return *f;
    return shape{to, in[0].lens};
  }
  small_vector<argument> produce(std::span<const argument> in) const;
};

}  // namespace kiln::op
