// CARMA's job descriptions.
#include "gpumem_datasets/rad_file.hpp"

#include "fuzz.hpp"

GPUMEM_FUZZ_TARGET(rad_file) {
  const auto file = datasets::parse_rad(input, "fuzzed.rad");
  if (!file) {
    require_readable(file.error(), input);
    return false;
  }
  require(!file->commands.empty(), "a job runs something");
  require(!file->model.empty(), "a job has a model");
  require(file->batch_size > 0, "a batch has samples");
  require(file->gpus > 0, "a job runs on GPUs");
  require(file->policy.empty() == (file->policy_line == 0), "a policy stands in a line");
  for (const auto& figure : {file->measured_mib, file->horus_mib, file->faketensor_mib, file->gpumemnet_mib}) {
    require(figure.value_or(0.0) >= 0.0, "no figure is negative");
  }
  return true;
}
