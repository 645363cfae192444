#include "labelled_jobs.hpp"

#include <algorithm>
#include <utility>

namespace gpumem::train {

namespace {

double mib(core::Bytes bytes) { return static_cast<double>(bytes.count()) / static_cast<double>(1 << 20); }

}  // namespace

core::Result<LabelledJob> LabelledJobs::draw(std::uint64_t index, std::uint64_t attempt) const {
  auto made = jobs_.at(index, attempt);
  if (!made) return made.error();
  const estimate::Replay replay;
  const auto estimate = replay.estimate(made->job, gpu_);
  if (!estimate) return estimate.error();
  return LabelledJob{*std::move(made), mib(estimate->expected), estimate->fits};
}

std::size_t LabelledJobs::class_of(const LabelledJob& job) const {
  if (!job.fits) return bins_;
  if (bin_mib_ <= 0.0) return 0;
  return std::min(static_cast<std::size_t>(job.replay_mib / bin_mib_), bins_ - 1);
}

core::Result<LabelledJobs> LabelledJobs::balanced(RandomJobs jobs, device::GpuProfile gpu, double bin_mib) {
  if (!(bin_mib >= 1.0)) {
    return core::Error{core::ErrorCode::invalid_argument, "bins must be at least 1 MiB wide", {}};
  }
  LabelledJobs all(std::move(jobs), std::move(gpu));
  all.bin_mib_ = bin_mib;
  all.bins_ = std::max<std::size_t>(static_cast<std::size_t>(mib(all.gpu_.capacity()) / bin_mib), 1);
  std::vector<bool> met(all.classes());
  for (std::uint64_t probe = 0; probe < kProbes; ++probe) {
    const auto job = all.draw(probe, 0);
    if (!job) return job.error();
    met[all.class_of(*job)] = true;
  }
  for (std::size_t at = 0; at < met.size(); ++at) {
    if (met[at]) all.wanted_.push_back(at);
  }
  return all;
}

core::Result<LabelledJob> LabelledJobs::at(std::uint64_t index) const {
  auto job = draw(index, 0);
  if (wanted_.empty()) return job;
  const std::size_t wanted = wanted_[index % wanted_.size()];
  for (std::uint64_t attempt = 1; attempt < kAttempts && job && class_of(*job) != wanted; ++attempt) {
    job = draw(index, attempt);
  }
  return job;
}

}  // namespace gpumem::train
