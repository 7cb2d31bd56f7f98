# kiln::tensorflow: the importer of TensorFlow's graphs, a static library.

kiln_generate_units(tensorflow_units tensorflow)
kiln_add_library(tensorflow ${tensorflow_units})
kiln_precompile(kiln_tensorflow)
target_link_libraries(kiln_tensorflow PUBLIC kiln::onnx kiln::runtime)
