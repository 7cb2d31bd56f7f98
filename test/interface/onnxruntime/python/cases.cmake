# The package onnxruntime as its users have it: PYTHONPATH alone, over the stock library that cmake/peer.sh gets.
if(TARGET kiln_python_onnxruntime_package)
  execute_process(COMMAND ${Python3_EXECUTABLE} -c "import numpy" RESULT_VARIABLE numpy_missing ERROR_QUIET)
  if(numpy_missing)
    message(WARNING "SKIPPED: ${Python3_EXECUTABLE} has no numpy: the Python package onnxruntime is not tested")
    return()
  endif()
  # Tables for the provider come from the package kiln.
  set(folders ${KILN_PYTHON_ONNXRUNTIME_FOLDER})
  set(python ${CMAKE_COMMAND} -E env PYTHONPATH=${KILN_PYTHON_ONNXRUNTIME_FOLDER} PYTHONDONTWRITEBYTECODE=1
             KILN_PYTHON=${KILN_PYTHON_FOLDER} ${Python3_EXECUTABLE})
  foreach(name IN ITEMS session values options threads package)
    add_test(NAME ep_python.${name} COMMAND ${python} test/interface/onnxruntime/python/test_${name}.py
             WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(ep_python.${name} PROPERTIES LABELS peer TIMEOUT 300 FIXTURES_REQUIRED peer SKIP_RETURN_CODE 77)
  endforeach()
  execute_process(COMMAND ${Python3_EXECUTABLE} -c "import mypy" RESULT_VARIABLE mypy_missing ERROR_QUIET)
  if(NOT mypy_missing)  # said by test/interface/python
    add_test(NAME ep_python.types
             COMMAND ${CMAKE_COMMAND} -E env MYPYPATH=${KILN_PYTHON_ONNXRUNTIME_FOLDER} ${Python3_EXECUTABLE} -m mypy --strict
                     --cache-dir ${PROJECT_BINARY_DIR}/mypy_cache_onnxruntime -p onnxruntime -p onnxruntime_ep_kiln
             WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(ep_python.types PROPERTIES LABELS peer TIMEOUT 300)
  endif()
endif()
