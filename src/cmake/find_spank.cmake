# Where GPUMEM_BUILD_SLURM asks for Slurm's plugin: GPUMEM_SPANK_INCLUDE, the folder of <slurm/spank.h>. AUTO builds it in a
# checkout of gpumem, on Linux, where that header is (Debian: libslurm-dev).
if(PROJECT_IS_TOP_LEVEL OR NOT GPUMEM_BUILD_SLURM STREQUAL AUTO)
  if(CMAKE_SYSTEM_NAME STREQUAL Linux)
    find_path(GPUMEM_SPANK_INCLUDE slurm/spank.h)
  endif()
  if(NOT GPUMEM_SPANK_INCLUDE AND NOT GPUMEM_BUILD_SLURM STREQUAL AUTO)
    message(FATAL_ERROR "GPUMEM_BUILD_SLURM is ${GPUMEM_BUILD_SLURM}, and there is no <slurm/spank.h>; install Slurm's "
                        "headers (Debian: libslurm-dev)")
  endif()
endif()
