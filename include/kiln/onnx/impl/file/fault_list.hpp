#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "kiln/core/error.hpp"

namespace kiln::onnx {

/// Faults of one model file, reported together.
class fault_list {
 public:
  /// A hostile file may have any number of faults.
  static constexpr std::size_t most = 64;

  bool empty() const { return faults_.empty(); }
  bool full() const { return faults_.size() == most; }
  std::size_t size() const { return faults_.size(); }
  void add(error e) { faults_.push_back(std::move(e)); }
  /// Throws one fault as it is, several as a list with the code of the first. `more` are further lines of the list.
  void throw_all(const std::string& source, const std::vector<std::string>& more = {}) const {
    if (faults_.size() == 1 && more.empty()) throw faults_[0];
    std::string all = std::to_string(faults_.size() + more.size()) + " parts of the model are at fault:";
    for (const error& e : faults_) all += "\n  " + std::string(e.what());
    for (const std::string& line : more) all += "\n  " + line;
    error e(faults_[0].code(), all);
    throw e.at_source(source);
  }

 private:
  friend struct import_faults;
  std::vector<error> faults_;
};

/// What is wrong with a model or a part of it: a line for each thing that cannot be imported, and faults.
struct import_faults {
  std::vector<std::string> missing;
  fault_list broken;

  std::size_t size() const { return missing.size() + broken.size(); }
  /// A line of what cannot be imported, or else a fault; empty where there is neither.
  std::string last() const {
    return !missing.empty() ? missing.back() : !broken.empty() ? broken.faults_.back().what() : std::string();
  }
  void add_missing(std::string line) {
    if (std::find(missing.begin(), missing.end(), line) == missing.end()) missing.push_back(std::move(line));
  }
  void add(const import_faults& more) {
    for (const std::string& line : more.missing) add_missing(line);
    for (const error& e : more.broken.faults_)
      if (!broken.full()) broken.add(e);
  }
};

}  // namespace kiln::onnx
