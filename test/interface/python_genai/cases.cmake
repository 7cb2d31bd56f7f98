# Language models in Python: kiln.genai, and the package onnxruntime_genai by PYTHONPATH alone.
if(TARGET kiln_python_genai)
  execute_process(COMMAND ${Python3_EXECUTABLE} -c "import numpy" RESULT_VARIABLE numpy_missing ERROR_QUIET)
  if(numpy_missing)  # said by test/interface/python
    return()
  endif()
  function(kiln_genaipy_test name folder)
    add_test(NAME genaipy.${name} COMMAND ${CMAKE_COMMAND} -E env PYTHONPATH=${folder} PYTHONDONTWRITEBYTECODE=1
                                          KILN_BUILD=${PROJECT_BINARY_DIR} ${ARGN}
             WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(genaipy.${name} PROPERTIES LABELS interface_python TIMEOUT 300)
  endfunction()
  kiln_genaipy_test(genai ${KILN_PYTHON_FOLDER} ${Python3_EXECUTABLE} test/interface/python_genai/test_genai.py)
  kiln_genaipy_test(adapters ${KILN_PYTHON_FOLDER} ${Python3_EXECUTABLE} test/interface/python_genai/test_adapters.py)
  kiln_genaipy_test(scripts ${KILN_PYTHON_GENAI_FOLDER} ${Python3_EXECUTABLE} test/interface/python_genai/test_scripts.py)
  kiln_genaipy_test(pages ${KILN_PYTHON_GENAI_FOLDER} ${Python3_EXECUTABLE} test/docs/genai_pages.py)
  execute_process(COMMAND ${Python3_EXECUTABLE} -c "import mypy" RESULT_VARIABLE mypy_missing ERROR_QUIET)
  if(NOT mypy_missing)
    kiln_genaipy_test(types ${KILN_PYTHON_FOLDER} MYPYPATH=${KILN_PYTHON_FOLDER}:${KILN_PYTHON_GENAI_FOLDER}
                      ${Python3_EXECUTABLE} -m mypy --strict --cache-dir ${PROJECT_BINARY_DIR}/mypy_cache_genai
                      -p onnxruntime_genai)
  endif()
endif()
