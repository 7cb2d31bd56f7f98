#include "kiln/backend/eigen/quantized.hpp"
#include "kiln/backend/eigen/strips.hpp"
#include "kiln/kernel/quantized/gemm.hpp"

namespace kiln::eigen {
namespace {

using namespace kernels;

static_assert(strip_columns % register_tile<std::int32_t>::width == 0);

template <class Machine>
void multiply(thread_pool& pool, const quantized_problem& p, std::byte* scratch, const gemm_epilogue& epilogue) {
  const auto after = [&](std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols, float* c,
                         std::ptrdiff_t c_row) {
    if (epilogue.call) epilogue.call(epilogue.self, row0, rows, col0, cols, c, c_row);
  };
  if (p.form.numbers.is_float())
    return p.form.bits == 4 ? quantized_gemm<Machine, float_numbers<4>>(pool, p, scratch, after)
                            : quantized_gemm<Machine, float_numbers<8>>(pool, p, scratch, after);
  switch (p.form.bits) {
    case 2: return quantized_gemm<Machine, unsigned_numbers<2>>(pool, p, scratch, after);
    case 4: return quantized_gemm<Machine, unsigned_numbers<4>>(pool, p, scratch, after);
    default: return quantized_gemm<Machine, unsigned_numbers<8>>(pool, p, scratch, after);
  }
}

template <class Machine>
constexpr quantized_table table_of{
    .byte_bits = native_bytes >= 32 ? Machine::most_bits : 0,
    .packed_size = [](const quantized_form& f) { return quantized_places(f).size; },
    .pack = pack_quantized,
    .are_halves = are_stored_exactly<half>,
    .scratch_size = [](const quantized_problem& p, unsigned workers) { return quantized_scratch(p, workers).size; },
    .multiply = multiply<Machine>,
};

}  // namespace

extern "C" [[gnu::visibility("default")]] const quantized_table* kiln_eigen_quantized() {
  if constexpr (native_bytes == 64)
    if (__builtin_cpu_supports("avx512vnni")) return &table_of<byte_fours>;
  return &table_of<byte_pairs>;
}

}  // namespace kiln::eigen
