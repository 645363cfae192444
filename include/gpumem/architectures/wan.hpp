// Wan 2.1 and 2.2, text to video and image to video: blocks of self-attention, attention to the prompt and a
// feed-forward layer. Norms, scales, shifts and gates are computed in float32.
// Source: diffusers 0.38, models/transformers/transformer_wan.py. A timestep a sample; where a trainer gives each token
// one (TI2V), scales and shifts are as long as the sequence. SkyReels-V2 and ChronoEdit are the same with other sizes
// (transformer_skyreels_v2.py, transformer_chronoedit.py); VACE has further blocks that read a video to follow
// (transformer_wan_vace.py). With `_code` simpletuner: SimpleTuner 2026-08,
// helpers/models/wan/transformer.py, which keeps diffusers' Attention class of 0.34: norms written out, positions as
// complex numbers of two float64, and scales in the model's type.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/dit_parts.hpp"

namespace gpumem::architectures {

namespace wan {

inline constexpr std::array<std::string_view, 2> kBlocks = {"WanTransformerBlock", "WanVACETransformerBlock"};
/// Tokens of CLIP's image encoder.
inline constexpr std::int64_t kImageTokens = 257;

struct Model {
  DitSizes sizes;
  std::int64_t layers = 40;
  std::int64_t inner = 13824;
  std::int64_t sinusoids = 256;
  std::int64_t image_width = 0;  ///< of the image encoder's features; 0: the model reads none
  std::int64_t added_width = 0;  ///< of what further keys and values are made of
  bool cross_norm = true;
  bool copied = false;             ///< SimpleTuner's copy of the class
  bool sampled = false;            ///< SkyReels-V2: the frames a second are told, too
  std::int64_t followed = 0;       ///< VACE: channels of the video to follow
  std::vector<bool> follows = {};  ///< VACE: blocks with a branch
  Sizes patch = {1, 2, 2};

  [[nodiscard]] std::int64_t patch_elements() const { return patch[0] * patch[1] * patch[2]; }
};

/// VACE: which blocks have a branch.
inline void read_branches(ConfigFields& config, Model& model) {
  model.followed = dit_width(config, "vace_in_channels", 96);
  model.follows = config.layers_listed("vace_layers", model.layers);
  if (!model.follows.empty()) return;
  model.follows.assign(static_cast<std::size_t>(model.layers), false);
  for (std::size_t at = 0; at < model.follows.size() && at <= 35; at += 5) model.follows[at] = true;
}

inline Model read(ConfigFields& config) {
  Model model;
  const std::string_view type = config.text({"_class_name"}, "");
  const bool skyreels = type == "SkyReelsV2Transformer3DModel";
  model.sizes = dit_sizes(config, {.heads = skyreels ? 16 : 40, .text_field = "text_dim"});
  model.layers = config.layers_or("num_layers", skyreels ? 32 : 40);
  model.inner = dit_width(config, "ffn_dim", skyreels ? 8192 : 13824);
  if (skyreels) {
    model.sampled = config.flag("inject_sample_info", false);
    // Frames that see earlier ones alone are masked, which diffusion forcing asks for.
    if (config.size_or({"num_frame_per_block"}, 1) != 1)
      config.fail("is a variant that is not known", "num_frame_per_block");
  }
  if (type == "WanVACETransformer3DModel") read_branches(config, model);
  model.sinusoids = dit_width(config, "freq_dim", 256);
  model.image_width = config.count_or("image_dim", 0);
  model.added_width = config.count_or("added_kv_proj_dim", 0);
  model.copied = dit_code(config) == DitCode::simpletuner;
  model.cross_norm = config.flag("cross_attn_norm", true);
  model.patch = dit_list(config, "patch_size", {1, 2, 2});
  const bool small = model.patch[0] <= 16 && model.patch[1] <= 16 && model.patch[2] == model.patch[1];
  if (!small) config.fail("must be no larger than 16, and alike in height and width", "patch_size");
  if (model.sizes.head_width % 2 != 0) config.fail("must be even", "attention_head_dim");
  config.ignore({"qk_norm", "rope_max_seq_len", "eps", "rope_temporal_skip_len"});
  if (config.has("pos_embed_seq_len")) config.fail("is a variant that is not known", "pos_embed_seq_len");
  return model;
}

/// Of queries or keys of all heads.
inline Tensor flat_norm(Forward& f, const Model& model, std::string_view name, Tensor input) {
  const std::int64_t width = model.sizes.width;
  return model.copied ? own_rms_norm(f, name, input, width) : torch_rms_norm(f, name, input, width);
}

inline Tensor turned(Forward& f, const Model& model, Tensor heads, const PairTables& tables) {
  return model.copied ? turn_complex(f, heads, tables, "float64")
                      : write_pairs(f, heads, tables, model.sizes.head_width);
}

/// Of the sequence itself, or of the prompt (`source`), which has no positions.
inline Tensor attention(Forward& f, const Model& model, std::string_view name, Tensor input, Tensor source,
                        const PairTables* tables, Tensor image) {
  const InModule inside(f, name, "WanAttention");
  const std::int64_t width = model.sizes.width;
  const std::int64_t each = model.sizes.head_width;
  const Tensor query_flat = f.linear("to_q", input, width, width);
  const Tensor key_flat = f.linear("to_k", source, width, width);
  const Tensor value = as_heads(f, f.linear("to_v", source, width, width), each);
  Tensor query = as_heads(f, flat_norm(f, model, "norm_q", query_flat), each);
  Tensor key = as_heads(f, flat_norm(f, model, "norm_k", key_flat), each);
  if (tables != nullptr) {
    query = turned(f, model, query, *tables);
    key = turned(f, model, key, *tables);
  }
  Tensor mixed = 0;
  const bool adds = tables == nullptr && model.added_width > 0;
  if (adds) {
    const Tensor keys = flat_norm(f, model, "norm_added_k", f.linear("add_k_proj", image, model.added_width, width));
    const Tensor values = as_heads(f, f.linear("add_v_proj", image, model.added_width, width), each);
    mixed = attend_heads(f, query, as_heads(f, keys, each), values);
  }
  const Tensor own = attend_heads(f, query, key, value);
  const InModule out(f, "to_out", "ModuleList");
  return f.linear("0", adds ? f.add(own, mixed) : own, width, width);
}

/// (norm(x.float()) (1 + scale) + shift), in the type of x.
inline Tensor scaled(Forward& f, const Model& model, std::string_view name, Tensor hidden, Tensor scale, Tensor shift) {
  const std::int64_t width = model.sizes.width;
  if (model.copied) return modulated(f, wide_norm(f, name, hidden, width, false), scale, shift);
  const Tensor wide = f.to(hidden, "float32");
  return f.as_type_of(modulated(f, bare_norm(f, name, wide, width), scale, shift), hidden);
}

/// (x.float() + branch gate), in the type of x.
inline Tensor joined(Forward& f, const Model& model, Tensor hidden, Tensor branch, Tensor gate) {
  if (model.copied) return f.add(hidden, f.multiply(branch, gate));
  const Tensor wide = f.to(hidden, "float32");
  return f.as_type_of(f.add(wide, f.multiply(branch, gate)), hidden);
}

inline Tensor block(Forward& f, const Model& model, Tensor hidden, Tensor prompt, Tensor image, Tensor conditions,
                    const PairTables& tables) {
  const std::int64_t width = model.sizes.width;
  const Tensor table = f.parameter("scale_shift_table", {1, 6, width});
  const Tensor given = model.copied ? conditions : f.to(conditions, "float32");
  const std::vector<Tensor> rows = chunks(f, f.add(table, given), 1, 6, 1);
  const Tensor normed = scaled(f, model, "norm1", hidden, rows[1], rows[0]);
  const Tensor mixed = attention(f, model, "attn1", normed, normed, &tables, image);
  const Tensor attended = joined(f, model, hidden, mixed, rows[2]);
  const Tensor asking = model.cross_norm ? wide_norm(f, "norm2", attended, width, true) : attended;
  const Tensor told = f.add(attended, attention(f, model, "attn2", asking, prompt, nullptr, image));
  const Tensor again = scaled(f, model, "norm3", told, rows[4], rows[3]);
  const Tensor fed = dit_feed_forward(f, "ffn", again, width, model.inner, DitActivation::gelu_tanh);
  return joined(f, model, told, model.copied ? fed : f.to(fed, "float32"), rows[5]);
}

struct Conditions {
  Tensor time = 0;
  Tensor rows = 0;  ///< [N, 6, width]
  Tensor prompt = 0;
  Tensor image = 0;
};

/// WanImageEmbedding.
inline Tensor image_features(Forward& f, const Model& model) {
  const std::int64_t from = model.image_width;
  const Tensor features = f.sample_input("encoder_hidden_states_image", {kImageTokens, from});
  const InModule inside(f, "image_embedder", "WanImageEmbedding");
  const Tensor normed = wide_norm(f, "norm1", features, from, true);
  Tensor made = 0;
  {
    const InModule layers(f, "ff", "FeedForward");
    const InModule net(f, "net", "ModuleList");
    const Tensor wide = f.linear("0.proj", normed, from, from);
    made = f.linear("2", f.call("gelu", {wide}), from, model.sizes.width);
  }
  return wide_norm(f, "norm2", made, model.sizes.width, true);
}

inline Conditions conditions_of(Forward& f, const Model& model, const DenoiserSample& sample) {
  const std::int64_t width = model.sizes.width;
  const Tensor timestep = timestep_input(f, "timestep", model.sinusoids);
  const Tensor text = text_input(f, sample, model.sizes.text_width);
  const InModule inside(f, "condition_embedder", "WanTimeTextImageEmbedding");
  Conditions made;
  made.time = timestep_embedding(f, "time_embedder", timestep, model.sinusoids, width);
  const Tensor rows = f.linear("time_proj", f.activation("act_fn", made.time, "silu"), width, 6 * width);
  made.rows = f.unflatten(rows, 1, {6, width});
  made.prompt = text_projection(f, "text_embedder", text, model.sizes.text_width, width, "gelu_pytorch_tanh");
  if (model.image_width > 0) made.image = image_features(f, model);
  return made;
}

/// A complex number of two float64 a pair.
inline PairTables complex_table(Forward& f, const Model& model, Tensor tokens) {
  const Tensor table =
      f.call("rotary_table", {tokens}, {{"width", model.sizes.head_width}, {"dtype", std::string("float64")}});
  const Tensor spread = f.permute(table, {0, 2, 1, 3});
  return {spread, spread};
}

/// The latents' patches as tokens.
inline Tensor patches(Forward& f, const Model& model, std::string_view name, Tensor latents, std::int64_t channels) {
  const Tensor cut = f.layer(name, "Conv3d", "conv3d", {latents},
                             {{"in_channels", channels},
                              {"out_channels", model.sizes.width},
                              {"kernel_size", model.patch},
                              {"stride", model.patch}});
  return f.permute(f.flatten(cut, 2, 4), {0, 2, 1});
}

/// What VACE's branches leave for each block that has one, the first of which reads the video and what it follows.
inline std::vector<Tensor> branches(Forward& f, const Model& model, const DenoiserSample& sample, Tensor hidden,
                                    const Conditions& conditions, const PairTables& tables) {
  std::vector<Tensor> left;
  if (model.followed == 0) return left;
  const std::int64_t width = model.sizes.width;
  const Tensor video =
      f.sample_input("control_hidden_states", {model.followed, sample.frames, sample.height, sample.width});
  Tensor control = f.call("clone", {patches(f, model, "vace_patch_embedding", video, model.followed)});
  const auto count = std::count(model.follows.begin(), model.follows.end(), true);
  (void)stack(f, "vace_blocks", kBlocks[1], count, control, [&](Tensor x, std::int64_t index) {
    if (index == 0) x = f.add(f.linear("proj_in", x, width, width), hidden);
    const Tensor made = block(f, model, x, conditions.prompt, conditions.image, conditions.rows, tables);
    left.push_back(f.linear("proj_out", made, width, width));
    return made;
  });
  return left;
}

/// SkyReels-V2's frames a second, added to the timestep's scales, shifts and gates.
inline Tensor with_rate(Forward& f, const Model& model, Tensor rows) {
  const std::int64_t width = model.sizes.width;
  const Tensor rate = f.embedding("fps_embedding", f.fixed_token_input("fps", 1), 2, width);
  const InModule inside(f, "fps_projection", "FeedForward");
  const Tensor open = f.call("silu", {f.linear("net.0.proj", f.flatten(rate, 0, 1), width, width)});
  return f.add(rows, f.unflatten(f.linear("net.2", open, width, 6 * width), 1, {6, width}));
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const std::int64_t width = model.sizes.width;
  const bool deep = model.sizes.channels > 36;  // Wan 2.2's own autoencoder cuts sides by 16
  const DenoiserSample sample = denoiser_sample(f, {.side = deep ? 16 : 8,
                                                    .frame = 4,
                                                    .patch = model.patch[1],
                                                    .usual_side = 480,
                                                    .usual_frames = 81,
                                                    .usual_text = 512});
  const Tensor latents = latent_input(f, sample, model.sizes.channels, true);
  Tensor hidden = f.contiguous(patches(f, model, "patch_embedding", latents, model.sizes.channels));
  const PairTables tables =
      model.copied ? complex_table(f, model, hidden) : pair_tables(f, {hidden}, model.sizes.head_width);
  Conditions conditions = conditions_of(f, model, sample);
  if (model.sampled) conditions.rows = with_rate(f, model, conditions.rows);
  const std::vector<Tensor> hints = branches(f, model, sample, hidden, conditions, tables);
  std::size_t next = 0;
  hidden = stack(f, "blocks", kBlocks[0], model.layers, hidden, [&](Tensor x, std::int64_t index) {
    const Tensor made = block(f, model, x, conditions.prompt, conditions.image, conditions.rows, tables);
    if (hints.empty() || !model.follows[static_cast<std::size_t>(index)]) return made;
    return f.add(made, f.scale(hints[next++]));
  });
  const Tensor table = f.parameter("scale_shift_table", {1, 2, width});
  const std::vector<Tensor> rows = chunks(f, f.add(table, unsqueezed(f, conditions.time, 1)), 1, 2, 1);
  const Tensor normed = scaled(f, model, "norm_out", hidden, rows[1], rows[0]);
  const std::int64_t out = model.sizes.out_channels * model.patch_elements();
  const Tensor output = f.linear("proj_out", normed, width, out);
  const std::int64_t tokens =
      sample.frames / model.patch[0] * (sample.height / model.patch[1]) * (sample.width / model.patch[2]);
  denoiser_loss(f, f.call("clone", {output}), {tokens, out});
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{"WanTransformer3D", "WanTransformer3DModel"},
                               {"WanVACETransformer3D", "WanVACETransformer3DModel"},
                               {"SkyReelsV2Transformer3D", "SkyReelsV2Transformer3DModel"},
                               {"ChronoEditTransformer3D", "ChronoEditTransformer3DModel"}});

/// The blocks that have a branch in VACE: as far apart from each other, as in the published models.
inline void tree_branches(TreeFields& t) {
  const std::int64_t branches = t.count_of("vace_blocks");
  const std::int64_t blocks = t.count_of("blocks");
  if (branches < 1 || branches > blocks) return;
  std::vector<std::int64_t> follows;
  for (std::int64_t at = 0; at < branches; ++at) follows.push_back(at * (blocks / branches));
  t.list("vace_layers", follows);
  t.size("vace_in_channels", "vace_patch_embedding", "in_channels");
  t.assume("branches at blocks equally far apart, as Wan VACE has");
}

/// What print(model) shows: all but the heads, which are 128 wide.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kHead = 128;
  const std::string embedder = "condition_embedder.";
  std::vector<std::int64_t> patch;
  std::int64_t pixels = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    patch.push_back(t.value("patch_embedding", "kernel_size", axis).value_or(1));
    pixels *= std::min<std::int64_t>(patch.back(), 64);
  }
  const std::int64_t width = t.value("patch_embedding", "out_channels").value_or(0);
  t.size("in_channels", "patch_embedding", "in_channels");
  t.list("patch_size", patch);
  t.set("attention_head_dim", kHead);
  t.set("num_attention_heads", std::max<std::int64_t>(width / kHead, 1));
  t.count("num_layers", "blocks");
  t.size("ffn_dim", "blocks.0.ffn.net.0.proj", "out_features");
  t.size("text_dim", embedder + "text_embedder.linear_1", "in_features");
  t.size("freq_dim", embedder + "time_embedder.linear_1", "in_features");
  t.size("image_dim", embedder + "image_embedder.norm1", "normalized_shape");
  t.size("added_kv_proj_dim", "blocks.0.attn2.add_k_proj", "in_features");
  t.set_flag("cross_attn_norm", t.value("blocks.0.norm2", "normalized_shape").has_value());
  t.set("out_channels", std::max<std::int64_t>(t.value("proj_out", "out_features").value_or(0) / pixels, 1));
  t.assume("heads of width 128, as Wan has");
  t.there("inject_sample_info", "fps_embedding");
  tree_branches(t);
}

inline constexpr Architecture kArchitecture = {
    .name = "wan",
    .model_types = names<"WanTransformer3DModel", "WanVACETransformer3DModel", "SkyReelsV2Transformer3DModel",
                         "ChronoEditTransformer3DModel">,
    .usual_head = Head::none,
    .write = write,
    .classes = kClasses,
    .read_tree = read_tree,
    .depends_on_images = true,
    .blocks = kBlocks};

}  // namespace wan

}  // namespace gpumem::architectures
