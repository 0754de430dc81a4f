# An overlay port: it builds the sources that it lies in.
#
# oneDNN is off: Graft runs its loops on threads of its own in a copy of the shared library, and vcpkg
# builds another.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS options FEATURES tools GRAFT_BUILD_TOOLS)
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    ${options}
    -DGRAFT_NATIVE=OFF
    -DGRAFT_UNITY=ON
    -DGRAFT_INSTALL=ON
    -DGRAFT_BUILD_TESTS=OFF
    -DGRAFT_BUILD_EXAMPLES=OFF
    -DGRAFT_WITH_ONEDNN=OFF
    -DGRAFT_WITH_RE2=ON)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/graft)
vcpkg_fixup_pkgconfig()
if("tools" IN_LIST FEATURES)
  vcpkg_copy_tools(TOOL_NAMES graft AUTO_CLEAN)
endif()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE" "${SOURCE_PATH}/NOTICE")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
