#include "kiln/graph/symbols.hpp"
#include "kiln/pass/dead_code.hpp"

// What binds symbols lives while something that lives mentions them: in its module, or in a body that is called from
// there.
namespace kiln::detail {
namespace {

class reader {
 public:
  explicit reader(program& p) : program_(p), bodies_(p.modules()) {}

  void release(std::uint32_t index) {
    module_graph& m = program_.module({index});
    if (!binds(m)) return;
    const symbol_binders binders(m);
    small_vector<std::uint32_t> open;
    small_vector<std::uint8_t> lives(m.size(), 0);
    const auto keep = [&](std::uint32_t i) {
      if (!std::exchange(lives[i], 1)) open.push_back(i);
    };
    for (std::uint32_t i = 0; i < m.size(); ++i)
      if (has_effects(m, i)) keep(i);
    for (const value_id v : m.outputs) keep(v.instruction);
    while (!open.empty()) {
      const std::uint32_t i = open.back();
      open.pop_back();
      for (const value_id v : m[i].inputs) keep(v.instruction);
      small_vector<dimension> read;
      mentioned(m, i, read);
      for (const dimension d : read)
        if (const auto b = binders.find(d)) keep(*b);
    }
    for (std::uint32_t i = 0; i < m.size(); ++i) {
      if (lives[i] || !m.binds_symbols(i)) continue;
      m[i].kind = instruction_kind::literal;
      m[i].inputs.clear();
    }
  }

 private:
  struct body {
    bool known = false, has_effects = false;
    small_vector<dimension> mentioned;
  };

  static bool binds(const module_graph& m) {
    for (std::uint32_t i = 0; i < m.size(); ++i)
      if (m.binds_symbols(i)) return true;
    return false;
  }
  static small_vector<module_ref> called(const operation& op) {
    small_vector<module_ref> out;
    op.bodies(out);
    if (op.kind() == op_kind::control) out.push_back(op.body());
    return out;
  }
  const body& look_into(module_ref r) {
    body& b = bodies_[r.index];
    if (std::exchange(b.known, true)) return b;
    const module_graph& m = program_.module(r);
    small_vector<dimension> all;
    bool effects = false;
    for (std::uint32_t i = 0; i < m.size(); ++i) {
      mentioned(m, i, all);
      effects = effects || has_effects(m, i);
    }
    bodies_[r.index].mentioned = std::move(all);
    bodies_[r.index].has_effects = effects;
    return bodies_[r.index];
  }
  void mentioned(const module_graph& m, std::uint32_t i, small_vector<dimension>& out) {
    collect_symbols(m, i, out);
    if (m[i].kind != instruction_kind::op) return;
    for (const module_ref r : called(m[i].op))
      for (const dimension d : look_into(r).mentioned) collect_symbols(d, out);
  }
  // A user's op that binds symbols may also do something else; it says so by not being pure.
  bool has_effects(const module_graph& m, std::uint32_t i) {
    if (m[i].kind != instruction_kind::op || m[i].op.kind() != op_kind::dynamic) return false;
    if (!m[i].op.info().pure) return true;
    for (const module_ref r : called(m[i].op))
      if (look_into(r).has_effects) return true;
    return false;
  }

  program& program_;
  small_vector<body> bodies_;
};

}  // namespace

void release_unread(program& p) {
  reader r(p);
  for (std::uint32_t k = 0; k < p.modules(); ++k) r.release(k);
}

}  // namespace kiln::detail
