#pragma once
#include "kiln/op/index/scatter_mode.hpp"

namespace kiln::op {

/// A copy of data in which each update slice replaces, or is combined with, the slice its index tuple names (ONNX
/// ScatterND). Inputs: data, indices[..., tuple], updates. Updates apply in order; negative indices count from the end;
/// one outside its extent is an error of the run.
struct scatter_nd {
  scatter_mode reduction = scatter_mode::none;
  static constexpr auto types = dtypes::movable | dtypes::dims;

  void agree(extent_agreement& extents) const {
    if (extents.operands() != 3 || extents.rank(1) < 1) return;
    const std::size_t places = extents.rank(1) - 1;
    const dimension tuple = extents.extent(1, places);
    if (!tuple.is_constant() || tuple.value() < 0 || tuple.value() > static_cast<std::int64_t>(extents.rank(0))) return;
    const auto named = static_cast<std::size_t>(tuple.value());
    if (extents.rank(2) != places + extents.rank(0) - named) return;
    for (std::size_t d = 0; d < places; ++d) extents.agree(2, d, 1, d);
    for (std::size_t d = named; d < extents.rank(0); ++d) extents.agree(2, places + d - named, 0, d);
  }
  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 3) return detail::wrong_operand_count(3, in.size());
    const shape &data = in[0], &indices = in[1], &updates = in[2];
    if (!is_integer(indices.type)) return detail::wrong_index_type(indices.type);
    if (const auto f = detail::update_fault(data, updates, reduction)) return *f;
    if (data.rank() < 1 || indices.rank() < 1)
      return fault::of(errc::shape_mismatch, "data and indices have at least one dim", data.lens, indices.lens);
    const dimension tuple = indices.lens.back();
    if (!tuple.is_constant()) return fault::of(errc::unsupported, "length of an index tuple", "a constant", tuple);
    if (tuple.value() > static_cast<std::int64_t>(data.rank()))
      return fault::of(errc::shape_mismatch, "an index tuple is no longer than the data's dims", data.rank(), tuple);
    detail::collected_dims expected;
    expected.add(indices.lens, 0, indices.rank() - 1);
    expected.add(data.lens, static_cast<std::size_t>(tuple.value()), data.rank());
    const auto slices = expected.as(data.type);
    if (!slices) return slices.why();
    if (!(updates.lens == slices->lens))
      return fault::of(errc::shape_mismatch, "updates hold one slice for each index tuple", slices->lens, updates.lens);
    return shape{data.type, data.lens};
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto [data, indices, out] = detail::gather_operands<T>(e);
    const auto updates = e.template in<T>(2);
    for (std::int64_t i = 0, n = data.size(); i < n; ++i) out[i] = data[i];
    const auto tuple = static_cast<std::size_t>(indices.lens.back());
    const std::int64_t rows = detail::count(indices.lens, 0, indices.rank() - 1),
                       slice = detail::count(data.lens, tuple, data.rank());
    for (std::int64_t r = 0; r < rows; ++r) {
      std::int64_t to = 0;
      for (std::size_t d = 0; d < tuple; ++d)
        to = to * data.lens[d] + e.index(indices[r * indices.lens.back() + static_cast<std::int64_t>(d)], data.lens[d]);
      for (std::int64_t i = 0; i < slice; ++i) {
        T& element = out[to * slice + i];
        element = detail::updated<T>(reduction, element, updates[r * slice + i]);
      }
    }
  }
};

}  // namespace kiln::op
