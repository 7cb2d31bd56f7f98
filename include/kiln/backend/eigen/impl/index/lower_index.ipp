#include <algorithm>

#include "kiln/backend/eigen/impl/index/index_places.hpp"
#include "kiln/core/visit_size.hpp"
#include "kiln/op/index/gather_elements.hpp"
#include "kiln/op/index/gather_nd.hpp"
#include "kiln/op/index/one_hot.hpp"
#include "kiln/runtime/byte_reader.hpp"
#include "kiln/runtime/fallback_kernel.hpp"

// Gathers: slices and elements of any dtype are moved by their size alone.
namespace kiln::eigen {
namespace {

constexpr std::int64_t task_bytes = 65536, grain = 16384;

// How many of `count` slices, those of all outer indices, a task takes, `near` where they lie in a core's own caches.
// From beyond them a slice takes as long as tens of near ones, so that fewer are worth a thread.
std::int64_t slices_of_task(const tensor& data, std::int64_t count, std::int64_t near, unsigned threads) {
  constexpr std::int64_t cached = 1 << 20, least = 1024;
  const std::int64_t bytes = data.elements() * static_cast<std::int64_t>(size_of(data.type));
  return bytes <= cached || near <= least ? near : std::clamp(count / (4 * std::int64_t{threads}), least, near);
}

// Copies whole slices: result[outer, index, inner] = data[outer, indices[index], inner].
class gather_kernel final : public kernel, public byte_reader {
 public:
  explicit gather_kernel(std::int64_t axis) : axis_(axis) {}
  std::string name() const override { return "gather"; }
  bool reads_bytes_of(std::size_t operand) const override { return operand == 0; }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor>, unsigned) const override {
    return static_cast<std::size_t>(in[1].elements()) * sizeof(std::int64_t);
  }
  void run(const launch& l) const override {
    const tensor &data = l.in[0], &indices = l.in[1], &out = l.out[0];
    const auto s = detail::split_at(data.lens, axis_);
    const std::int64_t count = indices.elements();
    const std::size_t bytes = static_cast<std::size_t>(s.inner) * size_of(data.type);
    if (bytes == 0 || s.outer * count == 0) return;
    auto* const places = reinterpret_cast<std::int64_t*>(l.scratch.data());
    find_places(*l.pool, index_list_of(indices), count, s.extent, normal_axis(axis_, data.rank()), places);
    const auto size = static_cast<std::int64_t>(bytes);
    if (follow_each_other(places, count)) {  // a range of slices
      const tensor from{data.data + places[0] * size, dtype::u8, {s.outer, count * size}, {s.extent * size, 1}};
      return copy_tensor(from, {out.data, dtype::u8, {s.outer, count * size}, {count * size, 1}}, l.pool);
    }
    // a task takes so many slices of one outer index, or all those of several
    const std::int64_t slices =
        slices_of_task(data, s.outer * count, std::max<std::int64_t>(1, task_bytes / size), l.pool->size());
    const std::int64_t parts = (count + slices - 1) / slices, some = std::max<std::int64_t>(1, slices / count);
    const std::int64_t each = parts > 1 ? 1 : some;
    l.pool->parallel_for((s.outer + each - 1) / each * parts, [&](std::int64_t task, unsigned) {
      const std::int64_t first = task % parts * slices, n = std::min(slices, count - first);
      for (std::int64_t o = task / parts * each; o < std::min(s.outer, (task / parts + 1) * each); ++o)
        kiln_eigen_index()->gather_slices(out.data + (o * count + first) * size, data.data + o * s.extent * size,
                                          places + first, n, bytes);
    });
  }

 private:
  static bool follow_each_other(const std::int64_t* places, std::int64_t n) {
    std::int64_t jumps = 0;
    for (std::int64_t k = 1; k < n; ++k) jumps |= places[k] - places[k - 1] - 1;
    return n > 1 && jumps == 0;
  }
  std::int64_t axis_;
};

class gather_elements_kernel final : public kernel, public byte_reader {
 public:
  explicit gather_elements_kernel(std::int64_t axis) : axis_(axis) {}
  std::string name() const override { return "gather_elements"; }
  bool reads_bytes_of(std::size_t operand) const override { return operand == 0; }
  void run(const launch& l) const override {
    const tensor &data = l.in[0], &indices = l.in[1], &out = l.out[0];
    if (out.elements() == 0) return;
    const element_stretches all(data.lens, indices.lens, axis_);
    const kernels::index_list list = index_list_of(indices);
    const std::size_t bytes = size_of(data.type);
    const auto size = static_cast<std::int64_t>(bytes);
    // stretches that follow each other are one
    const std::int64_t stretches = all.follows() ? 1 : all.stretches(),
                       length = all.follows() ? out.elements() : all.length();
    const std::int64_t each = slices_of_task(data, out.elements(), grain, l.pool->size());
    const std::int64_t parts = (length + each - 1) / each, some = std::max<std::int64_t>(1, each / length);
    l.pool->parallel_for((stretches + some - 1) / some * parts, [&](std::int64_t task, unsigned) {
      position_block at;
      const std::int64_t first = task % parts * each, last = std::min(length, first + each);
      for (std::int64_t s = task / parts * some; s < std::min(stretches, (task / parts + 1) * some); ++s) {
        const std::byte* const from = data.data + all.base(s) * size;
        std::byte* const to = out.data + s * length * size;
        for (std::int64_t i = first, n; i < last; i += n) {
          n = std::min(last - i, kernels::index_block);
          all.positions(list, s, i, n, at.data());
          kiln_eigen_index()->gather_slices(to + i * size, from, at.data(), n, bytes);
        }
      }
    });
  }

 private:
  std::int64_t axis_;
};

class gather_nd_kernel final : public kernel, public byte_reader {
 public:
  explicit gather_nd_kernel(std::int64_t batch_dims) : batch_(static_cast<std::size_t>(batch_dims)) {}
  std::string name() const override { return "gather_nd"; }
  bool reads_bytes_of(std::size_t operand) const override { return operand == 0; }
  void run(const launch& l) const override {
    const tensor &data = l.in[0], &indices = l.in[1], &out = l.out[0];
    const auto tuple = static_cast<std::size_t>(indices.lens.back());
    const std::int64_t rows = detail::count(indices.lens, batch_, indices.rank() - 1);
    const std::int64_t slice = detail::count(data.lens, batch_ + tuple, data.rank());
    const std::int64_t places = detail::count(data.lens, batch_, batch_ + tuple);
    const auto bytes = slice * static_cast<std::int64_t>(size_of(data.type));
    if (out.elements() == 0) return;
    const tuple_places to_place(index_list_of(indices), data.lens, batch_, tuple);
    const std::int64_t all = detail::count(data.lens, 0, batch_) * rows;
    const std::int64_t each = slices_of_task(
        data, all, std::max<std::int64_t>(1, task_bytes / std::max<std::int64_t>(bytes, 8)), l.pool->size());
    l.pool->parallel_for((all + each - 1) / each, [&](std::int64_t task, unsigned) {
      std::int64_t at[kernels::index_block];
      for (std::int64_t r = task * each, end = std::min(all, r + each), n; r < end; r += n) {
        n = std::min(end - r, kernels::index_block);
        to_place.find(r, n, at);
        std::int64_t batch = r / rows, left = rows - r % rows;
        for (std::int64_t i = 0; batch_ > 0 && i < n; ++i) {
          at[i] += batch * places;
          if (--left == 0) ++batch, left = rows;
        }
        kiln_eigen_index()->gather_slices(out.data + r * bytes, data.data, at, n, static_cast<std::size_t>(bytes));
      }
    });
  }

 private:
  std::size_t batch_;
};

// Fills with the off value, then places the on values.
class one_hot_kernel final : public kernel {
 public:
  explicit one_hot_kernel(std::int64_t axis) : axis_(axis) {}
  std::string name() const override { return "one_hot"; }
  void run(const launch& l) const override {
    visit_size(size_of(l.out[0].type), [&]<class T>(T) { write<T>(l); });
  }

 private:
  template <class T> void write(const launch& l) const {
    const auto s = detail::split_at(l.out[0].lens, axis_);
    if (s.outer * s.extent * s.inner == 0) return;
    const kernels::index_list indices = index_list_of(l.in[0]);
    const T off = l.in[1].as<const T>()[0], on = l.in[1].as<const T>()[1];
    T* const out = l.out[0].as<T>();
    // a task fills places [first, last) of some outer indices
    const std::int64_t places = std::clamp<std::int64_t>(grain / s.inner, 1, s.extent),
                       parts = (s.extent + places - 1) / places,
                       some = std::max<std::int64_t>(1, grain / (places * s.inner));
    l.pool->parallel_for((s.outer + some - 1) / some * parts, [&](std::int64_t task, unsigned) {
      const std::int64_t first = task % parts * places, last = std::min(s.extent, first + places);
      for (std::int64_t o = task / parts * some; o < std::min(s.outer, (task / parts + 1) * some); ++o) {
        T* const to = out + o * s.extent * s.inner;
        std::fill(to + first * s.inner, to + last * s.inner, off);
        for (std::int64_t i = 0; i < s.inner; ++i) {
          std::int64_t k = indices[o * s.inner + i];
          if (k < 0) k += s.extent;
          if (k >= first && k < last) to[k * s.inner + i] = on;
        }
      }
    });
  }
  std::int64_t axis_;
};

}  // namespace

std::unique_ptr<kernel> lower_index(const kernel_request& r) {
  if (const auto* const codes = r.instruction.op.get_if<op::one_hot>(); codes && is_index_type(r.inputs[0].type))
    return std::make_unique<one_hot_kernel>(codes->axis);
  if (r.inputs.size() < 2 || !is_index_type(r.inputs[1].type)) return nullptr;
  if (const auto* const slices = r.instruction.op.get_if<op::gather>())
    return std::make_unique<gather_kernel>(slices->axis);
  if (const auto* const elements = r.instruction.op.get_if<op::gather_elements>())
    return std::make_unique<gather_elements_kernel>(elements->axis);
  if (const auto* const tuples = r.instruction.op.get_if<op::gather_nd>())
    return std::make_unique<gather_nd_kernel>(tuples->batch_dims);
  return lower_scatter(r);
}

}  // namespace kiln::eigen
