#include "kiln/backend/hip/impl/conv/convolution_parts.hpp"

#include <cstring>
#include <numeric>

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

// Has a view that says nothing of its place put one element after the other, its last two dims padded to at least these
// extents; how many elements it takes.
std::int64_t place_densely(filters_view& view, const std::array<std::int64_t, 2>& last) {
  if (!view.placed.empty()) return product(view.lens);
  ints lens = view.lens;
  const std::size_t rank = lens.size();
  for (std::size_t k = 0; k < 2; ++k) lens[rank - 2 + k] = std::max(lens[rank - 2 + k], last[k]);
  view.placed = row_major(lens);
  return product(lens);
}

// Copies the elements of a view to where they are put.
void put_elements(buffer& out, const literal& weights, std::int64_t offset, const filters_view& view) {
  const auto width = static_cast<std::int64_t>(size_of(weights.get_shape().type));
  const auto* from = reinterpret_cast<const std::byte*>(weights.bytes());
  const std::size_t rank = view.lens.size();
  ints at(rank, 0);
  std::int64_t to = view.to;
  offset += view.from;
  for (std::int64_t n = product(view.lens); n-- > 0;) {
    std::memcpy(out.data() + to * width, from + offset * width, static_cast<std::size_t>(width));
    for (std::size_t d = rank; d-- > 0;) {
      offset += view.strides[d], to += view.placed[d];
      if (++at[d] < view.lens[d]) break;
      offset -= view.strides[d] * at[d], to -= view.placed[d] * at[d];
      at[d] = 0;
    }
  }
}

}  // namespace

phases::phases(const convolution_attributes& a, const shape& weights) {
  constexpr std::size_t most = 3;
  constexpr std::int64_t most_taps = std::int64_t{1} << 15;
  const std::size_t dims = weights.rank() - 2;
  if (!a.backwards || dims < 1 || dims > most || !weights.is_constant()) return;
  gpu::phase_shape made;
  gpu::phase_dim* const all[most] = {&made.cols, &made.rows, &made.planes};
  for (std::size_t back = 0; back < dims; ++back) {
    const std::size_t d = dims - 1 - back;
    const std::int64_t stride = a.window.stride[d], taps = weights.lens[2 + d].value(), pad = a.window.begin[d];
    if ((stride != 1 && a.window.dilation[d] != 1) || pad < 0 || taps < 1) return;
    if (std::max({stride, taps, pad}) > most_taps) return;
    *all[back] = {static_cast<int>(stride), static_cast<int>(taps), static_cast<int>(pad)};
  }
  if (made.parts()) form = made;
}

void phases::divide(gemm_problem& p, const image_steps& to, std::int64_t images) const {
  gemm_phases f{form};
  const auto count = [](std::int64_t n) { return static_cast<int>(n); };
  f.place.all_planes = count(to.planes), f.place.all_rows = count(to.rows), f.place.all_cols = count(to.cols);
  const auto most = [](const gpu::phase_dim& d, std::int64_t places) { return (places + d.stride - 1) / d.stride; };
  p.batch0 = form.phases();
  std::get<image_argument>(p.a.value).images = images;
  std::get<matrix_argument>(p.b.value).batch[0] = 0;
  p.pixels = most(form.cols, to.cols);
  p.rows = images * most(form.planes, to.planes) * most(form.rows, to.rows) * p.pixels;
  // lines begin at multiples of what divides all that they lie apart
  const std::int64_t lines[] = {to.image, form.planes.stride * to.plane, form.rows.stride * to.row};
  std::int64_t unit = 0;
  for (const std::int64_t step : lines) unit = std::gcd(unit, step);
  const auto units = [&](std::int64_t step) { return unit == 0 ? 0 : count(step / unit); };
  p.steps[0][0] = unit, p.steps[0][2] = form.cols.stride * to.col;
  f.place.plane_step = to.plane, f.place.row_step = to.row;
  f.place.image_lines = units(lines[0]), f.place.plane_lines = units(lines[1]), f.place.row_lines = units(lines[2]);
  f.place.channels = count(p.channels);
  f.reach = 1 + (images - 1) * to.image + (to.planes - 1) * to.plane + (to.rows - 1) * to.row + (to.cols - 1) * to.col +
            (p.batch1 - 1) * p.steps[0][1] + (p.cols - 1) * p.steps[0][3];
  const std::int64_t apart[] = {to.plane, to.row, to.col};  // as phases begin
  p.aligned[0] = alignment_after(p.aligned[0], size_of(p.types[0]), apart);
  p.phases = f;
}

bool phases::divide_to(gemm_problem& p, const image_steps& to, std::int64_t images, int number) const {
  divide(p, to, images);
  const gpu::phase_shape of = p.phases->shape;
  const auto n = of.of(number);
  const auto& all = p.phases->place;
  const auto [planes, rows, cols] = of.places_of(n, {all.all_planes, all.all_rows, all.all_cols});
  if (planes != 1 || to.planes != 1 || rows * cols == 0 || of.taps_of(n) == 0) return false;
  p.steps[0][0] = form.rows.stride * to.row;
  if (images > 1 && to.image != rows * p.steps[0][0]) return false;
  p.phases.reset(), p.batch0 = 1;
  auto& image = std::get<image_argument>(p.a.value);
  image.pad_rows = of.rows.pad_of(n.rows), image.pad_cols = of.cols.pad_of(n.cols);
  image.out_rows = rows, image.out_cols = cols, image.out_pixels = rows * cols;
  p.rows = images * image.out_pixels, p.pixels = cols, p.depth = p.channels * of.taps_of(n);
  return true;
}

std::vector<filters_view> phases::order(const ints& lens, const ints& strides, std::int64_t groups) const {
  const filters_view v(lens, strides, groups, true);  // groups, filters, taps..., channels
  const std::size_t dims = v.lens.size() - 3;
  const std::int64_t channels = v.lens.back(), filter = form.taps() * channels;
  const std::int64_t row = dims > 1 ? v.strides[dims] : 0, plane = dims > 2 ? v.strides[2] : 0,
                     col = v.strides[dims + 1];
  const auto& [planes_of, rows_of, cols_of] = form;
  // phases of as many taps each are one view, where tensors have that many dims; groups of volumes have too many
  if (form.even() && (dims < 3 || v.lens[0] == 1)) {
    const std::int64_t cols = cols_of.taps / cols_of.stride, rows = rows_of.taps / rows_of.stride,
                       planes = planes_of.taps / planes_of.stride, phase = planes * rows * cols * channels,
                       line = cols_of.stride * phase;
    filters_view one;
    const auto put = [&](std::int64_t count, std::int64_t step, std::int64_t place) {
      one.lens.push_back(count), one.strides.push_back(step), one.placed.push_back(place);
    };
    if (dims < 3) put(v.lens[0], v.strides[0], v.lens[1] * filter);
    put(v.lens[1], v.strides[1], filter);
    if (dims == 3) put(planes_of.stride, plane, rows_of.stride * line);
    put(rows_of.stride, row, line), put(cols_of.stride, col, phase);
    if (dims == 3) put(planes, planes_of.stride * plane, rows * cols * channels);
    put(rows, rows_of.stride * row, cols * channels), put(cols, cols_of.stride * col, channels);
    put(channels, v.strides.back(), 1);
    return {one};
  }
  std::vector<filters_view> all;
  for (int number = 0; number < form.phases(); ++number) {
    const auto n = form.of(number);
    const std::int64_t planes = form.planes.taps_of(n.planes), rows = form.rows.taps_of(n.rows),
                       cols = form.cols.taps_of(n.cols);
    if (planes * rows * cols == 0) continue;
    filters_view& one = all.emplace_back();
    one.lens = {v.lens[0], v.lens[1], planes, rows, cols, channels};
    one.strides = {v.strides[0],           v.strides[1],           form.planes.stride * plane,
                   form.rows.stride * row, form.cols.stride * col, v.strides.back()};
    one.from = n.planes * plane + n.rows * row + n.cols * col;
    one.to = form.taps_before(n) * channels;
    one.placed = {v.lens[1] * filter, filter, rows * cols * channels, cols * channels, channels, 1};
  }
  return all;
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
  std::vector<filters_view> views = order_(lens, steps);
  std::int64_t elements = 0;
  for (filters_view& one : views) elements += place_densely(one, last);
  bytes_ = static_cast<std::size_t>(elements) * size_of(r.inputs[operand].type);
  const auto pack = [&] {
    buffer bytes = buffer::allocate(bytes_);
    std::memset(bytes.data(), 0, bytes_);
    for (const filters_view& one : views) put_elements(bytes, *r.constants[operand], l.offset.value(), one);
    return on_device(bytes, *where);
  };
  packed_ = r.derived ? r.derived->block(bytes_, pack) : pack();
  if (r.derived && r.derived->replays()) packed_ = on_device(packed_, *where);
}

std::vector<ordered_filters::copied> ordered_filters::parts(const tensor& weights, std::byte* to) const {
  std::vector<copied> all;
  const auto width = static_cast<std::int64_t>(size_of(weights.type));
  for (filters_view view : order_(weights.lens, weights.strides)) {
    place_densely(view, {});
    all.push_back({{weights.data + view.from * width, weights.type, view.lens, view.strides},
                   {to + view.to * width, weights.type, view.lens, view.placed}});
  }
  return all;
}

void ordered_filters::prepare(const tensor& weights) const {
  if (!copy_) return;
  for (const copied& one : parts(weights, nullptr)) copy_->prepare({&one.from, 1}, {&one.to, 1});
}

std::size_t ordered_filters::scratch_bytes(const tensor& weights) const {
  return copy_ ? scratch_room(weights.elements(), weights.type) : 0;
}

const void* ordered_filters::give(device_queue& queue, const tensor& weights, std::span<std::byte> scratch) const {
  if (!copy_) return order_ ? packed_.data() : weights.data;
  for (const copied& part : parts(weights, scratch.data())) {
    launch one{{&part.from, 1}, {&part.to, 1}, {}};
    one.queue = &queue;
    copy_->run(one);
  }
  return scratch.data();
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
