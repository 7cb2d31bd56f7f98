#include "kiln/generate/adapters.hpp"

#include "kiln/core/error.hpp"

namespace kiln::language {

namespace {

// The extents that values give the symbols of a model's parameters; all of an adapter agree.
class symbol_sizes {
 public:
  void bind(const std::string& name, const dimension& declared, std::int64_t found, std::size_t axis) {
    const auto fault = [&](const std::string& expected) {
      raise(errc::shape_mismatch, "parameter '" + name + "', axis " + std::to_string(axis) + ": expected " + expected +
                                      ", found " + std::to_string(found));
    };
    if (declared.is_constant()) {
      if (declared.value() != found) fault(std::to_string(declared.value()));
      return;
    }
    const std::string symbol = kiln::to_string(declared);
    const auto [known, fresh] = sizes_.try_emplace(symbol, given{found, name});
    if (!fresh && known->second.size != found)
      fault(std::to_string(known->second.size) + " for '" + symbol + "' as in parameter '" + known->second.by + "'");
  }

 private:
  struct given {
    std::int64_t size;
    std::string by;
  };
  std::map<std::string, given> sizes_;
};

void check_value(const port& parameter, const argument& value, symbol_sizes& sizes) {
  const shape &wanted = parameter.type, &found = value.get_shape();
  if (wanted.type != found.type || wanted.rank() != found.rank())
    raise(errc::shape_mismatch, "parameter '" + parameter.name + "': expected " + kiln::to_string(wanted) + ", found " +
                                    kiln::to_string(found));
  for (std::size_t d = 0; d < wanted.rank(); ++d) sizes.bind(parameter.name, wanted.lens[d], found.lens[d].value(), d);
}

std::string names_of(std::span<const port> parameters) {
  std::string out;
  for (const port& p : parameters) out += (out.empty() ? "'" : ", '") + p.name + "'";
  return out.empty() ? "it has none, as no initializer is an input, or all are" : "it has " + out;
}

adapters::values values_for(const language_model& model, const adapter& a) {
  const auto known = model.parameters();
  adapters::values out(known.size());
  symbol_sizes sizes;
  for (const auto& [name, value] : a.parameters) {
    std::size_t k = 0;
    while (k < known.size() && known[k].name != name) ++k;
    if (k == known.size())
      raise(errc::not_found, "the model has no parameter '" + name + "' that an adapter may give: " + names_of(known));
    if (out[k]) raise(errc::malformed, "parameter '" + name + "' is given twice");
    check_value(known[k], value, sizes);
    out[k] = value;
  }
  return out;
}

}  // namespace

adapters::values merged(const language_model& model, std::span<const std::shared_ptr<const adapters::values>> all) {
  const auto known = model.parameters();
  adapters::values out(known.size());
  for (const auto& values : all)
    for (std::size_t k = 0; k < known.size(); ++k)
      if ((*values)[k]) out[k] = (*values)[k];
  symbol_sizes sizes;
  for (std::size_t k = 0; k < known.size(); ++k)
    if (out[k]) check_value(known[k], out[k], sizes);
  for (std::size_t k = 0; k < known.size(); ++k)
    if (!out[k]) check_value(known[k], model.default_of(k), sizes);
  return out;
}

adapters::adapters(std::shared_ptr<const language_model> model) : model_(std::move(model)) {}

void adapters::load(const std::filesystem::path& file, const std::string& name) { load(read_adapter(file), name); }
void adapters::load(std::span<const std::byte> bytes, const std::string& name) {
  load(parse_adapter(bytes, "adapter '" + name + "'"), name);
}
void adapters::load(const adapter& a, const std::string& name) {
  auto made = std::make_shared<const values>(values_for(*model_, a));
  const std::lock_guard lock(mutex_);
  if (!all_.try_emplace(name, std::move(made)).second) raise(errc::invalid_argument, "Adapter already loaded: " + name);
}

void adapters::unload(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto at = all_.find(name);
  if (at == all_.end()) raise(errc::not_found, "Adapter not found: " + std::string(name));
  // others get a hold of it under this lock alone
  if (at->second.use_count() > 1) raise(errc::invalid_argument, "Adapter still in use: " + std::string(name));
  all_.erase(at);
}

std::vector<std::string> adapters::names() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> out;
  for (const auto& [name, v] : all_) out.push_back(name);
  return out;
}

std::shared_ptr<const adapters::values> adapters::use(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto at = all_.find(name);
  if (at == all_.end()) raise(errc::not_found, "Adapter not found: " + std::string(name));
  return at->second;
}

}  // namespace kiln::language
