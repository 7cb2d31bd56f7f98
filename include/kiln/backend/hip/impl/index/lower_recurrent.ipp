#include <algorithm>
#include <optional>

#include "kiln/backend/hip/impl/index/index_call.hpp"
#include "kiln/backend/hip/kernels/sequence/arguments.hpp"
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

// The fewest blocks whose registers hold the recurrence matrix as factors, with few enough for a warp that a step is
// short; empty where a cluster does not hold it.
std::optional<gpu::cluster_shape> cluster_for(int gates, std::int64_t hidden, const architecture& where) {
  constexpr int most_warps = 16, wanted = 16, most = 24;
  if (hidden % 16 != 0 || hidden > 4096) return std::nullopt;
  const int depths = static_cast<int>(hidden) / 16;
  for (const int products : {wanted, most})
    for (const int blocks : {1, 2, 4, 8, 16}) {
      gpu::cluster_shape s{gates, static_cast<int>(hidden), blocks, 1};
      if (depths % blocks != 0 || s.groups() > most_warps) continue;
      for (int n = 2; n <= depths && s.groups() * n <= most_warps; ++n)
        if (depths % n == 0) s.splits = n;
      if (s.products() <= products && static_cast<std::size_t>(s.shared_bytes()) <= where.shared_bytes) return s;
    }
  return std::nullopt;
}

// A recurrence in one launch of clusters where they hold its matrix, else by a launch a step.
class recurrent_kernel final : public index_kernel {
 public:
  recurrent_kernel(const context_pointer& where, const operation& op)
      : index_kernel(where, std::string(op.name())), r_(*op.get_if<op::recurrent>()) {}
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor>, unsigned) const override {
    if (cluster(in)) return 0;
    return static_cast<std::size_t>(gpu::cell_states) * static_cast<std::size_t>(in[3].elements()) *
           (in[0].type == dtype::f64 ? 8 : 4);
  }

 protected:
  std::vector<index_call> calls(std::span<const tensor> in, std::span<const tensor>, const bindings*) const override {
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
    if (const auto s = cluster(in)) {
      const std::string shape = "cluster_shape{" + std::to_string(s->gates) + ", " + std::to_string(s->hidden) + ", " +
                                std::to_string(s->blocks) + ", " + std::to_string(s->splits) + "}";
      index_call one{"recur_in_cluster", "sequence/recurrent_cluster.hpp", types,
                     "recur_in_cluster<" + cell_text(r_) + ", " + shape + ">(" + step + ", shared)", n};
      one.work = (n.batch + gpu::cluster_entries - 1) / gpu::cluster_entries;
      one.lanes = s->threads(), one.cluster = s->blocks, one.shared_bytes = s->shared_bytes();
      one.short_results = true;
      return {one};
    }
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
  // A gated unit's product needs the reset state of all units: two products a step.
  bool resets_first() const { return r_.cell == op::cell_kind::gru && !r_.linear_before_reset; }
  std::optional<gpu::cluster_shape> cluster(std::span<const tensor> in) const {
    const bool narrow = in[0].type == dtype::f16 || in[0].type == dtype::bf16;
    if (!narrow || where().arch().matrices != matrix_unit::wgmma || resets_first()) return std::nullopt;
    return cluster_for(static_cast<int>(r_.gates()), in[3].lens[1], where().arch());
  }

  op::recurrent r_;
};

}  // namespace

std::unique_ptr<kernel> lower_recurrent(const kernel_request& r, const context_pointer& where) {
  return std::make_unique<recurrent_kernel>(where, r.instruction.op);
}

}  // namespace kiln::hip
