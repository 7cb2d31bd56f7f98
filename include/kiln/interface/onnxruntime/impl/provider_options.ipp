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

}  // namespace

provider_options read_provider_options(std::span<const std::pair<std::string, std::string>> given,
                                       const environment& variables) {
  provider_options out;
  std::vector<std::pair<const provider_option*, named_value>> read;
  for (const auto& [name, value] : given) {
    const provider_option& option = find(name);
    for (const auto& [other, from] : read) {
      if (other != &option) continue;
      provider_options a, b;
      set(a, option, from), set(b, option, {name, value});
      if (option.get(a) != option.get(b))
        raise(errc::invalid_argument, "one option has one value: found " + from.name + " = '" + from.value + "' and " +
                                          name + " = '" + value + "'");
    }
    read.emplace_back(&option, named_value{name, value});
    set(out, option, {name, value});
  }
  for (const provider_option& option : provider_option_table())
    for (const std::string_view name : option.environment)
      if (const char* const value = variables(std::string(name).c_str())) {
        set(out, option, {std::string(name), value});
        break;
      }
  if (out.user_stream) out.has_user_stream = true;
  check_provider_options(out);
  return out;
}

}  // namespace kiln::onnxruntime
