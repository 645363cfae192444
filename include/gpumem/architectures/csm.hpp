// CSM (sesame/csm-1b), which speaks: a Llama of words and of frames of sound predicts the first code of each frame, and
// a small one of one frame's codes, the depth decoder, predicts the others. Mimi makes these codes of sound; it is held
// and never trained. Which tokens of a sample are frames depends on the data: here all are, which takes the most.
// Source: transformers 4.52 to 5.17, models/csm/modeling_csm.py, configuration_csm.py; models/mimi/modeling_mimi.py,
// configuration_mimi.py for what the codec holds. Behind it stands MiniCPM-V, of which MiniCPM-o hears.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/image_tokens.hpp"
#include "gpumem/architectures/image_towers.hpp"
#include "gpumem/architectures/vision_language.hpp"

namespace gpumem::architectures {

namespace csm {

struct Model {
  DecoderSizes backbone;
  DecoderSizes depth;
  std::int64_t codes = 32;     ///< of a frame
  std::int64_t words = 1;      ///< of text
  bool tied = true;            ///< both decoders have one table of codes
  std::int64_t codec = 0;      ///< parameters of it
  std::int64_t codebooks = 0;  ///< elements of its buffers
};

/// What Mimi holds: an encoder and a decoder of convolutions, a transformer behind the one and before the other, layers
/// around two quantizers, and the tables of these, which are buffers.
inline void read_codec(ConfigFields& config, Model& m) {
  constexpr std::int64_t kMost = 1 << 14;
  const auto size = [&](std::string_view name, std::int64_t usual) {
    const std::int64_t of = config.size_or({name}, usual);
    if (of > kMost) config.fail("is more than gpumem takes", name);
    return std::min(of, kMost);
  };
  const std::int64_t width = size("hidden_size", 512);
  const std::int64_t inner = size("intermediate_size", 2048);
  const std::int64_t first = size("num_filters", 64);
  const std::int64_t kernel = size("kernel_size", 7);
  const std::int64_t last = size("last_kernel_size", 3);
  const std::int64_t residual = size("residual_kernel_size", 3);
  const std::int64_t compress = size("compress", 2);
  const std::int64_t channels = size("audio_channels", 1);
  const std::int64_t layers = config.layers_or("num_hidden_layers", 8);
  const std::int64_t heads = size("num_attention_heads", 8) * size("head_dim", 64);
  const std::int64_t shared = size("num_key_value_heads", 8) * size("head_dim", 64);
  const std::int64_t codes = size("vector_quantization_hidden_dimension", 256);
  const std::int64_t groups = size("upsample_groups", 512);
  const std::vector<std::int64_t> ratios = config.sizes_or("upsampling_ratios", {8, 6, 5, 4});
  if (config.size_or({"num_residual_layers"}, 1) != 1) config.fail("is 1 in this codec", "num_residual_layers");
  if (config.flag("use_conv_shortcut", false)) config.fail("is false in this codec", "use_conv_shortcut");
  if (ratios.empty() || ratios.size() > 6) config.fail("must be one to six ratios", "upsampling_ratios");
  if (width % groups != 0) config.fail("does not divide hidden_size", "upsample_groups");
  if (!config.status()) return;
  const auto convolution = [](std::int64_t in, std::int64_t out, std::int64_t of) { return in * out * of + out; };
  std::int64_t all = convolution(channels, first, kernel) + convolution(first, channels, last);
  std::int64_t now = first;
  for (std::size_t at = ratios.size(); at-- > 0;) {
    const std::int64_t half = std::max<std::int64_t>(now / compress, 1);
    all += 2 * (convolution(now, half, residual) + convolution(half, now, 1));
    all += convolution(now, 2 * now, 2 * ratios[at]) + convolution(2 * now, now, 2 * ratios[at]);
    now *= 2;
  }
  all += convolution(now, width, last) + convolution(width, now, kernel);
  const std::int64_t block = 2 * width * heads + 2 * width * shared + 2 * width * inner + 6 * width;
  constexpr std::int64_t kFrames = 4;  // of the convolutions that halve and double the rate
  m.codec = all + 2 * layers * block + 4 * width * codes + kFrames * (width * width + width * width / groups);
  m.codebooks = size("num_quantizers", 32) * size("codebook_size", 2048) * (size("codebook_dim", 256) + 1);
  config.ignore({"model_type", "sampling_rate", "frame_rate", "frame_size", "trim_right_ratio", "dilation_growth_rate",
                 "num_semantic_quantizers", "layer_scale_initial_scale", "sliding_window", "use_causal_conv",
                 "attention_dropout", "max_position_embeddings", "hidden_act", "pad_mode", "norm_eps", "normalize",
                 "use_streaming"});
}

inline Model read(ConfigFields& config) {
  Model m;
  // Of the classes, where fields are left out.
  config.complete(R"({"vocab_size": 2051, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
      "num_attention_heads": 32, "num_key_value_heads": 8})");
  m.backbone = decoder_sizes(config);
  m.codes = config.size_or({"num_codebooks"}, 32);
  m.words = config.size_or({"text_vocab_size"}, 128256);
  m.tied = config.flag("tie_codebooks_embeddings", true);
  ConfigFields* const depth = config.part_or_usual("depth_decoder_config");
  ConfigFields* const codec = config.part_or_usual("codec_config");
  if (depth == nullptr || codec == nullptr) return m;
  depth->complete(R"({"vocab_size": 2051, "hidden_size": 1024, "intermediate_size": 8192, "num_hidden_layers": 4,
      "num_attention_heads": 8, "num_key_value_heads": 2})");
  m.depth = decoder_sizes(*depth);
  if (depth->size_or({"num_codebooks"}, 32) != m.codes) config.fail("must be the depth decoder's", "num_codebooks");
  if (depth->size_or({"backbone_hidden_size"}, 2048) != m.backbone.width) {
    config.fail("must be the depth decoder's backbone_hidden_size", "hidden_size");
  }
  if (m.codes < 2 || m.codes > 256) config.fail("is no number of codes", "num_codebooks");
  if (m.backbone.vocabulary > 1 << 20) config.fail("is more than gpumem takes", "vocab_size");
  for (ConfigFields* each : {&config, depth}) {
    if (each->flag("attention_bias", false)) each->fail("is false in this model", "attention_bias");
    if (each->flag("mlp_bias", false)) each->fail("is false in this model", "mlp_bias");
  }
  depth->ignore({"model_type"});
  read_codec(*codec, m);
  return m;
}

/// A Llama's blocks and last norm. `ids`: as many as there are tokens.
inline Tensor decoded(Forward& f, const DecoderSizes& s, Tensor ids, Tensor hidden) {
  const Rotary rotary = rotary_tables(f, ids, s.head_width);
  hidden = stack(f, "layers", "CsmDecoderLayer", s.layers, hidden, [&](Tensor x, std::int64_t) {
    const Tensor normed = f.rms_norm("input_layernorm", x, s.width, "CsmRMSNorm");
    const Tensor attended = f.add(x, rotary_attention(f, s, normed, rotary, {.class_name = "CsmAttention"}));
    const Tensor again = f.rms_norm("post_attention_layernorm", attended, s.width, "CsmRMSNorm");
    return f.add(attended, gated_feed_forward(f, s, again, "CsmMLP"));
  });
  return f.rms_norm("norm", hidden, s.width, "CsmRMSNorm");
}

/// ForCausalLMLoss.
inline Tensor loss_of(Forward& f, Tensor logits, Tensor labels) {
  const Tensor wide = f.to(logits, "float32");
  const Tensor loss = f.call("cross_entropy", {f.flatten(wide, 0, 1), labels}, {{"keeps_type", true}});
  return f.leave_function(loss, {wide});
}

/// The codes of each token [N, S, codes]; as rows of a frame [N S, codes].
inline Tensor codes_of(Forward& f, const Model& m, Tensor ids) {
  const Tensor one = f.call("unsqueeze", {ids}, {{"dim", std::int64_t{2}}});
  return f.call("expand", {one}, {{"shape", Sizes{-1, -1, m.codes}}});
}

/// Words, and the sum of what each code of a frame stands for, written among them.
inline Tensor embedded(Forward& f, const Model& m, Tensor ids, Tensor codes) {
  const DecoderSizes& s = m.backbone;
  const Tensor words = f.embedding("embed_text_tokens", ids, m.words, s.width);
  const InModule backbone(f, "backbone_model", "CsmBackboneModel");
  const InModule table(f, "embed_tokens", "CsmBackboneModelEmbeddings");
  const Tensor each = f.embedding("embed_audio_tokens", codes, m.codes * s.vocabulary, s.width);
  const Tensor sounds = f.call("clone", {f.call("sum", {each}, {{"dim", std::int64_t{2}}})});
  return f.call("add", {words, sounds}, {{"inplace", true}});
}

/// The depth decoder's logits [N S, codes - 1, vocabulary] of each frame.
inline Tensor depth_logits(Forward& f, const Model& m, Tensor hidden, Tensor codes) {
  const DecoderSizes& s = m.depth;
  const std::int64_t rows = m.codes * s.vocabulary;
  const InModule inside(f, "depth_decoder", "CsmDepthDecoderForCausalLM");
  const Tensor ids = f.flatten(codes, 0, 1);
  Tensor left = 0;
  {
    const InModule model(f, "model", "CsmDepthDecoderModel");
    const Tensor each = m.tied ? f.tied_embedding("embed_tokens", ids, rows, m.backbone.width)
                               : f.embedding("embed_tokens", ids, rows, m.backbone.width);
    const Tensor heard = f.call("unsqueeze", {f.call("clone", {f.flatten(hidden, 0, 1)})}, {{"dim", std::int64_t{1}}});
    const Tensor read = f.concatenate({heard, f.slice(each, 1, 1, Forward::kRest)}, 1);
    left = decoded(f, s, ids, f.linear("inputs_embeds_projector", read, m.backbone.width, s.width, {.bias = false}));
  }
  const InModule head(f, "codebooks_head", "CsmCodebooksHead");
  // weight[torch.arange(codes - 1)] copies all of it.
  const Tensor weight = f.call("clone", {f.parameter("weight", {m.codes - 1, s.width, s.vocabulary})});
  const Tensor frames = f.flatten(f.slice(left, 1, 1, Forward::kRest), 0, 1);
  const Tensor made = f.call("grouped_product", {frames, weight}, {{"batched", true}, {"of_all_experts", true}});
  return f.unflatten(f.call("clone", {made}), 0, {-1, m.codes - 1});  // torch.stack of each code's
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  if (head != Head::causal_lm) return config.fail("only the class that speaks is known");
  const DecoderSizes& s = model.backbone;
  f.remark("all tokens of a sample are taken for frames of sound, which the depth decoder reads: words take less");
  f.remark("the codec is held; what it takes to make codes of sound is not counted");
  f.hold_printed("codec_model");
  (void)f.parameter("codec_model.unused", {model.codec}, true);
  (void)f.constant("codec_model.codebooks", {model.codebooks}, "parameters");
  const Tensor ids = token_ids(f);
  const Tensor codes = codes_of(f, model, f.token_input("codes"));
  const Tensor read = embedded(f, model, ids, codes);
  Tensor hidden = 0;
  {
    const InModule backbone(f, "backbone_model", "CsmBackboneModel");
    hidden = decoded(f, s, ids, read);
  }
  const Tensor logits = f.linear("lm_head", hidden, s.width, s.vocabulary, {.bias = false, .returned = true});
  const Tensor first = loss_of(f, logits, f.token_input("labels"));
  const Tensor others = depth_logits(f, model, hidden, codes);
  f.hand_out(others);
  f.leave_function(f.add(first, loss_of(f, others, f.slice(f.flatten(codes, 0, 1), 1, 1, Forward::kRest))), {hidden});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Csm", "csm", "backbone_model"}});
/// Of the published model.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{2048, 32}, {1024, 8}});

/// Of Mimi: what a tree of it shows and its class leaves open.
inline void tree_codec(TreeFields& t) {
  t.open("codec_config");
  t.size("num_filters", "/codec_model.encoder.layers.0.conv", "out_channels");
  t.size("audio_channels", "/codec_model.encoder.layers.0.conv", "in_channels");
  t.count("num_hidden_layers", "/codec_model.encoder_transformer.layers");
  t.size("hidden_size", "/codec_model.encoder_transformer.layers.0.mlp.fc1", "in_features");
  t.size("intermediate_size", "/codec_model.encoder_transformer.layers.0.mlp.fc1", "out_features");
  t.close();
}

/// What print(model) shows. The head of the codes is a bare parameter, and all tables are as wide as the backbone.
inline void read_tree(TreeFields& t) {
  const auto decoder = [&](const std::string& at) {
    t.count("num_hidden_layers", at + "layers");
    t.size("hidden_size", at + "layers.0.self_attn.q_proj", "in_features");
    t.size("intermediate_size", at + "layers.0.mlp.gate_proj", "out_features");
    t.heads(
        {.query = at + "layers.0.self_attn.q_proj", .key = at + "layers.0.self_attn.k_proj", .published = kPublished});
  };
  decoder("");
  t.size("text_vocab_size", "/embed_text_tokens", "num_embeddings");
  t.size("vocab_size", "/lm_head", "out_features");
  const std::int64_t words = t.value("/lm_head", "out_features").value_or(0);
  const std::int64_t rows = t.value("embed_tokens.embed_audio_tokens", "num_embeddings").value_or(0);
  if (words == 0 || rows % words != 0) return;
  t.set("num_codebooks", rows / words);
  t.open("depth_decoder_config");
  decoder("/depth_decoder.model.");
  t.set("vocab_size", words);
  t.set("num_codebooks", rows / words);
  t.size("backbone_hidden_size", "/depth_decoder.model.embed_tokens", "embedding_dim");
  t.close();
  tree_codec(t);
}

inline constexpr Architecture kArchitecture = {
    .name = "csm", .model_types = names<"csm">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace csm

// MiniCPM-V 2.5 to 4.5 and MiniCPM-o: SigLIP's tower on a picture and its slices, all of a batch padded to as many
// patches as the largest has; a resampler whose queries read each of them; and a text model, whose fields stand among
// the model's own. Attention of the tower is written out: its class knows flash_attn, and no scaled_dot_product. Its
// tower for sound is held and not called, and what makes speech is left out, as LLaMA-Factory and ms-swift leave it
// (init_tts false).
// Source: modeling_minicpmv.py, modeling_navit_siglip.py, resampler.py, image_processing_minicpmv.py of MiniCPM-V-2_6
// and MiniCPM-V-4_5; modeling_minicpmo.py of MiniCPM-o-2_6; LLaMA-Factory 2026-08, model/patcher.py.

namespace minicpmv {

/// The text model of a version.
struct Version {
  std::string_view name;
  std::string_view text_type;
  std::string_view text_class;
};
inline constexpr auto kVersions = std::to_array<Version>(
    {{"2.5", "llama", "Llama"}, {"2.6", "qwen2", "Qwen2"}, {"4.0", "llama", "Llama"}, {"4.5", "qwen3", "Qwen3"}});

struct Model {
  Version version = kVersions[1];
  ImageTower tower;
  std::int64_t queries = 64;
  std::int64_t most_slices = 9;
  std::int64_t sound = 0;  ///< parameters of the tower for sound
  std::int64_t width = 1;  ///< of the text model

  [[nodiscard]] std::int64_t heads() const { return std::max<std::int64_t>(width / 128, 1); }
};

/// The version of "version", a text or a number. MiniCPM-o's first has none of another text model.
inline Version read_version(ConfigFields& config) {
  const core::JsonValue* said = config.find("version");
  if (said == nullptr) return kVersions[1];
  std::string name(said->is(core::JsonValue::Kind::text) ? said->text() : std::string_view());
  if (said->is(core::JsonValue::Kind::real)) name = std::to_string(said->real()).substr(0, 3);
  if (said->is(core::JsonValue::Kind::integer)) name = std::to_string(said->integer()) + ".0";
  for (const Version& row : kVersions) {
    if (row.name == name) return row;
  }
  config.fail("is none of 2.5, 2.6, 4.0 and 4.5", "version");
  return kVersions[1];
}

/// Of Whisper's encoder and two linear layers behind it.
inline std::int64_t sound_parameters(ConfigFields& config, std::int64_t text_width) {
  ConfigFields* audio = config.part_or_usual("audio_config");
  if (audio == nullptr) return 0;
  const auto size = [&](std::string_view name, std::int64_t usual) {
    constexpr std::int64_t kMost = 1 << 16;
    const std::int64_t of = audio->size_or({name}, usual);
    if (of > kMost) audio->fail("is more than gpumem takes", name);
    return std::min(of, kMost);
  };
  const std::int64_t width = size("d_model", 1024);
  const std::int64_t inner = size("encoder_ffn_dim", 4096);
  const std::int64_t blocks = audio->layers_or("encoder_layers", 24);
  const std::int64_t bands = size("num_mel_bins", 80);
  const std::int64_t places = size("max_source_positions", 1500);
  audio->ignore({"model_type", "encoder_attention_heads", "decoder_attention_heads", "decoder_ffn_dim",
                 "decoder_layers", "num_hidden_layers", "vocab_size", "max_target_positions", "max_length"});
  const auto linear = [](std::int64_t from, std::int64_t to) { return from * to + to; };
  constexpr std::int64_t kKernel = 3;
  const std::int64_t block = 3 * linear(width, width) + width * width + linear(width, inner) + linear(inner, width) +
                             4 * width;  // keys have no bias
  const std::int64_t convolved = linear(kKernel * bands, width) + linear(kKernel * width, width);
  return convolved + places * width + blocks * block + 2 * width + linear(width, text_width) +
         linear(text_width, text_width);
}

inline Model read(ConfigFields& config) {
  Model m;
  m.version = read_version(config);
  if (ConfigFields* tower = vision_fields(config)) {
    tower->complete(R"({"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27,
                        "num_attention_heads": 16, "image_size": 980, "patch_size": 14, "vision_use_head": false})");
    tower->replace(R"({"model_type": "siglip_vision_model"})");
    m.tower = read_image_tower(*tower, "siglip_vision_model");
  }
  if (config.flag("drop_vision_last_layer", m.version.name == "2.5")) --m.tower.sizes.layers;
  if (m.tower.sizes.layers < 1) config.fail("leaves no layer of the tower", "drop_vision_last_layer");
  m.queries = config.size_or({"query_num"}, m.version.name == "2.5" ? 96 : 64);
  if (m.queries > 4096) config.fail("is more than gpumem takes", "query_num");
  if (ConfigFields* slices = config.part_or_usual("slice_config")) {
    m.most_slices = slices->size_or({"max_slice_nums"}, 9);
    if (m.most_slices > 64) slices->fail("is more than gpumem takes", "max_slice_nums");
    slices->ignore({"patch_size", "scale_resolution", "model_type"});
  }
  config.ignore({"image_size", "patch_size", "vision_batch_size", "tts_config", "batch_3d_resampler", "audio_pool_step",
                 "audio_chunk_length", "stream_input", "listen_speak_type", "insert_layer_id", "batch_vision_input",
                 "slice_mode", "use_image_id", "init_tts", "init_vision"});
  return m;
}

/// Slices of all of a sample's images, and the patches that each is padded to.
struct Plan {
  std::int64_t slices = 1;
  std::int64_t patches = 1;
  bool pads = false;  ///< slices and the whole picture have not as many patches, so that attention has a mask
};
inline Plan plan_of(const Model& m, const Pictures& pictures) {
  // A video's frames are not cut, as the published examples have it.
  const SlicedPicture made = sliced_picture(pictures.size, m.tower.patch, pictures.frames > 0 ? 1 : m.most_slices);
  const auto patches = [&](const PictureSize& of) { return of.width / m.tower.patch * (of.height / m.tower.patch); };
  const std::int64_t whole = patches(made.whole);
  const std::int64_t slice = made.slices > 0 ? patches(made.slice) : whole;
  return {pictures.seen() * (1 + made.slices), std::max(whole, slice), whole != slice};
}

/// softmax(q k) v with scores in the model's type and the softmax in float32, of [N, heads, .., d].
inline Tensor written_out(Forward& f, const Heads& heads, std::optional<Tensor> mask, double dropout) {
  Tensor scores = f.scale(f.call("matmul", {heads.query, f.permute(heads.key, {0, 1, 3, 2})}));
  if (mask) scores = f.add(scores, *mask);
  const Tensor weights = f.as_type_of(f.call("softmax", {f.to(scores, "float32")}), heads.query);
  const Tensor kept = dropout > 0.0 ? f.call("dropout", {weights}, {{"p", dropout}}) : weights;
  return merge_heads(f, f.call("matmul", {kept, heads.value}));
}

inline Tensor attention(Forward& f, const Model& m, Tensor input, std::optional<Tensor> mask) {
  const InModule inside(f, "self_attn", "SiglipAttention");
  const std::int64_t width = m.tower.sizes.width;
  const auto heads = [&](std::string_view name) {
    return split_heads(f, f.linear(name, input, width, width), width / m.tower.sizes.heads);
  };
  const Tensor query = heads("q_proj");
  const Tensor key = heads("k_proj");
  const Tensor mixed = written_out(f, {query, key, heads("v_proj")}, mask, m.tower.sizes.attention_dropout);
  return f.linear("out_proj", mixed, width, width);
}

/// [N slices, patches, width].
inline Tensor tower(Forward& f, const Model& m, const Plan& plan) {
  const InModule inside(f, "vpm", "SiglipVisionTransformer");
  const DecoderSizes& s = m.tower.sizes;
  const Tensor pixels =
      f.rows_input("pixel_values", plan.slices, {m.tower.channels, m.tower.patch, plan.patches * m.tower.patch});
  Tensor hidden = 0;
  {
    const InModule embeddings(f, "embeddings", "SiglipVisionEmbeddings");
    hidden = cut_patches(f, "patch_embedding", pixels,
                         {.channels = m.tower.channels, .width = s.width, .patch = m.tower.patch, .step = {}});
    const Tensor places = f.rows_input("patch_places", plan.slices, {plan.patches});
    hidden = f.add(hidden, f.embedding("position_embedding", places, m.tower.patches(), s.width));
  }
  std::optional<Tensor> mask;
  if (plan.pads) {  // of all patches by all, in the type of the hidden states
    const Tensor shown = f.rows_input("patch_attention_mask", plan.slices, {1, 1, plan.patches});
    const Tensor row = f.as_type_of(shown, hidden);
    mask = f.add(row, f.permute(row, {0, 1, 3, 2}));
  }
  {
    const InModule encoder(f, "encoder", "SiglipEncoder");
    hidden = stack(f, "layers", "SiglipEncoderLayer", s.layers, hidden, [&](Tensor x, std::int64_t) {
      const Tensor attended = f.add(x, attention(f, m, f.layer_norm("layer_norm1", x, s.width), mask));
      const Tensor again = f.layer_norm("layer_norm2", attended, s.width);
      return f.add(attended, feed_forward(f, s, again, {.class_name = "SiglipMLP"}));
    });
  }
  return f.layer_norm("post_layernorm", hidden, s.width);
}

/// Each query reads the patches of a slice; keys have their places, values none.
inline Tensor resampled(Forward& f, const Model& m, const Plan& plan, Tensor hidden) {
  const InModule inside(f, "resampler", "Resampler");
  const std::int64_t width = m.width;
  const Tensor query = f.parameter("query", {1, m.queries, width});
  const Tensor read = f.linear("kv_proj", hidden, m.tower.sizes.width, width, {.bias = false});
  const Tensor context = f.layer_norm("ln_kv", read, width);
  const Tensor asking = f.layer_norm("ln_q", query, width);
  const Tensor places = f.call("clone", {f.call("detached", {context})});  // padded to the longest slice
  const std::vector<core::Dim> each = {core::Dim::batch(plan.slices), core::Dim::fixed(-1), core::Dim::fixed(-1)};
  Tensor mixed = 0;
  {
    const InModule attention(f, "attn", "MultiheadAttention");
    const Tensor repeated = f.call("clone", {f.call("expand", {asking}, {{"shape", each}})});
    const auto heads = [&](std::string_view name, Tensor input) {
      return split_heads(f, f.linear(name, input, width, width), width / m.heads());
    };
    const Tensor queries = heads("in_proj_query", repeated);
    const Tensor keys = heads("in_proj_key", f.add(context, places));
    const Tensor values = heads("in_proj_value", context);
    const Tensor scores = f.call("matmul", {f.scale(queries), f.permute(keys, {0, 1, 3, 2})});
    const Tensor read_by = merge_heads(f, f.call("matmul", {f.call("softmax", {scores}), values}));
    mixed = f.linear("out_proj", read_by, width, width);
  }
  const Tensor normed = f.layer_norm("ln_post", mixed, width);
  return f.call("linear_function", {normed, f.permute(f.parameter("proj", {width, width}), {1, 0})});
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures pictures = pictures_of(f);
  const bool hears = config.text({"model_type"}, "minicpmv") == "minicpmo";
  Model model = read(config);
  ConfigFields* text = text_fields(config, model.version.text_type);
  if (text == nullptr || !config.status()) return;
  model.width = text->size({"hidden_size"});
  if (model.width % model.heads() != 0) config.fail("is no whole number of the resampler's heads", "hidden_size");
  if (hears && config.flag("init_audio", true)) model.sound = sound_parameters(config, model.width);
  if (!config.status()) return;
  const Plan plan = plan_of(model, pictures);
  if (hears) {
    f.remark("samples bring no sound; the tower for it is held and not called");
    f.remark("what makes speech is not held, as LLaMA-Factory and ms-swift leave it out");
  }
  constexpr std::int64_t kMarks = 2;  // around each slice
  tell_pictures(f, pictures, plan.slices * (model.queries + kMarks));
  TextPart part;
  const std::string name(model.version.text_class);
  part.modules = {{"llm", name + "ForCausalLM"}, {"model", name + "Model"}};
  part.head = "llm.";
  part.embed = [&](Tensor, Tensor embedded) {
    if (model.sound > 0) (void)f.parameter("apm.unused", {model.sound}, true);
    for (const std::string_view held : {"apm", "audio_projection_layer"}) f.hold_printed(held);
    return with_features(f, pictures, embedded,
                         [&](Forward& to) { return resampled(to, model, plan, tower(to, model, plan)); });
  };
  write_text(f, *text, head == Head::none ? Head::causal_lm : head, part);
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{.prefix = "MiniCPM", .model_type = "minicpmv", .ending = "V"},
                               {.prefix = "MiniCPM", .model_type = "minicpmo", .ending = "O"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kCut = 26;  // layers of 2.5's tower, which its code leaves without the last
  const std::string_view text = t.class_of("llm.model");
  const bool llama = text.starts_with("Llama");
  const bool first = llama && t.count_of("vpm.encoder.layers") == kCut;
  const std::string_view version = first ? "2.5" : llama ? "4.0" : text.starts_with("Qwen3") ? "4.5" : "2.6";
  t.set_string("version", version);
  t.set_flag("drop_vision_last_layer", false);
  tree_image_tower(t, "vpm");
  t.there("init_audio", "apm");
  if (t.has("apm")) {
    t.open("audio_config");
    t.size("d_model", "apm.conv1", "out_channels");
    t.size("num_mel_bins", "apm.conv1", "in_channels");
    t.size("encoder_ffn_dim", "apm.layers.0.fc1", "out_features");
    t.count("encoder_layers", "apm.layers");
    t.size("max_source_positions", "apm.embed_positions", "num_embeddings");
    t.close();
  }
  tree_text(t, {.path = "llm.model", .type = llama ? "llama" : version == "4.5" ? "qwen3" : "qwen2"});
  t.assume("queries of the resampler and slices of a picture as version " + std::string(version) + " has");
}

inline constexpr Architecture kArchitecture = {
    .name = "minicpmv",
    .model_types = names<"minicpmv", "minicpmo">,
    .write = write,
    .classes = kClasses,
    .read_tree = read_tree,
    .holds_text_model = true,
    .blocks = names<"SiglipEncoderLayer", "LlamaDecoderLayer", "Qwen2DecoderLayer", "Qwen3DecoderLayer">};

}  // namespace minicpmv

}  // namespace gpumem::architectures
