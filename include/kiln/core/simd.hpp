#pragma once

// Compiler vectors and what the language has no operator for. The instruction set is that of the translation unit.

#include "kiln/core/simd/half.hpp"
#include "kiln/core/simd/reduce.hpp"
#include "kiln/core/simd/vec.hpp"
#include KILN_SIMD_HEADER

namespace kiln {

/// Stores to `p`, aligned to the vector's size, past the caches: for results that nothing reads soon. `stream_fence`
/// orders it.
template <is_vec V> KILN_FN void stream(element_t<V>* p, V v) { elementary::native_ops<V>::stream(p, v); }

/// Makes streamed stores visible before later ones: call it before another thread reads them.
KILN_FN void stream_fence() { elementary::fence_streams(); }

/// Leaves wide registers clean: code compiled for narrower ones is slowed down by what their upper parts hold. For the
/// end of functions after which the compiler doesn't see that they were used.
KILN_FN void leave_wide_registers() { elementary::leave_wide_registers(); }

/// The first `n` lanes from `p`, the others zero; nothing beyond p[n-1] is touched. 0 <= n <= lanes<V>.
template <is_vec V> KILN_FN V load_n(const element_t<V>* p, int n) { return elementary::native_ops<V>::load_n(p, n); }

/// Stores the first `n` lanes to `p`; nothing beyond p[n-1] is touched. 0 <= n <= lanes<V>.
template <is_vec V> KILN_FN void store_n(element_t<V>* p, V v, int n) { elementary::native_ops<V>::store_n(p, v, n); }

}  // namespace kiln
