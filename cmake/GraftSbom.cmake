# What the build is made of, as SPDX, beside the program and where it is installed.

find_package(Python3 3.9 QUIET COMPONENTS Interpreter)
if(Python3_FOUND)
  set(graft_sbom "${PROJECT_BINARY_DIR}/graft.spdx.json")
  add_custom_command(
    OUTPUT "${graft_sbom}"
    COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/scripts/sbom.py" "${PROJECT_BINARY_DIR}"
            "${graft_sbom}"
    DEPENDS $<TARGET_NAME_IF_EXISTS:graft> "${PROJECT_SOURCE_DIR}/scripts/sbom.py"
            "${PROJECT_SOURCE_DIR}/scripts/setup"
    VERBATIM)
  add_custom_target(sbom ALL DEPENDS "${graft_sbom}")
  install(FILES "${graft_sbom}" DESTINATION share/graft COMPONENT runtime)
endif()
