// A start of an inference server, and what it takes on one GPU.
//
// Units: bytes in the names; tokens, sequences, blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/estimate/memory_estimate.hpp"

namespace gpumem::serve {

struct ServedModel;

/// What is asked for, under vLLM's own names. What is not given is the version's default on that GPU.
struct ServingJob {
  std::string engine = "vllm";
  std::string version;  ///< "0.19.0"; empty: the newest whose rules are known
  std::int64_t tensor_parallel = 1;
  std::int64_t pipeline_parallel = 1;
  std::int64_t data_parallel = 1;
  std::optional<std::int64_t> max_model_len = {};
  std::optional<std::int64_t> max_num_seqs = {};
  std::optional<std::int64_t> max_num_batched_tokens = {};
  std::optional<std::int64_t> block_size = {};
  std::optional<double> gpu_memory_utilization = {};
  std::string dtype = "auto";
  std::string kv_cache_dtype = "auto";
  std::string quantization;  ///< fp8: quantised while it is loaded; empty: as the config says
  bool enforce_eager = false;
  bool enable_expert_parallel = false;  ///< experts are shared out whole
  bool enable_lora = false;
  std::int64_t max_loras = 1;  ///< adapters that are on the GPU at once
  std::int64_t max_lora_rank = 16;
  double cpu_offload_gb = 0.0;  ///< GiB of weights of each rank that stay in the host's memory
  std::optional<std::int64_t> kv_cache_memory_bytes = {};  ///< instead of what is left of gpu_memory_utilization
  bool language_model_only = false;                        ///< without its image tower
  std::string runner = "auto";                             ///< generate, or pooling: embeddings and classes
  std::string limit_mm_per_prompt;           ///< {"image": 2}: of one request at most; empty: as many as fit
  std::string speculative_config;            ///< {"method": "eagle3", "model": NAME, ...}; empty: no speculation
  std::shared_ptr<const ServedModel> draft;  ///< the sizes of the model that speculative_config names
};

/// A server that somebody asks about.
struct ServingRequest {
  std::string config;             ///< a config.json, the folder of a model, or the name of a cached or published one
  std::string gpu = "a100-40gb";  ///< a name, an alias or a profile
  ServingJob job;
};

/// One rank of the server once it has started. Every rank of a tensor parallel group takes the same; of a pipeline's
/// stages, this is the one that has the least room for the cache.
struct ServingEstimate {
  std::string engine = "vllm";
  std::int64_t stage = 0;       ///< of the pipeline, from 0
  std::string version;          ///< whose rules were followed
  core::Bytes requested;        ///< utilisation x the GPU's memory; with kv_cache_memory_bytes the sum of the parts
  core::Bytes weights;          ///< as loaded
  core::Bytes adapters;         ///< slots of LoRA, a part of `weights`
  core::Bytes draft;            ///< the model that drafts tokens, a part of `weights`
  core::Bytes activation;       ///< the peak of the profiling pass above the weights
  core::Bytes outside_pytorch;  ///< NCCL, libraries: more than before the start
  core::Bytes outside_pytorch_lower;  ///< as seen, at least
  core::Bytes outside_pytorch_upper;  ///< and at most
  core::Bytes cuda_graphs;            ///< captured after the cache was made, beyond `requested`
  core::Bytes cuda_graphs_lower;
  core::Bytes cuda_graphs_upper;
  core::Bytes kv_cache;         ///< what is left for it; 0: nothing
  core::Bytes kv_cache_needed;  ///< by one request of max_model_len
  std::int64_t spare = 0;  ///< bytes: as much more may be outside PyTorch, and it still starts; negative: it does not
  bool caches = true;      ///< encoders keep nothing between steps
  std::int64_t kv_cache_blocks = 0;
  std::int64_t kv_cache_tokens = 0;
  std::int64_t max_model_len = 0;
  std::int64_t max_num_seqs = 0;
  std::int64_t max_num_batched_tokens = 0;
  std::int64_t largest_max_model_len = 0;  ///< that this cache holds; 0: none
  double concurrency = 0.0;                ///< requests of max_model_len at once; of an encoder, in one step
  bool starts = false;
  std::string reason;  ///< why it does not start; empty: it does
  std::vector<std::string> assumed;

  /// By the same rule as a training job's. Tight: it starts with what is likely outside PyTorch, and not with the most
  /// that was seen there.
  [[nodiscard]] estimate::Verdict verdict() const {
    if (!starts) return estimate::Verdict::does_not_fit;
    const bool bears = spare >= outside_pytorch_upper.count() - outside_pytorch.count();
    return bears ? estimate::Verdict::fits : estimate::Verdict::tight;
  }
  /// What the server takes of the GPU's memory once it runs: its share, and the graphs beyond it.
  [[nodiscard]] core::Bytes expected() const {
    return core::Bytes(requested.count() + (starts ? cuda_graphs.count() : 0));
  }
};

}  // namespace gpumem::serve
