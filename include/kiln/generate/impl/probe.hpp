#pragma once
#include <optional>
#include <vector>

#include "kiln/generate/impl/join_rows.hpp"

namespace kiln::language::detail {

/// What a value of a decoder depends on, as bits.
enum source_bits : std::uint8_t { of_tokens = 1, of_cache = 2, of_length = 4, of_position = 8, of_past = 16 };

/// Whether extents mention a symbol.
bool mentions(const shape& s, dimension symbol);
/// An instruction's own source: a parameter's role, and whether it mentions the past's length.
std::uint8_t from_of_itself(const module_graph& m, std::uint32_t at, const decoder_ports& ports);
/// For each instruction, all of its sources.
std::vector<std::uint8_t> sources_of(const module_graph& m, const decoder_ports& ports);
/// The instructions that values need, operands before their users.
std::vector<std::uint32_t> needed_of(const module_graph& m, const small_vector<value_id>& values);
/// A module of what these outputs need, with the parameters among that.
module_graph part_of(const module_graph& m, const small_vector<value_id>& outputs, const small_vector<text>& names);

/// Finds out what values that depend on lengths and positions alone are, by computing them for several lengths of the
/// past and of what is new.
class prober {
 public:
  prober(const program& p, const decoder_ports& ports) : p_(p), ports_(ports) {}
  /// Whether element i of an integer value with one element for each new token is the past's length + i.
  bool is_positions(value_id v) const;
  /// For an attention's mask that shows each query all keys up to its own, 0; or the last `n` of them, n. Nothing for
  /// any other. `causal`: later keys are hidden anyway.
  std::optional<std::int64_t> window_of(value_id mask, bool causal) const;

 private:
  struct sizes {
    std::int64_t past, now;
  };
  std::vector<argument> compute(value_id v, const std::vector<sizes>& all) const;
  const program& p_;
  const decoder_ports& ports_;
};

}  // namespace kiln::language::detail
