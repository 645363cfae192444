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

#include "gpumem/architectures/image_tokens.hpp"

namespace gpumem::architectures {

namespace segmentation_detail {

/// Twice a side, within what a plan can count.
inline std::int64_t twice(std::int64_t side) {
  constexpr std::int64_t kLongest = std::int64_t{1} << 40;
  return 2 * std::min(side, kLongest);
}

inline Tensor enlarged(Forward& f, Tensor images, std::int64_t height, std::int64_t width) {
  return f.call("upsample", {images}, {{"size", Sizes{height, width}}});
}

inline Tensor doubled(Forward& f, Tensor images) {
  return enlarged(f, images, twice(f.size(images, 2)), twice(f.size(images, 3)));
}

/// The latest tensor with these channels that is as large as `like` or a pixel larger, of the containers around the one
/// that is being called.
inline std::optional<Tensor> skip_for(Forward& f, const Module& block, Tensor like, std::int64_t channels) {
  const auto near = [&](Tensor tensor, std::size_t axis) {
    const std::int64_t more = f.size(tensor, axis) - f.size(like, axis);
    return more == 0 || more == 1;
  };
  for (const Tensor tensor : block.left_around()) {
    const bool fits = f.rank(tensor) == 4 && f.size(tensor, 1) == channels;
    if (fits && near(tensor, 2) && near(tensor, 3)) return tensor;
  }
  return std::nullopt;
}

/// Up: enlarge, pad to the skip's size (a copy even where nothing is padded), join, convolve.
inline Tensor call_up(Forward& f, const Module& block, Tensor input) {
  const auto conv = block.find("conv");
  if (!block.has("up") || !conv) return block.in_order(input);
  Tensor output = block("up", input);
  const std::int64_t missing = conv->width("in_channels").value_or(0) - f.channels(output);
  const auto skip = missing > 0 ? skip_for(f, block, output, missing) : std::nullopt;
  if (!skip) return conv->call(output);
  const Sizes sides = {0, f.size(*skip, 3) - f.size(output, 3), 0, f.size(*skip, 2) - f.size(output, 2)};
  output = f.call("pad", {output}, {{"padding", sides}});
  return conv->call(f.concatenate({*skip, output}, 1));
}

inline Tensor call_in_order(Forward&, const Module& block, Tensor input) { return block.in_order(input); }

/// SCSEModule: x cSE(x) + x sSE(x).
inline Tensor call_gates(Forward& f, const Module& block, Tensor input) {
  if (!block.has("cSE") || !block.has("sSE")) return block.in_order(input);
  const Tensor channels = f.multiply(input, block("cSE", input));
  const Tensor pixels = f.multiply(input, block("sSE", input));
  return f.add(channels, pixels);
}

/// ASPP: every branch reads the input; the pooled one is enlarged again.
inline Tensor call_pyramid(Forward& f, const Module& block, Tensor input) {
  const auto branches = block.parts("convs");
  if (branches.empty() || !block.has("project")) return block.in_order(input);
  const std::int64_t height = f.size(input, 2);
  const std::int64_t width = f.size(input, 3);
  std::vector<Tensor> results;
  for (const Module& branch : branches) {
    Tensor result = branch.call(input);
    if (f.size(result, 2) != height) result = enlarged(f, result, height, width);
    results.push_back(result);
  }
  return block("project", f.concatenate(results, 1));
}

/// PSPModule: the input beside what each branch pools to fewer pixels and enlarges again.
inline Tensor call_pooled(Forward& f, const Module& block, Tensor input) {
  const auto branches = block.parts("blocks");
  if (branches.empty()) return block.in_order(input);
  const std::int64_t height = f.size(input, 2);
  const std::int64_t width = f.size(input, 3);
  std::vector<Tensor> results;
  for (const Module& branch : branches) {
    const Tensor pooled = branch.call(input);
    results.push_back(enlarged(f, pooled, height, width));
  }
  results.push_back(input);
  return f.concatenate(results, 1);
}

/// What an encoder left, in its order.
class Features {
 public:
  Features(Forward& f, const Module& encoder, Tensor input) : f_(f), last_(input) { call(encoder.parts()); }
  [[nodiscard]] Tensor last() const { return last_; }
  /// The latest with these channels and this height; 0: any.
  [[nodiscard]] std::optional<Tensor> find(std::int64_t channels, std::int64_t height) const {
    const auto fits = [&](Tensor tensor) {
      return f_.rank(tensor) == 4 && (channels == 0 || f_.size(tensor, 1) == channels) &&
             (height == 0 || f_.size(tensor, 2) == height);
    };
    const auto found = std::find_if(all_.rbegin(), all_.rend(), fits);
    return found == all_.rend() ? std::nullopt : std::optional(*found);
  }

 private:
  void call(const std::vector<Module>& parts) {
    for (const Module& part : parts) {
      const std::string_view class_name = part.class_name();
      if (part.is_container() && (class_name == "Sequential" || class_name == "ModuleList")) {
        call(part.parts());
        continue;
      }
      last_ = part.call(last_);
      all_.push_back(last_);
    }
  }

  Forward& f_;
  Tensor last_;
  std::vector<Tensor> all_;
};

/// A block of UnetDecoder: enlarge, join the skips, convolve twice.
inline Tensor decoded(Forward& f, const Module& block, Tensor input, std::vector<Tensor> skips) {
  if (!block.is_container()) return input;
  Tensor output = doubled(f, input);
  if (!skips.empty()) {
    skips.insert(skips.begin(), output);
    output = block("attention1", f.concatenate(skips, 1));
  }
  return block("attention2", block("conv2", block("conv1", output)));
}

/// UnetDecoder: each block joins a skip where its first convolution reads one.
inline Tensor decode_unet(Forward& f, const Module& decoder, const Features& features) {
  Tensor output = decoder("center", features.last());
  for (const Module& part : decoder.parts("blocks")) {
    const std::int64_t skipped = part.width("in_channels").value_or(0) - f.channels(output);
    const auto skip = features.find(skipped, twice(f.size(output, 2)));
    output = decoded(f, part, output, skip ? std::vector<Tensor>{*skip} : std::vector<Tensor>());
  }
  return output;
}

/// UnetPlusPlusDecoder: block x_i_j reads x_i_(j-1), and beside it all of x_(i+1)_j to x_j_j and a feature.
inline Tensor decode_nested(Forward& f, const Module& decoder, const Features& features) {
  const auto list = decoder.find("blocks");
  const std::size_t blocks = list ? list->parts().size() : 0;
  if (blocks == 0) return features.last();
  std::size_t depth = 0;  // of n (n + 1) / 2 blocks and one more
  while ((depth + 1) * (depth + 2) / 2 < blocks) ++depth;
  const auto call = [&](std::size_t row, std::size_t column, Tensor input, std::vector<Tensor> skips) {
    const auto block = list->find(std::string("x_") + std::to_string(row) + "_" + std::to_string(column));
    return block ? decoded(f, *block, input, std::move(skips)) : input;
  };
  std::vector<Tensor> levels = {decoder("center", features.last())};  // from the smallest on
  while (levels.size() <= depth && !f.failed()) {
    const auto level = features.find(0, twice(f.size(levels.back(), 2)));
    if (!level) return features.last();
    levels.push_back(*level);
  }
  std::vector<std::vector<Tensor>> made(depth);  // made[row]: x_row_row and on
  for (std::size_t layer = 0; layer < depth; ++layer) {
    for (std::size_t row = 0; row + layer < depth && !f.failed(); ++row) {
      const std::size_t column = row + layer;
      std::vector<Tensor> skips;
      for (std::size_t other = row + 1; other <= column; ++other) skips.push_back(made[other][column - other]);
      skips.push_back(levels[column + 1]);
      made[row].push_back(call(row, column, layer == 0 ? levels[row] : made[row].back(), std::move(skips)));
    }
  }
  return depth == 0 || f.failed() ? levels[0] : call(0, depth, made[0].back(), {});
}

/// LinknetDecoder: what the encoder left at a block's size is added to it.
inline Tensor decode_linknet(Forward& f, const Module& decoder, const Features& features) {
  Tensor output = features.last();
  for (const Module& block : decoder.parts("blocks")) {
    output = block.call(output);
    const auto skip = features.find(f.channels(output), f.size(output, 2));
    if (skip) output = f.add(output, *skip);
  }
  return output;
}

/// SegmentationBlock: its convolutions, and as many times twice the size as the level is below the largest one.
inline Tensor grown(Forward& f, const Module& block, std::size_t times, Tensor input) {
  for (const Module& part : block.parts("block")) {
    input = part.call(input);
    if (times > 0) input = doubled(f, input);
    times -= times > 0 ? 1 : 0;
  }
  return input;
}

/// MergeBlock: torch.stack(x).sum(dim=0), or side by side where the head reads that.
inline Tensor merged(Forward& f, std::vector<Tensor> levels, std::int64_t wanted) {
  if (wanted != f.channels(levels.front())) return f.concatenate(levels, 1);
  for (Tensor& level : levels) level = f.call("unsqueeze", {level}, {{"dim", std::int64_t{0}}});
  return f.call("sum", {f.concatenate(levels, 0)}, {{"dim", std::int64_t{0}}});
}

/// FPNDecoder: from the smallest level up, each as wide as the pyramid and added to the next smaller one.
inline Tensor decode_fpn(Forward& f, const Module& decoder, const Features& features, std::int64_t wanted) {
  constexpr std::array<std::string_view, 3> kLevels = {"p4", "p3", "p2"};
  std::vector<Tensor> levels = {decoder("p5", features.last())};
  for (const std::string_view name : kLevels) {
    const auto level = decoder.find(name);
    if (!level || !level->is_container()) return features.last();
    const Tensor larger = doubled(f, levels.back());
    const std::int64_t channels = level->width("in_channels").value_or(0);
    const auto skip = features.find(channels, f.size(larger, 2));
    const Tensor own = (*level)("skip_conv", skip.value_or(larger));
    levels.push_back(f.add(larger, own));
  }
  const auto blocks = decoder.parts("seg_blocks");
  if (blocks.size() != levels.size()) return features.last();
  for (std::size_t at = 0; at < blocks.size(); ++at) {
    if (blocks[at].is_container()) levels[at] = grown(f, blocks[at], blocks.size() - 1 - at, levels[at]);
  }
  return decoder("dropout", merged(f, std::move(levels), wanted));
}

/// DeepLabV3PlusDecoder: the pyramid of the last feature, enlarged, beside an early one.
inline Tensor decode_deeplab_plus(Forward& f, const Module& decoder, const Features& features) {
  const auto early = decoder.find("block1");
  const Tensor large = decoder("up", decoder("aspp", features.last()));
  const std::int64_t channels = early ? early->width("in_channels").value_or(0) : std::int64_t{0};
  const auto skip = features.find(channels, f.size(large, 2));
  const Tensor own = decoder("block1", skip.value_or(large));
  return decoder("block2", f.concatenate({large, own}, 1));
}

inline constexpr std::array<std::string_view, 7> kDecoders = {"UnetDecoder", "UnetPlusPlusDecoder",  "LinknetDecoder",
                                                              "FPNDecoder",  "DeepLabV3PlusDecoder", "DeepLabV3Decoder",
                                                              "PSPDecoder"};

inline Tensor decode(Forward& f, const Module& decoder, const Features& features, std::int64_t wanted) {
  const std::string_view name = decoder.class_name();
  if (name == "UnetDecoder") return decode_unet(f, decoder, features);
  if (name == "UnetPlusPlusDecoder") return decode_nested(f, decoder, features);
  if (name == "LinknetDecoder") return decode_linknet(f, decoder, features);
  if (name == "FPNDecoder") return decode_fpn(f, decoder, features, wanted);
  if (name == "DeepLabV3PlusDecoder") return decode_deeplab_plus(f, decoder, features);
  return decoder.call(features.last());
}

/// SegmentationModel: encoder, decoder, head.
inline Tensor call_model(Forward& f, const Module& model, Tensor input) {
  const auto encoder = model.find("encoder");
  const auto decoder = model.find("decoder");
  const auto head = model.find("segmentation_head");
  const bool whole = encoder && decoder && head && encoder->is_container() &&
                     std::find(kDecoders.begin(), kDecoders.end(), decoder->class_name()) != kDecoders.end();
  if (!whole) return model.in_order(input);
  const Features features(f, *encoder, input);
  const std::int64_t wanted = head->width("in_channels").value_or(0);
  return model("segmentation_head", decode(f, *decoder, features, wanted));
}

/// torchvision's _SimpleSegmentationModel: a backbone whose last stage the classifier reads, and an earlier one an
/// auxiliary classifier; both are enlarged to the image's size.
inline Tensor call_simple(Forward& f, const Module& model, Tensor input) {
  const auto backbone = model.find("backbone");
  const bool whole = backbone && backbone->is_container() && model.has("classifier");
  if (!whole) return model.in_order(input);
  const std::int64_t height = f.size(input, 2);
  const std::int64_t width = f.size(input, 3);
  const Features features(f, *backbone, input);
  Tensor output = model("classifier", features.last());
  output = enlarged(f, output, height, width);
  const auto other = model.find("aux_classifier");
  if (!other) return output;
  const std::int64_t channels = other->width("in_channels").value_or(0);
  const auto earlier = features.find(channels, 0);
  if (!earlier) return output;
  (void)enlarged(f, other->call(*earlier), height, width);
  return output;
}

/// Models of one class name of two libraries.
inline Tensor call_deeplab(Forward& f, const Module& model, Tensor input) {
  return model.find("decoder") ? call_model(f, model, input) : call_simple(f, model, input);
}

inline constexpr std::array<std::string_view, 12> kInOrder = {
    "DoubleConv", "Down",        "OutConv",     "Conv2dReLU",        "SegmentationHead", "ASPPConv",
    "UNet",       "ASPPPooling", "TransposeX2", "ASPPSeparableConv", "PSPBlock",         "SeparableConv2d"};

}  // namespace segmentation_detail

inline constexpr std::array<ModuleForward, 7> kSegmentation = {
    {{names<"Up">, segmentation_detail::call_up},
     {segmentation_detail::kInOrder, segmentation_detail::call_in_order},
     {names<"SCSEModule">, segmentation_detail::call_gates},
     {names<"ASPP">, segmentation_detail::call_pyramid},
     {names<"PSPModule">, segmentation_detail::call_pooled},
     {names<"Unet", "UnetPlusPlus", "FPN", "Linknet", "DeepLabV3Plus", "PSPNet">, segmentation_detail::call_model},
     {names<"DeepLabV3", "FCN">, segmentation_detail::call_deeplab}}};

}  // namespace gpumem::architectures
