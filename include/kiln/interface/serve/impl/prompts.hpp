#pragma once
#include <string_view>
#include <vector>

#include "kiln/interface/serve/completion_request.hpp"
#include "kiln/interface/serve/impl/json.hpp"

namespace kiln::serve {

/// A field of texts: a string, tokens, or a list of either, at least one. Errors: `api_error` 400.
std::vector<completion_request::prompt> read_prompts(fields& f, std::string_view name);

}  // namespace kiln::serve
