#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/backend/eigen/impl/int8/byte_products.hpp"
#include "kiln/backend/eigen/impl/int8/integer_addends.hpp"
#include "kiln/backend/eigen/impl/int8/requantization_form.hpp"
#include "kiln/backend/eigen/rows.hpp"
#include "kiln/kernel/int8/quantize.hpp"
#include "kiln/pass/fuse_quantization.hpp"

namespace kiln::eigen {
namespace {

using namespace integer_epilogues;

std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

class integer_kernel final : public kernel {
 public:
  integer_kernel(lower::contraction_body<module_graph> body, const std::optional<byte_prologue_form>& prologue,
                 const kernel_request& r)
      : body_(std::move(body)) {
    if (const auto* conv = body_.op.get_if<op::integer_convolution>()) {
      conv_ =
          op::convolution{.stride = conv->stride, .dilation = conv->dilation, .pads = conv->pads, .group = conv->group};
      outside_ = static_cast<std::int32_t>(conv->outside);
    }
    is_signed_ = (prologue ? prologue->type : r.inputs[body_.operands[0]].type) == dtype::i8;
    if (prologue) {
      const byte_prologue_form& f = *prologue;
      quantization_.emplace();
      quantization_->to = byte_rounding_of(f.scale, f.least, f.most, f.low - f.zero, f.high - f.zero);
      quantization_->zero = static_cast<std::int32_t>(f.zero);
      quantization_->divides = !quantization_->to.rounds_as_division();
    }
    if (body_.has_epilogue())
      form_ = find_form(body_);
    else
      form_.emplace().sums = true;
    pack(r);
    if (form_)
      for (const integer_addend& a : form_->addends) addends_.take(a, r);
    if (form_ && !form_->sums && addends_.by_columns()) {
      const std::size_t rank = r.instruction.results[0].rank();
      requantization_ = requantization_finder(body_, r, conv_ ? 1 : rank - 1, columns_).find(form_->converted);
    }
    if (!form_) whole_ = std::make_unique<tile_program>(body_.epilogue);
  }

  std::string name() const override {
    return std::string(quantization_ ? "quantize+" : "") + (conv_ ? "integer convolution" : "integer dot") +
           (!body_.has_epilogue()                              ? ""
            : !requantization_                                 ? "+epilogue"
            : requantization_->how.result_kind == kind::floats ? "+rescale"
                                                               : "+requantize") +
           (kiln_eigen_integers()->reads_bytes ? " (bytes)" : " (words)");
  }
  bool packed_input(std::size_t i) const override { return i == body_.operands[1] || addends_.took(i); }
  std::size_t packed_bytes() const override { return packed_.size() + addends_.kept_bytes(); }
  stride_support input_strides(std::size_t i) const override {
    if (i == body_.operands[0]) return conv_ ? stride_support::nchw_or_nhwc : stride_support::dense;
    return i == body_.operands[1] ? stride_support::dense : stride_support::any;
  }
  stride_support output_strides(std::size_t) const override {
    return conv_ ? stride_support::nchw_or_nhwc : stride_support::rows;
  }

  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    const places at(*this, in, out[0], threads);
    std::size_t n = at.bytes;
    if (whole_) n += rows_scratch_bytes(*whole_, whole_operands(in, at.made), out, threads);
    return n;
  }

  double estimated_seconds(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    const tensor& x = in[body_.operands[0]];
    const auto results = static_cast<double>(out[0].elements());
    const double bytes = static_cast<double>(x.elements()) * static_cast<double>(size_of(x.type)) +
                         results * static_cast<double>(size_of(out[0].type)) + static_cast<double>(packed_.size());
    return byte_product_seconds(out[0].elements() / std::max<std::int64_t>(columns_, 1), 2 * results * depth_, bytes,
                                threads);
  }

  void run(const launch& l) const override {
    const integer_table& isa = *kiln_eigen_integers();
    const tensor& out = l.out[0];
    if (out.elements() == 0) return;
    const places at(*this, l.in, out, l.pool->size());
    std::byte* const scratch = l.scratch.data();
    auto* const sums = reinterpret_cast<std::int32_t*>(scratch);
    kernels::integer_problem p;
    p.m = at.rows, p.n = columns_;
    p.b = reinterpret_cast<const std::int32_t*>(packed_.data());
    isa.place(*l.pool, at.problem, at.image(*this, l.in[body_.operands[0]]), at.copies ? scratch + at.copy : nullptr,
              reinterpret_cast<std::ptrdiff_t*>(scratch + at.runs), p);
    addends_.describe(p, l.in, seen(out, out).lens, reinterpret_cast<std::int32_t*>(scratch + at.corrections),
                      [&](const tensor& t) { return seen(t, out); });
    tensor made = at.made;
    if (at.apart) made.data = scratch + at.product;
    if (at.requantizes) {
      auto* const scales = reinterpret_cast<float*>(scratch + at.scales);
      isa.requantize(*l.pool, p, sums, requantized(l.in, out, made, scales), at.planes);
    } else if (whole_) {
      isa.multiply(*l.pool, p, sums, {nullptr, nullptr, made.as<std::int32_t>(), columns_});
      return run_rows(*whole_, {whole_operands(l.in, made), l.out, l.scratch.subspan(at.bytes), l.pool, nullptr});
    } else if (form_->sums) {
      isa.multiply(*l.pool, p, sums, {nullptr, nullptr, made.as<std::int32_t>(), row_step(seen(made, out)).value()});
    } else {
      multiply_with_epilogue(l, p, sums, out, made);
    }
    if (!at.apart) return;
    launch copy = l;
    copy.in = std::span(&made, 1);
    copy.scratch = l.scratch.subspan(at.bytes);
    copy_->run(copy);
  }

 private:
  using kind = kernels::requantization::kind;

  // The channels are the last dim of what a convolution sees, whatever its layout: columns.
  tensor seen(const tensor& t, const tensor& out) const { return conv_ && t.rank() == out.rank() ? nhwc_view(t) : t; }
  inline_vector<tensor, 40> whole_operands(std::span<const tensor> in, const tensor& product) const {
    inline_vector<tensor, 40> operands;
    operands.push_back(product);
    for (const std::size_t i : body_.epilogue_inputs) operands.push_back(in[i]);
    return operands;
  }
  void multiply_with_epilogue(const launch& l, const kernels::integer_problem& p, std::int32_t* sums, const tensor& out,
                              const tensor& made) const {
    inline_vector<tensor, 40> in;
    for (const tensor& t : l.in) in.push_back(seen(t, out));
    const float_epilogue epilogue(*form_, in, seen(made, out));
    kiln_eigen_integers()->multiply(
        *l.pool, p, sums,
        {[](void* self, std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols, float* c,
            std::ptrdiff_t row) { static_cast<const float_epilogue*>(self)->apply(row0, rows, col0, cols, c, row); },
         const_cast<float_epilogue*>(&epilogue)});
  }

  // Elements between adjacent rows of columns, where they are evenly spaced.
  static std::optional<std::ptrdiff_t> row_step(const tensor& t) {
    std::optional<std::ptrdiff_t> step;
    std::ptrdiff_t expected = 0;
    if (t.lens.back() != 1 && t.strides.back() != 1) return std::nullopt;
    for (std::size_t d = t.rank() - 1; d-- > 0;) {
      if (t.lens[d] == 1) continue;
      if (!step) step = expected = t.strides[d];
      if (t.strides[d] != expected) return std::nullopt;
      expected *= t.lens[d];
    }
    return step.value_or(t.lens.back());
  }
  // Whether the addend of the form lies as rows of the result.
  bool binds_addend(std::span<const tensor> in, const tensor& out) const {
    if (requantization_->addend == none) return true;
    const tensor& t = in[requantization_->addend];
    return t.lens == out.lens && row_step(seen(t, out));
  }
  // Whether the scales of the form, if a run has them, are numbers for the columns.
  bool binds_scale(std::span<const tensor> in) const {
    if (requantization_->scale_input == none) return true;
    const tensor& t = in[requantization_->scale_input];
    for (std::size_t d = 0; d < t.rank(); ++d)
      if (d != column_dim(t) && t.lens[d] != 1 && t.strides[d] != 0) return false;
    return true;
  }
  std::size_t column_dim(const tensor& t) const { return conv_ ? 1 : t.rank() - 1; }
  kernels::requantization requantized(std::span<const tensor> in, const tensor& out, const tensor& made,
                                      float* scales) const {
    const bool scales_vary = requantization_->scale_input != none;
    if (scales_vary) {
      const tensor& t = in[requantization_->scale_input];
      const std::int64_t step = t.lens[column_dim(t)] == 1 ? 0 : t.strides[column_dim(t)];
      for (std::int64_t n = 0; n < columns_; ++n) scales[n] = t.as<const float>()[n * step];
    }
    kernels::requantization how = requantization_->bound(scales_vary ? scales : nullptr);
    if (requantization_->addend != none) {
      const tensor& t = in[requantization_->addend];
      how.addend = t.data;
      how.addend_row = *row_step(seen(t, out));
    }
    how.result = made.data;
    how.result_row = row_step(seen(made, out)).value_or(0);
    return how;
  }

  // What a run needs beside its operands, by its sizes: the workers' sums come first in the scratch memory.
  struct places {
    std::int64_t rows = 0;
    kernels::conv_problem problem;
    tensor made;               // where the product's result, or its sums, are written
    bool copies = false;       // the left operand is written out
    bool requantizes = false;  // the epilogue is applied in registers
    bool apart = false;        // the result is made in scratch memory
    float_planes planes{};
    std::size_t copy = 0, runs = 0, corrections = 0, scales = 0, product = 0, bytes = 0;

    places(const integer_kernel& k, std::span<const tensor> in, const tensor& out, unsigned threads) : made(out) {
      const integer_table& isa = *kiln_eigen_integers();
      const tensor& x = in[k.body_.operands[0]];
      rows = out.elements() / std::max<std::int64_t>(1, k.columns_);
      if (k.conv_) {
        problem = k.problem_;
        problem.batch = x.lens[0];
        for (std::size_t d = 2; d < x.rank(); ++d) problem.input[d + 3 - x.rank()] = x.lens[d];
      } else {
        problem.in_channels = x.lens.back();
        problem.input[1] = rows;
      }
      const auto take = [&](std::int64_t n) {
        const std::size_t at = bytes;
        bytes += aligned(static_cast<std::size_t>(n));
        return at;
      };
      const integer_windows windows = isa.windows(problem);
      take(isa.scratch_size(threads, windows.count * windows.words) * 4);
      copies = !reads_in_place(image(k, x));
      runs = take(windows.count * static_cast<std::int64_t>(sizeof(std::ptrdiff_t)));
      if (copies) copy = take(isa.image_size(problem));
      corrections = take(k.addends_.open_numbers(rows) * 4);
      requantizes = k.requantization_ && k.addends_.by_columns(in) && k.binds_addend(in, out) && k.binds_scale(in);
      if (requantizes) {
        if (k.requantization_->scale_input != none) scales = take((k.columns_ + 64) * 4);
        const bool in_rows = row_step(k.seen(out, out)).has_value();
        if (!in_rows && out.type == dtype::f32 && out.dense()) {
          const std::int64_t pixels = problem.output_pixels();
          planes = {out.as<float>(), out.lens[1] * pixels, pixels, pixels};
        }
        apart = !in_rows && !planes.channel;
      } else if (k.form_ && k.form_->sums) {
        apart = !row_step(k.seen(out, out));
      } else {
        apart = k.whole_ || !float_epilogue::fits(k.seen(out, out));
      }
      if (!apart) return;
      made.type = k.whole_ ? dtype::i32 : out.type;
      made.strides = k.conv_ ? lower::nhwc_strides(out.lens) : row_major(out.lens);
      product = take(out.elements() * static_cast<std::int64_t>(size_of(made.type)));
    }
    kernels::byte_image image(const integer_kernel& k, const tensor& x) const {
      const auto width = static_cast<std::ptrdiff_t>(size_of(x.type));
      kernels::byte_image i;
      i.outside = k.outside_;
      i.at = x.data;
      i.is_signed = k.is_signed_;
      if (k.quantization_) i.floats = &*k.quantization_;
      if (!k.conv_) {
        i.channel = 1;
        i.axis[1] = i.axis[2] = problem.in_channels;
        return i;
      }
      i.batch = x.strides[0] * width;
      i.channel = (x.lens[1] == 1 ? 1 : x.strides[1]) * width;
      for (std::size_t d = 2; d < x.rank(); ++d) i.axis[d + 3 - x.rank()] = x.strides[d] * width;
      return i;
    }

   private:
    // Whether windows are runs of whole words of the image as it lies.
    bool reads_in_place(const kernels::byte_image& x) const {
      const integer_table& isa = *kiln_eigen_integers();
      const integer_windows w = isa.windows(problem);
      if (x.floats || !isa.reads_bytes || x.is_signed || x.channel != 1 || problem.padded()) return false;
      if (w.by_channel) return problem.in_channels % isa.channel_block == 0;
      const bool adjacent = w.each == problem.in_channels || x.axis[2] == problem.in_channels;
      return adjacent && w.each % isa.depth == 0;
    }
  };

  // What the kernel knows of its convolution.
  void describe(const ints& weights) {
    problem_.groups = conv_->group;
    problem_.in_channels = weights[1] * conv_->group;
    problem_.out_channels = weights[0];
    const std::size_t axes = weights.size() - 2;
    for (std::size_t d = 0; d < axes; ++d) {
      const std::size_t to = 3 - axes + d;
      problem_.kernel[to] = weights[d + 2];
      if (!conv_->stride.empty()) problem_.stride[to] = conv_->stride[d];
      if (!conv_->dilation.empty()) problem_.dilation[to] = conv_->dilation[d];
      if (conv_->pads.empty()) continue;
      problem_.pad_begin[to] = conv_->pads[d];
      problem_.pad_end[to] = conv_->pads[axes + d];
    }
  }
  void pack(const kernel_request& r) {
    const integer_table& isa = *kiln_eigen_integers();
    const std::size_t w = body_.operands[1];
    const ints lens = to_ints(r.constant_layouts[w].lens);
    columns_ = conv_ ? lens[0] : lens.back();
    depth_ = static_cast<double>(product(lens)) / static_cast<double>(std::max<std::int64_t>(columns_, 1));
    std::vector<std::int32_t> sums;  // of the columns
    if (conv_)
      sums = pack_filters(r, lens);
    else
      sums = pack_matrix(r, lens);
    std::vector<std::int32_t> shift(static_cast<std::size_t>(columns_), 0);
    for (std::size_t n = 0; is_signed_ && n < shift.size(); ++n) shift[n] = -isa.signed_offset * sums[n];
    addends_.begin(std::move(shift), conv_.has_value());
  }
  const std::int8_t* weights(const kernel_request& r) const {
    const std::size_t w = body_.operands[1];
    return reinterpret_cast<const std::int8_t*>(r.constants[w]->bytes()) + r.constant_layouts[w].offset.value();
  }
  std::vector<std::int32_t> pack_matrix(const kernel_request& r, const ints& lens) {
    const integer_table& isa = *kiln_eigen_integers();
    const ints strides = to_ints(r.constant_layouts[body_.operands[1]].strides);
    const std::size_t row = lens.size() - 2, col = lens.size() - 1;
    packed_ = r.packed(static_cast<std::size_t>(isa.packed_size(lens[row], columns_)) * 4, [&](std::byte* memory) {
      isa.pack(*r.pool, reinterpret_cast<std::int32_t*>(memory), weights(r), strides[row], strides[col], lens[row],
               columns_);
    });
    return sums_of(1, 0);
  }
  std::vector<std::int32_t> pack_filters(const kernel_request& r, const ints& lens) {
    const integer_table& isa = *kiln_eigen_integers();
    describe(lens);
    if (isa.windows(problem_).by_channel) {
      const std::int64_t taps = problem_.taps();
      packed_ =
          r.packed(static_cast<std::size_t>(isa.packed_channels_size(taps, columns_)) * 4, [&](std::byte* memory) {
            isa.pack_channels(reinterpret_cast<std::int32_t*>(memory), weights(r), taps, columns_);
          });
      return sums_of(1, 0);
    }
    const std::int64_t joined = isa.joined_groups(problem_);
    problem_.groups /= joined;
    const integer_windows windows = isa.windows(problem_);
    const std::int64_t depth = windows.count * windows.words * isa.depth, outputs = problem_.group_outputs();
    const std::int64_t each = isa.packed_size(depth, outputs);
    packed_ = r.packed(static_cast<std::size_t>(each * problem_.groups) * 4, [&](std::byte* memory) {
      std::vector<std::int8_t> turned;
      const std::int8_t* from = weights(r);
      if (problem_.taps() != 1 || joined != 1 || depth != lens[1]) {
        turned = along_windows(*r.pool, from, problem_, lens[1], joined, windows, depth);
        from = turned.data();
      }
      for (std::int64_t g = 0; g < problem_.groups; ++g)
        isa.pack(*r.pool, reinterpret_cast<std::int32_t*>(memory) + g * each, from + g * outputs * depth, 1, depth,
                 depth, outputs);
    });
    return sums_of(problem_.groups, each);
  }
  // The sums of the weights' columns, with which the packed weights of each group begin.
  std::vector<std::int32_t> sums_of(std::int64_t groups, std::int64_t group) const {
    const auto* const packed = reinterpret_cast<const std::int32_t*>(packed_.data());
    std::vector<std::int32_t> sums;
    for (std::int64_t g = 0; g < groups; ++g)
      sums.insert(sums.end(), packed + g * group, packed + g * group + columns_ / groups);
    return sums;
  }

  lower::contraction_body<module_graph> body_;
  std::optional<op::convolution> conv_;
  kernels::conv_problem problem_;  // of the convolution; batch and extents are the run's
  std::optional<integer_form> form_;
  std::optional<requantization_form> requantization_;
  std::optional<kernels::byte_quantization> quantization_;  // of floats that are the left operand
  std::unique_ptr<tile_program> whole_;                     // the epilogue over whole sums, where it has no such form
  std::unique_ptr<kernel> copy_ = eigen_target().make_copy(nullptr);
  std::int64_t columns_ = 0;
  double depth_ = 0;  // products of a result
  bool is_signed_ = false;
  std::int32_t outside_ = 0;
  buffer packed_;
  integer_addends addends_;
};

}  // namespace

std::unique_ptr<kernel> lower_integers(const kernel_request& r) {
  std::optional<byte_prologue_form> prologue;
  auto body = lower::split_contraction(r.whole, r.instruction,
                                       [&](const module_graph& m, value_id end) -> std::optional<std::size_t> {
                                         prologue = find_byte_prologue(m, end);
                                         return prologue ? std::optional(prologue->data) : std::nullopt;
                                       });
  if (!body || !(body->op.is<op::integer_dot>() || body->op.is<op::integer_convolution>())) return nullptr;
  const std::size_t w = body->operands[1];
  if (r.instruction.results.size() != 1 || !r.constants[w] || !is_constant(r.constant_layouts[w].lens)) return nullptr;
  const auto* const product = body->op.get_if<op::integer_dot>();
  if (product && (product->left_zero != 0 || product->right_zero != 0 || r.inputs[w].type != dtype::i8)) return nullptr;
  const layout& at = r.constant_layouts[w];
  if (body->op.is<op::integer_convolution>() && !at.is_standard()) return nullptr;
  for (std::size_t d = 0; d + 2 < at.lens.size() && body->op.is<op::integer_dot>(); ++d)
    if (!(at.strides[d] == dimension(0)) && !(at.lens[d] == dimension(1))) return nullptr;
  return std::make_unique<integer_kernel>(std::move(*body), prologue, r);
}

}  // namespace kiln::eigen
