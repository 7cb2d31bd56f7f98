#include <optional>

#include "kiln/backend/hip/impl/index/index_call.hpp"
#include "kiln/backend/hip/impl/index/recurrent_shapes.hpp"
#include "kiln/op/more.hpp"

namespace kiln::hip {
namespace {

std::string cell_text(const op::recurrent& r) {
  std::string out = "cell<" + std::to_string(static_cast<int>(r.cell));
  for (std::size_t f = 0; f < 3; ++f)
    out += ", kiln::op::cell_function::" +
           std::string(to_string(f < r.functions.size() ? r.functions[f] : op::cell_function::tanh));
  for (const bool b : {r.reverse, r.linear_before_reset, r.coupled}) out += b ? ", true" : ", false";
  return out + ">";
}

// A recurrence in one launch where registers and shared memory hold its matrix, else by a launch a step.
class recurrent_kernel final : public index_kernel {
 public:
  recurrent_kernel(const context_pointer& where, const operation& op)
      : index_kernel(where, std::string(op.name())), r_(*op.get_if<op::recurrent>()) {}
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor>, unsigned) const override {
    if (whole(in)) return 0;
    return static_cast<std::size_t>(gpu::cell_states) * static_cast<std::size_t>(in[3].elements()) *
           (in[0].type == dtype::f64 ? 8 : 4);
  }

 protected:
  std::vector<index_call> calls(std::span<const tensor> in, std::span<const tensor>, const bindings*) const override {
    if (auto one = whole(in)) return {std::move(*one)};
    auto [types, step, n] = cells(in);
    const std::int64_t units = in[3].elements();
    std::vector<index_call> calls = {{"begin_cells", "sequence/sequence.hpp", types, step + ".begin(at)", n, units}};
    constexpr std::int64_t across = gpu::cell_units;
    constexpr int lanes = gpu::cell_units * gpu::cell_threads;
    const std::int64_t blocks = n.batch * ((n.hidden + across - 1) / across);
    const auto advance = [&](bool gates) {
      calls.push_back({"advance_cells", "sequence/sequence.hpp", types,
                       step + (gates ? ".advance<true>(row, lane)" : ".advance<false>(row, lane)"), n, blocks, lanes});
    };
    for (std::int64_t k = 0; k < in[0].lens[0]; ++k) {
      n.step = k;
      if (resets_first()) advance(true);
      advance(false);
    }
    return calls;
  }

 private:
  // What all kernels of cells are passed: the operands' types, the function over them, and the numbers.
  struct cell_call {
    std::vector<std::string> types;
    std::string step;
    gpu::recurrent_sizes n;
  };
  cell_call cells(std::span<const tensor> in) const {
    const bool remembers = r_.cell == op::cell_kind::lstm;
    const std::string t = name_of(in[0].type), lengths = name_of(in[4].type),
                      room = std::string(value_name(in[0].type));
    std::vector<std::string> types = {t, t, t, t, lengths};
    if (remembers) types.insert(types.end(), {t, t});
    types.insert(types.end(), {t, t});
    if (remembers) types.push_back(t);
    types.insert(types.end(), {t, room});
    // p0, p1, ...: gates, recurrence, bias, first state, lengths, first cell and peepholes; then the results and the
    // room
    const std::string step = "cell_step<" + cell_text(r_) + ", " + t + ", " + lengths +
                             (remembers ? ">{p7, p8, p9, p11, p0, p1, p2, p3, p4, p5, p6, n}"
                                        : ">{p5, p6, nullptr, p8, p0, p1, p2, p3, p4, nullptr, nullptr, n}");
    gpu::recurrent_sizes n{in[0].lens[0], in[3].lens[0], in[3].lens[1], 0, r_.clip, {}, {}};
    for (std::size_t f = 0; f < 3; ++f) {
      if (f < r_.alpha.size()) n.alpha[f] = r_.alpha[f];
      if (f < r_.beta.size()) n.beta[f] = r_.beta[f];
    }
    return {std::move(types), step, n};
  }
  // All steps in one launch, where registers and shared memory hold the matrix. A device whose groups of
  // multiprocessors have fewer than others has no room for large clusters.
  std::optional<index_call> whole(std::span<const tensor> in) const {
    for (const int most : {blocks_at_most, blocks_everywhere}) {
      auto one = whole(in, most);
      if (!one || one->cluster <= blocks_everywhere) return one;
      if (*room_.get(one->call, [&] { return has_room(*one); })) return one;
    }
    return std::nullopt;
  }
  std::optional<index_call> whole(std::span<const tensor> in, int most_blocks) const {
    const auto call = [&](const std::string& function, const char* header, const std::string& shape, const auto& s,
                          int entries) {
      const auto [types, step, n] = cells(in);
      index_call one{function, header, types, function + "<" + cell_text(r_) + ", " + shape + ">(" + step + ", shared)",
                     n};
      one.work = (n.batch + entries - 1) / entries;
      one.lanes = s.threads(), one.cluster = s.blocks, one.shared_bytes = s.shared_bytes();
      one.short_results = is_narrow_float(in);
      return one;
    };
    if (const auto s = cluster(in, most_blocks))
      return call("recur_in_cluster", "sequence/recurrent_cluster.hpp",
                  cat("cluster_shape{", s->gates, ", ", s->hidden, ", ", s->blocks, ", ", s->splits, "}"), *s,
                  gpu::cluster_entries);
    if (const auto s = held(in, most_blocks))
      return call("recur_with_held_matrix", "sequence/recurrent_held.hpp",
                  cat("held_shape{", s->gates, ", ", s->hidden, ", ", s->blocks, ", ", s->entries, ", ", s->parts, ", ",
                      s->value_bytes, ", ", s->resets_first ? "true}" : "false}"),
                  *s, s->entries);
    return std::nullopt;
  }
  // A gated unit's product needs the reset state of all units: two products a step.
  bool resets_first() const { return r_.cell == op::cell_kind::gru && !r_.linear_before_reset; }
  static bool is_narrow_float(std::span<const tensor> in) {
    return in[0].type == dtype::f16 || in[0].type == dtype::bf16;
  }
  std::optional<gpu::cluster_shape> cluster(std::span<const tensor> in, int most_blocks) const {
    if (!is_narrow_float(in) || where().arch().matrices != matrix_unit::wgmma || resets_first()) return std::nullopt;
    return cluster_for(static_cast<int>(r_.gates()), in[3].lens[1], where().arch(), most_blocks);
  }
  std::optional<gpu::held_shape> held(std::span<const tensor> in, int most_blocks) const {
    return held_for(static_cast<int>(r_.gates()), in[3].lens[1], in[3].lens[0], in[0].type == dtype::f64 ? 8 : 4,
                    resets_first(), where().arch(), most_blocks);
  }

  op::recurrent r_;
  by_sizes<bool> room_;  // for the clusters of a call
};

}  // namespace

std::unique_ptr<kernel> lower_recurrent(const kernel_request& r, const context_pointer& where) {
  return std::make_unique<recurrent_kernel>(where, r.instruction.op);
}

}  // namespace kiln::hip
