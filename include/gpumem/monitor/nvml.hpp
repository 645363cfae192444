// Input: NVIDIA's driver, through its management library.
// Output: Machine: the GPUs of this machine as they are now, with their processes, and how busy they were over a
// window. If one GPU or one function does not answer, it is left out with a warning. It is an error only if the driver
// does not answer at all.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "gpumem/core/result.hpp"
#include "gpumem/monitor/machine.hpp"
#include "gpumem/monitor/nvml_library.hpp"

namespace gpumem::monitor {

/// Copies share the library.
/// Thread safety: any number of threads may read.
class Nvml {
 public:
  /// Errors: those of nvml::NvmlLibrary::open().
  [[nodiscard]] static core::Result<Nvml> open(std::string path = {});

  /// Takes as long as the window. Without one, SM activity is what the driver has kept of the last seconds, and a
  /// slice's is not known. Errors: missing_information where the driver is gone.
  [[nodiscard]] core::Result<Machine> read(std::chrono::milliseconds window = {}) const;

 private:
  explicit Nvml(std::shared_ptr<const nvml::NvmlLibrary> library) : library_(std::move(library)) {}

  std::shared_ptr<const nvml::NvmlLibrary> library_;
};

}  // namespace gpumem::monitor
