#pragma once
#include <cstddef>

namespace kiln::language {

struct config;

/// How an engine shares its model.
struct engine_options {
  std::size_t max_requests = 256;          ///< that run at a time
  std::size_t max_scheduled_tokens = 512;  ///< of a step: of prompts what steps leave over, at least one
  /// Bytes of all caches, and tokens that they hold, at least one block; 0: no limit.
  std::size_t cache_bytes = 0, cache_tokens = 0;
  bool share_prefixes = true;  ///< keep full blocks, and let sequences that begin alike share them
  bool joins_late = true;      ///< requests join those that run; else a batch is complete before the next one begins
};

/// What the object `engine` of genai_config.json says: `dynamic_batching`, of which `num_blocks` of `block_size` tokens
/// are the limit of caches (kiln's own blocks are smaller, and `gpu_utilization_factor` has no effect), or
/// `static_batching`, in batches that are complete before the next one begins. Without it, the defaults.
engine_options engine_options_of(const config& c);

}  // namespace kiln::language
