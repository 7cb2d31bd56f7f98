#pragma once
#include <string>
#include <string_view>

#include "kiln/core/buffer.hpp"

namespace kiln::tensorflow {

/// What a text describes.
enum class text_message : std::uint8_t { graph, saved_model };

/// A GraphDef or SavedModel in protobuf's text form as the bytes of its binary form. Errors: `malformed` with the line.
std::string binary_of_text(std::string_view text, text_message what = text_message::graph);
/// A file in either form in its binary form.
buffer binary_form(const buffer& file, text_message what);

}  // namespace kiln::tensorflow
