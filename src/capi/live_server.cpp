// The entry points of gpumem.h that ask this machine's driver for its GPUs.
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "gpumem/gpumem.h"
#include "gpumem/monitor/nvml.hpp"
#include "guarded.hpp"

/// What was read; `gpus` views the texts of `live`.
struct gpumem_live_server {
  gpumem::monitor::LiveServer live;
  std::vector<gpumem_server_gpu> gpus;
};

namespace gpumem::capi {

namespace {

gpumem_server_gpu gpu_of(const place::ServerGpu& from) {
  gpumem_server_gpu gpu = GPUMEM_SERVER_GPU_INIT;
  gpu.id = from.id.c_str();
  gpu.total_bytes = from.total.count();
  gpu.used_bytes = from.used.count();
  gpu.set_aside_bytes = from.set_aside().count();
  gpu.smact = from.smact;
  gpu.jobs = static_cast<std::int32_t>(from.jobs.size());
  gpu.exclusive = from.jobs.exclusive() ? 1 : 0;
  return gpu;
}

core::Status read_server(std::int64_t window_ms, gpumem_live_server** server) {
  if (server == nullptr) return null_pointer("server");
  if (window_ms < 0 || window_ms > kLongestWindow) {
    return refused("window_ms is " + std::to_string(window_ms) + "; 0 to 3,600,000 are taken");
  }
  core::Result<monitor::LiveServer> live = monitor::read_server(std::chrono::milliseconds(window_ms));
  if (!live) return std::move(live.error());
  auto read = std::make_unique<gpumem_live_server>(gpumem_live_server{*std::move(live), {}});
  for (const place::ServerGpu& gpu : read->live.server.gpus) read->gpus.push_back(gpu_of(gpu));
  *server = read.release();
  return core::Done{};
}

}  // namespace

}  // namespace gpumem::capi

extern "C" {

GPUMEM_API gpumem_status gpumem_live_server_read(int64_t window_ms, gpumem_live_server** server, char* message,
                                                 size_t message_size) noexcept {
  return gpumem::capi::guarded({message, message_size}, [&] { return gpumem::capi::read_server(window_ms, server); });
}

GPUMEM_API void gpumem_live_server_free(gpumem_live_server* server) noexcept { delete server; }

GPUMEM_API const gpumem_server_gpu* gpumem_live_server_gpus(const gpumem_live_server* server, size_t* count) noexcept {
  if (count != nullptr) *count = server == nullptr ? 0 : server->gpus.size();
  return server == nullptr ? nullptr : server->gpus.data();
}

GPUMEM_API const char* gpumem_live_server_profile(const gpumem_live_server* server, size_t index) noexcept {
  if (server == nullptr || index >= server->gpus.size()) return nullptr;
  return server->live.server.gpus[index].profile.c_str();
}

GPUMEM_API const char* gpumem_live_server_warning(const gpumem_live_server* server, size_t index) noexcept {
  if (server == nullptr || index >= server->live.warnings.size()) return nullptr;
  return server->live.warnings[index].c_str();
}

}  // extern "C"
