// A command that starts a training, on the first line; the rest is what each file that it names holds. What is read
// becomes the job of a small model, and its estimate is sound, or there is an error that people can read.
#include "launch_command.hpp"

#include <sstream>

#include "fuzz.hpp"
#include "run_tables.hpp"
#include "trainer_files.hpp"

GPUMEM_FUZZ_TARGET(launch_command) {
  static const auto model = std::make_shared<const ModelGraph>(testing::small_model("fuzzed"));
  const std::size_t end = std::min(input.find('\n'), input.size());
  std::istringstream line{std::string(input.substr(0, end))};
  std::vector<std::string> words;
  for (std::string word; line >> word;) words.push_back(word);
  const std::string file(input.substr(std::min(end + 1, input.size())));
  const auto read_file = [&](const std::string&) { return core::Result<std::string>(file); };
  const auto launched = trainer_files::read_launch_command(words, read_file);
  if (!launched) {
    require_readable(launched.error(), input);
    return false;
  }
  require(launched->gpus >= 1, "somebody trains");
  if (launched->program != trainer_files::LaunchedProgram::training) return true;
  job::JobRequest request;
  const auto notes = trainer_files::apply(launched->job, request);
  if (!notes) {
    require_readable(notes.error(), input);
    return false;
  }
  for (const std::string& note : *notes) require_readable({ErrorCode::malformed_input, note, {}}, input);
  if (const auto spread = trainer_files::spread(launched->job, launched->gpus, request); !spread) {
    require_readable(spread.error(), input);
    return false;
  }
  const auto made = job::job_from(request, model);
  if (!made) require_readable(made.error(), input);
  else require_sound(estimate(*made), *made, input);
  return true;
}
