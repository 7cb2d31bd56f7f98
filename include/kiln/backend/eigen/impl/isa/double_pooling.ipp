#include "kiln/backend/eigen/double_pooling.hpp"
#include "kiln/kernel/pool/pooling.hpp"

namespace kiln::eigen {
namespace {

using kernels::pool_window, kernels::pooling_problem;

// Means of a plane's windows. Their elements are added one after the other, as the op adds them.
void write_means(const pooling_problem& p, const double* x, double* y) {
  for (std::int64_t d = 0; d < p.output[0]; ++d)
    for (std::int64_t h = 0; h < p.output[1]; ++h) {
      const pool_window deep(p, 0, d), high(p, 1, h);
      for (std::int64_t w = 0; w < p.output[2]; ++w) {
        const pool_window wide(p, 2, w);
        double sum = 0;
        for (std::int64_t a = deep.first; a < deep.last; a += deep.step)
          for (std::int64_t b = high.first; b < high.last; b += high.step)
            for (std::int64_t c = wide.first; c < wide.last; c += wide.step)
              sum += x[(a * p.input[1] + b) * p.input[2] + c];
        const std::int64_t counted = deep.counted() * high.counted() * wide.counted();
        *y++ = counted == 0 ? 0 : sum / static_cast<double>(counted);
      }
    }
}

void pool(thread_pool& pool, const pooling_problem& p, const double* x, double* y) {
  const std::int64_t in = p.input[0] * p.input[1] * p.input[2], out = p.output[0] * p.output[1] * p.output[2];
  kernels::for_each_plane(pool, p, [&](std::int64_t i) {
    const double* const from = x + i * in;
    double* const to = y + i * out;
    if (p.average)
      write_means(p, from, to);
    else if (kernels::is_whole(p))
      *to = kernels::reduce_plane(from, in, false);
    else
      kernels::pooled_plane<kernels::pooling_fold<false>, double>(p, from, to).run();
  });
}

}  // namespace

extern "C" [[gnu::visibility("default")]] const double_pooling_table* kiln_eigen_double_pooling() {
  static const double_pooling_table table{.pool = pool};
  return &table;
}

}  // namespace kiln::eigen
