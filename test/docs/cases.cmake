# Code in the pages is code that is compiled.
add_test(NAME docs.code COMMAND bash ${PROJECT_SOURCE_DIR}/test/docs/check.sh)
set_tests_properties(docs.code PROPERTIES LABELS docs)
