# kiln::eigen: a static library without instruction-set dependence over libkiln_eigen.so.1, which holds
# include/kiln/backend/eigen/impl/isa/*.ipp compiled once per level. The dynamic loader picks the level by itself from
# glibc-hwcaps folders beside the base library, so that there is no dispatch code.

find_package(Eigen3 3.4 REQUIRED NO_MODULE)

set(KILN_ISA_LEVELS "x86-64-v2;x86-64-v3;x86-64-v4" CACHE STRING "Instruction-set levels; the first one is the base")
set(levels ${KILN_ISA_LEVELS})
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(levels native-abi)
endif()

kiln_generate_units(eigen_units backend/eigen)
kiln_add_library(eigen ${eigen_units})
kiln_precompile(kiln_eigen)
# The archive must not be mistaken for the shared library's name by a bare -lkiln_eigen.
set_target_properties(kiln_eigen PROPERTIES OUTPUT_NAME kiln_eigen_target)

set(folder ${PROJECT_SOURCE_DIR}/include/kiln/backend/eigen/impl)
file(GLOB_RECURSE isa_bodies CONFIGURE_DEPENDS RELATIVE ${folder} ${folder}/isa/*.ipp)
kiln_units_of(isa_units backend/eigen "" "${isa_bodies}")
kiln_numbered_units(isa_units backend/eigen/impl/isa/tiles_definition.hpp kiln::eigen::tile_unit 4)
if(NOT isa_units)
  set(isa_units ${PROJECT_BINARY_DIR}/units/isa_empty.cpp)
  file(CONFIGURE OUTPUT ${isa_units} CONTENT "#include <kiln/version.hpp>\n" @ONLY)
endif()

# Long loops of many independent sums: scheduled before registers are given out, they took 2 to 9 % less with the 32
# vector registers of AVX-512, and here and there more with 16.
set_source_files_properties(
  ${PROJECT_BINARY_DIR}/units/backend_eigen_isa_loops.cpp PROPERTIES COMPILE_OPTIONS
  "$<$<AND:$<CXX_COMPILER_ID:GNU>,$<STREQUAL:$<TARGET_PROPERTY:NAME>,kiln_eigen_v4>>:-fschedule-insns;-fsched-pressure>")

# Loops that the compiler turns into vectors; none of them asks for the flags of floating-point exceptions. Integers of
# 16 bits are multiplied as int, which may overflow.
set_source_files_properties(${PROJECT_BINARY_DIR}/units/backend_eigen_isa_typed_tiles.cpp
                            PROPERTIES COMPILE_OPTIONS "-O3;-fno-trapping-math;-fwrapv")

# Integers wrap there, too; vectors are written out.
set_source_files_properties(${PROJECT_BINARY_DIR}/units/backend_eigen_isa_pairs.cpp PROPERTIES COMPILE_OPTIONS -fwrapv)

# Complex products of finite numbers, without the branches that mend those of infinities.
set_source_files_properties(${PROJECT_BINARY_DIR}/units/backend_eigen_isa_fourier.cpp
                            PROPERTIES COMPILE_OPTIONS "$<$<CXX_COMPILER_ID:GNU>:-fcx-limited-range>")

# Plain loops, which g++ makes vectors of at -O3 alone.
set_source_files_properties(${PROJECT_BINARY_DIR}/units/backend_eigen_isa_sampling.cpp
                            ${PROJECT_BINARY_DIR}/units/backend_eigen_isa_reductions.cpp
                            PROPERTIES COMPILE_OPTIONS "$<$<CXX_COMPILER_ID:GNU>:-O3>")

set(base)
foreach(level IN LISTS levels)
  string(REGEX REPLACE "^x86-64-" "" short ${level})
  set(target kiln_eigen_${short})
  add_library(${target} SHARED ${isa_units})
  kiln_own(${target})
  target_link_libraries(${target} PRIVATE kiln::kiln Threads::Threads)
  target_include_directories(${target} SYSTEM PRIVATE ${EIGEN3_INCLUDE_DIRS})
  target_compile_definitions(${target} PRIVATE EIGEN_DONT_PARALLELIZE EIGEN_MPL2_ONLY)
  if(level MATCHES "^x86-64-")
    target_compile_options(${target} PRIVATE -march=${level})
  endif()
  target_compile_options(${target} PRIVATE ${KILN_OF_LARGE})
  # Eigen 3.4 under g++ 12 warns about its own temporaries at AVX-512.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME kiln_eigen SOVERSION 1 CXX_VISIBILITY_PRESET hidden
                                             VISIBILITY_INLINES_HIDDEN ON)
  if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    target_link_options(${target} PRIVATE -Wl,-z,defs)  # the levels are leaves: they call nothing of kiln's archives
  endif()
  if(base)
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY
                                               ${PROJECT_BINARY_DIR}/lib/glibc-hwcaps/${level})
    add_dependencies(kiln_eigen ${target})
    list(APPEND KILN_EIGEN_LEVEL_TARGETS ${target})
    install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/glibc-hwcaps/${level} NAMELINK_SKIP)
  else()
    set(base ${target})
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib EXPORT_NAME eigen_base)
    add_library(kiln::eigen_base ALIAS ${target})
  endif()
endforeach()

# The loader would prefer a level that an earlier configuration built over the ones of this one.
file(GLOB built_levels ${PROJECT_BINARY_DIR}/lib/glibc-hwcaps/*)
foreach(folder IN LISTS built_levels)
  get_filename_component(level ${folder} NAME)
  list(FIND levels ${level} position)
  if(position LESS 1)
    file(REMOVE_RECURSE ${folder})
  endif()
endforeach()

target_link_libraries(kiln_eigen PUBLIC kiln::runtime ${base})
set(KILN_EIGEN_BASE_TARGET ${base})
