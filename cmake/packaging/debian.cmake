# Before CPack builds the packages: what Debian wants otherwise than `cmake --install` leaves it. Every
# component lies in a directory of its own.
set(VERSION "${CPACK_PACKAGE_VERSION}")
set(MAINTAINER "${CPACK_PACKAGE_CONTACT}")
string(TIMESTAMP DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
set(permissions FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
    DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
    WORLD_EXECUTE)

set(scratch "${CPACK_TOPLEVEL_DIRECTORY}/debian")
configure_file("${CPACK_MESHWRIGHT_PACKAGING}/changelog.in" "${scratch}/changelog" @ONLY)
execute_process(COMMAND gzip -9nf "${scratch}/changelog" COMMAND_ERROR_IS_FATAL ANY)

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER "${component}" key)
  set(package "${CPACK_DEBIAN_${key}_PACKAGE_NAME}")
  set(share "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}/usr/share")
  file(COPY "${scratch}/changelog.gz" "${CPACK_MESHWRIGHT_PACKAGING}/copyright"
       DESTINATION "${share}/doc/${package}" ${permissions})
  file(REMOVE "${share}/doc/${package}/LICENSE") # copyright refers to Debian's copy
  set(overrides "${CPACK_MESHWRIGHT_PACKAGING}/lintian-overrides-${component}")
  if(EXISTS "${overrides}")
    file(COPY "${overrides}" DESTINATION "${share}/lintian/overrides" ${permissions})
    file(RENAME "${share}/lintian/overrides/lintian-overrides-${component}"
         "${share}/lintian/overrides/${package}")
  endif()
  if(EXISTS "${share}/zsh/site-functions") # which is the administrator's, in Debian
    file(RENAME "${share}/zsh/site-functions" "${share}/zsh/vendor-completions")
  endif()
endforeach()
