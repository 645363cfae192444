// Servers for tests of placement.
#pragma once

#include <initializer_list>
#include <string>

#include "gpumem/place/policies.hpp"

namespace gpumem::testing {

inline constexpr core::Bytes gib(double count) {
  return core::Bytes(static_cast<std::int64_t>(count * static_cast<double>(std::int64_t{1} << 30)));
}

/// One GPU of a server: so many GiB of 40, so busy.
struct GpuState {
  double used = 0.0;
  double smact = 0.0;
  double total = 40.0;
};

/// GPUs "0", "1", ... in these states.
inline place::Server server_of(std::initializer_list<GpuState> states) {
  place::Server server;
  for (const GpuState& state : states) {
    place::ServerGpu gpu;
    gpu.id = std::to_string(server.gpus.size());
    gpu.total = gib(state.total);
    gpu.used = gib(state.used);
    gpu.smact = state.smact;
    server.gpus.push_back(std::move(gpu));
  }
  return server;
}

inline place::Request request_of(double memory, std::int64_t gpus = 1) {
  place::Request request;
  request.id = "job";
  request.gpus = gpus;
  request.memory = gib(memory);
  return request;
}

}  // namespace gpumem::testing
