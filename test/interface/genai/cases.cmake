# GenAI's interface as its users have it: programs in C11 and C++ linked with libonnxruntime-genai.so alone, the list of
# exported symbols, valgrind.
if(NOT TARGET kiln_genai)
  return()
endif()
set(genai_tests ${CMAKE_CURRENT_LIST_DIR})
enable_language(C)

function(kiln_genai_case name)
  add_test(NAME interface_genai.${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(interface_genai.${name} PROPERTIES LABELS interface_genai TIMEOUT 300 SKIP_RETURN_CODE 77)
endfunction()

file(GLOB genai_sources CONFIGURE_DEPENDS ${genai_tests}/alone/*.cpp)
add_executable(test_genai ${genai_sources})
kiln_test_settings(test_genai)
target_link_libraries(test_genai PRIVATE kiln::genai Threads::Threads)
target_precompile_headers(test_genai REUSE_FROM test_precompiled)
set_target_properties(test_genai PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
gtest_discover_tests(test_genai TEST_PREFIX "interface_genai." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 300
                     WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} PROPERTIES LABELS interface_genai TIMEOUT 300)

# Models that the tests write with kiln: it is in the program and in the library.
target_link_libraries(test_interface_genai PRIVATE kiln::genai)

foreach(name IN ITEMS client reload)
  add_executable(test_genai_${name} ${genai_tests}/${name}.c)
  set_target_properties(test_genai_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test C_STANDARD 11
                                                      C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  target_compile_options(test_genai_${name} PRIVATE -Wall -Wextra -pedantic -Werror)
endforeach()
target_link_libraries(test_genai_client PRIVATE kiln::genai)
# It opens the library itself, by its path, and is linked with nothing of kiln.
target_include_directories(test_genai_reload PRIVATE ${PROJECT_SOURCE_DIR}/include/kiln/interface/genai/include)
target_link_libraries(test_genai_reload PRIVATE ${CMAKE_DL_LIBS})
add_dependencies(test_genai_reload kiln_genai)
set(scripture ${PROJECT_SOURCE_DIR}/examples/models/scripture)
kiln_genai_case(reload $<TARGET_FILE:test_genai_reload> $<TARGET_FILE:kiln_genai> ${scripture})
kiln_genai_case(client $<TARGET_FILE:test_genai_client> ${scripture} 52)
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  kiln_genai_case(valgrind bash ${genai_tests}/../c/valgrind.sh $<TARGET_FILE:test_genai_client> ${scripture} 12)
  set_tests_properties(interface_genai.valgrind PROPERTIES TIMEOUT 900)
endif()
kiln_genai_case(symbols bash ${genai_tests}/symbols.sh $<TARGET_FILE:kiln_genai>)
