# Ranges equal those of the same algorithms in numpy.
add_executable(choose_ranges ${CMAKE_CURRENT_LIST_DIR}/alone/choose_ranges.cpp)
kiln_own(choose_ranges)
target_link_libraries(choose_ranges PRIVATE kiln::quantize)
set_target_properties(choose_ranges PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)

# The same Python as the package's.
if(NOT Python3_EXECUTABLE AND EXISTS /usr/bin/python3)
  set(Python3_EXECUTABLE /usr/bin/python3)
endif()
find_package(Python3 QUIET COMPONENTS Interpreter)
execute_process(COMMAND ${Python3_EXECUTABLE} -c "import numpy" RESULT_VARIABLE numpy_missing ERROR_QUIET)
if(numpy_missing)
  message(WARNING "SKIPPED: ${Python3_EXECUTABLE} has no numpy: quantize.calibrators does not run")
  return()
endif()
set(folder ${PROJECT_BINARY_DIR}/test/calibrators)
file(MAKE_DIRECTORY ${folder})
add_test(NAME quantize.calibrators
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/calibrators.py $<TARGET_FILE:choose_ranges> ${folder})
set_tests_properties(quantize.calibrators PROPERTIES LABELS quantize TIMEOUT 300)
