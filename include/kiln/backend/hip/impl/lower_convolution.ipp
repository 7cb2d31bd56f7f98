#include <algorithm>
#include <cstring>

#include "kiln/backend/hip/impl/convolution_parts.hpp"
#include "kiln/backend/hip/impl/product_plan.hpp"
#include "kiln/backend/hip/impl/tail_behind.hpp"
#include "kiln/backend/hip/lower.hpp"

namespace kiln::hip {
namespace {

class convolution_kernel final : public gpu_kernel {
 public:
  convolution_kernel(contraction_parts parts, std::optional<row_program> tail, const kernel_request& r,
                     const context_pointer& where)
      : gpu_kernel(where, std::string(parts.product.name()) + (tail ? "+epilogue" : "")),
        parts_(std::move(parts)),
        tail_(std::move(tail)),
        attributes_(parts_.product, r.inputs[parts_.operands[0]].rank()) {
    const std::size_t w = parts_.operands[1];
    const shape& weights = r.inputs[w];
    constant_ = r.constants[w] != nullptr;
    bool one_tap = true;
    for (std::size_t d = 2; d < weights.rank(); ++d) one_tap = one_tap && weights.lens[d] == dimension(1);
    // a copy each run would cost more than reading a convolution's weights as they are
    if (!attributes_.backwards && (one_tap || !constant_)) return;
    phases_ = phases(attributes_, weights, r.instruction.results[0]);
    const auto order = [groups = attributes_.group, back = attributes_.backwards, apart = phases_](
                           const ints& lens, const ints& strides) {
      return apart ? apart.order(lens, strides, groups) : filters_view(lens, strides, groups, back);
    };
    filters_ = ordered_filters(r, w, order, where_);
  }

  bool packed_input(std::size_t i) const override { return filters_.keeps_constant() && i == parts_.operands[1]; }
  std::size_t packed_bytes() const override { return filters_.constant_bytes(); }
  stride_support input_strides(std::size_t i) const override {
    return i == parts_.operands[1] ? stride_support::dense : stride_support::any;
  }
  stride_support output_strides(std::size_t) const override { return stride_support::images; }
  void prepare(std::span<const tensor> in, std::span<const tensor> out) const override {
    built_for(in, out);
    filters_.prepare(in[parts_.operands[1]]);
  }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned) const override {
    return built_for(in, out)->scratch_bytes + filters_.scratch_bytes(in[parts_.operands[1]]);
  }

  void run(const launch& l) const override {
    if (l.out[0].elements() == 0) return;
    const auto made = built_for(l.in, l.out);
    const tensor& w = l.in[parts_.operands[1]];
    const void* weights = filters_.give(*l.queue, w, l.scratch);
    const std::span<std::byte> scratch = l.scratch.subspan(filters_.scratch_bytes(w));
    std::vector<const void*> extra;
    for (std::size_t i : parts_.extra) extra.push_back(l.in[i].data);
    for (const part& one : made->products)
      run_product(one.plan, *one.run, *l.queue, scratch, l.in[parts_.operands[0]].data + one.image,
                  static_cast<const std::byte*>(weights) + one.weights, l.out[0].data + one.result,
                  made->tail ? std::span<const void* const>() : std::span<const void* const>(extra));
    if (made->tail) made->tail.run(*l.queue, l.out[0].data, extra);
  }

 private:
  // One product, and where its operands begin, in bytes.
  struct part {
    product_plan plan;
    std::shared_ptr<const function> run;
    std::int64_t image = 0, weights = 0, result = 0;
  };
  struct built {
    std::vector<part> products;
    std::size_t scratch_bytes = 0;
    tail_behind tail;  ///< where it does not fit the product's positions
  };

  std::shared_ptr<const built> built_for(std::span<const tensor> in, std::span<const tensor> out) const {
    return built_.get(key_of(in, out), [&] {
      built made;
      if (out[0].elements() == 0) return made;
      bool fits = true;
      for (std::size_t i : parts_.extra) fits = fits && image_steps(in[i]).even();
      const bool apart = tail_ && !fits;
      if (phases_)
        add_phases(made, in, out[0]);
      else
        add(made, problem(in, out[0], fits), tail_ && fits ? &*tail_ : nullptr);
      if (apart) made.tail = tail_behind(*tail_, parts_, in, out, where());
      return made;
    });
  }

  part& add(built& to, const product_problem& p, const row_program* tail) const {
    part& one = to.products.emplace_back();
    one.plan = plan_product(p, tail, where());
    one.run = where().build(one.plan.what);
    one.plan.what.text.clear();
    to.scratch_bytes = std::max(to.scratch_bytes, one.plan.scratch_bytes);
    return one;
  }

  // Each phase is a product over all images, or over one where the lines of several don't lie evenly.
  void add_phases(built& to, std::span<const tensor> in, const tensor& out) const {
    const tensor& x = in[parts_.operands[0]];
    const image_steps from(x), at(out);
    const bool together = out.lens[0] == 1 || at.image == at.rows * at.row;
    const std::int64_t bytes = static_cast<std::int64_t>(size_of(x.type));
    tensor some = out;
    if (!together) some.lens[0] = 1;
    const product_problem whole = problem(in, some, false);
    values::image image;
    std::memcpy(&image, whole.a.value.data(), sizeof image);
    image.out_rows = static_cast<int>(at.rows / phases_.rows),
    image.out_cols = static_cast<int>(at.cols / phases_.cols);
    image.out_pixels = image.out_rows * image.out_cols;
    const auto& begin = attributes_.window.begin;
    for (std::int64_t n = 0; n < (together ? 1 : out.lens[0]); ++n)
      for (std::int64_t row = 0; row < phases_.rows; ++row)
        for (std::int64_t col = 0; col < phases_.cols; ++col) {
          const std::int64_t down = row + begin[0], across = col + begin[1];
          image.pad_rows = static_cast<int>(down / phases_.rows),
          image.pad_cols = static_cast<int>(across / phases_.cols);
          product_problem p = whole;
          p.a.value = values::bytes_of(image);
          p.rows = some.lens[0] * image.out_pixels, p.pixels = image.out_cols;
          p.steps[0][0] = phases_.rows * at.row, p.steps[0][2] = phases_.cols * at.col;
          part& one = add(to, p, nullptr);
          one.image = n * from.image * bytes;
          one.weights = (down % phases_.rows * phases_.cols + across % phases_.cols) * p.depth * bytes;
          one.result = (n * at.image + row * at.row + col * at.col) * bytes;
        }
  }

  product_problem problem(std::span<const tensor> in, const tensor& out, bool with_tail) const {
    const tensor &x = in[parts_.operands[0]], &w = in[parts_.operands[1]];
    const std::size_t axes = x.rank() - 2;
    const image_steps from(x), to(out);
    const detail::window& window = attributes_.window;
    const bool backwards = attributes_.backwards;
    const std::int64_t groups = attributes_.group, channels = backwards ? w.lens[0] / groups : w.lens[1],
                       filters = backwards ? w.lens[1] : w.lens[0] / groups, pixels = to.pixels();
    // along the dims counted from the columns
    const auto of = [&](const auto& v, std::size_t back, std::int64_t none, std::size_t before = 0) {
      return axes > back ? v[before + axes - 1 - back] : none;
    };
    // of one phase, where there are several
    const std::int64_t kernel_cols = of(w.lens, 0, 1, 2) / phases_.cols,
                       kernel_rows = of(w.lens, 1, 1, 2) / phases_.rows, kernel_planes = of(w.lens, 2, 1, 2),
                       taps = kernel_cols * kernel_rows * kernel_planes;
    bool same_pixels = !backwards && taps == 1 && from.even();
    for (std::size_t d = 0; d < axes; ++d)
      same_pixels = same_pixels && window.stride[d] == 1 && window.begin[d] == 0 && window.end[d] == 0;

    product_problem p;
    p.type = x.type, p.constant_b = constant_;
    p.cols = filters, p.depth = channels * taps, p.batch1 = groups;
    const std::size_t aligned = alignment_of(x.data), bytes = size_of(x.type);
    const auto put = [&](const tensor& t) {
      const image_steps s(t);
      p.steps.push_back({s.image, s.channel * filters, s.pixel(), s.channel});
      p.types.push_back(t.type);
      p.aligned.push_back(alignment_of(t.data));
    };
    put(out);
    if (p.steps[0][3] == 0) p.steps[0][3] = 1;
    if (with_tail)
      for (std::size_t i : parts_.extra) put(in[i]);

    const auto matrix = [](bool depth_contiguous, int vector, const values::matrix& m) {
      return product_factor{
          std::string("matrix_operand<") + (depth_contiguous ? "true, " : "false, ") + std::to_string(vector) + ">",
          values::bytes_of(m), depth_contiguous, vector};
    };
    if (same_pixels) {
      p.batch0 = x.lens[0], p.rows = pixels;
      const bool deep = from.channel == 1 || channels == 1;
      const int vector = from.channel == 1 ? vector_of(bytes, aligned, {from.image, from.pixel(), channels})
                         : from.pixel() == 1
                             ? vector_of(bytes, aligned, {from.image, from.channel, channels * from.channel})
                             : 1;
      p.a = matrix(deep, deep && from.channel != 1 ? 1 : vector,
                   {nullptr, {from.image, channels * from.channel}, from.pixel(), from.channel});
      // images that lie evenly are rows of one product
      bool joined = p.batch0 > 1 && groups == 1 && from.image == pixels * from.pixel();
      for (const auto& s : p.steps) joined = joined && s[0] == pixels * s[2];
      if (joined) p.rows *= p.batch0, p.batch0 = 1;
    } else {
      p.rows = out.lens[0] * pixels, p.pixels = pixels, p.channels = channels, p.images = out.lens[0];
      const bool deep = from.channel == 1 || channels == 1, channels_first = bool(filters_) || taps == 1;
      const int vector = from.channel == 1 && channels_first
                             ? vector_of(bytes, aligned, {from.image, from.plane, from.row, from.col, channels})
                             : 1;
      p.headers = {"image_operand"};
      values::image image{};
      image.image_step = from.image, image.group_step = channels * from.channel, image.channel_step = from.channel;
      image.plane_step = from.plane, image.row_step = from.row, image.col_step = from.col;
      const auto count = [](std::int64_t n) { return static_cast<int>(n); };
      image.planes = count(from.planes), image.height = count(from.rows), image.width = count(from.cols);
      image.out_rows = count(to.rows), image.out_cols = count(to.cols), image.out_pixels = count(pixels);
      int* const numbers[3][3] = {{&image.stride_cols, &image.dilation_cols, &image.pad_cols},
                                  {&image.stride_rows, &image.dilation_rows, &image.pad_rows},
                                  {&image.stride_planes, &image.dilation_planes, &image.pad_planes}};
      for (std::size_t back = 0; back < 3; ++back) {
        *numbers[back][0] = count(of(window.stride, back, 1));
        *numbers[back][1] = count(of(window.dilation, back, 1));
        *numbers[back][2] = count(of(window.begin, back, 0));
      }
      std::string places;
      if (backwards || axes > 2) {
        places = ", image_places<" + std::to_string(axes > 2 ? kernel_planes : 0) + (backwards ? ", true" : ", false");
        for (const std::int64_t stride :
             {std::int64_t{image.stride_planes}, image.stride_rows / phases_.rows, image.stride_cols / phases_.cols})
          places += ", " + std::to_string(stride);
        places += ">";
      }
      p.a = {std::string("image_operand<") + (deep ? "true, " : "false, ") + (channels_first ? "true, " : "false, ") +
                 std::to_string(vector) + ", " + std::to_string(channels) + ", " + std::to_string(kernel_rows) + ", " +
                 std::to_string(kernel_cols) + places + ">",
             values::bytes_of(image), deep, vector};
    }
    const std::int64_t filter = p.depth * phases_.rows * phases_.cols;
    p.b = matrix(true, vector_of(bytes, filters_ ? 16 : alignment_of(w.data), {filter, p.depth}),
                 {nullptr, {0, filters * filter}, filter, 1});
    return p;
  }

  contraction_parts parts_;
  std::optional<row_program> tail_;
  convolution_attributes attributes_;
  phases phases_;
  ordered_filters filters_;
  bool constant_ = false;
  by_sizes<built> built_;
};

}  // namespace

std::unique_ptr<kernel> lower_convolution(const kernel_request& r, const context_pointer& where) {
  auto parts = split_contraction(r.whole, r.instruction);
  if (!parts && r.instruction.op.is<op::deconvolution>()) parts.emplace().product = r.instruction.op;
  if (!parts || r.instruction.results.size() != 1) return nullptr;
  if (!parts->product.is<op::convolution>() && !parts->product.is<op::deconvolution>()) return nullptr;
  const shape &x = r.inputs[parts->operands[0]], &w = r.inputs[parts->operands[1]];
  constexpr std::size_t most_extra = 64;
  if (!multiplies(x.type) || parts->extra.size() > most_extra || !w.is_constant()) return nullptr;
  std::optional<row_program> tail;
  if (!read_tail(*parts, tail)) return nullptr;
  return std::make_unique<convolution_kernel>(std::move(*parts), std::move(tail), r, where);
}

}  // namespace kiln::hip
