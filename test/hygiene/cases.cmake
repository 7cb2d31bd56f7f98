# Cases about the sources themselves; 77 is a skip, said aloud.
if(NOT KILN_HYGIENE)
  return()
endif()

set(here ${CMAKE_CURRENT_LIST_DIR})
function(kiln_hygiene_case name timeout)
  add_test(NAME hygiene.${name} COMMAND bash ${ARGN})
  math(EXPR cost "${timeout} / 10")  # long ones first: the last folder's would end alone
  set_tests_properties(hygiene.${name} PROPERTIES LABELS hygiene TIMEOUT ${timeout} SKIP_RETURN_CODE 77 COST ${cost})
endfunction()

kiln_hygiene_case(format 300 ${here}/format.sh)
kiln_hygiene_case(layers 120 ${here}/layers.sh)
kiln_hygiene_case(words 120 ${here}/words.sh)
kiln_hygiene_case(temporary_files 120 ${here}/temporary_files.sh)
kiln_hygiene_case(tidy 600 ${here}/tidy.sh)
kiln_hygiene_case(reach 120 ${here}/reach.sh ${CMAKE_CXX_COMPILER})
kiln_hygiene_case(changed_since 120 ${here}/changed_since.sh)
kiln_hygiene_case(lone_headers 1200 ${here}/lone_headers.sh ${CMAKE_CXX_COMPILER} ${PROJECT_BINARY_DIR}/lone_headers/own)
# What users' units include, by kiln.hpp and by the units that kiln writes; the preset clang compiles the rest.
kiln_hygiene_case(lone_headers_clang 1200 ${here}/lone_headers.sh clang++-16 ${PROJECT_BINARY_DIR}/lone_headers/clang
                  static_program cpp_export)
set_tests_properties(hygiene.lone_headers hygiene.lone_headers_clang PROPERTIES PROCESSORS 2)
kiln_hygiene_case(compile_time 300 ${here}/compile_time.sh ${CMAKE_CXX_COMPILER})
set_tests_properties(hygiene.compile_time PROPERTIES RUN_SERIAL ON)
kiln_hygiene_case(compile_counts 600 ${PROJECT_SOURCE_DIR}/bench/compile/measure.sh --check)
set_tests_properties(hygiene.compile_counts PROPERTIES PROCESSORS 2)

# The Eigen target's tests once more, at each instruction-set level.
foreach(target IN ITEMS test_eigen test_backend_eigen)
  if(TARGET ${target} AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    foreach(level IN LISTS KILN_ISA_LEVELS)
      kiln_hygiene_case(${target}.${level} 600 ${here}/level.sh ${level} $<TARGET_FILE:${target}> --gtest_brief=1)
      set_tests_properties(hygiene.${target}.${level} PROPERTIES WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    endforeach()
  endif()
endforeach()
