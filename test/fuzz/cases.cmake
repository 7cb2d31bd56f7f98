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

# Damaged graphs and SavedModels of TensorFlow: a few seconds here; under sanitizers
# `fuzz_tensorflow_import 10000 1` of the preset asan.
if(TARGET kiln::eigen)
  add_executable(fuzz_tensorflow_import ${CMAKE_CURRENT_LIST_DIR}/tensorflow_import.cpp)
  kiln_test_settings(fuzz_tensorflow_import)
  target_link_libraries(fuzz_tensorflow_import PRIVATE kiln::tensorflow kiln::eigen)
  set_target_properties(fuzz_tensorflow_import PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
  add_test(NAME fuzz.tensorflow_import COMMAND fuzz_tensorflow_import 3000 1)
  set_tests_properties(fuzz.tensorflow_import PROPERTIES LABELS fuzz TIMEOUT 300)
endif()
