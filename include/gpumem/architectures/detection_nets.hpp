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

}  // namespace gpumem::architectures
