// Headers of single rooms, and the bodies with them. A sharding's rules come first.
#include <gpumem/parallel/sharing.hpp>
// The bodies may come before or after the headers of rooms.
#include <gpumem/bodies.hpp>
#include <gpumem/estimate/replay.hpp>
#include <gpumem/session/session.hpp>
// All at once, after some of them.
#include <gpumem/all.hpp>

std::int64_t parameters_of(const char* path) {
  const auto model = gpumem::read_summary(path);
  return model ? model->parameters() : 0;
}

bool fits(const char* path) {
  auto model = gpumem::read_summary(path);
  const auto gpu = gpumem::find_profile("t4-16gb");
  if (!model || !gpu) return false;
  const auto estimate = gpumem::estimate::Horus().estimate({*std::move(model), 1}, *gpu);
  return estimate && estimate->fits && !gpumem::ops::catalogue().empty();
}

bool replay_agrees(const char* path) {
  auto model = gpumem::session::read_summary(path);
  const auto gpu = gpumem::device::find_profile("t4-16gb");
  if (!model || !gpu) return false;
  gpumem::model::TrainingJob job{*std::move(model), 1};
  job.layout.sharding.kind = gpumem::model::Shardings::ddp;
  const auto sharing = gpumem::parallel::sharing_of(job);
  const auto estimate = gpumem::estimate::Replay().estimate(job, *gpu);
  return sharing && estimate && estimate->expected.count() > 0;
}
