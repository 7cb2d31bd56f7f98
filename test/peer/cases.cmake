# light.cpp changes models before both sides read them.
find_package(Protobuf REQUIRED)
target_include_directories(test_peer SYSTEM PRIVATE ${PROJECT_BINARY_DIR}/onnx_proto)
target_link_libraries(test_peer PRIVATE protobuf::libprotobuf-lite)

# plugin.cpp is a program of ONNX Runtime that loads kiln's plugin.
target_link_libraries(test_peer PRIVATE kiln::onnxruntime)
add_dependencies(test_peer kiln_onnxruntime_ep)
add_executable(plugin_cases ${CMAKE_CURRENT_LIST_DIR}/alone/plugin_cases.cpp)
kiln_test_settings(plugin_cases)
target_link_libraries(plugin_cases PRIVATE kiln::onnxruntime ${CMAKE_DL_LIBS})
add_dependencies(plugin_cases kiln_onnxruntime_ep)
set_target_properties(plugin_cases PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)

# Every case that ONNX Runtime has an answer to, through the plugin.
foreach(group IN ITEMS node simple pytorch-converted pytorch-operator)
  add_test(NAME peer.plugin_cases.1.12.${group} COMMAND plugin_cases /usr/share/libonnx-testdata/data/${group})
endforeach()
add_test(NAME peer.plugin_cases.1.23.node COMMAND plugin_cases ${PROJECT_BINARY_DIR}/onnx-1.23/node)
foreach(group IN ITEMS 1.12.node 1.12.simple 1.12.pytorch-converted 1.12.pytorch-operator 1.23.node)
  set_tests_properties(peer.plugin_cases.${group} PROPERTIES LABELS peer TIMEOUT 300 FIXTURES_REQUIRED peer SKIP_RETURN_CODE 77)
endforeach()

# Whole models through the plugin, with nothing left to ONNX Runtime: the small ones of the generator, the ONNX project's
# light ones (full size), and digits. The other two measure (docs/onnxruntime.md).
foreach(program IN ITEMS plugin_models plugin_overhead session_creation)
  add_executable(${program} ${CMAKE_CURRENT_LIST_DIR}/alone/${program}.cpp)
  kiln_test_settings(${program})
  target_link_libraries(${program} PRIVATE kiln::onnxruntime kiln::eigen ${CMAKE_DL_LIBS})
  add_dependencies(${program} kiln_onnxruntime_ep)
  set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
endforeach()
add_test(NAME peer.small_models COMMAND /usr/bin/python3 ${PROJECT_SOURCE_DIR}/bench/models/generate.py
                                        ${PROJECT_BINARY_DIR}/small_models --small)
set_tests_properties(peer.small_models PROPERTIES LABELS peer FIXTURES_SETUP small_models)
# ONNX Runtime's optimizer moves where numbers are rounded to 8 and 16 bits.
add_test(NAME peer.ep_models.small COMMAND plugin_models --tolerance bert_base_int8_in=5e-2
                                           --tolerance resnet50_fp16=2e-3 ${PROJECT_BINARY_DIR}/small_models)
add_test(NAME peer.ep_models.light COMMAND plugin_models ${PROJECT_SOURCE_DIR}/bench/models/light
                                           ${PROJECT_SOURCE_DIR}/examples/models/digits)
add_test(NAME peer.ep_models.scripture COMMAND plugin_models --dim past_sequence_length=3 --dim sequence_length=2
                                               --dim total_sequence_length=5
                                               ${PROJECT_SOURCE_DIR}/examples/models/scripture)
set_tests_properties(peer.ep_models.small peer.ep_models.light peer.ep_models.scripture
                     PROPERTIES LABELS peer TIMEOUT 300 SKIP_RETURN_CODE 77)
set_tests_properties(peer.ep_models.scripture PROPERTIES FIXTURES_REQUIRED peer)
set_tests_properties(peer.ep_models.small PROPERTIES FIXTURES_REQUIRED "peer;small_models")
set_tests_properties(peer.ep_models.light PROPERTIES FIXTURES_REQUIRED peer)

# What the plugin costs, with room for a busy machine; sanitizers cost more than that.
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize" AND CMAKE_BUILD_TYPE STREQUAL "Release")
  add_test(NAME peer.ep_cost.digits COMMAND plugin_overhead ${PROJECT_SOURCE_DIR}/examples/models/digits/model.onnx)
  add_test(NAME peer.ep_cost.scripture
           COMMAND plugin_overhead --dim batch_size=1 --dim sequence_length=1 --dim past_sequence_length=32
                   --dim total_sequence_length=33 ${PROJECT_SOURCE_DIR}/examples/models/scripture/model.onnx)
  add_test(NAME peer.ep_cost.session
           COMMAND session_creation --at-most 1.6 ${PROJECT_SOURCE_DIR}/bench/models/light/resnet50.onnx)
  set_tests_properties(peer.ep_cost.digits peer.ep_cost.scripture peer.ep_cost.session
                       PROPERTIES LABELS peer TIMEOUT 300 SKIP_RETURN_CODE 77 FIXTURES_REQUIRED peer RUN_SERIAL ON)
endif()

# A small language model of each family: kiln's tokens are those of ONNX Runtime in a loop.
if(TARGET kiln::generate)
  set(families
      llama llama_separate llama_multi_head llama_multi_head_all llama_ops llama_half llama_multi_head_half
      llama_ops_half llama_int4 llama_int4_zeros llama_int4_half llama_bare_config gpt2 gpt2_before_17 phi
      phi_separate phi_half phi3 phi3_long phi3_window phi3_int4 phi3small phimoe qwen2 qwen2_multi_head qwen3
      qwen3_ops gemma gemma2 gemma2_ops gemma2_half gemma3_text gemma4_text mistral mistral_ops mixtral
      mixtral_turns mixtral_int4 gptoss gptoss_half smooth granite granitemoehybrid granitemoehybrid_nope nemotron olmo smollm3 chatglm chatglm_separate
      internlm2 ernie4_5 hunyuan lfm2 qwen3_5 qwen3_5_half qwen3_5_apart qwen3_5_moe)
  add_executable(families ${CMAKE_CURRENT_LIST_DIR}/alone/families.cpp)
  kiln_test_settings(families)
  target_link_libraries(families PRIVATE kiln::generate kiln::eigen ${CMAKE_DL_LIBS})
  set_target_properties(families PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
  string(REPLACE ";" "," names "${families}")
  add_test(NAME peer.families COMMAND /usr/bin/python3 ${CMAKE_CURRENT_LIST_DIR}/families/make.py
                                      ${PROJECT_BINARY_DIR}/families ${PROJECT_SOURCE_DIR}/build/peer --only ${names})
  set_tests_properties(peer.families PROPERTIES LABELS peer FIXTURES_REQUIRED peer FIXTURES_SETUP families
                                                SKIP_RETURN_CODE 77)
  foreach(family IN LISTS families)
    add_test(NAME peer.families.${family} COMMAND families ${PROJECT_BINARY_DIR}/families/${family})
    set_tests_properties(peer.families.${family} PROPERTIES LABELS peer FIXTURES_REQUIRED families SKIP_RETURN_CODE 77)
  endforeach()
endif()

# OpenAI's own client in Node asks the server.
if(TARGET kiln::serve AND TARGET kiln_program)
  find_program(KILN_NODE NAMES node nodejs)
  if(KILN_NODE)
    add_test(NAME peer.openai_install COMMAND bash ${PROJECT_SOURCE_DIR}/cmake/peer.sh openai)
    add_test(NAME peer.serve_openai
             COMMAND ${KILN_NODE} ${CMAKE_CURRENT_LIST_DIR}/serve/openai.mjs $<TARGET_FILE:kiln_program>
                     ${PROJECT_SOURCE_DIR}/examples/models/scripture ${PROJECT_SOURCE_DIR}/build/openai/node_modules)
    add_test(NAME peer.serve_page COMMAND ${KILN_NODE} ${CMAKE_CURRENT_LIST_DIR}/serve/page.mjs $<TARGET_FILE:kiln_program>
                                          ${PROJECT_SOURCE_DIR}/examples/models/scripture)
    set_tests_properties(peer.serve_page PROPERTIES LABELS peer TIMEOUT 300 SKIP_RETURN_CODE 77)
    set_tests_properties(peer.openai_install PROPERTIES LABELS peer FIXTURES_SETUP openai SKIP_RETURN_CODE 77 TIMEOUT 300)
    set_tests_properties(peer.serve_openai PROPERTIES LABELS peer FIXTURES_REQUIRED openai TIMEOUT 300 SKIP_RETURN_CODE 77)
  endif()
endif()
