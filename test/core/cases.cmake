# core/math.hpp without a standard library, for the host and for each kind of device; 77 is a skip, said aloud.
foreach(case IN ITEMS host amd nvidia)
  add_test(NAME core.freestanding.${case} COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/freestanding.sh ${case} ${CMAKE_CXX_COMPILER})
  set_tests_properties(core.freestanding.${case} PROPERTIES LABELS core TIMEOUT 180 SKIP_RETURN_CODE 77)
endforeach()
