# kiln::serve: a static library of the server that `kiln serve` is. HTTP is cpp-httplib's with OpenSSL, metrics are
# prometheus-cpp's; both are compiled libraries, and no header of kiln's includes them.

if(NOT KILN_SERVE)
  return()
endif()
if(NOT TARGET kiln::generate)
  message(STATUS "KILN_LANGUAGE or KILN_ONNX is OFF: no kiln serve, whose models they read")
  return()
endif()
find_path(KILN_HTTPLIB_INCLUDE_DIR httplib.h)
find_library(KILN_HTTPLIB_LIBRARY cpp-httplib)
find_package(OpenSSL QUIET)
find_package(prometheus-cpp CONFIG QUIET)
if(NOT KILN_HTTPLIB_INCLUDE_DIR OR NOT KILN_HTTPLIB_LIBRARY OR NOT OPENSSL_FOUND OR NOT prometheus-cpp_FOUND)
  message(STATUS "No kiln serve: it needs cpp-httplib as a library, OpenSSL and prometheus-cpp "
                 "(libcpp-httplib-dev, libssl-dev, prometheus-cpp-dev)")
  return()
endif()

# gRPC: found by its files, since its package would look for all of its own dependencies.
find_path(KILN_GRPC_INCLUDE_DIR grpcpp/grpcpp.h)
find_library(KILN_GRPC_LIBRARY grpc++)
find_library(KILN_GRPC_CORE_LIBRARY grpc)
find_library(KILN_GPR_LIBRARY gpr)
find_library(KILN_ABSL_SYNCHRONIZATION_LIBRARY absl_synchronization)  # its headers call both
find_program(KILN_GRPC_PLUGIN grpc_cpp_plugin)
find_package(Protobuf QUIET)
set(grpc_units)
set(KILN_GRPC_LIBRARIES ${KILN_GRPC_LIBRARY} ${KILN_GRPC_CORE_LIBRARY} ${KILN_GPR_LIBRARY}
                        ${KILN_ABSL_SYNCHRONIZATION_LIBRARY})
set(KILN_SERVE_GRPC 0)
if(KILN_GRPC_INCLUDE_DIR AND KILN_GRPC_LIBRARY AND KILN_GRPC_CORE_LIBRARY AND KILN_GPR_LIBRARY
   AND KILN_ABSL_SYNCHRONIZATION_LIBRARY AND KILN_GRPC_PLUGIN AND Protobuf_FOUND)
  set(KILN_SERVE_GRPC 1)
  set(folder ${PROJECT_BINARY_DIR}/serve_proto)
  file(MAKE_DIRECTORY ${folder})
  set(proto ${PROJECT_SOURCE_DIR}/include/kiln/interface/serve/impl/inference.proto)
  set(grpc_units ${folder}/inference.pb.cc ${folder}/inference.grpc.pb.cc)
  add_custom_command(
    OUTPUT ${grpc_units} ${folder}/inference.pb.h ${folder}/inference.grpc.pb.h
    COMMAND protobuf::protoc -I ${PROJECT_SOURCE_DIR}/include/kiln/interface/serve/impl --cpp_out=${folder}
            --grpc_out=${folder} --plugin=protoc-gen-grpc=${KILN_GRPC_PLUGIN} ${proto}
    DEPENDS ${proto}
    VERBATIM)
  set_source_files_properties(${grpc_units} PROPERTIES COMPILE_OPTIONS "-w;-O1;-DGRPC_USE_PROTO_LITE" SKIP_PRECOMPILE_HEADERS ON)
else()
  message(STATUS "kiln serve has no gRPC: it needs libgrpc++-dev and protobuf-compiler-grpc")
endif()

kiln_generate_units(serve_units interface/serve)
kiln_embed_file(serve_units ${PROJECT_SOURCE_DIR}/include/kiln/interface/serve/impl/chat.html kiln::serve)
kiln_add_library(serve ${serve_units} ${grpc_units})
kiln_precompile(kiln_serve)
# what Debian's library is compiled with decides how its classes are laid out
target_compile_definitions(kiln_serve PRIVATE CPPHTTPLIB_OPENSSL_SUPPORT CPPHTTPLIB_ZLIB_SUPPORT
                                              CPPHTTPLIB_BROTLI_SUPPORT)
target_include_directories(
  kiln_serve SYSTEM PRIVATE ${KILN_HTTPLIB_INCLUDE_DIR}
                            $<TARGET_PROPERTY:nlohmann_json::nlohmann_json,INTERFACE_INCLUDE_DIRECTORIES>)
target_link_libraries(kiln_serve PUBLIC kiln::interface kiln::generate
                      PRIVATE kiln::onnx ${KILN_HTTPLIB_LIBRARY} OpenSSL::SSL prometheus-cpp::core)

# kiln_grpc_unit(<file>): a unit that knows the protocol's messages; onnx.proto asks for protobuf's lite runtime, and so
# does the protocol's.
function(kiln_grpc_unit file)
  set_property(SOURCE ${file} APPEND PROPERTY COMPILE_OPTIONS -DKILN_WITH_GRPC=1 -DGRPC_USE_PROTO_LITE
                                              -isystem ${PROJECT_BINARY_DIR}/serve_proto)
endfunction()
set(unit ${PROJECT_BINARY_DIR}/units/interface_serve_grpc_host.cpp)
if(KILN_SERVE_GRPC)
  kiln_grpc_unit(${unit})
  set_property(SOURCE ${unit} APPEND PROPERTY OBJECT_DEPENDS ${PROJECT_BINARY_DIR}/serve_proto/inference.grpc.pb.h)
  target_link_libraries(kiln_serve PRIVATE ${KILN_GRPC_LIBRARIES} protobuf::libprotobuf-lite)
else()
  set_property(SOURCE ${unit} APPEND PROPERTY COMPILE_OPTIONS -DKILN_WITH_GRPC=0)
endif()
