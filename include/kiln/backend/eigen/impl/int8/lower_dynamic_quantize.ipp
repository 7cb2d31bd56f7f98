#include "kiln/backend/eigen/integers.hpp"
#include "kiln/op/quant/dynamic_quantize_linear.hpp"
#include "kiln/op/quant/zero_point_sums.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

class dynamic_quantize_kernel final : public kernel {
 public:
  std::string name() const override { return "dynamic_quantize_linear"; }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> /*out*/,
                            unsigned threads) const override {
    return static_cast<std::size_t>(kiln_eigen_integers()->range_scratch(in[0].elements(), threads));
  }
  void run(const launch& l) const override {
    const tensor& x = l.in[0];
    kiln_eigen_integers()->quantize_by_range(*l.pool, x.as<const float>(), x.elements(), l.out[0].as<std::uint8_t>(),
                                             l.out[1].as<float>(), l.out[2].as<std::uint8_t>(), l.scratch.data());
  }
};

class zero_point_kernel final : public kernel {
 public:
  std::string name() const override { return "zero_point_sums"; }
  void run(const launch& l) const override {
    const auto* const sums = l.in[0].as<const std::int32_t>();
    auto* const to = l.out[0].as<std::int32_t>();
    const std::uint32_t zero = number(l.in[1]);  // sums of 32 bits wrap
    for (std::int64_t n = 0, all = l.out[0].elements(); n < all; ++n)
      to[n] = static_cast<std::int32_t>(zero * static_cast<std::uint32_t>(sums[n]));
  }

 private:
  static std::uint32_t number(const tensor& t) {
    if (t.type == dtype::u8) return *t.as<const std::uint8_t>();
    return static_cast<std::uint32_t>(t.type == dtype::i8 ? *t.as<const std::int8_t>() : *t.as<const std::int32_t>());
  }
};

}  // namespace

std::unique_ptr<kernel> lower_dynamic_quantize(const kernel_request& r) {
  if (r.instruction.op.is<op::dynamic_quantize_linear>()) return std::make_unique<dynamic_quantize_kernel>();
  if (r.instruction.op.is<op::zero_point_sums>()) return std::make_unique<zero_point_kernel>();
  return nullptr;
}

}  // namespace kiln::eigen
