// A trainer's file, in JSON, TOML or YAML; or a file of a data set that such a file names.
#include "trainer_files.hpp"

#include "fuzz.hpp"
#include "image_trainers.hpp"
#include "run_tables.hpp"

namespace gpumem::fuzz {
namespace trainer_file_detail {

/// What a data set says is of sizes that options take, or is refused with words.
inline void read_as_data_set(std::string_view input) {
  const auto root = trainer_files::parse_settings(input);
  if (!root) return;
  trainer_files::TrainerJob job;
  trainer_files::take_image_dataset(*root, job);
  job::JobRequest request;
  const auto notes = trainer_files::apply(job, request);
  if (!notes) return require_readable(notes.error(), input);
  for (const std::string& note : *notes) require_readable({ErrorCode::malformed_input, note, {}}, input);
}

}  // namespace trainer_file_detail
}  // namespace gpumem::fuzz

GPUMEM_FUZZ_TARGET(trainer_file) {
  static const auto model = std::make_shared<const ModelGraph>(testing::small_model("fuzzed"));
  trainer_file_detail::read_as_data_set(input);
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
