# Installation and Debian packages. `cmake --install build/release --prefix DIR` installs all parts that
# were built; `./dev package` makes the packages meshwright, meshwright-gui and one per plug-in, whose
# description is in its own file (MeshwrightCuda.cmake). Included last: it needs the targets of all
# folders.
if(MESHWRIGHT_SANITIZE OR MESHWRIGHT_GUI_SANITIZE OR MESHWRIGHT_FUZZ)
  return() # such programs are for checks only
endif()
include(GNUInstallDirs)
set(packaging "${CMAKE_SOURCE_DIR}/cmake/packaging")
set(generated "${CMAKE_BINARY_DIR}/packaging")
string(TIMESTAMP today "%Y-%m-%d" UTC) # or the day of SOURCE_DATE_EPOCH

# ---- man pages and shell completions, from the programs' own help --------------------------------
add_custom_command(
  OUTPUT "${generated}/cli.stamp"
  COMMAND ${CMAKE_COMMAND} -D "PROGRAM=$<TARGET_FILE:meshwright>" -D "OUTPUT=${generated}/cli"
          -D "DATE=${today}" -P "${packaging}/write_documentation.cmake"
  COMMAND ${CMAKE_COMMAND} -E touch "${generated}/cli.stamp"
  DEPENDS meshwright "${packaging}/write_documentation.cmake"
  COMMENT "Writing man pages and shell completions"
  VERBATIM)
set(generated_files "${generated}/cli.stamp")
set(components cli)
if(TARGET meshwright-gui)
  add_custom_command(
    OUTPUT "${generated}/meshwright-gui.1.gz"
    COMMAND ${CMAKE_COMMAND} -D "PROGRAM=$<TARGET_FILE:meshwright-gui>"
            -D "OUTPUT=${generated}/meshwright-gui.1.gz" -D "DATE=${today}"
            -D "VERSION=${PROJECT_VERSION}" -P "${packaging}/write_gui_man_page.cmake"
    DEPENDS meshwright-gui "${packaging}/write_gui_man_page.cmake"
    COMMENT "Writing the man page of meshwright-gui"
    VERBATIM)
  list(APPEND generated_files "${generated}/meshwright-gui.1.gz")
  list(APPEND components gui)
endif()
# Everything that is installed, and nothing else: what a package needs to be built.
add_custom_target(installed_files ALL DEPENDS ${generated_files})
foreach(plugin IN LISTS MESHWRIGHT_PLUGINS)
  if(TARGET meshwright_${plugin})
    add_dependencies(installed_files meshwright_${plugin})
    # kernels/device/backend_plugin.cpp looks for it there, relative to the program.
    install(TARGETS meshwright_${plugin} LIBRARY DESTINATION lib/meshwright COMPONENT ${plugin})
    list(APPEND components ${plugin})
  endif()
endforeach()

# ---- what is installed where ---------------------------------------------------------------------
install(TARGETS meshwright RUNTIME COMPONENT cli)
install(DIRECTORY "${generated}/cli/man/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT cli)
install(FILES "${generated}/cli/bash/meshwright"
        DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" COMPONENT cli)
install(FILES "${generated}/cli/zsh/_meshwright"
        DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" COMPONENT cli)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT cli)
install(DIRECTORY models/examples DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT cli)

if(TARGET meshwright-gui)
  install(TARGETS meshwright-gui RUNTIME COMPONENT gui)
  install(FILES "${generated}/meshwright-gui.1.gz" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1"
          COMPONENT gui)
  install(FILES gui/desktop/meshwright-gui.desktop
          DESTINATION "${CMAKE_INSTALL_DATADIR}/applications" COMPONENT gui)
  install(FILES gui/desktop/meshwright.svg
          DESTINATION "${CMAKE_INSTALL_DATADIR}/icons/hicolor/scalable/apps" COMPONENT gui)
  install(FILES gui/desktop/meshwright.xml
          DESTINATION "${CMAKE_INSTALL_DATADIR}/mime/packages" COMPONENT gui)
endif()

# ---- Debian packages -----------------------------------------------------------------------------
set(MESHWRIGHT_MAINTAINER "Meshwright developers <maintainers@meshwright.invalid>" CACHE STRING
    "Maintainer in the packages: Name <address>")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME meshwright)
set(CPACK_PACKAGE_VENDOR Meshwright)
set(CPACK_PACKAGE_CONTACT "${MESHWRIGHT_MAINTAINER}")
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "") # each description below begins with its own
set(CPACK_PACKAGE_DIRECTORY "${CMAKE_BINARY_DIR}/packages")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ
    GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL ${components})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_PRE_BUILD_SCRIPTS "${packaging}/debian.cmake")
set(CPACK_MESHWRIGHT_PACKAGING "${packaging}") # for that script

set(CPACK_DEBIAN_CLI_PACKAGE_NAME meshwright)
set(CPACK_DEBIAN_CLI_PACKAGE_SUGGESTS "meshwright-gui, openmpi-bin")
set(CPACK_COMPONENT_CLI_DESCRIPTION
    "plan, simulate and run parallel training of large models
Meshwright searches the ways to train a model on a cluster: tensor, pipeline,
data, context and expert parallelism, pipeline schedules, micro-batches,
activation recomputation and ZeRO. It predicts step time and memory of each
plan by simulating every task of a training step, explains where the time
goes, and runs plans on CPUs to compare predicted with measured timelines.
.
This package has the command-line program.")

set(CPACK_DEBIAN_GUI_PACKAGE_NAME meshwright-gui)
set(CPACK_COMPONENT_GUI_DEPENDS cli)
set(CPACK_COMPONENT_GUI_DESCRIPTION
    "desktop program of Meshwright, a planner of parallel training
Meshwright plans and simulates the parallel training of large models.
.
This package has the desktop program: explore how parallelism and pipeline
schedules change the timeline, search and compare plans, and open predicted
and measured timelines.")

include(CPack)
