#include <algorithm>

#include "kiln/backend/eigen/lower_generic.hpp"
#include "kiln/runtime/thread_pool.hpp"

// Ops that copy parts of rows, of any dtype, and fill the rest: pad and triangles.
namespace kiln::eigen {
namespace {

// Writes `value`, of `bytes` bytes, n times.
void fill_elements(std::byte* to, const std::byte* value, std::size_t bytes, std::int64_t n) {
  if (n <= 0) return;
  std::memcpy(to, value, bytes);
  const std::size_t all = bytes * static_cast<std::size_t>(n);
  for (std::size_t filled = bytes; filled < all;) {
    const std::size_t more = std::min(filled, all - filled);
    std::memcpy(to + filled, to, more);
    filled += more;
  }
}

// Rows of a task: about 64 KiB.
std::int64_t rows_of_task(std::size_t row_bytes) {
  return std::max<std::int64_t>(1, 65536 / static_cast<std::int64_t>(row_bytes + 64));
}

class pad_kernel final : public kernel {
 public:
  explicit pad_kernel(const op::pad& attributes) : attributes_(attributes) {
    for (const dimension d : attributes.pads) pads_.push_back(d.value());
  }
  std::string name() const override { return std::string("pad ") + std::string(to_string(attributes_.mode)); }
  void run(const launch& l) const override {
    const tensor &x = l.in[0], &y = l.out[0];
    if (y.elements() == 0) return;
    const std::size_t rank = y.rank(), bytes = size_of(y.type);
    constexpr std::byte zero[16] = {};
    const std::byte* const value = l.in.size() > 1 ? l.in[1].data : zero;
    ints x_step(rank, 1), kept(rank, 0);
    for (std::size_t d = rank; d-- > 1;) x_step[d - 1] = x_step[d] * x.lens[d];
    for (std::size_t d = 0; d < rank; ++d) {
      kept[d] = x.lens[d] + std::min<std::int64_t>(pads_[d], 0) + std::min<std::int64_t>(pads_[rank + d], 0);
      if (attributes_.mode != op::pad_mode::constant && kept[d] == 0)
        raise(fault::of(errc::shape_mismatch, "a padded extent has an element to repeat", "at least 1", kept[d]));
    }
    const std::size_t inner = rank - 1;
    const std::int64_t width = y.lens[inner], rows = y.elements() / width;
    const std::int64_t before = std::clamp<std::int64_t>(pads_[inner], 0, width),
                       cropped = std::max<std::int64_t>(-pads_[inner], 0);
    const std::int64_t each = rows_of_task(static_cast<std::size_t>(width) * bytes);
    l.pool->parallel_for((rows + each - 1) / each, [&](std::int64_t task, unsigned) {
      for (std::int64_t row = task * each; row < std::min(rows, (task + 1) * each); ++row) {
        std::byte* const to = y.data + static_cast<std::size_t>(row * width) * bytes;
        std::int64_t from = 0, rest = row;
        bool inside = kept[inner] > 0;
        for (std::size_t d = inner; d-- > 0; rest /= y.lens[d]) {
          const std::int64_t i = attributes_.source(rest % y.lens[d] - std::max<std::int64_t>(pads_[d], 0), kept[d]);
          inside = inside && i >= 0;
          from += (i + std::max<std::int64_t>(-pads_[d], 0)) * x_step[d];
        }
        if (!inside) {
          fill_elements(to, value, bytes, width);
          continue;
        }
        const std::byte* const row_from = x.data + static_cast<std::size_t>(from + cropped) * bytes;
        const std::int64_t whole = std::min(kept[inner], width - before);
        std::memcpy(to + static_cast<std::size_t>(before) * bytes, row_from, static_cast<std::size_t>(whole) * bytes);
        border(to, row_from, value, bytes, 0, before, before, kept[inner]);
        border(to, row_from, value, bytes, before + whole, width, before, kept[inner]);
      }
    });
  }

 private:
  // Fills elements [first, last) of a row, whose elements from `before` on are the `kept` copied ones.
  void border(std::byte* to, const std::byte* from, const std::byte* value, std::size_t bytes, std::int64_t first,
              std::int64_t last, std::int64_t before, std::int64_t kept) const {
    if (attributes_.mode == op::pad_mode::constant)
      return fill_elements(to + static_cast<std::size_t>(first) * bytes, value, bytes, last - first);
    for (std::int64_t i = first; i < last; ++i)
      std::memcpy(to + static_cast<std::size_t>(i) * bytes,
                  from + static_cast<std::size_t>(attributes_.source(i - before, kept)) * bytes, bytes);
  }
  op::pad attributes_;
  std::vector<std::int64_t> pads_;
};

class tri_kernel final : public kernel {
 public:
  explicit tri_kernel(const op::tri& attributes) : attributes_(attributes) {}
  std::string name() const override { return attributes_.upper ? "upper triangle" : "lower triangle"; }
  void run(const launch& l) const override {
    const tensor &x = l.in[0], &y = l.out[0];
    if (y.elements() == 0) return;
    const std::int64_t m = y.lens[y.rank() - 2], n = y.lens[y.rank() - 1], rows = y.elements() / n;
    const std::size_t bytes = size_of(y.type);
    const std::int64_t each = rows_of_task(static_cast<std::size_t>(n) * bytes);
    l.pool->parallel_for((rows + each - 1) / each, [&](std::int64_t task, unsigned) {
      for (std::int64_t row = task * each; row < std::min(rows, (task + 1) * each); ++row) {
        // columns before `cut` are below the diagonal; the diagonal is among them where the lower triangle is kept
        const std::int64_t i = row % m, bound = std::clamp<std::int64_t>(attributes_.k, -m - 1, n + 1);
        const std::int64_t cut = std::clamp<std::int64_t>(i + bound + !attributes_.upper, 0, n);
        const auto head = static_cast<std::size_t>(cut) * bytes, all = static_cast<std::size_t>(n) * bytes;
        std::byte* const to = y.data + static_cast<std::size_t>(row) * all;
        const std::byte* const from = x.data + static_cast<std::size_t>(row) * all;
        if (attributes_.upper) {
          std::fill_n(to, head, std::byte{});
          std::copy(from + head, from + all, to + head);
        } else {
          std::copy_n(from, head, to);
          std::fill(to + head, to + all, std::byte{});
        }
      }
    });
  }

 private:
  op::tri attributes_;
};

}  // namespace

std::unique_ptr<kernel> lower_placement(const kernel_request& r) {
  const dtype type = r.inputs.empty() ? dtype::f32 : r.inputs[0].type;
  if (!dtypes::numbers.contains(type) && type != dtype::boolean) return nullptr;  // zero is zero bytes in all of these
  if (const auto* const tri = r.instruction.op.get_if<op::tri>()) return std::make_unique<tri_kernel>(*tri);
  const auto* const pad = r.instruction.op.get_if<op::pad>();
  if (!pad || r.inputs[0].rank() == 0) return nullptr;
  for (const dimension d : pad->pads)
    if (!d.is_constant()) return nullptr;
  return std::make_unique<pad_kernel>(*pad);
}

}  // namespace kiln::eigen
