#include "kiln/backend/hip/impl/index/index_call.hpp"

namespace kiln::hip {
namespace {

class pooling_kernel final : public index_kernel {
 public:
  pooling_kernel(const context_pointer& where, const op::pooling& op) : index_kernel(where, "pooling"), op_(op) {}
  stride_support input_strides(std::size_t) const override { return stride_support::nchw_or_nhwc; }
  stride_support output_strides(std::size_t) const override { return stride_support::nchw_or_nhwc; }

 protected:
  std::vector<index_call> calls(std::span<const tensor> in, std::span<const tensor> out,
                                const bindings*) const override {
    const tensor &x = in[0], &y = out[0];
    const detail::window w = detail::resolve_window(x.rank(), op_.stride, op_.dilation, op_.pads).value();
    gpu::pool_sizes n{};
    const std::size_t missing = 5 - x.rank();
    for (std::size_t d = 0; d < missing; ++d) n.dims[d] = {1, 1, 1, 1, 1, 0, 0, 0, 0};
    for (std::size_t d = 0; d + 2 < x.rank(); ++d)
      n.dims[missing + d] = {x.lens[d + 2], y.lens[d + 2], op_.lengths[d],   w.stride[d],     w.dilation[d],
                             w.begin[d],    w.end[d],      x.strides[d + 2], y.strides[d + 2]};
    const dtype t = x.type;
    n.counts_padding = op_.count_include_pad, n.power = op_.lp_order;
    n.least = is_signed_integer(t) ? std::int64_t{-1} << (8 * size_of(t) - 1) : 0;
    n.channels = x.lens[1];
    n.image = {x.strides[0], y.strides[0]}, n.channel = {x.strides[1], y.strides[1]};
    // one channel alone has any stride
    const bool last = n.channels > 1 && n.channel.in == 1 && n.channel.out == 1;
    const int run = last ? vector_of(t, n, {x.data, y.data}) : 1;
    n.channels /= run, n.channel.in *= run, n.channel.out *= run;
    const std::string type = name_of(t);
    return {{"pool",
             "reduce/window.hpp",
             {type, type},
             "pool<" + std::to_string(static_cast<int>(op_.mode)) + (last ? ", true, " : ", false, ") +
                 std::to_string(run) + ">(p1, p0, n, at)",
             n,
             y.elements() / run}};
  }

 private:
  // Neighboring channels that one access of at most 16 bytes moves.
  static int vector_of(dtype t, const gpu::pool_sizes& n, std::initializer_list<const std::byte*> addresses) {
    const auto bytes = static_cast<std::int64_t>(size_of(t));
    std::int64_t run = 16 / bytes;
    const auto fits = [&](std::int64_t of) {
      bool all = n.channels % of == 0 && n.image.in % of == 0 && n.image.out % of == 0;
      for (const auto& d : n.dims) all = all && d.in_step % of == 0 && d.out_step % of == 0;
      for (const std::byte* at : addresses) all = all && reinterpret_cast<std::uintptr_t>(at) % (of * bytes) == 0;
      return all;
    };
    while (run > 1 && !fits(run)) run /= 2;
    return static_cast<int>(run);
  }
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
