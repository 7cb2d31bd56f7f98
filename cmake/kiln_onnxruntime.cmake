# kiln::onnxruntime: a static library of what speaks with ONNX Runtime.
# kiln::onnxruntime_ep: libkiln_onnxruntime_ep.so, a plugin execution provider for ONNX Runtime 1.24 and later, with all of
# kiln in it. It exports the two functions that ONNX Runtime looks for and those of options_c.h, and links nothing of ONNX
# Runtime.

if(NOT KILN_ONNXRUNTIME)
  return()
endif()
if(NOT KILN_ONNX)
  message(STATUS "KILN_ONNX is OFF: no plugin for ONNX Runtime, whose graphs are ONNX's")
  return()
endif()

kiln_generate_units(onnxruntime_units interface/onnxruntime)
kiln_add_library(onnxruntime ${onnxruntime_units})
kiln_precompile(kiln_onnxruntime)
target_link_libraries(kiln_onnxruntime PUBLIC kiln::interface kiln::onnx kiln::quantize)
target_include_directories(
  kiln_onnxruntime SYSTEM PRIVATE $<TARGET_PROPERTY:nlohmann_json::nlohmann_json,INTERFACE_INCLUDE_DIRECTORIES>)

kiln_generate_units(plugin_units interface/onnxruntime/plugin)
add_library(kiln_onnxruntime_ep MODULE ${plugin_units})
add_library(kiln::onnxruntime_ep ALIAS kiln_onnxruntime_ep)
kiln_own(kiln_onnxruntime_ep)
set(map ${PROJECT_SOURCE_DIR}/cmake/libkiln_onnxruntime_ep.map)
set_target_properties(kiln_onnxruntime_ep PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
                      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib BUILD_WITH_INSTALL_RPATH ON
                      INSTALL_RPATH "$ORIGIN" LINK_DEPENDS ${map})
target_link_libraries(kiln_onnxruntime_ep PRIVATE kiln::onnxruntime)
# It stays loaded when ONNX Runtime lets go of it: tables that live as long as the process serve the next registration.
target_link_options(kiln_onnxruntime_ep PRIVATE -Wl,--version-script=${map} -Wl,-z,nodelete)
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  target_link_options(kiln_onnxruntime_ep PRIVATE -Wl,-z,defs)
endif()
