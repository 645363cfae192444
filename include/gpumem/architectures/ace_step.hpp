// ACE-Step 1.5: music. A transformer over latents of sound, 25 a second, with self-attention among all or near tokens,
// attention to text, lyrics and timbre, and a gated feed-forward layer. Its pipeline's own parts, of which only the
// parameters are known: the encoder of what it is told, and the autoencoder of sound (AutoencoderOobleck, which Stable
// Audio has too). Source: diffusers 0.41.dev0 (58eb52c), models/transformers/ace_step_transformer.py,
// pipelines/ace_step/modeling_ace_step.py, models/autoencoders/autoencoder_oobleck.py. With `_code` simpletuner:
// SimpleTuner 2026-08, helpers/models/ace_step/model.py (_configure_v15_flash_attention): flash attention with a
// window.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/dit_parts.hpp"

namespace gpumem::architectures {

namespace ace_step {

inline constexpr std::array<std::string_view, 1> kBlocks = {"AceStepTransformerBlock"};

struct Model {
  std::int64_t width = 2048;
  std::int64_t inner = 6144;
  std::int64_t layers = 24;
  std::int64_t heads = 16;
  std::int64_t key_heads = 8;
  std::int64_t each = 128;
  std::int64_t channels = 64;  ///< of latents
  std::int64_t in = 192;       ///< with those of what the latents continue
  std::int64_t patch = 2;
  std::int64_t told = 2048;  ///< width of what encodes text, lyrics and timbre
  bool bias = false;
  std::vector<bool> near;  ///< which layers see tokens nearby alone
  bool flash = false;
};

inline std::vector<bool> read_kinds(ConfigFields& config, std::int64_t layers) {
  std::vector<bool> near;
  const core::JsonValue* list = config.find("layer_types");
  if (list == nullptr || list->is(core::JsonValue::Kind::null)) {
    for (std::int64_t layer = 0; layer < layers; ++layer) near.push_back(layer % 2 == 0);
    return near;
  }
  if (list->is(core::JsonValue::Kind::list)) {
    for (const core::JsonValue& kind : list->items()) {
      const bool text = kind.is(core::JsonValue::Kind::text);
      near.push_back(text && kind.text() == "sliding_attention");
      if (!text || (!near.back() && kind.text() != "full_attention")) config.fail("has an unknown kind", "layer_types");
    }
  }
  if (near.size() == static_cast<std::size_t>(layers)) return near;
  config.fail("must name the kind of each layer", "layer_types");
  return std::vector<bool>(static_cast<std::size_t>(layers), false);
}

inline Model read(ConfigFields& config) {
  Model model;
  model.width = dit_width(config, "hidden_size", 2048);
  model.inner = dit_width(config, "intermediate_size", 6144);
  model.layers = config.layers_or("num_hidden_layers", 24);
  model.heads = dit_width(config, "num_attention_heads", 16);
  model.key_heads = dit_width(config, "num_key_value_heads", 8);
  model.each = dit_width(config, "head_dim", 128);
  model.channels = dit_width(config, "audio_acoustic_hidden_dim", 64);
  model.in = dit_width(config, "in_channels", 192);
  model.patch = dit_patch(config);
  model.told = dit_width(config, "encoder_hidden_size", model.width);
  model.bias = config.flag("attention_bias", false);
  model.near = read_kinds(config, model.layers);
  model.flash = dit_code(config) == DitCode::simpletuner;
  if (model.heads * model.each > 1 << 20) config.fail("is wider than gpumem takes", "head_dim");
  if (model.each % 2 != 0) config.fail("must be even", "head_dim");
  if (model.heads % model.key_heads != 0) config.fail("does not divide num_attention_heads", "num_key_value_heads");
  if (model.in <= model.channels) config.fail("must be more than audio_acoustic_hidden_dim", "in_channels");
  config.ignore({"rope_theta", "attention_dropout", "rms_norm_eps", "sliding_window", "is_turbo", "model_version"});
  return model;
}

/// AceStepTimestepEmbedding: the embedding [N, width], and six rows of it.
inline SingleRows embedded_time(Forward& f, const Model& model, std::string_view name) {
  constexpr std::int64_t kSinusoids = 256;
  const InModule inside(f, name, "AceStepTimestepEmbedding");
  const Tensor first = f.linear("linear_1", timestep_input(f, name, kSinusoids), kSinusoids, model.width);
  const Tensor time = f.linear("linear_2", f.activation("act1", first, "silu"), model.width, model.width);
  const Tensor rows = f.linear("time_proj", f.activation("act2", time, "silu"), model.width, 6 * model.width);
  return {time, f.unflatten(rows, 1, {6, model.width})};
}

inline Tensor attention(Forward& f, const Model& model, std::string_view name, Tensor input, Tensor source,
                        const PairTables* tables, std::optional<Tensor> mask) {
  const InModule inside(f, name, "AceStepAttention");
  const auto heads = [&](std::string_view layer, Tensor from, std::int64_t count) {
    return as_heads(f, f.linear(layer, from, model.width, count * model.each, {.bias = model.bias}), model.each);
  };
  const Tensor first = heads("to_q", input, model.heads);
  const Tensor second = heads("to_k", source, model.key_heads);
  const Tensor value = heads("to_v", source, model.key_heads);
  Tensor query = own_rms_norm(f, "norm_q", first, model.each);
  Tensor key = own_rms_norm(f, "norm_k", second, model.each);
  if (tables != nullptr) {
    query = turn_pairs(f, query, *tables, true);
    key = turn_pairs(f, key, *tables, true);
  }
  const Tensor mixed = mask ? attend_heads(f, query, key, value, mask) : attend_fewer_heads(f, query, key, value);
  const InModule out(f, "to_out", "ModuleList");
  return f.linear("0", mixed, model.heads * model.each, model.width, {.bias = model.bias});
}

inline Tensor block(Forward& f, const Model& model, Tensor hidden, Tensor told, Tensor rows, const PairTables& tables,
                    std::optional<Tensor> mask) {
  const std::int64_t width = model.width;
  const std::vector<Tensor> parts = chunks(f, f.add(f.parameter("scale_shift_table", {1, 6, width}), rows), 1, 6, 1);
  const auto normed = [&](std::string_view name, Tensor input, std::size_t at) {
    return f.as_type_of(modulated(f, own_rms_norm(f, name, input, width), parts[at + 1], parts[at]), input);
  };
  const auto gated = [&](Tensor input, Tensor branch, std::size_t at) {
    return f.as_type_of(f.add(input, f.multiply(branch, parts[at])), input);
  };
  const Tensor scaled = normed("self_attn_norm", hidden, 0);
  const Tensor own = gated(hidden, attention(f, model, "self_attn", scaled, scaled, &tables, mask), 2);
  const Tensor asks = f.as_type_of(own_rms_norm(f, "cross_attn_norm", own, width), own);
  const Tensor heard = f.add(own, attention(f, model, "cross_attn", asks, told, nullptr, {}));
  const Tensor again = normed("mlp_norm", heard, 3);
  Tensor fed = 0;
  {
    const InModule inside(f, "mlp", "AceStepMLP");
    const Tensor gate = f.call("silu", {f.linear("gate_proj", again, width, model.inner, {.bias = false})});
    const Tensor up = f.linear("up_proj", again, width, model.inner, {.bias = false});
    fed = f.linear("down_proj", f.multiply(gate, up), model.inner, width, {.bias = false});
  }
  return gated(heard, fed, 5);
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const std::int64_t width = model.width;
  // The lyrics' 512 tokens, the text's 256 and the timbre's one: ACE-Step 1.5's
  // acestep/training/dataset_builder_modules.
  const SoundSample sample = sound_sample(f, {.latents = 25, .usual_seconds = 60, .usual_text = 769});
  const std::int64_t rest = sample.latents % model.patch;
  const std::int64_t tokens = (sample.latents + model.patch - 1) / model.patch;
  const SingleRows time = embedded_time(f, model, "time_embed");
  const SingleRows since = embedded_time(f, model, "time_embed_r");
  const Tensor rows = f.add(time.rows, since.rows);
  const Tensor summed = f.add(time.time, since.time);
  const Tensor continues = f.sample_input("context_latents", {sample.latents, model.in - model.channels});
  Tensor hidden = f.concatenate({continues, f.sample_input("latents", {sample.latents, model.channels})}, 2);
  if (rest > 0) hidden = f.call("pad", {hidden}, {{"padding", Sizes{0, 0, 0, model.patch - rest}}});
  hidden = f.layer("proj_in_conv", "Conv1d", "conv1d", {f.permute(hidden, {0, 2, 1})},
                   {{"in_channels", model.in},
                    {"out_channels", width},
                    {"kernel_size", Sizes{model.patch}},
                    {"stride", Sizes{model.patch}}});
  hidden = f.permute(hidden, {0, 2, 1});
  const Tensor read_text = f.sample_input("encoder_hidden_states", {sample.text, model.told});
  const Tensor told = f.linear("condition_embedder", read_text, model.told, width);
  const PairTables tables = pair_tables(f, {hidden}, model.each, kOwnType);
  std::optional<Tensor> mask;
  if (!model.flash) mask = f.constant("sliding_attn_mask", {1, 1, tokens, tokens}, "parameters");
  hidden = stack(f, "layers", kBlocks[0], model.layers, hidden, [&](Tensor x, std::int64_t layer) {
    const bool near = model.near[static_cast<std::size_t>(layer)];
    return block(f, model, x, told, rows, tables, near ? mask : std::nullopt);
  });
  const std::vector<Tensor> last =
      chunks(f, f.add(f.parameter("scale_shift_table", {1, 2, width}), unsqueezed(f, summed, 1)), 1, 2, 1);
  const Tensor normed =
      f.as_type_of(modulated(f, own_rms_norm(f, "norm_out", hidden, width), last[1], last[0]), hidden);
  Tensor left = f.layer("proj_out_conv", "ConvTranspose1d", "conv_transpose1d", {f.permute(normed, {0, 2, 1})},
                        {{"in_channels", width},
                         {"out_channels", model.channels},
                         {"kernel_size", Sizes{model.patch}},
                         {"stride", Sizes{model.patch}}});
  left = f.permute(left, {0, 2, 1});
  if (rest > 0) left = f.slice(left, 1, 0, sample.latents);
  denoiser_loss(f, left, {sample.latents, model.channels});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"AceStepTransformer1D", "AceStepTransformer1DModel"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kHead = 128;
  const std::string block = "layers.0.";
  t.size("hidden_size", "proj_in_conv", "out_channels");
  t.size("in_channels", "proj_in_conv", "in_channels");
  t.size("patch_size", "proj_in_conv", "kernel_size");
  t.size("audio_acoustic_hidden_dim", "proj_out_conv", "out_channels");
  t.size("intermediate_size", block + "mlp.gate_proj", "out_features");
  t.count("num_hidden_layers", "layers");
  t.part("num_attention_heads", block + "self_attn.to_q", "out_features", kHead);
  t.part("num_key_value_heads", block + "self_attn.to_k", "out_features", kHead);
  t.set("head_dim", kHead);
  t.size("encoder_hidden_size", "condition_embedder", "in_features");
  t.flag("attention_bias", block + "self_attn.to_q");
  t.assume("heads of width 128, and every other layer sees tokens nearby alone, as ACE-Step 1.5 has");
}

inline constexpr Architecture kArchitecture = {.name = "ace_step",
                                               .model_types = names<"AceStepTransformer1DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

/// The parameters of the parts that stand besides the transformer.
namespace parts {

/// AceStepEncoderLayer: attention with fewer heads of keys, a gated feed-forward layer, and their norms.
inline std::int64_t layer_of(const Model& model) {
  const std::int64_t heads = model.heads + model.key_heads;
  const std::int64_t biases = model.bias ? 2 * heads * model.each - model.heads * model.each + model.width : 0;
  return 2 * heads * model.each * model.width + biases + 2 * model.each + 3 * model.width * model.inner +
         2 * model.width;
}

inline void write_condition(ConfigFields& config, Forward& f) {
  const Model model = read(config);
  const std::int64_t text = dit_width(config, "text_hidden_dim", 1024);
  const std::int64_t timbre = dit_width(config, "timbre_hidden_dim", 64);
  const std::int64_t lyrics = config.layers_or("num_lyric_encoder_hidden_layers", 8);
  const std::int64_t sounds = config.layers_or("num_timbre_encoder_hidden_layers", 4);
  if (!config.status()) return;
  const std::int64_t width = model.width;
  (void)f.parameter("text_projector.weight", {width, text});
  (void)f.parameter("null_condition_emb", {1, 1, width});
  const auto encoder = [&](const std::string& name, std::int64_t in, std::int64_t layers, std::int64_t own) {
    (void)f.parameter(name + ".embed_tokens.weight", {width, in});
    (void)f.parameter(name + ".norm.weight", {width});
    (void)f.parameter(name + ".embed_tokens.bias", {width + own});
    (void)f.parameter(name + ".layers.weight", {layers, layer_of(model)});
  };
  encoder("lyric_encoder", text, lyrics, 0);
  encoder("timbre_encoder", timbre, sounds, width);  // its special_token
}

struct Oobleck {
  Forward& f;

  /// A weight in two parts, its direction and a length for each row of the first axis.
  void conv(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t lengths,
            bool bias = true) const {
    (void)f.parameter(name + ".weight_v", {out, in, kernel});
    (void)f.parameter(name + ".weight_g", {bias ? lengths + out : lengths});
  }
  void snake(const std::string& name, std::int64_t width) const { (void)f.parameter(name + ".alpha", {2 * width}); }
  void residual(const std::string& name, std::int64_t width) const {
    constexpr std::int64_t kUnits = 3;
    for (std::int64_t at = 1; at <= kUnits; ++at) {
      const std::string one = name + ".res_unit" + std::to_string(at);
      snake(one + ".snake1", width);
      conv(one + ".conv1", width, width, 7, width);
      snake(one + ".snake2", width);
      conv(one + ".conv2", width, width, 1, width);
    }
  }
};

inline void write_oobleck(ConfigFields& config, Forward& f) {
  const std::int64_t encoder = dit_width(config, "encoder_hidden_size", 128);
  const std::int64_t decoder = dit_width(config, "decoder_channels", 128);
  const std::int64_t latents = dit_width(config, "decoder_input_channels", 64);
  const std::int64_t sounds = dit_width(config, "audio_channels", 2);
  const std::vector<std::int64_t> strides = config.sizes_or("downsampling_ratios", {2, 4, 4, 8, 8});
  std::vector<std::int64_t> times = config.sizes_or("channel_multiples", {1, 2, 4, 8, 16});
  constexpr std::int64_t kMost = 1 << 10;
  bool fits = strides.size() == times.size() && times.size() <= 16;
  for (const std::int64_t each : times) fits = fits && each <= kMost;
  for (const std::int64_t each : strides) fits = fits && each <= kMost;
  if (!fits) config.fail("must have as many entries as downsampling_ratios, none too large", "channel_multiples");
  config.ignore({"sampling_rate"});
  if (!config.status()) return;
  times.insert(times.begin(), 1);
  const Oobleck o{f};
  o.conv("encoder.conv1", sounds, encoder, 7, encoder);
  o.conv("decoder.conv1", latents, decoder * times.back(), 7, decoder * times.back());
  for (std::size_t at = 0; at < strides.size() && !f.failed(); ++at) {
    const std::string index = std::to_string(at);
    const std::int64_t few = encoder * times[at];
    const std::int64_t many = encoder * times[at + 1];
    o.residual("encoder.block." + index, few);
    o.snake("encoder.block." + index + ".snake1", few);
    o.conv("encoder.block." + index + ".conv1", few, many, 2 * strides[at], many);
    const std::int64_t in = decoder * times[at + 1];
    const std::int64_t out = decoder * times[at];
    o.snake("decoder.block." + index + ".snake1", in);
    o.conv("decoder.block." + index + ".conv_t1", in, out, 2 * strides[at], in);  // lengths of its first axis, `in`
    o.residual("decoder.block." + index, out);
  }
  o.snake("encoder.snake1", encoder * times.back());
  o.conv("encoder.conv2", encoder * times.back(), encoder, 3, encoder);
  o.snake("decoder.snake1", decoder);
  o.conv("decoder.conv2", decoder, sounds, 7, sounds, false);
}

inline void write(ConfigFields& config, Head, Forward& f) {
  if (config.text({"_class_name"}, "") == "AutoencoderOobleck") write_oobleck(config, f);
  else write_condition(config, f);
}

inline constexpr Architecture kArchitecture = {.name = "sound_parts",
                                               .model_types = names<"AutoencoderOobleck", "AceStepConditionEncoder">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .parameters_only = true};

}  // namespace parts

}  // namespace ace_step

}  // namespace gpumem::architectures
