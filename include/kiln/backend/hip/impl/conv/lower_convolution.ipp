#include <algorithm>

#include "kiln/backend/hip/impl/conv/convolution_parts.hpp"
#include "kiln/backend/hip/impl/expect_scratch.hpp"
#include "kiln/backend/hip/impl/gemm/gemm_plan.hpp"
#include "kiln/backend/hip/impl/gemm/separate_epilogue.hpp"
#include "kiln/backend/hip/lower.hpp"

namespace kiln::hip {
namespace {

// The number of a list along the dim that is `back` dims before the columns, `none` where there is no such dim.
template <class List>
std::int64_t from_last(const List& list, std::size_t back, std::int64_t none, std::size_t before = 0) {
  return list.size() > before + back ? list[list.size() - 1 - back] : none;
}

// Taps of a kernel, of the phase that has the most where there are several.
struct kernel_extents {
  std::int64_t cols, rows, planes;
  kernel_extents(const ints& weights, const phases& p)
      : cols(of_phase(from_last(weights, 0, 1, 2), p.form.cols)),
        rows(of_phase(from_last(weights, 1, 1, 2), p.form.rows)),
        planes(of_phase(from_last(weights, 2, 1, 2), p.form.planes)) {}
  /// Of the phase with this number.
  kernel_extents(const gpu::phase_shape& p, int number)
      : cols(p.cols.taps_of(p.of(number).cols)),
        rows(p.rows.taps_of(p.of(number).rows)),
        planes(p.planes.taps_of(p.of(number).planes)) {}
  std::int64_t taps() const { return cols * rows * planes; }

 private:
  static std::int64_t of_phase(std::int64_t taps, const gpu::phase_dim& d) { return (taps + d.stride - 1) / d.stride; }
};

class convolution_kernel final : public gpu_kernel {
 public:
  convolution_kernel(fused_contraction from, const kernel_request& r, const context_pointer& where)
      : gpu_kernel(where, std::string(from.body.op.name()) + (from.epilogue ? "+epilogue" : "")),
        body_(std::move(from.body)),
        epilogue_(std::move(from.epilogue)),
        attributes_(body_.op, r.inputs[body_.operands[0]].rank()),
        channels_last_(where) {
    const std::size_t w = body_.operands[1];
    const shape& weights = r.inputs[w];
    constant_ = r.constants[w] != nullptr;
    bool one_tap = true;
    for (std::size_t d = 2; d < weights.rank(); ++d) one_tap = one_tap && weights.lens[d] == dimension(1);
    // a copy each run would cost more than reading a convolution's weights as they are
    if (!attributes_.backwards && (one_tap || !constant_)) return;
    phases_ = phases(attributes_, weights);
    // few channels after the other, windows that overlap are read again soon
    constexpr std::int64_t few = 64;
    if (!attributes_.backwards && weights.lens[1].value() % few == 0) together_ = few;
    const auto order = [groups = attributes_.group, back = attributes_.backwards, apart = phases_,
                        together = together_](const ints& lens, const ints& strides) {
      return apart ? apart.order(lens, strides, groups)
                   : std::vector<filters_view>{filters_view(lens, strides, groups, back, together)};
    };
    if (padded_images::serves(r, attributes_, body_.operands[0], w)) padded_ = padded_images(r, attributes_, w, where_);
    filters_ =
        ordered_filters(r, w, order, where_, {padded_ ? padded_.together() : 0, padded_ ? padded_images::run : 0});
  }

  bool packed_input(std::size_t i) const override { return filters_.keeps_constant() && i == body_.operands[1]; }
  std::size_t packed_bytes() const override { return filters_.constant_bytes(); }
  stride_support input_strides(std::size_t i) const override {
    return i == body_.operands[1] ? stride_support::dense : stride_support::any;
  }
  stride_support output_strides(std::size_t) const override { return stride_support::nchw_or_nhwc; }
  void prepare(std::span<const tensor> in, std::span<const tensor> out) const override {
    built_for(in, out);
    filters_.prepare(in[body_.operands[1]]);
    const tensor& images = in[body_.operands[0]];
    if (padded_) padded_.prepare(images);
    if (puts_channels_last(in, out[0])) channels_last_.prepare(images);
  }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned) const override {
    return built_for(in, out)->scratch_bytes + filters_.scratch_bytes(in[body_.operands[1]]) + copy_bytes(in, out[0]);
  }

  void run(const launch& l) const override {
    if (l.out[0].elements() == 0) return;
    const auto made = built_for(l.in, l.out);
    const tensor& w = l.in[body_.operands[1]];
    const std::size_t copy = copy_bytes(l.in, l.out[0]);
    expect_scratch(l, made->scratch_bytes + filters_.scratch_bytes(w) + copy, name_);
    const void* weights = filters_.give(*l.queue, w, l.scratch);
    const std::span<std::byte> copied = l.scratch.subspan(filters_.scratch_bytes(w));
    const std::span<std::byte> scratch = copied.subspan(copy);
    const tensor& given = l.in[body_.operands[0]];
    const std::byte* const images = copy != 0 ? copied.data() : given.data;
    if (padded_)
      padded_.give(*l.queue, given, copied.data());
    else if (copy != 0)
      channels_last_.give(*l.queue, given, copied.data());
    std::vector<const void*> extra;
    for (std::size_t i : body_.epilogue_inputs) extra.push_back(l.in[i].data);
    for (const part& one : made->products)
      run_gemm(one.plan, *one.run, *l.queue, scratch, images + one.image,
               static_cast<const std::byte*>(weights) + one.weights, l.out[0].data + one.result,
               made->epilogue ? std::span<const void* const>() : std::span<const void* const>(extra));
    if (made->epilogue) made->epilogue.run(*l.queue, l.out[0].data, extra);
  }

 private:
  // One product, and where its operands begin, in bytes.
  struct part {
    gemm_plan plan;
    std::shared_ptr<const function> run;
    std::int64_t image = 0, weights = 0, result = 0;
  };
  struct built {
    std::vector<part> products;
    std::size_t scratch_bytes = 0;
    separate_epilogue epilogue;  ///< where it does not fit the product's positions
  };

  std::shared_ptr<const built> built_for(std::span<const tensor> in, std::span<const tensor> out) const {
    return built_.get(key_of(in, out), [&] {
      built made;
      if (out[0].elements() == 0) return made;
      bool fits = true;
      for (std::size_t i : body_.epilogue_inputs) fits = fits && image_steps(in[i]).even();
      const bool apart = epilogue_ && !fits;
      if (phases_)
        add_phases(made, in, out[0]);
      else
        add(made, problem(in, images_of(in, out[0]), out[0], fits), epilogue_ && fits ? &*epilogue_ : nullptr);
      if (apart) made.epilogue = separate_epilogue(*epilogue_, body_, in, out, where());
      return made;
    });
  }

  // Channels that windows find side by side where they lie last.
  bool puts_channels_last(std::span<const tensor> in, const tensor& out) const {
    const tensor &x = in[body_.operands[0]], &w = in[body_.operands[1]];
    if (padded_ || out.elements() == 0) return false;
    const std::int64_t groups = attributes_.group, taps = kernel_extents(w.lens, phases_).taps(),
                       channels = attributes_.backwards ? w.lens[0] / groups : w.lens[1],
                       filters = attributes_.backwards ? w.lens[1] : w.lens[0] / groups;
    if (taps == 1 && reads_same_pixels(x, attributes_.window)) return false;
    constexpr std::int64_t tile = 128;  // of filters
    const std::int64_t places = image_steps(out).pixels() * out.lens[0];
    return channels_last_images::serves(x, filters_ || taps == 1 ? channels : 1,
                                        places * channels * taps * groups * ((filters + tile - 1) / tile));
  }
  std::size_t copy_bytes(std::span<const tensor> in, const tensor& out) const {
    const tensor& x = in[body_.operands[0]];
    return padded_ ? padded_.bytes(x) : puts_channels_last(in, out) ? channels_last_images::bytes(x) : 0;
  }
  // What products read: the images, or a copy of them at no address.
  tensor images_of(std::span<const tensor> in, const tensor& out) const {
    const tensor& x = in[body_.operands[0]];
    return padded_                       ? padded_.copy_of(x, nullptr)
           : puts_channels_last(in, out) ? channels_last_images::copy_of(x, nullptr)
                                         : x;
  }

  void add(built& to, const gemm_problem& p, const row_program* epilogue) const {
    part& one = to.products.emplace_back();
    one.plan = plan_gemm(p, epilogue, where());
    one.run = where().build(one.plan.what);
    one.plan.what.text.clear();
    to.scratch_bytes = std::max(to.scratch_bytes, one.plan.scratch_bytes);
  }

  // Phases are the batch of a GEMM over all images.
  void add_phases(built& to, std::span<const tensor> in, const tensor& out) const {
    const tensor x = images_of(in, out);
    if (add_phases_apart(to, in, x, out)) return;
    gemm_problem p = problem(in, x, out, false);
    phases_.divide(p, image_steps(out), out.lens[0]);
    add(to, p, nullptr);
  }

  // A launch for each phase, where each has enough tiles for blocks that work tile after tile.
  bool add_phases_apart(built& to, std::span<const tensor> in, const tensor& x, const tensor& out) const {
    std::vector<gemm_problem> all;  // none is built before it is known that all fit
    const auto bytes = static_cast<std::int64_t>(size_of(x.type));
    const image_steps at(out);
    for (int number = 0; number < phases_.form.phases(); ++number) {
      gemm_problem& p = all.emplace_back(problem(in, x, out, false, number));
      const bool fits = phases_.divide_to(p, at, out.lens[0], number);
      const gemm_tile t = fits ? tiles_for(p, where().arch()).front() : gemm_tile{};
      if (!t.persistent() || p.rows / t.rows * ((p.cols + t.cols - 1) / t.cols) < where().arch().multiprocessors)
        return false;
    }
    for (int number = 0; number < phases_.form.phases(); ++number) {
      const gemm_problem& p = all[static_cast<std::size_t>(number)];
      add(to, p, nullptr);
      const auto n = phases_.form.of(number);
      to.products.back().weights = phases_.form.taps_before(n) * p.channels * bytes;
      to.products.back().result =
          (phases_.form.rows.first(n.rows) * at.row + phases_.form.cols.first(n.cols) * at.col) * bytes;
    }
    return true;
  }

  // Of the images `x`. Of phases it has the taps of the one with this number or, with -1, of the largest.
  gemm_problem problem(std::span<const tensor> in, const tensor& x, const tensor& out, bool with_epilogue,
                       int number = -1) const {
    const tensor& w = in[body_.operands[1]];
    const image_steps from(x), to(out);
    const detail::window window = padded_ ? padded_images::over(attributes_.window) : attributes_.window;
    const bool backwards = attributes_.backwards;
    const std::int64_t groups = attributes_.group,
                       channels = padded_     ? x.lens[1]
                                  : backwards ? w.lens[0] / groups
                                              : w.lens[1],
                       filters = backwards ? w.lens[1] : w.lens[0] / groups, pixels = to.pixels();
    kernel_extents kernel = number < 0 ? kernel_extents(w.lens, phases_) : kernel_extents(phases_.form, number);
    if (padded_) kernel.cols = 1;
    const bool same_pixels = kernel.taps() == 1 && reads_same_pixels(x, window);

    gemm_problem p;
    p.type = x.type, p.constant_b = constant_;
    p.cols = filters, p.depth = channels * kernel.taps(), p.batch1 = groups, p.channels = channels;
    const auto put = [&](const tensor& t) {
      const image_steps s(t);
      p.steps.push_back({s.image, s.channel * filters, s.pixel(), s.channel});
      p.types.push_back(t.type);
      p.aligned.push_back(alignment_of(t.data));
    };
    put(out);
    if (p.steps[0][3] == 0) p.steps[0][3] = 1;
    if (with_epilogue)
      for (std::size_t i : body_.epilogue_inputs) put(in[i]);

    if (same_pixels)
      read_pixels(p, x, pixels);
    else
      read_windows(p, x, out, kernel, window, number < 0 && !phases_.form.even());
    const std::int64_t filter = phases_ ? channels * phases_.form.taps() : p.depth;
    p.b = {matrix_argument{nullptr, {0, filters * filter}, filter, 1}, true,
           vector_of(size_of(x.type), filters_ ? 16 : alignment_of(w.data), {filter, phases_ ? channels : p.depth})};
    return p;
  }

  // Whether windows of one tap meet every pixel once, in order.
  bool reads_same_pixels(const tensor& x, const detail::window& window) const {
    bool same = !attributes_.backwards && image_steps(x).even();
    for (std::size_t d = 0; d + 2 < x.rank(); ++d)
      same = same && window.stride[d] == 1 && window.begin[d] == 0 && window.end[d] == 0;
    return same;
  }
  // A window of one pixel: the image is a matrix of pixels and channels.
  static void read_pixels(gemm_problem& p, const tensor& x, std::int64_t pixels) {
    const image_steps from(x);
    const std::int64_t group = p.channels * from.channel;
    const bool deep = from.channel == 1 || p.channels == 1;
    int vector = 1;
    if (from.channel == 1)
      vector = vector_of(size_of(x.type), alignment_of(x.data), {from.image, from.pixel(), p.channels});
    else if (from.pixel() == 1 && !deep)
      vector = vector_of(size_of(x.type), alignment_of(x.data), {from.image, from.channel, group});
    p.a = {matrix_argument{nullptr, {from.image, group}, from.pixel(), from.channel}, deep, vector};
    // images that follow one another evenly are rows of one product
    p.batch0 = x.lens[0], p.rows = pixels;
    bool joined = p.batch0 > 1 && p.batch1 == 1 && from.image == pixels * from.pixel();
    for (const auto& s : p.steps) joined = joined && s[0] == pixels * s[2];
    if (joined) p.rows *= p.batch0, p.batch0 = 1;
  }

  // Any window: rows are the windows of all images, im2col that is not stored. With `counted` phases have different
  // counts of taps.
  void read_windows(gemm_problem& p, const tensor& x, const tensor& out, const kernel_extents& kernel,
                    const detail::window& window, bool counted) const {
    const image_steps from(x), to(out);
    const bool deep = from.channel == 1 || p.channels == 1;
    // weights as they are have the taps of a channel together
    const std::int64_t together = !filters_ && kernel.taps() != 1 ? 1 : together_ != 0 ? together_ : p.channels;
    p.pixels = to.pixels(), p.images = out.lens[0], p.rows = p.images * p.pixels;
    const auto count = [](std::int64_t n) { return static_cast<int>(n); };
    image_argument image{};
    image.image_step = from.image, image.group_step = p.channels * from.channel, image.channel_step = from.channel;
    image.plane_step = from.plane, image.row_step = from.row, image.col_step = from.col;
    image.planes = count(from.planes), image.height = count(from.rows), image.width = count(from.cols);
    image.out_rows = count(to.rows), image.out_cols = count(to.cols), image.out_pixels = count(p.pixels);
    int* const numbers[3][3] = {{&image.stride_cols, &image.dilation_cols, &image.pad_cols},
                                {&image.stride_rows, &image.dilation_rows, &image.pad_rows},
                                {&image.stride_planes, &image.dilation_planes, &image.pad_planes}};
    for (std::size_t back = 0; back < 3; ++back) {
      *numbers[back][0] = phases_ ? 1 : count(from_last(window.stride, back, 1));  // within a phase
      *numbers[back][1] = count(from_last(window.dilation, back, 1));
      *numbers[back][2] = count(from_last(window.begin, back, 0));
    }
    const int vector = from.channel == 1 ? vector_of(size_of(x.type), alignment_of(x.data),
                                                     {from.image, from.plane, from.row, from.col, together})
                                         : 1;
    std::string arguments = std::to_string(together);
    for (const std::int64_t n : {std::int64_t{vector}, p.channels, kernel.rows, kernel.cols})
      arguments += ", " + std::to_string(n);
    const bool volume = x.rank() > 4;
    if (attributes_.backwards || volume) {
      arguments += ", image_places<" + std::to_string(volume ? kernel.planes : 0) +
                   (attributes_.backwards ? ", true" : ", false");
      for (const int stride : {image.stride_planes, image.stride_rows, image.stride_cols})
        arguments += ", " + std::to_string(stride);
      arguments += counted ? ", true>" : ">";
    }
    p.a = {image, deep, vector, arguments};
    const bool even = !volume && image.stride_rows == 1 && image.stride_cols == 1;
    if (attributes_.backwards && even)
      p.a.backwards_rows = static_cast<int>(kernel.rows), p.a.backwards_cols = static_cast<int>(kernel.cols);
  }

  lower::contraction_body<module_graph> body_;
  std::optional<row_program> epilogue_;
  convolution_attributes attributes_;
  phases phases_;
  ordered_filters filters_;
  padded_images padded_;
  channels_last_images channels_last_;
  std::int64_t together_ = 0;  ///< channels that are together in the depth, 0: all
  bool constant_ = false;
  by_sizes<built> built_;
};

}  // namespace

std::unique_ptr<kernel> lower_convolution(const kernel_request& r, const context_pointer& where) {
  auto from = read_contraction(r);
  if (!from) return nullptr;
  if (!from->body.op.is<op::convolution>() && !from->body.op.is<op::deconvolution>()) return nullptr;
  if (!r.inputs[from->body.operands[1]].is_constant()) return nullptr;
  return std::make_unique<convolution_kernel>(std::move(*from), r, where);
}

}  // namespace kiln::hip
