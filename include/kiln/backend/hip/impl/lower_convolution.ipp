#include <algorithm>
#include <cstring>

#include "kiln/backend/hip/impl/product_plan.hpp"
#include "kiln/backend/hip/impl/tail_behind.hpp"
#include "kiln/backend/hip/lower.hpp"

namespace kiln::hip {
namespace {

// Weights [filters, channels, taps...] with the channels last: [filters, taps, channels].
std::vector<std::byte> pack_weights(const literal& weights, const layout& l, std::size_t width) {
  const std::size_t rank = l.lens.size();
  ints lens, strides;
  for (std::size_t d = 0; d < rank; ++d) lens.push_back(l.lens[d].value()), strides.push_back(l.strides[d].value());
  const std::int64_t rows = rank > 3 ? lens[2] : 1, cols = lens[rank - 1];
  const std::int64_t row_step = rank > 3 ? strides[2] : 0, col_step = strides[rank - 1];
  std::vector<std::byte> out(static_cast<std::size_t>(lens[0] * lens[1] * rows * cols) * width);
  std::byte* to = out.data();
  for (std::int64_t f = 0; f < lens[0]; ++f)
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < cols; ++j)
        for (std::int64_t c = 0; c < lens[1]; ++c, to += width) {
          const std::int64_t at = l.offset.value() + f * strides[0] + c * strides[1] + i * row_step + j * col_step;
          std::memcpy(to, reinterpret_cast<const std::byte*>(weights.bytes()) + at * static_cast<std::int64_t>(width),
                      width);
        }
  return out;
}

// Steps of a tensor of images; fewer spatial dims are columns.
struct image_steps {
  std::int64_t image, channel, row, col, rows, cols;
  explicit image_steps(const tensor& t) {
    const std::size_t rank = t.rank(), last = rank - 1;
    const auto step = [&](std::size_t d) { return t.lens[d] == 1 ? 0 : t.strides[d]; };
    image = step(0), channel = step(1), col = step(last), cols = t.lens[last];
    row = rank > 3 ? step(2) : 0, rows = rank > 3 ? t.lens[2] : 1;
  }
  bool even() const { return rows == 1 || cols == 1 || row == col * cols; }
  std::int64_t pixel() const { return cols == 1 ? row : col; }
};

class convolution_kernel final : public gpu_kernel {
 public:
  convolution_kernel(contraction_parts parts, std::optional<row_program> tail, const kernel_request& r,
                     const context_pointer& where)
      : gpu_kernel(where, tail ? "convolution+epilogue" : "convolution"),
        parts_(std::move(parts)),
        tail_(std::move(tail)) {
    const auto& op = *parts_.product.get_if<op::convolution>();
    window_ = *detail::resolve_window(r.inputs[parts_.operands[0]].rank(), op.stride, op.dilation, op.pads);
    groups_ = op.group;
    const std::size_t w = parts_.operands[1];
    constant_ = r.constants[w] != nullptr;
    const shape& weights = r.inputs[w];
    bool one_tap = true;
    for (std::size_t d = 2; d < weights.rank(); ++d) one_tap = one_tap && weights.lens[d] == dimension(1);
    if (!r.constants[w] || one_tap || !weights.is_constant()) return;
    const std::vector<std::byte> bytes = pack_weights(*r.constants[w], r.constant_layouts[w], size_of(weights.type));
    packs_ = true;
    packed_bytes_ = bytes.size();
    if (!where_->calls() || bytes.empty()) return;
    const auto device = make_device(*where_->calls(), where_->index());
    const auto queue = device->make_queue();
    queue->enter();
    packed_ = device->allocate(bytes.size());
    queue->copy(packed_.data(), bytes.data(), bytes.size());
    queue->wait();
  }

  bool packed_input(std::size_t i) const override { return packs_ && i == parts_.operands[1]; }
  std::size_t packed_bytes() const override { return packed_bytes_; }
  stride_support input_strides(std::size_t i) const override {
    return i == parts_.operands[1] ? stride_support::dense : stride_support::any;
  }
  stride_support output_strides(std::size_t) const override { return stride_support::images; }
  void prepare(std::span<const tensor> in, std::span<const tensor> out) const override { built_for(in, out); }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned) const override {
    return built_for(in, out)->plan.scratch_bytes;
  }

  void run(const launch& l) const override {
    if (l.out[0].elements() == 0) return;
    const auto made = built_for(l.in, l.out);
    const void* weights = packs_ ? packed_.data() : l.in[parts_.operands[1]].data;
    std::vector<const void*> extra;
    for (std::size_t i : parts_.extra) extra.push_back(l.in[i].data);
    run_product(made->plan, *made->run, *l.queue, l.scratch, l.in[parts_.operands[0]].data, weights, l.out[0].data,
                made->tail ? std::span<const void* const>() : std::span<const void* const>(extra));
    if (made->tail) made->tail.run(*l.queue, l.out[0].data, extra);
  }

 private:
  struct built {
    product_plan plan;
    std::shared_ptr<const function> run;
    tail_behind tail;  ///< where it does not fit the product's positions
  };

  std::shared_ptr<const built> built_for(std::span<const tensor> in, std::span<const tensor> out) const {
    return built_.get(key_of(in, out), [&] {
      built made;
      if (out[0].elements() == 0) return made;
      bool fits = true;
      for (std::size_t i : parts_.extra) fits = fits && image_steps(in[i]).even();
      const bool apart = tail_ && !fits;
      made.plan = plan_product(problem(in, out[0], fits), tail_ && fits ? &*tail_ : nullptr, where());
      made.run = where().build(made.plan.what);
      if (apart) made.tail = tail_behind(*tail_, parts_, in, out, where());
      return made;
    });
  }

  product_problem problem(std::span<const tensor> in, const tensor& out, bool with_tail) const {
    const tensor &x = in[parts_.operands[0]], &w = in[parts_.operands[1]];
    const std::size_t axes = x.rank() - 2;
    const image_steps from(x), to(out);
    const std::int64_t channels = w.lens[1], filters = w.lens[0] / groups_;
    const std::int64_t kernel_rows = axes > 1 ? w.lens[2] : 1, kernel_cols = w.lens[axes + 1];
    const std::int64_t taps = kernel_rows * kernel_cols, pixels = to.rows * to.cols;
    const auto of_rows = [&](const spatial& v, std::int64_t none) { return static_cast<int>(axes > 1 ? v[0] : none); };
    const auto of_cols = [&](const spatial& v) { return static_cast<int>(v[axes - 1]); };
    bool same_pixels = taps == 1 && from.even();
    for (std::size_t d = 0; d < axes; ++d)
      same_pixels = same_pixels && window_.stride[d] == 1 && window_.begin[d] == 0 && window_.end[d] == 0;

    product_problem p;
    p.type = x.type, p.constant_b = constant_;
    p.cols = filters, p.depth = channels * taps, p.batch1 = groups_;
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
      bool joined = p.batch0 > 1 && groups_ == 1 && from.image == pixels * from.pixel();
      for (const auto& s : p.steps) joined = joined && s[0] == pixels * s[2];
      if (joined) p.rows *= p.batch0, p.batch0 = 1;
    } else {
      p.rows = x.lens[0] * pixels, p.pixels = pixels, p.channels = channels;
      const bool deep = from.channel == 1 || channels == 1, channels_first = packs_ || taps == 1;
      const int vector = from.channel == 1 && channels_first
                             ? vector_of(bytes, aligned, {from.image, from.row, from.col, channels})
                             : 1;
      p.headers = {"image_operand"};
      values::image image{};
      image.image_step = from.image, image.group_step = channels * from.channel, image.channel_step = from.channel;
      image.row_step = from.row, image.col_step = from.col;
      image.height = static_cast<int>(from.rows), image.width = static_cast<int>(from.cols);
      image.out_cols = static_cast<int>(to.cols), image.out_pixels = static_cast<int>(pixels);
      image.stride_rows = of_rows(window_.stride, 1), image.stride_cols = of_cols(window_.stride);
      image.dilation_rows = of_rows(window_.dilation, 1), image.dilation_cols = of_cols(window_.dilation);
      image.pad_rows = of_rows(window_.begin, 0), image.pad_cols = of_cols(window_.begin);
      p.a = {std::string("image_operand<") + (deep ? "true, " : "false, ") + (channels_first ? "true, " : "false, ") +
                 std::to_string(vector) + ", " + std::to_string(channels) + ", " + std::to_string(kernel_rows) + ", " +
                 std::to_string(kernel_cols) + ">",
             values::bytes_of(image), deep, vector};
    }
    const std::int64_t filter = p.depth;
    p.b = matrix(true, vector_of(bytes, packs_ ? 16 : alignment_of(w.data), {filter}),
                 {nullptr, {0, filters * filter}, filter, 1});
    return p;
  }

  contraction_parts parts_;
  std::optional<row_program> tail_;
  detail::window window_;
  std::int64_t groups_ = 1;
  bool packs_ = false, constant_ = false;
  std::size_t packed_bytes_ = 0;
  buffer packed_;
  by_sizes<built> built_;
};

}  // namespace

std::unique_ptr<kernel> lower_convolution(const kernel_request& r, const context_pointer& where) {
  auto parts = split_contraction(r.whole, r.instruction);
  if (!parts || !parts->product.is<op::convolution>() || r.instruction.results.size() != 1) return nullptr;
  const shape &x = r.inputs[parts->operands[0]], &w = r.inputs[parts->operands[1]];
  constexpr std::size_t most_extra = 64;
  if (!multiplies(x.type) || x.rank() > 4 || parts->extra.size() > most_extra) return nullptr;
  if (!w.is_constant()) return nullptr;
  std::optional<row_program> tail;
  if (!read_tail(*parts, tail)) return nullptr;
  return std::make_unique<convolution_kernel>(std::move(*parts), std::move(tail), r, where);
}

}  // namespace kiln::hip
