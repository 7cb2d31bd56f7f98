#include "kiln/backend/hip/impl/index/index_call.hpp"
#include "kiln/backend/hip/impl/scratch_tensors.hpp"

namespace kiln::hip {
namespace {

class pooling_kernel final : public index_kernel {
 public:
  pooling_kernel(const context_pointer& where, const op::pooling& op, bool fixed)
      : index_kernel(where, "pooling"), op_(op) {
    fixed_ = fixed;
  }
  stride_support input_strides(std::size_t) const override { return stride_support::nchw_or_nhwc; }
  stride_support output_strides(std::size_t) const override { return stride_support::nchw_or_nhwc; }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned) const override {
    const std::vector<pass> list = passes(in[0], out[0]);
    if (list.size() == 1) return 0;
    const pass& before = list[list.size() - 2];
    return before.room + bytes_of(before.to);
  }

 protected:
  std::vector<index_call> calls(std::span<const tensor> in, std::span<const tensor> out,
                                const bindings*) const override {
    std::vector<index_call> all;
    const std::vector<pass> list = passes(in[0], out[0]);
    for (std::size_t k = 0; k < list.size(); ++k) {
      const auto place = [](const pass* p, const char* otherwise) {
        return p ? "(p2 + " + std::to_string(p->room / size_of(p->to.type)) + ")" : std::string(otherwise);
      };
      all.push_back(call_of(list[k], place(k > 0 ? &list[k - 1] : nullptr, "p0"),
                            place(k + 1 < list.size() ? &list[k] : nullptr, "p1")));
    }
    return all;
  }

 private:
  // A pooling along all dims of the window or, where it has many taps and takes the greatest, along one of several:
  // those of each are then few, since the greatest of the greatest is the same. In between are tensors in scratch
  // memory, `room` bytes on, whose address is null.
  struct pass {
    op::pooling op;
    tensor from, to;
    std::size_t room = 0;
  };
  static std::size_t bytes_of(const tensor& t) { return scratch_room(t.elements(), t.type); }
  std::vector<pass> passes(const tensor& x, const tensor& y) const {
    std::int64_t taps = 1, longest = 1;
    for (const std::int64_t n : op_.lengths) taps *= n, longest = std::max(longest, n);
    if (op_.mode != op::pooling_mode::max || taps <= most_taps || longest == taps) return {{op_, x, y, 0}};
    std::vector<pass> all;
    const std::size_t axes = x.rank() - 2;
    const auto window = detail::resolve_window(x.rank(), op_.stride, op_.dilation, op_.pads).value();
    const bool last = x.lens[1] > 1 && x.strides[1] == 1;
    // columns first: neighbors of a row share what they read
    for (std::size_t d = axes; d-- > 0;) {
      // one tap may stand elsewhere even where strides leave out as much as padding adds
      if (op_.lengths[d] == 1 && window.stride[d] == 1 && window.begin[d] == 0 && y.lens[d + 2] == x.lens[d + 2])
        continue;
      pass p{op_, all.empty() ? x : all.back().to, y, 0};
      p.op.lengths = p.op.stride = p.op.dilation = spatial(axes, 1);
      p.op.pads = {};
      p.op.pads.resize(2 * axes, 0);
      p.op.lengths[d] = op_.lengths[d], p.op.stride[d] = window.stride[d], p.op.dilation[d] = window.dilation[d];
      p.op.pads[d] = window.begin[d], p.op.pads[axes + d] = window.end[d];
      p.to.data = nullptr;
      p.to.lens = p.from.lens, p.to.lens[d + 2] = y.lens[d + 2];
      p.to.strides = last ? channels_last_steps(p.to.lens) : row_major(p.to.lens);
      if (!all.empty()) p.room = all.back().room + bytes_of(all.back().to);
      all.push_back(p);
    }
    all.back().to = y;
    return all;
  }
  index_call call_of(const pass& one, const std::string& from, const std::string& to) const {
    const tensor &x = one.from, &y = one.to;
    const op::pooling& op = one.op;
    const detail::window w = detail::resolve_window(x.rank(), op.stride, op.dilation, op.pads).value();
    gpu::pool_sizes n{};
    const std::size_t missing = 5 - x.rank();
    for (std::size_t d = 0; d < missing; ++d) n.dims[d] = {1, 1, 1, 1, 1, 0, 0, 0, 0};
    for (std::size_t d = 0; d + 2 < x.rank(); ++d)
      n.dims[missing + d] = {x.lens[d + 2], y.lens[d + 2], op.lengths[d],    w.stride[d],     w.dilation[d],
                             w.begin[d],    w.end[d],      x.strides[d + 2], y.strides[d + 2]};
    const dtype t = x.type;
    n.counts_padding = op.count_include_pad, n.power = op.lp_order;
    n.least = is_signed_integer(t) ? std::int64_t{-1} << (8 * size_of(t) - 1) : 0;
    n.channels = x.lens[1];
    n.image = {x.strides[0], y.strides[0]}, n.channel = {x.strides[1], y.strides[1]};
    // one channel alone has any stride
    const bool last = n.channels > 1 && n.channel.in == 1 && n.channel.out == 1;
    const int run = last ? vector_of(t, n, {x.data, y.data}) : 1;
    n.channels /= run, n.channel.in *= run, n.channel.out *= run;
    const std::string type = name_of(t);
    index_call call{"pool", "reduce/window.hpp", {type, type, type}, {}, n, y.elements() / run};
    call.each = 1;
    const std::string mode = std::to_string(static_cast<int>(op.mode)), taps = taps_text(n, is_written(call));
    const gpu::pool_sizes::dim& cols = n.dims[2];
    if (is_written(call) && !last && cols.window > 1 && cols.window <= most_taps && cols.stride == 1 &&
        cols.dilation == 1 && cols.in_step == 1 && cols.out_step == 1) {
      constexpr int together = 4;
      call.makes = together;  // so that the loops over taps and the sizes are both written out, as decided above
      call.call =
          "pool_line<" + mode + ", " + taps + ", " + std::to_string(together) + ">(" + to + ", " + from + ", n, at)";
      call.work = y.elements() / cols.out * ((cols.out + together - 1) / together);
      return call;
    }
    call.call = "pool<" + mode + (last ? ", true, " : ", false, ") + std::to_string(run) + ", " + taps + ">(" + to +
                ", " + from + ", n, at)";
    return call;
  }

  static constexpr std::int64_t most_taps = 32;  // that are written out
  // Loops over windows of so many taps, or of so many columns, are written out where kernels of much work have sizes of
  // their own.
  static std::string taps_text(const gpu::pool_sizes& n, bool known) {
    std::int64_t taps = 1;
    for (const auto& d : n.dims) taps *= d.window;
    const bool all = known && taps <= most_taps, line = known && n.dims[2].window <= most_taps;
    const auto of = [](bool there, std::int64_t window) { return std::to_string(there ? window : 0); };
    return "window_taps<" + of(all, n.dims[0].window) + ", " + of(all, n.dims[1].window) + ", " +
           of(line, n.dims[2].window) + ">";
  }
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
  lrn_kernel(const context_pointer& where, const op::lrn& op, bool fixed) : index_kernel(where, "lrn"), op_(op) {
    fixed_ = fixed;
  }

 protected:
  std::vector<index_call> calls(std::span<const tensor> in, std::span<const tensor> out,
                                const bindings*) const override {
    const axis_extents s(in[0].lens, 1);
    const std::int64_t before = (op_.size - 1) / 2;
    const std::string type = name_of(in[0].type);
    index_call call{"lrn",
                    "reduce/window.hpp",
                    {type, type},
                    "lrn(p1, p0, n, at)",
                    gpu::lrn_sizes{s.extent, s.inner, before, op_.size - 1 - before,
                                   static_cast<double>(op_.alpha) / static_cast<double>(op_.size), op_.beta, op_.bias},
                    out[0].elements()};
    call.each = 2;
    return {call};
  }

 private:
  op::lrn op_;
};

}  // namespace

std::unique_ptr<kernel> lower_window(const kernel_request& r, const context_pointer& where) {
  if (const auto* pooling = r.instruction.op.get_if<op::pooling>())
    return std::make_unique<pooling_kernel>(where, *pooling, is_fixed(r));
  if (const auto* lrn = r.instruction.op.get_if<op::lrn>())
    return std::make_unique<lrn_kernel>(where, *lrn, is_fixed(r));
  return nullptr;
}

}  // namespace kiln::hip
