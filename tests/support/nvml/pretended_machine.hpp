// Input: the file named by GPUMEM_PRETENDED_NVML, and the jobs that write there what they take.
// Output: the GPUs of a pretended machine, for tests of the code that reads, places and launches. The file is read
// again at each call, so that a test changes the machine by writing the file.
//
//   {"driver": "550.54.15", "jobs": "/tmp/jobs",
//    "gpus": [{"uuid": "GPU-0", "name": "NVIDIA A100-SXM4-40GB", "memory_total": 42949672960,
//              "reserved": 475201536,          what the driver keeps; 0 if left out
//              "used_outside": 0,              bytes of processes that nobody lists
//              "utilisation": 37,              percent, as nvidia-smi's; jobs add to it
//              "sm_util": 21.5,                percent, GPM's; where it is left out, the GPU has no GPM
//              "compute_mode": "shared", "exclusive_process" or "prohibited",
//              "lost": false,                  true: it cannot be opened; "later": opened, and lost then
//              "mig": [{"uuid": "MIG-0", "name": "... MIG 1g.5gb", "memory_total": ..., "gpu_instance": 7}]}],
//    "fail": {"nvmlInit_v2": 9},               codes that functions return
//    "missing": ["nvmlDeviceGetMemoryInfo_v2"]}  the same with NVML_ERROR_FUNCTION_NOT_FOUND
//
// A job is a file in `jobs` named by its process: "start TICKS", then lines "UUID BYTES [smact=SHARE] [reports=BYTES or
// none]": what it takes, how busy it keeps the GPU, and what the driver is told of it instead, for a process that lies.
// Files of processes that have ended do not count.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gpumem::pretended {

struct Gpu {
  std::string uuid;
  std::string name;
  unsigned long long total = 0;
  unsigned long long reserved = 0;
  unsigned long long used_outside = 0;
  double utilisation = 0.0;       ///< percent
  std::optional<double> sm_util;  ///< percent
  int compute_mode = 0;           ///< NVML's number
  unsigned gpu_instance = 0;
  bool lost = false;
  bool lost_later = false;
  bool mig = false;
  std::vector<Gpu> slices;
};

/// What one process takes of one GPU.
struct Use {
  pid_t pid = 0;
  std::string uuid;
  unsigned long long bytes = 0;
  double smact = 0.0;
  std::optional<unsigned long long> reported;  ///< nothing: hidden
};

struct Machine {
  std::string driver;
  std::string jobs;
  std::vector<Gpu> gpus;
  std::map<std::string, int> fail;
  std::set<std::string> missing;
};

/// Nothing if the file is not named, not there, or no machine.
std::optional<Machine> read_machine();

/// What living processes take, on all GPUs.
std::vector<Use> read_uses(const Machine& machine);

/// All that is taken of this GPU: by jobs, and by others.
unsigned long long used_of(const Gpu& gpu, const std::vector<Use>& uses);

/// When a process started, in the kernel's ticks; empty: it has ended, or is a zombie.
std::string start_of(pid_t pid);

}  // namespace gpumem::pretended
