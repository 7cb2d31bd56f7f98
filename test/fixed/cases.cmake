# A static program is built from one translation unit with kiln's headers alone: no library, no exceptions, no heap.
set(static_alone_compilers ${CMAKE_CXX_COMPILER})
if(KILN_HYGIENE)
  list(APPEND static_alone_compilers clang++-16)
endif()
add_test(NAME fixed.alone COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/alone.sh ${static_alone_compilers})
set_tests_properties(fixed.alone PROPERTIES LABELS fixed TIMEOUT 240 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})

# The export to C++, as a user meets it.
if(TARGET kiln_program AND KILN_HYGIENE)
  add_test(NAME fixed.export COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/export.sh $<TARGET_FILE:kiln_program>
                                     ${PROJECT_BINARY_DIR})
  set_tests_properties(fixed.export PROPERTIES LABELS fixed TIMEOUT 300)
endif()
