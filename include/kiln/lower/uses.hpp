#pragma once
#include "kiln/lower/buffer.hpp"
#include "kiln/lower/views.hpp"

namespace kiln::lower {

/// Who reads each value of a module. Readers that hold a constant in a form of their own leave it.
class uses {
 public:
  /// An instruction that reads a result, or `none`: an output of the module.
  struct user {
    std::uint32_t instruction = none, result = 0;
  };

  template <class Module> constexpr explicit uses(const Module& graph) : users_(graph.size()) {
    for (std::uint32_t i = 0; i < graph.size(); ++i)
      for (const value_id v : graph[i].inputs) users_[v.instruction].push_back({i, v.result});
    for (const value_id v : graph.outputs) users_[v.instruction].push_back({none, v.result});
  }

  /// The users of all results of the value's instruction.
  constexpr const small_vector<user>& beside(value_id v) const { return users_[v.instruction]; }
  /// The instruction that alone reads a value, once; `none` where there is no such.
  constexpr std::uint32_t only_reader(value_id v) const {
    std::uint32_t reader = none, readers = 0;
    for (const user& u : beside(v))
      if (u.result == v.result) reader = u.instruction, ++readers;
    return readers == 1 ? reader : none;
  }
  /// Whether nothing reads any result of an instruction any more.
  constexpr bool unread(std::uint32_t i) const { return users_[i].empty(); }
  /// Removes one read of `v` by `reader`. A view that nobody reads any more is removed as a reader, too. Returns the
  /// instruction at the start of that chain if nothing reads it any more, else `none`.
  template <class Module> constexpr std::uint32_t leave(const Module& graph, std::uint32_t reader, value_id v) {
    while (true) {
      small_vector<user>& all = users_[v.instruction];
      for (std::size_t k = 0; k < all.size(); ++k)
        if (all[k].instruction == reader && all[k].result == v.result) {
          all.erase(k);
          break;
        }
      if (!all.empty()) return none;
      reader = v.instruction;
      if (!is_view(graph[reader])) return reader;
      v = graph[reader].inputs[0];
    }
  }

 private:
  small_vector<small_vector<user>> users_;
};

}  // namespace kiln::lower
