#include <algorithm>

#include "kiln/backend/hip/impl/index/index_call.hpp"
#include "kiln/backend/hip/lower.hpp"

namespace kiln::hip {
namespace {

constexpr int most_dims = gpu::copy_sizes::dims, threads = 256;

// A copy's kernel: its text, and how it is launched.
struct copy_plan {
  gpu::copy_sizes sizes{};
  int rank = 0;
  std::size_t width = 1;  // bytes moved at a time
  bool turned = false;
  int edge = 32, run = 1;  // of a square; neighbors moved at a time
  bool plain = false;      // one piece of memory
  bool dense = false;      // the result is; a thread works runs of it
  std::int64_t blocks() const {
    if (!turned) {
      // where there are many elements a thread has four of them
      const std::int64_t each = dense ? run : width < 16 && sizes.total >= std::int64_t{1} << 18 ? 4 : 1;
      return std::min<std::int64_t>((sizes.total + threads * each - 1) / (threads * each), 1 << 20);
    }
    std::int64_t n = 1;
    for (int d = 0; d < rank; ++d) n *= d < rank - 2 ? sizes.lens[d] : (sizes.lens[d] + edge - 1) / edge;
    return n;
  }
};

// Results without gaps of enough elements are written 16 bytes at a time. Where elements are words of that size,
// threads work one each.
void choose_runs(copy_plan& p, const tensor& to) {
  std::int64_t step = 1;
  for (int d = p.rank; d-- > 0; step *= p.sizes.lens[d])
    if (p.sizes.to[d] != step) return;
  constexpr std::int64_t enough = std::int64_t{1} << 15;
  const int run = 16 / static_cast<int>(p.width);
  p.dense = run > 1 && p.sizes.total >= enough && reinterpret_cast<std::uintptr_t>(to.data) % 16 == 0;
  if (p.dense) p.run = run;
}

copy_plan plan_copy(const tensor& from, const tensor& to) {
  // dims in the order of the result's steps; those of extent 1 go, and adjacent dims of even steps in both are joined
  const loop_nest n =
      make_nest({to.lens.data(), to.lens.size()}, {&from, 1}, {&to, 1}, std::vector<bool>(to.lens.size(), true), true);
  const std::size_t rank = n.extent.size();
  if (rank > most_dims) raise(fault::of(errc::limit, "dims of a copy on the device", most_dims, rank));
  copy_plan p;
  p.rank = static_cast<int>(rank);
  p.sizes.total = to.elements();
  p.width = size_of(to.type);
  for (std::size_t d = 0; d < rank; ++d)
    p.sizes.lens[d] = n.extent[d], p.sizes.from[d] = n.step[0][d], p.sizes.to[d] = n.step[1][d];
  if (rank == 0 || (rank == 1 && p.sizes.from[0] == 1 && p.sizes.to[0] == 1)) {
    p.plain = true;
    return p;
  }
  const int last = p.rank - 1;
  if (p.sizes.from[last] == 1 && p.sizes.to[last] == 1) {  // runs: as many bytes at a time as divide everything
    const auto fits = [&](std::size_t w) {
      const auto each = static_cast<std::int64_t>(w / p.width);
      bool all = p.sizes.lens[last] % each == 0;
      for (int d = 0; d < last; ++d) all = all && p.sizes.from[d] % each == 0 && p.sizes.to[d] % each == 0;
      for (const tensor* t : {&from, &to}) all = all && reinterpret_cast<std::uintptr_t>(t->data) % w == 0;
      return all;
    };
    std::size_t word = p.width;
    while (word < 16 && fits(word * 2)) word *= 2;
    const auto each = static_cast<std::int64_t>(word / p.width);
    p.sizes.total /= each, p.sizes.lens[last] /= each;
    for (int d = 0; d < last; ++d) p.sizes.from[d] /= each, p.sizes.to[d] /= each;
    p.width = word;
    choose_runs(p, to);
    return p;
  }
  int contiguous = -1;
  for (int d = 0; d < last; ++d)
    if (p.sizes.from[d] == 1) contiguous = d;
  if (contiguous < 0 || p.sizes.to[last] != 1 || p.sizes.lens[contiguous] < 8 || p.sizes.lens[last] < 8) {
    choose_runs(p, to);
    return p;
  }
  for (gpu::i64* list : {p.sizes.lens, p.sizes.from, p.sizes.to})
    std::rotate(list + contiguous, list + contiguous + 1, list + last);
  p.turned = true;
  p.edge = p.width <= 2 ? 64 : 32;
  const auto all_multiples = [&](std::int64_t n) {
    bool all = p.sizes.lens[last] % n == 0 && p.sizes.lens[last - 1] % n == 0;
    for (int d = 0; d <= last; ++d)
      all = all && (p.sizes.from[d] % n == 0 || d == last - 1) && (p.sizes.to[d] % n == 0 || d == last);
    for (const tensor* t : {&from, &to})
      all = all && reinterpret_cast<std::uintptr_t>(t->data) % (p.width * static_cast<std::size_t>(n)) == 0;
    return all;
  };
  while (p.width * static_cast<std::size_t>(p.run) < 4 && all_multiples(p.run * 2)) p.run *= 2;
  return p;
}

class copy_kernel final : public gpu_kernel {
 public:
  explicit copy_kernel(const context_pointer& where) : gpu_kernel(where, "copy") {}
  stride_support input_strides(std::size_t) const override { return stride_support::any; }
  stride_support output_strides(std::size_t) const override { return stride_support::any; }
  void prepare(std::span<const tensor> in, std::span<const tensor> out) const override {
    if (const copy_plan p = plan_copy(in[0], out[0]); !p.plain && p.sizes.total != 0) build(p);
  }
  void run(const launch& l) const override {
    const tensor &from = l.in[0], &to = l.out[0];
    const copy_plan p = plan_copy(from, to);
    if (p.sizes.total == 0) return;
    if (p.plain) return l.queue->copy(to.data, from.data, static_cast<std::size_t>(p.sizes.total) * size_of(to.type));
    build(p)->launch(*l.queue, {static_cast<unsigned>(p.blocks())}, {threads}, 0, to.data, from.data, p.sizes);
  }

 private:
  std::shared_ptr<const function> build(const copy_plan& p) const {
    const std::string_view type = word_name(p.width);
    gpu::i64 reach = p.sizes.total;
    for (int d = 0; d < p.rank; ++d)
      reach = std::max({reach, p.sizes.lens[d] * std::abs(p.sizes.from[d]), p.sizes.lens[d] * std::abs(p.sizes.to[d])});
    const bool narrow = reach < (std::int64_t{1} << 27);  // a sum of eight such offsets still is an int
    const std::string rank = std::to_string(p.rank), edge = std::to_string(p.edge);
    kernel_text t;
    t.line("#include \"kiln/backend/hip/kernels/index/copy.hpp\"");
    t.line("using namespace kiln::gpu;");
    t.open_kernel(256, "copy(", type, "* to, const ", type, "* from, copy_sizes s)");
    if (p.turned) {
      t.line("__shared__ ", type, " tile[", edge, "][", edge, " + 1];");
      t.line("copy_turned<", rank, ", ", edge, ", ", p.run, ">(to, from, s, tile, blockIdx.x);");
    } else {
      t.line(p.dense ? "copy_runs<" + rank + ", " + std::to_string(p.run) : "copy_any<" + rank, ", ",
             narrow ? "int" : "i64", ">(to, from, s, blockIdx.x * 256ll + threadIdx.x, gridDim.x * 256ll);");
    }
    t.close();
    return *built_.get(t.str(), [&] { return where().build({"copy", t.str()}); });
  }
  by_sizes<std::shared_ptr<const function>> built_;
};

}  // namespace

std::unique_ptr<kernel> make_copy(const context_pointer& where) { return std::make_unique<copy_kernel>(where); }

}  // namespace kiln::hip
