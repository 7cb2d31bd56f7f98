# kiln::genai: libonnxruntime-genai.so, ONNX Runtime GenAI's C interface with all of kiln in it, in a folder of its own so
# that it shadows nothing by accident. Its headers are opted into by their include path.

if(NOT KILN_GENAI)
  return()
endif()
if(NOT TARGET kiln::generate)
  message(STATUS "KILN_LANGUAGE or KILN_ONNX is OFF: no GenAI interface, whose models they read")
  return()
endif()

kiln_generate_units(genai_units interface/genai)
add_library(kiln_genai SHARED ${genai_units})
add_library(kiln::genai ALIAS kiln_genai)
kiln_own(kiln_genai)
set(map ${PROJECT_SOURCE_DIR}/cmake/libonnxruntime-genai.map)
set_target_properties(kiln_genai PROPERTIES EXPORT_NAME genai OUTPUT_NAME onnxruntime-genai
                      CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
                      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/genai
                      BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/..;$ORIGIN/../.." LINK_DEPENDS ${map})
set(genai_include include/kiln/interface/genai/include)
target_include_directories(
  kiln_genai PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/${genai_include}>
                    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/kiln/interface/genai/include>)
target_link_libraries(kiln_genai PRIVATE kiln::interface kiln::generate)
target_link_options(kiln_genai PRIVATE -Wl,--version-script=${map})
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  target_link_options(kiln_genai PRIVATE -Wl,-z,defs)
endif()

# kiln-genai.pc, beside kiln.pc, finds its folders from its own place too.
set(pkgconfig ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH KILN_PC_INCLUDE ${pkgconfig} ${CMAKE_INSTALL_FULL_INCLUDEDIR}/kiln/interface/genai/include)
file(RELATIVE_PATH KILN_PC_LIB ${pkgconfig} ${CMAKE_INSTALL_FULL_LIBDIR}/kiln/genai)
configure_file(cmake/kiln-genai.pc.in ${PROJECT_BINARY_DIR}/kiln-genai.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/kiln-genai.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
