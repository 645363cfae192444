// A post-training launch: its command on the first line, its model's config.json on the others. What is read is
// estimated, with parts that sum to the figure, or is an error.
#include <sstream>

#include "fuzz.hpp"
#include "gpumem/posttrain/estimate_post_training.hpp"
#include "gpumem/posttrain/launch.hpp"

namespace gpumem::fuzz {
namespace {

/// A job beyond this takes too long for a fuzzer, and tells nothing more.
constexpr std::int64_t kMost = 64;

bool is_small(const posttrain::Launch& launch) {
  const model::TrainingJob& job = launch.request.training.training;
  return job.gradient_accumulation <= kMost && job.layout.pipeline_parallel == 1 && job.batch_size <= kMost;
}

std::optional<posttrain::PostTrainingJob> job_with(const posttrain::Launch& launch, std::string_view config) {
  auto graph = parse_summary(config);
  if (!graph) {
    require_readable(graph.error(), config);
    return std::nullopt;
  }
  posttrain::PostTrainingJob job{.policy = launch.request.training.training, .options = launch.request.options};
  job.policy.graph = std::make_shared<const ModelGraph>(*std::move(graph));
  auto sizes = serve::read_served_model(config);
  if (sizes) job.served = std::make_shared<const serve::ServedModel>(*std::move(sizes));
  return job;
}

}  // namespace
}  // namespace gpumem::fuzz

GPUMEM_FUZZ_TARGET(launch) {
  const std::size_t end = std::min(input.find('\n'), input.size());
  std::istringstream line{std::string(input.substr(0, end))};
  std::vector<std::string> words;
  for (std::string word; line >> word;) words.push_back(word);
  const auto settings = posttrain::launch_settings(words);
  if (!settings) {
    require_readable(settings.error(), input);
    return false;
  }
  const auto program = posttrain::program_of(*settings).value_or(posttrain::Program::trl);
  const auto launch = posttrain::read_launch(program, *settings);
  if (!launch) {
    require_readable(launch.error(), input);
    return false;
  }
  const std::string_view config = input.substr(std::min(end + 1, input.size()));
  (void)posttrain::megatron_arguments_of(config, launch->request.options.expert_tensor_parallel);
  if (!is_small(*launch)) return false;
  const auto job = job_with(*launch, config);
  if (!job) return false;
  const auto gpu = find_profile("h100-80gb");
  require(gpu.has_value(), "the GPU is known");
  const auto estimate = posttrain::estimate_post_training(*job, *gpu);
  if (!estimate) {
    require_readable(estimate.error(), input);
    return false;
  }
  std::int64_t sum = 0;
  for (const posttrain::NamedBytes& part : estimate->parts) sum += part.bytes.count();
  require(sum >= estimate->memory.expected.count(), "the parts sum to the figure");
  require(estimate->peak_phase < estimate->phases.size(), "there is a peak");
  require(estimate->memory.lower <= estimate->memory.expected, "the range holds the figure");
  return true;
}
