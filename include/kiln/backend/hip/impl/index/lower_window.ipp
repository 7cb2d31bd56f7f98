#include "kiln/backend/hip/impl/index/index_call.hpp"

namespace kiln::hip {
namespace {

class pooling_kernel final : public index_kernel {
 public:
  pooling_kernel(const context_pointer& where, const op::pooling& op) : index_kernel(where, "pooling"), op_(op) {}

 protected:
  std::vector<index_call> calls(std::span<const tensor> in, std::span<const tensor> out,
                                const bindings*) const override {
    const detail::window w = detail::resolve_window(in[0].rank(), op_.stride, op_.dilation, op_.pads).value();
    gpu::pool_sizes n{};
    const std::size_t missing = 5 - in[0].rank();
    for (std::size_t d = 0; d < missing; ++d) n.dims[d] = {1, 1, 1, 1, 1, 0, 0};
    for (std::size_t d = 0; d + 2 < in[0].rank(); ++d)
      n.dims[missing + d] = {in[0].lens[d + 2], out[0].lens[d + 2], op_.lengths[d], w.stride[d],
                             w.dilation[d],     w.begin[d],         w.end[d]};
    const dtype t = in[0].type;
    n.counts_padding = op_.count_include_pad, n.power = op_.lp_order;
    n.least = is_signed_integer(t) ? std::int64_t{-1} << (8 * size_of(t) - 1) : 0;
    const std::string type = name_of(t);
    return {{"pool",
             "reduce/window.hpp",
             {type, type},
             "pool<" + std::to_string(static_cast<int>(op_.mode)) + ">(p1, p0, n, at)",
             n,
             out[0].elements()}};
  }

 private:
  op::pooling op_;
};

class lrn_kernel final : public index_kernel {
 public:
  lrn_kernel(const context_pointer& where, const op::lrn& op) : index_kernel(where, "lrn"), op_(op) {}

 protected:
  std::vector<index_call> calls(std::span<const tensor> in, std::span<const tensor> out,
                                const bindings*) const override {
    const axis_extents s(in[0].lens, 1);
    const std::int64_t before = (op_.size - 1) / 2;
    const std::string type = name_of(in[0].type);
    return {{"lrn",
             "reduce/window.hpp",
             {type, type},
             "lrn(p1, p0, n, at)",
             gpu::lrn_sizes{s.extent, s.inner, before, op_.size - 1 - before,
                            static_cast<double>(op_.alpha) / static_cast<double>(op_.size), op_.beta, op_.bias},
             out[0].elements()}};
  }

 private:
  op::lrn op_;
};

}  // namespace

std::unique_ptr<kernel> lower_window(const kernel_request& r, const context_pointer& where) {
  if (const auto* pooling = r.instruction.op.get_if<op::pooling>())
    return std::make_unique<pooling_kernel>(where, *pooling);
  if (const auto* lrn = r.instruction.op.get_if<op::lrn>()) return std::make_unique<lrn_kernel>(where, *lrn);
  return nullptr;
}

}  // namespace kiln::hip
