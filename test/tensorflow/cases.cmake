# Graphs of one operator each beside tfjs, which npm delivers (cmake/peer.sh tensorflow).
add_executable(tfjs_cases ${CMAKE_CURRENT_LIST_DIR}/alone/tfjs_cases.cpp)
kiln_test_settings(tfjs_cases)
target_link_libraries(tfjs_cases PRIVATE kiln::tensorflow kiln::eigen ${CMAKE_DL_LIBS})
set_target_properties(tfjs_cases PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
add_test(NAME tensorflow.tfjs_cases COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/tfjs_cases.sh $<TARGET_FILE:tfjs_cases>)
set_tests_properties(tensorflow.tfjs_cases PROPERTIES LABELS tensorflow TIMEOUT 300 SKIP_RETURN_CODE 77)

# The program takes graphs as it takes ONNX files, and names what it cannot read with exit status 2.
if(TARGET kiln_program)
  add_test(NAME tensorflow.program COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/program.sh $<TARGET_FILE:kiln_program>
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(tensorflow.program PROPERTIES LABELS tensorflow)
endif()
