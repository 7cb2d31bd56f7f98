#pragma once
#include "kiln/meta/type_list.hpp"

namespace kiln {

struct op_table;

namespace op {
struct bind_dims;
struct bit_cast;
struct block_dequantize;
struct branch;
struct centered_dot;
struct compress;
struct concat_strings;
struct couple_probabilities;
struct cumprod;
struct dequantize_linear;
struct det;
struct dft;
struct dynamic_quantize_linear;
struct equal_strings;
struct grid_sample;
struct integer_convolution;
struct integer_dot;
struct inverse;
struct join_sequence;
struct linear_attention;
struct loop;
struct make_optional;
struct make_sequence;
struct map_row;
struct map_values;
struct match_strings;
struct non_max_suppression;
struct nonzero;
struct normalize_strings;
struct optional_get;
struct optional_has;
struct optional_rank;
struct print_numbers;
struct progression;
struct quantize_linear;
struct random_uniform;
struct read_numbers;
struct recurrent;
struct resample;
struct roi_align;
struct select_objects;
struct sequence_at;
struct sequence_erase;
struct sequence_insert;
struct sequence_length;
struct slice_at;
struct split_sequence;
struct split_strings;
struct unique;
struct zero_point_sums;
struct zip_maps;
}  // namespace op

namespace detail {

/// kiln's ops beside the default registry, by name alone: those of `more_ops`, and those that only importers and passes
/// put into programs.
using own_ops =
    type_list<op::bind_dims, op::bit_cast, op::block_dequantize, op::branch, op::centered_dot, op::compress,
              op::concat_strings, op::couple_probabilities, op::cumprod, op::dequantize_linear, op::det, op::dft,
              op::dynamic_quantize_linear, op::equal_strings, op::grid_sample, op::integer_convolution, op::integer_dot,
              op::inverse, op::join_sequence, op::linear_attention, op::loop, op::make_optional, op::make_sequence,
              op::map_row, op::map_values, op::match_strings, op::non_max_suppression, op::nonzero,
              op::normalize_strings, op::optional_get, op::optional_has, op::optional_rank, op::print_numbers,
              op::progression, op::quantize_linear, op::random_uniform, op::read_numbers, op::recurrent, op::resample,
              op::roi_align, op::select_objects, op::sequence_at, op::sequence_erase, op::sequence_insert,
              op::sequence_length, op::slice_at, op::split_sequence, op::split_strings, op::unique, op::zero_point_sums,
              op::zip_maps>;

/// The op's place in `own_ops`, or size_t(-1).
template <class Op> inline constexpr std::size_t own_index = index_of<Op>(own_ops{});

/// The table of the I-th of them (compiled once, in graph/impl: units that name these ops generate none).
const op_table& own_table(std::size_t index);

}  // namespace detail
}  // namespace kiln
