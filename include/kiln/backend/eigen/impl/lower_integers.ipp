#include <algorithm>
#include <cstring>

#include "kiln/backend/eigen/affine.hpp"
#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/backend/eigen/impl/integer_epilogue.hpp"
#include "kiln/backend/eigen/integers.hpp"
#include "kiln/backend/eigen/rows.hpp"
#include "kiln/op/quant/integer_convolution.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

using namespace integer_epilogues;

std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

class integer_kernel final : public kernel {
 public:
  integer_kernel(lower::contraction_body<module_graph> body, const kernel_request& r) : body_(std::move(body)) {
    if (const auto* conv = body_.op.get_if<op::integer_convolution>()) {
      conv_ = op::convolution{.stride = conv->stride, .dilation = conv->dilation, .pads = conv->pads};
      outside_ = static_cast<std::int32_t>(conv->outside);
    }
    is_signed_ = r.inputs[body_.operands[0]].type == dtype::i8;
    if (body_.has_epilogue()) form_ = find_form(body_);
    pack(r);
    if (form_)
      for (const integer_addend& a : form_->addends) take(a, r);
    if (form_) return;
    if (!body_.has_epilogue()) {
      const value_id sum = body_.epilogue.add_parameter("product", r.instruction.results[0]);
      body_.epilogue.outputs.push_back(body_.epilogue.add(op::identity{}, {sum}));
    }
    whole_ = std::make_unique<tile_program>(body_.epilogue);
  }

  std::string name() const override {
    return std::string(conv_ ? "integer convolution" : "integer dot") + (body_.has_epilogue() ? "+epilogue" : "") +
           (kiln_eigen_integers()->reads_bytes ? " (bytes)" : " (words)");
  }
  bool packed_input(std::size_t i) const override {
    return i == body_.operands[1] || std::find(taken_.begin(), taken_.end(), i) != taken_.end();
  }
  std::size_t packed_bytes() const override { return packed_.size() + less_.size(); }
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

  void run(const launch& l) const override {
    const integer_table& isa = *kiln_eigen_integers();
    const tensor& out = l.out[0];
    if (out.elements() == 0) return;
    places at(*this, l.in, out, l.pool->size());
    std::byte* const scratch = l.scratch.data();
    kernels::integer_problem p;
    p.m = at.rows, p.n = columns_, p.k = depth_;
    p.b = reinterpret_cast<const std::int32_t*>(packed_.data());
    const tensor& x = l.in[body_.operands[0]];
    p.a = x.data, p.a_row = at.row;
    if (at.gathers) {
      p.a = scratch + at.left;
      tensor image = x;
      if (at.transposes) image = to_nhwc(*l.pool, x, scratch + at.nhwc);
      isa.gather_windows(*l.pool, at.problem, at.image(image, conv_.has_value(), outside_), scratch + at.left, at.row);
    }
    p.shift = shift_.data();
    if (less_) {
      p.less = reinterpret_cast<const std::int32_t*>(less_.data());
      p.less_row = columns_;
      p.less_rows = static_cast<std::int64_t>(less_.size()) / 4 / columns_;
    }
    if (!open_.empty()) add_open(p, l.in, out, at, reinterpret_cast<std::int32_t*>(scratch + at.corrections));
    auto* const sums = reinterpret_cast<std::int32_t*>(scratch);
    tensor made = at.made;
    if (at.apart) made.data = scratch + at.product;
    if (whole_) {
      isa.multiply(*l.pool, p, sums, {nullptr, nullptr, made.as<std::int32_t>(), columns_});
      run_rows(*whole_, {whole_operands(l.in, made), l.out, l.scratch.subspan(at.bytes), l.pool, nullptr});
      return;
    }
    inline_vector<tensor, 40> in;
    for (const tensor& t : l.in) in.push_back(seen(t, out));
    const float_epilogue epilogue(*form_, in, seen(made, out));
    isa.multiply(
        *l.pool, p, sums,
        {[](void* self, std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols, float* c,
            std::ptrdiff_t row) { static_cast<const float_epilogue*>(self)->apply(row0, rows, col0, cols, c, row); },
         const_cast<float_epilogue*>(&epilogue)});
    if (!at.apart) return;
    launch copy = l;
    copy.in = std::span(&made, 1);
    copy.scratch = l.scratch.subspan(at.bytes);
    copy_->run(copy);
  }

 private:
  // The channels are the last dim of what a convolution sees, whatever its layout: columns.
  tensor seen(const tensor& t, const tensor& out) const { return conv_ && t.rank() == out.rank() ? nhwc_view(t) : t; }
  inline_vector<tensor, 40> whole_operands(std::span<const tensor> in, const tensor& product) const {
    inline_vector<tensor, 40> operands;
    operands.push_back(product);
    for (const std::size_t i : body_.epilogue_inputs) operands.push_back(in[i]);
    return operands;
  }

  // A copy in NHWC.
  static tensor to_nhwc(thread_pool& pool, const tensor& x, std::byte* to) {
    const tensor out{to, x.type, x.lens, lower::nhwc_strides(x.lens)};
    const std::size_t rank = x.rank();
    const std::int64_t channels = x.lens[1], width = x.lens[rank - 1];
    ints lines{x.lens[0]};
    for (std::size_t d = 2; d + 1 < rank; ++d) lines.push_back(x.lens[d]);
    pool.parallel_for(product(lines), [&](std::int64_t line, unsigned) {
      std::int64_t rest = line, from = 0;
      for (std::size_t d = rank - 1; d-- > 2; rest /= x.lens[d]) from += rest % x.lens[d] * x.strides[d];
      const std::byte* const in = x.data + from + rest * x.strides[0];
      std::byte* const pixels = to + line * width * channels;
      for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t i = 0; i < width; ++i)
          pixels[i * channels + c] = in[c * x.strides[1] + i * x.strides[rank - 1]];
    });
    return out;
  }

  // What a run needs beside its operands, by its sizes: the workers' sums come first in the scratch memory.
  struct places {
    std::int64_t rows = 0;
    std::ptrdiff_t row = 0;  // bytes of a row of the left operand
    kernels::conv_problem problem;
    tensor made;              // where the product's result, or its sums, are written
    bool gathers = false;     // the left operand is written out
    bool transposes = false;  // the image is copied to NHWC first, where a window is runs of bytes
    bool apart = false;       // the result is made in scratch memory
    std::size_t left = 0, nhwc = 0, corrections = 0, product = 0, bytes = 0;

    places(const integer_kernel& k, std::span<const tensor> in, const tensor& out, unsigned threads) : made(out) {
      const integer_table& isa = *kiln_eigen_integers();
      const tensor &x = in[k.body_.operands[0]], &w = in[k.body_.operands[1]];
      rows = out.elements() / std::max<std::int64_t>(1, k.columns_);
      problem.in_channels = k.depth_;
      bool plain = true;  // the left operand's rows are read where they are
      row = k.depth_;
      if (k.conv_) {
        describe(*k.conv_, x, w);
        const kernels::image_layout from = image_layout_of(x);
        plain = problem.pointwise() && from.nhwc;
        row = from.step;
      } else {
        problem.input[2] = rows;
      }
      gathers = !(plain && isa.reads_bytes && x.type == dtype::u8 && k.depth_ % isa.depth == 0);
      if (gathers) row = (k.depth_ + isa.depth - 1) / isa.depth * 4;
      const auto take = [&](std::size_t n) {
        const std::size_t at = bytes;
        bytes += aligned(n);
        return at;
      };
      take(static_cast<std::size_t>(isa.scratch_size(threads)) * 4);
      if (gathers) left = take(static_cast<std::size_t>(rows * row));
      transposes = gathers && k.conv_ && x.lens[1] > 1 && x.strides[1] != 1;
      if (transposes) nhwc = take(static_cast<std::size_t>(x.elements()));
      if (!k.open_.empty())
        corrections = take(static_cast<std::size_t>(rows + 1) * static_cast<std::size_t>(k.columns_ + 64) * 4);
      apart = k.whole_ || !float_epilogue::fits(*k.form_, k.seen(out, out));
      if (!apart) return;
      made.type = k.whole_ ? dtype::i32 : out.type;
      made.strides = k.conv_ ? lower::nhwc_strides(out.lens) : row_major(out.lens);
      product = take(static_cast<std::size_t>(out.elements()) * size_of(made.type));
    }
    kernels::byte_image image(const tensor& x, bool convolves, std::int32_t outside) const {
      kernels::byte_image i;
      i.outside = outside;
      i.at = x.data;
      i.is_signed = x.type == dtype::i8;
      if (!convolves) {
        i.channel = 1;
        i.axis[2] = problem.in_channels;
        return i;
      }
      i.batch = x.strides[0];
      i.channel = x.lens[1] == 1 ? 1 : x.strides[1];
      for (std::size_t d = 2; d < x.rank(); ++d) i.axis[d + 3 - x.rank()] = x.strides[d];
      return i;
    }

   private:
    void describe(const op::convolution& conv, const tensor& x, const tensor& w) {
      problem.batch = x.lens[0];
      problem.in_channels = x.lens[1];
      problem.out_channels = w.lens[0];
      const std::size_t axes = x.rank() - 2;
      for (std::size_t d = 0; d < axes; ++d) {
        const std::size_t to = 3 - axes + d;
        problem.input[to] = x.lens[d + 2];
        problem.kernel[to] = w.lens[d + 2];
        if (!conv.stride.empty()) problem.stride[to] = conv.stride[d];
        if (!conv.dilation.empty()) problem.dilation[to] = conv.dilation[d];
        if (conv.pads.empty()) continue;
        problem.pad_begin[to] = conv.pads[d];
        problem.pad_end[to] = conv.pads[axes + d];
      }
    }
  };

  void pack(const kernel_request& r) {
    const integer_table& isa = *kiln_eigen_integers();
    const std::size_t w = body_.operands[1];
    const layout& at = r.constant_layouts[w];
    const ints lens = to_ints(at.lens), strides = to_ints(at.strides);
    std::int64_t taps = 1;
    if (conv_) {
      columns_ = lens[0];
      for (std::size_t d = 2; d < lens.size(); ++d) taps *= lens[d];
      depth_ = taps * lens[1];
    } else {
      depth_ = lens[lens.size() - 2], columns_ = lens[lens.size() - 1];
    }
    packed_ = r.packed(static_cast<std::size_t>(isa.packed_size(depth_, columns_)) * 4, [&](std::byte* memory) {
      auto* const to = reinterpret_cast<std::int32_t*>(memory);
      const auto* const from = reinterpret_cast<const std::int8_t*>(r.constants[w]->bytes());
      if (!conv_)
        return isa.pack(*r.pool, to, from + at.offset.value(), strides[lens.size() - 2], strides[lens.size() - 1],
                        depth_, columns_);
      std::vector<std::int8_t> turned(static_cast<std::size_t>(columns_ * depth_));  // channels of a tap are neighbors
      for (std::int64_t m = 0; m < columns_; ++m)
        for (std::int64_t c = 0; c < lens[1]; ++c)
          for (std::int64_t t = 0; t < taps; ++t)
            turned[static_cast<std::size_t>(m * depth_ + t * lens[1] + c)] = from[(m * lens[1] + c) * taps + t];
      isa.pack(*r.pool, to, turned.data(), 1, depth_, depth_, columns_);
    });
    const auto* const packed = reinterpret_cast<const std::int32_t*>(packed_.data());
    shift_.assign(static_cast<std::size_t>(columns_) + 64, 0);
    if (is_signed_)
      for (std::int64_t n = 0; n < columns_; ++n) shift_[static_cast<std::size_t>(n)] = -isa.signed_offset * packed[n];
  }
  std::size_t column_dim(std::size_t rank) const { return conv_ ? 1 : rank - 1; }

  // 32-bit sums wrap.
  static void add_to(std::int32_t& sum, std::int32_t sign, std::int32_t x) {
    const auto more = static_cast<std::uint32_t>(x);
    sum = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum) + (sign < 0 ? 0 - more : more));
  }

  // Whether an addend differs along another dim than the columns.
  template <class Lens, class Strides> bool has_other_dims(const Lens& lens, const Strides& strides) const {
    bool others = false;
    for (std::size_t d = 0; d < lens.size(); ++d)
      others = others || (d != column_dim(lens.size()) && lens[d] != 1 && strides[d] != 0);
    return others;
  }

  // A constant addend with one number for each column, or, in a convolution, for each pixel of an image and column,
  // joins what the kernel keeps; others stay open until the run.
  void take(const integer_addend& a, const kernel_request& r) {
    const literal* const l = r.constants[a.input];
    const layout& at = r.constant_layouts[a.input];
    if (!l || !is_constant(at.lens)) return open_.push_back(a);
    const ints lens = to_ints(at.lens), strides = to_ints(at.strides);
    const auto step_of = [&](std::size_t d) { return lens[d] == 1 ? 0 : strides[d]; };
    const auto column_bytes = static_cast<std::size_t>(columns_) * 4;
    // calls f(values) with the constant's numbers from its first one on
    const auto reading = [&](auto&& f) {
      const argument aligned(*l);
      f(aligned.as<std::int32_t>().data() + at.offset.value());
    };
    if (!has_other_dims(lens, strides)) {
      const buffer sums = r.packed(column_bytes, [&](std::byte* memory) {
        auto* const to = reinterpret_cast<std::int32_t*>(memory);
        std::copy_n(shift_.begin(), columns_, to);
        reading([&](const std::int32_t* from) {
          for (std::int64_t n = 0; n < columns_; ++n) add_to(to[n], a.sign, from[n * step_of(column_dim(lens.size()))]);
        });
      });
      std::memcpy(shift_.data(), sums.data(), column_bytes);
      taken_.push_back(a.input);
      return;
    }
    if (!conv_ || step_of(0) != 0) return open_.push_back(a);
    ints pixels, index;
    for (std::size_t d = 2; d < lens.size(); ++d) pixels.push_back(lens[d]);
    const std::size_t bytes = static_cast<std::size_t>(product(pixels)) * column_bytes;
    if (less_ && less_.size() != bytes) return open_.push_back(a);
    taken_.push_back(a.input);
    less_ = r.packed(bytes, [&, before = less_](std::byte* memory) {
      if (before)
        std::memcpy(memory, before.data(), bytes);
      else
        std::memset(memory, 0, bytes);
      index.resize(pixels.size(), 0);
      auto* to = reinterpret_cast<std::int32_t*>(memory);
      reading([&](const std::int32_t* from) {
        do {
          std::int64_t offset = 0;
          for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * step_of(d + 2);
          for (std::int64_t n = 0; n < columns_; ++n) add_to(*to++, -a.sign, from[offset + n * step_of(1)]);
        } while (next_index(index, pixels));
      });
    });
  }

  // Addends that only the run knows.
  void add_open(kernels::integer_problem& p, std::span<const tensor> in, const tensor& out, const places& at,
                std::int32_t* to) const {
    bool by_row = false;
    for (const integer_addend& a : open_) by_row = by_row || has_other_dims(in[a.input].lens, in[a.input].strides);
    if (!by_row) {
      std::copy(shift_.begin(), shift_.end(), to);
      for (const integer_addend& a : open_) {
        const tensor& t = in[a.input];
        const std::size_t column = column_dim(t.rank());
        const std::int64_t step = t.lens[column] == 1 ? 0 : t.strides[column];
        for (std::int64_t n = 0; n < columns_; ++n) add_to(to[n], a.sign, t.as<const std::int32_t>()[n * step]);
      }
      p.shift = to;
      return;
    }
    for (std::int64_t r = 0; r < at.rows; ++r)
      if (p.less)
        std::copy_n(p.less + r % p.less_rows * p.less_row, columns_, to + r * columns_);
      else
        std::fill_n(to + r * columns_, columns_, 0);
    for (const integer_addend& a : open_) {
      const tensor rows = seen(in[a.input], out);
      const auto* const from = rows.as<const std::int32_t>();
      ints index(rows.rank(), 0), lens;
      for (std::size_t d = 0; d < out.rank(); ++d) lens.push_back(seen(out, out).lens[d]);
      std::int32_t* next = to;
      do {
        std::int64_t offset = 0;
        for (std::size_t d = 0; d < index.size(); ++d) offset += rows.lens[d] == 1 ? 0 : index[d] * rows.strides[d];
        add_to(*next++, -a.sign, from[offset]);
      } while (next_index(index, lens));
    }
    p.less = to;
    p.less_row = columns_;
    p.less_rows = at.rows;
  }

  lower::contraction_body<module_graph> body_;
  std::optional<op::convolution> conv_;
  std::optional<integer_form> form_;
  std::unique_ptr<tile_program> whole_;  // the epilogue over whole sums, where it has no such form
  std::unique_ptr<kernel> copy_ = eigen_target().make_copy(nullptr);
  std::int64_t depth_ = 0, columns_ = 0;
  bool is_signed_ = false;
  std::int32_t outside_ = 0;
  buffer packed_, less_;
  std::vector<std::int32_t> shift_;
  std::vector<integer_addend> open_;  // what the run adds
  std::vector<std::size_t> taken_;    // inputs that are part of shift_ and less_
};

}  // namespace

std::unique_ptr<kernel> lower_integers(const kernel_request& r) {
  auto body = lower::split_contraction(r.whole, r.instruction);
  if (!body || !(body->op.is<op::integer_dot>() || body->op.is<op::integer_convolution>())) return nullptr;
  const std::size_t w = body->operands[1];
  if (r.instruction.results.size() != 1 || !r.constants[w] || !is_constant(r.constant_layouts[w].lens)) return nullptr;
  const layout& at = r.constant_layouts[w];
  if (body->op.is<op::integer_convolution>() && !at.is_standard()) return nullptr;
  for (std::size_t d = 0; d + 2 < at.lens.size() && body->op.is<op::integer_dot>(); ++d)
    if (!(at.strides[d] == dimension(0)) && !(at.lens[d] == dimension(1))) return nullptr;
  return std::make_unique<integer_kernel>(std::move(*body), r);
}

}  // namespace kiln::eigen
