#pragma once

#include "gpumem/monitor/nvml_library.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <initializer_list>
#include <utility>

namespace gpumem::monitor::nvml {

namespace nvml_library_detail {

constexpr const char* kDefaultPath = "libnvidia-ml.so.1";

GPUMEM_INLINE std::string chosen(std::string path) {
  if (!path.empty()) return path;
  const char* named = std::getenv("GPUMEM_NVML");  // NOLINT(concurrency-mt-unsafe)
  return named != nullptr && *named != '\0' ? named : kDefaultPath;
}

/// The first of these names that the library has; false: none, and the pointer stays null.
template <typename Function>
bool find(void* handle, Function& function, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    void* const symbol = dlsym(handle, name);
    if (symbol == nullptr) continue;
    function = reinterpret_cast<Function>(symbol);
    return true;
  }
  return false;
}

GPUMEM_INLINE bool find_required(void* handle, Functions& to) {
  return find(handle, to.init, {"nvmlInit_v2", "nvmlInit"}) && find(handle, to.shutdown, {"nvmlShutdown"}) &&
         find(handle, to.device_count, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"}) &&
         find(handle, to.device_at, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"}) &&
         find(handle, to.uuid, {"nvmlDeviceGetUUID"}) && find(handle, to.name, {"nvmlDeviceGetName"}) &&
         find(handle, to.memory, {"nvmlDeviceGetMemoryInfo"});
}

GPUMEM_INLINE void find_optional(void* handle, Functions& to) {
  find(handle, to.error_string, {"nvmlErrorString"});
  find(handle, to.driver_version, {"nvmlSystemGetDriverVersion"});
  find(handle, to.memory_v2, {"nvmlDeviceGetMemoryInfo_v2"});
  find(handle, to.processes_v1, {"nvmlDeviceGetComputeRunningProcesses"});
  find(handle, to.processes, {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"});
  find(handle, to.mps_processes,
       {"nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v2"});
  find(handle, to.compute_mode, {"nvmlDeviceGetComputeMode"});
  find(handle, to.rates, {"nvmlDeviceGetUtilizationRates"});
  find(handle, to.samples, {"nvmlDeviceGetSamples"});
  find(handle, to.mig_mode, {"nvmlDeviceGetMigMode"});
  find(handle, to.most_slices, {"nvmlDeviceGetMaxMigDeviceCount"});
  find(handle, to.slice_at, {"nvmlDeviceGetMigDeviceHandleByIndex"});
  find(handle, to.gpu_instance, {"nvmlDeviceGetGpuInstanceId"});
  find(handle, to.gpm_support, {"nvmlGpmQueryDeviceSupport"});
  find(handle, to.gpm_alloc, {"nvmlGpmSampleAlloc"});
  find(handle, to.gpm_free, {"nvmlGpmSampleFree"});
  find(handle, to.gpm_sample, {"nvmlGpmSampleGet"});
  find(handle, to.gpm_mig_sample, {"nvmlGpmMigSampleGet"});
  find(handle, to.gpm_metrics, {"nvmlGpmMetricsGet"});
}

}  // namespace nvml_library_detail

GPUMEM_INLINE std::string NvmlLibrary::words(int code) const {
  const char* text = functions_.error_string != nullptr ? functions_.error_string(code) : nullptr;
  return (text != nullptr ? text : "NVML's error") + std::string(" (") + std::to_string(code) + ")";
}

GPUMEM_INLINE core::Status NvmlLibrary::load(std::string path) {
  path_ = std::move(path);
  handle_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    const char* why = dlerror();  // NOLINT(concurrency-mt-unsafe): glibc's is kept by thread
    return core::Error{core::ErrorCode::unreadable_file,
                       "no NVIDIA driver is here: NVIDIA's management library cannot be loaded (" +
                           std::string(why != nullptr ? why : "unknown") +
                           "): install the driver, or name the library in GPUMEM_NVML; a machine without GPUs is "
                           "described by a server.json",
                       {path_, 0, {}}};
  }
  if (!nvml_library_detail::find_required(handle_, functions_)) {
    return core::Error{core::ErrorCode::unreadable_file,
                       "is not NVIDIA's management library, or one from before 2012: functions are missing that gpumem "
                       "needs; install a newer driver",
                       {path_, 0, {}}};
  }
  nvml_library_detail::find_optional(handle_, functions_);
  const int code = functions_.init();
  if (code != kSuccess) {
    const std::string remedy = code == kLibraryMismatch
                                   ? "the driver was updated while its old module is loaded: reboot"
                                   : "look at nvidia-smi and dmesg; loading the module again or a reboot may help";
    return core::Error{core::ErrorCode::missing_information,
                       "the NVIDIA driver does not answer: " + words(code) + "; " + remedy,
                       {path_, 0, {}}};
  }
  initialised_ = true;
  return core::Done{};
}

GPUMEM_INLINE core::Result<std::shared_ptr<const NvmlLibrary>> NvmlLibrary::open(std::string path) {
  std::shared_ptr<NvmlLibrary> library(new NvmlLibrary());
  core::Status loaded = library->load(nvml_library_detail::chosen(std::move(path)));
  if (!loaded) return std::move(loaded.error());
  return std::shared_ptr<const NvmlLibrary>(std::move(library));
}

GPUMEM_INLINE NvmlLibrary::~NvmlLibrary() {
  if (initialised_) functions_.shutdown();
  if (handle_ != nullptr) dlclose(handle_);
}

}  // namespace gpumem::monitor::nvml
