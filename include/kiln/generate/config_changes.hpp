#pragma once
#include "kiln/generate/config.hpp"

namespace kiln::language {

/// The decoder's provider with this name, whose case does not count; null where the configuration has none.
provider* find_provider(config& c, std::string_view name);
/// The same provider; one without options is added where there is none.
provider& append_provider(config& c, std::string_view name);
/// Leaves the decoder without providers.
void clear_providers(config& c);
/// Sets an option of a provider, which is added where there is none; a value that stands there is replaced.
void set_provider_option(config& c, std::string_view provider_name, std::string_view key, std::string_view value);

/// Whether two texts differ in the case of ASCII letters at most.
bool equal_without_case(std::string_view a, std::string_view b);

}  // namespace kiln::language
