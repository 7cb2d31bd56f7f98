# The Python package, by Debian's Python: unit tests, types, stubs, examples, pages.
if(TARGET kiln_python)
  set(python ${CMAKE_COMMAND} -E env PYTHONPATH=${KILN_PYTHON_FOLDER} PYTHONDONTWRITEBYTECODE=1 ${Python3_EXECUTABLE})
  function(kiln_python_test name label)
    add_test(NAME python.${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(python.${name} PROPERTIES LABELS ${label} TIMEOUT 300)
  endfunction()

  execute_process(COMMAND ${Python3_EXECUTABLE} -c "import numpy" RESULT_VARIABLE numpy_missing ERROR_QUIET)
  execute_process(COMMAND ${Python3_EXECUTABLE} -c "import torch" RESULT_VARIABLE torch_missing ERROR_QUIET)
  if(torch_missing)
    message(WARNING "SKIPPED: ${Python3_EXECUTABLE} has no torch (Debian: python3-torch): tensors of PyTorch are not tested")
  endif()
  execute_process(COMMAND ${Python3_EXECUTABLE} -c "import mypy" RESULT_VARIABLE mypy_missing ERROR_QUIET)
  if(numpy_missing)
    message(WARNING "SKIPPED: ${Python3_EXECUTABLE} has no numpy: the Python package is not tested")
  else()
    foreach(name IN ITEMS tensor run quantize source_op stubs torch)
      kiln_python_test(${name} interface_python ${python} test/interface/python/test_${name}.py)
    endforeach()
    set_tests_properties(python.torch PROPERTIES SKIP_RETURN_CODE 77)
    set_tests_properties(python.run PROPERTIES RUN_SERIAL ON)  # times threads
    file(GLOB examples CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/examples/python
         ${PROJECT_SOURCE_DIR}/examples/python/*.py)
    foreach(example IN LISTS examples)
      string(REPLACE ".py" "" name ${example})
      kiln_python_test(example.${name} example ${python} examples/python/${example})
    endforeach()
  endif()

  if(mypy_missing)
    message(WARNING "SKIPPED: ${Python3_EXECUTABLE} has no mypy: the types of the Python package are not checked")
  else()
    set(cache ${PROJECT_BINARY_DIR}/mypy_cache)
    foreach(what IN ITEMS "-p kiln" examples/python)
      string(MAKE_C_IDENTIFIER "types${what}" name)
      separate_arguments(what)
      add_test(NAME python.${name} COMMAND ${CMAKE_COMMAND} -E env MYPYPATH=${KILN_PYTHON_FOLDER} ${Python3_EXECUTABLE}
                                           -m mypy --strict --config-file test/interface/python/mypy.ini --cache-dir ${cache}_${name} ${what}
               WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
      set_tests_properties(python.${name} PROPERTIES LABELS interface_python TIMEOUT 300)
    endforeach()
  endif()

  # The build tree is built in while the test runs.
  kiln_python_test(wheel interface_python bash test/interface/python/wheel.sh ${Python3_EXECUTABLE} ${PROJECT_BINARY_DIR})
  set_tests_properties(python.wheel PROPERTIES RUN_SERIAL ON SKIP_RETURN_CODE 77)

  kiln_python_test(sdist interface_python bash test/interface/python/sdist.sh ${Python3_EXECUTABLE})
  set_tests_properties(python.sdist PROPERTIES SKIP_RETURN_CODE 77)

  # Generated files are what their scripts print.
  set(stub include/kiln/interface/python/kiln/ops.pyi)
  kiln_python_test(ops_stub docs sh -c "PYTHONPATH=${KILN_PYTHON_FOLDER} ${Python3_EXECUTABLE} cmake/python/ops_stub.py | diff - ${stub}")
  if(TARGET kiln_python_genai)  # its names are on the page too
    kiln_python_test(api_page docs sh -c "PYTHONPATH=${KILN_PYTHON_FOLDER} ${Python3_EXECUTABLE} cmake/python/api_page.py | diff - docs/python_api.md")
  endif()
endif()
