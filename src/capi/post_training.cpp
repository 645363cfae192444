#include "post_training.hpp"

#include <string>
#include <vector>

#include "estimate_result.hpp"
#include "gpumem/gpumem.hpp"
#include "gpumem/posttrain/launch.hpp"
#include "held.hpp"
#include "message.hpp"
#include "sized.hpp"

namespace gpumem::capi {

namespace {

constexpr std::size_t kFirstPostTraining = sizeof(gpumem_post_training_result);

core::Result<posttrain::PostTrainingRequest> post_training_request(const char* model, const char* gpu,
                                                                   const std::vector<std::string>& options,
                                                                   const std::vector<std::string>& command) {
  posttrain::PostTrainingRequest request;
  if (model != nullptr) request.training.summary = model;
  if (request.training.summary == "-") request.training.summary = "./-";  // a file, as everywhere in the C API
  if (gpu != nullptr && *gpu != '\0') request.training.gpu = gpu;
  posttrain::PostTrainingWords words{.command = command};
  for (const std::string& option : options) {
    const std::size_t equals = option.find('=');
    if (equals == std::string::npos) return refused("an option is NAME=VALUE, and " + core::quoted(option) + " is not");
    words.options[option.substr(0, equals)] = option.substr(equals + 1);
  }
  if (const core::Status read = posttrain::read_words(words, request); !read) return read.error();
  return request;
}

}  // namespace

core::Status make_post_training(const char* model, const char* gpu, const char* const* options,
                                std::size_t option_count, const char* const* words, std::size_t count,
                                gpumem_post_training_result* result) {
  if (result == nullptr) return refused("result is a null pointer");
  if (auto checked = check_size(result->size, kFirstPostTraining, "gpumem_post_training_result"); !checked) {
    return checked;
  }
  const auto given_options = texts_of(options, option_count, "options");
  if (!given_options) return given_options.error();
  const auto command = texts_of(words, count, "words");
  if (!command) return command.error();
  const auto request = post_training_request(model, gpu, *given_options, *command);
  if (!request) return request.error();
  const auto found = process_session().post_training(*request);
  if (!found) return found.error();
  gpumem_post_training_result given = room_of(result);
  const estimate::MemoryEstimate& memory = found->memory;
  const posttrain::PhaseEstimate& peak = found->phases[found->peak_phase];
  given.expected_bytes = memory.expected.count();
  given.lower_bytes = memory.lower.count();
  given.upper_bytes = memory.upper.count();
  given.allocated_bytes = peak.allocated.count();
  given.reserved_bytes = peak.reserved.count();
  given.rollout_bytes = peak.rollout.count();
  given.gpus = memory.gpus;
  given.verdict = verdict_of(memory.verdict);
  given.fits = memory.fits ? 1 : 0;
  write_text(peak.name, given.phase, given.phase_size);
  give(given, result);
  return core::Done{};
}

}  // namespace gpumem::capi
