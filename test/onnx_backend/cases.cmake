# The ONNX backend tests: those of Debian's libonnx-testdata (1.12) and half of ONNX 1.23's node tests, which lie beside this file.
# A ctest case runs up to 25 folders on one target, each in a process that `kiln test` forks: it is named after the first of them,
# and says which passed and failed. Starting the program takes several times what most folders do.
# The data are the ONNX project's, under the Apache License 2.0 as kiln is.
if(NOT TARGET kiln_program)
  return()
endif()
set(KILN_ONNX_TESTDATA /usr/share/libonnx-testdata/data CACHE PATH "ONNX's backend test data")

set(unpacked ${PROJECT_BINARY_DIR}/onnx-1.23)
if(NOT IS_DIRECTORY ${unpacked}/node)
  file(ARCHIVE_EXTRACT INPUT ${CMAKE_CURRENT_LIST_DIR}/onnx-1.23-node.tar.xz DESTINATION ${unpacked}/node)
endif()

# test/onnx/excluded.tsv: a folder (or ONNX version/folder), a tab, why it can't pass; such a case must be refused with a clear error or differ.
file(STRINGS ${PROJECT_SOURCE_DIR}/test/onnx/excluded.tsv excluded_lines)
set(excluded ${excluded_lines})
list(TRANSFORM excluded REPLACE "\t.*$" "")

function(kiln_backend_group version root group)
  file(GLOB models RELATIVE ${root}/${group} ${root}/${group}/*/model.onnx)
  if(NOT models)
    message(WARNING "${root}/${group} has no models: those backend tests do not run")
  endif()
  set(lone)  # its outcome is its own
  set(rest)
  foreach(model IN LISTS models)
    get_filename_component(name ${model} DIRECTORY)
    if(name IN_LIST excluded OR "${version}/${name}" IN_LIST excluded)
      list(APPEND lone ${name})
    else()
      list(APPEND rest ${name})
    endif()
  endforeach()
  foreach(target IN ITEMS reference eigen)
    set(prefix onnx_backend.${target}.${version}.${group})
    foreach(name IN LISTS lone)
      add_test(NAME ${prefix}.${name} COMMAND kiln_program test ${root}/${group}/${name} --target ${target})
      set_tests_properties(${prefix}.${name} PROPERTIES LABELS onnx_backend TIMEOUT 120
                           SKIP_REGULAR_EXPRESSION "\n0 passed, 0 failed, [1-9]"
                           PASS_REGULAR_EXPRESSION "\n  unsupported: |\n  shape mismatch: |elements differ")
    endforeach()
    set(left ${rest})
    while(left)
      list(SUBLIST left 0 25 names)
      list(REMOVE_ITEM left ${names})
      list(GET names 0 first)
      list(TRANSFORM names PREPEND ${root}/${group}/ OUTPUT_VARIABLE paths)
      add_test(NAME ${prefix}.from_${first} COMMAND kiln_program test ${paths} --target ${target})
      set_tests_properties(${prefix}.from_${first} PROPERTIES LABELS onnx_backend TIMEOUT 300
                           SKIP_REGULAR_EXPRESSION "\n0 passed, 0 failed, [1-9]")
    endwhile()
  endforeach()
endfunction()

foreach(group IN ITEMS node simple pytorch-converted pytorch-operator)
  kiln_backend_group(1.12 ${KILN_ONNX_TESTDATA} ${group})
endforeach()
kiln_backend_group(1.23 ${unpacked} node)
