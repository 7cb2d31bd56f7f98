# kiln_add_model(<target> <model.onnx> [NAME <name>] [DIMS <dim>=<n>...]): at build time the program kiln writes the model as
# C++ (see kiln export), and <target> becomes a library of it: its users include <name>.hpp, which is <target>.hpp unless
# told. The project needs the language ASM, which embeds the weights. KILN_EXPORT_ARCH is the instruction set, as -march
# takes it (native).
function(kiln_add_model target model)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "NAME" "DIMS")
  if(NOT CMAKE_ASM_COMPILER)
    message(FATAL_ERROR "kiln_add_model: the project needs the language ASM: project(... LANGUAGES CXX ASM)")
  endif()
  if(NOT arg_NAME)
    set(arg_NAME ${target})
  endif()
  if(NOT KILN_EXPORT_ARCH)
    set(KILN_EXPORT_ARCH native)
  endif()
  if(TARGET kiln_program)
    set(program $<TARGET_FILE:kiln_program>)
    set(depends kiln_program)
  else()
    find_program(KILN_PROGRAM kiln HINTS ${kiln_PROGRAM_DIR} REQUIRED)
    set(program ${KILN_PROGRAM})
    set(depends ${KILN_PROGRAM})
  endif()
  get_filename_component(model ${model} ABSOLUTE)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target}_model)
  set(dims)
  foreach(dim IN LISTS arg_DIMS)
    list(APPEND dims --dim ${dim})
  endforeach()
  set(files ${folder}/${arg_NAME}.hpp ${folder}/${arg_NAME}_weights.S ${folder}/${arg_NAME}_weights.bin)
  add_custom_command(OUTPUT ${files} COMMAND ${program} export ${model} --cpp ${folder} --name ${arg_NAME} ${dims}
                     DEPENDS ${model} ${depends} COMMENT "Writing ${arg_NAME} as C++" VERBATIM)
  add_library(${target} STATIC ${files})
  set_source_files_properties(${folder}/${arg_NAME}_weights.S PROPERTIES
                              COMPILE_OPTIONS "-I${folder}" OBJECT_DEPENDS ${folder}/${arg_NAME}_weights.bin)
  target_include_directories(${target} PUBLIC ${folder})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_options(${target} PUBLIC
    $<$<COMPILE_LANGUAGE:CXX>:-O3 -march=${KILN_EXPORT_ARCH} -fno-math-errno -fno-trapping-math -ffp-contract=fast>
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-psabi>)
endfunction()
