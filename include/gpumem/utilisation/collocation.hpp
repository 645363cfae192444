// Enters: the utilisations of jobs that run alone. Leaves: what they make together on one GPU, and how much slower each
// runs there. Utilisation is not additive: it saturates. Units: shares of one and the same GPU, 0 to 1.
#pragma once

#include <cstdint>
#include <span>

namespace gpumem::utilisation {

/// How processes share a GPU: their kernels in turns (time slices of separate processes, or streams of one that find no
/// room beside each other), or side by side (MPS).
enum class Sharing : std::uint8_t { streams, mps };

/// The GPU's SM activity with all of them running: 1 - product of (1 - share), as if each were busy independently of
/// the others. 0 of none.
[[nodiscard]] double combined_smact(std::span<const double> shares);

/// What a job that would take one second alone takes beside the others, at least 1. `shares` are the SM activities
/// alone of all jobs on the GPU, this one's included at `index`.
[[nodiscard]] double slowdown(std::span<const double> shares, std::size_t index, Sharing sharing);

}  // namespace gpumem::utilisation

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/impl/collocation_inl.hpp"
#endif
