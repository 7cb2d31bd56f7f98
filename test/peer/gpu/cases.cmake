# The plugin as it is shipped, but for the GPU: see alone/fake_gpu.hpp.
add_library(kiln_onnxruntime_ep_fake_gpu MODULE ${CMAKE_CURRENT_LIST_DIR}/alone/plugin.cpp)
kiln_own(kiln_onnxruntime_ep_fake_gpu)
set_target_properties(kiln_onnxruntime_ep_fake_gpu PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
                      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
target_include_directories(kiln_onnxruntime_ep_fake_gpu PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(kiln_onnxruntime_ep_fake_gpu PRIVATE kiln::onnxruntime)
target_link_options(kiln_onnxruntime_ep_fake_gpu PRIVATE
                    -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/libkiln_onnxruntime_ep.map -Wl,-z,nodelete)
target_link_libraries(test_peer_gpu PRIVATE kiln::onnxruntime)
add_dependencies(test_peer_gpu kiln_onnxruntime_ep_fake_gpu)
