// A trainer's file, in JSON or YAML.
#include "trainer_files.hpp"

#include "fuzz.hpp"
#include "run_tables.hpp"

GPUMEM_FUZZ_TARGET(trainer_file) {
  static const auto model = std::make_shared<const ModelGraph>(testing::small_model("fuzzed"));
  auto job = trainer_files::parse_trainer_job(input);
  if (!job) return require_readable(job.error(), input), false;
  trainer_files::TrainerJob adapted = *job;
  if (const auto taken = trainer_files::take_adapter(input, adapted); !taken) require_readable(taken.error(), input);
  if (const auto taken = trainer_files::take_deepspeed(input, adapted); !taken) require_readable(taken.error(), input);
  for (const trainer_files::TrainerJob* one : {&*job, &adapted}) {
    job::JobRequest request;
    const auto notes = trainer_files::apply(*one, request);
    if (!notes) {
      require_readable(notes.error(), input);
      continue;
    }
    for (const std::string& note : *notes) require_readable({ErrorCode::malformed_input, note, {}}, input);
    const auto made = job::job_from(request, model);
    if (!made) require_readable(made.error(), input);
    else require_sound(estimate(*made), *made, input);
  }
  return true;
}
