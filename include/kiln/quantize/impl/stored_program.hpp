#pragma once
#include <functional>

#include "kiln/pass/store_weights.hpp"
#include "kiln/quantize/int8.hpp"

// What all forms of weights in blocks share.
namespace kiln::quantize::detail {

/// The instructions of these ops, "dot" or "gather", whose matrices are stored; errors as `int4_options` says.
small_vector<value_id> chosen_readers(program& p, std::span<const std::string> ops,
                                      std::span<const std::string> exclude);

literal bytes_literal(const shape& s, std::span<const std::uint8_t> bytes);

/// Gives the form of the matrix [rows, depth] that an instruction reads.
using matrix_store =
    std::function<stored_matrix(value_id reader, std::span<const float> weights, std::int64_t rows, pass_note& note)>;

/// The program with the matrices of readers stored so. No matrix to store is an `invalid_argument` error; one that is
/// not finite stays, and a remark names it. `p` is moved from at the end.
quantized_program stored_program(program& p, const small_vector<value_id>& readers, const matrix_store& store);

}  // namespace kiln::quantize::detail
