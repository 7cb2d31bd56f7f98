# kiln::text: a static library with tokenizers and chat templates; it knows nothing of programs.

find_package(ICU 70 REQUIRED COMPONENTS uc)
find_path(KILN_PCRE2_INCLUDE_DIR pcre2.h REQUIRED DOC "PCRE2 10.40 or later (Debian: libpcre2-dev)")
find_library(KILN_PCRE2_LIBRARY pcre2-8 REQUIRED)
kiln_generate_units(text_units text)
kiln_add_library(text ${text_units})
target_compile_options(kiln_text PRIVATE ${KILN_OF_LARGE})
target_link_libraries(kiln_text PUBLIC kiln::kiln PRIVATE kiln::runtime ICU::uc ${KILN_PCRE2_LIBRARY})
target_include_directories(
  kiln_text SYSTEM PRIVATE ${KILN_PCRE2_INCLUDE_DIR}
                           $<TARGET_PROPERTY:nlohmann_json::nlohmann_json,INTERFACE_INCLUDE_DIRECTORIES>)
