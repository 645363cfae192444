// ViT and DeiT: images cut into patches, a class token (DeiT: and one for distillation) before them, learned positions.
// AST (audio spectrogram transformer): DeiT on the spectrogram of a sound, in patches that overlap.
// VideoMAE: ViT on a video, in patches of several frames, without a token of its own.
// Source: transformers 4.48, models/vit/modeling_vit.py (ViTSdpaSelfAttention), deit, audio_spectrogram_transformer;
// 5.16, models/vit_msn, videomae/modeling_videomae.py.
#pragma once

#include <algorithm>
#include <array>
#include <string>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/image_tokens.hpp"
#include "gpumem/architectures/vision_language.hpp"

namespace gpumem::architectures {

namespace vit {

inline constexpr std::array<std::string_view, 5> kModelTypes = {"vit", "deit", "audio-spectrogram-transformer",
                                                                "vit_msn", "videomae"};

struct Model {
  std::int64_t width = 1;
  std::int64_t layers = 1;
  std::int64_t heads = 1;
  std::int64_t inner = 1;
  std::int64_t side = 224;  ///< of an image; of a spectrogram the bins of frequencies
  std::int64_t length = 224;
  std::int64_t patch = 16;
  std::int64_t side_step = 16;
  std::int64_t length_step = 16;
  std::int64_t channels = 3;
  std::int64_t labels = 2;
  double dropout = 0.0;
  double attention_dropout = 0.0;
  std::string_view activation = "gelu";
  bool bias = true;
  bool masks = false;        ///< ViT that was trained by masks (MSN): its body has no pooler
  std::int64_t frames = 1;   ///< of a video
  std::int64_t tubelet = 0;  ///< frames of a patch; 0: it reads an image
  bool means = false;        ///< a video's class is told by the mean of its patches
  bool hears = false;        ///< a spectrogram
  bool distils = false;
  bool teaches = false;  ///< a second classifier reads the distillation token

  [[nodiscard]] std::string named(std::string_view part) const {
    const std::string_view own = hears ? "AST" : distils ? "DeiT" : watches() ? "VideoMAE" : masks ? "ViTMSN" : "ViT";
    return std::string(own) + std::string(part);
  }
  [[nodiscard]] bool watches() const { return tubelet > 0; }
  [[nodiscard]] std::int64_t patches() const {
    const std::int64_t each = ((side - patch) / side_step + 1) * ((length - patch) / length_step + 1);
    return watches() ? frames / tubelet * each : each;
  }
  [[nodiscard]] std::int64_t extra_tokens() const { return distils ? 2 : 1; }
};

/// What is cut into patches.
inline void read_input(ConfigFields& config, Model& model) {
  model.patch = config.size_or({"patch_size"}, 16);
  if (!model.hears) {
    model.side = config.size_or({"image_size"}, 224);
    model.length = model.side;
    model.side_step = model.patch;
    model.length_step = model.patch;
    model.channels = config.size_or({"num_channels"}, 3);
    if (model.side < model.patch) config.fail("is smaller than patch_size", "image_size");
    if (!model.watches()) return;
    model.frames = config.size_or({"num_frames"}, 16);
    if (model.frames < model.tubelet) config.fail("is smaller than tubelet_size", "num_frames");
    check_length(config, model.frames, "num_frames");
    return;
  }
  model.side = config.size_or({"num_mel_bins"}, 128);
  model.length = config.size_or({"max_length"}, 1024);
  model.side_step = config.size_or({"frequency_stride"}, 10);
  model.length_step = config.size_or({"time_stride"}, 10);
  model.channels = 1;
  if (std::min(model.side, model.length) < model.patch) config.fail("is larger than the spectrogram", "patch_size");
}

inline Model read(ConfigFields& config) {
  Model model;
  const std::string_view type = config.text({"model_type"}, "vit");
  model.hears = type == kModelTypes[2];
  model.distils = type == "deit" || model.hears;
  model.masks = type == kModelTypes[3];
  if (type == kModelTypes[4]) {
    model.tubelet = config.size_or({"tubelet_size"}, 2);
    model.means = config.flag("use_mean_pooling", true);
    config.ignore({"decoder_num_attention_heads", "decoder_hidden_size", "decoder_num_hidden_layers",
                   "decoder_intermediate_size", "norm_pix_loss", "num_image_tokens"});
  }
  if (model.hears || model.masks || model.watches()) {
    config.complete(R"({"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
                        "intermediate_size": 3072})");
  }
  model.teaches = model.distils && config.class_name() == "DeiTForImageClassificationWithTeacher";
  model.width = config.size({"hidden_size"});
  model.layers = config.layers({"num_hidden_layers"});
  model.heads = config.size({"num_attention_heads"});
  model.inner = config.size({"intermediate_size"});
  read_input(config, model);
  model.labels = labels_of(config);
  model.dropout = config.number({"hidden_dropout_prob"}, 0.0);
  model.attention_dropout = config.number({"attention_probs_dropout_prob"}, 0.0);
  model.activation = config.text({"hidden_act"}, "gelu");
  model.bias = config.flag("qkv_bias", true);
  if (model.width % model.heads != 0) config.fail("does not divide hidden_size", "num_attention_heads");
  config.ignore({"encoder_stride", "pooler_act", "pooler_output_size"});
  return model;
}

/// Patches of several frames, and where they are.
inline Tensor video_embeddings(Forward& f, const Model& model) {
  const InModule inside(f, "embeddings", model.named("Embeddings"));
  const Tensor video = f.sample_input("pixel_values", {model.frames, model.channels, model.side, model.side});
  Tensor rows = 0;
  {
    const InModule patches(f, "patch_embeddings", model.named("PatchEmbeddings"));
    const Sizes kernel = {model.tubelet, model.patch, model.patch};
    const Tensor cut = f.layer(
        "projection", "Conv3d", "conv3d", {f.permute(video, {0, 2, 1, 3, 4})},
        {{"in_channels", model.channels}, {"out_channels", model.width}, {"kernel_size", kernel}, {"stride", kernel}});
    rows = f.permute(f.flatten(cut, 2, 4), {0, 2, 1});
  }
  return f.call("add", {rows});  // sines, which each pass copies from the host
}

/// [N, frames, bins] as an image of one channel, [N, 1, bins, frames].
inline Tensor spectrogram(Forward& f, const Model& model) {
  const Tensor sound = f.sample_input("input_values", {model.length, model.side});
  return f.permute(f.call("unsqueeze", {sound}, {{"dim", std::int64_t{1}}}), {0, 1, 3, 2});
}

inline Tensor embeddings(Forward& f, const Model& model) {
  const InModule inside(f, "embeddings", model.named("Embeddings"));
  const std::int64_t width = model.width;
  const Tensor image =
      model.hears ? spectrogram(f, model) : f.sample_input("pixel_values", {model.channels, model.side, model.side});
  Tensor rows = 0;
  {
    const InModule patches(f, "patch_embeddings", model.named("PatchEmbeddings"));
    rows =
        cut_patches(f, "projection", image, {model.channels, width, model.patch, {model.side_step, model.length_step}});
  }
  const Tensor first = learned_tokens(f, "cls_token", width);
  const Tensor all = model.distils ? f.concatenate({first, learned_tokens(f, "distillation_token", width), rows}, 1)
                                   : f.concatenate({first, rows}, 1);
  const Tensor places = f.parameter("position_embeddings", {1, model.patches() + model.extra_tokens(), width});
  return f.dropout("dropout", f.add(all, places), model.dropout);
}

inline Tensor block(Forward& f, const Model& model, Tensor input) {
  const std::int64_t width = model.width;
  const Tensor normed = f.layer_norm("layernorm_before", input, width);
  Tensor mixed = 0;
  {
    const InModule outer(f, "attention", model.named("SdpaAttention"));
    {
      const InModule inside(f, "attention", model.named("SdpaSelfAttention"));
      const auto heads = [&](std::string_view name) {
        return split_heads(f, f.linear(name, normed, width, width, {.bias = model.bias}), width / model.heads);
      };
      const Tensor key = heads("key");
      const Tensor value = heads("value");
      const Tensor query = heads("query");
      const auto copied = [&](Tensor part) { return f.contiguous(part, When::in_4_52); };
      mixed = attend(f, {copied(query), copied(key), copied(value)},
                     {.dropout = model.attention_dropout, .copies = false, .causal = false});
    }
    const InModule output(f, "output", model.named("SelfOutput"));
    mixed = f.dropout("dropout", f.linear("dense", mixed, width, width), model.dropout);
  }
  const Tensor attended = f.add(mixed, input);
  const Tensor again = f.layer_norm("layernorm_after", attended, width);
  Tensor active = 0;
  {
    const InModule inside(f, "intermediate", model.named("Intermediate"));
    active = f.activation("intermediate_act_fn", f.linear("dense", again, width, model.inner), model.activation);
  }
  const InModule output(f, "output", model.named("Output"));
  return f.add(f.dropout("dropout", f.linear("dense", active, model.inner, width), model.dropout), attended);
}

inline Tensor encoder(Forward& f, const Model& model, Tensor hidden) {
  const InModule inside(f, "encoder", model.named("Encoder"));
  return stack(f, "layer", model.named("Layer"), model.layers, hidden,
               [&](Tensor x, std::int64_t) { return block(f, model, x); });
}

inline void write_video(Forward& f, const Model& model, Head head) {
  Tensor hidden = 0;
  {
    const InModule inside(f, head == Head::none ? std::string_view() : "videomae", "VideoMAEModel");
    hidden = encoder(f, model, video_embeddings(f, model));
    if (!model.means) hidden = f.layer_norm("layernorm", hidden, model.width);
  }
  if (head == Head::none) return;
  const Tensor one = model.means
                         ? f.layer_norm("fc_norm", f.call("mean", {hidden}, {{"dim", std::int64_t{1}}}), model.width)
                         : f.select(hidden, 1, 0);
  f.linear("classifier", one, model.width, model.labels);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  check_classifies(config, head);
  if (!config.status()) return;
  if (model.watches()) return write_video(f, model, head);
  Tensor first = 0;
  Tensor second = 0;  // the distillation token
  {
    const std::string_view body = model.hears ? "audio_spectrogram_transformer" : model.distils ? "deit" : "vit";
    const InModule inside(f, head == Head::none && model.hears ? std::string_view() : body, model.named("Model"));
    const Tensor hidden = f.layer_norm("layernorm", encoder(f, model, embeddings(f, model)), model.width);
    first = f.select(hidden, 1, 0);
    if (model.hears) {
      first = f.scale(f.add(first, f.select(hidden, 1, 1)));
      if (head == Head::none) f.hand_out(hidden);
    } else if (head == Head::none) {
      f.hand_out(hidden);
      if (model.masks) return;
      const InModule pooler(f, "pooler", model.named("Pooler"));
      f.call("tanh", {f.linear("dense", first, model.width, model.width)});
      return;
    }
    if (model.teaches) second = f.select(hidden, 1, 1);
  }
  if (model.hears) {
    if (head == Head::none) return;
    const InModule classifier(f, "classifier", "ASTMLPHead");
    f.linear("dense", f.layer_norm("layernorm", first, model.width), model.width, model.labels);
    return;
  }
  if (!model.teaches) {
    f.linear("classifier", first, model.width, model.labels);
    return;
  }
  const Tensor one = f.linear("cls_classifier", first, model.width, model.labels);
  const Tensor other = f.linear("distillation_classifier", second, model.width, model.labels);
  f.hand_out(one);
  f.hand_out(other);
  f.scale(f.add(one, other));
}

inline constexpr auto kClasses = std::to_array<ModelClass>(
    {{"ViT", "vit", "vit"}, {"DeiT", "deit", "deit"}, {"AST", kModelTypes[2], "audio_spectrogram_transformer"}});
/// Published models, by width.
inline constexpr auto kPublished =
    std::to_array<PublishedHeads>({{192, 3}, {384, 6}, {768, 12}, {1024, 16}, {1280, 16}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::string projection = "embeddings.patch_embeddings.projection";
  const std::int64_t width = t.value(projection, "out_channels").value_or(0);
  const bool hears = t.class_name().starts_with("AST");
  if (!hears) t.size("num_channels", projection, "in_channels");
  t.size("patch_size", projection, "kernel_size");
  t.size("hidden_size", projection, "out_channels");
  t.count("num_hidden_layers", "encoder.layer");
  t.size("intermediate_size", "encoder.layer.0.intermediate.dense", "out_features");
  t.flag("qkv_bias", "encoder.layer.0.attention.attention.query");
  t.dropout("hidden_dropout_prob", "embeddings.dropout");
  t.dropout("attention_probs_dropout_prob", "encoder.layer.0.attention.attention.dropout");
  const std::string_view labels = hears                  ? "/classifier.dense"
                                  : t.has("/classifier") ? "/classifier"
                                                         : "/cls_classifier";
  t.size("num_labels", labels, "out_features");
  t.heads_of_width({.published = kPublished}, width);
  if (!hears) t.image_size("image_size");
  else t.assume("spectrograms of 1,024 frames and 128 bins, whose patches are 10 apart");
}

inline constexpr Architecture kArchitecture = {.name = "vit",
                                               .model_types = kModelTypes,
                                               .usual_head = Head::sequence_classification,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace vit

// BLIP-2 and InstructBLIP: a ViT whose tokens learned queries read (the Q-Former, a BERT), and OPT or another decoder
// behind a linear layer. InstructBLIP's Q-Former reads the instruction, too. Those with T5 are not known. Source:
// transformers 5.5, models/blip_2/modeling_blip_2.py, instructblip; before 4.52 the tower writes its attention out.

namespace blip2 {

inline constexpr std::int64_t kInstruction = 32;  ///< tokens that the Q-Former is taken to read
struct Model {
  bool instructs = false, bias = true;
  DecoderSizes tower;
  std::int64_t side = 224, patch = 14, channels = 3;
  DecoderSizes former;
  std::int64_t every = 2;  ///< n-th layer of it reads the image
  std::int64_t queries = 32, positions = 512;
  double dropout = 0.1;

  [[nodiscard]] std::int64_t tokens() const { return (side / patch) * (side / patch) + 1; }
  [[nodiscard]] std::string named(std::string_view part) const {
    return std::string(instructs ? "InstructBlip" : "Blip2").append(part);
  }
};

inline Model read(ConfigFields& config) {
  Model m;
  m.queries = config.size_or({"num_query_tokens"}, 32);
  m.instructs = config.text({"model_type"}, "blip-2") == "instructblip";
  if (ConfigFields* vision = vision_fields(config)) {
    m.tower = encoder_sizes(*vision, {.width = 1408, .inner = 6144, .layers = 39, .heads = 16});
    m.side = vision->size_or({"image_size"}, 224);
    m.patch = vision->size_or({"patch_size"}, 14);
    m.channels = vision->size_or({"num_channels"}, 3);
    m.bias = vision->flag("qkv_bias", true);
    vision->ignore({"dropout", "initializer_factor", "projection_dim"});
    if (m.side > model::Images::kLargestSide || m.side < m.patch) vision->fail("is no size of an image", "image_size");
  }
  if (ConfigFields* former = config.part_or_usual("qformer_config")) {
    m.former = encoder_sizes(*former, {.width = 768, .inner = 3072, .layers = 12, .heads = 12});
    m.former.vocabulary = former->size_or({"vocab_size"}, 30522);
    m.former.attention_dropout = former->number({"attention_probs_dropout_prob"}, 0.1);
    m.every = former->size_or({"cross_attention_frequency"}, 2);
    m.positions = former->size_or({"max_position_embeddings"}, 512);
    m.dropout = former->number({"hidden_dropout_prob"}, 0.1);
    former->ignore({"classifier_dropout", "use_qformer_text_input", "encoder_hidden_size"});
  }
  if (!config.flag("use_decoder_only_language_model", true))
    config.fail("is true in this model: T5 is not known in it", "use_decoder_only_language_model");
  config.ignore({"initializer_factor", "image_text_hidden_size", "image_token_index"});
  return m;
}

inline Tensor tower(Forward& f, const Model& m, std::int64_t images) {
  const InModule outer(f, "vision_model", m.named("VisionModel"));
  const DecoderSizes& s = m.tower;
  Tensor hidden = 0;
  {
    const InModule inside(f, "embeddings", m.named("VisionEmbeddings"));
    const Tensor first = f.parameter("class_embedding", {1, 1, s.width});
    const Tensor pixels = f.rows_input("pixel_values", images, {m.channels, m.side, m.side});
    const Tensor cut = cut_patches(f, "patch_embedding", pixels, {m.channels, s.width, m.patch});
    const std::vector<core::Dim> each = {core::Dim::batch(images), core::Dim::fixed(-1), core::Dim::fixed(-1)};
    const Tensor all = f.concatenate({f.call("expand", {first}, {{"shape", each}}), cut}, 1);
    hidden = f.add(all, f.parameter("position_embedding", {1, m.tokens(), s.width}));
  }
  {
    const InModule inside(f, "encoder", m.named("Encoder"));
    hidden = stack(f, "layers", m.named("EncoderLayer"), s.layers, hidden, [&](Tensor x, std::int64_t) {
      const Tensor normed = f.layer_norm("layer_norm1", x, s.width);
      Tensor mixed = 0;
      {
        const InModule attention(f, "self_attn", m.named("Attention"));
        const Tensor packed = f.linear("qkv", normed, s.width, 3 * s.width, {.bias = m.bias});
        const std::vector<Tensor> parts = f.split(packed, 2, {s.width, s.width, s.width});
        const auto heads = [&](Tensor part) { return split_heads(f, part, s.width / s.heads); };
        mixed = attend(f, {heads(parts[0]), heads(parts[1]), heads(parts[2])},
                       {.dropout = s.attention_dropout, .causal = false});
        mixed = f.linear("projection", mixed, s.width, s.width);
      }
      const Tensor attended = f.add(mixed, x);
      const Tensor again = f.layer_norm("layer_norm2", attended, s.width);
      return f.add(feed_forward(f, s, again, {.class_name = m.named("MLP")}), attended);
    });
  }
  return f.layer_norm("post_layernorm", hidden, s.width);
}

/// Attention of the Q-Former to itself or to the image, written out, with the norm behind it.
inline Tensor former_attention(Forward& f, const Model& m, std::string_view name, Tensor input,
                               std::optional<Tensor> image) {
  const InModule outer(f, name, m.named("QFormerAttention"));
  const DecoderSizes& s = m.former;
  const Tensor source = image.value_or(input);
  const std::int64_t read = image ? m.tower.width : s.width;
  Tensor mixed = 0;
  {
    const InModule inside(f, "attention", m.named("QFormerMultiHeadAttention"));
    const auto heads = [&](std::string_view of, Tensor from, std::int64_t in) {
      return split_heads(f, f.linear(of, from, in, s.width), s.width / s.heads);
    };
    const Tensor key = heads("key", source, read);
    const Tensor value = heads("value", source, read);
    const Tensor query = heads("query", input, s.width);
    const Tensor scaled = f.scale(f.call("matmul", {query, f.permute(key, {0, 1, 3, 2})}));
    const Tensor scores = image || m.instructs ? f.call("add", {scaled}) : f.add(scaled, When::masked_or_before_5_0);
    const Tensor weights = f.call("softmax", {scores});
    const Tensor kept = f.dropout("dropout", weights, s.attention_dropout);
    mixed = f.leave_function(merge_heads(f, f.call("matmul", {kept, value})), {scores, weights});
  }
  const InModule output(f, "output", m.named("QFormerSelfOutput"));
  const Tensor made = f.dropout("dropout", f.linear("dense", mixed, s.width, s.width), m.dropout);
  return f.layer_norm("LayerNorm", f.add(made, input), s.width);
}

inline Tensor former_feed_forward(Forward& f, const Model& m, const std::string& kind, Tensor input) {
  const DecoderSizes& s = m.former;
  Tensor wide = 0;
  {
    const InModule inside(f, "intermediate" + kind, m.named("QFormerIntermediate"));
    wide = f.activation("intermediate_act_fn", f.linear("dense", input, s.width, s.inner), s.activation);
  }
  const InModule inside(f, "output" + kind, m.named("QFormerOutput"));
  const Tensor dropped = f.dropout("dropout", f.linear("dense", wide, s.inner, s.width), m.dropout);
  return f.layer_norm("LayerNorm", f.add(dropped, input), s.width);
}

inline Tensor former(Forward& f, const Model& m, std::int64_t images, Tensor image) {
  const InModule outer(f, "qformer", m.named("QFormerModel"));
  const DecoderSizes& s = m.former;
  const std::vector<core::Dim> each = {core::Dim::batch(images), core::Dim::fixed(-1), core::Dim::fixed(-1)};
  Tensor hidden = f.call("expand", {f.parameter("query_tokens", {1, m.queries, s.width})}, {{"shape", each}});
  if (m.instructs) {
    const InModule inside(f, "embeddings", m.named("QFormerEmbeddings"));
    const Tensor ids = f.fixed_token_input("qformer_input_ids", images * kInstruction);
    const Tensor rows =
        f.unflatten(f.embedding("word_embeddings", ids, s.vocabulary, s.width), 1, {images, kInstruction});
    const Tensor places = f.parameter("position_embeddings.weight", {m.positions, s.width});
    const Tensor words = f.add(f.flatten(rows, 0, 1), f.call("clone", {f.slice(places, 0, 0, kInstruction)}));
    const Tensor normed = f.layer_norm("layernorm", f.concatenate({hidden, words}, 1), s.width);
    hidden = f.dropout("dropout", normed, m.dropout);
  }
  if (!m.instructs) hidden = f.dropout("dropout", f.layer_norm("layernorm", hidden, s.width), m.dropout);
  const InModule inside(f, "encoder", m.named("QFormerEncoder"));
  hidden = stack(f, "layer", m.named("QFormerLayer"), s.layers, hidden, [&](Tensor x, std::int64_t index) {
    const Tensor attended = former_attention(f, m, "attention", x, {});
    Tensor queries = f.slice(attended, 1, 0, m.queries);
    if (index % m.every == 0) queries = former_attention(f, m, "crossattention", queries, image);
    if (!m.instructs) return f.leave_function(former_feed_forward(f, m, "_query", queries), {attended, queries});
    const Tensor words = former_feed_forward(f, m, "", f.slice(attended, 1, m.queries, Forward::kRest));
    const Tensor made = f.concatenate({former_feed_forward(f, m, "_query", queries), words}, 1);
    return f.leave_function(made, {attended, queries});
  });
  return f.slice(hidden, 1, 0, m.queries);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures pictures = pictures_of(f);
  const Model model = read(config);
  // The text model's own config ties its head; the outer field says false beside tied ones.
  if (config.has("text_config")) config.replace(R"({"tie_word_embeddings": null})");
  ConfigFields* text = text_fields(config, model.instructs ? "llama" : "opt");
  if (text == nullptr || !config.status()) return;
  const std::int64_t width = text->size({"hidden_size"});
  if (model.instructs) f.remark("instructions of 32 tokens, which the Q-Former reads");
  tell_pictures(f, pictures, pictures.seen() * model.queries);
  write_text(f, *text, head, whole_text("TextModel"), pictures, [&](Forward& to) {
    const Tensor image = tower(to, model, pictures.seen());
    to.hand_out(image);
    const Tensor read = former(to, model, pictures.seen(), image);
    to.hand_out(read);
    return to.linear("language_projection", read, model.former.width, width);
  });
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{"Blip2", "blip-2", "", kAlwaysTied}, {"InstructBlip", "instructblip"}});
inline constexpr auto kTowers = std::to_array<PublishedHeads>({{1408, 16}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::string cut = "vision_model.embeddings.patch_embedding";
  const std::string layer = "qformer.encoder.layer.";
  t.open("vision_config");
  t.size("hidden_size", cut, "out_channels");
  t.size("patch_size", cut, "kernel_size");
  t.count("num_hidden_layers", "vision_model.encoder.layers");
  t.size("intermediate_size", "vision_model.encoder.layers.0.mlp.fc1", "out_features");
  t.flag("qkv_bias", "vision_model.encoder.layers.0.self_attn.qkv");
  t.heads_of_width({.published = kTowers}, t.value(cut, "out_channels").value_or(0));
  t.close();
  t.open("qformer_config");
  t.size("hidden_size", layer + "0.attention.attention.query", "out_features");
  t.count("num_hidden_layers", "qformer.encoder.layer");
  t.size("intermediate_size", layer + "0.intermediate_query.dense", "out_features");
  t.set("cross_attention_frequency", t.has(layer + "1.crossattention") ? 1 : 2);
  t.size("vocab_size", "qformer.embeddings.word_embeddings", "num_embeddings");
  t.size("max_position_embeddings", "qformer.embeddings.position_embeddings", "num_embeddings");
  t.heads_of_width({}, t.value(layer + "0.attention.attention.query", "out_features").value_or(0));
  t.dropout("hidden_dropout_prob", layer + "0.output_query.dropout");
  t.dropout("attention_probs_dropout_prob", layer + "0.attention.attention.dropout");
  t.close();
  tree_text(t, {.path = "language_model.model"});
}

inline constexpr auto kBlocks = names<"OPTDecoderLayer", "LlamaDecoderLayer", "Blip2EncoderLayer", "Blip2QFormerLayer",
                                      "InstructBlipEncoderLayer", "InstructBlipQFormerLayer">;
inline constexpr Architecture kArchitecture = {.name = "blip2",
                                               .model_types = names<"blip-2", "instructblip">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .holds_text_model = true,
                                               .blocks = kBlocks};

}  // namespace blip2

}  // namespace gpumem::architectures
