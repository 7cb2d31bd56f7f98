target_link_libraries(test_interface_onnxruntime PRIVATE kiln::onnxruntime)
target_include_directories(test_interface_onnxruntime SYSTEM
                           PRIVATE $<TARGET_PROPERTY:nlohmann_json::nlohmann_json,INTERFACE_INCLUDE_DIRECTORIES>)
