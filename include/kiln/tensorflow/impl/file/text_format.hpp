#pragma once
#include <string>
#include <string_view>

namespace kiln::tensorflow {

/// A GraphDef in protobuf's text form as the bytes of its binary form. Errors: `malformed` with the line.
std::string binary_of_text(std::string_view text);

}  // namespace kiln::tensorflow
