# kiln::migraphx: a static library of MIGraphX's objects over kiln's, for the interfaces that speak its words.
# kiln::migraphx_c: libmigraphx_c.so.3, MIGraphX's C interface with all of kiln in it, in a folder of its own so that it
# shadows nothing by accident. Its headers are opted into by their include path.

if(NOT KILN_MIGRAPHX)
  return()
endif()
if(NOT KILN_ONNX)
  message(STATUS "KILN_ONNX is OFF: no MIGraphX interface, whose programs come from ONNX")
  return()
endif()

kiln_generate_units(migraphx_units interface/migraphx)
kiln_add_library(migraphx ${migraphx_units})
kiln_precompile(kiln_migraphx)
target_link_libraries(kiln_migraphx PUBLIC kiln::interface kiln::onnx kiln::tensorflow kiln::quantize)
target_include_directories(
  kiln_migraphx SYSTEM PUBLIC $<BUILD_INTERFACE:$<TARGET_PROPERTY:nlohmann_json::nlohmann_json,INTERFACE_INCLUDE_DIRECTORIES>>)

kiln_generate_units(migraphx_c_units interface/migraphx/c)
add_library(kiln_migraphx_c SHARED ${migraphx_c_units})
add_library(kiln::migraphx_c ALIAS kiln_migraphx_c)
kiln_own(kiln_migraphx_c)
set(map ${PROJECT_SOURCE_DIR}/cmake/libmigraphx_c.map)
set_target_properties(kiln_migraphx_c PROPERTIES EXPORT_NAME migraphx_c OUTPUT_NAME migraphx_c VERSION 3.0 SOVERSION 3
                      CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
                      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/migraphx
                      BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/..;$ORIGIN/../.." LINK_DEPENDS ${map})
set(migraphx_include include/kiln/interface/migraphx/include)
target_include_directories(
  kiln_migraphx_c PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/${migraphx_include}>
                         $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/kiln/interface/migraphx/include>)
target_link_libraries(kiln_migraphx_c PRIVATE kiln::migraphx)
target_link_options(kiln_migraphx_c PRIVATE -Wl,--version-script=${map})
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  target_link_options(kiln_migraphx_c PRIVATE -Wl,-z,defs)
endif()
