// Input: the utilisations of jobs, each measured when the job runs by itself.
// Output: their utilisation together on one GPU, and how much slower each job becomes. Utilisation does not add up: it
// saturates.
// Units: shares of one and the same GPU, 0 to 1.
//
// The rule. Each job by itself keeps a share of the GPU busy (s, SMACT) and leaves the rest idle while it waits for the
// host, for data or for its own last kernel. As long as nothing makes the jobs keep step, they are busy independently
// of each other, so that the GPU is busy with any of them for 1 - (1 - s1)(1 - s2)...: the probability of the union of
// independent events. That is what the jobs get together; what they ask for is the sum s1 + s2 + .... Work is
// conserved: each second they ask for more seconds of the GPU than they get, and all are slowed down by
//   slowdown = (s1 + s2 + ...) / (1 - (1 - s1)(1 - s2)...),
// which is 1 for a single job, n for n jobs that each fill the GPU, and 1.33 for two that each fill half of it.
//
// What a job occupies depends on how the GPU is shared. Under MPS, kernels of several processes run at the same time,
// and the SMs are shared: s is the SM activity. Otherwise the processes take turns in time (time slices; NVIDIA,
// "Multi-Process Service"), and a kernel that fills a tenth of the SMs shuts the others out of all of them: s is the
// share of time with any kernel running (GRACT), at least SMACT. Where only SMACT is known, GRACT is taken as halfway
// between SMACT, as if every kernel filled the GPU, and its square root, as if the idleness lay half in time and half
// in space. On GPUMemNet's published runs (one A100-40GB; 1,841 of MLPs, 492 of CNNs with counters) that is 0.065 and
// 0.093 off on average, with a bias of -0.005 and +0.042; SMACT itself 0.108 and 0.102, its root 0.125 and 0.112.
//
// What the rule leaves out: caches and memory bandwidth that jobs fight for (it is too kind to jobs that are bound by
// bandwidth), the host's cores and disks, and context switches between time slices.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>

namespace gpumem::utilisation {

/// How processes share a GPU: their kernels in turns (time slices of separate processes, or streams of one process
/// without room for both kernels), or at the same time (MPS).
enum class Sharing : std::uint8_t { streams, mps };

[[nodiscard]] constexpr std::string_view to_string(Sharing sharing) {
  return sharing == Sharing::mps ? "mps" : "streams";
}

/// The GPU's SM activity with all of them running, if none is slowed down by more than the others' presence under MPS:
/// 1 - product of (1 - share). 0 of none.
[[nodiscard]] double combined_smact(std::span<const double> shares);

/// The share of the GPU that nobody else can have while the job runs, so shared: SMACT under MPS, else the share of
/// time with any kernel running, as far as SMACT tells it.
[[nodiscard]] double occupied(double smact, Sharing sharing);

/// How long a job takes next to the others if it takes one second by itself, at least 1; the same for all of them.
/// `shares` are the SM activities of all jobs, each by itself, on the GPU, this one's included.
[[nodiscard]] double slowdown(std::span<const double> shares, Sharing sharing);

/// The GPU's SM activity with all of them running at that speed: the sum of the shares, slowed down. Under MPS it is
/// combined_smact().
[[nodiscard]] double shared_smact(std::span<const double> shares, Sharing sharing);

inline double combined_smact(std::span<const double> shares) {
  double idle = 1.0;
  for (const double share : shares) idle *= 1.0 - std::clamp(share, 0.0, 1.0);
  return 1.0 - idle;
}

inline double occupied(double smact, Sharing sharing) {
  const double share = std::clamp(smact, 0.0, 1.0);
  return sharing == Sharing::mps ? share : 0.5 * (share + std::sqrt(share));
}

inline double slowdown(std::span<const double> shares, Sharing sharing) {
  double asked = 0.0;
  double idle = 1.0;
  for (const double share : shares) {
    const double part = occupied(share, sharing);
    asked += part;
    idle *= 1.0 - part;
  }
  // Jobs that together ask for next to nothing are in nobody's way; the quotient would be rounding errors.
  constexpr double kNothing = 1e-9;
  return asked < kNothing ? 1.0 : std::max(1.0, asked / (1.0 - idle));
}

inline double shared_smact(std::span<const double> shares, Sharing sharing) {
  double sum = 0.0;
  for (const double share : shares) sum += std::clamp(share, 0.0, 1.0);
  return sum / slowdown(shares, sharing);
}

}  // namespace gpumem::utilisation
