# kiln::onnxruntime_shim: libonnxruntime.so.1 for programs in C and C++ that ask ONNX Runtime for MIGraphX's provider. It
# passes every call to a stock ONNX Runtime, which it finds when it is first called, but for those that append a provider.
# It is in a folder of its own so that it shadows nothing by accident; its headers are opted into by their include path.

if(NOT TARGET kiln_onnxruntime_ep)
  return()
endif()
set(KILN_ONNXRUNTIME_STOCK "" CACHE FILEPATH "The libonnxruntime.so.1 behind kiln's, before the loader's folders")

kiln_generate_units(onnxruntime_shim_units interface/onnxruntime/shim)
add_library(kiln_onnxruntime_calls STATIC ${onnxruntime_shim_units})
kiln_own(kiln_onnxruntime_calls)
set_target_properties(kiln_onnxruntime_calls PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
target_compile_definitions(kiln_onnxruntime_calls PRIVATE KILN_ONNXRUNTIME_STOCK="${KILN_ONNXRUNTIME_STOCK}")
target_link_libraries(kiln_onnxruntime_calls PUBLIC kiln::onnxruntime PRIVATE ${CMAKE_DL_LIBS})

# A program that was linked with the stock library asks for symbols of that library's version: each has a name of its own.
set(functions OrtGetApiBase)
foreach(provider IN ITEMS CPU CUDA MIGraphX Tensorrt)
  list(APPEND functions OrtSessionOptionsAppendExecutionProvider_${provider})
endforeach()
set(map ${PROJECT_BINARY_DIR}/libonnxruntime.map)
set(nodes)
set(aliases)
set(latest 1.30.0)
foreach(minor RANGE 16 36)
  foreach(patch RANGE 0 4)
    set(version 1.${minor}.${patch})
    set(is @)
    set(content)
    if(version STREQUAL latest)  # what programs without versions get
      set(is @@)
      list(JOIN functions "; " exported)
      set(content "global: kiln_onnxruntime_shim; ${exported}; local: *;")
    endif()
    string(APPEND nodes "VERS_${version} { ${content} };\n")
    foreach(function IN LISTS functions)
      set(alias ${function}_${minor}_${patch})
      string(APPEND aliases "asm(\".globl ${alias}\\n.type ${alias}, %function\\n.set ${alias}, kiln_${function}\\n\"\n"
                            "    \".symver ${alias}, ${function}${is}VERS_${version}\");\n")
    endforeach()
  endforeach()
endforeach()
file(GENERATE OUTPUT ${map} CONTENT "${nodes}")
set(unit ${PROJECT_BINARY_DIR}/units/interface_onnxruntime_shim_library_exports.cpp)
file(GENERATE OUTPUT ${unit} CONTENT "#include <kiln/interface/onnxruntime/shim/library/impl/exports.ipp>\n${aliases}")

add_library(kiln_onnxruntime_shim SHARED ${unit})
add_library(kiln::onnxruntime_shim ALIAS kiln_onnxruntime_shim)
kiln_own(kiln_onnxruntime_shim)
set_target_properties(kiln_onnxruntime_shim PROPERTIES EXPORT_NAME onnxruntime_shim OUTPUT_NAME onnxruntime VERSION ${latest}
                      SOVERSION 1 CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
                      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/onnxruntime LINK_DEPENDS ${map})
set(onnxruntime_include include/kiln/interface/onnxruntime/shim/include)
target_include_directories(
  kiln_onnxruntime_shim
  PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/${onnxruntime_include}>
         $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/kiln/interface/onnxruntime/shim/include>)
target_link_libraries(kiln_onnxruntime_shim PRIVATE kiln_onnxruntime_calls)
target_link_options(kiln_onnxruntime_shim PRIVATE -Wl,--version-script=${map})
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  target_link_options(kiln_onnxruntime_shim PRIVATE -Wl,-z,defs)
endif()
# Static archives among its parts would put all of kiln into it, were it not for this: it calls none of the compiler.
target_link_options(kiln_onnxruntime_shim PRIVATE -Wl,--gc-sections)
add_dependencies(kiln_onnxruntime_shim kiln_onnxruntime_ep)

# kiln-onnxruntime.pc, beside kiln.pc, finds its folders from its own place too.
set(pkgconfig ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH KILN_PC_INCLUDE ${pkgconfig}
     ${CMAKE_INSTALL_FULL_INCLUDEDIR}/kiln/interface/onnxruntime/shim/include)
file(RELATIVE_PATH KILN_PC_LIB ${pkgconfig} ${CMAKE_INSTALL_FULL_LIBDIR}/kiln/onnxruntime)
configure_file(cmake/kiln-onnxruntime.pc.in ${PROJECT_BINARY_DIR}/kiln-onnxruntime.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/kiln-onnxruntime.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
