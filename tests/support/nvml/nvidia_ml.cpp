// A libnvidia-ml for tests: NVML's symbols over a machine that pretended_machine.hpp describes. With
// GPUMEM_PRETENDED_OLD it is the library of a driver of 2019: without the newer functions.
#include <sys/time.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "gpumem/monitor/nvml.hpp"
#include "pretended_machine.hpp"

namespace {

using namespace gpumem::monitor::nvml;
namespace pretended = gpumem::pretended;

constexpr std::uintptr_t kSlices = 64;  ///< a handle is (GPU + 1) * 64 + slice + 1, or + 0 for the GPU itself

/// One call of one function: the machine as it is now, or the code that says why there is none.
class Call {
 public:
  explicit Call(const char* symbol) : machine_(pretended::read_machine()) {
    if (!machine_) {
      code_ = kDriverNotLoaded;
    } else if (const auto fail = machine_->fail.find(symbol); fail != machine_->fail.end()) {
      code_ = fail->second;
    } else if (machine_->missing.count(symbol) != 0) {
      code_ = kFunctionNotFound;
    }
  }
  Call(const char* symbol, Device device) : Call(symbol) {
    if (code_ != kSuccess) return;
    const auto number = reinterpret_cast<std::uintptr_t>(device);
    const std::size_t index = number / kSlices;
    if (index == 0 || index > machine_->gpus.size()) {
      code_ = kInvalidArgument;
      return;
    }
    whole_ = &machine_->gpus[index - 1];
    gpu_ = whole_;
    if (const std::size_t slice = number % kSlices; slice != 0) {
      if (slice > whole_->slices.size()) {
        code_ = kInvalidArgument;
        return;
      }
      gpu_ = &whole_->slices[slice - 1];
    }
    if (whole_->lost || whole_->lost_later) code_ = kGpuIsLost;
  }

  [[nodiscard]] int code() const { return code_; }
  [[nodiscard]] bool failed() const { return code_ != kSuccess; }
  [[nodiscard]] const pretended::Machine& machine() const { return *machine_; }
  [[nodiscard]] const pretended::Gpu& gpu() const { return *gpu_; }
  [[nodiscard]] bool is_slice() const { return gpu_ != whole_; }
  [[nodiscard]] std::vector<pretended::Use> uses() const { return pretended::read_uses(*machine_); }

 private:
  std::optional<pretended::Machine> machine_;
  const pretended::Gpu* whole_ = nullptr;
  const pretended::Gpu* gpu_ = nullptr;
  int code_ = kSuccess;
};

int give(const std::string& text, char* to, unsigned length) {
  if (text.size() + 1 > length) return kInsufficientSize;
  std::memcpy(to, text.c_str(), text.size() + 1);
  return kSuccess;
}

Device handle(std::size_t gpu, std::size_t slice) { return reinterpret_cast<Device>((gpu + 1) * kSlices + slice); }

/// What jobs add to the share of time in which the GPU is busy.
double percent(const pretended::Gpu& gpu, double base, const std::vector<pretended::Use>& uses) {
  for (const pretended::Use& use : uses) base += use.uuid == gpu.uuid ? 100.0 * use.smact : 0.0;
  return std::min(base, 100.0);
}

template <typename Process>
int processes(const Call& call, unsigned* count, Process* to) {
  std::vector<pretended::Use> uses = call.uses();
  uses.erase(
      std::remove_if(uses.begin(), uses.end(), [&](const pretended::Use& use) { return use.uuid != call.gpu().uuid; }),
      uses.end());
  const auto room = *count;
  *count = static_cast<unsigned>(uses.size());
  if (uses.size() > room) return kInsufficientSize;
  for (std::size_t at = 0; at < uses.size(); ++at) {
    to[at] = {};
    to[at].pid = static_cast<unsigned>(uses[at].pid);
    to[at].used = uses[at].reported.value_or(kNotAvailable);
  }
  return kSuccess;
}

unsigned long long now_us() {
  timeval now{};
  gettimeofday(&now, nullptr);
  return static_cast<unsigned long long>(now.tv_sec) * 1'000'000ULL + static_cast<unsigned long long>(now.tv_usec);
}

}  // namespace

namespace gpumem::monitor::nvml {
struct GpmSampleHandle {
  unsigned long long taken_us = 0;
  double percent = 0.0;
};
}  // namespace gpumem::monitor::nvml

extern "C" {

int nvmlInit_v2() { return Call("nvmlInit_v2").code(); }
int nvmlShutdown() { return kSuccess; }

const char* nvmlErrorString(int code) {
  switch (code) {
    case kSuccess: return "The operation was successful";
    case kUninitialized: return "Uninitialized";
    case kNotSupported: return "Not Supported";
    case kNoPermission: return "Insufficient Permissions";
    case kDriverNotLoaded: return "Driver Not Loaded";
    case kFunctionNotFound: return "Function Not Found";
    case kGpuIsLost: return "GPU is lost";
    case kLibraryMismatch: return "Driver/library version mismatch";
    default: return "Unknown Error";
  }
}

int nvmlSystemGetDriverVersion(char* to, unsigned length) {
  const Call call("nvmlSystemGetDriverVersion");
  return call.failed() ? call.code() : give(call.machine().driver, to, length);
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  const Call call("nvmlDeviceGetCount_v2");
  if (!call.failed()) *count = static_cast<unsigned>(call.machine().gpus.size());
  return call.code();
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  const Call call("nvmlDeviceGetHandleByIndex_v2");
  if (call.failed()) return call.code();
  if (index >= call.machine().gpus.size()) return kInvalidArgument;
  if (call.machine().gpus[index].lost) return kGpuIsLost;
  *device = handle(index, 0);
  return kSuccess;
}

int nvmlDeviceGetUUID(Device device, char* to, unsigned length) {
  const Call call("nvmlDeviceGetUUID", device);
  return call.failed() ? call.code() : give(call.gpu().uuid, to, length);
}

int nvmlDeviceGetName(Device device, char* to, unsigned length) {
  const Call call("nvmlDeviceGetName", device);
  return call.failed() ? call.code() : give(call.gpu().name, to, length);
}

int nvmlDeviceGetMemoryInfo(Device device, Memory* memory) {
  const Call call("nvmlDeviceGetMemoryInfo", device);
  if (call.failed()) return call.code();
#if defined(GPUMEM_PRETENDED_OLD)  // drivers before 510 left out what they keep
  memory->total = call.gpu().total - call.gpu().reserved;
  memory->used = std::min(memory->total, used_of(call.gpu(), call.uses()));
#else
  memory->total = call.gpu().total;
  memory->used = std::min(memory->total, used_of(call.gpu(), call.uses()) + call.gpu().reserved);
#endif
  memory->free = memory->total - memory->used;
  return kSuccess;
}

int nvmlDeviceGetComputeRunningProcesses(Device device, unsigned* count, ProcessV1* to) {
  const Call call("nvmlDeviceGetComputeRunningProcesses", device);
  return call.failed() ? call.code() : processes(call, count, to);
}

int nvmlDeviceGetComputeMode(Device device, int* mode) {
  const Call call("nvmlDeviceGetComputeMode", device);
  if (!call.failed()) *mode = call.gpu().compute_mode;
  return call.code();
}

int nvmlDeviceGetUtilizationRates(Device device, Rates* rates) {
  const Call call("nvmlDeviceGetUtilizationRates", device);
  if (call.failed()) return call.code();
  if (call.gpu().mig || call.is_slice()) return kNotSupported;
  rates->gpu = static_cast<unsigned>(percent(call.gpu(), call.gpu().utilisation, call.uses()));
  rates->memory = 0;
  return kSuccess;
}

int nvmlDeviceGetSamples(Device device, int type, unsigned long long seen, int* value_type, unsigned* count,
                         Sample* samples) {
  const Call call("nvmlDeviceGetSamples", device);
  if (call.failed()) return call.code();
  if (type != kUtilisationSamples) return kInvalidArgument;
  if (call.gpu().mig || call.is_slice()) return kNotSupported;
  constexpr unsigned long long kInterval = 166'667;
  constexpr unsigned kKept = 100;
  *value_type = 1;  // NVML_VALUE_TYPE_UNSIGNED_INT
  if (samples == nullptr) {
    *count = kKept;
    return kSuccess;
  }
  const unsigned long long newest = now_us() / kInterval * kInterval;
  const auto busy = static_cast<unsigned>(percent(call.gpu(), call.gpu().utilisation, call.uses()));
  unsigned given = 0;
  for (unsigned at = 0; at < kKept && given < *count; ++at) {
    const unsigned long long time = newest - (kKept - 1 - at) * kInterval;
    if (time <= seen) continue;
    samples[given].microseconds = time;
    samples[given].value.wide = 0;
    samples[given].value.whole = busy;
    ++given;
  }
  *count = given;
  return given == 0 ? kNotFound : kSuccess;
}

#if !defined(GPUMEM_PRETENDED_OLD)

int nvmlDeviceGetMemoryInfo_v2(Device device, MemoryV2* memory) {
  const Call call("nvmlDeviceGetMemoryInfo_v2", device);
  if (call.failed()) return call.code();
  if (memory->version != kMemoryV2) return 25;  // NVML_ERROR_ARGUMENT_VERSION_MISMATCH
  memory->total = call.gpu().total;
  memory->reserved = call.gpu().reserved;
  memory->used = std::min(memory->total - memory->reserved, used_of(call.gpu(), call.uses()));
  memory->free = memory->total - memory->reserved - memory->used;
  return kSuccess;
}

int nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count, ProcessV2* to) {
  const Call call("nvmlDeviceGetComputeRunningProcesses_v3", device);
  return call.failed() ? call.code() : processes(call, count, to);
}

int nvmlDeviceGetMPSComputeRunningProcesses_v3(Device device, unsigned* count, ProcessV2* /*to*/) {
  const Call call("nvmlDeviceGetMPSComputeRunningProcesses_v3", device);
  *count = 0;
  return call.code();
}

int nvmlDeviceGetMigMode(Device device, unsigned* current, unsigned* pending) {
  const Call call("nvmlDeviceGetMigMode", device);
  if (!call.failed()) *current = *pending = call.gpu().mig ? 1 : 0;
  return call.code();
}

int nvmlDeviceGetMaxMigDeviceCount(Device device, unsigned* count) {
  const Call call("nvmlDeviceGetMaxMigDeviceCount", device);
  if (!call.failed()) *count = 7;
  return call.code();
}

int nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned index, Device* slice) {
  const Call call("nvmlDeviceGetMigDeviceHandleByIndex", device);
  if (call.failed()) return call.code();
  if (index >= call.gpu().slices.size()) return kNotFound;
  *slice = handle(reinterpret_cast<std::uintptr_t>(device) / kSlices - 1, index + 1);
  return kSuccess;
}

int nvmlDeviceGetGpuInstanceId(Device device, unsigned* id) {
  const Call call("nvmlDeviceGetGpuInstanceId", device);
  if (!call.failed()) *id = call.gpu().gpu_instance;
  return call.code();
}

int nvmlGpmQueryDeviceSupport(Device device, GpmSupport* support) {
  const Call call("nvmlGpmQueryDeviceSupport", device);
  if (call.failed()) return call.code();
  const auto& slices = call.gpu().slices;
  const bool has = call.gpu().sm_util || std::any_of(slices.begin(), slices.end(),
                                                     [](const auto& slice) { return slice.sm_util.has_value(); });
  support->supported = has ? 1 : 0;
  return kSuccess;
}

int nvmlGpmSampleAlloc(GpmSample* sample) {
  const Call call("nvmlGpmSampleAlloc");
  if (!call.failed()) *sample = new GpmSampleHandle();  // NOLINT: C's way
  return call.code();
}

int nvmlGpmSampleFree(GpmSample sample) {
  delete sample;
  return kSuccess;
}

int nvmlGpmSampleGet(Device device, GpmSample sample) {
  const Call call("nvmlGpmSampleGet", device);
  if (call.failed()) return call.code();
  if (!call.gpu().sm_util) return kNotSupported;
  sample->taken_us = now_us();
  sample->percent = percent(call.gpu(), *call.gpu().sm_util, call.uses());
  return kSuccess;
}

int nvmlGpmMigSampleGet(Device device, unsigned gpu_instance, GpmSample sample) {
  const Call call("nvmlGpmMigSampleGet", device);
  if (call.failed()) return call.code();
  for (const pretended::Gpu& slice : call.gpu().slices) {
    if (slice.gpu_instance != gpu_instance || !slice.sm_util) continue;
    sample->taken_us = now_us();
    sample->percent = percent(slice, *slice.sm_util, call.uses());
    return kSuccess;
  }
  return kNotSupported;
}

int nvmlGpmMetricsGet(GpmMetrics* metrics) {
  const Call call("nvmlGpmMetricsGet");
  if (call.failed()) return call.code();
  if (metrics->version != 1 || metrics->count != 1 || metrics->metrics[0].id != kGpmSmUtil) return kInvalidArgument;
  const bool apart = metrics->second->taken_us > metrics->first->taken_us + 100'000;
  metrics->metrics[0].status = apart ? kSuccess : kUnknown;
  metrics->metrics[0].value = (metrics->first->percent + metrics->second->percent) / 2.0;
  return kSuccess;
}

#endif

}  // extern "C"
