target_link_libraries(test_peer_ep PRIVATE kiln::onnxruntime)
add_dependencies(test_peer_ep kiln_onnxruntime_ep)

# The plugin comes, goes and comes again without a leak of its own. ONNX Runtime's leaks are not kiln's.
find_program(KILN_VALGRIND valgrind)
if(KILN_VALGRIND AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  add_test(NAME peer_ep.ep_registration.valgrind
           COMMAND ${KILN_VALGRIND} --quiet --leak-check=full --errors-for-leak-kinds=definite --error-exitcode=9
                   --suppressions=${CMAKE_CURRENT_LIST_DIR}/onnxruntime.supp $<TARGET_FILE:test_peer_ep>
                   --gtest_filter=ep_registration.*
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(peer_ep.ep_registration.valgrind PROPERTIES LABELS peer TIMEOUT 300 FIXTURES_REQUIRED peer)
else()
  message(WARNING "SKIPPED: no valgrind here: the plugin's registration is not checked by it")
endif()
