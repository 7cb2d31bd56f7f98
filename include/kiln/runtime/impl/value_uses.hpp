#pragma once
#include <vector>

#include "kiln/graph/module.hpp"

namespace kiln::detail {

/// Who reads each value of a module, and which of the program's outputs it is.
class value_uses {
 public:
  static constexpr std::uint32_t none = 0xffff'ffff;
  /// An instruction that reads a result, or `none`: the program's outputs.
  struct user {
    std::uint32_t instruction = none, result = 0;
  };

  explicit value_uses(const module_graph& graph) : users_(graph.size()), output_of_(graph.size()) {
    for (std::uint32_t i = 0; i < graph.size(); ++i) {
      output_of_[i].assign(graph[i].results.size(), none);
      for (value_id v : graph[i].inputs) users_[v.instruction].push_back({i, v.result});
    }
    for (std::uint32_t k = 0; k < graph.outputs.size(); ++k) {
      const value_id v = graph.outputs[k];
      users_[v.instruction].push_back({none, v.result});
      if (output(v) == none) set_output(v, k);
    }
  }

  /// The users of all results of the value's instruction.
  const std::vector<user>& beside(value_id v) const { return users_[v.instruction]; }
  /// The instruction that alone reads a value, once; `none` where there is no such.
  std::uint32_t only_reader(value_id v) const {
    std::uint32_t reader = none, readers = 0;
    for (const user& u : beside(v))
      if (u.result == v.result) reader = u.instruction, ++readers;
    return readers == 1 ? reader : none;
  }
  /// The output of the program that a value is, or `none`.
  std::uint32_t output(value_id v) const { return output_of_[v.instruction][v.result]; }
  void set_output(value_id v, std::uint32_t k) { output_of_[v.instruction][v.result] = k; }

 private:
  std::vector<std::vector<user>> users_;
  std::vector<std::vector<std::uint32_t>> output_of_;
};

}  // namespace kiln::detail
