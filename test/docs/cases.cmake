# Code in the pages is code that is compiled.
add_test(NAME docs.code COMMAND bash ${PROJECT_SOURCE_DIR}/test/docs/check.sh)
set_tests_properties(docs.code PROPERTIES LABELS docs)

# Links to headings lead to headings.
if(Python3_EXECUTABLE)
  add_test(NAME docs.anchors COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/test/docs/anchors.py)
  set_tests_properties(docs.anchors PROPERTIES LABELS docs)
endif()

# The picture of the architecture is that of the tree.
add_test(NAME docs.picture COMMAND bash ${PROJECT_SOURCE_DIR}/test/docs/picture.sh)
set_tests_properties(docs.picture PROPERTIES LABELS docs)

# The page of operators is what the program prints.
if(TARGET kiln_program)
  add_test(NAME docs.onnx_operators COMMAND sh -c "$<TARGET_FILE:kiln_program> ops --onnx --markdown | diff - docs/onnx.md"
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(docs.onnx_operators PROPERTIES LABELS docs)

  # So is that of TensorFlow's, but for the code of an example.
  add_test(NAME docs.tensorflow_operators
           COMMAND sh -c "$<TARGET_FILE:kiln_program> ops --tf --markdown | sed '/^```/,/^```/d' > \"$0\" && sed '/^```/,/^```/d' docs/tensorflow.md | diff \"$0\" -"
                   ${CMAKE_CURRENT_BINARY_DIR}/tensorflow.md
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(docs.tensorflow_operators PROPERTIES LABELS docs)

  # So is that of TFLite's.
  add_test(NAME docs.tflite_operators COMMAND sh -c "$<TARGET_FILE:kiln_program> ops --tflite --markdown | diff - docs/tflite.md"
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(docs.tflite_operators PROPERTIES LABELS docs)

  # So is the page of options.
  add_test(NAME docs.options COMMAND sh -c "$<TARGET_FILE:kiln_program> options --markdown | diff - docs/options.md"
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(docs.options PROPERTIES LABELS docs)
endif()

# The Dockerfile, as far as can be said without Docker.
if(Python3_EXECUTABLE)
  add_test(NAME docs.dockerfile COMMAND ${Python3_EXECUTABLE} test/docs/dockerfile.py ${PROJECT_BINARY_DIR}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(docs.dockerfile PROPERTIES LABELS docs TIMEOUT 300)
endif()

# Kubernetes' manifests, without Kubernetes: their containers' commands serve.
if(Python3_EXECUTABLE AND TARGET kiln::serve AND TARGET kiln_program)
  add_test(NAME docs.kubernetes COMMAND ${Python3_EXECUTABLE} test/docs/kubernetes.py $<TARGET_FILE:kiln_program>
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(docs.kubernetes PROPERTIES LABELS docs TIMEOUT 180 SKIP_RETURN_CODE 77)
endif()
