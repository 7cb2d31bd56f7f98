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

kiln_generate_units(serve_units interface/serve)
kiln_embed_file(serve_units ${PROJECT_SOURCE_DIR}/include/kiln/interface/serve/impl/chat.html kiln::serve)
kiln_add_library(serve ${serve_units})
kiln_precompile(kiln_serve)
# what Debian's library is compiled with decides how its classes are laid out
target_compile_definitions(kiln_serve PRIVATE CPPHTTPLIB_OPENSSL_SUPPORT CPPHTTPLIB_ZLIB_SUPPORT
                                              CPPHTTPLIB_BROTLI_SUPPORT)
target_include_directories(
  kiln_serve SYSTEM PRIVATE ${KILN_HTTPLIB_INCLUDE_DIR}
                            $<TARGET_PROPERTY:nlohmann_json::nlohmann_json,INTERFACE_INCLUDE_DIRECTORIES>)
target_link_libraries(kiln_serve PUBLIC kiln::interface kiln::generate
                      PRIVATE kiln::onnx ${KILN_HTTPLIB_LIBRARY} OpenSSL::SSL prometheus-cpp::core)
