#pragma once
#include "kiln/generate/impl/families/llama.hpp"

namespace kiln::language::detail {

/// Qwen2 (Yang et al. 2024): llama with biases of queries, keys and values, and windows that a switch turns on for the
/// layers from `max_window_layers` on.
inline architecture read_qwen2(const facts& f) {
  architecture a = read_llama(f);
  a.windows.clear();
  if (!f.flag_or("use_sliding_window", false)) return a;
  const std::int64_t window = f.whole_or("sliding_window", 0), from = f.whole_or("max_window_layers", a.layers);
  if (window < 1 || window >= a.context) return a;
  for (std::int64_t l = 0; l < a.layers; ++l) a.windows.push_back(l >= from ? window : 0);
  return a;
}

/// Qwen3 (Yang et al. 2025): each head's queries and keys are normalized before they turn.
inline architecture read_qwen3(const facts& f) {
  architecture a = read_qwen2(f);
  a.norms_heads = true;
  return a;
}

}  // namespace kiln::language::detail
