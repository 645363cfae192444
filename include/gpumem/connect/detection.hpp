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
#include "gpumem/connect/block_rules.hpp"
#include "gpumem/connect/opaque.hpp"

namespace gpumem::connect {

namespace detection_detail {

using blocks_detail::fixed;

/// Regions of an image that the heads see: planned, fewest and most.
struct Regions {
  std::int64_t planned = 0;
  std::int64_t fewest = 0;
  std::int64_t most = 0;
};
inline constexpr Regions kBoxes = {512, 64, 512};
inline constexpr Regions kPositives = {64, 1, 128};

inline std::span<const Part> parts_of(const Wiring& wiring, const Container& of, std::string_view name) {
  const auto part = wiring.child(of, name);
  return part && part->container ? std::span(wiring.container(*part).parts) : std::span<const Part>();
}

/// What the backbone's stages leave, one for each convolution of the pyramid that reads it: of each width the last.
inline std::vector<Tensor> stages(Wiring& wiring, std::span<const Part> body, std::span<const Part> inner,
                                  Tensor input) {
  std::vector<std::int64_t> widths;
  for (const Part& block : inner) widths.push_back(wiring.first_width(block, "in_channels").value_or(0));
  std::vector<Tensor> found(widths.size(), input);
  std::vector<bool> seen(widths.size(), false);
  std::size_t next = 0;
  for (const Part& part : body) {
    input = wiring.call(part, input);
    if (wiring.failed()) return {};
    const std::int64_t width = wiring.channels(input);
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
inline std::vector<Tensor> merged(Wiring& wiring, const Container& pyramid, const std::vector<Tensor>& stages) {
  const auto inner = parts_of(wiring, pyramid, "inner_blocks");
  const auto outer = parts_of(wiring, pyramid, "layer_blocks");
  if (stages.empty() || inner.size() != stages.size() || outer.size() != stages.size()) return {};
  std::vector<Tensor> levels(stages.size());
  Tensor last = 0;
  for (std::size_t at = stages.size(); at > 0 && !wiring.failed(); --at) {
    Tensor own = wiring.call(inner[at - 1], stages[at - 1]);
    if (at < stages.size()) {
      const core::Shape& shape = wiring.shape(own);
      const std::vector<std::int64_t> size = {fixed(shape, 2), fixed(shape, 3)};
      own = wiring.add(own, wiring.operation("upsample", {&last, 1}, {{"size", size}}), false);
    }
    last = own;
    levels[at - 1] = wiring.call(outer[at - 1], own);
  }
  return levels;
}

/// LastLevelP6P7: two convolutions more, of the last level or of the last stage; LastLevelMaxPool: every second pixel.
inline void add_levels(Wiring& wiring, const Container& pyramid, Tensor last_stage, std::vector<Tensor>& levels) {
  const auto more = parts_of(wiring, pyramid, "extra_blocks");
  if (more.empty()) {
    levels.push_back(wiring.operation(
        "max_pool2d", {&levels.back(), 1},
        {{"kernel_size", std::int64_t{1}}, {"stride", std::int64_t{2}}, {"padding", std::int64_t{0}}}));
    return;
  }
  const bool of_level = wiring.first_width(more[0], "in_channels") == wiring.channels(levels.back());
  Tensor input = of_level ? levels.back() : last_stage;
  for (const Part& part : more) {
    const bool first = &part == &more.front();
    if (!first) input = wiring.operation("relu", {&input, 1});
    input = wiring.call(part, input);
    levels.push_back(input);
  }
}

/// The levels of BackboneWithFPN; none if the tree is not as expected.
inline std::vector<Tensor> pyramid_of(Wiring& wiring, const Container& backbone, Tensor input) {
  const auto body = parts_of(wiring, backbone, "body");
  const auto pyramid = wiring.child(backbone, "fpn");
  if (body.empty() || !pyramid || !pyramid->container) return {};
  const Container& container = wiring.container(*pyramid);
  const std::vector<Tensor> found = stages(wiring, body, parts_of(wiring, container, "inner_blocks"), input);
  std::vector<Tensor> levels = merged(wiring, container, found);
  if (!levels.empty() && !wiring.failed()) add_levels(wiring, container, found.back(), levels);
  return levels;
}

/// A head on every level: convolutions, and one more for each thing that it predicts.
inline Tensor on_levels(Wiring& wiring, const Container& head, const std::vector<Tensor>& levels) {
  Tensor output = levels.front();
  for (const Tensor level : levels) {
    Tensor seen = level;
    for (const Part& part : head.parts) {
      if (wiring.failed()) return output;
      const bool shared = wiring.name(part) == "conv";
      output = wiring.call(part, seen);
      if (!shared) continue;
      seen = part.container ? output : wiring.operation("relu", {&output, 1});  // torchvision before 0.12
    }
  }
  return output;
}

/// The regions that a head sees, with pixels on a side, cut from the levels that are no extra ones.
inline Tensor regions_of(Wiring& wiring, const std::vector<Tensor>& levels, std::int64_t count, std::int64_t side) {
  const std::vector<std::int64_t> size = {side, side};
  return wiring.operation("roi_align", std::span(levels).first(std::max<std::size_t>(levels.size() - 1, 1)),
                          {{"output_size", size}, {"rois", count}});
}

/// How many elements a sample the tensors from `first` to `last` have.
inline std::int64_t elements_between(const Wiring& wiring, Tensor first, Tensor last) {
  std::int64_t sum = 0;
  for (Tensor tensor = first; tensor <= last; ++tensor) {
    const core::Shape& shape = wiring.shape(tensor);
    const std::int64_t rows = shape.rank() > 0 ? std::max<std::int64_t>(shape[0].size, 1) : 0;
    sum = core::bounded_sum({sum, core::bounded_product({elements_of(shape), rows})});
  }
  return sum;
}

/// The range of what a head keeps of its regions, those from `first` to `last`.
inline void bound(Wiring& wiring, Part head, const Regions& regions, Tensor first, Tensor last) {
  if (wiring.failed() || last < first) return;
  const std::int64_t each = elements_between(wiring, first, last) / regions.planned;
  wiring.bounded(head,
                 "runs on regions, and their number depends on the images: " + std::to_string(regions.planned) +
                     " of an image are taken, " + std::to_string(regions.fewest) + " to " +
                     std::to_string(regions.most) + " are possible",
                 core::bounded_product({each, regions.planned - regions.fewest}),
                 core::bounded_product({each, regions.most - regions.planned}));
}

/// TwoMLPHead, or a head whose parts follow each other; then a score and a box of each class.
inline Tensor wire_boxes(Wiring& wiring, const Container& heads, const std::vector<Tensor>& levels) {
  const auto head = wiring.child(heads, "box_head");
  if (!head) return levels.front();
  const std::int64_t channels = std::max<std::int64_t>(wiring.channels(levels.front()), 1);
  const std::int64_t pixels = wiring.first_width(*head, "in_features", "in_features").value_or(0) / channels;
  const std::int64_t side = std::max<std::int64_t>(architectures::side_of(pixels), 1);
  Tensor first = regions_of(wiring, levels, kBoxes.planned, side);
  Tensor output = first;
  const Container& container = wiring.container(*head);
  if (head->container && container.class_name == "TwoMLPHead") {
    output = wiring.operation("flatten", {&output, 1}, {{"start_dim", std::int64_t{1}}});
    first = output;  // the same memory
    for (const Part& part : container.parts) {
      output = wiring.call(part, output);
      output = wiring.operation("relu", {&output, 1});
    }
  } else {
    output = wiring.call(*head, output);
  }
  Tensor last = output;
  for (const Part& part : parts_of(wiring, heads, "box_predictor")) last = wiring.call(part, output);
  bound(wiring, *head, kBoxes, first, last);
  return last;
}

/// Masks or key points of the positive regions.
inline Tensor wire_positives(Wiring& wiring, const Container& heads, const std::vector<Tensor>& levels,
                             std::string_view head_name, std::string_view predictor) {
  constexpr std::int64_t kSide = 14;
  const auto head = wiring.child(heads, head_name);
  if (!head || wiring.failed()) return levels.front();
  const Tensor first = regions_of(wiring, levels, kPositives.planned, kSide);
  const Tensor last = Calls(wiring, heads)(predictor, wiring.call(*head, first));
  bound(wiring, *head, kPositives, first, last);
  return last;
}

/// FasterRCNN, MaskRCNN, KeypointRCNN.
inline Tensor wire_two_stages(Wiring& wiring, const Container& model, Tensor input) {
  const auto backbone = wiring.child(model, "backbone");
  const auto proposals = wiring.child(model, "rpn");
  const auto heads = wiring.child(model, "roi_heads");
  const bool whole = backbone && proposals && heads && backbone->container && proposals->container && heads->container;
  if (wiring.called() || !whole) return wiring.chain(model.parts, input);
  const std::vector<Tensor> levels = pyramid_of(wiring, wiring.container(*backbone), input);
  if (levels.empty() || wiring.failed()) return wiring.chain(model.parts, input);
  for (const Part& part : wiring.container(*proposals).parts) {
    if (part.container && wiring.name(part) == "head") on_levels(wiring, wiring.container(part), levels);
  }
  const Container& regions = wiring.container(*heads);
  const Tensor boxes = wire_boxes(wiring, regions, levels);
  wire_positives(wiring, regions, levels, "mask_head", "mask_predictor");
  wire_positives(wiring, regions, levels, "keypoint_head", "keypoint_predictor");
  return boxes;
}

/// What its focal loss keeps of the scores in addition to what is planned, as far as the scores' tensors are known.
inline void bound_loss(Wiring& wiring, Part head, Tensor first, Tensor last) {
  constexpr std::int64_t kMoreTensors = 10;
  if (wiring.failed() || last < first) return;
  const auto predictor = wiring.child(wiring.container(head), "cls_logits");
  const auto channels = predictor ? wiring.first_width(*predictor, "out_channels") : std::nullopt;
  std::int64_t scores = 0;
  for (Tensor tensor = first; channels && tensor <= last; ++tensor) {
    if (wiring.channels(tensor) == *channels) scores = core::bounded_sum({scores, elements_of(wiring.shape(tensor))});
  }
  wiring.bounded(
      head, "has a loss of every anchor and class, which no line shows: up to ten tensors of its scores are possible",
      0, core::bounded_product({scores, kMoreTensors}));
}

/// RetinaNet, FCOS.
inline Tensor wire_one_stage(Wiring& wiring, const Container& model, Tensor input) {
  const auto backbone = wiring.child(model, "backbone");
  const auto heads = parts_of(wiring, model, "head");
  if (wiring.called() || !backbone || !backbone->container || heads.empty()) return wiring.chain(model.parts, input);
  const std::vector<Tensor> levels = pyramid_of(wiring, wiring.container(*backbone), input);
  if (levels.empty() || wiring.failed()) return wiring.chain(model.parts, input);
  Tensor output = levels.front();
  for (const Part& head : heads) {
    if (!head.container || wiring.failed()) continue;
    const Tensor before = output;
    output = on_levels(wiring, wiring.container(head), levels);
    if (wiring.name(head) == "classification_head")
      bound_loss(wiring, head, std::max(before, levels.back()) + 1, output);
  }
  return output;
}

inline constexpr std::array<std::string_view, 3> kTwoStages = {"FasterRCNN", "MaskRCNN", "KeypointRCNN"};
inline constexpr std::array<std::string_view, 2> kOneStage = {"RetinaNet", "FCOS"};

}  // namespace detection_detail

inline constexpr std::array<BlockRule, 2> kDetectionBlocks = {
    {{detection_detail::kTwoStages, detection_detail::wire_two_stages, nullptr},
     {detection_detail::kOneStage, detection_detail::wire_one_stage, nullptr}}};

}  // namespace gpumem::connect
