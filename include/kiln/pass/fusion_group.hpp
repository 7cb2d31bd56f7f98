#pragma once
#include "kiln/graph/matcher.hpp"
#include "kiln/pass/note.hpp"

namespace kiln {

/// Members a pointwise or reduce group may have: bodies stay small enough for one kernel's registers and operands.
inline constexpr std::uint32_t max_group_members = 96;

/// A partition of a module's instructions into groups that run as one instruction each. Every group stays convex (no
/// path leaves it and comes back), so contracting the groups leaves no cycle: a topological order of the contracted
/// graph is kept up to date, and a merge searches and reorders only the window between its two groups (Pearce and Kelly
/// 2006, "A dynamic topological sort algorithm for directed acyclic graphs").
template <class Module> class fusion_groups {
 public:
  static constexpr std::uint32_t output_user = user_lists::output_user;

  /// Compacts the module; instructions are then in execution order, each a group of its own.
  constexpr explicit fusion_groups(Module& m) {
    m.compact();
    const std::size_t n = m.size();
    users_ = user_lists(m);
    seen_.resize(n, 0);
    size_.resize(n, 1);
    for (std::uint32_t i = 0; i < n; ++i) {
      group_.push_back(i);
      next_.push_back(i);
      rank_.push_back(i);
      order_.push_back(i);
    }
    add_symbol_users(m);
  }

  /// Number of instructions that are partitioned.
  constexpr std::uint32_t size() const { return static_cast<std::uint32_t>(group_.size()); }
  /// The group an instruction is in, named by one of its members.
  constexpr std::uint32_t group_of(std::uint32_t i) const { return group_[i]; }
  constexpr std::uint32_t members(std::uint32_t i) const { return size_[group_[i]]; }
  constexpr bool together(std::uint32_t a, std::uint32_t b) const { return group_[a] == group_[b]; }
  /// One entry for each input slot and module output (`output_user`) that reads the instruction.
  constexpr user_lists::range users(std::uint32_t i) const { return users_[i]; }

  /// Joins two groups; false, and nothing changed, where a path between them runs through a third.
  constexpr bool merge(std::uint32_t a, std::uint32_t b) {
    a = group_[a], b = group_[b];
    if (a == b) return true;
    if (rank_[a] > rank_[b]) std::swap(a, b);
    const std::uint32_t low = rank_[a], high = rank_[b];
    if (!reach(a, b)) return false;
    // the window again: what does not depend on `a`, the joined group, what does
    small_vector<std::uint32_t> later;
    std::uint32_t at = low;
    const auto place = [&](std::uint32_t g) {
      order_[at] = g;
      rank_[g] = at++;
    };
    for (std::uint32_t k = low; k < high; ++k) {
      const std::uint32_t g = order_[k];
      if (g == none || g == a) continue;
      if (seen_[g] == epoch_)
        later.push_back(g);
      else
        place(g);
    }
    place(join(a, b));
    for (std::uint32_t g : later) place(g);
    while (at <= high) order_[at++] = none;
    return true;
  }

  /// Members of every group, in execution order, under the group's name.
  constexpr small_vector<small_vector<std::uint32_t>> lists() const {
    small_vector<small_vector<std::uint32_t>> out(group_.size());
    for (std::uint32_t i = 0; i < group_.size(); ++i) out[group_[i]].push_back(i);
    return out;
  }

 private:
  static constexpr std::uint32_t none = 0xffff'ffff;

  // What mentions a symbol uses what binds it, though it reads nothing of it. Only a program at run time binds symbols.
  constexpr void add_symbol_users(const Module& m) {
    if constexpr (std::is_same_v<Module, module_graph>) {
      const auto binders = detail::binders_read(m);
      for (std::uint32_t i = 0; i < binders.size(); ++i) {
        if (m.binds_symbols(i)) users_.add(i, output_user);
        for (const std::uint32_t b : binders[i])
          if (b < i) users_.add(b, i);
      }
    }
  }

  // Marks the groups between a and b that depend on a; false when b depends on one of them.
  constexpr bool reach(std::uint32_t a, std::uint32_t b) {
    const std::uint32_t high = rank_[b];
    seen_[a] = ++epoch_;
    small_vector<std::uint32_t> work;
    work.push_back(a);
    for (std::size_t k = 0; k < work.size(); ++k) {
      std::uint32_t i = work[k];
      do {
        for (std::uint32_t u : users_[i]) {
          if (u == output_user) continue;
          const std::uint32_t g = group_[u];
          if (g == b && k != 0) return false;
          if (rank_[g] >= high || seen_[g] == epoch_) continue;
          seen_[g] = epoch_;
          work.push_back(g);
        }
        i = next_[i];
      } while (i != work[k]);
    }
    return true;
  }
  // Members form a ring, so that two groups join by exchanging one link; the smaller one is renamed.
  constexpr std::uint32_t join(std::uint32_t a, std::uint32_t b) {
    if (size_[a] < size_[b]) std::swap(a, b);
    for (std::uint32_t i = b;;) {
      group_[i] = a;
      i = next_[i];
      if (i == b) break;
    }
    std::swap(next_[a], next_[b]);
    size_[a] += size_[b];
    return a;
  }

  user_lists users_;
  small_vector<std::uint32_t> group_, next_, size_, rank_, order_, seen_;
  std::uint32_t epoch_ = 0;
};

/// Calls `f(module)` for every module that is not the body of a fused op. The module is taken out of the program
/// meanwhile, so that `f` may add modules.
template <class Program, class F> constexpr void for_each_unfused(Program& p, F&& f) {
  small_vector<std::uint8_t> body(p.modules(), 0);
  for (std::uint32_t k = 0; k < p.modules(); ++k)
    for (std::uint32_t i = 0; i < p.module({k}).size(); ++i) {
      const auto& step = p.module({k})[i];
      if (step.kind == instruction_kind::op)
        if (const auto* fused = step.op.template get_if<op::fused>()) body[fused->body.index] = 1;
    }
  for (std::uint32_t k = 0; k < body.size(); ++k) {
    if (body[k]) continue;
    auto m = std::move(p.module({k}));
    f(m);
    p.module({k}) = std::move(m);
  }
}

/// Calls `f(rewriter, i)` for each instruction that has readers and that such a module has before the first call.
template <class Program, class F> constexpr void rewrite_unfused(Program& p, F&& f) {
  for_each_unfused(p, [&](auto& m) {
    rewriter<typename Program::module_type> r(m);
    const std::uint32_t count = r.size();
    for (std::uint32_t i = 0; i < count; ++i)
      if (!r.users(i).empty()) f(r, i);
  });
}

/// Whether an instruction is an op of this kind.
template <class Module> constexpr bool is_kind(const Module& m, std::uint32_t i, op_kind kind) {
  return m[i].kind == instruction_kind::op && m[i].op.kind() == kind;
}

}  // namespace kiln
