#pragma once
#include <map>
#include <mutex>

#include "runtime/compare.hpp"

/// A target whose steps tell what they were given, and programs that fall into branches.
namespace kiln::testing {

/// What a kernel of `recorded_target` was given.
struct seen_launch {
  std::vector<std::pair<const std::byte*, const std::byte*>> read, written;
  std::span<std::byte> scratch;
};

struct recorder {
  double alone = 1e-3, together = 1e-3;              // estimated seconds of every step, by one thread and by several
  std::size_t scratch = 256, scratch_of_thread = 0;  // the latter for each thread but the first
  std::map<std::string, std::size_t, std::less<>> scratch_of;  // of some ops
  bool flushes_denormals = true;
  std::function<void(std::string_view, const launch&)> run;  // in place of the op where it is set
  std::mutex mutex;
  std::vector<std::pair<std::string, seen_launch>> launches;  // by the op's name
  std::map<std::string, int, std::less<>> estimates;          // how often an op was estimated
};

/// Pointwise ops over f32, each a step.
class recorded_kernel final : public kernel {
 public:
  recorded_kernel(const operation& op, recorder& to) : op_(op), to_(to) {}
  std::string name() const override { return std::string(op_.name()); }
  double estimated_seconds(std::span<const tensor>, std::span<const tensor>, unsigned threads) const override {
    const std::lock_guard lock(to_.mutex);
    ++to_.estimates[name()];
    return threads == 1 ? to_.alone : to_.together;
  }
  std::size_t scratch_bytes(std::span<const tensor>, std::span<const tensor>, unsigned threads) const override {
    const auto own = to_.scratch_of.find(op_.name());
    return (own == to_.scratch_of.end() ? to_.scratch : own->second) + (threads - 1) * to_.scratch_of_thread;
  }
  void run(const launch& l) const override {
    const auto range = [](const tensor& t) {
      return std::pair<const std::byte*, const std::byte*>(t.data, t.data + t.elements() * 4);
    };
    seen_launch seen;
    for (const tensor& t : l.in) seen.read.push_back(range(t));
    for (const tensor& t : l.out) seen.written.push_back(range(t));
    seen.scratch = l.scratch;
    {
      const std::lock_guard lock(to_.mutex);
      to_.launches.emplace_back(name(), seen);
    }
    if (to_.run) to_.run(op_.name(), l);
    inline_vector<const void*, 8> in;
    for (const tensor& t : l.in) in.push_back(t.data);
    op_.table().tile(op_.data(), dtype::f32, in.data(), l.out[0].data, l.out[0].elements());
  }

 private:
  operation op_;
  recorder& to_;
};

class recorded_target final : public target {
 public:
  explicit recorded_target(recorder& to) : to_(to) {}
  std::string_view name() const override { return "recorded"; }
  bool fuses() const override { return false; }
  bool flushes_denormals() const override { return to_.flushes_denormals; }
  std::unique_ptr<kernel> make_kernel(const kernel_request& r) const override {
    if (r.instruction.op.kind() != op_kind::pointwise) return nullptr;
    return std::make_unique<recorded_kernel>(r.instruction.op, to_);
  }

 private:
  recorder& to_;
};

inline executable compile_recorded(const std::function<void(builder&)>& make, recorder& to, unsigned threads = 2) {
  builder b;
  make(b);
  compile_options o;
  o.threads = threads;
  return compile(b.finish(), recorded_target(to), o);
}

/// [group, branch] of each step.
inline std::vector<std::pair<std::int64_t, std::int64_t>> groups_of(const executable& e) {
  std::vector<std::pair<std::int64_t, std::int64_t>> out;
  for (const step_info& s : e.report().steps) out.emplace_back(s.group, s.branch);
  return out;
}

inline bool has_groups(const executable& e) {
  return std::any_of(e.report().steps.begin(), e.report().steps.end(), [](const step_info& s) { return s.group >= 0; });
}

/// A trunk, two branches of two and one steps, and what joins them.
inline void forked(builder& b) {
  const value x = b.input("x", dtype::f32, {8}), trunk = x.neg();
  const value left = trunk.exp().tanh(), right = trunk.sin();
  b.output((left + right).abs(), "y");
}

/// Three long branches, in which the memory of a step's operands is free again two steps later.
inline void long_branches(builder& b) {
  const value x = b.input("x", dtype::f32, {64});
  for (int branch = 0; branch < 3; ++branch) {
    value v = branch == 0 ? x.exp() : branch == 1 ? x.sin() : x.tanh();
    for (int step = 0; step < 4; ++step) v = branch == 0 ? v.neg().abs() : branch == 1 ? v.cos() : v.sigmoid();
    b.output(v);
  }
}

}  // namespace kiln::testing
