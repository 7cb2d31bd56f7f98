# kiln's tokenizers and Hugging Face's give the same ids and texts.
if(TARGET kiln::text)
  add_executable(compare_tokenizer ${CMAKE_CURRENT_LIST_DIR}/peer_project/compare.cpp)
  kiln_own(compare_tokenizer)
  target_link_libraries(compare_tokenizer PRIVATE kiln::text nlohmann_json::nlohmann_json)
  set_target_properties(compare_tokenizer PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
  add_test(NAME text.peer COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/peer_project/peer.sh $<TARGET_FILE:compare_tokenizer>
                                  ${PROJECT_BINARY_DIR}/test/tokenizers)
  set_tests_properties(text.peer PROPERTIES LABELS peer TIMEOUT 600 SKIP_RETURN_CODE 77 FIXTURES_REQUIRED peer
                       COST 60)  # long ones first: the last folder's would end alone
  # SentencePiece's models have the ids and texts of SentencePiece's own programs.
  add_test(NAME text.sentencepiece COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/spm_project/compare.py
                                           $<TARGET_FILE:compare_tokenizer> ${PROJECT_BINARY_DIR}/test/sentencepiece)
  set_tests_properties(text.sentencepiece PROPERTIES LABELS text TIMEOUT 600 SKIP_RETURN_CODE 77 COST 25)
endif()
