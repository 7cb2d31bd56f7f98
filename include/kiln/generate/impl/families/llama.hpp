#pragma once
#include "kiln/generate/impl/families/architecture.hpp"
#include "kiln/generate/impl/families/facts.hpp"

namespace kiln::language::detail {

inline unit read_activation(const facts& f, std::string_view key, std::string_view otherwise) {
  const std::string name = f.text_or(key, otherwise);
  if (name == "silu" || name == "swish") return unit::silu;
  if (name == "gelu") return unit::gelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast") return unit::gelu_tanh;
  f.unsupported(key, "'" + name + "'; expected silu, gelu, gelu_new or gelu_pytorch_tanh");
}

inline void check_turns_whole(const facts& f, const architecture& a) {
  if (const std::int64_t n = turned_elements(f, a, 1); n != a.depth)
    f.unsupported("partial_rotary_factor", "heads of which " + std::to_string(n) + " elements of " +
                                               std::to_string(a.depth) + " turn; expected all");
}

/// Llama 2 and 3 (Touvron et al. 2023, Grattafiori et al. 2024), Mistral (Jiang et al. 2023) and models of their form:
/// norms by the mean square, turned queries and keys, heads that share keys, a gated feed forward.
inline architecture read_llama(const facts& f) {
  architecture a = common_numbers(f);
  check_turns_whole(f, a);
  a.rotations = {read_rotation(f, a.depth, a)};
  a.activation = read_activation(f, "hidden_act", "silu");
  a.names = llama_names();
  if (const std::int64_t window = f.whole_or("sliding_window", 0); window > 0 && window < a.context)
    a.windows.assign(static_cast<std::size_t>(a.layers), window);
  return a;
}

}  // namespace kiln::language::detail
