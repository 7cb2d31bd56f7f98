#include <algorithm>

#include "kiln/backend/eigen/lower.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

// Copies whole slices: result[outer, index, inner] = data[outer, indices[index], inner].
class gather_kernel final : public kernel {
 public:
  explicit gather_kernel(std::int64_t axis) : axis_(axis) {}
  std::string name() const override { return "gather"; }
  void run(const launch& l) const override {
    const tensor &data = l.in[0], &indices = l.in[1], &out = l.out[0];
    const auto axis = static_cast<std::size_t>(normal_axis(axis_, data.rank()));
    std::int64_t outer = 1, inner = 1;
    for (std::size_t d = 0; d < axis; ++d) outer *= data.lens[d];
    for (std::size_t d = axis + 1; d < data.rank(); ++d) inner *= data.lens[d];
    const std::int64_t extent = data.lens[axis], count = indices.elements();
    const std::size_t bytes = static_cast<std::size_t>(inner) * size_of(data.type);
    if (bytes == 0) return;
    const auto at = [&](std::int64_t i) {
      const std::int64_t k =
          indices.type == dtype::i64 ? indices.as<const std::int64_t>()[i] : indices.as<const std::int32_t>()[i];
      if (k < -extent || k >= extent)
        raise(fault::of(errc::invalid_argument, "an index lies within the gathered axis", extent, k));
      return k < 0 ? k + extent : k;
    };
    const std::int64_t slices = std::max<std::int64_t>(1, 65536 / static_cast<std::int64_t>(bytes));
    // `copy(to, from)` copies one slice
    const auto copy_all = [&](auto&& copy) {
      l.pool->parallel_for((outer * count + slices - 1) / slices, [&](std::int64_t task, unsigned) {
        const std::int64_t first = task * slices, last = std::min(outer * count, first + slices);
        std::byte* to = out.data + static_cast<std::size_t>(first) * bytes;
        const std::byte* from = data.data + static_cast<std::size_t>(first / count * extent) * bytes;
        for (std::int64_t s = first, i = first % count; s < last; ++s, to += bytes) {
          copy(to, from + static_cast<std::size_t>(at(i)) * bytes);
          if (++i == count) i = 0, from += static_cast<std::size_t>(extent) * bytes;
        }
      });
    };
    // single elements are copied without a call
    const auto copy_elements = [&]<std::size_t Size>() {
      copy_all([](std::byte* to, const std::byte* from) { std::memcpy(to, from, Size); });
    };
    switch (bytes) {
      case 1: return copy_elements.operator()<1>();
      case 2: return copy_elements.operator()<2>();
      case 4: return copy_elements.operator()<4>();
      case 8: return copy_elements.operator()<8>();
      default: return copy_all([bytes](std::byte* to, const std::byte* from) { std::memcpy(to, from, bytes); });
    }
  }

 private:
  std::int64_t axis_;
};

}  // namespace

std::unique_ptr<kernel> lower_gather(const kernel_request& r) {
  const auto* gather = r.instruction.op.get_if<op::gather>();
  if (!gather || (r.inputs[1].type != dtype::i64 && r.inputs[1].type != dtype::i32)) return nullptr;
  return std::make_unique<gather_kernel>(gather->axis);
}

}  // namespace kiln::eigen
