# kiln_static_program(<target>...): lets the compiler evaluate static programs of some hundred instructions in these
# targets, beyond its default limits, and keeps their arithmetic equal to constant evaluation.
function(kiln_static_program)
  foreach(target IN LISTS ARGN)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${target} PRIVATE -fconstexpr-ops-limit=4000000000 -fconstexpr-loop-limit=16777216
                                               -fconstexpr-depth=4096)
    elseif(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      target_compile_options(${target} PRIVATE -fconstexpr-steps=2000000000 -fconstexpr-depth=4096 -fbracket-depth=4096)
    endif()
    target_compile_options(${target} PRIVATE -ffp-contract=off)
  endforeach()
endfunction()
