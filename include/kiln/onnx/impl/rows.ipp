#include <unordered_map>
#include <vector>

#include "kiln/onnx/impl/rows.hpp"

namespace kiln::onnx {

namespace {

using row_index = std::unordered_map<std::string_view, std::vector<const row*>>;

const row_index& by_name() {
  static const row_index index = [] {
    row_index made;
    for (const auto family : row_families())
      for (const row& r : family) made[r.op_type].push_back(&r);
    return made;
  }();
  return index;
}

const row* better(const row* best, const row& r, std::string_view domain, std::int64_t version) {
  return r.domain == domain && r.since <= version && (!best || r.since > best->since) ? &r : best;
}

}  // namespace

std::span<const std::span<const row>> row_families() {
  static const std::span<const row> families[] = {pointwise_rows(),
                                                  activation_rows(),
                                                  arithmetic_rows(),
                                                  cast_rows(),
                                                  reduce_rows(),
                                                  view_rows(),
                                                  slice_rows(),
                                                  linear_rows(),
                                                  window_rows(),
                                                  normalise_rows(),
                                                  index_rows(),
                                                  constant_rows(),
                                                  sequence_rows(),
                                                  control_rows(),
                                                  loss_rows(),
                                                  quantise_rows(),
                                                  resize_rows(),
                                                  einsum_rows(),
                                                  attention_rows(),
                                                  recurrent_rows(),
                                                  sample_rows(),
                                                  signal_rows(),
                                                  random_rows(),
                                                  training_rows(),
                                                  gradient_rows(),
                                                  unfold_rows(),
                                                  state_rows(),
                                                  ngram_rows(),
                                                  scan_rows(),
                                                  optional_rows(),
                                                  select_rows(),
                                                  text_rows(),
                                                  image_rows(),
                                                  learned_rows(),
                                                  label_rows(),
                                                  tree_rows(),
                                                  map_rows(),
                                                  microsoft_rows(),
                                                  microsoft_attention_rows(),
                                                  microsoft_quantise_rows()};
  return families;
}

const row* find_row(std::span<const row> own, std::string_view domain, std::string_view op_type, std::int64_t version) {
  const row* best = nullptr;
  for (const row& r : own)
    if (r.op_type == op_type) best = better(best, r, domain, version);
  if (best) return best;
  if (const auto found = by_name().find(op_type); found != by_name().end())
    for (const row* r : found->second) best = better(best, *r, domain, version);
  return best;
}

std::int64_t oldest_version(std::string_view domain, std::string_view op_type) {
  std::int64_t oldest = 0;
  if (const auto found = by_name().find(op_type); found != by_name().end())
    for (const row* r : found->second)
      if (r->domain == domain && r->function && (!oldest || r->since < oldest)) oldest = r->since;
  return oldest;
}

}  // namespace kiln::onnx
