# Installation, and the package files that find_package(kiln) reads from an installation or from this build tree.

include(CMakePackageConfigHelpers)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/kiln)
kiln_all_targets(compiled)
set(exported kiln)
foreach(name IN LISTS compiled)
  string(REPLACE "::" "_" name ${name})
  list(APPEND exported ${name})
endforeach()
install(TARGETS ${exported} EXPORT kiln-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})

# The shared libraries: programs in C need these alone.
set(shared ${KILN_EIGEN_BASE_TARGET})
if(TARGET kiln_c)
  list(APPEND shared kiln_c)
endif()
# In a folder of its own: libmigraphx_c.so.3 is also the name of the library that it stands in for.
if(TARGET kiln_migraphx_c)
  install(TARGETS kiln_migraphx_c EXPORT kiln-shared-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/kiln/migraphx)
endif()
if(TARGET kiln_onnxruntime_ep)
  install(TARGETS kiln_onnxruntime_ep LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET kiln_onnxruntime_shim)
  install(TARGETS kiln_onnxruntime_shim EXPORT kiln-shared-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/kiln/onnxruntime)
endif()
if(TARGET kiln_onnxruntime_node)
  install(TARGETS kiln_onnxruntime_node LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/kiln/onnxruntime/node)
  install(FILES ${node_folder}/index.js ${node_folder}/index.d.ts ${node_folder}/package.json
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/kiln/onnxruntime/node)
endif()
if(shared)
  install(TARGETS ${shared} EXPORT kiln-shared-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT kiln-shared-targets NAMESPACE kiln:: DESTINATION ${package})
  export(EXPORT kiln-shared-targets NAMESPACE kiln:: FILE ${PROJECT_BINARY_DIR}/kiln-shared-targets.cmake)
endif()
if(TARGET kiln_program)
  install(TARGETS kiln_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY include/kiln DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(EXPORT kiln-targets NAMESPACE kiln:: DESTINATION ${package})
export(EXPORT kiln-targets NAMESPACE kiln:: FILE ${PROJECT_BINARY_DIR}/kiln-targets.cmake)

configure_package_config_file(cmake/kiln-config.cmake.in ${PROJECT_BINARY_DIR}/kiln-config.cmake
                              INSTALL_DESTINATION ${package} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kiln-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/kiln-config.cmake ${PROJECT_BINARY_DIR}/kiln-config-version.cmake
              cmake/kiln_static_program.cmake cmake/kiln_add_model.cmake DESTINATION ${package})
foreach(file IN ITEMS kiln_static_program kiln_add_model)
  configure_file(cmake/${file}.cmake ${PROJECT_BINARY_DIR}/${file}.cmake COPYONLY)
endforeach()
