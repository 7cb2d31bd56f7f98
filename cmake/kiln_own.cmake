# How kiln's own targets are compiled, and how bodies in include/kiln/<part>/impl/*.ipp become translation units.

# kiln_own(<target>): warnings, and the floating-point rules that keep constant evaluation, reference and kernels equal.
function(kiln_own target)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_compile_options(${target} PRIVATE -Wall -Wextra $<$<BOOL:${KILN_WERROR}>:-Werror> -ffp-contract=off
                                           -fno-math-errno)
  # g++ remarks on every function that takes a vector wider than the level's registers; they are all inlined
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-psabi>)
endfunction()

# kiln_generate_units(<variable> <part>...): one generated .cpp for each .ipp of the parts; bodies under impl/isa/ are
# left out, since the instruction-set levels compile them.
function(kiln_generate_units variable)
  set(units)
  foreach(part IN LISTS ARGN)
    set(folder ${PROJECT_SOURCE_DIR}/include/kiln/${part}/impl)
    file(GLOB_RECURSE bodies CONFIGURE_DEPENDS RELATIVE ${folder} ${folder}/*.ipp)
    list(FILTER bodies EXCLUDE REGEX "^isa/")
    kiln_units_of(made ${part} "" "${bodies}")
    list(APPEND units ${made})
  endforeach()
  set(${variable} "${units}" PARENT_SCOPE)
endfunction()

# kiln_units_of(<variable> <part> <prefix> <bodies>): writes the .cpp files; bodies are relative to impl/.
function(kiln_units_of variable part prefix bodies)
  set(units)
  foreach(body IN LISTS bodies)
    string(REGEX REPLACE "\\.ipp$" "" name ${part}/${prefix}${body})
    string(REPLACE "/" "_" name ${name})
    set(unit ${PROJECT_BINARY_DIR}/units/${name}.cpp)
    file(CONFIGURE OUTPUT ${unit} CONTENT "#include <kiln/${part}/impl/${body}>\n" @ONLY)
    list(APPEND units ${unit})
  endforeach()
  set(${variable} "${units}" PARENT_SCOPE)
endfunction()

# kiln_numbered_units(<variable> <header> <template> <count>): appends units that instantiate <template><0>, <1>, ...,
# whose members <header> defines: what is one template would take one compiler too long.
function(kiln_numbered_units variable header template count)
  get_filename_component(name ${header} NAME_WE)
  math(EXPR last "${count} - 1")
  foreach(number RANGE ${last})
    set(unit ${PROJECT_BINARY_DIR}/units/${name}_${number}.cpp)
    file(CONFIGURE OUTPUT ${unit} CONTENT "#include <kiln/${header}>\ntemplate struct ${template}<${number}>;\n" @ONLY)
    list(APPEND ${variable} ${unit})
  endforeach()
  set(${variable} "${${variable}}" PARENT_SCOPE)
endfunction()

# What large units are compiled with. g++ marks all that it holds whenever it collects garbage: that is let grow first, which
# saves up to a tenth of their time for at most 300 MB more.
set(KILN_OF_LARGE $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=524288>)

# What units that read a precompiled header are compiled with, which is large. g++ 12 warns of libstdc++'s own strings, as it
# no longer sees that they are a system header's.
set(KILN_OF_PRECOMPILED $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds> ${KILN_OF_LARGE})

# kiln_precompile(<target>): reads what most units of kiln::runtime and the libraries above include once for all of them:
# half a second of one to five that a unit takes. Units include what they need all the same.
function(kiln_precompile target)
  if(NOT TARGET kiln_precompiled)
    set(unit ${PROJECT_BINARY_DIR}/units/precompiled.cpp)
    file(CONFIGURE OUTPUT ${unit} CONTENT "#include <kiln/version.hpp>\n" @ONLY)
    add_library(kiln_precompiled OBJECT ${unit})
    kiln_own(kiln_precompiled)
    target_link_libraries(kiln_precompiled PRIVATE kiln::kiln)
    target_precompile_headers(kiln_precompiled PRIVATE <algorithm> <cmath> <filesystem> <fstream> <functional> <map>
                              <mutex> <optional> <set> <sstream> <thread>
                              ${PROJECT_SOURCE_DIR}/include/kiln/runtime/executable.hpp)
  endif()
  target_precompile_headers(${target} REUSE_FROM kiln_precompiled)
  target_compile_options(${target} PRIVATE ${KILN_OF_PRECOMPILED})
endfunction()

# kiln_add_library(<name> <unit>...): the static library kiln_<name>, alias kiln::<name>.
function(kiln_add_library name)
  set(units ${ARGN})
  if(NOT units)
    set(units ${PROJECT_BINARY_DIR}/units/${name}_empty.cpp)
    file(CONFIGURE OUTPUT ${units} CONTENT "#include <kiln/version.hpp>\n" @ONLY)
  endif()
  add_library(kiln_${name} STATIC ${units})
  add_library(kiln::${name} ALIAS kiln_${name})
  set_target_properties(kiln_${name} PROPERTIES EXPORT_NAME ${name} ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
  kiln_own(kiln_${name})
endfunction()

# kiln_embed_file(<variable> <file> <namespace>): appends to <variable> a unit that defines the file's text as
# <namespace>::<name>_text.
function(kiln_embed_file variable from namespace)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${from})
  file(READ ${from} text)
  get_filename_component(name ${from} NAME_WE)
  set(unit ${PROJECT_BINARY_DIR}/units/text_of_${name}.cpp)
  file(CONFIGURE OUTPUT ${unit} @ONLY CONTENT "#include <string_view>
namespace @namespace@ {
extern const std::string_view @name@_text;
const std::string_view @name@_text = R\"kiln(@text@)kiln\";
}  // namespace @namespace@
")
  set(${variable} ${${variable}} ${unit} PARENT_SCOPE)
endfunction()

# kiln_embed(<variable> <folder>/<name>.hpp): the same for a header of kiln, for code that writes it into generated source.
function(kiln_embed variable header)
  kiln_embed_file(units ${PROJECT_SOURCE_DIR}/include/kiln/${header} kiln::aot)
  set(${variable} ${${variable}} ${units} PARENT_SCOPE)
endfunction()

# kiln_all_targets(<variable>): the compiled libraries there are.
function(kiln_all_targets variable)
  set(found kiln::runtime)
  foreach(name IN ITEMS quantize text generate eigen onnx tensorflow hip interface migraphx)
    if(TARGET kiln::${name})
      list(APPEND found kiln::${name})
    endif()
  endforeach()
  set(${variable} "${found}" PARENT_SCOPE)
endfunction()
