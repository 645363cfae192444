# Install and export: find_package(gpumem) gives gpumem::gpumem, gpumem::headers, and for C gpumem::c and
# gpumem::c_static; pkg-config gives gpumem and gpumem-c. find_package(gpumem COMPONENTS datasets) adds gpumem::datasets.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gpumem)

install(TARGETS gpumem gpumem_headers EXPORT gpumem-targets)
if(GPUMEM_BUILD_CLI)
  install(TARGETS gpumem_cli)
endif()
if(TARGET gpumem_jobs)
  install(TARGETS gpumem_jobs)
endif()
if(TARGET gpumem_webhook)
  install(TARGETS gpumem_webhook COMPONENT webhook)
endif()
if(GPUMEM_BUILD_CAPI)
  install(TARGETS gpumem_c gpumem_c_static EXPORT gpumem-targets)
  configure_file(src/cmake/gpumem-c.pc.in ${CMAKE_CURRENT_BINARY_DIR}/gpumem-c.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/gpumem-c.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
# Who asks for it by name gets it: find_package(gpumem COMPONENTS datasets).
if(TARGET gpumem_datasets)
  install(TARGETS gpumem_datasets EXPORT gpumem-datasets-targets COMPONENT datasets)
  install(DIRECTORY include/gpumem_datasets DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT datasets)
  install(EXPORT gpumem-datasets-targets NAMESPACE gpumem:: DESTINATION ${package_dir} COMPONENT datasets)
endif()
install(DIRECTORY include/gpumem DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/generated/gpumem DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY models/gpus models/summaries DESTINATION ${CMAKE_INSTALL_DATADIR}/gpumem/models)
install(FILES examples/server.json DESTINATION ${CMAKE_INSTALL_DATADIR}/gpumem RENAME example-server.json)
install(EXPORT gpumem-targets NAMESPACE gpumem:: DESTINATION ${package_dir})

configure_package_config_file(src/cmake/gpumem-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/gpumem-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/gpumem-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/gpumem-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/gpumem-config-version.cmake
        DESTINATION ${package_dir})

configure_file(src/cmake/gpumem.pc.in ${CMAKE_CURRENT_BINARY_DIR}/gpumem.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/gpumem.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
