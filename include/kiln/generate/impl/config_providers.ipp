#include <algorithm>

#include "kiln/generate/config.hpp"

namespace kiln::language {

namespace {

std::string plain(std::string_view name) {
  std::string out(name);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; });
  constexpr std::string_view ending = "executionprovider";
  if (out.size() > ending.size() && out.ends_with(ending)) out.resize(out.size() - ending.size());
  return out;
}

provider* find(config& c, std::string_view name) {
  auto& all = c.decoder.session.providers;
  const auto at =
      std::find_if(all.begin(), all.end(), [&](const provider& p) { return is_same_provider(p.name, name); });
  return at == all.end() ? nullptr : &*at;
}

}  // namespace

bool is_same_provider(std::string_view a, std::string_view b) { return plain(a) == plain(b); }

void append_provider(config& to, std::string_view name) {
  if (!find(to, name)) to.decoder.session.providers.push_back({std::string(name), {}, {}, {}, {}});
}
void clear_providers(config& of) { of.decoder.session.providers.clear(); }

void set_provider_option(config& of, std::string_view name, std::string_view option, std::string_view value) {
  append_provider(of, name);
  auto& options = find(of, name)->options;
  std::erase_if(options, [&](const auto& o) { return o.first == option; });
  options.emplace_back(option, value);
}

void set_hardware_device_type(config& of, std::string_view name, std::optional<std::string> type) {
  if (provider* p = find(of, name)) p->hardware_device_type = std::move(type);
}
void set_hardware_device_id(config& of, std::string_view name, std::optional<std::int64_t> id) {
  if (provider* p = find(of, name)) p->hardware_device_id = id;
}
void set_hardware_vendor_id(config& of, std::string_view name, std::optional<std::int64_t> id) {
  if (provider* p = find(of, name)) p->hardware_vendor_id = id;
}

}  // namespace kiln::language
