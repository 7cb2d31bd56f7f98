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
target_link_libraries(kiln_migraphx PUBLIC kiln::interface kiln::onnx)
target_include_directories(
  kiln_migraphx SYSTEM PUBLIC $<BUILD_INTERFACE:$<TARGET_PROPERTY:nlohmann_json::nlohmann_json,INTERFACE_INCLUDE_DIRECTORIES>>)
