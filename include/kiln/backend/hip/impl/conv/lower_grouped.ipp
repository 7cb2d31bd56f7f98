#include "kiln/backend/hip/impl/conv/convolution_parts.hpp"
#include "kiln/backend/hip/impl/conv/held_columns.hpp"
#include "kiln/backend/hip/impl/gemm/gemm_plan.hpp"
#include "kiln/backend/hip/impl/gemm/separate_epilogue.hpp"
#include "kiln/backend/hip/impl/rows/row_text.hpp"

namespace kiln::hip {
namespace {

constexpr int threads = 128;

// Channels that a filter reads, and filters that read the same ones.
struct group_extents {
  std::int64_t depth, filters;
  group_extents(const shape& weights, const convolution_attributes& a)
      : depth(a.backwards ? weights.lens[0].value() / a.group : weights.lens[1].value()),
        filters(a.backwards ? weights.lens[1].value() : weights.lens[0].value() / a.group) {}
};

// The window of a kernel, and the channels of a group.
gpu::grouped_tile window_of(const tensor& weights, const convolution_attributes& a) {
  const ints& lens = weights.lens;
  const auto count = [](std::int64_t n) { return static_cast<int>(n); };
  gpu::grouped_tile t;
  t.backwards = a.backwards;
  t.depth = count(a.backwards ? lens[0] / a.group : lens[1]);
  t.filters = count(a.backwards ? lens[1] : lens[0] / a.group);
  int* const numbers[3][4] = {{&t.cols, &t.stride_cols, &t.dilation_cols, &t.pad_cols},
                              {&t.rows, &t.stride_rows, &t.dilation_rows, &t.pad_rows},
                              {&t.planes, &t.stride_planes, &t.dilation_planes, &t.pad_planes}};
  const std::size_t axes = lens.size() - 2;
  for (std::size_t back = 0; back < axes; ++back) {
    const std::size_t d = axes - 1 - back;
    const std::int64_t of[] = {lens[d + 2], a.window.stride[d], a.window.dilation[d], a.window.begin[d]};
    for (std::size_t k = 0; k < 4; ++k) *numbers[back][k] = count(of[k]);
  }
  return t;
}

// A convolution of few channels a group, forwards or transposed: too little work for a GEMM. See
// kernels/conv/grouped.hpp.
class grouped_kernel final : public gpu_kernel {
 public:
  grouped_kernel(fused_contraction from, const kernel_request& r, const context_pointer& where)
      : gpu_kernel(where, name_of(from, r)),
        body_(std::move(from.body)),
        epilogue_(std::move(from.epilogue)),
        attributes_(body_.op, r.inputs[body_.operands[0]].rank()),
        filters_(
            r, body_.operands[1],
            [groups = attributes_.group, back = attributes_.backwards](const ints& lens, const ints& steps) {
              return std::vector<filters_view>{filters_view::filters_last(lens, steps, groups, back)};
            },
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
    gpu::grouped_sizes sizes = made->sizes;
    void* list[] = {&x, &weights, result.data(), &sizes, nullptr};
    made->run->give(*l.queue, made->grid, {threads}, 0, list);
    if (made->epilogue) made->epilogue.run(*l.queue, l.out[0].data, extra);
  }

 private:
  struct built {
    std::shared_ptr<const function> run;
    extent3 grid;
    std::vector<std::byte> result;
    gpu::grouped_sizes sizes{};
    separate_epilogue epilogue;  ///< where it does not fit the result's positions
  };

  std::shared_ptr<const built> built_for(std::span<const tensor> in, std::span<const tensor> out) const {
    return built_.get(key_of(in, out), [&] { return build(in, out); });
  }

  static std::string name_of(const fused_contraction& from, const kernel_request& r) {
    const convolution_attributes a(from.body.op, r.inputs[from.body.operands[0]].rank());
    const group_extents g(r.inputs[from.body.operands[1]], a);
    return std::string(a.backwards ? "transposed " : "") +
           (g.depth * g.filters == 1 ? "depthwise convolution" : "grouped convolution") +
           (from.epilogue ? "+epilogue" : "");
  }

  built build(std::span<const tensor> in, std::span<const tensor> out) const {
    built made;
    if (out[0].elements() == 0) return made;
    const tensor &x = in[body_.operands[0]], &w = in[body_.operands[1]];
    const image_steps from(x), to(out[0]);
    bool fits = true;
    for (std::size_t i : body_.epilogue_inputs) fits = fits && image_steps(in[i]).even();
    const row_program* epilogue = epilogue_ && fits ? &*epilogue_ : nullptr;
    const std::int64_t filters = out[0].lens[1];

    gemm_problem p;
    p.type = x.type, p.rows = x.lens[0] * to.pixels(), p.cols = filters, p.pixels = to.pixels();
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

    gpu::grouped_tile tile = window_of(w, attributes_);
    tile.last = from.channel == 1 && to.channel == 1;
    // channels move together where they are contiguous in the image, the weights and the result
    if (tile.last && tile.depth * tile.filters == 1)
      tile.run = std::min(epilogue_width(p, false), vector_of(size_of(x.type), alignment_of(x.data),
                                                              {from.image, from.plane, from.row, from.col, filters}));
    const auto threads_of = [&](int outputs) {
      return x.lens[0] * filters / tile.run * to.planes * to.rows * ((to.cols + outputs - 1) / outputs);
    };
    // of few taps as many as one store moves, so that neighboring threads' accesses meet
    constexpr int few_taps = 16;
    const int stored = std::max(4, 16 / static_cast<int>(size_of(x.type)));
    const int most = tile.run > 1 ? 4 : tile.planes * tile.rows * tile.cols < few_taps ? std::min(stored, 8) : 8;
    const std::int64_t enough = std::int64_t{256} * where().arch().multiprocessors;
    hold_most_columns(tile, most, [&](int outputs) { return threads_of(outputs) >= enough; });
    const bool along_rows = tile.run == 1 && !tile.last;
    int width = tile.run;
    if (along_rows) {
      width = to.pixel() == 1 ? epilogue_width(p, true) : 1;
      while (tile.outputs % width != 0 || to.cols % width != 0) width /= 2;
    }

    kernel_text t(epilogue);
    t.line("#include \"kiln/backend/hip/kernels/conv/grouped.hpp\"");
    write_epilogue(t, p, epilogue, along_rows, width);
    const std::string_view type = stored_name(x.type);
    const std::int64_t work = threads_of(tile.outputs);
    const bool narrow = work < (std::int64_t{1} << 31) - threads;
    write_tile(t, tile);
    t.open_kernel(threads, "grouped_kernel(const ", type, "* x, const ", type,
                  "* weights, epilogue result, grouped_sizes s)");
    t.line("const i64 at = blockIdx.x * ", threads, "ll + threadIdx.x;");
    t.line("if (at < s.work) grouped_convolution<tile>(x, weights, result, s, static_cast<", narrow ? "int" : "i64",
           ">(at));");
    t.close();
    made.run = where().build(t.whole("grouped_kernel"));
    made.result = epilogue_value(p);
    const auto count = [](std::int64_t n) { return static_cast<int>(n); };
    made.sizes = {
        from.image,     from.channel,       from.plane,       from.row,         from.col,         work,
        count(filters), count(from.planes), count(from.rows), count(from.cols), count(to.planes), count(to.rows),
        count(to.cols)};
    made.grid = {blocks_of((work + threads - 1) / threads)};
    if (epilogue_ && !fits) made.epilogue = separate_epilogue(*epilogue_, body_, in, out, where());
    return made;
  }

  // The tile as a constant of the kernel.
  static void write_tile(kernel_text& t, const gpu::grouped_tile& tile) {
    t.line("constexpr grouped_tile tile{", tile.run, ", ", tile.outputs, ", ", tile.last ? "true" : "false", ", ",
           tile.depth, ", ", tile.filters, ", ", tile.planes, ", ", tile.rows, ", ", tile.cols, ", ", tile.part, ", ",
           tile.stride_planes, ", ", tile.stride_rows, ", ", tile.stride_cols, ", ", tile.dilation_planes, ", ",
           tile.dilation_rows, ", ", tile.dilation_cols, ", ", tile.pad_planes, ", ", tile.pad_rows, ", ",
           tile.pad_cols, ", ", tile.backwards ? "true" : "false", "};");
  }

  lower::contraction_body<module_graph> body_;
  std::optional<row_program> epilogue_;
  convolution_attributes attributes_;
  ordered_filters filters_;
  by_sizes<built> built_;
};

}  // namespace

std::unique_ptr<kernel> lower_grouped(const kernel_request& r, const context_pointer& where) {
  auto from = read_contraction(r);
  if (!from || (!from->body.op.is<op::convolution>() && !from->body.op.is<op::deconvolution>())) return nullptr;
  const shape &x = r.inputs[from->body.operands[0]], &w = r.inputs[from->body.operands[1]];
  constexpr std::size_t most_rank = 5;
  if (x.rank() > most_rank || !w.is_constant()) return nullptr;
  const convolution_attributes a(from->body.op, x.rank());
  const group_extents g(w, a);
  // where there is a matrix unit, a tile of few filters wastes less
  constexpr std::int64_t least_groups = 8, most_products = 64;
  const std::int64_t most_filters = atom_for(x.type, where->arch()) == "atom_fma" ? 8 : 4;
  if (a.group < least_groups || g.filters > most_filters || g.depth * g.filters > most_products) return nullptr;
  tensor weights;
  for (const dimension& d : w.lens) weights.lens.push_back(d.value());
  gpu::grouped_tile tile = window_of(weights, a);
  if (!hold_columns(tile, 1)) return nullptr;
  return std::make_unique<grouped_kernel>(std::move(*from), r, where);
}

}  // namespace kiln::hip
