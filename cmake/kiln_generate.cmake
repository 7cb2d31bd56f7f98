# kiln::generate: a static library that continues texts with language models: configuration, caches, search, generator.

kiln_generate_units(generate_units generate)
kiln_add_library(generate ${generate_units})
kiln_precompile(kiln_generate)
target_link_libraries(kiln_generate PUBLIC kiln::runtime kiln::text PRIVATE kiln::onnx kiln::quantize)
target_include_directories(
  kiln_generate SYSTEM PRIVATE ${KILN_FLATBUFFERS_INCLUDE_DIR}
                               $<TARGET_PROPERTY:nlohmann_json::nlohmann_json,INTERFACE_INCLUDE_DIRECTORIES>)
