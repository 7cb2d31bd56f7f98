# Models of one operator each beside tfjs and TFLite's interpreter, which npm delivers (cmake/peer.sh).
add_executable(peer_cases ${CMAKE_CURRENT_LIST_DIR}/alone/peer_cases.cpp)
kiln_test_settings(peer_cases)
target_link_libraries(peer_cases PRIVATE kiln::tensorflow kiln::eigen ${CMAKE_DL_LIBS})
set_target_properties(peer_cases PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
foreach(peer IN ITEMS tfjs tflite)
  add_test(NAME tensorflow.${peer}_cases COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/${peer}_cases.sh $<TARGET_FILE:peer_cases>)
  set_tests_properties(tensorflow.${peer}_cases PROPERTIES LABELS tensorflow TIMEOUT 300 SKIP_RETURN_CODE 77)
endforeach()

# The program takes graphs as it takes ONNX files, and names what it cannot read with exit status 2.
if(TARGET kiln_program)
  add_test(NAME tensorflow.program COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/program.sh $<TARGET_FILE:kiln_program>
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(tensorflow.program PROPERTIES LABELS tensorflow)
endif()

# Tests write TFLite's files as flatc does.
find_library(KILN_FLATBUFFERS_LIBRARY flatbuffers REQUIRED)
target_include_directories(test_tensorflow SYSTEM PRIVATE ${KILN_FLATBUFFERS_INCLUDE_DIR})
target_link_libraries(test_tensorflow PRIVATE ${KILN_FLATBUFFERS_LIBRARY})
