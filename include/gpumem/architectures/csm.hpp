// CSM (sesame/csm-1b), which speaks: a Llama of words and of frames of sound predicts the first code of each frame, and
// a small one of one frame's codes, the depth decoder, predicts the others. Mimi makes these codes of sound; it is held
// and never trained. Which tokens of a sample are frames depends on the data: here all are, which takes the most.
// Source: transformers 4.52 to 5.17, models/csm/modeling_csm.py, configuration_csm.py; models/mimi/modeling_mimi.py,
// configuration_mimi.py for what the codec holds.
#pragma once

#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

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

}  // namespace gpumem::architectures
