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
