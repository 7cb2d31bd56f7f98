#include "kiln/backend/hip/impl/conv/convolution_parts.hpp"
#include "kiln/backend/hip/impl/gemm/gemm_plan.hpp"
#include "kiln/backend/hip/impl/gemm/separate_epilogue.hpp"
#include "kiln/backend/hip/impl/rows/row_text.hpp"

namespace kiln::hip {
namespace {

constexpr int threads = 128;

// A convolution whose filters read a channel each: too little work for a GEMM. See kernels/conv/depthwise.hpp.
class depthwise_kernel final : public gpu_kernel {
 public:
  depthwise_kernel(fused_contraction from, const kernel_request& r, const context_pointer& where)
      : gpu_kernel(where, from.epilogue ? "depthwise convolution+epilogue" : "depthwise convolution"),
        body_(std::move(from.body)),
        epilogue_(std::move(from.epilogue)),
        attributes_(body_.op, r.inputs[body_.operands[0]].rank()),
        filters_(
            r, body_.operands[1], [](const ints& lens, const ints& steps) { return filters_view(lens, steps); },
            where_) {}

  bool packed_input(std::size_t i) const override { return filters_.keeps_constant() && i == body_.operands[1]; }
  std::size_t packed_bytes() const override { return filters_.constant_bytes(); }
  stride_support input_strides(std::size_t i) const override {
    return i == body_.operands[1] ? stride_support::dense : stride_support::any;
  }
  stride_support output_strides(std::size_t) const override { return stride_support::nchw_or_nhwc; }
  void prepare(std::span<const tensor> in, std::span<const tensor> out) const override {
    built_for(in, out);
    filters_.prepare(in[body_.operands[1]]);
  }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor>, unsigned) const override {
    return filters_.scratch_bytes(in[body_.operands[1]]);
  }

  void run(const launch& l) const override {
    if (l.out[0].elements() == 0) return;
    const auto made = built_for(l.in, l.out);
    const void* x = l.in[body_.operands[0]].data;
    const void* weights = filters_.give(*l.queue, l.in[body_.operands[1]], l.scratch);
    std::vector<const void*> extra;
    for (std::size_t i : body_.epilogue_inputs) extra.push_back(l.in[i].data);
    std::vector<std::byte> result = made->result;
    put_addresses(result, l.out[0].data,
                  made->epilogue ? std::span<const void* const>() : std::span<const void* const>(extra));
    gpu::depthwise_sizes sizes = made->sizes;
    void* list[] = {&x, &weights, result.data(), &sizes, nullptr};
    made->run->give(*l.queue, made->grid, {threads}, 0, list);
    if (made->epilogue) made->epilogue.run(*l.queue, l.out[0].data, extra);
  }

 private:
  struct built {
    std::shared_ptr<const function> run;
    extent3 grid;
    std::vector<std::byte> result;
    gpu::depthwise_sizes sizes{};
    separate_epilogue epilogue;  ///< where it does not fit the result's positions
  };

  std::shared_ptr<const built> built_for(std::span<const tensor> in, std::span<const tensor> out) const {
    return built_.get(key_of(in, out), [&] { return build(in, out); });
  }

  built build(std::span<const tensor> in, std::span<const tensor> out) const {
    built made;
    if (out[0].elements() == 0) return made;
    const tensor &x = in[body_.operands[0]], &w = in[body_.operands[1]];
    const image_steps from(x), to(out[0]);
    const std::size_t cols = x.rank() - 3;  // index of the columns in the window's lists, after the rows
    const detail::window& window = attributes_.window;
    bool fits = true;
    for (std::size_t i : body_.epilogue_inputs) fits = fits && image_steps(in[i]).even();
    const row_program* epilogue = epilogue_ && fits ? &*epilogue_ : nullptr;

    gemm_problem p;
    p.type = x.type, p.rows = x.lens[0] * to.pixels(), p.cols = x.lens[1], p.pixels = to.pixels();
    const auto put = [&](const tensor& t) {
      const image_steps s(t);
      p.steps.push_back({s.image, 0, s.pixel(), s.channel});
      p.types.push_back(t.type);
      p.aligned.push_back(alignment_of(t.data));
    };
    put(out[0]);
    if (p.steps[0][3] == 0) p.steps[0][3] = 1;
    if (epilogue)
      for (std::size_t i : body_.epilogue_inputs) put(in[i]);

    // channels move together where they are contiguous in the image, the weights and the result
    int together = 1;
    if (from.channel == 1 && to.channel == 1)
      together = std::min(epilogue_width(p, false), vector_of(size_of(x.type), alignment_of(x.data),
                                                              {from.image, from.row, from.col, x.lens[1]}));
    int outputs = together > 1 ? 4 : 8;
    const auto threads_of = [&](int n) { return x.lens[0] * x.lens[1] / together * to.rows * ((to.cols + n - 1) / n); };
    while (outputs > 1 && threads_of(outputs) < std::int64_t{256} * where().arch().multiprocessors) outputs /= 2;
    const bool along_rows = together == 1;
    int width = together;
    if (along_rows) {
      width = std::min(to.pixel() == 1 ? epilogue_width(p, true) : 1, outputs);
      while (to.cols % width != 0) width /= 2;
    }

    kernel_text t(epilogue);
    t.line("#include \"kiln/backend/hip/kernels/conv/depthwise.hpp\"");
    write_epilogue(t, p, epilogue, along_rows, width);
    const std::string_view type = stored_name(x.type);
    t.line("using tile = depthwise_tile<", together, ", ", outputs, ", ", cols > 0 ? w.lens[2] : 1, ", ",
           w.lens[w.rank() - 1], ", ", window.stride[cols], ", ", window.dilation[cols], ">;");
    t.open_kernel(threads, "depthwise_kernel(const ", type, "* x, const ", type,
                  "* weights, epilogue result, depthwise_sizes s)");
    t.line("const i64 at = blockIdx.x * ", threads, "ll + threadIdx.x;");
    t.line("if (at < s.work) depthwise<tile>(x, weights, result, s, at);");
    t.close();
    made.run = where().build(t.whole("depthwise_kernel"));
    made.result = epilogue_value(p);
    const auto count = [](std::int64_t n) { return static_cast<int>(n); };
    gpu::depthwise_sizes& s = made.sizes;
    s.image_step = from.image, s.channel_step = from.channel, s.row_step = from.row, s.col_step = from.col;
    s.work = threads_of(outputs);
    s.channels = count(x.lens[1]), s.height = count(from.rows), s.width = count(from.cols);
    s.out_rows = count(to.rows), s.out_cols = count(to.cols);
    s.stride_rows = cols > 0 ? count(window.stride[0]) : 1, s.dilation_rows = cols > 0 ? count(window.dilation[0]) : 1;
    s.pad_rows = cols > 0 ? count(window.begin[0]) : 0, s.pad_cols = count(window.begin[cols]);
    made.grid = {static_cast<unsigned>((s.work + threads - 1) / threads)};
    if (epilogue_ && !fits) made.epilogue = separate_epilogue(*epilogue_, body_, in, out, where());
    return made;
  }

  lower::contraction_body<module_graph> body_;
  std::optional<row_program> epilogue_;
  convolution_attributes attributes_;
  ordered_filters filters_;
  by_sizes<built> built_;
};

}  // namespace

std::unique_ptr<kernel> lower_depthwise(const kernel_request& r, const context_pointer& where) {
  auto from = read_contraction(r);
  if (!from || !from->body.op.is<op::convolution>()) return nullptr;
  const shape &x = r.inputs[from->body.operands[0]], &w = r.inputs[from->body.operands[1]];
  constexpr std::size_t most_rank = 4;
  if (x.rank() > most_rank || !w.is_constant()) return nullptr;
  // a row of the window is held in registers
  constexpr std::int64_t most_cols = 11, most_reach = 24;
  const convolution_attributes a(from->body.op, x.rank());
  const std::int64_t cols = w.lens[w.rank() - 1].value(),
                     reach = (cols - 1) * a.window.dilation.back() + 7 * a.window.stride.back() + 1;
  if (a.group < 8 || w.lens[0].value() != a.group || w.lens[1].value() != 1 || cols > most_cols || reach > most_reach)
    return nullptr;
  return std::make_unique<depthwise_kernel>(std::move(*from), r, where);
}

}  // namespace kiln::hip
