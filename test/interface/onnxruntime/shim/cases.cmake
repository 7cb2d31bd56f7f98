# Programs over kiln's libonnxruntime.so.1, as its users write them: C11 and C++17, with a stock ONNX Runtime behind it.
if(NOT TARGET kiln_onnxruntime_shim)
  return()
endif()
set(shim_tests ${CMAKE_CURRENT_LIST_DIR})
set(shim_folder ${PROJECT_BINARY_DIR}/test/onnxruntime_shim)
enable_language(C)

function(kiln_shim_case name)
  add_test(NAME interface_onnxruntime.${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(interface_onnxruntime.${name} PROPERTIES LABELS "interface_onnxruntime;peer" TIMEOUT 300
                       SKIP_RETURN_CODE 77 FIXTURES_REQUIRED peer)
endfunction()
function(kiln_shim_program name source)
  add_executable(test_shim_${name} ${shim_tests}/alone/${source})
  set_target_properties(test_shim_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${shim_folder} C_STANDARD 11 C_EXTENSIONS OFF
                        CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF)
  target_compile_options(test_shim_${name} PRIVATE -Wall -Wextra -pedantic -Werror)
  add_dependencies(test_shim_${name} kiln_onnxruntime_ep)
endfunction()
set(with_peer bash ${shim_tests}/with_peer.sh)

foreach(name IN ITEMS seed entries environment headers)
  kiln_shim_program(${name} ${name}.cpp)
  target_link_libraries(test_shim_${name} PRIVATE kiln::onnxruntime_shim Threads::Threads)
endforeach()
kiln_shim_case(ep_seed_cpp ${with_peer} $<TARGET_FILE:test_shim_seed>)
kiln_shim_case(ep_shim_entries ${with_peer} $<TARGET_FILE:test_shim_entries>)
kiln_shim_case(ep_shim_environment ${with_peer} $<TARGET_FILE:test_shim_environment> $<TARGET_FILE:kiln_onnxruntime_ep>)
kiln_shim_case(ep_shim_headers ${with_peer} $<TARGET_FILE:test_shim_headers>)
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set(valgrind ${with_peer} env "VALGRIND_OPTS=--suppressions=${shim_tests}/valgrind.supp --keep-debuginfo=yes"
               bash ${shim_tests}/../../c/valgrind.sh)
  kiln_shim_case(ep_shim_valgrind_entries ${valgrind} $<TARGET_FILE:test_shim_entries>)
  kiln_shim_case(ep_shim_valgrind_environment ${valgrind} $<TARGET_FILE:test_shim_environment>
                 $<TARGET_FILE:kiln_onnxruntime_ep>)
endif()

# The header's table is compared with the plugin's declarations by the compiler.
add_executable(test_shim_slots ${shim_tests}/alone/slots.cpp)
kiln_own(test_shim_slots)
target_include_directories(test_shim_slots PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/${onnxruntime_include})
kiln_shim_case(ep_shim_slots $<TARGET_FILE:test_shim_slots>)
set_tests_properties(interface_onnxruntime.ep_shim_slots PROPERTIES FIXTURES_REQUIRED "")

# Programs that were linked with other libraries of that name: without versions, and with those of older and newer ones.
foreach(version IN ITEMS none 1.19.2 1.24.1 1.30.0 1.31.0)
  string(REPLACE "." "_" name ${version})
  add_library(test_shim_stub_${name} SHARED ${shim_tests}/alone/stub.c)
  set_target_properties(test_shim_stub_${name} PROPERTIES OUTPUT_NAME onnxruntime SOVERSION 1
                        LIBRARY_OUTPUT_DIRECTORY ${shim_folder}/stub_${name})
  if(NOT version STREQUAL none)
    set(map ${shim_folder}/stub_${name}.map)
    file(CONFIGURE OUTPUT ${map} CONTENT "VERS_${version} { global: Ort*; local: *; };\n")
    target_link_options(test_shim_stub_${name} PRIVATE -Wl,--version-script=${map})
  endif()
  kiln_shim_program(plain_${name} plain.c)
  target_include_directories(test_shim_plain_${name} PRIVATE ${PROJECT_SOURCE_DIR}/${onnxruntime_include})
  target_link_libraries(test_shim_plain_${name} PRIVATE test_shim_stub_${name})
  set_target_properties(test_shim_plain_${name} PROPERTIES SKIP_BUILD_RPATH ON)
  kiln_shim_case(ep_shim_linked_${name} ${with_peer} env LD_LIBRARY_PATH=$<TARGET_FILE_DIR:kiln_onnxruntime_shim>
                 $<TARGET_FILE:test_shim_plain_${name}>)
endforeach()

# What is not there is named: a library or a plugin that a variable names, and a library that nothing names.
set(program env LD_LIBRARY_PATH=$<TARGET_FILE_DIR:kiln_onnxruntime_shim> $<TARGET_FILE:test_shim_plain_none>)
kiln_shim_case(ep_shim_no_library env KILN_ONNXRUNTIME_LIBRARY=/no/such/library.so ${program}
               "/no/such/library.so: no such file")
kiln_shim_case(ep_shim_itself env KILN_ONNXRUNTIME_LIBRARY=$<TARGET_FILE:kiln_onnxruntime_shim> ${program}
               "kiln's own library")
kiln_shim_case(ep_shim_foreign_library env KILN_ONNXRUNTIME_LIBRARY=$<TARGET_FILE:kiln_onnxruntime_ep> ${program}
               "it does not export OrtGetApiBase")
kiln_shim_case(ep_shim_no_plugin ${with_peer} env KILN_ONNXRUNTIME_EP=/no/such/plugin.so ${program} "/no/such/plugin.so")
kiln_shim_case(ep_shim_search bash ${shim_tests}/search.sh $<TARGET_FILE:test_shim_plain_none>
               $<TARGET_FILE_DIR:kiln_onnxruntime_shim>)

# The examples of docs/onnxruntime.md, and one of them over an installation that has moved.
if(TARGET example_onnxruntime_digits)
  add_test(NAME example.onnxruntime_digits COMMAND ${with_peer} $<TARGET_FILE:example_onnxruntime_digits>
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(example.onnxruntime_digits PROPERTIES LABELS "example;peer" TIMEOUT 300 SKIP_RETURN_CODE 77
                       FIXTURES_REQUIRED peer)
endif()
if(KILN_HYGIENE AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  add_test(NAME consumer.onnxruntime_shim COMMAND ${with_peer} bash ${shim_tests}/consumer.sh ${PROJECT_BINARY_DIR})
  set_tests_properties(consumer.onnxruntime_shim PROPERTIES LABELS "consumer;peer" TIMEOUT 600 SKIP_RETURN_CODE 77
                       FIXTURES_REQUIRED peer)
endif()
