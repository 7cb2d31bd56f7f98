# kiln::interface: a static library of what every interface needs of all parts, as targets by name.
# kiln::c: libkiln.so, the C interface with all of kiln in it. It exports the functions of kiln.h alone and loads the
# instruction-set levels of libkiln_eigen.so.1 from beside it.

kiln_generate_units(interface_units interface)
kiln_add_library(interface ${interface_units})
kiln_precompile(kiln_interface)
target_link_libraries(kiln_interface PUBLIC kiln::runtime)
foreach(name IN ITEMS eigen hip)
  string(TOUPPER ${name} upper)
  set(there 0)
  if(TARGET kiln::${name})
    set(there 1)
    target_link_libraries(kiln_interface PUBLIC kiln::${name})
  endif()
  target_compile_definitions(kiln_interface PRIVATE KILN_WITH_${upper}=${there})
endforeach()
target_compile_definitions(kiln_interface PRIVATE KILN_WITH_LANGUAGE=$<TARGET_EXISTS:kiln::generate>)
if(TARGET kiln::generate)
  target_link_libraries(kiln_interface PUBLIC kiln::generate kiln::quantize)
endif()

if(NOT KILN_C)
  return()
endif()
if(NOT KILN_ONNX)
  message(STATUS "KILN_ONNX is OFF: no C interface, whose programs come from ONNX")
  return()
endif()

kiln_generate_units(c_units interface/c)
add_library(kiln_c SHARED ${c_units})
add_library(kiln::c ALIAS kiln_c)
kiln_own(kiln_c)
set(map ${PROJECT_SOURCE_DIR}/cmake/libkiln.map)
set_target_properties(kiln_c PROPERTIES EXPORT_NAME c OUTPUT_NAME kiln SOVERSION 0 CXX_VISIBILITY_PRESET hidden
                      VISIBILITY_INLINES_HIDDEN ON LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib
                      BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN" LINK_DEPENDS ${map})
target_include_directories(kiln_c INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                            $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(kiln_c PRIVATE kiln::interface kiln::onnx kiln::tensorflow kiln::quantize)
target_link_options(kiln_c PRIVATE -Wl,--version-script=${map})
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  target_link_options(kiln_c PRIVATE -Wl,-z,defs)
endif()

# kiln.pc finds its folders from its own place: an installation may be moved.
set(pkgconfig ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH KILN_PC_INCLUDE ${pkgconfig} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
file(RELATIVE_PATH KILN_PC_LIB ${pkgconfig} ${CMAKE_INSTALL_FULL_LIBDIR})
configure_file(cmake/kiln.pc.in ${PROJECT_BINARY_DIR}/kiln.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/kiln.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# kiln_own_c(<target>): a program in C11 over libkiln.so.
function(kiln_own_c target)
  set_target_properties(${target} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE -Wall -Wextra -pedantic $<$<BOOL:${KILN_WERROR}>:-Werror>)
  target_link_libraries(${target} PRIVATE kiln::c)
endfunction()
