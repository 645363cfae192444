# Writes gpumem/device/impl/builtin_gpus.hpp, which holds every profile of a folder as text: the library carries its
# GPUs, and adding one stays one JSON file.
function(gpumem_write_builtin_gpus folder out)
  file(GLOB profiles CONFIGURE_DEPENDS ${folder}/*.json)
  # By name, so that a GPU comes before its slices: a100-40gb, a100-40gb-mig-1g.5gb.
  list(TRANSFORM profiles REPLACE "[.]json$" "")
  list(SORT profiles)
  list(TRANSFORM profiles APPEND ".json")
  list(LENGTH profiles count)
  set(rows "")
  foreach(profile ${profiles})
    get_filename_component(name ${profile} NAME_WLE)
    file(READ ${profile} json)
    string(APPEND rows "    {\"${name}\", R\"gpumem(${json})gpumem\"},\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${profile})
  endforeach()
  set(text
      "// Written by src/cmake/builtin_gpus.cmake from models/gpus/.\n#pragma once\n\n#include <array>\n\n#include \"gpumem/device/gpu_profile.hpp\"\n\nnamespace gpumem::device::builtin {\n\ninline constexpr std::array<BuiltinProfile, ${count}> kProfiles = {{\n${rows}}};\n\n}  // namespace gpumem::device::builtin\n"
  )
  file(CONFIGURE OUTPUT ${out}/gpumem/device/impl/builtin_gpus.hpp CONTENT "${text}" @ONLY)
endfunction()
