// The tables of measured runs that gpumem reads, one form each: what a form's table holds, and what its runs follow
// from. The list of forms is in src/datasets/read_runs.cpp. A body is in src/datasets/, under the form's name.
#pragma once

#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/model/model_graph.hpp"
#include "gpumem/model/op_traits.hpp"
#include "gpumem_datasets/runs_format.hpp"

namespace gpumem::datasets {

// Input: a table of measured runs in gpumem's own form, one run a row.
// Output: MeasuredRuns.
//
// Columns that must be there (a cell may be empty, except the first two):
//   summary       the model summary's path, relative to the table's
//   batch_size    samples
//   input         one sample's shape, such as 3x224x224; empty: as the summary says
//   seq_length    tokens a sample
//   optimizer     adam, adamw, sgd, ...; empty: adam
//   precision     fp32, amp-fp16, ...; empty: fp32
//   gpu           a profile's name
//   measured_mib  the measured peak; empty: the run was not measured
// Columns that may be there: the other options that say how a job is trained, by their names (job/job_options.hpp:
// software, zero_grad, samples_per_epoch, foreach, fused, ...); name, gpus, summary_pass, loss, figure (device,
// reserved, allocated, growth, active), status (ok, or oom for a run that did not fit), capacity_mib (what the
// allocator could have had, where a limit was set), the counters of the run, as shares from 0 to 1: gpu_utilisation,
// gract, smact, smocc, fp32; and published_NAME_mib (or published_NAME_mb, which is read as MiB as well: that is how
// such figures are compared with what nvidia-smi prints), what another estimator said about the run; an empty cell:
// nothing. All others are ignored. bench/measured/measure.py writes such tables.
[[nodiscard]] const RunsFormat& runs_csv();

// Input: a table of measured training runs of language models, one run a row. The column `config` names a config.json
// in the folder configs/ next to the table.
// Output: MeasuredRuns.
//
// Columns that must be there: name, config, gpu, batch_size, seq_length, figure (allocated, reserved, active, device),
// measured_mib. `gpus` is the number of devices; empty: 1. `source` (OWNER/REPOSITORY:...) says who published the run,
// and kToldOptions in the body lists the clauses of `notes` and `software` that tell an option: adapters=fp32, the
// element type of LoRA's adapters, or a release of transformers. Every other column that kOptionColumns in the body
// lists goes through the table of a job's options by name. A cell that says what a job is anyway is skipped; one whose
// option is not in the table, or does not take the value, makes the row one that is "not modelled: NAME". So a row is
// answered as soon as its option exists. Columns that the list does not name (steady_mib, trainable) say nothing of a
// job that the others do not.
//
// What a source implies is in kSourceOptions in the body: its training loop, mostly. Options of that list which do
// not exist are left out.
[[nodiscard]] const RunsFormat& language_model_csv();

// Input: a table of training runs that programs' examples publish, one run a row. The column `args` holds what the
// program was told, as JSON: the arguments or the file of ms-swift, axolotl, HuggingFace's Trainer; a command of
// Megatron-Bridge; what a notebook of Unsloth or TRL sets.
// Output: MeasuredRuns. A row whose settings do not suffice has the error `missing_information`, with what is missing.
// Units: MiB; `digits` says to what a figure is rounded.
//
// A program's own settings are read by RunsOptions::read_settings. `model` is a name on the hub; its config.json is
// found by SummaryShelf::take_model(). Samples that are neither packed nor padded are shorter than the length that the
// settings name: such a run is marked, for its figure is at most the estimate. Rows whose figure may be the card's
// size, or that measure something else, are dropped (`status`).
[[nodiscard]] const RunsFormat& framework_csv();

// Input: the table of PEFT's own comparison of its methods (method_comparison/ in huggingface/peft), one run a row. The
// column `adapter_file` names a file next to the table, which holds the run's adapter_config.json.
// Output: MeasuredRuns. The figure is the 99th percentile of torch.cuda.memory_reserved() over the steps of training.
// Units: bytes in the table, MiB in the runs.
//
// The model is a config.json of its name (SummaryShelf::take_model()), or one of the few whose sizes kModels in the
// body has. The data set of the comparison is not in the table: the batch behind the figure is taken to be 4 x 545
// tokens (kTokens in the body says why).
[[nodiscard]] const RunsFormat& peft_csv();

// Input: a table of measured post-training runs (DPO, KTO, GRPO, PPO, ...), one run a row. The column `args` has the
// whole command line of each, as a JSON object of its settings; `env:` marks environment variables. Output:
// MeasuredRuns. A row whose settings do not suffice has an error that says what is missing.
//
// Columns that must be there: name, model, algorithm, gpus, figure, measured_mib, software, args. The program is told
// by the settings, or by `software`. The model is a config.json of its name ("Qwen--Qwen3-30B-A3B.json") in configs/
// next to the table or in configs_new/ of the folder above, or one of the few whose published sizes kModels in the body
// has. Rows name a GPU only loosely: "80 GB class" is taken as an A100 of 80 GB.
[[nodiscard]] const RunsFormat& post_training_csv();

// Input: a table of measured training runs of image and video models, one run a row: model, sizes of the samples,
// method, rank, checkpointing, optimizer, what lies on the GPU, figure.
// Output: MeasuredRuns. What a row's settings ask for and gpumem does not model is the run's error and refusal.
// Units: MiB, pixels, frames, tokens.
//
// The model is a config.json in configs/ next to the table, by the list in the body: the denoiser's. An adapter's file
// may be named in the notes ("adapter: PATH"). A row whose status is "upper bound" measures no need, and is dropped.
[[nodiscard]] const RunsFormat& image_csv();

// Input: the measured runs of xMem (Shi et al., arXiv 2510.21048) as a table: model, optimizer, batch_size, gpu,
// zero_grad_position_or_variant, real_oom, ground_truth_peak_bytes, ...
// Output: MeasuredRuns. The table only names its models. Their summaries are in RunsOptions::summaries as MODEL.json or
// MODEL.txt, with each '/' of the name as '_'.
//
// How the runs were made (xMem's repository): CNNs on batch x 3 x 86 x 86, transformers on 128 tokens a sample; fp32;
// position 0 zeroes the gradients first in the iteration, 1 before backward, 2 after the step, and where it was not
// recorded the data behave as 0. The figure is the device's growth over what was in use before the model came. Of a
// run that failed for lack of memory ("real_oom") the figure is where it failed, not its need: such a run has none.
//
// What xmem, dnnmem, schedtune and llmem said about a run (NAME_bytes, NAME_pred_oom, NAME_fail_when_capped) becomes
// MeasuredRun::published. Where one predicted that the run would not fit, its figure is where its simulation stopped,
// and is not taken; llmem's -1 is a model that it does not support: it said nothing.
[[nodiscard]] const RunsFormat& xmem_csv();

// Input: a data set of GPUMemNet (itu-rad/GPUMemNet, CC BY 4.0): a row is one training run of an MLP or a CNN on an
// A100-40GB, with the net's layers as a list of (type, activations, parameters).
// Output: MeasuredRuns. Their jobs hold the nets as exact graphs. If a row's sizes do not give the parameters that it
// prints, its run is an error.
//
// What the list leaves open follows the scripts that made the runs (NeuroNetGen_scripts of that repository):
//   MLP        a chain; activations are output features.
//   CNN        activations are height x width; channels follow from the parameters. A block is a 3x3 convolution with
//              padding 1 and bias [, batch norm], activation [, dropout].
//   residual   shortcut (1x1 convolution and batch norm or Identity, listed first), two blocks; output: their sum.
//   dense      groups of four blocks of 32 channels, each over the concatenation of the group's input and all outputs
//              before it (of one tensor too: a copy), concatenated once more at the end. Between groups sometimes a 1x1
//              convolution to half the channels [, batch norm], ReLU, and average pooling ("d" in the list).
//   others     a chain of blocks.
//   all CNNs   end in global average pooling, flatten, linear, softmax.
// "Total Parameters" leaves out the one slope of each PReLU, "Total Activations" of a CNN its softmax; the graphs hold
// the slopes. Training: fp32, Adam, cross entropy, gradients zeroed first in each step, 4,096 samples an epoch, after a
// pass of torchsummary. The figure is the device's used memory. Counters are means of the non-zero readings that dcgmi
// dmon took each second of the 60 to 75 that a run was given, its start included; of runs out of memory they are left
// out.
[[nodiscard]] const RunsFormat& gpumemnet_csv();

// Input: a net as GPUMemNet's data sets list it.
// Output: its ModelGraph with exact edges and every shape.

/// ('conv2d', 30276, 2744)
struct ListedLayer {
  std::string_view type;  ///< views the list's text
  std::int64_t activations = 0;
  std::int64_t parameters = 0;
};

/// A Python list of such triples. Errors (without a place): malformed_input.
[[nodiscard]] core::Result<std::vector<ListedLayer>> parse_layer_list(std::string_view text);

struct GpumemnetNet {
  std::vector<ListedLayer> layers;
  std::string_view architecture;  ///< "pyramid", "residual", "dense", ...
  std::int64_t channels = 0;      ///< of the input; an MLP's features
  std::int64_t side = 0;          ///< of the square input image; 0: an MLP
  double dropout = 0.0;           ///< the share that its dropout layers drop
};

/// Errors: malformed_input in this line of the file where the list's figures contradict each other, naming the layer.
[[nodiscard]] core::Result<model::ModelGraph> build_net(const GpumemnetNet& net, const model::Vocabulary& vocabulary,
                                                        std::string_view file, std::int64_t line);

}  // namespace gpumem::datasets
