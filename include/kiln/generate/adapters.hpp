#pragma once
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/generate/language_model.hpp"

namespace kiln::language {

/// What an `.onnx_adapter` file holds: values of a model's parameters by name, such as low-rank updates (LoRA, Hu et
/// al. 2021).
struct adapter {
  std::int32_t adapter_version = 0, model_version = 0;  ///< whatever their maker counts
  std::vector<std::pair<std::string, argument>> parameters;
};

/// Reads a file, or its bytes; `source` is named in errors. Errors: `not_found`, `io`; `malformed` where it is no
/// adapter or broken; `unsupported` for another version of the format or element types that tensors do not have.
adapter read_adapter(const std::filesystem::path& file);
adapter parse_adapter(std::span<const std::byte> bytes, std::string_view source = "the adapter");
/// The bytes of an adapter's file. Throws `invalid_argument` for parameters without a value or with symbols.
std::vector<std::byte> adapter_bytes(const adapter& a);

/// Adapters of one model by name: ONNX Runtime GenAI's `Adapters`. Any number of generators share them, in any threads.
class adapters {
 public:
  /// Values of all of the model's parameters, empty ones where an adapter has none.
  using values = std::vector<argument>;

  explicit adapters(std::shared_ptr<const language_model> model);

  /// Adds an adapter. Errors: those of `read_adapter`; `invalid_argument` where the name is taken; `not_found` and
  /// `shape_mismatch` name the parameter that the model does not have, or has in another type or shape.
  void load(const std::filesystem::path& file, const std::string& name);
  void load(std::span<const std::byte> bytes, const std::string& name);
  void load(const adapter& a, const std::string& name);
  /// Removes an adapter. Errors: `not_found`; `invalid_argument` while a generator uses it.
  void unload(std::string_view name);
  std::vector<std::string> names() const;
  const language_model& model() const { return *model_; }

  /// An adapter's values: it is in use while they are held. `not_found` error.
  std::shared_ptr<const values> use(std::string_view name) const;

 private:
  std::shared_ptr<const language_model> model_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const values>, std::less<>> all_;
};

/// The values of several adapters: of a parameter that two of them give, the later one's. Throws `shape_mismatch` where
/// extents of one name differ, those of defaults included.
adapters::values merged(const language_model& model, std::span<const std::shared_ptr<const adapters::values>> all);

}  // namespace kiln::language
