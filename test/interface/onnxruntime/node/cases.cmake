# kiln's package for Node in onnxruntime-node. Node itself is not built with sanitizers.
if(NOT TARGET kiln_onnxruntime_node OR CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  return()
endif()
add_executable(test_node_job ${CMAKE_CURRENT_LIST_DIR}/job.cpp)
target_include_directories(test_node_job PRIVATE ${PROJECT_SOURCE_DIR}/include)
target_compile_features(test_node_job PRIVATE cxx_std_20)
target_compile_options(test_node_job PRIVATE -Wall -Wextra -Werror)
add_test(NAME interface_onnxruntime.node_job COMMAND test_node_job)
set_tests_properties(interface_onnxruntime.node_job PROPERTIES LABELS interface_onnxruntime)

add_test(NAME interface_onnxruntime.ep_node
         COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/ep_node.sh ${CMAKE_CURRENT_LIST_DIR}/ep_node.mjs
                 $<TARGET_FILE_DIR:kiln_onnxruntime_node>
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(interface_onnxruntime.ep_node PROPERTIES LABELS "interface_onnxruntime;peer" TIMEOUT 300
                     SKIP_RETURN_CODE 77 FIXTURES_REQUIRED peer)

if(KILN_BUILD_EXAMPLES)
  add_test(NAME example.onnxruntime_digits_js
           COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/ep_node.sh ${PROJECT_SOURCE_DIR}/examples/onnxruntime/digits.mjs
                   $<TARGET_FILE_DIR:kiln_onnxruntime_node>
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(example.onnxruntime_digits_js PROPERTIES LABELS "example;peer" TIMEOUT 300 SKIP_RETURN_CODE 77
                       FIXTURES_REQUIRED peer)
endif()
