#pragma once
#include <functional>

#include "kiln/pass/store_weights.hpp"
#include "kiln/quantize/int8.hpp"

// What all forms of weights in blocks share.
namespace kiln::quantize::detail {

/// What reads a matrix that is to be stored: of each module, in order.
using matrix_readers = std::vector<small_vector<value_id>>;

/// The instructions of these ops, "dot" or "gather", whose matrices are stored; errors as `int4_options` says.
matrix_readers chosen_readers(program& p, std::span<const std::string> ops, std::span<const std::string> exclude);

literal bytes_literal(const shape& s, std::span<const std::uint8_t> bytes);

/// A matrix [rows, depth], and the instruction that reads it.
struct read_matrix {
  std::uint32_t module = 0;
  value_id reader;
  std::string name;  ///< the reader's
  std::span<const float> weights;
  std::int64_t rows = 0, depth = 0;
};

/// Gives the form of a matrix.
using matrix_store = std::function<stored_matrix(const read_matrix& matrix, pass_note& note)>;

/// Says of a matrix what became of it.
void remark_on(const read_matrix& m, std::string_view what, pass_note& note);

/// The program with the matrices of readers stored so, in blocks of `block`. No matrix to store is an
/// `invalid_argument` error; one that is not finite stays, and a remark names it, as one does that is padded to a
/// block. `p` is moved from at the end.
quantized_program stored_program(program& p, const matrix_readers& readers, std::int64_t block,
                                 const matrix_store& store);

}  // namespace kiln::quantize::detail
