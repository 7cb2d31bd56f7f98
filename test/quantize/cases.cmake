# Ranges equal those of the same algorithms in numpy.
add_executable(choose_ranges ${CMAKE_CURRENT_LIST_DIR}/alone/choose_ranges.cpp)
kiln_own(choose_ranges)
target_link_libraries(choose_ranges PRIVATE kiln::quantize)
set_target_properties(choose_ranges PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)

find_package(Python3 COMPONENTS Interpreter)
execute_process(COMMAND ${Python3_EXECUTABLE} -c "import numpy" RESULT_VARIABLE no_numpy ERROR_QUIET)
if(NOT Python3_FOUND OR no_numpy)
  message(WARNING "SKIPPED: Python's numpy is missing: quantize.calibrators does not run")
  return()
endif()
set(folder ${PROJECT_BINARY_DIR}/test/calibrators)
file(MAKE_DIRECTORY ${folder})
add_test(NAME quantize.calibrators
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/calibrators.py $<TARGET_FILE:choose_ranges> ${folder})
set_tests_properties(quantize.calibrators PROPERTIES LABELS quantize TIMEOUT 120)
