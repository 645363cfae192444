#pragma once

#include "gpumem/place/server.hpp"

#include "gpumem/core/bytes.hpp"

namespace gpumem::place {

namespace server_detail {

GPUMEM_INLINE core::Error invalid(std::string message) {
  return {core::ErrorCode::invalid_argument, std::move(message), {}};
}

/// False for what is not a number, too.
GPUMEM_INLINE bool is_share(double value) { return value >= 0.0 && value <= 1.0; }

GPUMEM_INLINE core::Status validate(const ServerGpu& gpu) {
  const std::string name = "GPU " + core::quoted(gpu.id);
  if (gpu.id.empty()) return invalid("a GPU has no id");
  if (gpu.total.count() <= 0) return invalid(name + " has no memory");
  if (gpu.used.count() < 0) return invalid(name + " uses a negative number of bytes");
  if (!is_share(gpu.smact)) return invalid(name + " has an SM activity that is not between 0 and 1");
  return core::Done{};
}

}  // namespace server_detail

GPUMEM_INLINE const PlacedJob* PlacedJobs::find(std::string_view id) const {
  const auto found = std::find_if(jobs_.begin(), jobs_.end(), [&](const PlacedJob& job) { return job.id == id; });
  return found == jobs_.end() ? nullptr : &*found;
}

GPUMEM_INLINE core::Status PlacedJobs::add(PlacedJob job) {
  const auto refuse = [&](const std::string& why) {
    return server_detail::invalid("job " + core::quoted(job.id) + " " + why);
  };
  if (job.id.empty()) return server_detail::invalid("a job has no id");
  if (job.memory.count() < 0) return refuse("takes a negative number of bytes");
  if (!server_detail::is_share(job.smact)) return refuse("has an SM activity that is not between 0 and 1");
  if (find(job.id) != nullptr) return refuse("is on this GPU already");
  if (exclusive_) return refuse("cannot share this GPU: the job there must have it to itself");
  if (job.exclusive && !jobs_.empty()) return refuse("must have its GPU to itself; this GPU has another job");
  const auto sum = (core::Checked(memory_.count()) + core::Checked(job.memory.count())).value();
  if (!sum) {
    core::Error error = refuse("makes the jobs of its GPU larger than 64 bits can count");
    error.code = core::ErrorCode::overflow;
    return error;
  }
  memory_ = core::Bytes(*sum);
  exclusive_ = job.exclusive;
  jobs_.push_back(std::move(job));
  return core::Done{};
}

GPUMEM_INLINE bool PlacedJobs::remove(std::string_view id) {
  const auto found = std::find_if(jobs_.begin(), jobs_.end(), [&](const PlacedJob& job) { return job.id == id; });
  if (found == jobs_.end()) return false;
  memory_ = core::Bytes(memory_.count() - found->memory.count());
  if (found->exclusive) exclusive_ = false;
  jobs_.erase(found);
  return true;
}

GPUMEM_INLINE core::Status validate(const Server& server) {
  if (server.gpus.empty()) return server_detail::invalid("the server has no GPUs");
  std::vector<std::string_view> ids;
  ids.reserve(server.gpus.size());
  for (const ServerGpu& gpu : server.gpus) {
    const core::Status valid = server_detail::validate(gpu);
    if (!valid) return valid.error();
    ids.push_back(gpu.id);
  }
  std::sort(ids.begin(), ids.end());
  const auto twice = std::adjacent_find(ids.begin(), ids.end());
  if (twice != ids.end()) return server_detail::invalid("two GPUs have the id " + core::quoted(*twice));
  return core::Done{};
}

}  // namespace gpumem::place
