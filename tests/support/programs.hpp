// What the build makes for tests to start or to load. One file holds the paths, so that the build's folder changes no
// other.
#pragma once

namespace gpumem::testing {

extern const char* const kCommandLine;    ///< the program gpumem; empty where it is not built
extern const char* const kJobsProgram;    ///< the program of the random jobs; empty where it is not built
extern const char* const kPretendedNvml;  ///< the folder of the pretended libnvidia-ml and of its job

}  // namespace gpumem::testing
