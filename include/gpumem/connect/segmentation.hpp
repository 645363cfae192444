// Networks whose decoder enlarges what an encoder made small and joins what the encoder left at the same size: the
// U-Net that everybody copies, and the models of segmentation_models_pytorch. Their joins are in forward(), which no
// line shows; a skip is the latest tensor of the encoder that has the size and the channels that the decoder's
// convolution lacks. Source: milesial/Pytorch-UNet, unet_parts.py and unet_model.py; segmentation_models_pytorch 0.5,
// decoders/unet, fpn, deeplabv3, linknet and pspnet, base/modules.py and base/model.py; torchvision 0.21,
// models/segmentation (deeplabv3, fcn, _utils).
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpumem/connect/block_rules.hpp"

namespace gpumem::connect {

namespace segmentation_detail {

using blocks_detail::fixed;

inline std::span<const Part> parts_of(const Wiring& wiring, const Container& of, std::string_view name) {
  const auto part = wiring.child(of, name);
  return part && part->container ? std::span(wiring.container(*part).parts) : std::span<const Part>();
}

/// Twice a side, within what a plan can count.
inline std::int64_t twice(std::int64_t side) {
  constexpr std::int64_t kLongest = std::int64_t{1} << 40;
  return 2 * std::min(side, kLongest);
}

inline Tensor enlarged(Wiring& wiring, Tensor images, std::int64_t height, std::int64_t width) {
  const std::vector<std::int64_t> size = {height, width};
  return wiring.failed() ? images : wiring.operation("upsample", {&images, 1}, {{"size", size}});
}

inline Tensor doubled(Wiring& wiring, Tensor images) {
  const core::Shape& shape = wiring.shape(images);
  return enlarged(wiring, images, twice(fixed(shape, 2)), twice(fixed(shape, 3)));
}

/// The latest tensor with these channels that is as large as `like` or a pixel larger, of the containers around the one
/// that is being called.
inline std::optional<Tensor> skip_for(Wiring& wiring, Tensor like, std::int64_t channels) {
  const auto fits = [&](Tensor tensor) {
    const core::Shape& shape = wiring.shape(tensor);
    const core::Shape& wanted = wiring.shape(like);
    const auto near = [&](std::size_t axis) {
      const std::int64_t more = fixed(shape, axis) - fixed(wanted, axis);
      return more == 0 || more == 1;
    };
    return shape.rank() == 4 && fixed(shape, 1) == channels && near(2) && near(3);
  };
  const std::span<Frame> frames = wiring.frames();
  for (std::size_t depth = frames.size(); depth > 1; --depth) {
    const std::vector<Tensor>& results = frames[depth - 2].results;
    const auto found = std::find_if(results.rbegin(), results.rend(), fits);
    if (found != results.rend()) return *found;
  }
  return std::nullopt;
}

/// Up: enlarge, pad to the skip's size (a copy even where nothing is padded), join, convolve.
inline Tensor wire_up(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  const auto conv = wiring.child(block, "conv");
  if (wiring.called() || !calls.has("up") || !conv) return wiring.chain(block.parts, input);
  Tensor output = calls("up", input);
  const std::int64_t missing =
      wiring.first_width(*conv, "in_channels", "in_channels").value_or(0) - wiring.channels(output);
  const auto skip = missing > 0 && !wiring.failed() ? skip_for(wiring, output, missing) : std::nullopt;
  if (!skip) return wiring.call(*conv, output);
  const core::Shape to = wiring.shape(*skip);
  const core::Shape from = wiring.shape(output);
  const std::vector<std::int64_t> sides = {0, fixed(to, 3) - fixed(from, 3), 0, fixed(to, 2) - fixed(from, 2)};
  output = wiring.operation("pad", {&output, 1}, {{"padding", sides}});
  return wiring.call(*conv, wiring.concatenate(std::array<Tensor, 2>{*skip, output}));
}

inline Tensor wire_in_order(Wiring& wiring, const Container& block, Tensor input) {
  return wiring.chain(block.parts, input);
}

/// SCSEModule: x cSE(x) + x sSE(x).
inline Tensor wire_gates(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has("cSE") || !calls.has("sSE")) return wiring.chain(block.parts, input);
  const Tensor channels = wiring.multiply(input, calls("cSE", input));
  const Tensor pixels = wiring.multiply(input, calls("sSE", input));
  return wiring.failed() ? input : wiring.add(channels, pixels, false);
}

/// ASPP: every branch reads the input; the pooled one is enlarged again.
inline Tensor wire_pyramid(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  const auto branches = parts_of(wiring, block, "convs");
  if (wiring.called() || branches.empty() || !calls.has("project")) return wiring.chain(block.parts, input);
  const core::Shape whole = wiring.shape(input);
  std::vector<Tensor> results;
  for (const Part& branch : branches) {
    Tensor result = wiring.call(branch, input);
    if (wiring.failed()) return input;
    if (fixed(wiring.shape(result), 2) != fixed(whole, 2)) {
      result = enlarged(wiring, result, fixed(whole, 2), fixed(whole, 3));
    }
    results.push_back(result);
  }
  return calls("project", wiring.concatenate(results));
}

/// PSPModule: the input beside what each branch pools to fewer pixels and enlarges again.
inline Tensor wire_pooled(Wiring& wiring, const Container& block, Tensor input) {
  const auto branches = parts_of(wiring, block, "blocks");
  if (wiring.called() || branches.empty()) return wiring.chain(block.parts, input);
  const core::Shape whole = wiring.shape(input);
  std::vector<Tensor> results;
  for (const Part& branch : branches) {
    const Tensor pooled = wiring.call(branch, input);
    if (wiring.failed()) return input;
    results.push_back(enlarged(wiring, pooled, fixed(whole, 2), fixed(whole, 3)));
  }
  results.push_back(input);
  return wiring.failed() ? input : wiring.concatenate(results);
}

/// What an encoder left, in its order.
class Features {
 public:
  Features(Wiring& wiring, const Container& encoder, Tensor input) : wiring_(wiring), last_(input) {
    call(encoder.parts);
  }
  [[nodiscard]] Tensor last() const { return last_; }
  /// The latest with these channels and this height; 0: any.
  [[nodiscard]] std::optional<Tensor> find(std::int64_t channels, std::int64_t height) const {
    const auto fits = [&](Tensor tensor) {
      const core::Shape& shape = wiring_.shape(tensor);
      return shape.rank() == 4 && (channels == 0 || fixed(shape, 1) == channels) &&
             (height == 0 || fixed(shape, 2) == height);
    };
    const auto found = std::find_if(all_.rbegin(), all_.rend(), fits);
    return found == all_.rend() ? std::nullopt : std::optional(*found);
  }

 private:
  void call(std::span<const Part> parts) {
    for (const Part& part : parts) {
      if (wiring_.failed()) return;
      const std::string_view class_name = wiring_.class_name(part);
      if (part.container && (class_name == "Sequential" || class_name == "ModuleList")) {
        call(wiring_.container(part).parts);
        continue;
      }
      last_ = wiring_.call(part, last_);
      all_.push_back(last_);
    }
  }

  Wiring& wiring_;
  Tensor last_;
  std::vector<Tensor> all_;
};

/// A block of UnetDecoder: enlarge, join the skips, convolve twice.
inline Tensor decoded(Wiring& wiring, Part block, Tensor input, std::vector<Tensor> skips) {
  if (!block.container || wiring.failed()) return input;
  const Calls calls(wiring, wiring.container(block));
  Tensor output = doubled(wiring, input);
  if (!skips.empty() && !wiring.failed()) {
    skips.insert(skips.begin(), output);
    output = calls("attention1", wiring.concatenate(skips));
  }
  return calls("attention2", calls("conv2", calls("conv1", output)));
}

/// UnetDecoder: each block joins a skip where its first convolution reads one.
inline Tensor decode_unet(Wiring& wiring, const Container& decoder, const Features& features) {
  Tensor output = Calls(wiring, decoder)("center", features.last());
  for (const Part& part : parts_of(wiring, decoder, "blocks")) {
    if (wiring.failed()) return output;
    const std::int64_t skipped =
        wiring.first_width(part, "in_channels", "in_channels").value_or(0) - wiring.channels(output);
    const auto skip = features.find(skipped, twice(fixed(wiring.shape(output), 2)));
    output = decoded(wiring, part, output, skip ? std::vector<Tensor>{*skip} : std::vector<Tensor>());
  }
  return output;
}

/// UnetPlusPlusDecoder: block x_i_j reads x_i_(j-1), and beside it all of x_(i+1)_j to x_j_j and a feature.
inline Tensor decode_nested(Wiring& wiring, const Container& decoder, const Features& features) {
  const auto list = wiring.child(decoder, "blocks");
  if (!list || !list->container || wiring.container(*list).parts.empty()) return features.last();
  const Container& blocks = wiring.container(*list);
  std::size_t depth = 0;  // of n (n + 1) / 2 blocks and one more
  while ((depth + 1) * (depth + 2) / 2 < blocks.parts.size()) ++depth;
  const auto call = [&](std::size_t row, std::size_t column, Tensor input, std::vector<Tensor> skips) {
    const auto block = wiring.child(blocks, std::string("x_") + std::to_string(row) + "_" + std::to_string(column));
    return block ? decoded(wiring, *block, input, std::move(skips)) : input;
  };
  std::vector<Tensor> levels = {Calls(wiring, decoder)("center", features.last())};  // from the smallest on
  while (levels.size() <= depth && !wiring.failed()) {
    const auto level = features.find(0, twice(fixed(wiring.shape(levels.back()), 2)));
    if (!level) return features.last();
    levels.push_back(*level);
  }
  std::vector<std::vector<Tensor>> made(depth);  // made[row]: x_row_row and on
  for (std::size_t layer = 0; layer < depth; ++layer) {
    for (std::size_t row = 0; row + layer < depth && !wiring.failed(); ++row) {
      const std::size_t column = row + layer;
      std::vector<Tensor> skips;
      for (std::size_t other = row + 1; other <= column; ++other) skips.push_back(made[other][column - other]);
      skips.push_back(levels[column + 1]);
      made[row].push_back(call(row, column, layer == 0 ? levels[row] : made[row].back(), std::move(skips)));
    }
  }
  return depth == 0 || wiring.failed() ? levels[0] : call(0, depth, made[0].back(), {});
}

/// LinknetDecoder: what the encoder left at a block's size is added to it.
inline Tensor decode_linknet(Wiring& wiring, const Container& decoder, const Features& features) {
  Tensor output = features.last();
  for (const Part& block : parts_of(wiring, decoder, "blocks")) {
    output = wiring.call(block, output);
    if (wiring.failed()) return output;
    const auto skip = features.find(wiring.channels(output), fixed(wiring.shape(output), 2));
    if (skip) output = wiring.add(output, *skip, false);
  }
  return output;
}

/// SegmentationBlock: its convolutions, and as many times twice the size as the level is below the largest one.
inline Tensor grown(Wiring& wiring, const Container& block, std::size_t times, Tensor input) {
  for (const Part& part : parts_of(wiring, block, "block")) {
    if (wiring.failed()) return input;
    input = wiring.call(part, input);
    if (times > 0) input = doubled(wiring, input);
    times -= times > 0 ? 1 : 0;
  }
  return input;
}

/// MergeBlock: torch.stack(x).sum(dim=0), or side by side where the head reads that.
inline Tensor merged(Wiring& wiring, std::vector<Tensor> levels, std::int64_t wanted) {
  if (wiring.failed() || levels.empty()) return 0;
  if (wanted != wiring.channels(levels.front())) return wiring.concatenate(levels);
  for (Tensor& level : levels) level = wiring.operation("unsqueeze", {&level, 1}, {{"dim", std::int64_t{0}}});
  const Tensor stacked = wiring.operation("concat", levels, {{"dim", std::int64_t{0}}});
  return wiring.operation("sum", {&stacked, 1}, {{"dim", std::int64_t{0}}});
}

/// FPNDecoder: from the smallest level up, each as wide as the pyramid and added to the next smaller one.
inline Tensor decode_fpn(Wiring& wiring, const Container& decoder, const Features& features, std::int64_t wanted) {
  constexpr std::array<std::string_view, 3> kLevels = {"p4", "p3", "p2"};
  const Calls calls(wiring, decoder);
  std::vector<Tensor> levels = {calls("p5", features.last())};
  for (const std::string_view name : kLevels) {
    const auto level = wiring.child(decoder, name);
    if (wiring.failed() || !level || !level->container) return features.last();
    const Tensor larger = doubled(wiring, levels.back());
    const std::int64_t channels = wiring.first_width(*level, "in_channels", "in_channels").value_or(0);
    const auto skip = features.find(channels, fixed(wiring.shape(larger), 2));
    const Tensor own = Calls(wiring, wiring.container(*level))("skip_conv", skip.value_or(larger));
    levels.push_back(wiring.failed() ? larger : wiring.add(larger, own, false));
  }
  const auto blocks = parts_of(wiring, decoder, "seg_blocks");
  if (blocks.size() != levels.size()) return features.last();
  for (std::size_t at = 0; at < blocks.size() && !wiring.failed(); ++at) {
    if (blocks[at].container)
      levels[at] = grown(wiring, wiring.container(blocks[at]), blocks.size() - 1 - at, levels[at]);
  }
  return calls("dropout", merged(wiring, std::move(levels), wanted));
}

/// DeepLabV3PlusDecoder: the pyramid of the last feature, enlarged, beside an early one.
inline Tensor decode_deeplab_plus(Wiring& wiring, const Container& decoder, const Features& features) {
  const Calls calls(wiring, decoder);
  const auto early = wiring.child(decoder, "block1");
  const Tensor large = calls("up", calls("aspp", features.last()));
  const std::int64_t channels =
      early ? wiring.first_width(*early, "in_channels", "in_channels").value_or(0) : std::int64_t{0};
  if (wiring.failed()) return large;
  const auto skip = features.find(channels, fixed(wiring.shape(large), 2));
  const Tensor own = calls("block1", skip.value_or(large));
  if (wiring.failed()) return large;
  return calls("block2", wiring.concatenate(std::array<Tensor, 2>{large, own}));
}

inline constexpr std::array<std::string_view, 7> kDecoders = {"UnetDecoder", "UnetPlusPlusDecoder",  "LinknetDecoder",
                                                              "FPNDecoder",  "DeepLabV3PlusDecoder", "DeepLabV3Decoder",
                                                              "PSPDecoder"};

inline Tensor decode(Wiring& wiring, Part decoder, const Features& features, std::int64_t wanted) {
  const Container& container = wiring.container(decoder);
  if (container.class_name == "UnetDecoder") return decode_unet(wiring, container, features);
  if (container.class_name == "UnetPlusPlusDecoder") return decode_nested(wiring, container, features);
  if (container.class_name == "LinknetDecoder") return decode_linknet(wiring, container, features);
  if (container.class_name == "FPNDecoder") return decode_fpn(wiring, container, features, wanted);
  if (container.class_name == "DeepLabV3PlusDecoder") return decode_deeplab_plus(wiring, container, features);
  return wiring.call(decoder, features.last());
}

/// SegmentationModel: encoder, decoder, head.
inline Tensor wire_model(Wiring& wiring, const Container& model, Tensor input) {
  const Calls calls(wiring, model);
  const auto encoder = wiring.child(model, "encoder");
  const auto decoder = wiring.child(model, "decoder");
  const auto head = wiring.child(model, "segmentation_head");
  const bool whole = encoder && decoder && head && encoder->container && decoder->container &&
                     std::find(kDecoders.begin(), kDecoders.end(), wiring.class_name(*decoder)) != kDecoders.end();
  if (wiring.called() || !whole) return wiring.chain(model.parts, input);
  const Features features(wiring, wiring.container(*encoder), input);
  if (wiring.failed()) return input;
  const std::int64_t wanted = wiring.first_width(*head, "in_channels", "in_channels").value_or(0);
  return calls("segmentation_head", decode(wiring, *decoder, features, wanted));
}

/// torchvision's _SimpleSegmentationModel: a backbone whose last stage the classifier reads, and an earlier one an
/// auxiliary classifier; both are enlarged to the image's size.
inline Tensor wire_simple(Wiring& wiring, const Container& model, Tensor input) {
  const Calls calls(wiring, model);
  const auto backbone = wiring.child(model, "backbone");
  const bool whole = backbone && backbone->container && calls.has("classifier");
  if (wiring.called() || !whole) return wiring.chain(model.parts, input);
  const core::Shape image = wiring.shape(input);
  const Features features(wiring, wiring.container(*backbone), input);
  Tensor output = calls("classifier", features.last());
  output = enlarged(wiring, output, fixed(image, 2), fixed(image, 3));
  const auto other = wiring.child(model, "aux_classifier");
  if (!other || wiring.failed()) return output;
  const std::int64_t channels = wiring.first_width(*other, "in_channels", "in_channels").value_or(0);
  const auto earlier = features.find(channels, 0);
  if (!earlier) return output;
  enlarged(wiring, wiring.call(*other, *earlier), fixed(image, 2), fixed(image, 3));
  return output;
}

/// Models of one class name of two libraries.
inline Tensor wire_deeplab(Wiring& wiring, const Container& model, Tensor input) {
  return wiring.child(model, "decoder") ? wire_model(wiring, model, input) : wire_simple(wiring, model, input);
}

inline constexpr std::array<std::string_view, 1> kUp = {"Up"};
inline constexpr std::array<std::string_view, 12> kInOrder = {
    "DoubleConv", "Down",        "OutConv",     "Conv2dReLU",        "SegmentationHead", "ASPPConv",
    "UNet",       "ASPPPooling", "TransposeX2", "ASPPSeparableConv", "PSPBlock",         "SeparableConv2d"};
inline constexpr std::array<std::string_view, 1> kGates = {"SCSEModule"};
inline constexpr std::array<std::string_view, 1> kPyramids = {"ASPP"};
inline constexpr std::array<std::string_view, 1> kPooled = {"PSPModule"};
inline constexpr std::array<std::string_view, 6> kModels = {"Unet",    "UnetPlusPlus",  "FPN",
                                                            "Linknet", "DeepLabV3Plus", "PSPNet"};
inline constexpr std::array<std::string_view, 2> kDeeplab = {"DeepLabV3", "FCN"};

}  // namespace segmentation_detail

inline constexpr std::array<BlockRule, 7> kSegmentationBlocks = {
    {{segmentation_detail::kUp, segmentation_detail::wire_up, nullptr},
     {segmentation_detail::kInOrder, segmentation_detail::wire_in_order, nullptr},
     {segmentation_detail::kGates, segmentation_detail::wire_gates, nullptr},
     {segmentation_detail::kPyramids, segmentation_detail::wire_pyramid, nullptr},
     {segmentation_detail::kPooled, segmentation_detail::wire_pooled, nullptr},
     {segmentation_detail::kModels, segmentation_detail::wire_model, nullptr},
     {segmentation_detail::kDeeplab, segmentation_detail::wire_deeplab, nullptr}}};

}  // namespace gpumem::connect
