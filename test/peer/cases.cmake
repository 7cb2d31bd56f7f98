# light.cpp changes models before both sides read them.
find_package(Protobuf REQUIRED)
target_include_directories(test_peer SYSTEM PRIVATE ${PROJECT_BINARY_DIR}/onnx_proto)
target_link_libraries(test_peer PRIVATE protobuf::libprotobuf-lite)

# plugin.cpp is a program of ONNX Runtime that loads kiln's plugin.
target_link_libraries(test_peer PRIVATE kiln::onnxruntime)
add_dependencies(test_peer kiln_onnxruntime_ep)
