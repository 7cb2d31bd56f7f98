#pragma once
#include "kiln/op/index/common.hpp"

namespace kiln::op {

/// Slices of data picked by index tuples (ONNX GatherND): the indices' last dim holds a tuple over the data's dims
/// after `batch_dims` leading dims that both share. Negative indices count from the end; one outside its extent is an
/// error of the run.
struct gather_nd {
  std::int64_t batch_dims = 0;
  static constexpr auto types = dtypes::movable | dtypes::dims;

  void agree(extent_agreement& extents) const {
    if (extents.operands() != 2) return;
    const std::size_t least = std::min(extents.rank(0), extents.rank(1));
    for (std::size_t d = 0; d < least && static_cast<std::int64_t>(d) < batch_dims; ++d) extents.agree(1, d, 0, d);
  }
  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 2) return detail::wrong_operand_count(2, in.size());
    const shape &data = in[0], &indices = in[1];
    if (!is_integer(indices.type)) return detail::wrong_index_type(indices.type);
    if (data.rank() < 1 || indices.rank() < 1)
      return fault::of(errc::shape_mismatch, "data and indices have at least one dim", data.lens, indices.lens);
    const auto batch = static_cast<std::size_t>(batch_dims);
    if (batch_dims < 0 || batch >= data.rank() || batch >= indices.rank())
      return fault::of(errc::shape_mismatch, "batch_dims is less than both ranks",
                       data.rank() < indices.rank() ? data.rank() : indices.rank(), batch_dims);
    for (std::size_t d = 0; d < batch; ++d)
      if (!(data.lens[d] == indices.lens[d]))
        return fault::of(errc::shape_mismatch, "batch dims agree", data.lens, indices.lens);
    const dimension tuple = indices.lens.back();
    if (!tuple.is_constant()) return fault::of(errc::unsupported, "length of an index tuple", "a constant", tuple);
    if (tuple.value() < 0 || tuple.value() > static_cast<std::int64_t>(data.rank() - batch))
      return fault::of(errc::shape_mismatch, "an index tuple is no longer than the data's dims after the batch",
                       data.rank() - batch, tuple);
    detail::collected_dims out;
    out.add(indices.lens, 0, indices.rank() - 1);
    out.add(data.lens, batch + static_cast<std::size_t>(tuple.value()), data.rank());
    return out.as(data.type);
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto [data, indices, out] = detail::gather_operands<T>(e);
    const auto batch = static_cast<std::size_t>(batch_dims), tuple = static_cast<std::size_t>(indices.lens.back());
    const std::int64_t batches = detail::count(data.lens, 0, batch),
                       rows = detail::count(indices.lens, batch, indices.rank() - 1),
                       slice = detail::count(data.lens, batch + tuple, data.rank());
    for (std::int64_t r = 0; r < batches * rows; ++r) {
      std::int64_t from = r / rows;
      for (std::size_t d = 0; d < tuple; ++d) {
        const std::int64_t extent = data.lens[batch + d],
                           i = indices[r * indices.lens.back() + static_cast<std::int64_t>(d)];
        from = from * extent + e.index(i, extent);
      }
      for (std::int64_t i = 0; i < slice; ++i) out[r * slice + i] = data[from * slice + i];
    }
  }
};

}  // namespace kiln::op
