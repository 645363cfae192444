// Input: the name of a published image or video model, as SimpleTuner and finetrainers give it.
// Output: the denoiser's config, and what the trainer's own copy of the model does differently.
// Units: pixels, tokens.
// Source: SimpleTuner 2026-08, helpers/models/*/model.py and transformer.py (of Intervals::no_effect: measured runs);
// diffusers 0.41.dev0, scripts/convert_*.py; the configs that the models' repositories publish.
#pragma once

#include <cstdint>
#include <string_view>

namespace gpumem::datasets {

/// What SimpleTuner 2026-08 makes of an interval of gradient checkpointing (helpers/models/*/transformer.py).
/// The page of these runs says of equal figures: "that is usually the option being ignored".
enum class Intervals : std::uint8_t {
  joined,      ///< checkpoint_sequential_state(): each two blocks as one, or two of every four
  separate,    ///< should_checkpoint_block(): the first of each two blocks, or two of every four, one by one
  ignored,     ///< diffusers' own UNets know none; HiDream learnt it after its runs (SimpleTuner's commit e691bd260)
  int8_alone,  ///< Boogu-Image learnt it (as separate) between its runs (commit 020314e67): those of int8 came later
  no_effect,   ///< Sana's figures with checkpointing and without it are equal; its code does not say why
};

/// The denoiser's config of a published model: a file of configs/, or the fields themselves; else as the library
/// publishes it by its name (summary/published_images.hpp), with these further fields.
struct KnownModel {
  std::string_view name;
  std::string_view file;
  std::string_view config = {};
  Intervals intervals = Intervals::separate;
  bool streams_blocks = false;  ///< SimpleTuner's example of RamTorch names the blocks' layers alone
  bool hooks_kernels = false;   ///< its copy of the model offloads what attention's kernels save, and no more
  /// What sides are multiples of: aspect_bucket_alignment, which a family's check_user_config() may set.
  std::int64_t alignment = 64;
  /// Tokens of a prompt where they are not those that the class has usually: of a model that does not pad it, the
  /// examples' prompt (one picture character: its four bytes and a start); of others tokenizer_max_length.
  std::int64_t prompt = 0;
  std::string_view targets = {};  ///< its class' DEFAULT_LORA_TARGET, where it is not the usual
};

/// Null: the name is not known. Case does not count: trainers write names of a hub in capitals of their own.
[[nodiscard]] const KnownModel* known_image_model(std::string_view name);

}  // namespace gpumem::datasets
