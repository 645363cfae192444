// Input: the words of a command of NVIDIA's Megatron-Bridge, which names a recipe and overrides of it.
// Output: the settings that they mean, under the names that Megatron-LM's arguments have.
// Source: NVIDIA-NeMo/Megatron-Bridge of August 2026: scripts/training/run_recipe.py, setup_experiment.py and
// recipe_metadata.py; scripts/performance/argument_parser.py and utils/utils.py.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "trainer_format.hpp"

namespace gpumem::trainer_files {

struct BridgeCommand {
  Setting settings;       ///< an object, as megatron_lm() reads it
  std::int64_t gpus = 0;  ///< that the words or the recipe's name say; 0: neither does
  std::string gpus_from;
  std::vector<std::string> unknown;  ///< overrides of other sections than the model's that nobody knows
};

/// Whether a program with these words is Megatron-Bridge's.
[[nodiscard]] bool is_bridge_command(std::string_view program, std::span<const std::string> words);

/// Errors: invalid_argument for a recipe that is not known, with the nearest name that is; missing_information where
/// none is named.
[[nodiscard]] core::Result<BridgeCommand> read_bridge_command(std::span<const std::string> words);

/// What Megatron-LM's own arguments do not have: adapters, frozen parts, images, a model by its name alone.
void read_bridge_parts(TrainerReading& from);

/// The model that is read by its name, since Megatron's form of it is not known; empty: the arguments have its sizes.
[[nodiscard]] std::string bridge_model(const Setting& root);

}  // namespace gpumem::trainer_files
