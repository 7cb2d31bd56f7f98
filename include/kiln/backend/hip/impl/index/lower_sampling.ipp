#include <algorithm>

#include "kiln/backend/hip/impl/index/index_call.hpp"
#include "kiln/op/more.hpp"
#include "kiln/op/nn/grid_sample.hpp"
#include "kiln/op/nn/resample.hpp"

namespace kiln::hip {
namespace {

const std::string header = "index/sampling.hpp";
std::string word(bool b) { return b ? "true" : "false"; }
// Kernels note an index outside its extent and read the first element in its stead: there is to be one.
void expect_elements(std::int64_t extent) {
  if (extent == 0) raise(fault::of(errc::invalid_argument, "an index lies within the extent"));
}
std::string summed_in(dtype t) { return t == dtype::f64 ? "double" : "float"; }

// A result of resampling as its kernel sees it: dims in memory's order, of which those that are not resampled are
// joined where operand and result allow it.
struct resampled_dims {
  struct dim {
    std::int64_t extent, from, to;
    int axis;  // which of the op's, or -1
  };
  std::vector<dim> all;
  std::int64_t run = 1, copies = 1;
  gpu::resample_sizes::dim copy{};

  resampled_dims(const op::resample& op, const tensor& x, const tensor& y) {
    for (std::size_t d = 0; d < y.rank(); ++d) {
      const auto axis = std::find(op.axes.begin(), op.axes.end(), static_cast<std::int64_t>(d));
      const bool is_axis = axis != op.axes.end();
      if (y.lens[d] == 1 && !is_axis) continue;
      all.push_back({y.lens[d], is_axis ? 0 : x.strides[d], y.lens[d] == 1 ? 0 : y.strides[d],
                     is_axis ? static_cast<int>(axis - op.axes.begin()) : -1});
    }
    std::stable_sort(all.begin(), all.end(), [](const dim& a, const dim& b) { return a.to > b.to; });
    for (std::size_t d = all.size(); d-- > 1;) {
      dim &a = all[d - 1], &b = all[d];
      if (a.axis >= 0 || b.axis >= 0 || a.from != b.from * b.extent || a.to != b.to * b.extent) continue;
      b.extent *= a.extent;
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(d) - 1);
    }
    if (all.empty()) all.push_back({1, 0, 0, -1});
  }
  // Neighbors that one access of at most 16 bytes moves, as one place; `wider` dims then count such runs.
  void join_run(const op::resample& op, const tensor& x, const tensor& y) {
    dim& last = all.back();
    if (last.axis >= 0 || last.from != 1 || last.to != 1) return;
    const auto bytes = static_cast<std::int64_t>(size_of(y.type));
    const auto fits = [&](std::int64_t n) {
      bool yes = last.extent % n == 0;
      for (const std::byte* at : {x.data, y.data}) yes = yes && reinterpret_cast<std::uintptr_t>(at) % (n * bytes) == 0;
      for (std::size_t d = 0; d + 1 < all.size(); ++d) yes = yes && all[d].from % n == 0 && all[d].to % n == 0;
      for (const std::int64_t a : op.axes) yes = yes && x.strides[static_cast<std::size_t>(a)] % n == 0;
      return yes;
    };
    for (run = 16 / bytes; run > 1 && !fits(run);) run /= 2;
    last.extent /= run, last.from = last.to = run;
  }
  // Parts the outermost dim among several results of a thread, which share what is read of the tables.
  void part_outermost() {
    constexpr std::int64_t most = 4, enough = std::int64_t{1} << 18;
    dim& first = all.front();
    if (all.size() == 1 || first.axis >= 0) return;
    for (copies = most; copies > 1 && (first.extent % copies != 0 || work() / copies < enough);) copies /= 2;
    copy = {0, first.from, first.to};
    first.extent /= copies, first.from *= copies, first.to *= copies;
  }
  std::int64_t work() const {
    std::int64_t n = 1;
    for (const dim& d : all) n *= d.extent;
    return n;
  }
};

class resample_kernel final : public index_kernel {
 public:
  resample_kernel(const context_pointer& where, const op::resample& op, bool fixed)
      : index_kernel(where, "resample"), op_(op) {
    fixed_ = fixed, checks_ = true;
  }
  stride_support input_strides(std::size_t i) const override {
    return i == 0 ? stride_support::any : stride_support::dense;
  }
  stride_support output_strides(std::size_t) const override { return stride_support::nchw_or_nhwc; }

 protected:
  std::vector<index_call> calls(std::span<const tensor> in, std::span<const tensor> out,
                                const bindings*) const override {
    const tensor &x = in[0], &y = out[0];
    if (y.elements() == 0) return {};
    for (const std::int64_t axis : op_.axes) expect_elements(x.lens[static_cast<std::size_t>(axis)]);
    resampled_dims dims(op_, x, y);
    dims.join_run(op_, x, y);
    // elements that are moved may be joined to one of another type
    const std::int64_t joined = op_.weighted ? 1 : dims.run;
    if (op_.weighted) dims.part_outermost();
    gpu::resample_sizes n{};
    for (std::size_t d = 0; d < dims.all.size(); ++d)
      n.dims[d] = {dims.all[d].extent, dims.all[d].from / joined, dims.all[d].to / joined};
    n.copy = dims.copy;
    const auto size = static_cast<std::size_t>(joined) * size_of(y.type);
    const std::string type = op_.weighted ? name_of(y.type) : std::string(word_name(size)), sum = summed_in(y.type);
    index_call call{"resample", header, {type}, {}, {}, dims.work()};
    std::string tables;
    for (std::size_t k = 0; k < op_.axes.size(); ++k) {
      const auto d = static_cast<std::size_t>(op_.axes[k]);
      const tensor& at = in[op_.table(k)];
      n.axes[k] = {at.lens[0], at.lens[1], x.lens[d], x.strides[d] / joined};
      constexpr std::int64_t most_held = 8;
      const std::int64_t held = op_.weighted && at.lens[0] <= most_held ? at.lens[0] : 0;
      const auto place = std::find_if(dims.all.begin(), dims.all.end(),
                                      [&](const auto& one) { return one.axis == static_cast<int>(k); }) -
                         dims.all.begin();
      const std::string weights =
          op_.weighted ? "p" + std::to_string(op_.table(k) + 1) : std::string("static_cast<const float*>(nullptr)");
      tables += ", [&](const auto& p) { return taps_of<" + std::to_string(held) + ", " + sum + ">(p" +
                std::to_string(op_.table(k)) + ", " + weights + ", n.axes[" + std::to_string(k) + "], p.place[" +
                std::to_string(place) + "], faults); }";
    }
    for (std::size_t i = 1; i < in.size(); ++i) call.types.push_back(name_of(in[i].type));
    call.types.push_back(type);
    call.numbers = n;
    const std::string forms =
        std::to_string(dims.all.size()) +
        (op_.weighted ? ", " + std::to_string(dims.run) + ", " + std::to_string(dims.copies) + ", " + sum
                      : std::string());
    call.call = (op_.weighted ? "resample<" : "resample_nearest<") + forms + ">(p" + std::to_string(in.size()) +
                ", p0, n, at, faults" + tables + ")";
    call.each = op_.weighted ? 1 : 4;
    call.makes = static_cast<int>(dims.copies);
    return {call};
  }

 private:
  op::resample op_;
};

// Channels that a thread works where `threads` would work one each: they share what a place costs to find.
std::int64_t channels_together(std::int64_t channels, std::int64_t threads, std::int64_t most) {
  constexpr std::int64_t enough = std::int64_t{1} << 17;
  std::int64_t each = most;
  while (each > 1 && (each >= 2 * channels || threads / each < enough)) each /= 2;
  return each;
}

std::vector<index_call> grid_calls(const operation& op, std::span<const tensor> in, std::span<const tensor> out) {
  const auto& g = *op.get_if<op::grid_sample>();
  const ints& x = in[0].lens;
  if (out[0].elements() == 0) return {};
  const std::size_t axes = x.size() - 2;
  gpu::grid_sizes n{out[0].elements() / (x[0] * x[1]), x[1], 1, 1, g.normalized ? 1 : 0, {1, 1, 1}};
  std::int64_t plane = 1;
  for (std::size_t d = 0; d < axes; ++d) n.lens[3 - axes + d] = x[d + 2], plane *= x[d + 2];
  const std::string t = name_of(in[0].type);
  // nothing but padding
  if (plane == 0)
    return {{"fill", "index/index.hpp", {t, t, t}, "p2[at] = stored<" + t + ">(0.0f)", {}, out[0].elements()}};
  constexpr std::int64_t most_channels = 8;
  n.each = channels_together(n.channels, out[0].elements(), most_channels);
  n.groups = (n.channels + n.each - 1) / n.each;
  return {{"grid_sample",
           header,
           {t, t, t},
           "grid_sample<sampling_rule<" + std::to_string(static_cast<int>(g.mode)) + ", " +
               std::to_string(static_cast<int>(g.padding)) + ", " + word(g.align_corners) + ", " + word(g.normalized) +
               ">, " + std::to_string(axes) + ">(p2, p0, p1, n, at)",
           n,
           x[0] * n.groups * n.points}};
}

std::vector<index_call> roi_calls(const operation& op, std::span<const tensor> in, std::span<const tensor> out) {
  const auto& r = *op.get_if<op::roi_align>();
  const ints& x = in[0].lens;
  if (out[0].elements() == 0) return {};
  expect_elements(x[0]);
  const std::string t = name_of(in[0].type);
  constexpr std::int64_t most_channels = 8;
  const std::int64_t each = channels_together(x[1], out[0].elements(), most_channels),
                     groups = (x[1] + each - 1) / each;
  return {{"roi_align",
           "index/roi_align.hpp",
           {t, t, name_of(in[2].type), t},
           "roi_align<" + word(r.half_pixel) + ", " + word(r.greatest) + ", " + std::to_string(each) +
               ">(p3, p0, p1, p2, n, at, faults)",
           gpu::roi_sizes{x[0], x[1], x[2], x[3], r.height, r.width, r.samples, groups, r.scale},
           in[1].lens[0] * groups * r.height * r.width}};
}

constexpr index_family families[] = {
    {is_op<op::grid_sample>, grid_calls, false, true, nullptr, 1},
    {is_op<op::roi_align>, roi_calls, true, true, nullptr, 1},
};

}  // namespace

std::unique_ptr<kernel> lower_sampling(const kernel_request& r, const context_pointer& where) {
  if (const auto* resample = r.instruction.op.get_if<op::resample>()) {
    if (is_object(r.inputs[0].type)) return nullptr;
    return std::make_unique<resample_kernel>(where, *resample, is_fixed(r));
  }
  for (const index_family& f : families)
    if (f.is(r.instruction.op)) return make_index_kernel(where, r, f);
  return nullptr;
}

}  // namespace kiln::hip
