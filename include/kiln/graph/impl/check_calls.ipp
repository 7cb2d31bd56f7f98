#include "kiln/graph/impl/check_calls.hpp"

#include <algorithm>
#include <vector>

#include "kiln/op/dynamic/branch.hpp"
#include "kiln/op/dynamic/loop.hpp"

namespace kiln::detail {
namespace {

// Each call compiles its body anew, level by level on the stack.
constexpr std::uint64_t most_depth = 100, most_instructions = 1 << 20;

class call_checker {
 public:
  call_checker(const program& p, const archive_reader& from) : program_(p), from_(from), known_(p.modules()) {}
  void run() {
    for (std::uint32_t k = 0; k < program_.modules(); ++k) written_out(k, 0);
  }

 private:
  // Instructions of a module with those of the modules that it calls, once for each call.
  std::uint64_t written_out(std::uint32_t k, std::uint64_t depth) {
    constexpr std::uint64_t open = ~std::uint64_t{0};
    if (known_[k].instructions == open) from_.fail("modules that end, found one that calls itself: " + name_of(k));
    if (depth + known_[k].levels > most_depth)
      from_.fail("bodies in one another at most " + std::to_string(most_depth) + " deep");
    if (known_[k].levels != 0) return known_[k].instructions;
    known_[k].instructions = open;
    const module_graph& m = program_.module({k});
    extent all{m.size(), 1};
    for (std::uint32_t i = 0; i < m.size(); ++i) {
      if (m[i].kind != instruction_kind::op) continue;
      for (const module_ref r : called_by(m[i])) {
        if (r.index == 0 || r.index >= program_.modules())
          from_.fail("a body of instruction " + std::to_string(i) + " of " + name_of(k));
        all.instructions += written_out(r.index, depth + 1);
        all.levels = std::max(all.levels, known_[r.index].levels + 1);
      }
      if (all.instructions > most_instructions)
        from_.fail("at most " + std::to_string(most_instructions) + " instructions, those of bodies at each call");
      check_signatures(k, i);
    }
    known_[k] = all;
    return all.instructions;
  }
  static small_vector<module_ref> called_by(const basic_instruction<operation>& i) {
    small_vector<module_ref> called;
    i.op.bodies(called);
    if (i.op.kind() == op_kind::control) called.push_back(i.op.body());
    return called;
  }
  // Of what the shape rules leave open: ops that call bodies have the results that they were made with.
  void check_signatures(std::uint32_t k, std::uint32_t i) const {
    const auto& ins = program_.module({k})[i];
    const auto operands = static_cast<std::int64_t>(ins.inputs.size()), results = std::int64_t(ins.results.size());
    bool fits = true;
    if (const auto* l = ins.op.get_if<op::loop>())
      fits = l->carried >= 0 && l->carried <= operands - 2 && l->carried <= results &&
             is(l->iteration, operands, results + 1);
    else if (const auto* b = ins.op.get_if<op::branch>())
      fits = b->then_inputs >= 0 && b->then_inputs < operands && is(b->then_body, b->then_inputs, results) &&
             is(b->else_body, operands - 1 - b->then_inputs, results);
    if (!fits)
      from_.fail("bodies that take and give what instruction " + std::to_string(i) + " of " + name_of(k) + " does");
  }
  bool is(module_ref r, std::int64_t parameters, std::int64_t outputs) const {
    const module_graph& body = program_.module(r);
    return static_cast<std::int64_t>(body.parameters().size()) == parameters &&
           static_cast<std::int64_t>(body.outputs.size()) == outputs;
  }
  std::string name_of(std::uint32_t k) const {
    return "module " + std::to_string(k) + " '" + program_.module({k}).name.str() + "'";
  }

  struct extent {
    std::uint64_t instructions = 0, levels = 0;
  };
  const program& program_;
  const archive_reader& from_;
  std::vector<extent> known_;
};

}  // namespace

void check_calls(const program& p, const archive_reader& from) { call_checker(p, from).run(); }

}  // namespace kiln::detail
