# kiln::quantize: a static library that measures a program's values and derives from them how it is quantized.

find_path(KILN_FLATBUFFERS_INCLUDE_DIR flatbuffers/flatbuffers.h REQUIRED
          DOC "FlatBuffers 2.0 or later (Debian: libflatbuffers-dev); headers alone")
kiln_generate_units(quantize_units quantize)
kiln_add_library(quantize ${quantize_units})
kiln_precompile(kiln_quantize)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
target_link_libraries(kiln_quantize PUBLIC kiln::runtime)
target_include_directories(
  kiln_quantize SYSTEM PRIVATE ${KILN_FLATBUFFERS_INCLUDE_DIR}
                               $<TARGET_PROPERTY:nlohmann_json::nlohmann_json,INTERFACE_INCLUDE_DIRECTORIES>
                               $<TARGET_PROPERTY:Eigen3::Eigen,INTERFACE_INCLUDE_DIRECTORIES>)
