#pragma once

#include "gpumem/estimate/prepared_jobs.hpp"

#include <functional>
#include <thread>

namespace gpumem::estimate {

namespace prepared_jobs_detail {

/// Where this thread looks first, so that threads meet seldom and a thread finds what its own cache holds.
GPUMEM_INLINE std::size_t first_place() { return std::hash<std::thread::id>()(std::this_thread::get_id()); }

}  // namespace prepared_jobs_detail

GPUMEM_INLINE std::size_t PreparedJob::bytes() const {
  const plan::StepPlan& steps = planned.steps;
  const ops::Tape& tape = planned.recording.tape;
  return memory.blocks.capacity() * sizeof(device::Block) + steps.events.capacity() * sizeof(plan::Event) +
         steps.calls.capacity() * sizeof(plan::LibraryCall) + tape.functions().size() * sizeof(ops::Function) +
         tape.tensors().size() * sizeof(ops::TapeTensor);
}

GPUMEM_INLINE PreparedJobs::~PreparedJobs() {
  for (Place& place : places_) delete place.job.load(std::memory_order_acquire);
}

/// One that was recorded alike, if it is not in use; the places are left as they were.
GPUMEM_INLINE std::unique_ptr<PreparedJob> PreparedJobs::find(const model::TrainingJob& job) {
  const std::size_t first = prepared_jobs_detail::first_place();
  for (std::size_t tried = 0; tried < kPlaces; ++tried) {
    Place& place = places_[(first + tried) % kPlaces];
    if (place.job.load(std::memory_order_relaxed) == nullptr) continue;
    std::unique_ptr<PreparedJob> found(place.job.exchange(nullptr, std::memory_order_acq_rel));
    if (found == nullptr) continue;
    if (recorded_alike(found->source, job)) return found;
    put_back(std::move(found));
  }
  return nullptr;
}

GPUMEM_INLINE core::Result<std::unique_ptr<PreparedJob>> PreparedJobs::take(const model::TrainingJob& job,
                                                                            const device::GpuProfile& gpu,
                                                                            const ops::Catalogue& ops) {
  std::unique_ptr<PreparedJob> prepared = find(job);
  if (prepared == nullptr) {
    core::Result<PlannedJob> planned = plan_job(job, gpu, ops);
    if (!planned) return planned.error();
    return std::make_unique<PreparedJob>(PreparedJob{*std::move(planned), job, {}});
  }
  // The same job again is asked about another GPU: the plan stands.
  const bool same = prepared->source == job;
  core::Status done = same ? set_context(prepared->planned, gpu) : replan_job(prepared->planned, job, gpu);
  if (!done) return done.error();
  if (!same) prepared->source = job;
  return prepared;
}

GPUMEM_INLINE void PreparedJobs::put_back(std::unique_ptr<PreparedJob> job) {
  if (job->bytes() > kLargest) return;
  const std::size_t first = prepared_jobs_detail::first_place();
  for (std::size_t tried = 0; tried < kPlaces; ++tried) {
    PreparedJob* empty = nullptr;
    Place& place = places_[(first + tried) % kPlaces];
    if (place.job.compare_exchange_strong(empty, job.get(), std::memory_order_acq_rel)) {
      (void)job.release();
      return;
    }
  }
  // All are taken: the one that this thread would find first has to go.
  job.reset(places_[first % kPlaces].job.exchange(job.release(), std::memory_order_acq_rel));
}

}  // namespace gpumem::estimate
