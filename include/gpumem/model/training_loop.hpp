// Input: which program trains a model.
// Output: its row, all that gpumem knows about that loop: which tensors its variables still hold after forward,
// backward and the step, and where it zeroes gradients. All other code reads the row.
// Source: the file that each row names.
//
// A loop has three moments at which it releases what the model returned (logits, keys and values): when the next
// forward pass has made new ones, when its function that calls the model returns, or in forward as soon as the loss
// stands. The loss lives through backward under each of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "gpumem/model/named.hpp"

namespace gpumem::model {

/// Where in an iteration optimizer.zero_grad() is called: it decides whether the last step's gradients still are held
/// while the forward pass runs.
enum class ZeroGrad : std::uint8_t {
  step_start,       ///< first of all, before the batch arrives
  before_forward,   ///< when the batch has arrived
  before_backward,  ///< between forward and backward
  step_end,         ///< after the optimizer's step
  in_place,         ///< set_to_none=False, the default before PyTorch 2.0: gradients are set to zero and stay
};

/// The type in which what the model returns is returned.
enum class OutputType : std::uint8_t {
  own,
  float_under_autocast,  ///< a copy (accelerate 1.0, accelerator.py: prepare_model, convert_outputs_to_fp32)
  always_float,          ///< a copy (lightning 2.4, fabric/plugins/precision/half.py: convert_output)
};

enum class Loop : std::uint8_t { script, hf_trainer, lightning, torchtune, litgpt, megatron, torchtitan };

struct LoopRow {
  Loop value = Loop::script;
  std::string_view name;    ///< on the command line, in JSON, C, Python and tables of runs
  std::string_view source;  ///< the code that the row follows
  /// `outputs` and `loss` are names of the script, bound again in the next iteration. False: the outputs go when the
  /// loss is held; after backward only a detached number is left of the loss.
  bool keeps_outputs = true;
  ZeroGrad zero_grad = ZeroGrad::before_forward;  ///< unless the job says another place
  bool caches = true;  ///< its models return keys and values, as transformers' do where use_cache is on
  /// Its usual collator pads the samples of a batch and hands the model an attention mask.
  bool pads = false;
  bool upcasts = false;  ///< a chunked loss is computed of float32 logits
  /// With float32 masters: each gradient is added to a float32 main gradient, in a buffer that is never freed, and the
  /// optimizer is one kernel.
  bool main_gradients = false;
  std::int64_t workspace = 0;  ///< bytes that its layers' library keeps for its products, in addition to PyTorch's own
  OutputType outputs = OutputType::own;
  /// The model is the program's own code (litgpt/model.py, litgpt/lora.py), not transformers'.
  bool own_model = false;
  /// fully_shard() takes what comes before the blocks as a unit, and what comes after them as another, which stays
  /// gathered until its backward; others leave both to the root.
  bool shards_ends_apart = false;
};

/// One row a loop, in the order of the enum.
inline constexpr std::array kLoopRows = {
    LoopRow{.value = Loop::script, .name = "script", .source = "outputs = model(x); loss.backward(); optimizer.step()"},
    LoopRow{.value = Loop::hf_trainer,
            .name = "hf-trainer",
            .source = "transformers 4.45 to 4.48, trainer.py: compute_loss, training_step, model.zero_grad(); "
                      "data/data_collator.py: DataCollatorWithPadding, DataCollatorForLanguageModeling",
            .keeps_outputs = false,
            .zero_grad = ZeroGrad::step_end,
            .pads = true,
            .outputs = OutputType::float_under_autocast},
    LoopRow{.value = Loop::lightning,
            .name = "lightning",
            .source = "lightning 2.4, loops/optimization/automatic.py: Closure.closure",
            .keeps_outputs = false,
            .zero_grad = ZeroGrad::before_backward},
    LoopRow{.value = Loop::torchtune,
            .name = "torchtune",
            .source = "torchtune 0.4, recipes/full_finetune_single_device.py: _loss_step, train",
            .keeps_outputs = false,
            .zero_grad = ZeroGrad::step_end,
            .caches = false,
            .upcasts = true},
    LoopRow{.value = Loop::litgpt,
            .name = "litgpt",
            .source = "litgpt 0.4, finetune/lora.py: fit; lightning 2.4, fabric/plugins/precision: convert_output",
            .zero_grad = ZeroGrad::step_end,
            .caches = false,
            .outputs = OutputType::always_float,
            .own_model = true},
    LoopRow{.value = Loop::megatron,
            .name = "megatron",
            .source = "Megatron-LM core r0.12, training/training.py: train_step; core/distributed/"
                      "param_and_grad_buffer.py; core/optimizer/optimizer.py: Float16OptimizerWithFloat16Params; "
                      "TransformerEngine 2.1, pytorch/module/base.py: get_cublas_workspace_size_bytes (4 MiB before "
                      "compute capability 9.0)",
            .keeps_outputs = false,
            .zero_grad = ZeroGrad::step_start,
            .caches = false,
            .main_gradients = true,
            .workspace = std::int64_t{32} << 20},
    LoopRow{.value = Loop::torchtitan,
            .name = "torchtitan",
            .source =
                "torchtitan 0.2, train.py: forward_backward_step, train_step; models/llama3/infra/parallelize.py: "
                "apply_fsdp (since July 2025, commit 83e694105)",
            .keeps_outputs = false,
            .zero_grad = ZeroGrad::step_start,
            .caches = false,
            .upcasts = true,
            .shards_ends_apart = true},
};

[[nodiscard]] constexpr const LoopRow& row_of(Loop loop) { return kLoopRows[static_cast<std::size_t>(loop)]; }

/// Only the names, as the other choices of a job have them.
inline constexpr auto kLoops = [] {
  std::array<Named<Loop>, kLoopRows.size()> names{};
  for (std::size_t index = 0; index < names.size(); ++index) {
    names[index] = {kLoopRows[index].value, kLoopRows[index].name};
  }
  return names;
}();

/// How long the batches are. A program whose first batch is the longest (litgpt starts with it, so that it fails early)
/// holds little of an iteration when the next one's outputs are made.
enum class BatchLengths : std::uint8_t { alike, longest_first };
inline constexpr std::array<Named<BatchLengths>, 2> kBatchLengths = {
    {{BatchLengths::alike, "alike"}, {BatchLengths::longest_first, "longest-first"}}};

/// The release of transformers whose models are trained. It decides which name the logits have while the loss is
/// computed: up to 4.45 `logits = logits.float()` in forward() takes the name from those in lower precision, and the
/// float32 ones are returned; from 4.46 on the cast is in loss/loss_utils.py, and forward() holds the first ones.
/// From 4.49 on the labels are padded by one and shifted, where before all logits but the last were copied. 4.52 has
/// newer classes of some models (architectures/forward.hpp: When); of releases between, which have them is not known.
/// 5.11 first has DeepSeek-V3.2, whose indexer's code GLM-5 has since (#41251; #42590 says in which release).
enum class Transformers : std::uint8_t { v4_45, v4_48, v4_51, v4_52, v4_56, v5_0, v5_5, v5_11 };
inline constexpr std::array<Named<Transformers>, 8> kTransformers = {{{Transformers::v4_45, "4.45"},
                                                                      {Transformers::v4_48, "4.48"},
                                                                      {Transformers::v4_51, "4.51"},
                                                                      {Transformers::v4_52, "4.52"},
                                                                      {Transformers::v4_56, "4.56"},
                                                                      {Transformers::v5_0, "5.0"},
                                                                      {Transformers::v5_5, "5.5"},
                                                                      {Transformers::v5_11, "5.11"}}};

/// The first release of each value's row. Source: huggingface/transformers, releases.
struct FirstRelease {
  int major = 0;
  int minor = 0;
  Transformers value = Transformers::v4_45;
};
inline constexpr std::array<FirstRelease, 8> kFirstReleases = {{{0, 0, Transformers::v4_45},
                                                                {4, 46, Transformers::v4_48},
                                                                {4, 49, Transformers::v4_51},
                                                                {4, 52, Transformers::v4_52},
                                                                {4, 56, Transformers::v4_56},
                                                                {5, 0, Transformers::v5_0},
                                                                {5, 5, Transformers::v5_5},
                                                                {5, 11, Transformers::v5_11}}};

namespace training_loop_detail {

/// Cuts the number off the front of `text`; nothing if it has none of up to four digits there.
constexpr std::optional<int> take_number(std::string_view& text) {
  constexpr std::size_t kMostDigits = 4;
  int number = 0;
  std::size_t digits = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
    if (digits == kMostDigits) return std::nullopt;
    number = number * 10 + (text[digits] - '0');
  }
  text.remove_prefix(digits);
  return digits == 0 ? std::nullopt : std::optional(number);
}

}  // namespace training_loop_detail

/// Of a version as Python writes it, "4.57.1" or "5.0.2.dev0". Nothing for other text.
[[nodiscard]] constexpr std::optional<Transformers> transformers_of_version(std::string_view version) {
  const std::optional<int> major = training_loop_detail::take_number(version);
  if (!major || !version.starts_with('.')) return std::nullopt;
  version.remove_prefix(1);
  const std::optional<int> minor = training_loop_detail::take_number(version);
  if (!minor) return std::nullopt;
  Transformers found = Transformers::v4_45;
  for (const FirstRelease& row : kFirstReleases) {
    if (row.major < *major || (row.major == *major && row.minor <= *minor)) found = row.value;
  }
  return found;
}
static_assert(transformers_of_version("4.57.1") == Transformers::v4_56);
static_assert(transformers_of_version("5.0.2.dev0") == Transformers::v5_0);
static_assert(transformers_of_version("4.48") == Transformers::v4_48 && !transformers_of_version("4"));

static_assert(
    [] {
      for (std::size_t index = 0; index < kLoopRows.size(); ++index) {
        if (static_cast<std::size_t>(kLoopRows[index].value) != index) return false;
      }
      return true;
    }(),
    "the rows stand in the order of the enum");

}  // namespace gpumem::model
