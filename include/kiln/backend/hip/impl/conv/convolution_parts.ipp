#include "kiln/backend/hip/impl/conv/convolution_parts.hpp"

#include <cstring>

#include "kiln/backend/hip/impl/rows/row_program.hpp"
#include "kiln/backend/hip/impl/scratch_tensors.hpp"
#include "kiln/backend/hip/kernels/conv/arguments.hpp"

namespace kiln::hip {
namespace {

// The same bytes in the device's memory; in the host's where the device is absent.
buffer on_device(const buffer& bytes, const context& where) {
  if (!where.calls() || bytes.size() == 0) return bytes;
  const auto device = make_device(*where.calls(), where.index());
  const auto queue = device->make_queue();
  queue->enter();
  buffer there = device->allocate(bytes.size());
  queue->copy(there.data(), bytes.data(), bytes.size());
  queue->wait();
  return there;
}

// Elements of a view whose last two dims are padded to these extents.
std::int64_t padded_elements(const filters_view& view, const std::array<std::int64_t, 2>& last) {
  std::int64_t n = last[0] * last[1];
  for (std::size_t d = 0; d + 2 < view.lens.size(); ++d) n *= view.lens[d];
  return n;
}

// The elements of a view one after the other, with zeros where the last two dims are padded to these extents.
buffer dense_bytes(const literal& weights, std::int64_t offset, const filters_view& view,
                   const std::array<std::int64_t, 2>& last) {
  const auto width = static_cast<std::int64_t>(size_of(weights.get_shape().type));
  buffer out = buffer::allocate(static_cast<std::size_t>(padded_elements(view, last) * width));
  std::memset(out.data(), 0, out.size());
  const auto* from = reinterpret_cast<const std::byte*>(weights.bytes());
  const std::size_t rank = view.lens.size();
  ints at(rank, 0), padded = view.lens;
  padded[rank - 2] = last[0], padded[rank - 1] = last[1];
  const ints steps = row_major(padded);
  std::int64_t to = 0;
  for (std::int64_t n = product(view.lens); n-- > 0;) {
    std::memcpy(out.data() + to * width, from + offset * width, static_cast<std::size_t>(width));
    for (std::size_t d = rank; d-- > 0;) {
      offset += view.strides[d], to += steps[d];
      if (++at[d] < view.lens[d]) break;
      offset -= view.strides[d] * at[d], to -= steps[d] * at[d];
      at[d] = 0;
    }
  }
  return out;
}

}  // namespace

phases::phases(const convolution_attributes& a, const shape& weights, const shape& result) {
  constexpr std::size_t rank = 4;
  if (!a.backwards || weights.rank() != rank || !weights.is_constant()) return;
  for (std::size_t d = 2; d < rank; ++d) {
    const std::int64_t stride = a.window.stride[d - 2];
    if (a.window.dilation[d - 2] != 1 || a.window.begin[d - 2] < 0 || weights.lens[d].value() % stride != 0) return;
    if (!result.lens[d].is_constant() || result.lens[d].value() % stride != 0) return;
  }
  rows = a.window.stride[0], cols = a.window.stride[1];
}

void phases::divide(gemm_problem& p, const image_steps& to, std::span<const std::int64_t> begin,
                    std::int64_t images) const {
  p.phases = gemm_phases{rows, cols, begin[0] % rows, begin[1] % cols};
  p.batch0 = rows * cols;
  auto& image = std::get<image_argument>(p.a.value);
  image.out_rows = static_cast<int>(to.rows / rows), image.out_cols = static_cast<int>(to.cols / cols);
  image.out_pixels = image.out_rows * image.out_cols;
  image.pad_rows = static_cast<int>(begin[0] / rows), image.pad_cols = static_cast<int>(begin[1] / cols);
  std::get<matrix_argument>(p.b.value).batch[0] = p.depth;
  p.rows = images * image.out_pixels, p.pixels = image.out_cols;
  p.steps[0][0] = rows * to.row, p.steps[0][2] = cols * to.col;
  // phases begin a row or a column apart, and launches of one image an image
  const std::int64_t apart[] = {to.image, to.row, to.col};
  p.aligned[0] = alignment_after(p.aligned[0], size_of(p.types[0]), apart);
}

filters_view phases::order(const ints& lens, const ints& strides, std::int64_t groups) const {
  filters_view v(lens, strides, groups, true);  // groups, filters, rows, columns, channels
  const std::int64_t row = v.strides[2], col = v.strides[3], channel = v.strides[4];
  const std::int64_t taps_down = v.lens[2] / rows, taps_across = v.lens[3] / cols, channels = v.lens[4];
  v.lens = {v.lens[0], v.lens[1], rows, cols, taps_down, taps_across, channels};
  v.strides = {v.strides[0], v.strides[1], row, col, rows * row, cols * col, channel};
  return v;
}

ordered_filters::ordered_filters(const kernel_request& r, std::size_t operand, view_of order,
                                 const context_pointer& where, std::array<std::int64_t, 2> last)
    : order_(std::move(order)), constant_(r.constants[operand] && r.inputs[operand].is_constant()) {
  if (!constant_) {
    copy_ = make_copy(where);
    return;
  }
  const layout& l = r.constant_layouts[operand];
  ints lens, steps;
  for (std::size_t d = 0; d < l.lens.size(); ++d)
    lens.push_back(l.lens[d].value()), steps.push_back(l.strides[d].value());
  const filters_view view = order_(lens, steps);
  for (std::size_t k = 0; k < 2; ++k) last[k] = std::max(last[k], view.lens[view.lens.size() - 2 + k]);
  bytes_ = static_cast<std::size_t>(padded_elements(view, last)) * size_of(r.inputs[operand].type);
  const auto pack = [&] { return on_device(dense_bytes(*r.constants[operand], l.offset.value(), view, last), *where); };
  packed_ = r.derived ? r.derived->block(bytes_, pack) : pack();
  if (r.derived && r.derived->replays()) packed_ = on_device(packed_, *where);
}

tensor ordered_filters::viewed(const tensor& weights) const {
  tensor w = weights;
  const filters_view view = order_(w.lens, w.strides);
  w.lens = view.lens, w.strides = view.strides;
  return w;
}

void ordered_filters::prepare(const tensor& weights) const {
  if (!copy_) return;
  tensor from = viewed(weights), to = from;
  to.strides = row_major(to.lens);
  copy_->prepare({&from, 1}, {&to, 1});
}

std::size_t ordered_filters::scratch_bytes(const tensor& weights) const {
  return copy_ ? scratch_room(weights.elements(), weights.type) : 0;
}

const void* ordered_filters::give(device_queue& queue, const tensor& weights, std::span<std::byte> scratch) const {
  if (!copy_) return order_ ? packed_.data() : weights.data;
  tensor from = viewed(weights), to = from;
  to.data = scratch.data(), to.strides = row_major(to.lens);
  launch one{{&from, 1}, {&to, 1}, {}};
  one.queue = &queue;
  copy_->run(one);
  return to.data;
}

bool padded_images::serves(const kernel_request& r, const convolution_attributes& a, std::size_t image,
                           std::size_t weights) {
  constexpr std::int64_t enough_places = std::int64_t{1} << 16;
  const shape &x = r.inputs[image], &w = r.inputs[weights], &y = r.instruction.results[0];
  if (!r.constants[weights] || a.backwards || a.group != 1 || x.rank() != 4 || size_of(x.type) != 2 ||
      !is_float(x.type) || !x.is_constant() || !w.is_constant() || !y.is_constant())
    return false;
  const std::int64_t channels = w.lens[1].value(), taps = w.lens[2].value() * w.lens[3].value();
  const std::int64_t places = y.lens[0].value() * y.lens[2].value() * y.lens[3].value();
  return channels > 1 && channels < run && taps > 1 && places >= enough_places && a.window.dilation.back() == 1 &&
         a.window.begin.back() >= 0;
}

std::int64_t padded_images::columns_of(std::int64_t columns, const architecture& where) {
  const std::int64_t box = (columns + run - 1) / run * run;
  return where.matrices == matrix_unit::wgmma && 2 * box <= 3 * columns ? box : columns;
}

padded_images::padded_images(const kernel_request& r, const convolution_attributes& a, std::size_t weights,
                             const context_pointer& where)
    : where_(where),
      together_(columns_of(r.inputs[weights].lens[3].value(), where->arch())),
      stride_(a.window.stride.back()),
      before_(a.window.begin.back()),
      places_(r.instruction.results[0].lens[3].value()),
      built_(std::make_unique<by_sizes<std::shared_ptr<const function>>>()) {}

tensor padded_images::copy_of(const tensor& images, std::byte* at) const {
  const ints& n = images.lens;
  const std::int64_t line = across() * run;
  return {at, images.type, {n[0], together_ * run, n[2], places_}, {n[2] * line, 1, line, stride_ * run}};
}

std::size_t padded_images::bytes(const tensor& images) const {
  const ints& n = images.lens;
  return scratch_room(n[0] * n[2] * across() * run, images.type);
}

std::shared_ptr<const function> padded_images::build(const tensor& images) const {
  kernel_text t;
  t.line("#include \"kiln/backend/hip/kernels/conv/pad_channels.hpp\"");
  t.line("using namespace kiln::gpu;");
  t.open_kernel(256, "pad_channels_kernel(u16* to, const u16* from, channel_sizes n)");
  t.line("pad_channels<", images.lens[1], ", ", run, ">(to, from, n, blockIdx.x * 256ll + threadIdx.x);");
  t.close();
  return *built_->get(t.str(), [&] { return where_->build({"pad_channels_kernel", t.str()}); });
}

void padded_images::give(device_queue& queue, const tensor& images, std::byte* to) const {
  const ints &n = images.lens, &step = images.strides;
  const auto count = [](std::int64_t of) { return static_cast<int>(of); };
  const gpu::channel_sizes sizes{step[0],     step[1],     step[2],         step[3],       n[0] * n[2] * across(),
                                 count(n[2]), count(n[3]), count(across()), count(before_)};
  build(images)->launch(queue, {static_cast<unsigned>((sizes.pixels + 255) / 256)}, {256}, 0, to, images.data, sizes);
}

bool channels_last_images::serves(const tensor& images, std::int64_t together, std::int64_t times) {
  const auto width = static_cast<std::int64_t>(size_of(images.type)), run = 16 / width;
  if (image_steps(images).channel == 1 || run == 1 || together % run != 0) return false;
  // what a copy costs, in elements that windows move one by one, by times on an H200: its launch, and each of its
  // elements. Those of less than four bytes pass through registers one by one, others are copied asynchronously
  const bool asynchronous = width >= 4;
  const std::int64_t launch = std::int64_t{1} << (asynchronous ? 20 : 19), elements = images.elements();
  return times >= launch + (asynchronous ? 3 * elements : elements / 2);
}

tensor channels_last_images::copy_of(const tensor& images, std::byte* at) {
  tensor to = images;
  to.data = at, to.strides = channels_last_steps(to.lens);
  return to;
}

std::size_t channels_last_images::bytes(const tensor& images) { return scratch_room(images.elements(), images.type); }

void channels_last_images::give(device_queue& queue, const tensor& images, std::byte* to) const {
  const tensor copy = copy_of(images, to);
  launch one{{&images, 1}, {&copy, 1}, {}};
  one.queue = &queue;
  copy_->run(one);
}

}  // namespace kiln::hip
