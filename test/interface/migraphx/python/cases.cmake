# The package migraphx as its users have it: PYTHONPATH alone.
if(TARGET kiln_python_migraphx)
  execute_process(COMMAND ${Python3_EXECUTABLE} -c "import numpy" RESULT_VARIABLE numpy_missing ERROR_QUIET)
  if(numpy_missing)
    message(WARNING "SKIPPED: ${Python3_EXECUTABLE} has no numpy: the Python package migraphx is not tested")
    return()
  endif()
  foreach(script IN ITEMS test_shape test_module test_program test_backend test_package digits)
    string(REPLACE "test_" "" name ${script})
    add_test(NAME migraphx.${name}
             COMMAND ${CMAKE_COMMAND} -E env PYTHONPATH=${KILN_PYTHON_MIGRAPHX_FOLDER} PYTHONDONTWRITEBYTECODE=1
                     ${Python3_EXECUTABLE} test/interface/migraphx/python/${script}.py
             WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(migraphx.${name} PROPERTIES LABELS interface_migraphx TIMEOUT 300)
  endforeach()
  execute_process(COMMAND ${Python3_EXECUTABLE} -c "import mypy" RESULT_VARIABLE mypy_missing ERROR_QUIET)
  if(NOT mypy_missing)  # said by test/interface/python
    add_test(NAME migraphx.types COMMAND ${CMAKE_COMMAND} -E env MYPYPATH=${KILN_PYTHON_MIGRAPHX_FOLDER} ${Python3_EXECUTABLE} -m mypy
             --strict --cache-dir ${PROJECT_BINARY_DIR}/mypy_cache_migraphx -p migraphx -p onnx_migraphx WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(migraphx.types PROPERTIES LABELS interface_migraphx TIMEOUT 300)
  endif()
endif()
