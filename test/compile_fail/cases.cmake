# Each *.cpp here is a program that must not compile, with the text of its first error on its first line.
file(GLOB rejected CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_LIST_DIR} ${CMAKE_CURRENT_LIST_DIR}/*.cpp)
set(compilers ${CMAKE_CXX_COMPILER})
if(KILN_HYGIENE)
  list(APPEND compilers clang++-16)
endif()
foreach(source IN LISTS rejected)
  string(REGEX REPLACE "\\.cpp$" "" name ${source})
  add_test(NAME compile_fail.${name}
           COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/run.sh ${CMAKE_CURRENT_LIST_DIR}/${source} ${compilers})
  set_tests_properties(compile_fail.${name} PROPERTIES LABELS compile_fail TIMEOUT 300 SKIP_RETURN_CODE 77)
endforeach()
