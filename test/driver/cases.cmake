# test_driver holds the program's own pieces beside the tests, and the program itself is run by some of them.
if(NOT TARGET kiln_program)
  message(WARNING "SKIPPED: the program kiln is not built, so test/driver does not run")
  set_target_properties(test_driver PROPERTIES EXCLUDE_FROM_ALL ON)
  return()
endif()
foreach(piece IN ITEMS cases compare files inputs isolate npy progress statistics)
  target_sources(test_driver PRIVATE ${PROJECT_SOURCE_DIR}/examples/driver/${piece}.cpp)
endforeach()
target_include_directories(test_driver PRIVATE ${PROJECT_SOURCE_DIR}/examples)
target_compile_definitions(test_driver PRIVATE KILN_PROGRAM="$<TARGET_FILE:kiln_program>")
add_dependencies(test_driver kiln_program)

# The bundled models on both targets.
foreach(target IN ITEMS reference eigen)
  add_test(NAME driver.digits.${target} COMMAND kiln_program test ${PROJECT_SOURCE_DIR}/examples/models/digits
                                                --target ${target})
  add_test(NAME driver.scripture.${target} COMMAND kiln_program test ${PROJECT_SOURCE_DIR}/examples/models/scripture
                                                   --target ${target})
  set_tests_properties(driver.digits.${target} driver.scripture.${target} PROPERTIES LABELS driver TIMEOUT 120)
endforeach()

# onnx.checker reads what kiln quantize writes.
if(NOT Python3_EXECUTABLE AND EXISTS /usr/bin/python3)
  set(Python3_EXECUTABLE /usr/bin/python3)
endif()
find_package(Python3 QUIET COMPONENTS Interpreter)
execute_process(COMMAND ${Python3_EXECUTABLE} -c "import onnx" RESULT_VARIABLE onnx_missing ERROR_QUIET)
if(onnx_missing)
  message(WARNING "SKIPPED: ${Python3_EXECUTABLE} has no onnx: driver.checker does not run")
  return()
endif()
set(folder ${PROJECT_BINARY_DIR}/test/checker)
file(MAKE_DIRECTORY ${folder}/samples)
configure_file(${PROJECT_SOURCE_DIR}/examples/models/digits/calibration.pb ${folder}/samples/image.pb COPYONLY)
add_test(NAME driver.checker
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/checker.py $<TARGET_FILE:kiln_program>
                 ${PROJECT_SOURCE_DIR}/examples/models/digits/model.onnx ${folder}/samples ${folder})
set_tests_properties(driver.checker PROPERTIES LABELS driver TIMEOUT 120)
