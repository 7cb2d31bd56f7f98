# Templates render as in python3-jinja2 and, where npm delivers it, in @huggingface/jinja.
if(NOT TARGET kiln::text)
  return()
endif()
add_executable(render_cases ${CMAKE_CURRENT_LIST_DIR}/alone/render_cases.cpp)
kiln_own(render_cases)
target_link_libraries(render_cases PRIVATE kiln::text nlohmann_json::nlohmann_json)
set_target_properties(render_cases PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)

# Debian's Python has Debian's packages.
find_program(KILN_SYSTEM_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
execute_process(COMMAND ${KILN_SYSTEM_PYTHON} -c "import jinja2" RESULT_VARIABLE jinja_missing ERROR_QUIET)
if(NOT KILN_SYSTEM_PYTHON OR jinja_missing)
  message(WARNING "SKIPPED: there is no jinja2 for /usr/bin/python3 (Debian: python3-jinja2): text.jinja does not run")
  return()
endif()
foreach(name IN ITEMS snippets templates mutations npm)
  set(folder ${PROJECT_BINARY_DIR}/test/jinja_${name})
  file(MAKE_DIRECTORY ${folder})
  add_test(NAME text.jinja.${name} COMMAND ${KILN_SYSTEM_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/${name}.py
                                           $<TARGET_FILE:render_cases> ${folder})
  set_tests_properties(text.jinja.${name} PROPERTIES LABELS text_jinja TIMEOUT 600)
endforeach()
set_tests_properties(text.jinja.npm PROPERTIES LABELS peer SKIP_RETURN_CODE 77 FIXTURES_REQUIRED peer)
