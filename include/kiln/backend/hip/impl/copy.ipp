#include <algorithm>

#include "kiln/backend/hip/lower.hpp"
#include "kiln/core/error.hpp"

namespace kiln::hip {
namespace {

constexpr int most_dims = 8;

// As kernels/copy.hpp has it.
struct copy_sizes {
  std::int64_t total = 0;
  std::int64_t lens[most_dims] = {}, from[most_dims] = {}, to[most_dims] = {};
};

// Drops extents of 1 and joins neighbours that lie evenly in both layouts.
int simplify(const tensor& from, const tensor& to, copy_sizes& s) {
  int rank = 0;
  s.total = to.elements();
  for (std::size_t d = 0; d < to.rank(); ++d) {
    if (to.lens[d] == 1) continue;
    if (rank > 0 && s.from[rank - 1] == from.strides[d] * to.lens[d] && s.to[rank - 1] == to.strides[d] * to.lens[d]) {
      s.lens[rank - 1] *= to.lens[d];
      s.from[rank - 1] = from.strides[d], s.to[rank - 1] = to.strides[d];
      continue;
    }
    if (rank == most_dims) raise(fault::of(errc::limit, "dims of a copy on the device", most_dims, to.rank()));
    s.lens[rank] = to.lens[d], s.from[rank] = from.strides[d], s.to[rank] = to.strides[d];
    ++rank;
  }
  return rank;
}

class copy_kernel final : public gpu_kernel {
 public:
  explicit copy_kernel(const context_pointer& where) : gpu_kernel(where, "copy") {}
  stride_support input_strides(std::size_t) const override { return stride_support::any; }
  stride_support output_strides(std::size_t) const override { return stride_support::any; }
  void prepare(std::span<const tensor> in, std::span<const tensor> out) const override {
    copy_sizes s;
    build(simplify(in[0], out[0], s), size_of(out[0].type));
  }
  void run(const launch& l) const override {
    const tensor &from = l.in[0], &to = l.out[0];
    copy_sizes s;
    const int rank = simplify(from, to, s);
    if (s.total == 0) return;
    if (rank == 0 || (rank == 1 && s.from[0] == 1 && s.to[0] == 1))
      return l.queue->copy(to.data, from.data, static_cast<std::size_t>(s.total) * size_of(to.type));
    constexpr unsigned threads = 256;
    const auto blocks = static_cast<unsigned>(std::min<std::int64_t>((s.total + threads - 1) / threads, 1 << 20));
    build(rank, size_of(to.type))->launch(*l.queue, {blocks}, {threads}, 0, to.data, from.data, s);
  }

 private:
  std::shared_ptr<const function> build(int rank, std::size_t width) const {
    const std::string key = std::to_string(rank) + " " + std::to_string(width);
    return *built_.get(key, [&] {
      constexpr const char* types[] = {"unsigned char", "unsigned short", "unsigned", "unsigned long long"};
      const char* type = types[width == 1 ? 0 : width == 2 ? 1 : width == 4 ? 2 : 3];
      return where().build(
          {"copy", "#include \"kiln/backend/hip/kernels/copy.hpp\"\nextern \"C\" __global__ void copy(" +
                       std::string(type) + "* to, const " + type +
                       "* from, kiln::device::copy_sizes s) {\n  kiln::device::copy_any<" + std::to_string(rank) +
                       ">(to, from, s, blockIdx.x * 256ll + threadIdx.x, gridDim.x * 256ll);\n}\n"});
    });
  }
  by_sizes<std::shared_ptr<const function>> built_;
};

}  // namespace

std::unique_ptr<kernel> make_copy(const context_pointer& where) { return std::make_unique<copy_kernel>(where); }

}  // namespace kiln::hip
