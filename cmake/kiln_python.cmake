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

kiln_generate_units(python_units interface/python)
Python3_add_library(kiln_python MODULE WITH_SOABI ${python_units})
kiln_own(kiln_python)
target_include_directories(kiln_python SYSTEM PRIVATE ${KILN_PYBIND11_INCLUDE_DIR})
target_link_libraries(kiln_python PRIVATE kiln::interface kiln::onnx)
set(KILN_PYTHON_FOLDER ${PROJECT_BINARY_DIR}/python)
set_target_properties(kiln_python PROPERTIES OUTPUT_NAME _kiln CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
                      LIBRARY_OUTPUT_DIRECTORY ${KILN_PYTHON_FOLDER}/kiln INSTALL_RPATH "$ORIGIN")
# An RPATH serves the libraries that its libraries need too: all lie beside the module in a wheel.
target_link_options(kiln_python PRIVATE -Wl,--exclude-libs,ALL -Wl,--disable-new-dtags)

# The sources stand beside the module, as in an installation.
set(from ${PROJECT_SOURCE_DIR}/include/kiln/interface/python/kiln)
file(GLOB python_sources CONFIGURE_DEPENDS RELATIVE ${from} ${from}/*.py ${from}/*.pyi ${from}/py.typed)
set(python_copies)
foreach(source IN LISTS python_sources)
  set(copy ${KILN_PYTHON_FOLDER}/kiln/${source})
  add_custom_command(OUTPUT ${copy} COMMAND ${CMAKE_COMMAND} -E copy ${from}/${source} ${copy} DEPENDS ${from}/${source}
                     VERBATIM)
  list(APPEND python_copies ${copy})
endforeach()
add_custom_target(kiln_python_package ALL DEPENDS kiln_python ${python_copies})

# What a wheel holds (cmake/python/kiln_build.py); an installation of kiln leaves it out.
install(TARGETS kiln_python LIBRARY DESTINATION kiln COMPONENT python EXCLUDE_FROM_ALL)
install(FILES ${python_copies} DESTINATION kiln COMPONENT python EXCLUDE_FROM_ALL)
if(KILN_EIGEN)
  install(FILES $<TARGET_FILE:${KILN_EIGEN_BASE_TARGET}> RENAME $<TARGET_SONAME_FILE_NAME:${KILN_EIGEN_BASE_TARGET}>
          DESTINATION kiln COMPONENT python EXCLUDE_FROM_ALL)
  foreach(target IN LISTS KILN_EIGEN_LEVEL_TARGETS)
    string(REPLACE "kiln_eigen_" "" level ${target})
    install(FILES $<TARGET_FILE:${target}> RENAME $<TARGET_SONAME_FILE_NAME:${target}>
            DESTINATION kiln/glibc-hwcaps/x86-64-${level} COMPONENT python EXCLUDE_FROM_ALL)
  endforeach()
endif()
