// Input: PYTORCH_CUDA_ALLOC_CONF as text.
// Output: AllocatorOptions, the settings that decide how much memory PyTorch's caching allocator reserves.
// Units: bytes.
// Source: the CUDA semantics notes of PyTorch's documentation ("Optimizing memory usage with PYTORCH_CUDA_ALLOC_CONF")
// and c10/core/AllocatorConfig.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"

namespace gpumem::device {

struct AllocatorOptions {
  /// They were said, even if all are PyTorch's defaults: those of a recorded program do not count then.
  bool said = false;
  /// What the allocator may reserve: the device's memory without the context. Nothing: no limit.
  std::optional<core::Bytes> capacity = {};
  /// One growing segment a pool and stream instead of one a request.
  bool expandable_segments = false;
  /// Blocks of this size or more are neither split nor given to smaller requests (max_split_size_mb; PyTorch takes
  /// 20 MiB or more only). Nothing: no limit.
  std::optional<core::Bytes> max_split_size = {};
  /// How much larger than an oversize request the block that serves it may be (max_non_split_rounding_mb).
  core::Bytes max_non_split_rounding{std::int64_t{20} << 20};
  /// Requests are rounded up to a 1/n of the power of two below them; 0 or 1: they are not. One n for each size of
  /// 1, 2, 4, ... 32768 MiB and more; the first serves all smaller requests too.
  std::array<std::int32_t, 16> roundup_power2_divisions{};
  /// The share of `capacity` above which segments that were long unused are released before new ones are made;
  /// 0: never. PyTorch does so only after torch.cuda.set_per_process_memory_fraction().
  double garbage_collection_threshold = 0.0;
  /// The share of the device's memory that the process may take (per_process_memory_fraction). Nothing: not said.
  std::optional<double> memory_fraction = {};

  friend bool operator==(const AllocatorOptions&, const AllocatorOptions&) = default;
};

/// "expandable_segments:True,max_split_size_mb:128,roundup_power2_divisions:[256:1,512:2,>:4]". Options that do not
/// change how much is reserved are read and forgotten. Errors: invalid_argument for one that is unknown, not modelled
/// (backend:cudaMallocAsync) or out of the range that PyTorch takes, naming it.
[[nodiscard]] core::Result<AllocatorOptions> parse_allocator_options(std::string_view text);

}  // namespace gpumem::device
