# The export to C++, as a user meets it.
if(TARGET kiln_program AND KILN_HYGIENE)
  add_test(NAME cpp_export.export COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/export.sh $<TARGET_FILE:kiln_program>
                                     ${PROJECT_BINARY_DIR})
  set_tests_properties(cpp_export.export PROPERTIES LABELS cpp_export TIMEOUT 300)
endif()
