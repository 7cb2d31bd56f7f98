# A static program is built from one translation unit with kiln's headers alone: no library, no exceptions, no heap.
set(static_alone_compilers ${CMAKE_CXX_COMPILER})
if(KILN_HYGIENE)
  list(APPEND static_alone_compilers clang++-16)
endif()
add_test(NAME static_program.alone COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/alone.sh ${static_alone_compilers})
set_tests_properties(static_program.alone PROPERTIES LABELS static_program TIMEOUT 240 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
