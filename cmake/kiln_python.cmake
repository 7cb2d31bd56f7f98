# The Python package kiln in <build>/python: the compiled module _kiln over kiln's static libraries, and the sources
# beside it. The dynamic loader picks the instruction-set level of libkiln_eigen.so.1 as for any program.

if(NOT KILN_PYTHON)
  return()
endif()
if(NOT KILN_ONNX)
  message(STATUS "KILN_ONNX is OFF: no Python module, whose programs come from ONNX")
  return()
endif()
if(NOT Python3_EXECUTABLE AND EXISTS /usr/bin/python3)
  set(Python3_EXECUTABLE /usr/bin/python3 CACHE FILEPATH "The Python that the module is built for")
endif()
find_package(Python3 3.9 QUIET COMPONENTS Interpreter Development.Module)
find_path(KILN_PYBIND11_INCLUDE_DIR pybind11/pybind11.h)
if(NOT Python3_FOUND OR NOT KILN_PYBIND11_INCLUDE_DIR)
  message(STATUS "Python's headers or pybind11 are missing: no Python module")
  return()
endif()

# How all modules read and show arrays.
kiln_generate_units(array_units interface/python_arrays)
add_library(kiln_python_arrays OBJECT ${array_units})
kiln_own(kiln_python_arrays)
set_target_properties(kiln_python_arrays PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
target_include_directories(kiln_python_arrays SYSTEM PUBLIC ${KILN_PYBIND11_INCLUDE_DIR} ${Python3_INCLUDE_DIRS})
target_link_libraries(kiln_python_arrays PRIVATE kiln::runtime)
target_compile_options(kiln_python_arrays PRIVATE ${KILN_OF_PRECOMPILED})
# pybind11 is read once for all units of all modules
target_precompile_headers(kiln_python_arrays PRIVATE <pybind11/pybind11.h> <pybind11/stl.h> <algorithm> <functional> <map>
                          <memory> <mutex> <optional> <string> <vector>
                          ${PROJECT_SOURCE_DIR}/include/kiln/runtime/dlpack.hpp
                          ${PROJECT_SOURCE_DIR}/include/kiln/runtime/executable.hpp)

# kiln_python_sources(<variable> <folder> <package>): the variable lists the package's sources in <folder>; who depends on
# them has them copied there.
function(kiln_python_sources variable folder package)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${package} ${package}/*.py ${package}/*.pyi ${package}/py.typed)
  set(copies)
  foreach(source IN LISTS sources)
    set(copy ${folder}/${source})
    add_custom_command(OUTPUT ${copy} COMMAND ${CMAKE_COMMAND} -E copy ${package}/${source} ${copy}
                       DEPENDS ${package}/${source} VERBATIM)
    list(APPEND copies ${copy})
  endforeach()
  set(${variable} "${copies}" PARENT_SCOPE)
endfunction()

# kiln_python_extension(<target> <name> <folder> <unit>...): the compiled module <name>, built into <folder>.
function(kiln_python_extension target name folder)
  Python3_add_library(${target} MODULE WITH_SOABI ${ARGN})
  kiln_own(${target})
  target_link_libraries(${target} PRIVATE kiln_python_arrays kiln::interface kiln::onnx kiln::tensorflow kiln::quantize)
  target_precompile_headers(${target} REUSE_FROM kiln_python_arrays)
  target_compile_options(${target} PRIVATE ${KILN_OF_PRECOMPILED})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} CXX_VISIBILITY_PRESET hidden
                        VISIBILITY_INLINES_HIDDEN ON LIBRARY_OUTPUT_DIRECTORY ${folder} INSTALL_RPATH "$ORIGIN")
  # what a module does not use it does not load
  target_link_options(${target} PRIVATE -Wl,--as-needed)
  # An RPATH serves the libraries that its libraries need too: all lie beside the module in a wheel.
  target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL -Wl,--disable-new-dtags)
endfunction()

# kiln_python_module(<target> <name> <folder> <package> <unit>...): such a module, and the target <target>_package, which
# also puts the package's sources there: they stand beside the module, as in an installation. The variable
# <target>_sources lists them there.
function(kiln_python_module target name folder package)
  kiln_python_extension(${target} ${name} ${folder} ${ARGN})
  kiln_python_sources(copies ${folder} ${package})
  add_custom_target(${target}_package ALL DEPENDS ${target} ${copies})
  set(${target}_sources "${copies}" PARENT_SCOPE)
endfunction()

set(KILN_PYTHON_FOLDER ${PROJECT_BINARY_DIR}/python)
kiln_generate_units(python_units interface/python)
kiln_python_module(kiln_python _kiln ${KILN_PYTHON_FOLDER}/kiln ${PROJECT_SOURCE_DIR}/include/kiln/interface/python/kiln
                   ${python_units})

# kiln.torch: plain Python over the module, which imports torch where a program asks for it
kiln_python_sources(torch_sources ${KILN_PYTHON_FOLDER}/kiln/torch
                    ${PROJECT_SOURCE_DIR}/include/kiln/interface/torch/kiln_torch)
add_custom_target(kiln_python_torch ALL DEPENDS ${torch_sources})
add_dependencies(kiln_python_package kiln_python_torch)
install(DIRECTORY ${KILN_PYTHON_FOLDER}/kiln/torch DESTINATION kiln COMPONENT python EXCLUDE_FROM_ALL
        FILES_MATCHING PATTERN "*.py")

# The package torch_migraphx, kiln.torch in role of Torch-MIGraphX's, in a folder of its own as well.
set(KILN_PYTHON_TORCH_MIGRAPHX_FOLDER ${PROJECT_BINARY_DIR}/python_torch_migraphx)
kiln_python_sources(copies ${KILN_PYTHON_TORCH_MIGRAPHX_FOLDER}/torch_migraphx
                    ${PROJECT_SOURCE_DIR}/include/kiln/interface/torch/torch_migraphx)
add_custom_target(kiln_python_torch_migraphx ALL DEPENDS ${copies})
add_dependencies(kiln_python_torch_migraphx kiln_python_package)
install(DIRECTORY ${KILN_PYTHON_TORCH_MIGRAPHX_FOLDER} DESTINATION ${CMAKE_INSTALL_LIBDIR}/kiln
        COMPONENT python_torch_migraphx FILES_MATCHING PATTERN "*.py")

# kiln._genai is a module of its own beside it: who imports kiln alone loads no ICU.
if(TARGET kiln::generate)
  kiln_generate_units(genai_units interface/python_genai)
  kiln_python_extension(kiln_python_genai _genai ${KILN_PYTHON_FOLDER}/kiln ${genai_units})
  target_link_libraries(kiln_python_genai PRIVATE kiln::generate)
  add_dependencies(kiln_python_package kiln_python_genai)
  install(TARGETS kiln_python_genai LIBRARY DESTINATION kiln COMPONENT python EXCLUDE_FROM_ALL)
endif()

# What a wheel holds (cmake/python/kiln_build.py); an installation of kiln leaves it out.
install(TARGETS kiln_python LIBRARY DESTINATION kiln COMPONENT python EXCLUDE_FROM_ALL)
install(FILES ${kiln_python_sources} DESTINATION kiln COMPONENT python EXCLUDE_FROM_ALL)
if(KILN_EIGEN)
  install(FILES $<TARGET_FILE:${KILN_EIGEN_BASE_TARGET}> RENAME $<TARGET_SONAME_FILE_NAME:${KILN_EIGEN_BASE_TARGET}>
          DESTINATION kiln COMPONENT python EXCLUDE_FROM_ALL)
  foreach(target IN LISTS KILN_EIGEN_LEVEL_TARGETS)
    string(REPLACE "kiln_eigen_" "" level ${target})
    install(FILES $<TARGET_FILE:${target}> RENAME $<TARGET_SONAME_FILE_NAME:${target}>
            DESTINATION kiln/glibc-hwcaps/x86-64-${level} COMPONENT python EXCLUDE_FROM_ALL)
  endforeach()
endif()

# The package migraphx, kiln in role of MIGraphX's, in a folder of its own that users name in PYTHONPATH: it shadows
# nothing by accident.
if(TARGET kiln_migraphx)
  set(KILN_PYTHON_MIGRAPHX_FOLDER ${PROJECT_BINARY_DIR}/python_migraphx)
  kiln_generate_units(migraphx_units interface/migraphx/python)
  kiln_python_module(kiln_python_migraphx _migraphx ${KILN_PYTHON_MIGRAPHX_FOLDER}/migraphx
                     ${PROJECT_SOURCE_DIR}/include/kiln/interface/migraphx/python/migraphx ${migraphx_units})
  target_link_libraries(kiln_python_migraphx PRIVATE kiln_migraphx)
  set_target_properties(kiln_python_migraphx PROPERTIES INSTALL_RPATH "$ORIGIN/../../..")
  set(to ${CMAKE_INSTALL_LIBDIR}/kiln/python_migraphx/migraphx)
  install(TARGETS kiln_python_migraphx LIBRARY DESTINATION ${to} COMPONENT python_migraphx)
  install(FILES ${kiln_python_migraphx_sources} DESTINATION ${to} COMPONENT python_migraphx)
  kiln_python_sources(sources ${KILN_PYTHON_MIGRAPHX_FOLDER}/onnx_migraphx
                      ${PROJECT_SOURCE_DIR}/include/kiln/interface/migraphx/python/onnx_migraphx)
  add_custom_target(kiln_python_onnx_migraphx ALL DEPENDS ${sources})
  add_dependencies(kiln_python_migraphx_package kiln_python_onnx_migraphx)
  install(FILES ${sources} DESTINATION ${CMAKE_INSTALL_LIBDIR}/kiln/python_migraphx/onnx_migraphx
          COMPONENT python_migraphx)
endif()

# The package onnxruntime, kiln in role of ONNX Runtime's over its stock library, and onnxruntime_ep_kiln, which names the
# plugin to programs of ONNX Runtime's own package. Both are plain Python.
if(TARGET kiln_onnxruntime_ep)
  set(KILN_PYTHON_ONNXRUNTIME_FOLDER ${PROJECT_BINARY_DIR}/python_onnxruntime)
  set(copies)
  foreach(package IN ITEMS onnxruntime onnxruntime_ep_kiln)
    kiln_python_sources(sources ${KILN_PYTHON_ONNXRUNTIME_FOLDER}/${package}
                        ${PROJECT_SOURCE_DIR}/include/kiln/interface/onnxruntime/python/${package})
    list(APPEND copies ${sources})
  endforeach()
  add_custom_target(kiln_python_onnxruntime_package ALL DEPENDS ${copies})
  install(DIRECTORY ${KILN_PYTHON_ONNXRUNTIME_FOLDER} DESTINATION ${CMAKE_INSTALL_LIBDIR}/kiln
          COMPONENT python_onnxruntime FILES_MATCHING PATTERN "*.py" PATTERN "py.typed")
endif()

# The package onnxruntime_genai, kiln.genai in role of ONNX Runtime GenAI's, in a folder of its own as well.
if(TARGET kiln_python_genai)
  set(KILN_PYTHON_GENAI_FOLDER ${PROJECT_BINARY_DIR}/python_onnxruntime_genai)
  kiln_python_sources(copies ${KILN_PYTHON_GENAI_FOLDER}/onnxruntime_genai
                      ${PROJECT_SOURCE_DIR}/include/kiln/interface/genai/python/onnxruntime_genai)
  add_custom_target(kiln_python_onnxruntime_genai ALL DEPENDS ${copies})
  add_dependencies(kiln_python_onnxruntime_genai kiln_python_package)
  install(DIRECTORY ${KILN_PYTHON_GENAI_FOLDER} DESTINATION ${CMAKE_INSTALL_LIBDIR}/kiln
          COMPONENT python_onnxruntime_genai FILES_MATCHING PATTERN "*.py" PATTERN "py.typed")
endif()
