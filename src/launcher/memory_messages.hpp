// Input: what a job prints, piece by piece.
// Output: whether a GPU ran out of memory.
// Source: the messages of PyTorch's c10/cuda/CUDACachingAllocator.cpp ("CUDA out of memory. Tried to allocate";
// torch.OutOfMemoryError from 2.5 on, torch.cuda.OutOfMemoryError before), NVIDIA's cuda_runtime_api.h and cuda.h
// (names of the error 2), cudnn.h, cublas_api.h; XLA's RESOURCE_EXHAUSTED of JAX and TensorFlow.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace gpumem::launcher {

inline constexpr std::array<std::string_view, 9> kOutOfMemoryMessages = {
    "CUDA out of memory",        "torch.OutOfMemoryError",     "torch.cuda.OutOfMemoryError",
    "CUDA error: out of memory", "cudaErrorMemoryAllocation",  "CUDA_ERROR_OUT_OF_MEMORY",
    "CUDNN_STATUS_ALLOC_FAILED", "CUBLAS_STATUS_ALLOC_FAILED", "RESOURCE_EXHAUSTED: Out of memory",
};

/// Finds a message also where it is cut by two pieces.
class MemoryMessages {
 public:
  void take(std::string_view piece) {
    if (found_) return;
    end_.append(piece);
    const auto is_in = [&](std::string_view message) { return end_.find(message) != std::string::npos; };
    found_ = std::any_of(kOutOfMemoryMessages.begin(), kOutOfMemoryMessages.end(), is_in);
    constexpr std::size_t kLongest = 64;
    if (end_.size() > kLongest) end_.erase(0, end_.size() - kLongest);
  }
  [[nodiscard]] bool found() const { return found_; }

 private:
  std::string end_;  ///< the last bytes
  bool found_ = false;
};

}  // namespace gpumem::launcher
