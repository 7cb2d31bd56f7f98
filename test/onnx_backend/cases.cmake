# The ONNX backend tests of Debian's libonnx-testdata, one ctest case for each folder and target.
if(NOT TARGET kiln_program)
  return()
endif()
set(KILN_ONNX_TESTDATA /usr/share/libonnx-testdata/data CACHE PATH "ONNX's backend test data")

# excluded.tsv: a folder, a tab, why it can't pass; such a case must be refused with a clear error (exit 1, a reason).
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/excluded.tsv excluded_lines)
set(excluded ${excluded_lines})
list(TRANSFORM excluded REPLACE "\t.*$" "")

foreach(group IN ITEMS simple pytorch-converted pytorch-operator)
  file(GLOB models RELATIVE ${KILN_ONNX_TESTDATA}/${group} ${KILN_ONNX_TESTDATA}/${group}/*/model.onnx)
  if(NOT models)
    message(WARNING "${KILN_ONNX_TESTDATA}/${group} has no models: those backend tests do not run")
  endif()
  foreach(model IN LISTS models)
    get_filename_component(name ${model} DIRECTORY)
    foreach(target IN ITEMS reference eigen)
      set(case onnx_backend.${target}.${group}.${name})
      add_test(NAME ${case} COMMAND kiln_program test ${KILN_ONNX_TESTDATA}/${group}/${name} --target ${target})
      set_tests_properties(${case} PROPERTIES LABELS onnx_backend TIMEOUT 120
                                              SKIP_REGULAR_EXPRESSION "\n0 passed, 0 failed, [1-9]")
      if(name IN_LIST excluded)
        set_tests_properties(${case} PROPERTIES PASS_REGULAR_EXPRESSION "\n  unsupported: ")
      endif()
    endforeach()
  endforeach()
endforeach()
