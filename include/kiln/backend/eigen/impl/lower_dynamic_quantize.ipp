#include "kiln/backend/eigen/integers.hpp"
#include "kiln/op/quant/dynamic_quantize_linear.hpp"
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

}  // namespace

std::unique_ptr<kernel> lower_dynamic_quantize(const kernel_request& r) {
  if (!r.instruction.op.is<op::dynamic_quantize_linear>()) return nullptr;
  return std::make_unique<dynamic_quantize_kernel>();
}

}  // namespace kiln::eigen
