#pragma once

#include <cstdint>
#include <vector>

namespace kiln::text {

/// A token's number in its vocabulary, from 0; 32 bits signed, as GenAI's interfaces give it.
using token = std::int32_t;

/// The tokens of one text, in order.
using tokens = std::vector<token>;

}  // namespace kiln::text
