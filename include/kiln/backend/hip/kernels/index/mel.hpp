#pragma once
#include "kiln/backend/hip/kernels/index/arguments.hpp"
#include "kiln/backend/hip/kernels/platform/elements.hpp"
#include "kiln/core/math/mel.hpp"

namespace kiln::gpu {

/// Run `at` of the weights f32[bins, mels] of `op::mel_weights`: those of `mel_run` bins in one filter, whose corners
/// are found once. Neighboring threads have neighboring filters, so that they write neighboring elements. Filters that
/// reach outside the spectrum set `faults`, and all weights are 0.
template <class Rate, class Low, class High, class Index>
KILN_FN void mel_weights(float* out, Rate rate, Low lowest, High highest, const mel_sizes& n, Index at, int* faults) {
  const mel_filters filters(static_cast<double>(value_of(rate)), static_cast<double>(value_of(lowest)),
                            static_cast<double>(value_of(highest)), n.length, n.mels);
  const auto mels = static_cast<Index>(n.mels), bins = static_cast<Index>(filters.bins());
  const Index run = at / mels, m = at - run * mels, first = run * mel_run;
  const Index last = bins - first < mel_run ? bins : first + mel_run;
  if (!filters.fit()) {
    *faults = 1;
    for (Index bin = first; bin < last; ++bin) out[bin * mels + m] = 0;
    return;
  }
  // nothing but the bin changes, so that compilers find the corners before the loop
  KILN_NO_UNROLL
  for (Index bin = first; bin < last; ++bin) out[bin * mels + m] = filters.weight(bin, m);
}

}  // namespace kiln::gpu
