#include <algorithm>

#include "kiln/core/error.hpp"
#include "kiln/interface/onnxruntime/provider_options.hpp"

namespace kiln::onnxruntime {

namespace {

struct named_value {
  std::string name, value;
};

const provider_option& find(std::string_view name) {
  std::vector<std::string_view> known;
  for (const provider_option& o : provider_option_table()) {
    if (o.name == name || std::find(o.also.begin(), o.also.end(), name) != o.also.end()) return o;
    known.push_back(o.name);
  }
  detail::refuse_name(known, name);
}

void set(provider_options& to, const provider_option& option, const named_value& from) {
  if (!option.read(option, to, from.value))
    raise(fault::of(errc::invalid_argument, from.name, option.expected(), from.value));
}

// Options in the order they are given. One option by two names has one value.
class given_options {
 public:
  void add(const provider_option& option, std::string_view name, std::string_view value) {
    const named_value now{std::string(name), std::string(value)};
    for (const auto& [other, from] : all_) {
      if (other != &option) continue;
      provider_options a, b;
      set(a, option, from), set(b, option, now);
      if (option.get(a) != option.get(b))
        raise(errc::invalid_argument, "one option has one value: found " + from.name + " = '" + from.value + "' and " +
                                          now.name + " = '" + now.value + "'");
    }
    all_.emplace_back(&option, now);
  }
  void apply(provider_options& to) const {
    for (const auto& [option, from] : all_) set(to, *option, from);
  }
  bool has(std::string_view field) const {
    return std::any_of(all_.begin(), all_.end(),
                       [&](const auto& o) { return std::string_view(o.first->field) == field; });
  }

 private:
  std::vector<std::pair<const provider_option*, named_value>> all_;
};

}  // namespace

provider_options read_provider_options(std::span<const std::pair<std::string, std::string>> given,
                                       const environment& variables, provider_options defaults) {
  given_options of_session, of_environment;
  for (const auto& [name, value] : given) of_session.add(find(name), name, value);
  for (const provider_option& option : provider_option_table())
    for (const std::string_view name : option.environment)
      if (const char* const value = variables(std::string(name).c_str())) of_environment.add(option, name, value);
  provider_options out = std::move(defaults);
  of_session.apply(out), of_environment.apply(out);
  if (out.user_stream && !out.has_user_stream && of_session.has("has_user_stream"))
    raise(errc::invalid_argument, "has_user_compute_stream 0 and user_compute_stream exclude each other: found both");
  if (out.user_stream) out.has_user_stream = true;
  check_provider_options(out);
  return out;
}

}  // namespace kiln::onnxruntime
