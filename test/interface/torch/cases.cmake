# kiln.torch and torch_migraphx beside eager PyTorch, by Debian's Python.
if(TARGET kiln_python)
  execute_process(COMMAND ${Python3_EXECUTABLE} -c "import torch" RESULT_VARIABLE torch_missing ERROR_QUIET)
  execute_process(COMMAND ${Python3_EXECUTABLE} -c "import torchvision" RESULT_VARIABLE torchvision_missing ERROR_QUIET)
  if(torch_missing)
    message(WARNING "SKIPPED: ${Python3_EXECUTABLE} has no torch (Debian: python3-torch): kiln.torch is not tested")
  else()
    set(python ${CMAKE_COMMAND} -E env
        PYTHONPATH=${KILN_PYTHON_FOLDER}:${KILN_PYTHON_TORCH_MIGRAPHX_FOLDER}:${KILN_PYTHON_MIGRAPHX_FOLDER}
        PYTHONDONTWRITEBYTECODE=1 ${Python3_EXECUTABLE})
    file(GLOB cases CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_LIST_DIR} ${CMAKE_CURRENT_LIST_DIR}/test_*.py)
    foreach(case IN LISTS cases)
      string(REGEX REPLACE "test_(.*)\\.py" "\\1" name ${case})
      if(name STREQUAL networks AND torchvision_missing)
        message(WARNING "SKIPPED: ${Python3_EXECUTABLE} has no torchvision (Debian: python3-torchvision): its networks are not tested")
        continue()
      endif()
      add_test(NAME torch.${name}
               COMMAND ${python} ${CMAKE_CURRENT_LIST_DIR}/${case}
               WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
      set_tests_properties(torch.${name} PROPERTIES LABELS interface_torch TIMEOUT 300)
    endforeach()
    # The page of operators is what the table says.
    add_test(NAME docs.pytorch_operators
             COMMAND sh -c "PYTHONPATH=${KILN_PYTHON_FOLDER} ${Python3_EXECUTABLE} cmake/python/aten_page.py | diff - docs/pytorch_operators.md"
             WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(docs.pytorch_operators PROPERTIES LABELS docs)
    if(NOT torchvision_missing)
      file(GLOB examples CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/examples/torch
           ${PROJECT_SOURCE_DIR}/examples/torch/*.py)
      foreach(example IN LISTS examples)
        string(REPLACE ".py" "" name ${example})
        add_test(NAME torch.example.${name} COMMAND ${python} examples/torch/${example}
                 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
        set_tests_properties(torch.example.${name} PROPERTIES LABELS example TIMEOUT 300)
      endforeach()
    endif()
  endif()
endif()
