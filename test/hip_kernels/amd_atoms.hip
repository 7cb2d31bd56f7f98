// Tile kernels on the matrix instructions of AMD GPUs that hiprtc of HIP 5 does not know: compiled by clang for the
// device alone, without HIP's headers. amd_atoms.sh looks for the instructions in what comes out.
#define __global__ __attribute__((global))
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(n) __attribute__((amdgpu_flat_work_group_size(1, n)))

#include "kiln/backend/hip/kernels/attention/attention_staged.hpp"
#include "kiln/backend/hip/kernels/gemm/gemm.hpp"
#ifdef KILN_WAVE64
#include "kiln/backend/hip/kernels/atom/atom_mfma.hpp"
template <class T>
using matrix_atom = kiln::gpu::atom_mfma<T>;
#else
#include "kiln/backend/hip/kernels/atom/atom_wmma.hpp"
template <class T>
using matrix_atom = kiln::gpu::atom_wmma<T>;
#endif

namespace kiln::gpu {

template <class T>
struct plain_epilogue {
  static constexpr int width = 8;
  static constexpr bool along_rows = false;
  static constexpr int expected = 0;
  result_place<T, false> place;
  template <int V>
  struct operands {};
  template <int V>
  KILN_FN void read(operands<V>&, const position&, int) const {}
  template <class S, int V>
  KILN_FN void apply(S (&sums)[V], const operands<V>&, const position& p, int count) const {
    T out[V];
    for (int i = 0; i < V; ++i) out[i] = narrow<T>(sums[i]);
    write_run<along_rows>(place, out, p, count);
  }
};

template <class T>
KILN_FN void multiply_tiles(matrix_operand<T, true, 8> a, matrix_operand<T, false, 8> b, plain_epilogue<T> to,
                            gemm_sizes s, char* shared) {
  gemm<matrix_atom<T>, block_tile<64, 64, 32, 2, 2, 2>>(a, b, to, s, shared);
}

template <class T>
KILN_FN void attend(attention_operand<const T> q, attention_operand<const T> k, attention_operand<const T> v,
                    attention_operand<T> out, epilogue_operand mask, attention_sizes s, char* shared) {
  attention_staged<matrix_atom<T>, attention_tile<1, 4, 32, 64, 64, 8>, mask_kind::adds, true>(q, k, v, out, mask, s,
                                                                                               shared);
}

}  // namespace kiln::gpu

using namespace kiln::gpu;
#define KILN_KERNELS(T)                                                                                          \
  extern "C" __global__ void __launch_bounds__(256) product_##T(matrix_operand<T, true, 8> a,                    \
                                                                matrix_operand<T, false, 8> b,                   \
                                                                plain_epilogue<T> to, gemm_sizes s) {         \
    __shared__ __attribute__((aligned(128))) char shared[1 << 15];                                               \
    multiply_tiles<T>(a, b, to, s, shared);                                                                      \
  }                                                                                                              \
  extern "C" __global__ void __launch_bounds__(256)                                                              \
      attention_##T(attention_operand<const T> q, attention_operand<const T> k, attention_operand<const T> v,    \
                    attention_operand<T> out, epilogue_operand mask, attention_sizes s) {                            \
    __shared__ __attribute__((aligned(128))) char shared[1 << 15];                                               \
    attend<T>(q, k, v, out, mask, s, shared);                                                                    \
  }
KILN_KERNELS(f16)
KILN_KERNELS(bf16)
