// A user's own GPU profile.
#include "gpumem/device/gpu_profile.hpp"

#include "fuzz.hpp"

GPUMEM_FUZZ_TARGET(gpu_profile) {
  const Result<GpuProfile> profile = device::parse_profile(input, "fuzzed.json");
  if (!profile) {
    require_readable(profile.error(), input);
    return false;
  }
  require(!profile->name.empty(), "a profile has a name");
  require(profile->capacity().count() > 0, "a GPU has memory");
  for (const auto& context : profile->contexts) require(context.bytes > 0, "a context takes memory");
  return true;
}
