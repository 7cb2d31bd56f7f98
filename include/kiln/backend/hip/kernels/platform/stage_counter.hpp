#pragma once
#include "kiln/backend/hip/kernels/platform/platform.hpp"

namespace kiln::gpu {

/// Where the stages of a pipeline are that goes on from tile to tile: a stage's place, and how often it was filled.
template <int Stages> struct stage_counter {
  int place = 0, round = 0;
  KILN_FN void next() {
    if (++place == Stages) place = 0, ++round;
  }
  KILN_FN void skip(int count) {
    place += count;
    round += place / Stages;
    place %= Stages;
  }
};

}  // namespace kiln::gpu
