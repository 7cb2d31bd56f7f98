# The importer under libFuzzer: preset fuzz, run by test/fuzz/run.sh.
if(CMAKE_CXX_FLAGS MATCHES "fuzzer-no-link")
  add_executable(fuzz_onnx_import ${CMAKE_CURRENT_LIST_DIR}/onnx_import.cpp)
  kiln_own(fuzz_onnx_import)
  target_link_libraries(fuzz_onnx_import PRIVATE kiln::onnx)
  target_link_options(fuzz_onnx_import PRIVATE -fsanitize=fuzzer)
  set_target_properties(fuzz_onnx_import PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
endif()
