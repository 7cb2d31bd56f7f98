# The package onnxruntime as its users have it: PYTHONPATH alone, over the stock library that cmake/peer.sh gets.
if(TARGET kiln_python_onnxruntime_package)
  execute_process(COMMAND ${Python3_EXECUTABLE} -c "import numpy" RESULT_VARIABLE numpy_missing ERROR_QUIET)
  if(numpy_missing)
    message(WARNING "SKIPPED: ${Python3_EXECUTABLE} has no numpy: the Python package onnxruntime is not tested")
    return()
  endif()
  set(python ${CMAKE_COMMAND} -E env PYTHONPATH=${KILN_PYTHON_ONNXRUNTIME_FOLDER} PYTHONDONTWRITEBYTECODE=1
             KILN_PYTHON=${KILN_PYTHON_FOLDER} KILN_BUILD=${PROJECT_BINARY_DIR} ${Python3_EXECUTABLE})
  function(kiln_ep_python_test name)
    add_test(NAME ep_python.${name} COMMAND ${python} ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(ep_python.${name} PROPERTIES LABELS peer TIMEOUT 300 FIXTURES_REQUIRED peer SKIP_RETURN_CODE 77)
  endfunction()
  foreach(name IN ITEMS session values options threads package)
    kiln_ep_python_test(${name} test/interface/onnxruntime/python/test_${name}.py)
  endforeach()
  kiln_ep_python_test(pages test/docs/onnxruntime_pages.py --check)
  execute_process(COMMAND ${Python3_EXECUTABLE} -c "import mypy" RESULT_VARIABLE mypy_missing ERROR_QUIET)
  if(NOT mypy_missing)  # said by test/interface/python
    foreach(what IN ITEMS "-p onnxruntime -p onnxruntime_ep_kiln" examples/onnxruntime/digits.py)
      string(MAKE_C_IDENTIFIER "types${what}" name)
      separate_arguments(what)
      add_test(NAME ep_python.${name}
               COMMAND ${CMAKE_COMMAND} -E env MYPYPATH=${KILN_PYTHON_ONNXRUNTIME_FOLDER} ${Python3_EXECUTABLE} -m mypy --strict
                       --cache-dir ${PROJECT_BINARY_DIR}/mypy_cache_${name} ${what}
               WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
      set_tests_properties(ep_python.${name} PROPERTIES LABELS peer TIMEOUT 300)
    endforeach()
  endif()
endif()
