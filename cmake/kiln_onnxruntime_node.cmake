# kiln_onnxruntime_node: a package for Node in a folder of the build tree, and of an installation beside the library that
# stands for ONNX Runtime's. Its addon has the shim in itself; Node-API's functions come from the process that loads it.

if(NOT TARGET kiln_onnxruntime_shim)
  return()
endif()

kiln_generate_units(node_units interface/onnxruntime/node interface/onnxruntime/node/addon)
add_library(kiln_onnxruntime_node MODULE ${node_units})
kiln_own(kiln_onnxruntime_node)
set(node_package ${PROJECT_SOURCE_DIR}/include/kiln/interface/onnxruntime/node/package)
set(node_folder ${PROJECT_BINARY_DIR}/lib/onnxruntime/node)
set_target_properties(kiln_onnxruntime_node PROPERTIES PREFIX "" SUFFIX ".node" OUTPUT_NAME kiln_onnxruntime
                      CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON LIBRARY_OUTPUT_DIRECTORY ${node_folder})
target_include_directories(kiln_onnxruntime_node PRIVATE ${PROJECT_SOURCE_DIR}/${onnxruntime_include})
target_link_libraries(kiln_onnxruntime_node PRIVATE kiln_onnxruntime_calls)
target_link_options(kiln_onnxruntime_node PRIVATE -Wl,--gc-sections -Wl,--exclude-libs,ALL)
add_dependencies(kiln_onnxruntime_node kiln_onnxruntime_ep)
foreach(file IN ITEMS index.js index.d.ts)
  configure_file(${node_package}/${file} ${node_folder}/${file} COPYONLY)
endforeach()
configure_file(${node_package}/package.json ${node_folder}/package.json @ONLY)
