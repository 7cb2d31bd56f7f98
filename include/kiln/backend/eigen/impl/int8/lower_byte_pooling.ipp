#include "kiln/backend/eigen/integers.hpp"
#include "kiln/backend/eigen/lower.hpp"

namespace kiln::eigen {
namespace {

class byte_pooling_kernel final : public kernel {
 public:
  explicit byte_pooling_kernel(const op::pooling& attributes) : attributes_(attributes) {}
  std::string name() const override { return "max pooling (bytes)"; }
  stride_support input_strides(std::size_t) const override { return stride_support::nchw_or_nhwc; }
  stride_support output_strides(std::size_t) const override { return stride_support::nchw_or_nhwc; }
  void run(const launch& l) const override {
    const tensor &x = l.in[0], &y = l.out[0];
    if (y.elements() == 0) return;
    kernels::pooling_problem p = pooling_problem_of(attributes_, x, y);
    kernels::byte_pooling images;
    images.x = x.data, images.y = y.data;
    images.batch = x.lens[0], images.channels = x.lens[1];
    images.x_image = x.strides[0], images.y_image = y.strides[0];
    images.x_channel = x.lens[1] == 1 ? 1 : x.strides[1], images.y_channel = y.lens[1] == 1 ? 1 : y.strides[1];
    for (std::size_t d = 2; d < x.rank(); ++d) {
      images.x_axis[d + 3 - x.rank()] = x.strides[d];
      images.y_axis[d + 3 - x.rank()] = y.strides[d];
    }
    kiln_eigen_integers()->max_pool(*l.pool, p, images, x.type == dtype::i8);
  }

 private:
  op::pooling attributes_;
};

}  // namespace

std::unique_ptr<kernel> lower_byte_pooling(const kernel_request& r) {
  const auto* pool = r.instruction.op.get_if<op::pooling>();
  if (!pool || pool->mode != op::pooling_mode::max || r.inputs[0].rank() < 3 || r.inputs[0].rank() > 5) return nullptr;
  if (r.inputs[0].type != dtype::u8 && r.inputs[0].type != dtype::i8) return nullptr;
  return std::make_unique<byte_pooling_kernel>(*pool);
}

}  // namespace kiln::eigen
