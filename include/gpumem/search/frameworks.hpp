// Input: a framework's name.
// Output: its row, or a question for find_layouts() about it. To add one: a function here and a line in the list of
// frameworks_inl.hpp.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/search/find_layouts.hpp"
#include "gpumem/search/layout_space.hpp"

namespace gpumem::search {

/// Input: a job under FullyShardedDataParallel, run by accelerate.
/// Output: accelerate's row of Framework, and the job as accelerate's YAML.
/// Source: accelerate 1.0, utils/dataclasses.py (FullyShardedDataParallelPlugin), commands/config/cluster.py.
[[nodiscard]] Framework accelerate();

/// Input: a job under DeepSpeed's ZeRO.
/// Output: DeepSpeed's row of Framework, and the job as its ds_config.json. Not modelled: its pipelines and its
/// sequence parallelism (Ulysses). Checkpointing is the model's own (gradient_checkpointing_enable()), which the file
/// does not say. Source: DeepSpeed 0.15, runtime/config.py and runtime/zero/config.py.
[[nodiscard]] Framework deepspeed();

/// Input: a job under Megatron-LM.
/// Output: Megatron's row of Framework, and the job as Megatron's arguments. They ask for overlapped reductions,
/// because the time of a step assumes them (layout_time.hpp). These take no memory that the estimate does not count.
/// Source: Megatron-LM core r0.12, megatron/training/arguments.py.
[[nodiscard]] Framework megatron();

/// Input: a job under fully_shard().
/// Output: torchtitan's row of Framework, and the job as its TOML file.
/// Source: torchtitan 0.2, torchtitan/config/job_config.py (names and defaults), distributed/parallel_dims.py (what can
/// be combined), distributed/pipeline_parallel.py (stages), models/llama3/infra/parallelize.py (checkpointing; tensor
/// parallel with sequence parallel).
[[nodiscard]] Framework torchtitan();

/// Every framework whose layouts are known.
[[nodiscard]] std::span<const Framework> frameworks();

/// The framework of this name, or with "any" all of them. They live as long as the program. Errors: invalid_argument,
/// listing the names.
[[nodiscard]] core::Result<std::vector<const Framework*>> frameworks_of(std::string_view name);

/// A question about the layouts of `framework` (a name of frameworks(), or "any") with the allocator that
/// PYTORCH_CUDA_ALLOC_CONF sets; all else as it is where nobody asks for more. Errors: those of frameworks_of() and of
/// device::parse_allocator_options().
[[nodiscard]] core::Result<Question> question_about(std::string_view framework, std::string_view alloc_conf);

}  // namespace gpumem::search
