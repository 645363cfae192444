// Input: the path of a trainer's file.
// Output: what it says about a job, in a JobRequest, and what gpumem does not model of it, in words.
// To add a format: a file here and a row in the list of trainer_files.cpp. This room is separate from the library, as
// job_json/ is, because yaml-cpp is optional and nothing that a scheduler links needs it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/model/model_graph.hpp"
#include "trainer_format.hpp"

namespace gpumem::trainer_files {

/// In the order in which they are tried.
[[nodiscard]] std::span<const TrainerFormat* const> trainer_formats();

/// Of text. Errors: those of parse_settings(); unknown_format if its keys are those of no format.
[[nodiscard]] core::Result<TrainerJob> parse_trainer_job(std::string_view text);

/// Lays the adapters of an adapter_config.json over the job.
[[nodiscard]] core::Status take_adapter(std::string_view text, TrainerJob& job);
/// Lays what a DeepSpeed config says over the job.
[[nodiscard]] core::Status take_deepspeed(std::string_view text, TrainerJob& job);

/// With the DeepSpeed config that the file names, and the adapter_config.json at `adapter` (a file or a folder), or
/// next to a file of TrainingArguments. Errors: also unreadable_file; each names its file.
[[nodiscard]] core::Result<TrainerJob> read_trainer_job(const std::string& path, const std::string& adapter = {});

/// Of an adapter_config.json alone (a file, or its folder). Errors: those of reading it; each names its file.
[[nodiscard]] core::Result<TrainerJob> read_adapter_job(const std::string& adapter);

/// Sets the options of the job that the request was not given. Returns what is not modelled, a clause each ("lora 16
/// (lora_rank) is not modelled"): options that gpumem does not have, values that they do not take, what the file's
/// format named, and keys that it does not know. Errors: malformed_input for what is no number, with the key;
/// invalid_argument where the job is unlike any that the options say.
[[nodiscard]] core::Result<std::vector<std::string>> apply(const TrainerJob& job, job::JobRequest& request);

/// The precision of a job that keeps float32 masters of what it trains, and computes in two bytes.
void keep_masters(TrainerJob& job);

/// What follows where the job runs on so many GPUs: all that the layout leaves are data parallel, and share the global
/// batch. Options that are given stay. Errors: invalid_argument where the layout does not divide the GPUs.
[[nodiscard]] core::Status spread(const TrainerJob& job, std::int64_t gpus, job::JobRequest& request);

/// The patterns of what is trained of this model, for the option `train`; empty: no blocks are named. Errors:
/// invalid_argument where the model has no list of blocks, or one that cannot be shared as asked.
[[nodiscard]] core::Result<std::string> trained_patterns(const TrainedBlocks& trained, const model::ModelGraph& graph);
/// What is frozen besides, where all that is in no block is trained with them; empty: nothing is said of it.
[[nodiscard]] std::string frozen_patterns(const TrainedBlocks& trained, const model::ModelGraph& graph);

/// The config.json of the job's model: the path itself, or in the folder, relative to here or to the trainer's file.
/// Errors: missing_information if the file names no model, or one that is not here.
[[nodiscard]] core::Result<std::string> find_model(const TrainerJob& job, const std::string& trainer_file);

/// The published model that the last name of a path means which is not here: "/tmp/Llama-2-7b-hf", "models/Qwen2.5-7B".
[[nodiscard]] std::optional<std::string> model_by_folder(std::string_view path);

}  // namespace gpumem::trainer_files
