#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/backend/hip/architecture.hpp"

namespace kiln::hip {

/// One kernel as text. It may include kiln's freestanding headers by their usual names (core/math.hpp and
/// backend/hip/kernels/: they are embedded), and defines `extern "C" __global__ void <entry>(…)`.
struct source {
  std::string entry;
  std::string text;
  bool own_instructions = false;  ///< some exist on this architecture alone, not on later ones (sm_90a)
  bool short_results = false;  ///< what is computed in float is stored in 16 bits: quotients and roots may err by 2 ulp
};

/// A freestanding header that is embedded in kiln::hip.
struct embedded_header {
  const char* name;
  const char* text;
};
std::span<const embedded_header> embedded_headers();

/// Machine code of a kernel for an architecture, from hiprtc or NVRTC. Compiled code is kept in `cache`, a folder, by
/// the hash of everything that decides it (text, headers, options, architecture, the compiler's version); an empty name
/// keeps nothing. An `unsupported` error says where a compiler is missing or does not know the architecture, an
/// `internal` one has the compiler's log.
std::string compile(const source& what, const architecture& where, const std::string& cache);

/// The hash of all that decides a kernel's code but the compiler's version.
std::string code_key(const source& what, const architecture& where);

/// What code for an architecture depends on beside its source: the compiler and its version, kiln's headers.
std::string code_format(const architecture& where);

/// Why `compile` could not serve the architecture on this machine; empty where it can.
std::string why_not_compiled(const architecture& where);

/// Where compiled kernels are kept unless the user says otherwise: kiln/hip in the user's cache folder; empty where
/// there is none.
std::string default_cache_folder();

}  // namespace kiln::hip
