// Input: NVIDIA's driver, through its management library.
// Output: Machine: the GPUs of this machine as they are now, with their processes, and how busy they were over a
// window.
// Units: bytes; shares of the GPU from 0 to 1.
//
// Input: Machine, the GPUs of this machine; what a job is expected to take.
// Output: place::Server, which a policy reads, and the variables by which a job shares its GPUs with others.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/place/server.hpp"
#include "gpumem/utilisation/collocation.hpp"

namespace gpumem::monitor {

// Input: what the driver says about the GPUs of this machine.
// Output: Machine, plain values. A MIG slice is a GPU of its own, and the GPU that it is a part of is left out.
// Units: bytes; shares of the GPU from 0 to 1.

/// A process that has a CUDA context on a GPU.
struct GpuProcess {
  std::int64_t pid = 0;             ///< as the driver counts: outside of containers
  std::optional<core::Bytes> used;  ///< none where the driver hides it, or tells more than the GPU has
};

/// Where a figure of SM activity is from. The names are in server.json.
enum class ActivitySource : std::uint8_t {
  none,
  utilisation,  ///< the share of time in which any kernel ran, as nvidia-smi prints it: at least the SM activity
  gpm,          ///< NVML's GPU performance monitoring: the mean share of SMs that were busy
  dcgm,         ///< DCGM's field 1002: the same
};
[[nodiscard]] std::string_view to_string(ActivitySource source);

/// How many processes may use a GPU.
enum class ComputeMode : std::uint8_t { shared, exclusive_process, prohibited };
[[nodiscard]] std::string_view to_string(ComputeMode mode);

struct LiveGpu {
  std::string uuid;   ///< as CUDA_VISIBLE_DEVICES takes it: "GPU-...", "MIG-..."
  int index = 0;      ///< of the whole GPU, as nvidia-smi counts
  std::string name;   ///< "NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB MIG 1g.5gb"
  core::Bytes total;  ///< without what the driver keeps for itself, where it tells that
  core::Bytes used;   ///< by all processes together, also by those that are not listed
  std::vector<GpuProcess> processes;
  std::optional<double> sm_activity;  ///< mean over the window; none: not known
  ActivitySource activity_source = ActivitySource::none;
  std::string mig_parent;  ///< UUID of the GPU that a slice is a part of; empty: a whole GPU
  ComputeMode compute_mode = ComputeMode::shared;
};

struct Machine {
  std::string driver_version;
  std::vector<LiveGpu> gpus;
  std::vector<std::string> warnings;  ///< what was left out, and what the driver does not tell, for people
};

}  // namespace gpumem::monitor

// Input: the path of NVIDIA's management library, or nothing: "libnvidia-ml.so.1", which every driver for Linux
// installs.
// Output: NvmlLibrary, its functions. They are loaded when the program runs, so nothing here needs a driver to be
// built.
// Source: NVIDIA, "NVML API Reference Guide" (nvml.h of CUDA 11.0 to 13.0), from which the few declarations below are
// taken. The structs' layouts never change; a new layout gets a new name.

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

namespace gpumem::monitor {

// Input: a GPU or a MIG slice, by its NVML handle.
// Output: Activity: its mean SM activity over the time that it was watched, and where that figure comes from.
// Units: shares from 0 to 1.
//
// NVML's GPM (GPU performance monitoring; Hopper and later) counts the SMs that were busy between two samples, which
// must lie more than 100 ms apart. Without it there is the share of time in which any kernel ran, as nvidia-smi prints:
// the driver keeps its samples of the last seconds, and they are read often enough that none is lost. A MIG slice has
// GPM's figure or none. Source: NVIDIA, "NVML API Reference Guide", nvmlGpmMetricsGet and nvmlDeviceGetSamples.
//
// DCGM's counters, which GPUs before Hopper have as well, are not read: they need its daemon or root.

struct Activity {
  std::optional<double> share;
  ActivitySource source = ActivitySource::none;
};

/// A GPU, or a slice of one.
struct WatchedDevice {
  nvml::Device device = nullptr;
  nvml::Device parent = nullptr;  ///< of a slice: its GPU
  unsigned gpu_instance = 0;      ///< of a slice
};

/// One device from begin() to end(). The library outlives it.
/// Thread safety: one thread at a time.
class ActivityWatch {
 public:
  /// Without a window it is what the driver has kept of the last seconds.
  ActivityWatch(const nvml::Functions& functions, const WatchedDevice& watched, std::chrono::milliseconds window);
  ActivityWatch(ActivityWatch&& other) noexcept;
  ActivityWatch(const ActivityWatch&) = delete;
  ActivityWatch& operator=(const ActivityWatch&) = delete;
  ActivityWatch& operator=(ActivityWatch&&) = delete;
  ~ActivityWatch();

  /// Called about once a second, for the driver keeps samples of some seconds only.
  void poll();
  [[nodiscard]] Activity end();

 private:
  [[nodiscard]] bool begin_gpm();
  [[nodiscard]] bool take_gpm(nvml::GpmSample sample) const;
  [[nodiscard]] std::optional<double> gpm_share();
  bool take_samples(bool count);
  void take_rate();

  const nvml::Functions& nvml_;
  WatchedDevice watched_;
  nvml::GpmSample first_ = nullptr;
  nvml::GpmSample second_ = nullptr;
  unsigned long long newest_us_ = 0;  ///< of the driver's samples
  double sum_ = 0.0;                  ///< of shares of utilisation
  double count_ = 0.0;
};

// Input: NVIDIA's driver, through its management library.
// Output: Machine: the GPUs of this machine as they are now, with their processes, and how busy they were over a
// window. If one GPU or one function does not answer, it is left out with a warning. It is an error only if the driver
// does not answer at all.

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

// Input: what a job is expected to take, and whether an MPS control daemon runs.
// Output: how the job shares its GPUs with others, as variables for its environment. With MPS, kernels of several
// processes run at the same time, and each client is held to a part of the SMs and of the memory. Without MPS the
// driver gives processes the GPU in turns, and nothing is set.
// Source: NVIDIA, "Multi-Process Service", appendix "Environment Variables":
// - CUDA_MPS_PIPE_DIRECTORY, by default /tmp/nvidia-mps, has the daemon's "control" and "nvidia-cuda-mps-control.pid".
// - CUDA_MPS_ACTIVE_THREAD_PERCENTAGE is an upper limit of SMs for a client, not a reservation. NVIDIA advises twice an
//   equal share, so that clients fill what others leave; here it is twice the expected SM activity.
// - CUDA_MPS_PINNED_DEVICE_MEM_LIMIT limits what a client can allocate of each GPU that it sees, including what CUDA
//   takes for itself, from CUDA 11.5 on. Here it is the estimate's upper bound of device memory.

/// A control daemon that runs.
struct MpsDaemon {
  std::string pipe_directory;
  std::int64_t pid = 0;
};

/// The daemon of this directory; empty: the variable CUDA_MPS_PIPE_DIRECTORY, else NVIDIA's default. Nothing where no
/// such process lives.
[[nodiscard]] std::optional<MpsDaemon> find_mps_daemon(std::string pipe_directory = {});

/// What is known about a job.
struct JobShare {
  std::int64_t gpus = 1;
  std::optional<core::Bytes> memory;  ///< the estimate's `upper`, of each GPU; nothing: no limit
  std::optional<double> smact;        ///< its expected SM activity; nothing: no limit
};

struct SharingPlan {
  utilisation::Sharing sharing = utilisation::Sharing::streams;
  std::vector<std::pair<std::string, std::string>> environment;  ///< to be set for the job
  std::string words;                                             ///< for people
};

/// How the job shares its GPUs. Without a daemon: time slices.
[[nodiscard]] SharingPlan plan_sharing(const std::optional<MpsDaemon>& daemon, const JobShare& job);

/// Whether a second process can come to this GPU at all: in compute mode "exclusive process" only under MPS, whose
/// server is then the one process.
[[nodiscard]] bool can_be_shared(const LiveGpu& gpu, const std::optional<MpsDaemon>& daemon);

// Input: Machine, the GPUs of this machine.
// Output: place::Server, which a policy reads. A GPU gets the profile of its name if one is known. GPUs of compute mode
// "prohibited" are left out: nobody may use them. If a GPU of mode "exclusive process" has a process, that process
// counts as a job that must run by itself. With MPS this process is MPS' server, and its clients share the GPU.

/// Which of the built-in profiles a GPU has.
struct ProfileMatch {
  std::string name;    ///< empty: none of them
  bool exact = false;  ///< by its name; else by its kind and its memory
};

/// By the name as the driver tells it, if memory agrees: "NVIDIA A100-SXM4-40GB" is a100-40gb. A name that no profile
/// has gets the one of the same kind whose memory is the same within 4 %: "NVIDIA A100 80GB PCIe" is a100-80gb.
[[nodiscard]] ProfileMatch profile_of(const LiveGpu& gpu);

struct LiveServer {
  place::Server server;
  std::vector<std::string> warnings;  ///< those of the machine, and what was assumed here
};

/// Errors: missing_information if no GPU is left.
[[nodiscard]] core::Result<LiveServer> live_server_of(const Machine& machine);
/// The same without the warnings.
[[nodiscard]] core::Result<place::Server> server_of(const Machine& machine);

/// Asks this machine's driver; takes as long as the window. Errors: those of Nvml and live_server_of().
[[nodiscard]] core::Result<LiveServer> read_server(std::chrono::milliseconds window = {});

/// "60s", "500ms", "2min", "0". Errors: invalid_argument; also beyond an hour.
[[nodiscard]] core::Result<std::chrono::milliseconds> parse_window(const std::string& text);

}  // namespace gpumem::monitor
