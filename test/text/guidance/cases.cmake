# Python's re, json and ast judge the texts that guides allow.
if(TARGET kiln::text)
  add_executable(sample_guides ${CMAKE_CURRENT_LIST_DIR}/alone/sample_guides.cpp)
  kiln_own(sample_guides)
  target_include_directories(sample_guides PRIVATE ${PROJECT_SOURCE_DIR}/test)
  target_link_libraries(sample_guides PRIVATE kiln::text nlohmann_json::nlohmann_json)
  set_target_properties(sample_guides PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
  foreach(name IN ITEMS regexes schemas grammars)
    set(folder ${PROJECT_BINARY_DIR}/test/guidance_${name})
    file(MAKE_DIRECTORY ${folder})
    add_test(NAME text.guidance.${name}
             COMMAND python3 -B ${CMAKE_CURRENT_LIST_DIR}/${name}.py $<TARGET_FILE:sample_guides>
                     ${PROJECT_SOURCE_DIR}/examples/models/scripture ${folder})
    set_tests_properties(text.guidance.${name} PROPERTIES LABELS text_guidance TIMEOUT 300)
  endforeach()
endif()
