// Input: a job on N GPUs that train in parallel.
// Output: what its model states take on each GPU when ZeRO shares them, by the published formulas, including their
// mistakes. This is a lower bound: it leaves out activations, communication buffers, workspaces, the allocator's
// rounding and the CUDA context.
// Units: bytes.
//
//   P  parameters, elements; each tied one once     L  parameters of the largest layer     N Layout::data_parallel
//
//   zero-1              2 P + 2 P + 12 P / N     optimizer states shared
//   zero-1-offload      2 P + 2 P                they are in the host's memory
//   zero-2              2 P + 18 P / N           gradients shared as well
//   zero-2-offload      2 P                      gradients and optimizer states are in the host's memory
//   zero-3              4 L + 18 P / N           parameters shared as well; the largest layer is gathered
//   zero-3-offload      4 L + 2 P / N            optimizer states are in the host's memory
//   zero-3-offload-all  4 L                      and so are the parameters
//
// Training is DeepSpeed's, whatever the job's own: parameters of 16 bits (2 bytes), gradients of 16 bits (2) that
// become float32 for the optimizer's step (4), float32 master weights (4), Adam's momentum and variance in float32 (8).
// A job of another precision or optimizer is marked (MemoryEstimate::out_of_domain).
//
// Sources. zero-1: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", SC'20,
// section 5.1 (P_os; 2 + 2 + K bytes, K = 12), where gradients stay at 2 bytes; DeepSpeed publishes no function for it,
// and offloading takes away the shared term. The others: DeepSpeed's estimate_zero2_model_states_mem_needs and
// estimate_zero3_model_states_mem_needs, as of its pull request 5099 (April 2024), with divisions rounded down as
// there; before it, and in the tables of its documentation still, zero-2 was 4 P + 16 P / N.
#pragma once

#include "gpumem/estimate/estimator.hpp"

namespace gpumem::estimate {

class ZeroStates final : public Estimator {
 public:
  enum class Kind : std::uint8_t { one, one_offload, two, two_offload, three, three_offload, three_offload_all };

  static constexpr std::string_view kOneName = "zero-1";
  static constexpr std::string_view kOneOffloadName = "zero-1-offload";
  static constexpr std::string_view kTwoName = "zero-2";
  static constexpr std::string_view kTwoOffloadName = "zero-2-offload";
  static constexpr std::string_view kThreeName = "zero-3";
  static constexpr std::string_view kThreeOffloadName = "zero-3-offload";
  static constexpr std::string_view kThreeOffloadAllName = "zero-3-offload-all";

  explicit ZeroStates(Kind kind) : kind_(kind) {}

  [[nodiscard]] std::string_view name() const override;

 private:
  [[nodiscard]] core::Result<MemoryEstimate> do_estimate(analysis::Analysis& analysis,
                                                         const device::GpuProfile& gpu) const override;
  [[nodiscard]] bool takes_data_parallel() const override { return true; }

  Kind kind_;
};

}  // namespace gpumem::estimate
