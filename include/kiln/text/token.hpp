#pragma once

#include <cstdint>
#include <vector>

// The namespace of text/ and generate/; kiln::text is a class.
namespace kiln::language {

/// A token's number in its vocabulary, from 0; 32 bits signed, as GenAI's interfaces give it.
using token = std::int32_t;

/// The tokens of one text, in order.
using tokens = std::vector<token>;

}  // namespace kiln::language
