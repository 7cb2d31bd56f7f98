# Projects that use kiln as a user's would. The sanitizers' flags do not reach them, so those builds leave them out.
if(NOT KILN_HYGIENE OR NOT KILN_ONNX OR NOT KILN_EIGEN)
  return()
endif()
foreach(kind IN ITEMS installed build_tree add_subdirectory)
  add_test(NAME consumer.${kind} COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/run.sh ${kind} ${PROJECT_BINARY_DIR})
  set_tests_properties(consumer.${kind} PROPERTIES LABELS consumer TIMEOUT 900)
endforeach()
