#include <algorithm>

#include "kiln/generate/impl/model_plan.hpp"

namespace kiln::language::detail {

page_plan plan_pages(const std::vector<joined_layer>& layers, std::optional<dtype> stored,
                     std::shared_ptr<const device> where) {
  page_plan plan;
  const auto holds = [](dtype t) { return t == dtype::f16 || t == dtype::bf16; };
  const bool alike = std::all_of(layers.begin(), layers.end(), [&](const auto& l) { return l.type == layers[0].type; });
  plan.stored = stored ? *stored : alike && holds(layers[0].type) ? layers[0].type : dtype::f32;
  constexpr dtype known[] = {dtype::f32, dtype::f16, dtype::bf16, dtype::i8, dtype::f8e4m3fn, dtype::f8e5m2};
  if (std::find(std::begin(known), std::end(known), plan.stored) == std::end(known))
    throw fault::of(errc::invalid_argument, "kv_cache_type", "f32, f16, bf16, i8, f8e4m3fn or f8e5m2",
                    kiln::to_string(plan.stored));
  std::ptrdiff_t bytes = 0;
  const auto place = [&](std::int64_t numbers, std::size_t each) {
    constexpr std::ptrdiff_t line = 64;
    const std::ptrdiff_t at = bytes;
    bytes += (numbers * static_cast<std::ptrdiff_t>(each) + line - 1) / line * line;
    return at;
  };
  const std::size_t each = size_of(plan.stored);
  for (const joined_layer& l : layers) {
    op::paged_layer at;
    at.keys = place(l.kv_heads * plan.block * l.depth, each);
    at.values = place(l.kv_heads * plan.block * l.value_depth, each);
    if (op::has_page_scales(plan.stored)) {
      at.key_scales = place(l.kv_heads * plan.block, sizeof(float));
      at.value_scales = place(l.kv_heads * plan.block, sizeof(float));
    }
    plan.layers.push_back(at);
  }
  plan.memory =
      std::make_shared<prefix_cache>(page_pool(static_cast<std::size_t>(bytes), std::move(where)), plan.block);
  return plan;
}

}  // namespace kiln::language::detail
