// Any summary, with the job that the input's first bytes choose: read, planned and replayed, on a GPU and under
// FakeTensorMode.
#include "gpumem/estimate/published.hpp"
#include "gpumem/estimate/replay.hpp"

#include "fuzz.hpp"

namespace {

using namespace gpumem;

constexpr std::size_t kOptionBytes = 4;

/// Every option that changes a step plan, from a few bits each.
TrainingJob job_of(std::string_view options, ModelGraph graph) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned>(static_cast<unsigned char>(options[at])); };
  const auto bit = [&](std::size_t at, unsigned place) { return (byte(at) >> place & 1U) != 0; };
  TrainingJob job(std::move(graph), 1 + static_cast<std::int64_t>(byte(0) & 3U));
  job.optimizer = model::kOptimizerRows[(byte(0) >> 2) % model::kOptimizerRows.size()].value;
  job.precision = static_cast<Precision>((byte(0) >> 5) % 5U);
  job.loss = static_cast<model::Loss>((byte(1) & 3U) % 3U);
  job.foreach = bit(1, 2);
  job.fused = bit(1, 3) && model::row_of(job.optimizer).has_fused;
  job.gradient_accumulation = 1 + static_cast<std::int64_t>(byte(1) >> 4 & 3U);
  job.activation_checkpointing = bit(1, 6);
  job.zero_grad = bit(1, 7) ? static_cast<model::ZeroGrad>(byte(2) & 3U) : model::ZeroGrad::in_place;
  job.summary_pass = bit(2, 2);
  job.validation_pass = bit(2, 3);
  if (bit(2, 4)) job.samples_per_epoch = 7;
  if (bit(2, 5)) job.input_shape = {3, 32, 32};
  if (bit(2, 6)) job.sequence_length = 8;
  if (bit(2, 7)) job.batch_size = std::int64_t{1} << (byte(3) % 63U);
  return job;
}

void check(const Result<MemoryEstimate>& found, const TrainingJob& job, std::string_view input) {
  fuzz::require_sound(found, job, input);
  if (!found || !found->allocated || !found->reserved) return;
  fuzz::require(*found->allocated <= *found->reserved, "allocated <= reserved");
}

}  // namespace

GPUMEM_FUZZ_TARGET(replay_estimate) {
  static const auto replay = estimate::Replay();
  static const auto fake = estimate::FakeTensor(estimate::FakeTensor::Step::with_optimizer);
  static const GpuProfile gpu = [] {
    GpuProfile profile;
    profile.name = "fuzzed";
    profile.memory_bytes.value = std::int64_t{16} << 30;
    return profile;
  }();
  if (input.size() < kOptionBytes) return false;
  const std::string_view text = input.substr(kOptionBytes);
  auto graph = parse_summary(text, (input[3] & 1) != 0);
  if (!graph) return require_readable(graph.error(), text), false;
  // A plan grows with layers and steps of recurrences; what is wanted here is breadth.
  constexpr std::size_t kMostLayers = 400;
  if (graph->layers().size() > kMostLayers) return false;
  const TrainingJob job = job_of(input, *std::move(graph));
  const auto found = replay.estimate(job, gpu);
  check(found, job, text);
  check(fake.estimate(job, gpu), job, text);
  return found.has_value();
}
