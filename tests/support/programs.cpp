#include "programs.hpp"

namespace gpumem::testing {

const char* const kCommandLine = GPUMEM_CLI;
const char* const kJobsProgram = GPUMEM_JOBS;
const char* const kPretendedNvml = GPUMEM_PRETENDED_NVML_FOLDER;

}  // namespace gpumem::testing
