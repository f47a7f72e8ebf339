# Finds the header-only protozero library (Debian: libprotozero-dev); defines protozero::protozero.
find_path(PROTOZERO_INCLUDE_DIR protozero/pbf_writer.hpp)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Protozero REQUIRED_VARS PROTOZERO_INCLUDE_DIR)
if(Protozero_FOUND AND NOT TARGET protozero::protozero)
  add_library(protozero::protozero INTERFACE IMPORTED)
  target_include_directories(protozero::protozero SYSTEM INTERFACE "${PROTOZERO_INCLUDE_DIR}")
endif()
