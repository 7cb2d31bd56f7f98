#pragma once
#include "kiln/backend/hip/kernels/platform/platform.hpp"

namespace kiln::gpu {

/// A place in a ring of stages or boxes, which goes on from tile to tile, and how often it was reached before.
template <int Places> struct ring_counter {
  int place = 0, round = 0;
  KILN_FN void next() {
    if (++place == Places) place = 0, ++round;
  }
  KILN_FN void skip(int count) {
    place += count;
    round += place / Places;
    place %= Places;
  }
  KILN_FN int before() const { return place == 0 ? Places - 1 : place - 1; }
};

}  // namespace kiln::gpu
