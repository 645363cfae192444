// Swin: attention within windows, which every other block shifts, in stages of fewer and wider patches. Images whose
// patches do not fill the windows are not known.
// Source: transformers 4.48, models/swin/modeling_swin.py.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/image_tokens.hpp"

namespace gpumem::architectures {

namespace swin {

/// One stage: its blocks work on a square of `side` patches, `width` wide.
struct Stage {
  std::int64_t blocks = 1;
  std::int64_t heads = 1;
  std::int64_t side = 1;
  std::int64_t width = 1;
  std::int64_t window = 1;
};

struct Model {
  std::vector<Stage> stages;
  std::int64_t side = 224;
  std::int64_t patch = 4;
  std::int64_t channels = 3;
  std::int64_t labels = 2;
  double ratio = 4.0;  ///< of the feed-forward layers' inner width
  double dropout = 0.0;
  double attention_dropout = 0.0;
  double path_dropout = 0.1;
  std::string_view activation = "gelu";
  bool bias = true;
  bool absolute = false;  ///< a table of absolute positions too
};

/// The whole numbers of a list, each from 1 to `most`.
inline std::vector<std::int64_t> list_of(ConfigFields& config, std::string_view name, std::vector<std::int64_t> usual,
                                         std::int64_t most) {
  const core::JsonValue* list = config.find(name);
  if (list == nullptr) return usual;
  std::vector<std::int64_t> values;
  for (const core::JsonValue& each : list->items()) {
    const bool sound = each.is(core::JsonValue::Kind::integer) && each.integer() >= 1 && each.integer() <= most;
    values.push_back(sound ? each.integer() : 0);
  }
  const bool sound = list->is(core::JsonValue::Kind::list) && !values.empty() && values.size() <= 8 &&
                     std::find(values.begin(), values.end(), 0) == values.end();
  if (sound) return values;
  config.fail("must be a list of one to eight whole numbers from 1 to " + std::to_string(most), name);
  return usual;
}

inline void read_stages(ConfigFields& config, Model& model) {
  constexpr std::int64_t kMostHeads = 4096;
  const std::vector<std::int64_t> depths = list_of(config, "depths", {2, 2, 6, 2}, ConfigFields::kMostLayers);
  const std::vector<std::int64_t> heads = list_of(config, "num_heads", {3, 6, 12, 24}, kMostHeads);
  const std::int64_t width = config.size_or({"embed_dim"}, 96);
  const std::int64_t window = config.size_or({"window_size"}, 7);
  constexpr std::int64_t kWidest = 1 << 20;
  constexpr std::int64_t kWidestWindow = 512;
  if (window > kWidestWindow) return config.fail("is too wide", "window_size");
  if (width > kWidest) return config.fail("is too wide", "embed_dim");
  if (depths.size() != heads.size()) return config.fail("has not as many stages as depths", "num_heads");
  Stage stage = {.side = model.side / model.patch, .width = width};
  for (std::size_t at = 0; at < depths.size(); ++at) {
    if (at > 0) stage = {.side = stage.side / 2, .width = stage.width * 2};
    stage.blocks = depths[at];
    stage.heads = heads[at];
    stage.window = std::min(window, stage.side);
    if (stage.side < 1 || stage.side % stage.window != 0)
      return config.fail("does not divide the patches of each stage", "window_size");
    if (at + 1 < depths.size() && stage.side % 2 != 0)
      return config.fail("leaves a stage an odd number of patches", "image_size");
    if (stage.width % stage.heads != 0) return config.fail("does not divide the width of its stage", "num_heads");
    model.stages.push_back(stage);
  }
}

inline Model read(ConfigFields& config) {
  Model model;
  model.side = config.size_or({"image_size"}, 224);
  model.patch = config.size_or({"patch_size"}, 4);
  model.channels = config.size_or({"num_channels"}, 3);
  model.labels = labels_of(config);
  model.ratio = std::clamp(config.number({"mlp_ratio"}, 4.0), 0.01, 64.0);
  model.dropout = config.number({"hidden_dropout_prob"}, 0.0);
  model.attention_dropout = config.number({"attention_probs_dropout_prob"}, 0.0);
  model.path_dropout = config.number({"drop_path_rate"}, 0.1);
  model.activation = config.text({"hidden_act"}, "gelu");
  model.bias = config.flag("qkv_bias", true);
  model.absolute = config.flag("use_absolute_embeddings", false);
  constexpr std::int64_t kWidestImage = 1 << 16;
  if (model.side > kWidestImage) config.fail("is too large", "image_size");
  if (model.side % model.patch != 0) config.fail("does not divide image_size", "patch_size");
  read_stages(config, model);
  config.ignore(
      {"encoder_stride", "path_norm", "hidden_size", "num_layers", "out_features", "out_indices", "stage_names"});
  return model;
}

inline Tensor embeddings(Forward& f, const Model& model) {
  const InModule inside(f, "embeddings", "SwinEmbeddings");
  const std::int64_t width = model.stages.front().width;
  const std::int64_t patches = model.side / model.patch;
  const Tensor image = f.sample_input("pixel_values", {model.channels, model.side, model.side});
  Tensor rows = 0;
  {
    const InModule cutter(f, "patch_embeddings", "SwinPatchEmbeddings");
    rows = cut_patches(f, "projection", image, {model.channels, width, model.patch});
  }
  Tensor normed = f.layer_norm("norm", rows, width);
  if (model.absolute) normed = f.add(normed, f.parameter("position_embeddings", {1, patches * patches, width}));
  return f.dropout("dropout", normed, model.dropout);
}

/// [N, side, side, C] -> [N windows, window window, C], copied.
inline Tensor windows_of(Forward& f, const Stage& stage, Tensor image) {
  const std::int64_t across = stage.side / stage.window;
  const Tensor cut = f.unflatten(f.unflatten(image, 1, {across, stage.window}), 3, {across, stage.window});
  return f.flatten(f.flatten(f.contiguous(f.permute(cut, {0, 1, 3, 2, 4, 5})), 0, 2), 1, 2);
}

/// And back.
inline Tensor image_of(Forward& f, const Stage& stage, Tensor windows) {
  const std::int64_t across = stage.side / stage.window;
  const Tensor parted = f.unflatten(f.unflatten(windows, 1, {stage.window, stage.window}), 0, {-1, across, across});
  const Tensor rows = f.contiguous(f.permute(parted, {0, 1, 3, 2, 4, 5}));
  return f.flatten(f.flatten(rows, 1, 2), 2, 3);
}

inline Tensor attention(Forward& f, const Model& model, const Stage& stage, Tensor input, std::optional<Tensor> mask) {
  const InModule outer(f, "attention", "SwinAttention");
  const std::int64_t width = stage.width;
  Tensor mixed = 0;
  {
    const InModule inside(f, "self", "SwinSelfAttention");
    const Tensor first = f.linear("query", input, width, width, {.bias = model.bias});
    const auto heads = [&](Tensor rows) { return split_heads(f, rows, width / stage.heads); };
    const Tensor key = heads(f.linear("key", input, width, width, {.bias = model.bias}));
    const Tensor value = heads(f.linear("value", input, width, width, {.bias = model.bias}));
    const Tensor query = heads(first);
    const Tensor scores = f.scale(f.call("matmul", {query, f.permute(key, {0, 1, 3, 2})}));
    const std::int64_t distances = (2 * stage.window - 1) * (2 * stage.window - 1);
    const Tensor table = f.parameter("relative_position_bias_table", {distances, stage.heads});
    Tensor biased = f.add(scores, window_bias(f, table, stage.window));
    if (mask) {
      const std::int64_t windows = (stage.side / stage.window) * (stage.side / stage.window);
      const Tensor parted = f.unflatten(biased, 0, {-1, windows});
      biased = f.flatten(f.add(parted, f.call("unsqueeze", {*mask}, {{"dim", std::int64_t{2}}})), 0, 1);
    }
    const Tensor weights = f.dropout("dropout", f.call("softmax", {biased}), model.attention_dropout);
    mixed = f.leave_function(merge_heads(f, f.call("matmul", {weights, value})), {biased});
  }
  const InModule output(f, "output", "SwinSelfOutput");
  return f.dropout("dropout", f.linear("dense", mixed, width, width), model.dropout);
}

inline Tensor block(Forward& f, const Model& model, const Stage& stage, Tensor input, bool shifted,
                    double path_dropout) {
  const std::int64_t width = stage.width;
  const auto rolled = [&](Tensor image) { return shifted ? f.call("roll", {image}) : image; };
  const Tensor normed = f.layer_norm("layernorm_before", input, width);
  // maybe_pad copies though there is nothing to pad.
  const Tensor image = f.call("clone", {f.unflatten(normed, 1, {stage.side, stage.side})});
  const Tensor moved = rolled(image);
  const Tensor windows = windows_of(f, stage, moved);
  // Of tokens that the shift brought together, [1, windows, window window, window window].
  std::optional<Tensor> mask;
  const std::int64_t across = stage.side / stage.window;
  if (shifted) mask = f.call("relative_zeros", {windows}, {{"heads", across * across}});
  const Tensor mixed = attention(f, model, stage, windows, mask);
  const Tensor joined = image_of(f, stage, mixed);
  const Tensor returned = rolled(joined);
  Tensor back = f.flatten(returned, 1, 2);
  if (path_dropout > 0.0) back = f.call("stochastic_depth", {f.scale(back)}, {{"p", path_dropout}});
  const Tensor attended = f.add(input, back);
  const Tensor again = f.layer_norm("layernorm_after", attended, width);
  const auto inner = static_cast<std::int64_t>(model.ratio * static_cast<double>(width));
  Tensor wide = 0;
  {
    const InModule inside(f, "intermediate", "SwinIntermediate");
    wide = f.activation("intermediate_act_fn", f.linear("dense", again, width, inner), model.activation);
  }
  const InModule output(f, "output", "SwinOutput");
  const Tensor made = f.add(attended, f.dropout("dropout", f.linear("dense", wide, inner, width), model.dropout));
  // shortcut, shifted_hidden_states, hidden_states_windows, attention_output and what these become are named to the
  // end.
  return mask ? f.leave_function(made, {input, moved, windows, mixed, joined, returned, *mask})
              : f.leave_function(made, {input, moved, windows, mixed, joined});
}

/// Four patches become one of twice the width.
inline Tensor merged(Forward& f, const Stage& stage, Tensor input) {
  const InModule inside(f, "downsample", "SwinPatchMerging");
  const Tensor image = f.unflatten(input, 1, {stage.side, stage.side});
  const auto every_other = [&](Tensor of, std::int64_t dim, std::int64_t start) {
    return f.call("slice", {of}, {{"dim", dim}, {"start", start}, {"step", std::int64_t{2}}});
  };
  const auto part = [&](std::int64_t row, std::int64_t column) {
    return every_other(every_other(image, 1, row), 2, column);
  };
  const Tensor first = part(0, 0);
  const Tensor second = part(1, 0);
  const Tensor third = part(0, 1);
  const Tensor together = f.flatten(f.concatenate({first, second, third, part(1, 1)}, 3), 1, 2);
  const Tensor normed = f.layer_norm("norm", together, 4 * stage.width);
  return f.linear("reduction", normed, 4 * stage.width, 2 * stage.width, {.bias = false});
}

inline Tensor encoder(Forward& f, const Model& model, Tensor hidden) {
  const InModule inside(f, "encoder", "SwinEncoder");
  const InModule list(f, "layers", "ModuleList");
  std::int64_t all = 0;
  for (const Stage& stage : model.stages) all += stage.blocks;
  std::int64_t before = 0;
  // A stage returns what it merged, too, and the loop holds both until the next stage has returned (layer_outputs).
  std::optional<Tensor> unmerged;
  for (std::size_t at = 0; at < model.stages.size() && !f.failed(); ++at) {
    const Stage& stage = model.stages[at];
    const Tensor read = hidden;  // which the loop names, too
    const Tensor named = std::exchange(unmerged, std::nullopt).value_or(read);
    {
      const InModule one(f, std::to_string(at), "SwinStage");
      hidden = stack(f, "blocks", "SwinLayer", stage.blocks, hidden, [&](Tensor x, std::int64_t index) {
        const double share =
            static_cast<double>(before + index) / static_cast<double>(std::max<std::int64_t>(all - 1, 1));
        const bool shifted = index % 2 == 1 && stage.side > stage.window && stage.window > 1;
        return block(f, model, stage, x, shifted, share * model.path_dropout);
      });
      before += stage.blocks;
      if (at + 1 < model.stages.size()) {
        unmerged = hidden;
        hidden = merged(f, stage, hidden);
      }
    }
    hidden = f.leave_function(hidden, {read, named});
  }
  return hidden;
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  check_classifies(config, head);
  if (!config.status()) return;
  const std::int64_t width = model.stages.back().width;
  Tensor pooled = 0;
  {
    const InModule inside(f, "swin", "SwinModel");
    const Tensor hidden = f.layer_norm("layernorm", encoder(f, model, embeddings(f, model)), width);
    if (head == Head::none) f.hand_out(hidden);
    pooled = f.call("mean", {hidden}, {{"dim", std::int64_t{1}}});
  }
  if (head == Head::none) return;
  f.linear("classifier", pooled, width, model.labels);
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Swin", "swin", "swin"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kHeadWidth = 32;
  const std::string projection = "embeddings.patch_embeddings.projection";
  t.size("num_channels", projection, "in_channels");
  t.size("patch_size", projection, "kernel_size");
  t.size("embed_dim", projection, "out_channels");
  std::int64_t width = t.value(projection, "out_channels").value_or(0);
  std::string depths;
  std::string heads;
  constexpr std::int64_t kMostStages = 16;  // more than a config may have
  const std::int64_t stages = std::min(t.count_of("encoder.layers"), kMostStages);
  for (std::int64_t stage = 0; stage < stages; ++stage, width *= 2) {
    const std::string comma = stage == 0 ? "" : ", ";
    depths += comma + std::to_string(t.count_of("encoder.layers." + std::to_string(stage) + ".blocks"));
    heads += comma + std::to_string(std::max<std::int64_t>(width / kHeadWidth, 1));
  }
  t.set_text("depths", "[" + depths + "]");
  t.set_text("num_heads", "[" + heads + "]");
  t.assume("heads of width 32 and windows of 7, as most published models have");
  t.flag("qkv_bias", "encoder.layers.0.blocks.0.attention.self.query");
  t.size("num_labels", "/classifier", "out_features");
  t.image_size("image_size");
}

inline constexpr Architecture kArchitecture = {.name = "swin",
                                               .model_types = names<"swin">,
                                               .usual_head = Head::sequence_classification,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .blocks = names<"SwinStage">};

}  // namespace swin

// ConvNeXt and ConvNeXt V2: blocks of a convolution of one channel each and two linear layers; V2 norms the response
// of each channel in place of a learned scale. Source: transformers 5.5, models/convnext/modeling_convnext.py and
// convnextv2; releases before 5 write the norms of [N, C, H, W] out.

namespace convnext {

struct Model {
  bool second = false;
  std::vector<std::int64_t> widths;
  std::vector<std::int64_t> depths;
  PictureSize picture;
  std::int64_t patch = 4;
  std::int64_t channels = 3;
  std::int64_t labels = 2;
  bool scales = true;
  double path_dropout = 0.0;
  std::string_view activation = "gelu";

  [[nodiscard]] std::string named(std::string_view part) const {
    return std::string(second ? "ConvNextV2" : "ConvNext").append(part);
  }
};

inline Model read(ConfigFields& config) {
  constexpr std::int64_t kWidest = 1 << 16;
  Model m;
  m.second = config.text({"model_type"}, "convnext") == "convnextv2";
  m.widths = swin::list_of(config, "hidden_sizes", {96, 192, 384, 768}, kWidest);
  m.depths = swin::list_of(config, "depths", {3, 3, 9, 3}, ConfigFields::kMostLayers);
  m.picture = picture_read(config, 224);
  m.patch = config.size_or({"patch_size"}, 4);
  m.channels = config.size_or({"num_channels"}, 3);
  m.labels = labels_of(config);
  m.scales = !m.second && config.number({"layer_scale_init_value"}, 1e-6) > 0.0;
  m.path_dropout = config.number({"drop_path_rate"}, 0.0);
  m.activation = config.text({"hidden_act"}, "gelu");
  config.ignore({"num_stages", "stage_names", "out_features", "out_indices", "layer_scale_init_value"});
  if (m.widths.size() != m.depths.size()) config.fail("has not as many stages as depths", "hidden_sizes");
  const std::int64_t least = std::min(m.picture.width, m.picture.height);
  const std::int64_t last = std::int64_t{1} << (m.depths.size() - 1);
  if (m.patch > least || least / m.patch < last) config.fail("leaves a stage no pixels", "patch_size");
  return m;
}

/// A norm of the channels of [N, C, H, W].
inline Tensor norm_of_image(Forward& f, std::string_view name, Tensor image, std::int64_t width) {
  return f.permute(f.layer_norm(name, f.permute(image, {0, 2, 3, 1}), width), {0, 3, 1, 2});
}

/// weight * (x * (norm / mean of norms)) + bias + x, of [N, H, W, C].
inline Tensor normed_response(Forward& f, const Model& m, Tensor input, std::int64_t width) {
  const InModule inside(f, "grn", m.named("GRN"));
  const Tensor norms = f.call("vector_norm", {input}, {{"dim", Sizes{1, 2}}, {"keepdim", true}});
  const Tensor mean = f.call("mean", {norms}, {{"dim", std::int64_t{3}}, {"keepdim", true}});
  const Tensor each = f.call("div", {norms, f.call("add", {mean})});
  const Tensor weight = f.parameter("weight", {1, 1, 1, width});
  const Tensor bias = f.parameter("bias", {1, 1, 1, width});
  const Tensor shifted = f.add(f.multiply(weight, f.multiply(input, each)), bias);
  return f.leave_function(f.add(shifted, input), {norms, each});
}

inline Tensor block(Forward& f, const Model& m, Tensor input, std::int64_t width, double path_dropout) {
  const Convolution own = {.in = width, .out = width, .kernel = 7, .padding = 3, .groups = width};
  const Tensor rows = f.permute(convolution(f, "dwconv", input, own), {0, 2, 3, 1});
  const Tensor wide = f.linear("pwconv1", f.layer_norm("layernorm", rows, width), width, 4 * width);
  Tensor open = f.activation("act", wide, m.activation);
  if (m.second) open = normed_response(f, m, open, 4 * width);
  Tensor made = f.linear("pwconv2", open, 4 * width, width);
  if (m.scales) made = f.multiply(f.parameter("layer_scale_parameter", {width}), made);
  Tensor image = f.permute(made, {0, 3, 1, 2});
  if (path_dropout > 0.0) image = f.call("stochastic_depth", {f.scale(image)}, {{"p", path_dropout}});
  return f.add(input, image);
}

inline Tensor encoder(Forward& f, const Model& m, Tensor image) {
  const InModule inside(f, "encoder", m.named("Encoder"));
  const InModule list(f, "stages", "ModuleList");
  std::int64_t all = -1;
  for (const std::int64_t depth : m.depths) all += depth;
  std::int64_t before = 0;
  for (std::size_t at = 0; at < m.depths.size() && !f.failed(); ++at) {
    const InModule stage(f, std::to_string(at), m.named("Stage"));
    const std::int64_t width = m.widths[at];
    const std::int64_t read = m.widths[at == 0 ? 0 : at - 1];
    if (at > 0) {
      const InModule smaller(f, "downsampling_layer", "ModuleList");
      const Tensor normed = norm_of_image(f, "0", image, read);
      image = convolution(f, "1", normed, {.in = read, .out = width, .kernel = 2, .stride = 2});
    }
    image = stack(f, "layers", m.named("Layer"), m.depths[at], image, [&](Tensor x, std::int64_t index) {
      const double share = all > 0 ? static_cast<double>(before + index) / static_cast<double>(all) : 0.0;
      return block(f, m, x, width, share * m.path_dropout);
    });
    before += m.depths[at];
  }
  return image;
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model m = read(config);
  check_classifies(config, head);
  if (!config.status()) return;
  Tensor pooled = 0;
  Tensor last = 0;
  {
    const InModule inside(f, m.second ? "convnextv2" : "convnext", m.named("Model"));
    Tensor image = f.sample_input("pixel_values", {m.channels, m.picture.height, m.picture.width});
    {
      const InModule embeddings(f, "embeddings", m.named("Embeddings"));
      const Convolution cut = {.in = m.channels, .out = m.widths[0], .kernel = m.patch, .stride = m.patch};
      image = norm_of_image(f, "layernorm", convolution(f, "patch_embeddings", image, cut), m.widths[0]);
    }
    const Tensor embedded = image;
    image = encoder(f, m, image);
    if (head == Head::none) f.hand_out(image);
    pooled = f.layer_norm("layernorm", f.call("mean", {image}, {{"dim", Sizes{2, 3}}}), m.widths.back());
    pooled = f.leave_function(pooled, {embedded});
    last = image;
  }
  if (head == Head::none) return;
  f.leave_function(f.linear("classifier", pooled, m.widths.back(), m.labels), {last});
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{"ConvNext", "convnext", "convnext"}, {"ConvNextV2", "convnextv2", "convnextv2"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kMostStages = 16;  // more than a config may have
  std::vector<std::int64_t> depths;
  std::vector<std::int64_t> widths;
  const std::int64_t stages = std::min(t.count_of("encoder.stages"), kMostStages);
  std::string last;
  for (std::int64_t at = 0; at < stages; ++at) {
    const std::string layers = "encoder.stages." + std::to_string(at) + ".layers";
    depths.push_back(t.count_of(layers));
    widths.push_back(t.value(layers + ".0.dwconv", "out_channels").value_or(1));
    last = layers + "." + std::to_string(depths.back() - 1);
  }
  t.list("depths", depths);
  t.list("hidden_sizes", widths);
  t.size("num_channels", "embeddings.patch_embeddings", "in_channels");
  t.size("patch_size", "embeddings.patch_embeddings", "kernel_size");
  t.dropout("drop_path_rate", last + ".drop_path");
  t.activation("hidden_act", last + ".act");
  t.size("num_labels", "/classifier", "out_features");
  t.image_size("image_size");
}

inline constexpr Architecture kArchitecture = {.name = "convnext",
                                               .model_types = names<"convnext", "convnextv2">,
                                               .usual_head = Head::sequence_classification,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .blocks = names<"ConvNextLayer", "ConvNextV2Layer">};

}  // namespace convnext

}  // namespace gpumem::architectures
