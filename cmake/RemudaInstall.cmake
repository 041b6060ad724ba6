# What `cmake --install` puts where. Three components:
#   program      remuda, its manual pages, completion for shells
#   train        remuda-train
#   agent        units of systemd for `remuda agent`, and the mark that this machine has one
#   development  headers, static libraries and a CMake package: find_package(remuda), remuda::remuda
#   development-train  the same for find_package(remuda COMPONENTS train), remuda::train
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS remuda RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
if(REMUDA_TRAIN)
  install(TARGETS remuda-train RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT train)
endif()
install(DIRECTORY ${CMAKE_BINARY_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program
  FILES_MATCHING PATTERN "*.1")

# Each shell finds its script by the name that it has there.
install(FILES ${CMAKE_BINARY_DIR}/completion/bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
  RENAME remuda COMPONENT program)
install(FILES ${CMAKE_BINARY_DIR}/completion/zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
  RENAME _remuda COMPONENT program)
install(FILES ${CMAKE_BINARY_DIR}/completion/fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
  RENAME remuda.fish COMPONENT program)

install(CODE "
  set(PROGRAM \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/remuda\")
  foreach(unit agent web)
    configure_file(\"${REMUDA_ROOT}/packaging/remuda-\${unit}.service.in\" \"${CMAKE_BINARY_DIR}/remuda-\${unit}.service\" @ONLY)
  endforeach()
  " COMPONENT agent)
install(FILES ${CMAKE_BINARY_DIR}/remuda-agent.service ${REMUDA_ROOT}/packaging/remuda-agent.socket
  ${CMAKE_BINARY_DIR}/remuda-web.service DESTINATION lib/systemd/system COMPONENT agent)
foreach(unit session-.scope user@.service)
  install(FILES ${REMUDA_ROOT}/packaging/remuda-sessions.conf DESTINATION lib/systemd/system/${unit}.d RENAME remuda.conf
    COMPONENT agent)
endforeach()
install(FILES ${REMUDA_ROOT}/packaging/remuda.tmpfiles.conf DESTINATION lib/tmpfiles.d RENAME remuda.conf COMPONENT agent)

# What Prometheus and Grafana read.
install(DIRECTORY ${REMUDA_ROOT}/packaging/prometheus ${REMUDA_ROOT}/packaging/grafana DESTINATION ${CMAKE_INSTALL_DATADIR}/remuda
  COMPONENT program PATTERN "*.test.yml" EXCLUDE)

# The library for others: seeing devices, choosing among them, leasing them. No libtorch.
set(folders base process device probe recorded topology place policy sqlite pool measure)
set(libraries base process device sysfs probe_amd probe_nvml probe_pci probe recorded topology place policy sqlite pool measure)
foreach(library ${libraries})
  set_target_properties(remuda_${library} PROPERTIES EXPORT_NAME ${library})
  install(TARGETS remuda_${library} EXPORT remuda ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
endforeach()
set_target_properties(remuda_flags PROPERTIES EXPORT_NAME flags)
install(TARGETS remuda_flags EXPORT remuda COMPONENT development)
foreach(folder ${folders})
  install(DIRECTORY ${REMUDA_ROOT}/${folder} DESTINATION include/remuda COMPONENT development
    FILES_MATCHING PATTERN "*.h" PATTERN testing EXCLUDE PATTERN testdata EXCLUDE)
endforeach()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/remuda)

# The library for training. Its one header is all that its users see of it; the rest is there to be linked, with the
# libtorch that they find.
if(REMUDA_TRAIN)
  set(train_libraries document profile data weights checkpoint job balance comm compress quorum train parallel)
  foreach(library ${train_libraries})
    set_target_properties(remuda_${library} PROPERTIES EXPORT_NAME ${library})
    install(TARGETS remuda_${library} EXPORT remuda-train ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
      COMPONENT development-train)
  endforeach()
  set_target_properties(remuda_train PROPERTIES EXPORT_NAME train_engine)
  set_target_properties(remuda_parallel PROPERTIES EXPORT_NAME train)
  install(FILES ${REMUDA_ROOT}/parallel/parallel.h DESTINATION include/remuda COMPONENT development-train)
  install(EXPORT remuda-train NAMESPACE remuda:: FILE remuda-train-targets.cmake DESTINATION ${package_folder}
    COMPONENT development-train)
endif()

install(EXPORT remuda NAMESPACE remuda:: FILE remuda-targets.cmake DESTINATION ${package_folder} COMPONENT development)
configure_package_config_file(${REMUDA_ROOT}/cmake/remuda-config.cmake.in ${CMAKE_BINARY_DIR}/remuda-config.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/remuda-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/remuda-config.cmake ${CMAKE_BINARY_DIR}/remuda-config-version.cmake
  DESTINATION ${package_folder} COMPONENT development)

# What the test of all this has to build first.
add_custom_target(installable DEPENDS remuda man)
foreach(library ${libraries} ${train_libraries})
  add_dependencies(installable remuda_${library})
endforeach()
