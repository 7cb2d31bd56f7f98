#include <algorithm>
#include <limits>

#include "kiln/backend/eigen/sampling.hpp"
#include "kiln/op/nn/resample.hpp"

namespace kiln::eigen {
namespace {

// The dims of a problem at these sizes, without tables. Few elements after the last axis (channels of a pixel) are
// sampled with it, as if each had positions of its own: a loop over so few would be short.
kernels::resample_problem problem_of(const op::resample& op, const ints& x, const ints& y, std::size_t bytes) {
  kernels::resample_problem p;
  const auto first = static_cast<std::size_t>(op.axes[0]), last = static_cast<std::size_t>(op.axes.back());
  for (std::size_t d = 0; d < first; ++d) p.outer *= x[d];
  for (std::size_t d = last + 1; d < x.size(); ++d) p.inner *= x[d];
  for (std::size_t d = first; d <= last; ++d) {
    p.axes[p.count].in = x[d];
    p.axes[p.count++].out = y[d];
  }
  if (p.inner * static_cast<std::int64_t>(bytes) < 32) {
    p.axes[p.count - 1].in *= p.inner;
    p.axes[p.count - 1].out *= p.inner;
    p.inner = 1;
  }
  return p;
}

std::int64_t in_words(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

// The positions and weights of all axes in the kernel's own form.
class axis_tables {
 public:
  axis_tables(const op::resample& op, dtype type) : op_(op), sum_bytes_(type == dtype::f64 ? 8 : 4) {}

  std::size_t bytes(const kernels::resample_problem& p, std::span<const tensor> in) const {
    std::int64_t all = 0;
    for (std::size_t k = 0; k < op_.axes.size(); ++k) {
      const std::int64_t n = in[op_.table(k)].lens[0] * axis_of(p, k).out;
      all += in_words(4 * n) + (op_.weighted ? in_words(sum_bytes_ * n) : 0);
    }
    return static_cast<std::size_t>(all);
  }
  // Writes them to `to`; raises where a position lies outside its extent. Without `fill`, they are there.
  void place(kernels::resample_problem& p, std::span<const tensor> in, std::byte* to, bool fill) const {
    for (std::size_t k = 0; k < op_.axes.size(); ++k) {
      kernels::resample_axis& a = axis_of(p, k);
      const tensor& table = in[op_.table(k)];
      a.taps = table.lens[0];
      const std::int64_t n = table.lens[1], each = n == 0 ? 1 : std::max<std::int64_t>(1, a.out / n),
                         extent = a.in / each;
      auto* const at = reinterpret_cast<std::int32_t*>(to);
      a.at = at;
      to += in_words(4 * a.taps * a.out);
      for (std::int64_t s = 0; fill && s < a.taps * n; ++s)
        for (std::int64_t c = 0, from = position(table, s, extent); c < each; ++c)
          at[s * each + c] = static_cast<std::int32_t>(from * each + c);
      if (!op_.weighted) {
        a.repeats = repeats(at, a.out);
        continue;
      }
      a.weights = to;
      if (fill && sum_bytes_ == 8)
        copy_weights(in[op_.table(k) + 1], reinterpret_cast<double*>(to), each);
      else if (fill)
        copy_weights(in[op_.table(k) + 1], reinterpret_cast<float*>(to), each);
      to += in_words(sum_bytes_ * a.taps * a.out);
      if (sum_bytes_ == 4 && each == 1) a.repeats = doubles(a) ? 2 : 0;
    }
  }

 private:
  kernels::resample_axis& axis_of(kernels::resample_problem& p, std::size_t k) const {
    return p.axes[op_.axes[k] - op_.axes[0]];
  }
  const kernels::resample_axis& axis_of(const kernels::resample_problem& p, std::size_t k) const {
    return p.axes[op_.axes[k] - op_.axes[0]];
  }
  static std::int64_t position(const tensor& table, std::int64_t s, std::int64_t extent) {
    std::int64_t at = 0;
    decode(table.type, table.data + static_cast<std::size_t>(s) * size_of(table.type), &at, 1);
    if (at < -extent || at >= extent)
      raise(fault::of(errc::invalid_argument, "an index lies within the extent", extent, at));
    return at < 0 ? at + extent : at;
  }
  template <class C> static void copy_weights(const tensor& table, C* to, std::int64_t each) {
    const std::int64_t n = table.elements();
    for (std::int64_t s = n; s-- > 0;) {
      C w = 0;
      decode(table.type, table.data + static_cast<std::size_t>(s) * size_of(table.type), &w, 1);
      std::fill_n(to + s * each, each, w);
    }
  }
  // How often each element stands one after the other, where all of them do as often; else 0.
  static std::int64_t repeats(const std::int32_t* at, std::int64_t n) {
    std::int64_t r = 0;
    while (r < n && at[r] == 0) ++r;
    for (std::int64_t o = 0; r > 0 && o < n; ++o)
      if (at[o] != o / r) return 0;
    return r;
  }

  // Whether weights alternate and positions go on by one after two, but for the first and the last two elements.
  static bool doubles(const kernels::resample_axis& a) {
    if (a.taps != 2 || a.out < 8 || a.out != 2 * a.in) return false;
    const auto* const w = static_cast<const float*>(a.weights);
    for (std::int64_t k = 0; k < 2; ++k)
      for (std::int64_t o = k * a.out + 4; o < (k + 1) * a.out - 2; ++o)
        if (a.at[o] != a.at[o - 2] + 1 || w[o] != w[o - 2]) return false;
    return true;
  }

  op::resample op_;
  std::int64_t sum_bytes_;
};

class resample_kernel final : public kernel {
 public:
  resample_kernel(const op::resample& op, dtype type, buffer packed)
      : op_(op), tables_(op, type), packed_(std::move(packed)), is_packed_(packed_.size() != 0) {}
  std::string name() const override { return op_.weighted ? "resample" : "resample, nearest"; }
  bool packed_input(std::size_t i) const override { return i > 0 && is_packed_; }
  std::size_t packed_bytes() const override { return packed_.size(); }

  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    auto p = problem_of(op_, in[0].lens, out[0].lens, size_of(in[0].type));
    for (std::size_t k = 0; k < op_.axes.size() && op_.weighted; ++k)
      p.axes[op_.axes[k] - op_.axes[0]].weights = &op_;  // not read
    const auto sums =
        static_cast<std::size_t>(kiln_eigen_sampling()->resample_scratch_bytes(p, in[0].type, threads) + 64);
    return sums + (is_packed_ ? 0 : tables_.bytes(p, in));
  }
  void run(const launch& l) const override {
    const tensor &x = l.in[0], &y = l.out[0];
    if (y.elements() == 0) return;
    auto p = problem_of(op_, x.lens, y.lens, size_of(x.type));
    p.x = x.data, p.y = y.data;
    std::byte* const own = is_packed_ ? const_cast<std::byte*>(packed_.data()) : l.scratch.data();
    tables_.place(p, l.in, own, !is_packed_);
    kiln_eigen_sampling()->resample(*l.pool, p, x.type, l.scratch.data() + (is_packed_ ? 0 : tables_.bytes(p, l.in)));
  }

 private:
  op::resample op_;
  axis_tables tables_;
  buffer packed_;
  bool is_packed_;
};

}  // namespace

std::unique_ptr<kernel> lower_resample(const kernel_request& r) {
  const auto* op = r.instruction.op.get_if<op::resample>();
  if (!op || op->axes.empty()) return nullptr;
  const dtype type = r.inputs[0].type;
  if (op->weighted && type != dtype::f32 && type != dtype::f64 && type != dtype::u8 && type != dtype::i8)
    return nullptr;
  if (!op->weighted && bits_of(type) < 8) return nullptr;
  // tables depend on no dims before the axes
  const auto first = static_cast<std::size_t>(op->axes[0]);
  bool known = true;
  ints lens, made;
  for (std::size_t i = 0; i < r.inputs.size(); ++i)
    for (std::size_t d = 0; d < r.inputs[i].rank(); ++d) {
      const dimension n = r.inputs[i].lens[d];
      known = known && (n.is_constant() || (i == 0 && d < first));
      if (n.is_constant() && n.value() > std::numeric_limits<std::int32_t>::max() / 8) return nullptr;
    }
  for (std::size_t d = 0; known && d < r.inputs[0].rank(); ++d) {
    lens.push_back(d < first ? 1 : r.inputs[0].lens[d].value());
    made.push_back(d < first ? 1 : r.instruction.results[0].lens[d].value());
  }
  for (std::size_t i = 1; i < r.inputs.size(); ++i)
    known = known && r.constants[i] && r.constant_layouts[i].is_standard();
  buffer packed;
  if (known) {
    auto p = problem_of(*op, lens, made, size_of(type));
    const axis_tables tables(*op, type);
    std::vector<tensor> in(r.inputs.size());
    for (std::size_t i = 1; i < in.size(); ++i) {
      in[i].type = r.inputs[i].type;
      in[i].lens = to_ints(r.inputs[i].lens);
    }
    packed = r.packed(std::max<std::size_t>(64, tables.bytes(p, in)), [&](std::byte* to) {
      std::vector<argument> held;
      for (std::size_t i = 1; i < in.size(); ++i) {
        held.push_back(argument(*r.constants[i]));
        in[i] = tensor_of(held.back());
      }
      tables.place(p, in, to, true);
    });
  }
  return std::make_unique<resample_kernel>(*op, type, std::move(packed));
}

}  // namespace kiln::eigen
