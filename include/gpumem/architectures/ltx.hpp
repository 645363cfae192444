// LTX-2.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/dit_parts.hpp"

namespace gpumem::architectures {

// LTX-2: a stream of video tokens and one of audio tokens, each with self-attention, attention to the prompt and a
// feed-forward layer; between these, each asks the other one. Every part has scales, shifts and gates of a table.
// Source: diffusers 0.41.dev0 (58eb52c), models/transformers/transformer_ltx2.py. With `_code` simpletuner: SimpleTuner
// 2026-08, helpers/models/ltxvideo2/model.py: each token of the video has a timestep of its own.

namespace ltx2 {

inline constexpr std::array<std::string_view, 1> kBlocks = {"LTX2VideoTransformerBlock"};

/// What one stream has of its own.
struct Stream {
  std::string prefix;  ///< of its modules' names
  DitSizes sizes;
  std::int64_t cross = 1;   ///< width of the prompt that it reads
  std::int64_t tokens = 1;  ///< filled in for a sample
  bool gated = false;       ///< a gate a head
  bool modulated = false;   ///< the attention to the prompt has scales, shifts and gates too
  bool ff_bias = true;
  bool timed = false;  ///< a timestep a token

  [[nodiscard]] std::string named(std::string_view name) const { return prefix + std::string(name); }
};

struct Model {
  Stream video;
  Stream audio;
  std::int64_t layers = 48;
  std::int64_t captions = 3840;
  bool bias = true;
  bool out_bias = true;
  bool affine = false;
  bool projects = true;      ///< the prompt's projections are part of the model
  bool prompt_rows = false;  ///< scales and shifts of the prompt, by the timestep
  bool keyframes = false;
  bool halves = false;  ///< rotary pairs are half a head apart

  [[nodiscard]] bool modulates_prompt() const { return video.modulated || audio.modulated; }
};

inline Stream read_stream(ConfigFields& config, std::string_view prefix, const DitDefaults& usual, std::int64_t cross) {
  const auto name = [&](std::string_view field) { return std::string(prefix) + std::string(field); };
  Stream stream;
  stream.prefix = prefix;
  DitSizes& sizes = stream.sizes;
  sizes.heads = dit_width(config, name("num_attention_heads"), usual.heads);
  sizes.head_width = dit_width(config, name("attention_head_dim"), usual.head_width);
  sizes.channels = dit_width(config, name("in_channels"), usual.channels);
  sizes.out_channels = dit_width(config, name("out_channels"), sizes.channels);
  stream.cross = dit_width(config, name("cross_attention_dim"), cross);
  sizes.width = sizes.heads * sizes.head_width;
  if (sizes.width > 1 << 20) config.fail("is wider than gpumem takes", name("attention_head_dim"));
  if (sizes.head_width % 2 != 0) config.fail("must be even", name("attention_head_dim"));
  stream.gated = config.flag(name("gated_attn"), false);
  stream.modulated = config.flag(name("cross_attn_mod"), false);
  stream.ff_bias = config.flag(name("ff_bias"), true);
  const bool plain = dit_width(config, name("patch_size"), 1) == 1 && dit_width(config, name("patch_size_t"), 1) == 1;
  if (!plain) config.fail("must be 1", name("patch_size"));
  return stream;
}

inline Model read(ConfigFields& config) {
  Model model;
  model.video = read_stream(config, "", {.heads = 32, .head_width = 128, .channels = 128}, 4096);
  model.audio = read_stream(config, "audio_", {.heads = 32, .head_width = 64, .channels = 128}, 2048);
  model.video.timed = dit_code(config) == DitCode::simpletuner;
  model.layers = config.layers_or("num_layers", 48);
  model.captions = dit_width(config, "caption_channels", 3840);
  model.bias = config.flag("attention_bias", true);
  model.out_bias = config.flag("attention_out_bias", true);
  model.affine = config.flag("norm_elementwise_affine", false);
  model.projects = config.flag("use_prompt_embeddings", true);
  model.prompt_rows = config.flag("use_prompt_adaln_single", true) && model.modulates_prompt();
  model.keyframes = config.flag("use_keyframes_abs_pos_embedding", false);
  const std::string_view pairs = config.text({"rope_type"}, "interleaved");
  model.halves = pairs == "split";
  if (!model.halves && pairs != "interleaved") config.fail("is not known", "rope_type");
  for (const Stream* const stream : {&model.video, &model.audio}) {
    // A prompt that is projected is as wide as the stream.
    if (!model.projects || stream->cross == stream->sizes.width) continue;
    config.fail("must be the width of all heads", stream->named("cross_attention_dim"));
  }
  if (config.text({"activation_fn"}, "gelu-approximate") != "gelu-approximate")
    config.fail("is not known", "activation_fn");
  config.ignore({"qk_norm", "norm_eps", "vae_scale_factors", "pos_embed_max_pos", "base_height", "base_width",
                 "audio_scale_factor", "audio_pos_embed_max_pos", "audio_sampling_rate", "audio_hop_length",
                 "rope_theta", "rope_double_precision", "causal_offset", "timestep_scale_multiplier",
                 "cross_attn_timestep_scale_multiplier", "perturbed_attn"});
  return model;
}

/// Cosines and sines of a stream's tokens, float32: [N, S, 1, width], or by head [N, heads, S, 1, each / 2].
inline PairTables tables_of(Forward& f, const Model& model, Tensor tokens, std::int64_t width, std::int64_t heads) {
  const auto table = [&]() {
    const Tensor made =
        f.call("rotary_table", {tokens},
               {{"width", model.halves ? width / 2 : width}, {"padded", true}, {"dtype", std::string("float32")}});
    if (!model.halves) return f.permute(made, {0, 2, 1, 3});
    return f.permute(f.unflatten(f.flatten(made, 1, 2), 2, {heads, 1, width / 2 / heads}), {0, 2, 1, 3, 4});
  };
  const Tensor cosines = table();
  return {cosines, table()};
}

/// apply_split_rotary_emb, apply_interleaved_rotary_emb: of [N, S, width], before it is parted into heads.
inline Tensor turned(Forward& f, const Model& model, Tensor tensor, std::int64_t width, std::int64_t each,
                     const PairTables& tables) {
  if (!model.halves) return as_heads(f, f.flatten(turn_pairs(f, as_heads(f, tensor, width), tables), 2, 3), each);
  const Tensor heads = f.permute(as_heads(f, tensor, each), {0, 2, 1, 3});
  const Tensor pairs = f.to(f.unflatten(heads, 3, {2, each / 2}), "float32");
  const Tensor grown = f.multiply(pairs, tables.cosines);
  const std::vector<Tensor> halves = chunks(f, pairs, 3, 2, 1);
  const std::vector<Tensor> straight = chunks(f, grown, 3, 2, 1);
  const Tensor first = f.call("addcmul", {straight[0], f.call("neg", {tables.sines}), halves[1]});
  const Tensor second = f.call("addcmul", {straight[1], tables.sines, halves[0]});
  const Tensor joined = f.flatten(f.concatenate({first, second}, 3), 3, 4);
  return f.as_type_of(f.permute(joined, {0, 2, 1, 3}), tensor);
}

/// One LTX2Attention: of which stream queries are, and of which keys and values.
struct Asking {
  std::string name;
  std::int64_t width = 1;         ///< of what asks, and of what leaves
  std::int64_t source_width = 1;  ///< of what is asked
  const DitSizes* heads = nullptr;
  bool gated = false;
  const PairTables* query_tables = nullptr;
  const PairTables* key_tables = nullptr;
  std::optional<Tensor> mask = {};
};

inline Tensor attention(Forward& f, const Model& model, const Asking& asks, Tensor input, Tensor source) {
  const InModule inside(f, asks.name, "LTX2Attention");
  const std::int64_t inner = asks.heads->width;
  const std::int64_t each = asks.heads->head_width;
  std::optional<Tensor> logits;
  if (asks.gated) logits = f.linear("to_gate_logits", input, asks.width, asks.heads->heads);
  const auto projected = [&](std::string_view name, Tensor from, std::int64_t in) {
    return f.linear(name, from, in, inner, {.bias = model.bias});
  };
  const Tensor first = projected("to_q", input, asks.width);
  const Tensor second = projected("to_k", source, asks.source_width);
  const Tensor value = projected("to_v", source, asks.source_width);
  const auto headed = [&](Tensor normed, const PairTables* tables) {
    return tables == nullptr ? as_heads(f, normed, each) : turned(f, model, normed, inner, each, *tables);
  };
  const Tensor query = headed(torch_rms_norm(f, "norm_q", first, inner), asks.query_tables);
  const Tensor key = headed(torch_rms_norm(f, "norm_k", second, inner), asks.key_tables);
  Tensor mixed = attend_heads(f, query, key, as_heads(f, value, each), asks.mask);
  if (logits) {
    const Tensor gates = unsqueezed(f, f.scale(f.call("sigmoid", {*logits})), 3);
    mixed = f.flatten(f.multiply(as_heads(f, mixed, each), gates), 2, 3);
  }
  const InModule out(f, "to_out", "ModuleList");
  return f.linear("0", mixed, inner, asks.width, {.bias = model.out_bias});
}

/// What all blocks read of one stream.
struct Given {
  Tensor prompt = 0;
  Tensor mask = 0;
  Tensor time = 0;                    ///< [N, 1 or S, width]
  Tensor rows = 0;                    ///< of the timestep, [N, 1 or S, 6 or 9, width]
  Tensor cross_rows = 0;              ///< four, for the attention to the other stream
  Tensor cross_gate = 0;              ///< one
  std::optional<Tensor> prompt_rows;  ///< two
  PairTables tables;
  PairTables cross_tables;
};

/// Rows of the timestep plus rows first to first + count of a table, [N, 1 or S, width] each.
inline std::vector<Tensor> parts_of(Forward& f, Tensor table, Tensor rows, std::int64_t first, std::int64_t count) {
  const Tensor own = f.slice(table, 0, first, count);
  const Tensor sum = f.add(unsqueezed(f, unsqueezed(f, own, 0), 0), rows);
  std::vector<Tensor> parts;
  for (std::int64_t at = 0; at < count; ++at) parts.push_back(f.select(sum, 2, at));
  return parts;
}

inline Tensor norm(Forward& f, const Model& model, const Stream& stream, std::string_view name, Tensor hidden) {
  return own_rms_norm(f, name, hidden, stream.sizes.width, model.affine);
}

inline std::vector<Tensor> own_rows(Forward& f, const Stream& stream, const Given& given) {
  const std::int64_t count = stream.modulated ? 9 : 6;
  const Tensor table = f.parameter(stream.named("scale_shift_table"), {count, stream.sizes.width});
  return parts_of(f, table, given.rows, 0, count);
}

inline Tensor ask_itself(Forward& f, const Model& model, const Stream& stream, const Given& given,
                         const std::vector<Tensor>& rows, Tensor hidden) {
  const Tensor normed = modulated(f, norm(f, model, stream, stream.named("norm1"), hidden), rows[1], rows[0]);
  const std::int64_t width = stream.sizes.width;
  const Asking asks = {stream.named("attn1"), width, width, &stream.sizes, stream.gated, &given.tables, &given.tables};
  return f.add(hidden, f.multiply(attention(f, model, asks, normed, normed), rows[2]));
}

inline Tensor ask_prompt(Forward& f, const Model& model, const Stream& stream, const Given& given,
                         const std::vector<Tensor>& rows, Tensor hidden) {
  Tensor prompt = given.prompt;
  if (model.modulates_prompt()) {
    const Tensor table = f.parameter(stream.named("prompt_scale_shift_table"), {2, stream.sizes.width});
    if (given.prompt_rows) {
      const std::vector<Tensor> parts = parts_of(f, table, *given.prompt_rows, 0, 2);
      prompt = modulated(f, prompt, parts[1], parts[0]);
    } else {
      prompt = modulated(f, prompt, f.select(table, 0, 1), f.select(table, 0, 0));
    }
  }
  Tensor normed = norm(f, model, stream, stream.named("norm2"), hidden);
  if (stream.modulated) normed = modulated(f, normed, rows[7], rows[6]);
  const Asking asks = {.name = stream.named("attn2"),
                       .width = stream.sizes.width,
                       .source_width = stream.cross,
                       .heads = &stream.sizes,
                       .gated = stream.gated,
                       .mask = given.mask};
  Tensor told = attention(f, model, asks, normed, prompt);
  if (stream.modulated) told = f.multiply(told, rows[8]);
  return f.add(hidden, told);
}

/// Each stream asks the other one; both ask what there was before.
inline TwoStreams ask_each_other(Forward& f, const Model& model, const Given& video, const Given& audio, TwoStreams x) {
  const Tensor seen = norm(f, model, model.video, "audio_to_video_norm", x.image);
  const Tensor heard = norm(f, model, model.audio, "video_to_audio_norm", x.text);
  const auto rows = [&](const Stream& stream, const Given& given, std::string_view name) {
    const Tensor table = f.parameter(name, {5, stream.sizes.width});
    std::vector<Tensor> parts = parts_of(f, table, given.cross_rows, 0, 4);
    parts.push_back(parts_of(f, table, given.cross_gate, 4, 1)[0]);
    return parts;
  };
  const std::vector<Tensor> v = rows(model.video, video, "video_a2v_cross_attn_scale_shift_table");
  const std::vector<Tensor> a = rows(model.audio, audio, "audio_a2v_cross_attn_scale_shift_table");
  const std::int64_t wide = model.video.sizes.width;
  const std::int64_t narrow = model.audio.sizes.width;
  const DitSizes* const heads = &model.audio.sizes;
  const Asking to_video = {"audio_to_video_attn", wide, narrow, heads, model.video.gated, &video.cross_tables,
                           &audio.cross_tables};
  const Asking to_audio = {"video_to_audio_attn", narrow, wide, heads, model.audio.gated, &audio.cross_tables,
                           &video.cross_tables};
  const Tensor asked = modulated(f, seen, v[0], v[1]);
  x.image = gated_sum(f, x.image, v[4], attention(f, model, to_video, asked, modulated(f, heard, a[0], a[1])));
  const Tensor source = modulated(f, seen, v[2], v[3]);
  x.text = gated_sum(f, x.text, a[4], attention(f, model, to_audio, modulated(f, heard, a[2], a[3]), source));
  return x;
}

inline Tensor feed(Forward& f, const Model& model, const Stream& stream, const std::vector<Tensor>& rows,
                   Tensor hidden) {
  const std::int64_t width = stream.sizes.width;
  const Tensor normed = modulated(f, norm(f, model, stream, stream.named("norm3"), hidden), rows[4], rows[3]);
  const Tensor fed =
      dit_feed_forward(f, stream.named("ff"), normed, width, 4 * width, DitActivation::gelu_tanh, stream.ff_bias);
  return f.add(hidden, f.multiply(fed, rows[5]));
}

inline TwoStreams block(Forward& f, const Model& model, const Given& video, const Given& audio, TwoStreams x) {
  const std::vector<Tensor> v = own_rows(f, model.video, video);
  x.image = ask_itself(f, model, model.video, video, v, x.image);
  const std::vector<Tensor> a = own_rows(f, model.audio, audio);
  x.text = ask_itself(f, model, model.audio, audio, a, x.text);
  x.image = ask_prompt(f, model, model.video, video, v, x.image);
  x.text = ask_prompt(f, model, model.audio, audio, a, x.text);
  x = ask_each_other(f, model, video, audio, x);
  x.image = feed(f, model, model.video, v, x.image);
  x.text = feed(f, model, model.audio, a, x.text);
  return x;
}

/// LTX2AdaLayerNormSingle: the timestep's embedding, and `count` rows of it; of each token's timestep if `timed`.
inline std::pair<Tensor, Tensor> rows_of(Forward& f, const Stream& stream, std::string_view name, std::int64_t count,
                                         bool timed) {
  constexpr std::int64_t kSinusoids = 256;
  const InModule inside(f, name, "LTX2AdaLayerNormSingle");
  const std::int64_t width = stream.sizes.width;
  const Tensor sinusoids = timed ? f.sample_input("timesteps", {stream.tokens, kSinusoids})
                                 : unsqueezed(f, timestep_input(f, "timestep", kSinusoids), 1);
  const Tensor time = timestep_embedding(f, "emb.timestep_embedder", sinusoids, kSinusoids, width);
  const Tensor rows = f.linear("linear", f.activation("silu", time, "silu"), width, count * width);
  return {time, f.unflatten(rows, 2, {count, width})};
}

/// `other`: what the stream is called in the names of the attention between streams.
inline Given given_to(Forward& f, const Model& model, const Stream& stream, const DenoiserSample& sample,
                      std::string_view other, std::string_view gate) {
  Given given;
  const std::int64_t width = stream.sizes.width;
  std::tie(given.time, given.rows) =
      rows_of(f, stream, stream.named("time_embed"), stream.modulated ? 9 : 6, stream.timed);
  given.cross_rows = rows_of(f, stream, other, 4, stream.timed).second;
  given.cross_gate = rows_of(f, stream, gate, 1, stream.timed).second;
  if (model.prompt_rows) given.prompt_rows = rows_of(f, stream, stream.named("prompt_adaln"), 2, false).second;
  const std::int64_t read = model.projects ? model.captions : stream.cross;
  given.prompt = f.sample_input(stream.named("encoder_hidden_states"), {sample.text, read});
  given.mask = prompt_mask(f, given.prompt);
  if (model.projects) {
    const std::string name = stream.named("caption_projection");
    given.prompt = text_projection(f, name, given.prompt, model.captions, width, "gelu_pytorch_tanh");
  }
  return given;
}

inline Tensor predicted(Forward& f, const Stream& stream, const Given& given, Tensor hidden) {
  const std::int64_t width = stream.sizes.width;
  const Tensor table = f.parameter(stream.named("scale_shift_table"), {2, width});
  const Tensor rows = f.add(unsqueezed(f, unsqueezed(f, table, 0), 0), unsqueezed(f, given.time, 2));
  const Tensor bare = bare_norm(f, stream.named("norm_out"), hidden, width);
  const Tensor normed = modulated(f, bare, f.select(rows, 2, 1), f.select(rows, 2, 0));
  return f.flatten(f.linear(stream.named("proj_out"), normed, width, stream.sizes.out_channels), 1, 2);
}

/// Latents of sound that goes with a video at 24 frames a second: 16000 / 160 / 4 a second.
inline std::int64_t sounds_of(std::int64_t latent_frames) {
  const std::int64_t frames = 8 * (latent_frames - 1) + 1;
  return std::max<std::int64_t>((frames * 25 + 12) / 24, 1);
}

inline void write(ConfigFields& config, Head, Forward& f) {
  Model model = read(config);
  if (!config.status()) return;
  const DenoiserSample sample =
      denoiser_sample(f, {.side = 32, .frame = 8, .usual_side = 768, .usual_frames = 121, .usual_text = 1024});
  Stream& video = model.video;
  Stream& audio = model.audio;
  video.tokens = sample.frames * sample.height * sample.width;
  audio.tokens = sounds_of(sample.frames);
  const Tensor latents = token_latents(f, video.tokens, video.sizes.channels);
  const Tensor sounds = f.sample_input("audio_hidden_states", {audio.tokens, audio.sizes.channels});
  const auto tables = [&](const Stream& stream, Tensor tokens) {
    return tables_of(f, model, tokens, stream.sizes.width, stream.sizes.heads);
  };
  const PairTables own_video = tables(video, latents);
  const PairTables own_audio = tables(audio, sounds);
  const PairTables cross_video = tables(audio, latents);
  const PairTables cross_audio = tables(audio, sounds);
  TwoStreams x = {f.linear("proj_in", latents, video.sizes.channels, video.sizes.width),
                  f.linear("audio_proj_in", sounds, audio.sizes.channels, audio.sizes.width)};
  if (model.keyframes) (void)f.parameter("keyframes_abs_pos_embedding", {1, video.sizes.width}, true);
  Given seen = given_to(f, model, video, sample, "av_cross_attn_video_scale_shift", "av_cross_attn_video_a2v_gate");
  Given heard = given_to(f, model, audio, sample, "av_cross_attn_audio_scale_shift", "av_cross_attn_audio_v2a_gate");
  seen.tables = own_video;
  seen.cross_tables = cross_video;
  heard.tables = own_audio;
  heard.cross_tables = cross_audio;
  x = stack(f, "transformer_blocks", kBlocks[0], model.layers, x,
            [&](const TwoStreams& at, std::int64_t) { return block(f, model, seen, heard, at); });
  const Tensor picture = predicted(f, video, seen, x.image);
  const Tensor sound = predicted(f, audio, heard, x.text);
  denoiser_loss(f, f.concatenate({picture, sound}, 1),
                {video.tokens * video.sizes.out_channels + audio.tokens * audio.sizes.out_channels});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"LTX2VideoTransformer3D", "LTX2VideoTransformer3DModel"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kHeads = 32;
  constexpr std::int64_t kModulations = 9;  // of a stream whose attention to the prompt has some as well
  for (const std::string prefix : {"", "audio_"}) {
    const auto field = [&](std::string_view name) { return prefix + std::string(name); };
    const std::string block = "transformer_blocks.0." + prefix;
    const std::int64_t width = t.value(prefix + "proj_in", "out_features").value_or(0);
    const std::int64_t heads = t.value(block + "attn1.to_gate_logits", "out_features").value_or(kHeads);
    t.size(field("in_channels"), prefix + "proj_in", "in_features");
    t.size(field("out_channels"), prefix + "proj_out", "out_features");
    t.set(field("num_attention_heads"), heads);
    t.set(field("attention_head_dim"), std::max<std::int64_t>(width / heads, 1));
    t.size(field("cross_attention_dim"), block + "attn2.to_k", "in_features");
    t.there(field("gated_attn"), block + "attn1.to_gate_logits");
    t.flag(field("ff_bias"), block + "ff.net.2");
    const std::int64_t rows = t.value(prefix + "time_embed.linear", "out_features").value_or(0);
    t.set_flag(field("cross_attn_mod"), width > 0 && rows / width == kModulations);
  }
  t.count("num_layers", "transformer_blocks");
  t.size("caption_channels", "caption_projection.linear_1", "in_features");
  t.there("use_prompt_embeddings", "caption_projection");
  t.there("use_prompt_adaln_single", "prompt_adaln");
  t.flag("attention_bias", "transformer_blocks.0.attn1.to_q");
  t.flag("attention_out_bias", "transformer_blocks.0.attn1.to_out.0");
  t.set_string("rope_type", "split");
  t.assume("32 heads in each stream, and rotary pairs half a head apart, as LTX-2 has");
}

inline constexpr Architecture kArchitecture = {.name = "ltx2",
                                               .model_types = names<"LTX2VideoTransformer3DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

}  // namespace ltx2

}  // namespace gpumem::architectures
