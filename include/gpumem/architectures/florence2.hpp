// Florence-2: DaViT, whose stages of convolutions have blocks that attend within windows and blocks that attend between
// channels; a mean of all places beside the places themselves; and BART, whose encoder reads these among the words. A
// picture is always resized to 768 x 768 pixels. The decoder gets the tokens of a sample that are no image's: prompt
// and answer are not told apart.
// The config that Microsoft publishes names the tower's fields otherwise ("dim_embed"); the code beside it writes
// attention within windows out, and puts the images' tokens in front of the words.
// Source: transformers 4.56 to 5.17, models/florence2/modeling_florence2.py, configuration_florence2.py,
// processing_florence2.py; microsoft/Florence-2-base on HuggingFace, modeling_florence2.py.
#pragma once

#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/bart_parts.hpp"
#include "gpumem/architectures/image_tokens.hpp"
#include "gpumem/architectures/vision_language.hpp"

namespace gpumem::architectures {

namespace florence2 {

/// Of a picture (preprocessor_config.json of every published checkpoint).
inline constexpr std::int64_t kSide = 768;

struct Stage {
  std::int64_t side = 1;  ///< of its images
  std::int64_t in = 3;
  std::int64_t width = 1;
  std::int64_t kernel = 3;
  std::int64_t step = 2;
  std::int64_t padding = 1;
  bool norm_first = false;
  std::int64_t heads = 1;
  std::int64_t groups = 1;
  std::int64_t blocks = 1;
};

struct Model {
  bool published = false;  ///< its fields are the publisher's
  std::vector<Stage> stages;
  std::int64_t window = 12;
  double path_dropout = 0.1;
  std::int64_t ratio = 4;
  bool bias = true;
  std::string_view activation = "gelu";
  std::int64_t projected = 1024;
  std::int64_t rows = 50;     ///< of the table of positions
  std::int64_t frames = 100;  ///< that the buffer of times is for
  bart::Model text;

  [[nodiscard]] std::int64_t places() const { return stages.back().side * stages.back().side; }
  [[nodiscard]] std::int64_t tokens() const { return places() + 1; }
  [[nodiscard]] std::int64_t depth() const {
    std::int64_t blocks = 0;
    for (const Stage& stage : stages) blocks += stage.blocks;
    return blocks;
  }
};

/// Which stages have their norm in front of their convolution.
inline std::vector<bool> norms_first(ConfigFields& config, std::size_t stages) {
  using Kind = core::JsonValue::Kind;
  std::vector<bool> first(stages, true);
  if (stages > 0) first[0] = false;
  const core::JsonValue* list = config.find("patch_prenorm");
  if (list == nullptr) return first;
  first.clear();
  if (list->is(Kind::list)) {
    for (const core::JsonValue& entry : list->items()) {
      if (entry.is(Kind::boolean)) first.push_back(entry.boolean());
    }
  }
  return first;
}

inline void read_stages(ConfigFields& config, Model& m) {
  const auto list = [&](std::string_view name, std::vector<std::int64_t> usual) {
    return config.sizes_or(name, std::move(usual));
  };
  const std::vector<std::int64_t> widths = list(m.published ? "dim_embed" : "embed_dim", {128, 256, 512, 1024});
  const std::vector<std::int64_t> heads = list("num_heads", {4, 8, 16, 32});
  const std::vector<std::int64_t> groups = list("num_groups", {4, 8, 16, 32});
  const std::vector<std::int64_t> depths = list("depths", {1, 1, 9, 1});
  const std::vector<std::int64_t> kernels = list("patch_size", {7, 3, 3, 3});
  const std::vector<std::int64_t> steps = list("patch_stride", {4, 2, 2, 2});
  const std::vector<std::int64_t> paddings = list("patch_padding", {3, 1, 1, 1});
  const std::vector<bool> first = norms_first(config, widths.size());
  const std::size_t stages = widths.size();
  const bool same = heads.size() == stages && groups.size() == stages && depths.size() == stages &&
                    kernels.size() == stages && steps.size() == stages && paddings.size() == stages &&
                    first.size() == stages;
  if (!same || stages == 0 || stages > 8)
    return config.fail("must have one entry a stage, as the other lists", "depths");
  Stage before = {.side = kSide, .width = config.size_or({"in_channels", "in_chans"}, 3)};
  for (std::size_t at = 0; at < stages; ++at) {
    Stage stage = {.in = before.width, .width = widths[at], .kernel = kernels[at], .step = steps[at]};
    stage.padding = paddings[at];
    stage.norm_first = first[at];
    stage.heads = heads[at];
    stage.groups = groups[at];
    stage.blocks = depths[at];
    stage.side = (before.side + 2 * stage.padding - stage.kernel) / stage.step + 1;
    if (stage.kernel > before.side || stage.padding > stage.kernel) config.fail("leaves no places", "patch_size");
    if (stage.width > 1 << 16) config.fail("is more than gpumem takes", "embed_dim");
    if (stage.blocks > 1024) config.fail("is more than gpumem takes", "depths");
    if (stage.width % stage.heads != 0) config.fail("does not divide the width of its stage", "num_heads");
    if (stage.width % stage.groups != 0) config.fail("does not divide the width of its stage", "num_groups");
    if (stage.side < 1 || stage.side % m.window != 0) config.fail("does not divide a stage's places", "window_size");
    if (!config.status()) return;
    m.stages.push_back(stage);
    before = stage;
  }
}

inline void read_tower(ConfigFields& config, Model& m) {
  m.window = config.size_or({"window_size"}, 12);
  m.path_dropout = config.number({"drop_path_rate"}, 0.1);
  m.ratio = config.size_or({"mlp_ratio"}, 4);
  m.bias = config.flag("qkv_bias", true);
  m.activation = config.text({"activation_function"}, "gelu");
  m.projected = config.size_or({"projection_dim"}, 1024);
  m.rows = config.size_or({"max_position_embeddings"}, 50);
  m.frames = config.size_or({"max_temporal_embeddings"}, 100);
  if (ConfigFields* positions = config.part("image_pos_embed")) {
    m.rows = positions->size_or({"max_pos_embeddings"}, m.rows);
    positions->ignore({"type"});
  }
  if (ConfigFields* times = config.part("visual_temporal_embedding")) {
    m.frames = times->size_or({"max_temporal_embeddings"}, m.frames);
    times->ignore({"type"});
  }
  if (m.ratio > 64) config.fail("is more than gpumem takes", "mlp_ratio");
  read_stages(config, m);
  config.ignore({"model_type", "enable_checkpoint", "image_feature_source"});
  if (config.status() && m.stages.back().side > m.rows) config.fail("is fewer than places", "max_position_embeddings");
}

/// Null: faults were remembered. The text model's fields are returned.
inline ConfigFields* read(ConfigFields& config, Model& m) {
  ConfigFields* tower = vision_fields(config);
  ConfigFields* text = config.part_or_usual("text_config");
  if (tower == nullptr || text == nullptr) return nullptr;
  m.published = tower->has("dim_embed");
  read_tower(*tower, m);
  const std::string_view type = text->text({"model_type"}, "bart");
  if (type != "bart" && type != "florence2_language") config.fail("must have a BART", "text_config");
  text->replace(R"({"model_type": "bart"})");
  // Of BartConfig, where fields are left out.
  text->complete(R"({"vocab_size": 50265, "d_model": 1024, "max_position_embeddings": 1024, "encoder_layers": 12,
      "decoder_layers": 12, "encoder_attention_heads": 16, "decoder_attention_heads": 16, "encoder_ffn_dim": 4096,
      "decoder_ffn_dim": 4096})");
  if (!config.status()) return nullptr;
  m.text = bart::read(*text);
  if (m.text.width != m.projected) config.fail("must be as wide as the text model", "vision_config");
  config.ignore_those_of(*text);
  config.ignore({"image_token_id", "projection_dim", "is_encoder_decoder"});
  return config.status() ? text : nullptr;
}

inline Tensor convolved(Forward& f, std::string_view name, Tensor image, const Stage& stage, bool embeds) {
  const std::int64_t in = embeds ? stage.in : stage.width;
  const std::int64_t kernel = embeds ? stage.kernel : 3;
  return f.layer(name, "Conv2d", "conv2d", {image},
                 {{"in_channels", in},
                  {"out_channels", stage.width},
                  {"kernel_size", Sizes(2, kernel)},
                  {"stride", Sizes(2, embeds ? stage.step : 1)},
                  {"padding", Sizes(2, embeds ? stage.padding : 1)},
                  {"groups", embeds ? 1 : stage.width}});
}

/// [N, side side, C] -> [N, C, side, side], a view.
inline Tensor image_of(Forward& f, const Stage& stage, Tensor rows) {
  return f.unflatten(f.permute(rows, {0, 2, 1}), 2, {stage.side, stage.side});
}

inline Tensor embedded(Forward& f, const Stage& stage, std::int64_t index, Tensor image) {
  const InModule inside(f, "convs." + std::to_string(index), "Florence2VisionConvEmbed");
  const auto normed = [&](Tensor x, std::int64_t width) {
    return f.permute(f.layer_norm("norm", f.permute(x, {0, 2, 3, 1}), width), {0, 3, 1, 2});
  };
  if (stage.norm_first) return convolved(f, "conv", normed(image, stage.in), stage, true);
  return normed(convolved(f, "conv", image, stage, true), stage.width);
}

/// Attention of the places of a window to each other: [N, side side, C].
inline Tensor within_windows(Forward& f, const Model& m, const Stage& stage, Tensor rows) {
  const InModule inside(f, "window_attn", "Florence2VisionWindowAttention");
  const std::int64_t width = stage.width;
  const std::int64_t across = stage.side / m.window;
  const std::int64_t each = width / stage.heads;
  // F.pad copies though there is nothing to pad.
  const Tensor image = f.call("clone", {f.unflatten(rows, 1, {stage.side, stage.side})});
  const Tensor parted = f.unflatten(f.unflatten(image, 1, {across, m.window}), 3, {across, m.window});
  const Tensor turned = f.contiguous(f.permute(parted, {0, 1, 3, 2, 4, 5}));
  const Tensor windows = f.flatten(f.flatten(turned, 0, 2), 1, 2);
  const std::vector<Tensor> parts =
      f.split(f.linear("qkv", windows, width, 3 * width, {.bias = m.bias}), 2, {width, width, width});
  const Heads heads = {split_heads(f, parts[0], each), split_heads(f, parts[1], each), split_heads(f, parts[2], each)};
  const Tensor mixed =
      m.published ? merge_heads(f, attended(f, heads, false)) : attend(f, heads, {.copies = false, .causal = false});
  const Tensor made = f.linear("proj", mixed, width, width);
  const Tensor joined = f.unflatten(f.unflatten(made, 1, {m.window, m.window}), 0, {-1, across, across});
  const Tensor restored = f.contiguous(f.permute(joined, {0, 1, 3, 2, 4, 5}));
  return f.flatten(f.flatten(f.flatten(restored, 1, 2), 2, 3), 1, 2);
}

/// Attention of channels to each other, which no fused kernel takes, as places stand innermost.
inline Tensor between_channels(Forward& f, const Model& m, const Stage& stage, Tensor rows) {
  const InModule inside(f, "channel_attn", "Florence2VisionChannelAttention");
  const std::int64_t width = stage.width;
  const std::vector<Tensor> parts =
      f.split(f.linear("qkv", rows, width, 3 * width, {.bias = m.bias}), 2, {width, width, width});
  const auto grouped = [&](Tensor part) {
    return f.permute(f.unflatten(part, 2, {stage.groups, width / stage.groups}), {0, 2, 3, 1});
  };
  const Tensor mixed = attended(f, {grouped(parts[0]), grouped(parts[1]), grouped(parts[2])}, false);
  const Tensor turned = f.contiguous(f.permute(mixed, {0, 2, 1, 3}));
  return f.linear("proj", f.flatten(f.permute(turned, {0, 3, 2, 1}), 2, 3), width, width);
}

/// A convolution of each channel, then `mixes` of the places as rows; the same with two linear layers. `share`: of the
/// samples whose branches are dropped.
template <typename Mixes>
Tensor half_block(Forward& f, const Model& m, const Stage& stage, Tensor image, double share, Mixes mixes) {
  const auto branch = [&](Tensor made) {
    return share > 0.0 ? f.call("stochastic_depth", {f.scale(made)}, {{"p", share}}) : made;
  };
  const auto moved = [&](std::string_view name, Tensor x) {
    return f.permute(f.flatten(f.add(convolved(f, name, x, stage, false), x), 2, 3), {0, 2, 1});
  };
  const Tensor first = moved("conv1", image);
  const Tensor mixed = f.add(first, branch(mixes(f.layer_norm("norm1", first, stage.width))));
  const Tensor second = moved("conv2", image_of(f, stage, mixed));
  const Tensor normed = f.layer_norm("norm2", second, stage.width);
  const std::int64_t inner = stage.width * m.ratio;
  Tensor fed = 0;
  {
    const InModule inside(f, "ffn", "Florence2VisionMLP");
    const Tensor open = f.activation("activation_fn", f.linear("fc1", normed, stage.width, inner), m.activation);
    fed = f.linear("fc2", open, inner, stage.width);
  }
  return image_of(f, stage, f.add(second, branch(fed)));
}

inline Tensor tower(Forward& f, const Model& m, std::int64_t pictures) {
  const InModule inside(f, "vision_tower", "Florence2VisionBackbone");
  Tensor image = f.rows_input("pixel_values", pictures, {m.stages.front().in, kSide, kSide});
  std::int64_t half = 0;
  const std::int64_t last = std::max<std::int64_t>(2 * m.depth() - 1, 1);
  const auto share = [&] { return m.path_dropout * static_cast<double>(half++) / static_cast<double>(last); };
  for (std::size_t at = 0; at < m.stages.size() && !f.failed(); ++at) {
    const Stage& stage = m.stages[at];
    image = embedded(f, stage, static_cast<std::int64_t>(at), image);
    const std::string list = "blocks." + std::to_string(at);
    image = stack(f, list, "Florence2VisionBlock", stage.blocks, image, [&](Tensor x, std::int64_t) {
      {
        const InModule block(f, "spatial_block", "Florence2VisionSpatialBlock");
        x = half_block(f, m, stage, x, share(), [&](Tensor rows) { return within_windows(f, m, stage, rows); });
      }
      const InModule block(f, "channel_block", "Florence2VisionChannelBlock");
      return half_block(f, m, stage, x, share(), [&](Tensor rows) { return between_channels(f, m, stage, rows); });
    });
  }
  return image;
}

/// The learned position of each place, rows and columns side by side: [1, C, side, side].
inline Tensor positions(Forward& f, const Model& m) {
  const InModule inside(f, "image_position_embed", "Florence2VisionLearnedAbsolutePositionEmbedding2D");
  const Stage& stage = m.stages.back();
  const std::int64_t half = stage.width / 2;
  const auto table = [&](std::string_view name, std::int64_t width, std::int64_t axis) {
    const Tensor rows = f.slice(f.parameter(std::string(name) + ".weight", {m.rows, width}), 0, 0, stage.side);
    const Tensor one = f.call("unsqueeze", {rows}, {{"dim", axis}});
    return f.call("expand", {one}, {{"shape", Sizes{stage.side, stage.side, width}}});
  };
  const Tensor rows = table("row_embeddings", half, 1);
  const Tensor both = f.concatenate({table("column_embeddings", stage.width - half, 0), rows}, 2);
  return f.call("unsqueeze", {f.permute(both, {2, 0, 1})}, {{"dim", std::int64_t{0}}});
}

inline Tensor projected(Forward& f, const Model& m, Tensor image) {
  const InModule inside(f, "multi_modal_projector", "Florence2MultiModalProjector");
  const std::int64_t width = m.stages.back().width;
  const Tensor placed = f.add(image, positions(f, m));
  const Tensor times =
      f.slice(f.constant("visual_temporal_embed.pos_idx_to_embed", {m.frames, width}, "parameters"), 0, 0, 1);
  const Tensor rows = f.add(f.permute(f.flatten(placed, 2, 3), {0, 2, 1}), times);
  const Tensor frames = f.call("unsqueeze", {rows}, {{"dim", std::int64_t{1}}});
  const Tensor of_all = f.call("mean", {frames}, {{"dim", std::int64_t{2}}});
  const Tensor both = f.concatenate({of_all, f.call("mean", {frames}, {{"dim", std::int64_t{1}}})}, 1);
  return f.layer_norm("image_proj_norm", f.linear("image_projection", both, width, m.projected, {.bias = false}),
                      m.projected);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures pictures = pictures_of(f);
  Model model;
  if (read(config, model) == nullptr) return;
  const bart::Model& text = model.text;
  if (head != Head::none && head != Head::causal_lm) {
    return config.fail("only the class that writes text, and the model without a head, are known");
  }
  if (pictures.frames > 0) return f.fail("reads no videos; leave `frames` out");
  const std::int64_t shown = pictures.count * model.tokens();
  tell_pictures(f, pictures, shown);
  if (shown > 0) f.remark("the decoder gets as many tokens as a sample has beside those of its images");
  doubt_images(f);
  Tensor decoded = 0;
  {
    const InModule inside(f, "model", "Florence2Model");
    const Tensor ids = token_ids(f);
    f.enter("language_model", "BartModel");
    const Tensor words = f.embedding("shared", ids, text.vocabulary, text.width);
    f.leave();
    const Tensor read = with_features(
        f, pictures, words, [&](Forward& to) { return projected(to, model, tower(to, model, pictures.seen())); });
    const InModule language(f, "language_model", "BartModel");
    Tensor left = 0;
    {
      const InModule side(f, "encoder", "Bart");
      left = bart::blocks(f, text, text.encoder, bart::embedded(f, text, ids, read, false));
    }
    f.hand_out(left);
    const Tensor all = f.token_input("decoder_input_ids");
    const Tensor answers = shown > 0 ? f.slice(all, 1, shown, Forward::kRest) : all;
    const InModule side(f, "decoder", "Bart");
    const Tensor written = f.tied_embedding("embed_tokens", answers, text.vocabulary, text.width);
    decoded = bart::blocks(f, text, text.decoder, bart::embedded(f, text, answers, written, true), left);
  }
  if (head == Head::none) return;
  const Tensor logits =
      f.linear("lm_head", decoded, text.width, text.vocabulary, {.bias = false, .tied = true, .returned = true});
  const Tensor labels = f.token_input("labels");
  const Tensor truth = shown > 0 ? f.slice(labels, 1, shown, Forward::kRest) : labels;
  // ForCausalLMLoss, as classes of this name have it; the publisher's code has CrossEntropyLoss in the logits' type.
  const Tensor wide = model.published ? logits : f.to(logits, "float32");
  const Tensor loss = f.call("cross_entropy", {f.flatten(wide, 0, 1), truth}, {{"keeps_type", true}});
  f.leave_function(loss, {wide, decoded});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Florence2", "florence2", "model", kAlwaysTied}});

/// The tower's stages. What no tree prints, heads and windows, is as published: a head is 32 wide.
inline void tree_stages(TreeFields& t, bool published) {
  constexpr std::int64_t kHead = 32;
  constexpr std::int64_t kMostStages = 8;
  std::vector<std::int64_t> widths, heads, depths, kernels, steps, paddings;
  const std::string conv = published ? ".proj" : ".conv";
  const std::int64_t stages = std::min(t.count_of("vision_tower.convs"), kMostStages);
  std::string first;
  for (std::int64_t at = 0; at < stages; ++at) {
    const std::string number = std::to_string(at);
    const std::string embeds = "vision_tower.convs." + number;
    widths.push_back(t.value(embeds + conv, "out_channels").value_or(1));
    heads.push_back(std::max<std::int64_t>(widths.back() / kHead, 1));
    depths.push_back(t.count_of("vision_tower.blocks." + number));
    kernels.push_back(t.value(embeds + conv, "kernel_size").value_or(1));
    steps.push_back(t.value(embeds + conv, "stride").value_or(1));
    paddings.push_back(t.value(embeds + conv, "padding").value_or(1));
    const bool norms_first = t.value(embeds + ".norm", "normalized_shape") != widths.back();
    first += std::string(first.empty() ? "" : ", ") + (norms_first ? "true" : "false");
  }
  t.size(published ? "in_chans" : "in_channels", "vision_tower.convs.0" + conv, "in_channels");
  t.list(published ? "dim_embed" : "embed_dim", widths);
  t.list("num_heads", heads);
  t.list("num_groups", heads);
  t.list("depths", depths);
  t.list("patch_size", kernels);
  t.list("patch_stride", steps);
  t.list("patch_padding", paddings);
  t.set_text("patch_prenorm", "[" + first + "]");
  t.assume("heads of width 32 in the image tower, as published models have");
}

/// What print(model) shows of transformers' class, whose tower's modules are other ones than in the code that its
/// publisher has: there the text model has a head of its own.
inline void read_tree(TreeFields& t) {
  const bool published = t.has("vision_tower.convs.0.proj");
  t.open("vision_config");
  tree_stages(t, published);
  const std::string block = "vision_tower.blocks.0.0.spatial_block.";
  const std::string projector = published ? "" : "multi_modal_projector.";
  const std::string positions = published ? "image_pos_embed" : projector + "image_position_embed";
  t.flag("qkv_bias", block + (published ? "window_attn.fn.qkv" : "window_attn.qkv"));
  if (!published) t.activation("activation_function", block + "ffn.activation_fn");
  t.size("projection_dim", projector + "image_proj_norm", "normalized_shape");
  t.size("max_position_embeddings", positions + ".row_embeddings", "num_embeddings");
  t.close();
  tree_text(t, {.type = "bart"});
  if (!published) return;
  t.take_sizes_alone();
  t.assume("the publisher's own modules have other names: their sizes are taken");
}

inline constexpr std::array<std::string_view, 1> kBlocks = {bart::kLayer};
inline constexpr Architecture kArchitecture = {.name = "florence2",
                                               .model_types = names<"florence2">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .holds_text_model = true,
                                               .blocks = kBlocks};

}  // namespace florence2

}  // namespace gpumem::architectures
