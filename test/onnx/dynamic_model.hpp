#pragma once
#include "onnx/run_model.hpp"

/// Models whose control flow, sizes and lists are the run's, with inputs to run them on.
namespace kiln::test {

struct dynamic_model {
  std::string name;
  message bytes;
  std::vector<std::pair<std::string, argument>> inputs{};
  bool is_peers = true;  ///< ONNX Runtime runs it

  std::vector<argument> values() const {
    std::vector<argument> out;
    for (const auto& [input, value] : inputs) out.push_back(value);
    return out;
  }
};
inline void PrintTo(const dynamic_model& m, std::ostream* out) { *out << m.name; }

inline message truth_tensor(std::string_view name, bool v) { return tensor<std::int8_t>(name, 9, {}, {v}); }
/// A declared output or body parameter of float, i64 or bool of any extents.
inline message of_any_extents(std::string_view name, int type, int rank) {
  return value_info(name, type, std::vector<dim>(static_cast<std::size_t>(rank), dim(-1)));
}
/// A declaration that says nothing of the rank.
inline message of_any_rank(std::string_view name, int type = 1) {
  return message().text(1, name).add(2, message().add(1, message().number(1, type)));
}
/// What a declaration says: a name, an element type, a rank.
struct declared {
  std::string name;
  int type = 1, rank = 1;
  std::vector<dim> extents{};  ///< instead of a rank
};
inline std::vector<message> declare(const std::vector<declared>& all) {
  std::vector<message> out;
  for (const declared& d : all)
    out.push_back(d.extents.empty() ? of_any_extents(d.name, d.type, d.rank) : value_info(d.name, d.type, d.extents));
  return out;
}
inline message body_of(const std::vector<message>& nodes, const std::vector<declared>& in,
                       const std::vector<declared>& out, const std::vector<message>& constants = {}) {
  return graph({nodes, constants, declare(in), declare(out)}, "body");
}
inline message network(const std::vector<message>& nodes, const std::vector<declared>& in,
                       const std::vector<declared>& out, const std::vector<message>& constants = {},
                       std::int64_t version = 18) {
  return model(graph({nodes, constants, declare(in), declare(out)}), {opset(version)});
}

inline const declared iteration_in{"i", 7, 0}, goes_on_in{"go", 9, 0}, goes_on_out{"again", 9, 0};
inline message pass_on() { return node("Identity", {"go"}, {"again"}); }

}  // namespace kiln::test
