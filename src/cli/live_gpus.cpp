#include "live_gpus.hpp"

#include "gpumem/monitor/nvml.hpp"

namespace gpumem::cli {

core::Result<launcher::ReadGpus> open_gpus() {
  const auto nvml = monitor::Nvml::open();
  if (!nvml) return nvml.error();
  const launcher::ReadGpus read = [nvml = *nvml]() -> core::Result<launcher::Gpus> {
    auto machine = nvml.read();
    if (!machine) return machine.error();
    auto server = monitor::server_of(*machine);
    if (!server) return server.error();
    return launcher::Gpus{*std::move(machine), *std::move(server)};
  };
  if (const auto first = read(); !first) return first.error();
  return read;
}

}  // namespace gpumem::cli
