#include "kiln/generate/config_changes.hpp"

#include <algorithm>

#include "kiln/core/error.hpp"

namespace kiln::language {

bool equal_without_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

provider* find_provider(config& c, std::string_view name) {
  for (provider& p : c.decoder.session.providers)
    if (equal_without_case(p.name, name)) return &p;
  return nullptr;
}

provider& append_provider(config& c, std::string_view name) {
  if (name.empty()) throw error(errc::invalid_argument, "a provider has a name: found an empty one");
  if (provider* known = find_provider(c, name)) return *known;
  provider& made = c.decoder.session.providers.emplace_back();
  made.name = name;
  return made;
}

void clear_providers(config& c) { c.decoder.session.providers.clear(); }

void set_provider_option(config& c, std::string_view provider_name, std::string_view key, std::string_view value) {
  auto& options = append_provider(c, provider_name).options;
  const auto known = std::find_if(options.begin(), options.end(), [&](const auto& o) { return o.first == key; });
  if (known == options.end())
    options.emplace_back(key, value);
  else
    known->second = value;
}

}  // namespace kiln::language
