#include "kiln/onnx/impl/import/fault_log.hpp"

namespace kiln::onnx {

void fault_log::add_unsupported(const std::string& what, const variables& inputs, const std::string& why) {
  std::string line = what;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    line += i ? ", " : " over ";
    line += inputs[i].tensor ? kiln::to_string(inputs[i].tensor.get_shape()) : inputs[i].is_sequence ? "sequence" : "-";
  }
  faults_.add_missing(line + ": " + why);
}

error fault_log::located(error e, const std::string& node_name, const std::string& node) const {
  return e.at_instruction(node_name).at_source(model_.empty() ? node : model_ + ", " + node);
}

void fault_log::add(error e, const std::string& node_name, const std::string& node) {
  e = located(std::move(e), node_name, node);
  if (e.code() == errc::limit || e.code() == errc::internal) throw e;
  faults_.broken.add(std::move(e));
  if (faults_.broken.full()) throw_if_any();
}

void fault_log::throw_if_any() const {
  const auto& missing = faults_.missing;
  if (!faults_.broken.empty()) faults_.broken.throw_all(model_, missing);
  if (missing.empty()) return;
  std::string all = std::to_string(missing.size()) + (missing.size() == 1 ? " part of the model cannot be imported:"
                                                                          : " parts of the model cannot be imported:");
  for (const std::string& line : missing) all += "\n  " + line;
  throw error(errc::unsupported, all).at_source(model_);
}

void fault_log::exhausted(std::string why) {
  is_exhausted_ = true;
  raise(errc::limit, std::move(why));
}

}  // namespace kiln::onnx
