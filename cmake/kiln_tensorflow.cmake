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
