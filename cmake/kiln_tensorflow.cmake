# kiln::tensorflow: the importer of TensorFlow's graphs, a static library.

kiln_generate_units(tensorflow_units tensorflow)
kiln_add_library(tensorflow ${tensorflow_units})
kiln_precompile(kiln_tensorflow)
target_link_libraries(kiln_tensorflow PUBLIC kiln::onnx kiln::runtime)

# Tables of variables may be compressed. The one unit that reads them is told whether libsnappy is there.
find_path(KILN_SNAPPY_INCLUDE_DIR snappy-c.h)
find_library(KILN_SNAPPY_LIBRARY snappy)
set(usable 0)
if(KILN_SNAPPY_INCLUDE_DIR AND KILN_SNAPPY_LIBRARY)
  set(usable 1)
  target_link_libraries(kiln_tensorflow PRIVATE ${KILN_SNAPPY_LIBRARY})
else()
  message(STATUS "libsnappy is missing: compressed tables of a SavedModel's variables are refused")
endif()
set_property(SOURCE ${PROJECT_BINARY_DIR}/units/tensorflow_bundle_table.cpp
             PROPERTY COMPILE_DEFINITIONS KILN_SNAPPY=${usable})
