// Input: the config.json of an autoencoder, or its printed tree. Output: its lists of one entry a level, checked for
// length and bounds.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

namespace autoencoder_fields {

constexpr std::size_t kMostLevels = 12;

/// A list of numbers from 0 to `most`; `usual` where there is none.
inline Sizes counts(ConfigFields& config, std::string_view name, Sizes usual, std::int64_t most = 64) {
  const core::JsonValue* list = config.find(name);
  if (list == nullptr) return usual;
  Sizes made;
  bool sound = list->is(core::JsonValue::Kind::list) && list->size() <= kMostLevels;
  for (const core::JsonValue& entry : list->items()) {
    sound = sound && entry.is(core::JsonValue::Kind::integer) && entry.integer() >= 0 && entry.integer() <= most;
    if (!sound) break;
    made.push_back(entry.integer());
  }
  if (!sound || made.empty()) config.fail("must be a list of small numbers", name);
  return sound && !made.empty() ? made : usual;
}

/// A list of true and false, or one of them for all; `usual` where there is none.
inline std::vector<bool> flags(ConfigFields& config, std::string_view name, std::vector<bool> usual) {
  const core::JsonValue* list = config.find(name);
  if (list == nullptr) return usual;
  if (list->is(core::JsonValue::Kind::boolean)) return std::vector<bool>(usual.size(), list->boolean());
  std::vector<bool> made;
  bool sound = list->is(core::JsonValue::Kind::list) && list->size() <= kMostLevels;
  for (const core::JsonValue& entry : list->items()) {
    sound = sound && entry.is(core::JsonValue::Kind::boolean);
    if (!sound) break;
    made.push_back(entry.boolean());
  }
  if (!sound || made.empty()) config.fail("must be a list of true and false", name);
  return sound && !made.empty() ? made : usual;
}

/// Channels of levels, which products of sizes still fit.
inline Sizes widths(ConfigFields& config, std::string_view name, Sizes usual) {
  Sizes made = counts(config, name, std::move(usual), 1 << 14);
  for (std::int64_t& width : made) {
    if (width < 1) config.fail("must be channels of levels", name);
    width = std::max<std::int64_t>(width, 1);
  }
  return made;
}

/// What a list must have as many entries as; a shorter one is a fault, and is filled up.
template <typename List>
void as_long_as(ConfigFields& config, std::string_view name, List& list, std::size_t length) {
  if (list.size() < length) config.fail("must have an entry for each level", name);
  list.resize(std::max(list.size(), length));
}

}  // namespace autoencoder_fields

namespace level_autoencoders {

/// Levels of residual blocks with group norms.
struct Levels {
  std::vector<std::int64_t> widths;
  std::int64_t layers = 2;
  std::int64_t latents = 16;
  std::int64_t in = 3;
  std::int64_t out = 3;
  bool spatial = false;  ///< CogVideoX: its decoder's norms read the latents; frames are resampled without weights
  bool attends = false;
};

inline Levels read_levels(ConfigFields& config, bool cog) {
  constexpr std::size_t kMostLevels = 8;
  Levels levels;
  levels.spatial = cog;
  levels.widths = config.sizes_or("block_out_channels", cog ? std::vector<std::int64_t>{128, 256, 256, 512}
                                                            : std::vector<std::int64_t>{128, 256, 512, 512});
  if (levels.widths.empty() || levels.widths.size() > kMostLevels) {
    config.fail("must have from 1 to 8 entries", "block_out_channels");
    levels.widths = {1};
  }
  levels.layers = config.layers_or("layers_per_block", cog ? 3 : 2);
  levels.latents = config.size_or({"latent_channels"}, 16);
  levels.in = config.size_or({"in_channels"}, 3);
  levels.out = config.size_or({"out_channels"}, 3);
  levels.attends = !cog && config.flag("mid_block_add_attention", true);
  if (cog && config.flag("use_quant_conv", false)) config.fail("is a variant that is not known", "use_quant_conv");
  config.ignore({"act_fn", "norm_eps", "norm_num_groups", "temporal_compression_ratio", "time_compression_ratio",
                 "spatial_compression_ratio", "sample_height", "sample_width", "sample_size", "sample_tsize",
                 "scaling_factor", "shift_factor", "latents_mean", "latents_std", "force_upcast",
                 "invert_scale_latents", "down_block_types", "up_block_types", "use_post_quant_conv"});
  return levels;
}

}  // namespace level_autoencoders

/// What print(model) of autoencoders shows.
namespace autoencoder_trees {

inline std::string at(std::string_view list, std::int64_t index) {
  return std::string(list) + "." + std::to_string(index);
}

/// Channels that convolutions read and make. `conv`: behind the name of each of them.
inline void channels(TreeFields& t, const std::string& conv) {
  t.size("in_channels", "encoder.conv_in" + conv, "in_channels");
  t.size("out_channels", "decoder.conv_out" + conv, "out_channels");
  t.size("latent_channels", "decoder.conv_in" + conv, "in_channels");
}

/// An encoder's levels, each a module with its residual blocks. Returns their channels.
inline Sizes levels(TreeFields& t, const std::string& conv) {
  Sizes widths;
  for (std::int64_t level = 0; level < t.count_of("encoder.down_blocks"); ++level) {
    const std::string block = at("encoder.down_blocks", level) + ".resnets.0.conv1" + conv;
    widths.push_back(t.value(block, "out_channels").value_or(1));
  }
  t.list("block_out_channels", widths);
  t.count("layers_per_block", "encoder.down_blocks.0.resnets");
  channels(t, conv);
  t.set_flag("mid_block_add_attention", t.class_of("encoder.mid_block.attentions.0") == "Attention");
  return widths;
}

/// An encoder's residual blocks and steps to the next level, all in one list.
struct Steps {
  Sizes widths;
  std::vector<std::string> steps;  ///< their paths
  std::int64_t layers = 0;         ///< blocks of the first level
};
inline Steps steps(TreeFields& t, std::string_view block_class) {
  Steps found;
  for (std::int64_t index = 0; index < t.count_of("encoder.down_blocks"); ++index) {
    const std::string path = at("encoder.down_blocks", index);
    if (t.class_of(path) != block_class) {
      found.steps.push_back(path);
      continue;
    }
    if (found.steps.empty()) ++found.layers;
    if (found.widths.size() == found.steps.size() + 1) continue;
    found.widths.push_back(t.value(path + ".conv1", "out_channels").value_or(1));
  }
  return found;
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{.prefix = "Autoencoder", .model_type = "AutoencoderKL", .ending = "KL"},
                               {.prefix = "Autoencoder", .model_type = "AutoencoderKLFlux2", .ending = "KLFlux2"}});

/// What print(model) shows: all but the size of its images.
inline void read(TreeFields& t) {
  (void)levels(t, "");
  t.size("norm_num_groups", "encoder.conv_norm_out", "num_groups");
  t.there("use_quant_conv", "quant_conv");
  t.there("use_post_quant_conv", "post_quant_conv");
}

inline constexpr auto kLevelClasses = std::to_array<ModelClass>(
    {{.prefix = "Autoencoder", .model_type = "AutoencoderKLCogVideoX", .ending = "KLCogVideoX"},
     {.prefix = "Autoencoder", .model_type = "AutoencoderKLHunyuanVideo", .ending = "KLHunyuanVideo"},
     {.prefix = "Autoencoder", .model_type = "AutoencoderKLHunyuanImage", .ending = "KLHunyuanImage"}});

/// What print(model) shows.
inline void read_levels(TreeFields& t) {
  t.take_sizes_alone();
  if (t.class_name() != "AutoencoderKLHunyuanImage") return (void)levels(t, ".conv");
  const Steps found = steps(t, "HunyuanImageResnetBlock");
  t.list("block_out_channels", found.widths);
  t.set("layers_per_block", found.layers);
  t.set("spatial_compression_ratio", std::int64_t{1} << std::min<std::size_t>(found.steps.size(), 16));
  channels(t, "");
}

/// What print(model) of Mochi's shows.
inline void read_mochi(TreeFields& t) {
  t.take_sizes_alone();
  const std::int64_t levels =
      std::min<std::int64_t>(t.count_of("encoder.down_blocks"), autoencoder_fields::kMostLevels);
  Sizes encoder = {t.value("encoder.proj_in", "out_features").value_or(1)};
  Sizes decoder = {t.value("decoder.block_out.resnets.0.conv1.conv", "out_channels").value_or(1)};
  Sizes layers = {t.count_of("encoder.block_in.resnets")};
  Sizes frames;
  Sizes sides;
  std::string attends;
  const auto attention = [&](const std::string& block) {
    const bool there = t.class_of(block + ".attentions.0") == "Attention";
    attends += std::string(attends.empty() ? "" : ", ") + (there ? "true" : "false");
  };
  attention("encoder.block_in");
  for (std::int64_t level = 0; level < levels; ++level) {
    const std::string block = at("encoder.down_blocks", level);
    const std::string up = at("decoder.up_blocks", levels - 1 - level);
    encoder.push_back(t.value(block + ".conv_in.conv", "out_channels").value_or(1));
    decoder.push_back(t.value(up + ".resnets.0.conv1.conv", "in_channels").value_or(1));
    frames.push_back(t.value(block + ".conv_in.conv", "kernel_size").value_or(1));
    sides.push_back(t.value(block + ".conv_in.conv", "kernel_size", 1).value_or(1));
    layers.push_back(t.count_of(block + ".resnets"));
    attention(block);
  }
  layers.push_back(t.count_of("encoder.block_out.resnets"));
  attention("encoder.block_out");
  t.list("encoder_block_out_channels", encoder);
  t.list("decoder_block_out_channels", decoder);
  t.list("layers_per_block", layers);
  t.list("temporal_expansions", frames);
  t.list("spatial_expansions", sides);
  t.set_text("add_attention_block", "[" + attends + "]");
  t.size("in_channels", "encoder.proj_in", "in_features");
  t.size("out_channels", "decoder.proj_out", "out_features");
  t.size("latent_channels", "decoder.conv_in", "in_channels");
}

}  // namespace autoencoder_trees

}  // namespace gpumem::architectures
