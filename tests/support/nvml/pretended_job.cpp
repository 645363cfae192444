// A training job that is none: it takes memory of the machine that pretended_machine.hpp describes, for a while.
//
//   pretended_job BYTES SECONDS [--ramp SECONDS] [--smact SHARE] [--reports BYTES|none] [--exit CODE]
//                 [--linger SECONDS]
//
// It takes BYTES on each GPU of CUDA_VISIBLE_DEVICES (UUIDs or indices; without that variable: the first GPU), all at
// once, or in ten steps over the ramp, and lives on without it while it lingers. Where that is more than a GPU has
// left, or than CUDA_MPS_PINNED_DEVICE_MEM_LIMIT allows, it prints PyTorch's message and ends with 1. What is there is
// looked at and taken under one lock, so that jobs never take more together than there is.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "pretended_machine.hpp"

namespace {

namespace pretended = gpumem::pretended;

struct Options {
  unsigned long long bytes = 0;
  double seconds = 0.0;
  double ramp = 0.0;
  std::string smact;
  std::string reports;
  double linger = 0.0;
  int exit_code = 0;
};

volatile std::sig_atomic_t stopped = 0;
void stop(int signal) { stopped = signal; }

/// The GPUs, and in place 0 of a pair where CUDA would count them.
std::vector<pretended::Gpu> all_gpus(const pretended::Machine& machine) {
  std::vector<pretended::Gpu> gpus;
  for (const pretended::Gpu& gpu : machine.gpus) {
    if (gpu.lost || gpu.lost_later) continue;
    if (!gpu.mig) gpus.push_back(gpu);
    for (const pretended::Gpu& slice : gpu.slices) gpus.push_back(slice);
  }
  return gpus;
}

std::vector<pretended::Gpu> visible_gpus(const pretended::Machine& machine) {
  const std::vector<pretended::Gpu> all = all_gpus(machine);
  const char* named = std::getenv("CUDA_VISIBLE_DEVICES");
  if (named == nullptr) return all.empty() ? all : std::vector<pretended::Gpu>{all.front()};
  std::vector<pretended::Gpu> visible;
  std::istringstream words(named);
  for (std::string word; std::getline(words, word, ',');) {
    bool found = false;
    for (std::size_t index = 0; index < all.size() && !found; ++index) {
      found = word == all[index].uuid || word == std::to_string(index);
      if (found) visible.push_back(all[index]);
    }
    if (!found) break;  // CUDA sees none from the first that it does not know
  }
  return visible;
}

/// "0=4096M,1=2G" in bytes for this place; no limit: all ones.
unsigned long long mps_limit(std::size_t place) {
  const char* limits = std::getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
  std::istringstream words(limits != nullptr ? limits : "");
  for (std::string word; std::getline(words, word, ',');) {
    char* end = nullptr;
    if (std::strtoull(word.c_str(), &end, 10) != place || *end != '=') continue;
    const unsigned long long count = std::strtoull(end + 1, &end, 10);
    return count << (*end == 'G' ? 30U : *end == 'M' ? 20U : *end == 'K' ? 10U : 0U);
  }
  return ~0ULL;
}

std::string gib(unsigned long long bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GiB", static_cast<double>(bytes) / (1ULL << 30U));
  return text;
}

/// The first line is that of PyTorch 2.6 (c10/cuda/CUDACachingAllocator.cpp).
void print_out_of_memory(std::size_t place, unsigned long long total, unsigned long long free, unsigned long long own,
                         unsigned long long wanted) {
  std::cerr << "Traceback (most recent call last):\n"
            << "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate " << gib(wanted) << ". GPU " << place
            << " has a total capacity of " << gib(total) << " of which " << gib(free)
            << " is free. Including non-PyTorch memory, this process has " << gib(own) << " memory in use."
            << std::endl;
}

class Job {
 public:
  Job(Options options, pretended::Machine machine)
      : options_(std::move(options)), machine_(std::move(machine)), gpus_(visible_gpus(machine_)) {
    path_ = machine_.jobs + "/" + std::to_string(getpid());
    start_ = pretended::start_of(getpid());
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job() { give_back(); }

  void give_back() { unlink(path_.c_str()); }

  [[nodiscard]] bool has_gpus() const { return !gpus_.empty(); }

  /// False, after the message, if some GPU has too little left.
  bool take(unsigned long long bytes) {
    const int lock = open((machine_.jobs + "/.lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666);
    if (lock < 0 || flock(lock, LOCK_EX) != 0) std::perror("pretended_job: lock");
    const bool fits = fits_now(bytes);
    if (fits) {
      std::ofstream file(path_ + ".new");
      file << "start " << start_ << "\n";
      for (const pretended::Gpu& gpu : gpus_) {
        file << gpu.uuid << " " << bytes;
        if (!options_.smact.empty()) file << " smact=" << options_.smact;
        if (!options_.reports.empty()) file << " reports=" << options_.reports;
        file << "\n";
      }
      file.close();
      std::rename((path_ + ".new").c_str(), path_.c_str());
      taken_ = bytes;
    }
    close(lock);
    return fits;
  }

 private:
  [[nodiscard]] bool fits_now(unsigned long long bytes) const {
    const std::vector<pretended::Use> uses = pretended::read_uses(machine_);
    for (std::size_t place = 0; place < gpus_.size(); ++place) {
      const pretended::Gpu& gpu = gpus_[place];
      const unsigned long long total = gpu.total - gpu.reserved;
      const unsigned long long used = used_of(gpu, uses);
      const unsigned long long free = std::min(total > used ? total - used : 0, mps_limit(place) - taken_);
      if (bytes - taken_ <= free && bytes <= mps_limit(place)) continue;
      print_out_of_memory(place, total, free, taken_, bytes - taken_);
      return false;
    }
    return true;
  }

  Options options_;
  pretended::Machine machine_;
  std::vector<pretended::Gpu> gpus_;
  std::string path_;
  std::string start_;
  unsigned long long taken_ = 0;
};

void rest(double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (stopped == 0 && std::chrono::steady_clock::now() < end) {
    const auto step = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    std::this_thread::sleep_until(std::min<std::chrono::steady_clock::time_point>(
        step, std::chrono::time_point_cast<std::chrono::steady_clock::duration>(end)));
  }
}

int run(const Options& options) {
  const auto machine = pretended::read_machine();
  if (!machine) {
    std::cerr << "RuntimeError: Found no NVIDIA driver on your system." << std::endl;
    return 1;
  }
  Job job(options, *machine);
  if (!job.has_gpus()) {
    std::cerr << "RuntimeError: No CUDA GPUs are available" << std::endl;
    return 1;
  }
  const int steps = options.ramp > 0.0 ? 10 : 1;
  for (int step = 1; step <= steps && stopped == 0; ++step) {
    if (!job.take(options.bytes / static_cast<unsigned long long>(steps) * static_cast<unsigned long long>(step))) {
      return 1;
    }
    if (steps > 1) rest(options.ramp / steps);
  }
  rest(options.seconds - options.ramp);
  job.give_back();
  rest(options.linger);
  return stopped != 0 ? 128 + static_cast<int>(stopped) : options.exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: pretended_job BYTES SECONDS [--ramp SECONDS] [--smact SHARE] [--reports BYTES|none] "
                 "[--exit CODE] [--linger SECONDS]\n";
    return 2;
  }
  Options options;
  options.bytes = std::strtoull(argv[1], nullptr, 10);
  options.seconds = std::strtod(argv[2], nullptr);
  for (int at = 3; at + 1 < argc; at += 2) {
    const std::string name = argv[at];
    const std::string value = argv[at + 1];
    if (name == "--ramp") options.ramp = std::strtod(value.c_str(), nullptr);
    if (name == "--smact") options.smact = value;
    if (name == "--reports") options.reports = value;
    if (name == "--linger") options.linger = std::strtod(value.c_str(), nullptr);
    if (name == "--exit") options.exit_code = static_cast<int>(std::strtol(value.c_str(), nullptr, 10));
  }
  std::signal(SIGTERM, stop);
  std::signal(SIGINT, stop);
  return run(options);
}
