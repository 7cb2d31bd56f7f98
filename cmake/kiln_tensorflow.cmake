# kiln::tensorflow: the importer of TensorFlow's graphs and of TFLite's files, a static library.

find_path(KILN_FLATBUFFERS_INCLUDE_DIR flatbuffers/flatbuffers.h REQUIRED
          DOC "FlatBuffers 2.0 or later (Debian: libflatbuffers-dev); headers alone")
find_program(KILN_FLATC flatc REQUIRED DOC "FlatBuffers' compiler (Debian: flatbuffers-compiler)")
set(description ${PROJECT_SOURCE_DIR}/include/kiln/tensorflow/impl/tflite/tflite_file.fbs)
set(folder ${PROJECT_BINARY_DIR}/tflite_file)
set(KILN_TFLITE_FILE ${folder}/tflite_file_generated.h)
file(MAKE_DIRECTORY ${folder})
add_custom_command(OUTPUT ${KILN_TFLITE_FILE} COMMAND ${KILN_FLATC} --cpp --scoped-enums --reflect-names -o ${folder} ${description}
                   DEPENDS ${description} VERBATIM)
kiln_generate_units(tensorflow_units tensorflow)
kiln_add_library(tensorflow ${tensorflow_units} ${KILN_TFLITE_FILE})
kiln_precompile(kiln_tensorflow)
target_include_directories(kiln_tensorflow SYSTEM PRIVATE ${folder} ${KILN_FLATBUFFERS_INCLUDE_DIR})
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
