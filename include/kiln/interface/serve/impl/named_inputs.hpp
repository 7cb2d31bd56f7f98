#pragma once
#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/interface/serve/http.hpp"
#include "kiln/interface/serve/kserve.hpp"

namespace kiln::serve {

/// The inputs of a program as requests name them. Errors: `api_error` 400 with the place.
class named_inputs {
 public:
  explicit named_inputs(std::span<const port> ports) : ports_(ports), values_(ports.size()), is_there_(ports.size()) {}

  /// The input that a tensor is for.
  const port& find(std::string_view name, std::string_view datatype, const std::string& where) const {
    const auto at = std::find_if(ports_.begin(), ports_.end(), [&](const port& p) { return p.name == name; });
    if (at == ports_.end())
      throw api_error(where + ".name: expected the name of an input of the model, found \"" +
                      std::string(name.substr(0, 60)) + "\"");
    if (is_there_[static_cast<std::size_t>(at - ports_.begin())])
      throw api_error(where + ".name: expected each input once, found " + at->name + " again");
    if (datatype != kserve_name(at->type.type))
      throw api_error(where + ".datatype: expected " + std::string(kserve_name(at->type.type)) + ", found \"" +
                      std::string(datatype.substr(0, 60)) + "\"");
    return *at;
  }
  void put(const port& p, argument a) {
    const auto k = static_cast<std::size_t>(&p - ports_.data());
    values_[k] = std::move(a);
    is_there_[k] = true;
  }
  /// All of them, in order.
  std::vector<argument> finish() {
    for (std::size_t k = 0; k < ports_.size(); ++k)
      if (!is_there_[k]) throw api_error("inputs: expected " + ports_[k].name + ", found no such tensor");
    return std::move(values_);
  }

 private:
  std::span<const port> ports_;
  std::vector<argument> values_;
  std::vector<bool> is_there_;
};

/// A model by name and version; `api_error` 404.
inline const tensor_entry& find_model(const model_set& models, std::string_view name, std::string_view version) {
  const auto at = models.tensors.find(name);
  if (at == models.tensors.end())
    throw api_error("there is no model " + std::string(name.substr(0, 200)) + " that the protocol serves", {}, {}, 404);
  if (!version.empty() && version != "1")
    throw api_error("the model has version 1 alone, found " + std::string(version.substr(0, 40)), {}, {}, 404);
  return *at->second;
}

}  // namespace kiln::serve
