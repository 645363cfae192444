// Detection nets: a backbone whose stages feed a pyramid, heads that run on every level of it, and, of two-stage nets,
// heads that run on regions of these. The images are taken to have the size that the job gives, as the model's
// transform leaves them. What the images decide is the number of regions: training takes 512 an image for the boxes
// (fewer where there are fewer proposals), and of these at most 128, the positive ones, for masks and key points: half
// of them are planned. A one-stage net's loss is of every anchor and class: it keeps some ten tensors as large as all
// scores, of which cross entropy, which is planned, has two. Source: torchvision 0.21, torchvision.models.detection
// (faster_rcnn, mask_rcnn, keypoint_rcnn, retinanet, fcos, roi_heads, rpn), torchvision.ops.feature_pyramid_network.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gpumem/architectures/image_tokens.hpp"

namespace gpumem::architectures {

namespace detection_detail {

/// Regions of an image that the heads see: planned, fewest and most.
struct Regions {
  std::int64_t planned = 0;
  std::int64_t fewest = 0;
  std::int64_t most = 0;
};
inline constexpr Regions kBoxes = {512, 64, 512};
inline constexpr Regions kPositives = {64, 1, 128};

/// What the backbone's stages leave, one for each convolution of the pyramid that reads it: of each width the last.
inline std::vector<Tensor> stages(Forward& f, const std::vector<Module>& body, const std::vector<Module>& inner,
                                  Tensor input) {
  std::vector<std::int64_t> widths;
  widths.reserve(inner.size());
  for (const Module& block : inner) widths.push_back(block.width("in_channels").value_or(0));
  std::vector<Tensor> found(widths.size(), input);
  std::vector<bool> seen(widths.size(), false);
  std::size_t next = 0;
  for (const Module& part : body) {
    input = part.call(input);
    const std::int64_t width = f.channels(input);
    while (next + 1 < widths.size() && seen[next] && width == widths[next + 1]) ++next;
    if (next < widths.size() && width == widths[next]) {
      found[next] = input;
      seen[next] = true;
    }
  }
  const bool all = std::all_of(seen.begin(), seen.end(), [](bool each) { return each; });
  return all ? found : std::vector<Tensor>();
}

/// The top-down path: each level is the sum of its own stage, made as wide, and the next smaller level, enlarged.
inline std::vector<Tensor> merged(Forward& f, const Module& pyramid, const std::vector<Tensor>& stages) {
  const auto inner = pyramid.parts("inner_blocks");
  const auto outer = pyramid.parts("layer_blocks");
  if (stages.empty() || inner.size() != stages.size() || outer.size() != stages.size()) return {};
  std::vector<Tensor> levels(stages.size());
  Tensor last = 0;
  for (std::size_t at = stages.size(); at > 0; --at) {
    Tensor own = inner[at - 1].call(stages[at - 1]);
    if (at < stages.size()) {
      const Sizes size = {f.size(own, 2), f.size(own, 3)};
      own = f.add(own, f.call("upsample", {last}, {{"size", size}}));
    }
    last = own;
    levels[at - 1] = outer[at - 1].call(own);
  }
  return levels;
}

/// LastLevelP6P7: two convolutions more, of the last level or of the last stage; LastLevelMaxPool: every second pixel.
inline void add_levels(Forward& f, const Module& pyramid, Tensor last_stage, std::vector<Tensor>& levels) {
  const auto more = pyramid.parts("extra_blocks");
  if (more.empty()) {
    levels.push_back(
        f.call("max_pool2d", {levels.back()},
               {{"kernel_size", std::int64_t{1}}, {"stride", std::int64_t{2}}, {"padding", std::int64_t{0}}}));
    return;
  }
  const bool of_level = more[0].width("in_channels") == f.channels(levels.back());
  Tensor input = of_level ? levels.back() : last_stage;
  for (const Module& part : more) {
    const bool first = &part == &more.front();
    if (!first) input = f.call("relu", {input});
    input = part.call(input);
    levels.push_back(input);
  }
}

/// The levels of BackboneWithFPN; none if the tree is not as expected.
inline std::vector<Tensor> pyramid_of(Forward& f, const Module& backbone, Tensor input) {
  const auto body = backbone.parts("body");
  const auto pyramid = backbone.find("fpn");
  if (body.empty() || !pyramid) return {};
  const std::vector<Tensor> found = stages(f, body, pyramid->parts("inner_blocks"), input);
  std::vector<Tensor> levels = merged(f, *pyramid, found);
  if (!levels.empty()) add_levels(f, *pyramid, found.back(), levels);
  return levels;
}

/// A head on every level: convolutions, and one more for each thing that it predicts.
inline Tensor on_levels(Forward& f, const Module& head, const std::vector<Tensor>& levels) {
  Tensor output = levels.front();
  for (const Tensor level : levels) {
    Tensor seen = level;
    for (const Module& part : head.parts()) {
      const bool shared = part.name() == "conv";
      output = part.call(seen);
      if (!shared) continue;
      seen = part.is_container() ? output : f.call("relu", {output});  // torchvision before 0.12
    }
  }
  return output;
}

/// The regions that a head sees, with pixels on a side, cut from the levels that are no extra ones.
inline Tensor regions_of(const Module& heads, const std::vector<Tensor>& levels, std::int64_t count,
                         std::int64_t side) {
  return heads.operation("roi_align", std::span(levels).first(std::max<std::size_t>(levels.size() - 1, 1)),
                         {{"output_size", Sizes{side, side}}, {"rois", count}});
}

/// The elements of a tensor a sample; 0 if they are not known.
inline std::int64_t elements_of(const core::Shape& shape) {
  const auto elements = shape.elements(1);
  return elements ? elements->value().value_or(0) : 0;
}

/// How many elements a sample the tensors from `first` to `last` have.
inline std::int64_t elements_between(const Forward& f, Tensor first, Tensor last) {
  std::int64_t sum = 0;
  for (Tensor tensor = first; tensor <= last; ++tensor) {
    sum = core::bounded_sum({sum, elements_of(f.shape(tensor))});
  }
  return sum;
}

/// The range of what a head keeps of its regions, those from `first` to `last`.
inline void bound(Forward& f, const Module& head, const Regions& regions, Tensor first, Tensor last) {
  if (last < first) return;
  const std::int64_t each = elements_between(f, first, last) / regions.planned;
  head.bounded("runs on regions, and their number depends on the images: " + std::to_string(regions.planned) +
                   " of an image are taken, " + std::to_string(regions.fewest) + " to " + std::to_string(regions.most) +
                   " are possible",
               core::bounded_product({each, regions.planned - regions.fewest}),
               core::bounded_product({each, regions.most - regions.planned}));
}

/// TwoMLPHead, or a head whose parts follow each other; then a score and a box of each class.
inline Tensor call_boxes(Forward& f, const Module& heads, const std::vector<Tensor>& levels) {
  const auto head = heads.find("box_head");
  if (!head) return levels.front();
  const std::int64_t channels = std::max<std::int64_t>(f.channels(levels.front()), 1);
  const std::int64_t pixels = head->width("in_features").value_or(0) / channels;
  const std::int64_t side = std::max<std::int64_t>(side_of(pixels), 1);
  Tensor first = regions_of(heads, levels, kBoxes.planned, side);
  Tensor output = first;
  if (head->is_container() && head->class_name() == "TwoMLPHead") {
    output = f.call("flatten", {output}, {{"start_dim", std::int64_t{1}}});
    first = output;  // the same memory
    for (const Module& part : head->parts()) {
      output = part.call(output);
      output = f.call("relu", {output});
    }
  } else {
    output = head->call(output);
  }
  Tensor last = output;
  for (const Module& part : heads.parts("box_predictor")) last = part.call(output);
  bound(f, *head, kBoxes, first, last);
  return last;
}

/// Masks or key points of the positive regions.
inline Tensor call_positives(Forward& f, const Module& heads, const std::vector<Tensor>& levels,
                             std::string_view head_name, std::string_view predictor) {
  constexpr std::int64_t kSide = 14;
  const auto head = heads.find(head_name);
  if (!head) return levels.front();
  const Tensor first = regions_of(heads, levels, kPositives.planned, kSide);
  const Tensor last = heads(predictor, head->call(first));
  bound(f, *head, kPositives, first, last);
  return last;
}

/// FasterRCNN, MaskRCNN, KeypointRCNN.
inline Tensor call_two_stages(Forward& f, const Module& model, Tensor input) {
  const auto backbone = model.find("backbone");
  const auto proposals = model.find("rpn");
  const auto heads = model.find("roi_heads");
  const bool whole =
      backbone && proposals && heads && backbone->is_container() && proposals->is_container() && heads->is_container();
  if (!whole) return model.in_order(input);
  const std::vector<Tensor> levels = pyramid_of(f, *backbone, input);
  if (levels.empty()) return model.in_order(input);
  for (const Module& part : proposals->parts()) {
    if (part.is_container() && part.name() == "head") (void)on_levels(f, part, levels);
  }
  const Tensor boxes = call_boxes(f, *heads, levels);
  (void)call_positives(f, *heads, levels, "mask_head", "mask_predictor");
  (void)call_positives(f, *heads, levels, "keypoint_head", "keypoint_predictor");
  return boxes;
}

/// What its focal loss keeps of the scores in addition to what is planned, as far as the scores' tensors are known.
inline void bound_loss(Forward& f, const Module& head, Tensor first, Tensor last) {
  constexpr std::int64_t kMoreTensors = 10;
  if (last < first) return;
  const auto predictor = head.find("cls_logits");
  const auto channels = predictor ? predictor->width("out_channels") : std::nullopt;
  std::int64_t scores = 0;
  for (Tensor tensor = first; channels && tensor <= last; ++tensor) {
    if (f.channels(tensor) == *channels) scores = core::bounded_sum({scores, elements_of(f.shape(tensor))});
  }
  head.bounded(
      "has a loss of every anchor and class, which no line shows: up to ten tensors of its scores are possible", 0,
      core::bounded_product({scores, kMoreTensors}));
}

/// RetinaNet, FCOS.
inline Tensor call_one_stage(Forward& f, const Module& model, Tensor input) {
  const auto backbone = model.find("backbone");
  const auto heads = model.parts("head");
  if (!backbone || !backbone->is_container() || heads.empty()) return model.in_order(input);
  const std::vector<Tensor> levels = pyramid_of(f, *backbone, input);
  if (levels.empty()) return model.in_order(input);
  Tensor output = levels.front();
  for (const Module& head : heads) {
    if (!head.is_container()) continue;
    const Tensor before = output;
    output = on_levels(f, head, levels);
    if (head.name() == "classification_head") bound_loss(f, head, std::max(before, levels.back()) + 1, output);
  }
  return output;
}

}  // namespace detection_detail

inline constexpr std::array<ModuleForward, 2> kDetectionNets = {
    {{names<"FasterRCNN", "MaskRCNN", "KeypointRCNN">, detection_detail::call_two_stages},
     {names<"RetinaNet", "FCOS">, detection_detail::call_one_stage}}};

// SegFormer: stages of overlapping patches, whose keys and values are those of a smaller image, and a decoder that
// joins what all stages leave. The loss of segmentation is of logits enlarged to the image. Blocks are checkpointed by
// no release. Source: transformers 5.5, models/segformer/modeling_segformer.py.

namespace segformer {

struct Stage {
  std::int64_t blocks = 1;
  std::int64_t heads = 1;
  std::int64_t width = 1;
  std::int64_t reduction = 1;  ///< of a side, of keys and values
  std::int64_t patch = 3;
  std::int64_t step = 2;
  std::int64_t inner = 1;
  PictureSize size = {};  ///< of its patches
};

struct Model {
  std::vector<Stage> stages;
  PictureSize picture;
  std::int64_t channels = 3;
  std::int64_t joined = 256;  ///< width of the decoder
  std::int64_t labels = 2;
  double dropout = 0.0;
  double attention_dropout = 0.0;
  double path_dropout = 0.1;
  double decoder_dropout = 0.1;
  std::string_view activation = "gelu";
};

inline void read_stages(ConfigFields& config, Model& m) {
  constexpr std::int64_t kWidest = 1 << 16;
  const Sizes blocks = config.sizes_or("depths", {2, 2, 2, 2});
  const Sizes heads = config.sizes_or("num_attention_heads", {1, 2, 5, 8});
  const Sizes widths = config.sizes_or("hidden_sizes", {32, 64, 160, 256});
  const Sizes reductions = config.sizes_or("sr_ratios", {8, 4, 2, 1});
  const Sizes patches = config.sizes_or("patch_sizes", {7, 3, 3, 3});
  const Sizes steps = config.sizes_or("strides", {4, 2, 2, 2});
  const Sizes ratios = config.sizes_or("mlp_ratios", {4, 4, 4, 4});
  const std::size_t count = blocks.size();
  constexpr std::size_t kMostStages = 8;
  if (count == 0 || count > kMostStages) return config.fail("must have one to eight stages", "depths");
  for (const Sizes* each : {&heads, &widths, &reductions, &patches, &steps, &ratios}) {
    if (each->size() != count) return config.fail("has not as many stages as another list has", "depths");
  }
  PictureSize size = m.picture;
  for (std::size_t at = 0; at < count; ++at) {
    const std::int64_t patch = patches[at];
    const bool sound = blocks[at] <= ConfigFields::kMostLayers && widths[at] <= kWidest && ratios[at] <= 64;
    if (!sound) return config.fail("has more layers or wider ones than gpumem takes", "depths");
    if (widths[at] % heads[at] != 0) return config.fail("does not divide hidden_sizes", "num_attention_heads");
    if (patch > 1024 || steps[at] > patch) return config.fail("leaves pixels between patches", "patch_sizes");
    size = {convolved_side(size.width, patch, steps[at], patch / 2),
            convolved_side(size.height, patch, steps[at], patch / 2)};
    if (size.width < reductions[at] || size.height < reductions[at])
      return config.fail("leaves no keys of such an image", "sr_ratios");
    m.stages.push_back(
        {blocks[at], heads[at], widths[at], reductions[at], patch, steps[at], ratios[at] * widths[at], size});
  }
}

inline Model read(ConfigFields& config) {
  Model m;
  m.picture = picture_read(config, 224);
  read_stages(config, m);
  m.channels = config.size_or({"num_channels"}, 3);
  m.joined = config.size_or({"decoder_hidden_size"}, 256);
  m.labels = labels_of(config);
  m.dropout = config.number({"hidden_dropout_prob"}, 0.0);
  m.attention_dropout = config.number({"attention_probs_dropout_prob"}, 0.0);
  m.path_dropout = config.number({"drop_path_rate"}, 0.1);
  m.decoder_dropout = config.number({"classifier_dropout_prob"}, 0.1);
  m.activation = config.text({"hidden_act"}, "gelu");
  if (!config.flag("reshape_last_stage", true)) config.fail("is true in this model", "reshape_last_stage");
  config.ignore({"num_encoder_blocks", "downsampling_rates", "semantic_loss_ignore_index"});
  return m;
}

/// [N, h w, C] -> [N, C, h, w], a view.
inline Tensor image_of(Forward& f, Tensor rows, const PictureSize& size) {
  return f.unflatten(f.permute(rows, {0, 2, 1}), 2, {size.height, size.width});
}
inline Tensor rows_of(Forward& f, Tensor image) { return f.permute(f.flatten(image, 2, 3), {0, 2, 1}); }

inline Tensor enlarge(Forward& f, Tensor image, const PictureSize& size) {
  return f.call("upsample", {image}, {{"size", Sizes{size.height, size.width}}});
}

inline Tensor attention(Forward& f, const Model& m, const Stage& s, Tensor input) {
  const InModule outer(f, "attention", "SegformerAttention");
  Tensor mixed = 0;
  {
    const InModule inside(f, "self", "SegformerEfficientSelfAttention");
    const std::int64_t each = s.width / s.heads;
    const Tensor query = split_heads(f, f.linear("query", input, s.width, s.width), each);
    Tensor read = input;
    if (s.reduction > 1) {
      const Convolution smaller = {.in = s.width, .out = s.width, .kernel = s.reduction, .stride = s.reduction};
      const Tensor made = convolution(f, "sr", image_of(f, input, s.size), smaller);
      read = f.layer_norm("layer_norm", rows_of(f, made), s.width);
    }
    const Tensor key = split_heads(f, f.linear("key", read, s.width, s.width), each);
    const Tensor value = split_heads(f, f.linear("value", read, s.width, s.width), each);
    const Tensor scores = f.scale(f.call("matmul", {query, f.permute(key, {0, 1, 3, 2})}));
    const Tensor weights = f.dropout("dropout", f.call("softmax", {scores}), m.attention_dropout);
    mixed = f.leave_function(merge_heads(f, f.call("matmul", {weights, value})), {scores});
  }
  const InModule output(f, "output", "SegformerSelfOutput");
  return f.dropout("dropout", f.linear("dense", mixed, s.width, s.width), m.dropout);
}

inline Tensor mixed_feed_forward(Forward& f, const Model& m, const Stage& s, Tensor input) {
  const InModule inside(f, "mlp", "SegformerMixFFN");
  Tensor wide = f.linear("dense1", input, s.width, s.inner);
  {
    const InModule convolves(f, "dwconv", "SegformerDWConv");
    const Convolution own = {.in = s.inner, .out = s.inner, .kernel = 3, .padding = 1, .groups = s.inner};
    wide = rows_of(f, convolution(f, "dwconv", image_of(f, wide, s.size), own));
  }
  const Tensor open = f.dropout("dropout", f.activation("intermediate_act_fn", wide, m.activation), m.dropout);
  return f.dropout("dropout", f.linear("dense2", open, s.inner, s.width), m.dropout);
}

inline Tensor block(Forward& f, const Model& m, const Stage& s, Tensor input, double path_dropout) {
  const auto dropped = [&](Tensor of) {
    return path_dropout > 0.0 ? f.call("stochastic_depth", {f.scale(of)}, {{"p", path_dropout}}) : of;
  };
  const Tensor mixed = dropped(attention(f, m, s, f.layer_norm("layer_norm_1", input, s.width)));
  const Tensor attended = f.add(mixed, input);
  const Tensor fed = dropped(mixed_feed_forward(f, m, s, f.layer_norm("layer_norm_2", attended, s.width)));
  return f.leave_function(f.add(fed, attended), {mixed, fed});
}

/// What each stage leaves, [N, C, h, w].
inline std::vector<Tensor> encoder(Forward& f, const Model& m) {
  Tensor image = f.sample_input("pixel_values", {m.channels, m.picture.height, m.picture.width});
  const InModule outer(f, "segformer", "SegformerModel");
  const InModule inside(f, "encoder", "SegformerEncoder");
  std::int64_t all = -1;
  for (const Stage& stage : m.stages) all += stage.blocks;
  std::int64_t before = 0;
  std::vector<Tensor> left;
  for (std::size_t at = 0; at < m.stages.size() && !f.failed(); ++at) {
    const Stage& s = m.stages[at];
    const std::string number = std::to_string(at);
    Tensor hidden = 0;
    {
      const InModule cuts(f, "patch_embeddings." + number, "SegformerOverlapPatchEmbeddings");
      const std::int64_t read = at == 0 ? m.channels : m.stages[at - 1].width;
      const Convolution cut = {.in = read, .out = s.width, .kernel = s.patch, .stride = s.step, .padding = s.patch / 2};
      hidden = f.layer_norm("layer_norm", rows_of(f, convolution(f, "proj", image, cut)), s.width);
    }
    {
      const InModule list(f, "block", "ModuleList");
      hidden = stack(f, number, "SegformerLayer", s.blocks, hidden, [&](Tensor x, std::int64_t index) {
        const double share = all > 0 ? static_cast<double>(before + index) / static_cast<double>(all) : 0.0;
        return block(f, m, s, x, share * m.path_dropout);
      });
    }
    before += s.blocks;
    image = f.contiguous(image_of(f, f.layer_norm("layer_norm." + number, hidden, s.width), s.size));
    left.push_back(image);
  }
  return left;
}

inline void decoder(Forward& f, const Model& m, const std::vector<Tensor>& left) {
  Tensor logits = 0;
  {
    const InModule inside(f, "decode_head", "SegformerDecodeHead");
    std::vector<Tensor> enlarged;
    for (std::size_t at = 0; at < left.size(); ++at) {
      const InModule mlp(f, "linear_c." + std::to_string(at), "SegformerMLP");
      const Tensor projected = f.linear("proj", rows_of(f, left[at]), m.stages[at].width, m.joined);
      const Tensor image = image_of(f, projected, m.stages[at].size);
      enlarged.push_back(enlarge(f, image, m.stages[0].size));
    }
    std::reverse(enlarged.begin(), enlarged.end());
    const std::int64_t all = m.joined * static_cast<std::int64_t>(m.stages.size());
    const Tensor fused =
        convolution(f, "linear_fuse", f.concatenate(enlarged, 1), {.in = all, .out = m.joined, .bias = false});
    const Tensor even = f.layer("batch_norm", "BatchNorm2d", "batch_norm", {fused}, {{"num_features", m.joined}});
    const Tensor open = f.dropout("dropout", f.activation("activation", even, "relu"), m.decoder_dropout);
    logits = convolution(f, "classifier", open, {.in = m.joined, .out = m.labels});
    for (const Tensor each : enlarged) logits = f.leave_function(logits, {each});
  }
  f.hand_out(logits);
  const Tensor labels = f.fixed_token_input("labels", m.picture.width * m.picture.height);
  const Tensor whole = enlarge(f, logits, m.picture);
  f.leave_function(f.call("cross_entropy", {whole, labels}, {{"keeps_type", true}}), {whole});
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const bool segments = head == Head::own;
  const Model m = read(config);
  if (!segments) check_classifies(config, head);
  if (!config.status() || m.stages.empty()) return;
  const std::vector<Tensor> left = encoder(f, m);
  if (segments) return decoder(f, m, left);
  if (head == Head::none) return f.hand_out(left.back());
  const Tensor rows = f.call("clone", {rows_of(f, left.back())});
  const Tensor mean = f.call("mean", {rows}, {{"dim", std::int64_t{1}}});
  f.linear("classifier", mean, m.stages.back().width, m.labels);
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Segformer", "segformer", "segformer"}});

/// What print(model) shows. Published models have 1, 2, 5 and 8 heads.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kMostStages = 16;  // more than a config may have
  constexpr auto kHeads = std::to_array<std::int64_t>({1, 2, 5, 8});
  const std::int64_t stages = std::min(t.count_of("encoder.block"), kMostStages);
  std::vector<std::int64_t> depths, heads, widths, reductions, patches, steps, ratios;
  std::string last;
  for (std::int64_t at = 0; at < stages; ++at) {
    const std::string blocks = "encoder.block." + std::to_string(at);
    const std::string cut = "encoder.patch_embeddings." + std::to_string(at) + ".proj";
    depths.push_back(t.count_of(blocks));
    widths.push_back(t.value(cut, "out_channels").value_or(1));
    patches.push_back(t.value(cut, "kernel_size").value_or(1));
    steps.push_back(t.value(cut, "stride").value_or(1));
    reductions.push_back(t.value(blocks + ".0.attention.self.sr", "kernel_size").value_or(1));
    ratios.push_back(
        std::max<std::int64_t>(t.value(blocks + ".0.mlp.dense1", "out_features").value_or(1) / widths.back(), 1));
    const std::int64_t usual = kHeads[static_cast<std::size_t>(std::min<std::int64_t>(at, 3))];
    heads.push_back(widths.back() % usual == 0 ? usual : 1);
    last = blocks + "." + std::to_string(depths.back() - 1);
  }
  t.list("depths", depths);
  t.list("hidden_sizes", widths);
  t.list("patch_sizes", patches);
  t.list("strides", steps);
  t.list("sr_ratios", reductions);
  t.list("mlp_ratios", ratios);
  t.list("num_attention_heads", heads);
  t.assume("1, 2, 5 and 8 heads in its stages, as published models have");
  t.size("num_channels", "encoder.patch_embeddings.0.proj", "in_channels");
  t.dropout("drop_path_rate", last + ".drop_path");
  t.activation("hidden_act", last + ".mlp.intermediate_act_fn");
  t.dropout("hidden_dropout_prob", last + ".mlp.dropout");
  t.dropout("classifier_dropout_prob", "/decode_head.dropout");
  t.size("decoder_hidden_size", "/decode_head.linear_fuse", "out_channels");
  t.size("num_labels", "/classifier", "out_features");
  t.size("num_labels", "/decode_head.classifier", "out_channels");
  t.image_size("image_size");
}

inline constexpr Architecture kArchitecture = {.name = "segformer",
                                               .model_types = names<"segformer">,
                                               .usual_head = Head::sequence_classification,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace segformer

}  // namespace gpumem::architectures
