#pragma once
#include "kiln/tensorflow/impl/file/functions.hpp"

namespace kiln::tensorflow {

/// Gives a While node its parts. Of its values, `invariants` (numbers) go through the body as they are, the others are
/// carried. The graph `body` has an iteration's number, whether the loop goes on, the carried ones and then
/// the invariants as inputs, and gives whether the loop goes on again, and the carried values; `cond` tells it at the
/// beginning.
///
/// Where the condition only counts: `counters` (numbers of values that grow by one), and the graph `limits` for what
/// each of them stays below. Where values of such a loop are lists that get item by item, each at a counter's place:
/// `collected` (numbers of the lists), `collected_at` (of the counters), and the graph `collecting`, a body without the
/// lists which gives the items after the carried values.
void write_loop(onnx::node& n, const function_def& cond, const function_def& body, function_library& library);

}  // namespace kiln::tensorflow
