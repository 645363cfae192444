// Input: the path of NVIDIA's management library, or nothing: "libnvidia-ml.so.1", which every driver for Linux
// installs.
// Output: NvmlLibrary, its functions. They are loaded when the program runs, so nothing here needs a driver to be
// built.
// Source: NVIDIA, "NVML API Reference Guide" (nvml.h of CUDA 11.0 to 13.0), from which the few declarations below are
// taken. The structs' layouts never change; a new layout gets a new name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gpumem/core/result.hpp"

namespace gpumem::monitor::nvml {

/// nvmlReturn_t: those that are told apart here.
enum Return : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kFunctionNotFound = 13,
  kGpuIsLost = 15,
  kLibraryMismatch = 18,  ///< NVML_ERROR_LIB_RM_VERSION_MISMATCH
  kUnknown = 999,
};

using Device = struct DeviceHandle*;
using GpmSample = struct GpmSampleHandle*;

struct Memory {  ///< nvmlMemory_t
  unsigned long long total, free, used;
};
struct MemoryV2 {  ///< nvmlMemory_v2_t
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct ProcessV1 {  ///< nvmlProcessInfo_v1_t
  unsigned pid;
  unsigned long long used;
};
struct ProcessV2 {  ///< nvmlProcessInfo_v2_t, which the functions _v2 and _v3 take
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};
struct Rates {  ///< nvmlUtilization_t
  unsigned gpu, memory;
};
union Value {  ///< nvmlValue_t
  double real;
  unsigned whole;
  unsigned long long wide;
};
struct Sample {  ///< nvmlSample_t
  unsigned long long microseconds;
  Value value;
};
struct GpmMetric {  ///< nvmlGpmMetric_t
  unsigned id;
  int status;
  double value;
  const char *short_name, *long_name, *unit;
};
struct GpmMetrics {  ///< nvmlGpmMetricsGet_t
  unsigned version, count;
  GpmSample first, second;
  GpmMetric metrics[333];  // NOLINT(modernize-avoid-c-arrays): the largest of any version
};
struct GpmSupport {  ///< nvmlGpmSupport_t
  unsigned version, supported;
};

/// NVML_STRUCT_VERSION(Memory, 2)
inline constexpr unsigned kMemoryV2 = static_cast<unsigned>(sizeof(MemoryV2)) | (2U << 24U);
inline constexpr int kUtilisationSamples = 1;  ///< NVML_GPU_UTILIZATION_SAMPLES
inline constexpr unsigned kGpmSmUtil = 2;      ///< NVML_GPM_METRIC_SM_UTIL, in percent
inline constexpr unsigned long long kNotAvailable = ~0ULL;

/// NVML's functions. Those of the second group are null where the library is older than they are.
struct Functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*device_count)(unsigned*) = nullptr;
  int (*device_at)(unsigned, Device*) = nullptr;
  int (*uuid)(Device, char*, unsigned) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;

  const char* (*error_string)(int) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*memory_v2)(Device, MemoryV2*) = nullptr;
  int (*processes_v1)(Device, unsigned*, ProcessV1*) = nullptr;
  int (*processes)(Device, unsigned*, ProcessV2*) = nullptr;
  int (*mps_processes)(Device, unsigned*, ProcessV2*) = nullptr;
  int (*compute_mode)(Device, int*) = nullptr;
  int (*rates)(Device, Rates*) = nullptr;
  int (*samples)(Device, int, unsigned long long, int*, unsigned*, Sample*) = nullptr;
  int (*mig_mode)(Device, unsigned*, unsigned*) = nullptr;
  int (*most_slices)(Device, unsigned*) = nullptr;
  int (*slice_at)(Device, unsigned, Device*) = nullptr;
  int (*gpu_instance)(Device, unsigned*) = nullptr;
  int (*gpm_support)(Device, GpmSupport*) = nullptr;
  int (*gpm_alloc)(GpmSample*) = nullptr;
  int (*gpm_free)(GpmSample) = nullptr;
  int (*gpm_sample)(Device, GpmSample) = nullptr;
  int (*gpm_mig_sample)(Device, unsigned, GpmSample) = nullptr;
  int (*gpm_metrics)(GpmMetrics*) = nullptr;
};

/// A loaded library, initialised; shut down and unloaded at its end.
/// Thread safety: any number of threads may call what it loaded.
class NvmlLibrary {
 public:
  /// `path` empty: the variable GPUMEM_NVML, else "libnvidia-ml.so.1". Errors: unreadable_file where there is none,
  /// missing_information where it finds no driver; both with the remedy.
  [[nodiscard]] static core::Result<std::shared_ptr<const NvmlLibrary>> open(std::string path = {});

  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;
  ~NvmlLibrary();

  [[nodiscard]] const Functions& functions() const { return functions_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  /// What NVML says about one of its codes.
  [[nodiscard]] std::string words(int code) const;

 private:
  NvmlLibrary() = default;
  [[nodiscard]] core::Status load(std::string path);

  void* handle_ = nullptr;
  bool initialised_ = false;
  Functions functions_;
  std::string path_;
};

/// Whether this code says that the driver itself is gone, for all GPUs alike.
[[nodiscard]] constexpr bool says_driver_gone(int code) {
  return code == kUninitialized || code == kDriverNotLoaded || code == kLibraryMismatch;
}

}  // namespace gpumem::monitor::nvml
