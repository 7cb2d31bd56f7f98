#pragma once
#include <string>
#include <vector>

#include "kiln/core/error.hpp"

namespace kiln::onnx {

/// Faults of one model file, told together instead of the first alone.
class fault_list {
 public:
  /// A hostile file may have any number of faults.
  static constexpr std::size_t most = 64;

  bool empty() const { return faults_.empty(); }
  bool full() const { return faults_.size() == most; }
  std::size_t size() const { return faults_.size(); }
  /// Drops the faults that were added since there were n.
  void forget_from(std::size_t n) { faults_.erase(faults_.begin() + static_cast<std::ptrdiff_t>(n), faults_.end()); }
  void add(error e) { faults_.push_back(std::move(e)); }
  /// Throws what there is: one fault as it is, several as a list under the code of the first. `more` are further lines.
  void throw_all(const std::string& place, const std::vector<std::string>& more = {}) const {
    if (faults_.size() == 1 && more.empty()) throw faults_[0];
    std::string all = std::to_string(faults_.size() + more.size()) + " parts of the model are at fault:";
    for (const error& e : faults_) all += "\n  " + std::string(e.what());
    for (const std::string& line : more) all += "\n  " + line;
    error e(faults_[0].code(), all);
    throw e.at_source(place);
  }

 private:
  std::vector<error> faults_;
};

}  // namespace kiln::onnx
