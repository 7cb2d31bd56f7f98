#pragma once
#include <optional>

#include "kiln/onnx/impl/fault_list.hpp"
#include "kiln/onnx/row.hpp"

namespace kiln::onnx {

/// Bodies that may be built with other parameters if these do not suit them.
class trial_importer : public body_importer {
 public:
  /// As `build_module`, or nothing where the body has faults, which `why` has then and the model has not.
  virtual std::optional<body_module> try_module(const graph& body, std::span<const body_parameter> parameters,
                                                std::span<const std::pair<std::string, variable>> visible,
                                                fault_notes& why) = 0;
  /// Makes faults those of the model.
  virtual void note(const fault_notes& why) = 0;

  /// The importer that a node asks, which is one of these.
  static trial_importer& of(const call& c) { return static_cast<trial_importer&>(*c.bodies); }

 protected:
  ~trial_importer() = default;
};

}  // namespace kiln::onnx
