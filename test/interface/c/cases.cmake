# The C interface: programs in C11, the list of exported symbols, loading and unloading, valgrind.
if(NOT TARGET kiln_c)
  return()
endif()
set(here ${CMAKE_CURRENT_LIST_DIR})

function(kiln_c_case name)
  add_test(NAME interface_c.${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(interface_c.${name} PROPERTIES LABELS interface_c TIMEOUT 300 SKIP_RETURN_CODE 77)
endfunction()

set(arguments_of_objects ${PROJECT_BINARY_DIR}/test/written.pb)
set(arguments_of_reload $<TARGET_FILE:kiln_c>)
foreach(name IN ITEMS digits statuses custom_op dlpack objects threads reload)
  add_executable(test_c_${name} ${here}/${name}.c)
  kiln_own_c(test_c_${name})
  target_link_libraries(test_c_${name} PRIVATE m)
  set_target_properties(test_c_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
  kiln_c_case(${name} $<TARGET_FILE:test_c_${name}> ${arguments_of_${name}})
  # threads spin too long there, and digits has the same code
  if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize" AND NOT name STREQUAL "threads")
    kiln_c_case(valgrind_${name} bash ${here}/valgrind.sh $<TARGET_FILE:test_c_${name}> ${arguments_of_${name}})
    set_tests_properties(interface_c.valgrind_${name} PROPERTIES TIMEOUT 900)
  endif()
endforeach()
# It opens the library itself, by its path, and is linked with nothing of kiln.
set_target_properties(test_c_reload PROPERTIES LINK_LIBRARIES "")
target_include_directories(test_c_reload PRIVATE ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(test_c_reload PRIVATE ${CMAKE_DL_LIBS})
add_dependencies(test_c_reload kiln_c)

kiln_c_case(symbols bash ${here}/symbols.sh $<TARGET_FILE:kiln_c>)
if(KILN_HYGIENE)
  kiln_c_case(consumer bash ${here}/consumer.sh ${PROJECT_BINARY_DIR})
  set_tests_properties(interface_c.consumer PROPERTIES TIMEOUT 900)
endif()

# Both ways in one process: what libkiln.so holds and what the test links do not meet.
target_link_libraries(test_interface_c PRIVATE kiln::c)
