# The importer under libFuzzer: preset fuzz, run by test/fuzz/run.sh.
if(CMAKE_CXX_FLAGS MATCHES "fuzzer-no-link")
  add_executable(fuzz_onnx_import ${CMAKE_CURRENT_LIST_DIR}/onnx_import.cpp)
  kiln_own(fuzz_onnx_import)
  target_link_libraries(fuzz_onnx_import PRIVATE kiln::onnx)
  target_link_options(fuzz_onnx_import PRIVATE -fsanitize=fuzzer)
  set_target_properties(fuzz_onnx_import PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
  return()
endif()

# Damaged saved programs: a few seconds here, many more under sanitizers by test/fuzz/saved_program.sh.
if(TARGET kiln::eigen)
  add_executable(fuzz_saved_program ${CMAKE_CURRENT_LIST_DIR}/saved_program.cpp)
  kiln_own(fuzz_saved_program)
  target_link_libraries(fuzz_saved_program PRIVATE kiln::eigen fmt::fmt)
  set_target_properties(fuzz_saved_program PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
endif()
if(TARGET kiln_program AND TARGET fuzz_saved_program)
  add_test(NAME fuzz.saved_program COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/saved_program.sh $<TARGET_FILE:kiln_program>
                                           $<TARGET_FILE:fuzz_saved_program> 3000)
  set_tests_properties(fuzz.saved_program PROPERTIES LABELS fuzz TIMEOUT 300)
endif()

# Damaged graphs, SavedModels and TFLite files: a few seconds here; under sanitizers `fuzz_tensorflow_import 10000 1` and
# `fuzz_tflite_import 10000 1 FILE...` of the preset asan.
foreach(format IN ITEMS tensorflow tflite)
  add_executable(fuzz_${format}_import ${CMAKE_CURRENT_LIST_DIR}/${format}_import.cpp)
  kiln_test_settings(fuzz_${format}_import)
  target_link_libraries(fuzz_${format}_import PRIVATE kiln::tensorflow)
  set_target_properties(fuzz_${format}_import PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
endforeach()
find_library(KILN_FLATBUFFERS_LIBRARY flatbuffers REQUIRED)
target_include_directories(fuzz_tflite_import SYSTEM PRIVATE ${KILN_FLATBUFFERS_INCLUDE_DIR})
target_link_libraries(fuzz_tflite_import PRIVATE ${KILN_FLATBUFFERS_LIBRARY})
add_test(NAME fuzz.tensorflow_import COMMAND fuzz_tensorflow_import 3000 1)
add_test(NAME fuzz.tflite_import COMMAND fuzz_tflite_import 3000 1 ${PROJECT_SOURCE_DIR}/examples/models/digits/model.tflite)
set_tests_properties(fuzz.tensorflow_import fuzz.tflite_import PROPERTIES LABELS fuzz TIMEOUT 300)
