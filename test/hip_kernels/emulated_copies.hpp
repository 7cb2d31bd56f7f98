#pragma once
#include "kiln/backend/hip/kernels/platform/platform.hpp"
#include "kiln/backend/hip/runtime.hpp"

// The emulated device's copy unit. Copies to shared memory end when they begin. Stores read it as late as they may:
// when the lane that began them waits for them, or ends.

namespace kiln::gpu {

/// A tensor as the emulated copy unit sees it; `boxes` outlives the map.
inline tensor_map map_of(const hip::tensor_boxes& boxes) { return {{reinterpret_cast<u64>(&boxes)}}; }

/// Before a grid runs, of so many threads a block: nobody waits, and nothing is to be stored.
void clear_copies(int threads);
/// When a lane ends: makes the stores that it did not wait for.
void end_stores();

}  // namespace kiln::gpu
