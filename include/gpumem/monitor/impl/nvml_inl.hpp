#pragma once

#include "gpumem/monitor/nvml.hpp"

#include <dlfcn.h>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <initializer_list>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace gpumem::monitor {

GPUMEM_INLINE std::string_view to_string(ActivitySource source) {
  switch (source) {
    case ActivitySource::none: break;
    case ActivitySource::utilisation: return "utilisation";
    case ActivitySource::gpm: return "gpm";
    case ActivitySource::dcgm: return "dcgm";
  }
  return "none";
}

GPUMEM_INLINE std::string_view to_string(ComputeMode mode) {
  switch (mode) {
    case ComputeMode::shared: break;
    case ComputeMode::exclusive_process: return "exclusive_process";
    case ComputeMode::prohibited: return "prohibited";
  }
  return "shared";
}

}  // namespace gpumem::monitor

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

namespace gpumem::monitor {

namespace nvml_detail {

using nvml::Device;

/// A GPU or a slice that NVML gave a handle of.
struct Found {
  WatchedDevice watched;
  int index = 0;
  std::string parent_uuid;  ///< of a slice
};

GPUMEM_INLINE core::Bytes bytes(unsigned long long count) {
  return core::Bytes(static_cast<std::int64_t>(std::min<unsigned long long>(count, INT64_MAX)));
}

/// Reads one Machine. What fails for one GPU leaves that GPU out; what fails for all is the error.
class Reader {
 public:
  explicit Reader(const nvml::NvmlLibrary& library) : library_(library), nvml_(library.functions()) {}

  core::Result<Machine> read(std::chrono::milliseconds window) {
    const core::Status found = find_devices();
    if (!found) return found.error();
    std::vector<Activity> activities = watch(window);
    for (std::size_t at = 0; at < found_.size() && !gone_; ++at) read_gpu(found_[at], activities[at]);
    if (gone_) return std::move(*gone_);
    warn_of_age();
    return std::move(machine_);
  }

 private:
  core::Error driver_gone(int code) const {
    return {core::ErrorCode::missing_information,
            "the NVIDIA driver is gone: " + library_.words(code) +
                "; look at nvidia-smi and dmesg, load the module again or reboot",
            {library_.path(), 0, {}}};
  }

  void warn(std::string text) { machine_.warnings.push_back(std::move(text)); }

  /// Whether the call went well; else says that this GPU is left out, and why.
  bool good(int code, int index, const std::string& what) {
    if (code == nvml::kSuccess) return true;
    if (nvml::says_driver_gone(code)) {
      gone_ = driver_gone(code);
      return false;
    }
    std::string text = "GPU " + std::to_string(index) + " is left out: ";
    if (code == nvml::kGpuIsLost) {
      text += "it is lost (fallen off the bus); dmesg has the Xid, and a reset or a reboot may bring it back";
    } else {
      text += what + ": " + library_.words(code);
    }
    if (left_out_.insert(index).second) warn(std::move(text));
    return false;
  }

  core::Status find_devices() {
    std::array<char, 96> text{};
    if (nvml_.driver_version != nullptr &&
        nvml_.driver_version(text.data(), static_cast<unsigned>(text.size())) == nvml::kSuccess) {
      machine_.driver_version = text.data();
    }
    unsigned count = 0;
    const int code = nvml_.device_count(&count);
    if (code != nvml::kSuccess) return driver_gone(code);
    for (unsigned index = 0; index < count && !gone_; ++index) find_device(index);
    if (gone_) return *gone_;
    return core::Done{};
  }

  void find_device(unsigned index) {
    Found found;
    found.index = static_cast<int>(index);
    if (!good(nvml_.device_at(index, &found.watched.device), found.index, "it cannot be opened")) return;
    unsigned mig = 0;
    unsigned pending = 0;
    const bool sliced =
        nvml_.mig_mode != nullptr && nvml_.mig_mode(found.watched.device, &mig, &pending) == nvml::kSuccess && mig == 1;
    if (sliced) {
      find_slices(found);
    } else {
      found_.push_back(std::move(found));
    }
  }

  void find_slices(const Found& parent) {
    const Device gpu = parent.watched.device;
    std::string uuid;
    if (!read_text(nvml_.uuid, gpu, parent.index, uuid)) return;
    unsigned most = 0;
    if (nvml_.most_slices == nullptr || nvml_.slice_at == nullptr || nvml_.most_slices(gpu, &most) != nvml::kSuccess) {
      return warn("GPU " + std::to_string(parent.index) +
                  " is left out: it is in MIG mode, and this driver does not list slices");
    }
    std::set<unsigned> instances;
    const std::size_t before = found_.size();
    for (unsigned slot = 0; slot < most; ++slot) {
      Found slice = parent;
      slice.watched.parent = gpu;
      slice.parent_uuid = uuid;
      if (nvml_.slice_at(gpu, slot, &slice.watched.device) != nvml::kSuccess) continue;  // an empty slot
      const bool told = nvml_.gpu_instance != nullptr &&
                        nvml_.gpu_instance(slice.watched.device, &slice.watched.gpu_instance) == nvml::kSuccess;
      if (told && !instances.insert(slice.watched.gpu_instance).second) {
        warn("GPU " + std::to_string(parent.index) + ": of compute instances that share the memory of GPU instance " +
             std::to_string(slice.watched.gpu_instance) + " the first counts, the others are left out");
        continue;
      }
      found_.push_back(std::move(slice));
    }
    if (found_.size() == before) {
      warn("GPU " + std::to_string(parent.index) +
           " is left out: it is in MIG mode and has no slices; nvidia-smi mig "
           "-cgi makes some");
    }
  }

  std::vector<Activity> watch(std::chrono::milliseconds window) const {
    std::vector<ActivityWatch> watches;
    watches.reserve(found_.size());
    for (const Found& found : found_) watches.emplace_back(nvml_, found.watched, window);
    constexpr std::chrono::milliseconds kPoll{1000};
    const auto end = std::chrono::steady_clock::now() + window;
    for (auto now = std::chrono::steady_clock::now(); now < end; now = std::chrono::steady_clock::now()) {
      std::this_thread::sleep_until(std::min(now + kPoll, end));
      for (ActivityWatch& watch : watches) watch.poll();
    }
    std::vector<Activity> activities;
    activities.reserve(watches.size());
    for (ActivityWatch& watch : watches) activities.push_back(watch.end());
    return activities;
  }

  bool read_text(int (*function)(Device, char*, unsigned), Device device, int index, std::string& to) {
    std::array<char, 96> text{};
    if (!good(function(device, text.data(), static_cast<unsigned>(text.size())), index, "it does not say what it is")) {
      return false;
    }
    text.back() = '\0';
    to = text.data();
    return true;
  }

  void read_gpu(const Found& found, const Activity& activity) {
    const Device device = found.watched.device;
    LiveGpu gpu;
    gpu.index = found.index;
    gpu.mig_parent = found.parent_uuid;
    gpu.sm_activity = activity.share;
    gpu.activity_source = activity.source;
    if (!read_text(nvml_.uuid, device, found.index, gpu.uuid) ||
        !read_text(nvml_.name, device, found.index, gpu.name)) {
      return;
    }
    if (!good(read_memory(device, gpu), found.index, "its memory cannot be read")) return;
    if (!read_processes(found, gpu)) return;
    const Device whole = found.watched.parent != nullptr ? found.watched.parent : device;
    int mode = 0;
    if (nvml_.compute_mode != nullptr && nvml_.compute_mode(whole, &mode) == nvml::kSuccess) {
      // 0 default, 1 exclusive thread (of long ago), 2 prohibited, 3 exclusive process
      gpu.compute_mode = mode == 2   ? ComputeMode::prohibited
                         : mode == 0 ? ComputeMode::shared
                                     : ComputeMode::exclusive_process;
    }
    if (!gpu.sm_activity) unknown_activity_ += (unknown_activity_.empty() ? "" : ", ") + gpu.uuid;
    machine_.gpus.push_back(std::move(gpu));
  }

  int read_memory(Device device, LiveGpu& gpu) {
    nvml::MemoryV2 memory = {nvml::kMemoryV2, 0, 0, 0, 0};
    const int newer = nvml_.memory_v2 != nullptr ? nvml_.memory_v2(device, &memory) : nvml::kFunctionNotFound;
    if (newer == nvml::kSuccess && memory.total > memory.reserved) {
      gpu.total = bytes(memory.total - memory.reserved);
      gpu.used = bytes(memory.used);
      return newer;
    }
    nvml::Memory older = {0, 0, 0};
    const int code = nvml_.memory(device, &older);
    gpu.total = bytes(older.total);
    gpu.used = bytes(older.used);
    old_memory_ = true;
    return code;
  }

  /// False if the GPU was lost meanwhile. Other failures only hide the processes.
  bool read_processes(const Found& found, LiveGpu& gpu) {
    const Device device = found.watched.device;
    int code = nvml::kFunctionNotFound;
    if (nvml_.processes != nullptr) code = list(nvml_.processes, device, gpu);
    if (code == nvml::kFunctionNotFound && nvml_.processes_v1 != nullptr) code = list(nvml_.processes_v1, device, gpu);
    if (code == nvml::kGpuIsLost || nvml::says_driver_gone(code)) return good(code, found.index, "");
    if (code != nvml::kSuccess) {
      warn("GPU " + std::to_string(found.index) + ": its processes are not told: " + library_.words(code));
    }
    // Clients of an MPS server; the server itself may be in both lists.
    if (nvml_.mps_processes != nullptr) list(nvml_.mps_processes, device, gpu);
    return true;
  }

  /// Adds the processes that this function lists. Between the two calls more may come.
  template <typename Process>
  int list(int (*function)(Device, unsigned*, Process*), Device device, LiveGpu& gpu) {
    unsigned count = 0;
    int code = function(device, &count, nullptr);
    std::vector<Process> processes;
    for (int tries = 0; tries < 4 && code == nvml::kInsufficientSize; ++tries) {
      count = count + count / 2 + 8;
      // Drivers 535.43 to 535.86 wrote entries of 32 bytes, a third more than declared.
      processes.assign(std::size_t{2} * count, Process{});
      code = function(device, &count, processes.data());
    }
    if (code != nvml::kSuccess) return code;
    processes.resize(std::min<std::size_t>(count, processes.size()));
    for (const Process& process : processes) add(process.pid, process.used, gpu);
    return code;
  }

  void add(unsigned pid, unsigned long long used, LiveGpu& gpu) {
    const auto known = std::find_if(gpu.processes.begin(), gpu.processes.end(),
                                    [pid](const GpuProcess& process) { return process.pid == pid; });
    if (pid == 0 || known != gpu.processes.end()) return;
    GpuProcess process = {pid, std::nullopt};
    if (used != nvml::kNotAvailable) {
      if (used <= static_cast<unsigned long long>(gpu.total.count())) {
        process.used = bytes(used);
      } else {
        warn("GPU " + std::to_string(gpu.index) + ": process " + std::to_string(pid) +
             " is said to use more memory than there is: its share counts as not known");
      }
    }
    gpu.processes.push_back(process);
  }

  void warn_of_age() {
    if (old_memory_) {
      warn("this driver is older than version 510 and does not tell what it keeps for itself: that may count as used");
    }
    if (!unknown_activity_.empty()) {
      warn("SM activity is not known for " + unknown_activity_ +
           ": this driver has no counter for it (a MIG slice needs a window, and a Hopper GPU or later)");
    }
  }

  const nvml::NvmlLibrary& library_;
  const nvml::Functions& nvml_;
  Machine machine_;
  std::vector<Found> found_;
  std::set<int> left_out_;  ///< GPUs that already got this warning
  std::string unknown_activity_;
  bool old_memory_ = false;
  std::optional<core::Error> gone_;
};

}  // namespace nvml_detail

GPUMEM_INLINE core::Result<Nvml> Nvml::open(std::string path) {
  auto library = nvml::NvmlLibrary::open(std::move(path));
  if (!library) return std::move(library.error());
  return Nvml(*std::move(library));
}

GPUMEM_INLINE core::Result<Machine> Nvml::read(std::chrono::milliseconds window) const {
  return nvml_detail::Reader(*library_).read(window);
}

}  // namespace gpumem::monitor
