# kiln::hip: the GPU target. Host code only: the platform's libraries are opened while it runs, and kernels are compiled
# then. Freestanding headers that kernels include are embedded as text.

kiln_generate_units(hip_units backend/hip)

set(root ${PROJECT_SOURCE_DIR}/include)
file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${root} ${root}/kiln/core/math/*.hpp
     ${root}/kiln/backend/hip/kernels/*/*.hpp)
list(PREPEND headers kiln/config.hpp kiln/core/math.hpp kiln/core/narrow.hpp
                     kiln/op/linear/fourier_sum.hpp kiln/op/sequence/activation.hpp)
set(entries)
set(own)
foreach(header IN LISTS headers)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${root}/${header})
  file(READ ${root}/${header} text)
  string(APPEND entries "  {\"${header}\", R\"kiln(${text})kiln\"},\n")
endforeach()
# What core and op headers include, where compilers of kernels have no standard library.
foreach(header IN ITEMS bit cstdint string_view)
  string(APPEND entries "  {\"${header}\", \"#include \\\"kiln/backend/hip/kernels/platform/standard.hpp\\\"\\n\"},\n")
endforeach()
set(unit ${PROJECT_BINARY_DIR}/units/hip_embedded_headers.cpp)
file(CONFIGURE OUTPUT ${unit} @ONLY CONTENT "#include <kiln/backend/hip/compile.hpp>
namespace kiln::hip {
namespace {
constexpr embedded_header all[] = {
@entries@};
}  // namespace
std::span<const embedded_header> embedded_headers() { return all; }
}  // namespace kiln::hip
")
list(APPEND hip_units ${unit})

kiln_add_library(hip ${hip_units})
kiln_precompile(kiln_hip)
target_link_libraries(kiln_hip PUBLIC kiln::runtime PRIVATE ${CMAKE_DL_LIBS})
