#pragma once
#include <optional>
#include <utility>

#include "kiln/onnx/impl/file/fault_list.hpp"
#include "kiln/onnx/op_importer.hpp"

namespace kiln::onnx {

/// Collects the faults of an import, so that one error names all of them.
class fault_log {
 public:
  /// `model` names the model in errors.
  explicit fault_log(std::string model) : model_(std::move(model)) {}

  std::size_t size() const { return faults_.size(); }
  std::size_t unsupported() const { return faults_.missing.size(); }
  /// What the last fault says.
  std::string last() const { return faults_.last(); }
  /// Notes that a part of the model, with inputs of these types, cannot be imported.
  void add_unsupported(const std::string& what, const variables& inputs, const std::string& why);
  /// Notes the fault of a node. `limit` and `internal` errors are thrown: they end the import.
  void add(error e, const std::string& node_name, const std::string& node);
  void add(const import_faults& more) { faults_.add(more); }
  /// The fault of a node with the node's and the model's names.
  error located(error e, const std::string& node_name, const std::string& node) const;
  /// Throws what was noted.
  void throw_if_any() const;
  /// Ends the import, with all attempts, since one of its limits is reached.
  [[noreturn]] void exhausted(std::string why);

  /// Runs `build`. If that has faults there is no result, and `why` has the faults instead of this log.
  template <class Build> auto attempt(import_faults& why, Build&& build) -> std::optional<decltype(build())> {
    import_faults outside = std::exchange(faults_, {});
    std::optional<decltype(build())> made;
    try {
      made = build();
    } catch (const error& e) {
      if (is_exhausted_ || e.code() == errc::internal) throw;
      if (faults_.size() == 0) faults_.broken.add(e);
    }
    why = std::exchange(faults_, std::move(outside));
    if (why.size() != 0) made.reset();
    return made;
  }

 private:
  std::string model_;
  import_faults faults_;
  bool is_exhausted_ = false;
};

}  // namespace kiln::onnx
