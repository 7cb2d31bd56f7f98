#include "kiln/backend/eigen/impl/index/index_places.hpp"
#include "kiln/backend/eigen/isa.hpp"
#include "kiln/op/index/scatter_elements.hpp"
#include "kiln/op/index/scatter_nd.hpp"

// Scatters: updates that meet are applied in order, so threads share the elements that are written, not the updates.
namespace kiln::eigen {
namespace {

using op::scatter_mode;

constexpr std::int64_t grain = 16384;

// 16-bit floats that are combined are f32 until all updates are applied, as in the reference computation.
bool widens(dtype t, scatter_mode mode) { return mode != scatter_mode::none && (t == dtype::f16 || t == dtype::bf16); }

void widen(thread_pool& pool, const tensor& from, float* to) {
  const std::int64_t n = from.elements();
  pool.parallel_for((n + grain - 1) / grain, [&](std::int64_t task, unsigned) {
    const std::int64_t first = task * grain, some = std::min(grain, n - first);
    decode(from.type, from.data + first * 2, to + first, some);
  });
}
void narrow(thread_pool& pool, const float* from, const tensor& to) {
  const std::int64_t n = to.elements();
  pool.parallel_for((n + grain - 1) / grain, [&](std::int64_t task, unsigned) {
    const std::int64_t first = task * grain, some = std::min(grain, n - first);
    encode(to.type, from + first, to.data + first * 2, some);
  });
}

class scatter_kernel : public kernel {
 public:
  /// `zeros`: all data are constants of zero bits.
  scatter_kernel(scatter_mode mode, bool zeros) : mode_(mode), zeros_(zeros) {}
  // Zeros are written, not read.
  bool packed_input(std::size_t i) const override { return zeros_ && i == 0; }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned) const override {
    const std::int64_t floats = widens(in[0].type, mode_) ? out[0].elements() + in[2].elements() : 0;
    return static_cast<std::size_t>(floats) * sizeof(float) + place_bytes(in) + 128;
  }
  void run(const launch& l) const override {
    const tensor &data = l.in[0], &out = l.out[0], &updates = l.in[2];
    if (out.elements() == 0) return;
    std::byte* const rest = l.scratch.data() + (place_bytes(l.in) + 63) / 64 * 64;
    if (!widens(data.type, mode_)) return apply(l, data, updates, out, l.scratch.data());
    tensor old = data, given = updates, made = out;
    old.type = given.type = made.type = dtype::f32;
    made.data = rest;
    old.data = rest;
    given.data = rest + out.elements() * static_cast<std::int64_t>(sizeof(float));
    if (!zeros_) widen(*l.pool, data, old.as<float>());
    widen(*l.pool, updates, given.as<float>());
    apply(l, old, given, made, l.scratch.data());
    narrow(*l.pool, made.as<const float>(), out);
  }

 protected:
  virtual std::size_t place_bytes(std::span<const tensor> /*in*/) const { return 0; }
  virtual void apply(const launch& l, const tensor& data, const tensor& updates, const tensor& out,
                     std::byte* scratch) const = 0;
  void scatter(const kernels::slice_updates& u, dtype type) const { kiln_eigen_index()->scatter(u, type, mode_); }
  void copy(const tensor& from, const tensor& to, std::int64_t first, std::int64_t n) const {
    const auto size = static_cast<std::int64_t>(size_of(to.type));
    if (n <= 0) return;
    if (zeros_)
      std::memset(to.data + first * size, 0, static_cast<std::size_t>(n * size));
    else if (from.data != to.data)
      std::memcpy(to.data + first * size, from.data + first * size, static_cast<std::size_t>(n * size));
  }
  // So many parts for that many bytes to be written.
  static std::int64_t parts_of(std::int64_t bytes, unsigned threads) {
    return std::clamp<std::int64_t>(bytes / 32768, 1, std::min(threads, 16u));
  }

  scatter_mode mode_;
  bool zeros_;
};

class scatter_nd_kernel final : public scatter_kernel {
 public:
  using scatter_kernel::scatter_kernel;
  std::string name() const override { return "scatter_nd " + std::string(to_string(mode_)); }

 protected:
  static std::int64_t count(const tensor& indices) { return detail::count(indices.lens, 0, indices.rank() - 1); }
  std::size_t place_bytes(std::span<const tensor> in) const override {
    return static_cast<std::size_t>(count(in[1])) * sizeof(std::int64_t);
  }
  void apply(const launch& l, const tensor& data, const tensor& updates, const tensor& out,
             std::byte* scratch) const override {
    const tensor& indices = l.in[1];
    const auto tuple = static_cast<std::size_t>(indices.lens.back());
    const std::int64_t rows = count(indices), slice = detail::count(data.lens, tuple, data.rank()),
                       slices = detail::count(data.lens, 0, tuple);
    const auto size = static_cast<std::int64_t>(size_of(out.type));
    auto* const places = reinterpret_cast<std::int64_t*>(scratch);
    const tuple_places to_place(index_list_of(indices), data.lens, 0, tuple);
    l.pool->parallel_for((rows + grain - 1) / grain, [&](std::int64_t task, unsigned) {
      to_place.find(task * grain, std::min(grain, rows - task * grain), places + task * grain);
    });
    const std::int64_t parts = std::min(slices, parts_of((slices + rows) * slice * size, l.pool->size()));
    l.pool->parallel_for(parts, [&](std::int64_t part, unsigned) {
      kernels::slice_updates u{out.data, updates.data, places, rows, slice};
      u.low = slices * part / parts, u.high = slices * (part + 1) / parts, u.all = parts == 1;
      copy(data, out, u.low * slice, (u.high - u.low) * slice);
      if (slice != 0) scatter(u, out.type);
    });
  }
};

class scatter_elements_kernel final : public scatter_kernel {
 public:
  scatter_elements_kernel(std::int64_t axis, scatter_mode mode, bool zeros)
      : scatter_kernel(mode, zeros), axis_(axis) {}
  std::string name() const override { return "scatter_elements " + std::string(to_string(mode_)); }

 protected:
  void apply(const launch& l, const tensor& data, const tensor& updates, const tensor& out, std::byte*) const override {
    const element_stretches all(data.lens, l.in[1].lens, axis_);
    const stretch_updates u{l, all, updates, out};
    const auto threads = static_cast<std::int64_t>(l.pool->size());
    const std::int64_t elements = out.elements();
    if (!all.whole()) {  // rows of one region are applied in order
      copy(data, out, 0, elements);
      for (std::int64_t s = 0; s < all.stretches(); ++s) write(u, s, 0, all.length());
      return;
    }
    if (all.stretches() >= 2 * threads || all.stretches() * all.length() < grain) {
      // each stretch, with the elements around its region, which no stretch has where indices are fewer
      const std::int64_t some =
          std::max<std::int64_t>(1, grain / std::max<std::int64_t>(1, all.length() + all.region()));
      const bool covers = all.stretches() * all.region() == elements;
      if (!covers) copy(data, out, 0, elements);
      l.pool->parallel_for((all.stretches() + some - 1) / some, [&](std::int64_t task, unsigned) {
        const std::int64_t first = task * some, n = std::min(all.stretches(), first + some) - first;
        if (covers) copy(data, out, first * all.region(), n * all.region());
        if (all.follows()) return write(u, first, 0, n * all.length());
        for (std::int64_t s = first; s < first + n; ++s) write(u, s, 0, all.length());
      });
      return;
    }
    l.pool->parallel_for((elements + grain - 1) / grain, [&](std::int64_t task, unsigned) {
      copy(data, out, task * grain, std::min(grain, elements - task * grain));
    });
    const std::int64_t inner = all.inner(),
                       columns = std::max<std::int64_t>(32, (inner + 2 * threads - 1) / (2 * threads));
    if (inner >= 64) {  // columns are apart
      const std::int64_t blocks = (inner + columns - 1) / columns;
      l.pool->parallel_for(all.stretches() * blocks, [&](std::int64_t task, unsigned) {
        const std::int64_t first = task % blocks * columns, n = std::min(columns, inner - first);
        for (std::int64_t at = first; at < all.length(); at += inner) write(u, task / blocks, at, at + n);
      });
      return;
    }
    const std::int64_t parts =
        parts_of(all.region() * static_cast<std::int64_t>(size_of(out.type)) / 32, l.pool->size());
    l.pool->parallel_for(all.stretches() * parts, [&](std::int64_t task, unsigned) {
      const std::int64_t part = task % parts;
      write(u, task / parts, 0, all.length(),
            {.low = all.region() * part / parts, .high = all.region() * (part + 1) / parts, .all = parts == 1});
    });
  }

 private:
  struct stretch_updates {
    const launch& l;
    const element_stretches& all;
    const tensor &updates, &out;
  };
  // Applies the updates [first, last) of stretch s: those that `u` takes.
  void write(const stretch_updates& w, std::int64_t s, std::int64_t first, std::int64_t last,
             kernels::slice_updates u = {.all = true}) const {
    const auto size = static_cast<std::int64_t>(size_of(w.out.type));
    position_block at;
    u.to = w.out.data + w.all.base(s) * size, u.at = at.data();
    for (std::int64_t i = first; i < last; i += u.count) {
      u.count = std::min(last - i, kernels::index_block);
      u.updates = w.updates.data + (s * w.all.length() + i) * size;
      w.all.positions(index_list_of(w.l.in[1]), s, i, u.count, at.data());
      scatter(u, w.out.type);
    }
  }

  std::int64_t axis_;
};

// Whether all data are constants of zero bits; a saved program keeps the answer, so that a load reads none of them.
bool has_zeros(const kernel_request& r) {
  const literal* const data = r.constants.empty() ? nullptr : r.constants[0];
  return data && r.decide(2, [&] {
    const std::byte* const first = data->bytes();
    return first &&
           std::all_of(first, first + data->get_shape().bytes().value(), [](std::byte b) { return b == std::byte{}; });
  }) != 0;
}

}  // namespace

std::unique_ptr<kernel> lower_scatter(const kernel_request& r) {
  const auto serves = [&](scatter_mode mode) {
    const dtype t = r.inputs[0].type;
    return mode == scatter_mode::none || t == dtype::boolean || dtypes::numbers.contains(t);
  };
  if (const auto* const elements = r.instruction.op.get_if<op::scatter_elements>())
    if (serves(elements->reduction))
      return std::make_unique<scatter_elements_kernel>(elements->axis, elements->reduction, has_zeros(r));
  if (const auto* const tuples = r.instruction.op.get_if<op::scatter_nd>())
    if (serves(tuples->reduction)) return std::make_unique<scatter_nd_kernel>(tuples->reduction, has_zeros(r));
  return nullptr;
}

}  // namespace kiln::eigen
