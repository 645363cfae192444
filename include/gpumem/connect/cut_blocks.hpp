// Input: a block of a known class that a table cut at a depth shows on one line: what it reads, what it returns, and
// the parameters of all its layers.
// Output: its layers, with widths that follow from these: the blocks of ResNet, RegNet, MobileNetV2 and V3 and
// EfficientNet, DenseNet's layers, a convolution with its norm and activation. If no widths give the exact count, the
// nearest smaller count is taken, the rest counts as bare parameters, and a warning says so. If more than a third is
// left over, the block gets the bounds of an unknown class (kept_by()).
// Source: torchvision.models.resnet, regnet, mobilenetv2, mobilenetv3, efficientnet, densenet.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/connect/wired_graph.hpp"
#include "gpumem/connect/wiring.hpp"
#include "gpumem/core/bytes.hpp"
#include "gpumem/core/shape.hpp"

namespace gpumem::connect {

class Wiring;  // whose bodies use this file

inline constexpr std::string_view kCutBlock = "cut_block";

struct CutBlock {
  core::Shape output;
  std::int64_t parameters = 0;
  std::string_view class_name;
};

/// Whether a layout of the block gives its parameters exactly.
[[nodiscard]] bool expands_exactly(const CutBlock& block, const core::Shape& input);

/// What the block leaves.
[[nodiscard]] Tensor expand_block(Wiring& wiring, Part row, const CutBlock& block, Tensor input);

namespace cut_blocks_detail {

/// One convolution of a block, with its batch norm.
struct Convolution {
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t groups = 1;
  bool active = true;  ///< an activation after it

  [[nodiscard]] std::int64_t parameters() const { return in / groups * out * kernel * kernel + 2 * out; }
};

/// A block's main path, and its shortcut where that has a convolution.
struct Layout {
  std::vector<Convolution> main;
  std::optional<Convolution> shortcut;
  std::int64_t gate = 0;  ///< channels within a squeeze-and-excitation gate before the last convolution; 0: none
  bool adds = false;
  bool activates = false;                ///< after the sum (ResNet)
  std::string_view activation = "relu";  ///< its op
  bool norm_first = false;               ///< DenseNet: norm and activation before each convolution

  [[nodiscard]] std::int64_t parameters() const {
    std::int64_t sum = shortcut ? shortcut->parameters() : 0;
    for (const Convolution& each : main) sum += each.parameters() + (norm_first ? 2 * (each.in - each.out) : 0);
    const std::int64_t width = gate > 0 ? main.back().in : 0;
    return sum + (gate > 0 ? 2 * width * gate + gate + width : 0);
  }
};

/// Sizes of a block: channels in and out, and how many times smaller its output is.
struct Sizes {
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t stride = 1;
};

/// The layout whose count is nearest to the block's, and not above it.
class Nearest {
 public:
  explicit Nearest(std::int64_t wanted) : wanted_(wanted) {}
  void offer(Layout layout) {
    const std::int64_t count = layout.parameters();
    if (count > wanted_ || (best_ && count <= count_)) return;
    best_ = std::move(layout);
    count_ = count;
  }
  [[nodiscard]] const std::optional<Layout>& best() const { return best_; }
  [[nodiscard]] std::int64_t left() const { return wanted_ - count_; }
  [[nodiscard]] std::int64_t wanted() const { return wanted_; }
  [[nodiscard]] bool exact() const { return best_ && count_ == wanted_; }

 private:
  std::int64_t wanted_;
  std::int64_t count_ = 0;
  std::optional<Layout> best_;
};

inline constexpr std::array<std::int64_t, 2> kKernels = {3, 5};

inline std::optional<Convolution> projection(const Sizes& sizes) {
  if (sizes.in == sizes.out && sizes.stride == 1) return std::nullopt;
  return Convolution{sizes.in, sizes.out, 1, sizes.stride, 1, false};
}

inline void offer_resnet(const Sizes& sizes, bool bottleneck, Nearest& nearest) {
  const auto shortcut = projection(sizes);
  if (!bottleneck) {
    nearest.offer(
        {{{sizes.in, sizes.out, 3, sizes.stride}, {sizes.out, sizes.out, 3, 1, 1, false}}, shortcut, 0, true, true});
    return;
  }
  for (const std::int64_t groups : {1, 32, 64}) {
    for (std::int64_t width = groups; width <= 2 * sizes.out; width += groups) {
      nearest.offer(
          {{{sizes.in, width, 1}, {width, width, 3, sizes.stride, groups}, {width, sizes.out, 1, 1, 1, false}},
           shortcut,
           0,
           true,
           true});
    }
  }
}

/// RegNet: as wide inside as its output, in groups of a width of its own; of RegNetY a gate of a quarter of its input.
inline void offer_regnet(const Sizes& sizes, Nearest& nearest) {
  constexpr std::array<std::int64_t, 18> kGroupWidths = {8,  16, 24,  32,  40,  48,  56,  58,  64,
                                                         72, 80, 112, 120, 128, 168, 224, 232, 264};
  const std::int64_t width = sizes.out;
  for (const std::int64_t each : kGroupWidths) {
    if (width % each != 0) continue;
    for (const bool gated : {false, true}) {
      nearest.offer(
          {{{sizes.in, width, 1}, {width, width, 3, sizes.stride, width / each}, {width, width, 1, 1, 1, false}},
           projection(sizes),
           gated ? std::max<std::int64_t>(1, (sizes.in + 2) / 4) : 0,
           true,
           true});
    }
  }
}

/// Rounded to a multiple of 8, and not below nine tenths (torchvision.models._utils._make_divisible).
inline std::int64_t divisible(std::int64_t value) {
  const std::int64_t rounded = std::max<std::int64_t>(8, (value + 4) / 8 * 8);
  return 10 * rounded < 9 * value ? rounded + 8 : rounded;
}

/// An inverted residual, of MobileNetV2 (ReLU6), V3 (a gate of a quarter of its inner width, Hardswish) or EfficientNet
/// (a gate of a quarter of its input, SiLU). `times`: how many times wider its inside is.
inline void offer_inverted(const Sizes& sizes, std::int64_t width, bool adds, Nearest& nearest) {
  struct Kind {
    std::int64_t gate = 0;
    std::string_view activation;
  };
  const std::array<Kind, 3> kinds = {
      {{0, "relu6"}, {divisible(width / 4), "hardswish"}, {std::max<std::int64_t>(1, sizes.in / 4), "silu"}}};
  for (const Kind& kind : kinds) {
    for (const std::int64_t kernel : kKernels) {
      Layout layout;
      if (width != sizes.in) layout.main.push_back({sizes.in, width, 1});
      layout.main.push_back({width, width, kernel, sizes.stride, width});
      layout.main.push_back({width, sizes.out, 1, 1, 1, false});
      layout.gate = kind.gate;
      layout.adds = adds;
      layout.activation = kind.activation;
      nearest.offer(std::move(layout));
    }
  }
}

/// `whole`: with its sum; a table may show its main path on a row of its own.
inline void offer_mobile(const Sizes& sizes, bool whole, Nearest& nearest) {
  constexpr std::int64_t kMostTimes = 8;
  const bool adds = whole && sizes.in == sizes.out && sizes.stride == 1;
  for (std::int64_t times = 1; times <= kMostTimes; ++times) {
    offer_inverted(sizes, sizes.in * times, adds, nearest);
  }
  // MobileNetV3 has widths of its own; a published one is a multiple of 8.
  const std::int64_t most = std::min(kMostTimes * sizes.in, nearest.wanted() / std::max<std::int64_t>(sizes.in, 1));
  for (std::int64_t width = 8; width <= most && !nearest.exact(); width += 8) {
    offer_inverted(sizes, width, adds, nearest);
  }
}

/// EfficientNetV2: one convolution in place of the first two.
inline void offer_fused(const Sizes& sizes, Nearest& nearest) {
  Layout layout;
  layout.adds = sizes.in == sizes.out && sizes.stride == 1;
  layout.activation = "silu";
  layout.main = {{sizes.in, sizes.out, 3, sizes.stride}};
  nearest.offer(layout);
  for (std::int64_t times = 2; times <= 8; ++times) {
    const std::int64_t width = sizes.in * times;
    layout.main = {{sizes.in, width, 3, sizes.stride}, {width, sizes.out, 1, 1, 1, false}};
    nearest.offer(layout);
  }
}

inline Nearest layout_of(const CutBlock& block, const Sizes& sizes) {
  Nearest nearest(block.parameters);
  const std::string_view name = block.class_name;
  if (name == "BasicBlock" || name == "Bottleneck") {
    offer_resnet(sizes, name == "Bottleneck", nearest);
    if (name == "Bottleneck" && !nearest.exact()) offer_regnet(sizes, nearest);
  } else if (name == "ResBottleneckBlock") {
    offer_regnet(sizes, nearest);
  } else if (name == "InvertedResidual" || name == "MBConv") {
    offer_mobile(sizes, true, nearest);
  } else if (name == "FusedMBConv") {
    offer_fused(sizes, nearest);
  } else if (name.ends_with("DenseLayer")) {
    for (std::int64_t width = 1; width <= 16 * sizes.out; ++width) {
      nearest.offer({{{sizes.in, width, 1}, {width, sizes.out, 3}}, {}, 0, false, false, "relu", true});
    }
  } else if (name == "Sequential") {  // a shortcut, or the main path of an inverted residual
    nearest.offer({{{sizes.in, sizes.out, 1, sizes.stride, 1, false}}, {}, 0, false});
    if (!nearest.exact()) offer_mobile(sizes, false, nearest);
  } else {
    for (const std::int64_t kernel : {1, 3, 5, 7}) {
      nearest.offer({{{sizes.in, sizes.out, kernel, sizes.stride}}, {}, 0, false});
      if (sizes.in == sizes.out) nearest.offer({{{sizes.in, sizes.out, kernel, sizes.stride, sizes.in}}, {}, 0, false});
    }
  }
  return nearest;
}

inline std::int64_t fixed(const core::Shape& shape, std::size_t axis) {
  return axis < shape.rank() && shape[axis].kind == core::Dim::Kind::fixed ? shape[axis].size : 0;
}

/// The layout of a block that reads this shape; none if its sizes are not those of images.
inline Nearest nearest_of(const CutBlock& block, const core::Shape& from) {
  constexpr std::int64_t kMostChannels = 1 << 14;
  Sizes sizes{fixed(from, 1), fixed(block.output, 1), 1};
  const std::int64_t height = fixed(block.output, 2);
  if (height > 0) sizes.stride = (fixed(from, 2) + height - 1) / height;
  const bool usable = from.rank() == 4 && block.output.rank() == 4 && sizes.in > 0 && sizes.out > 0 && height > 0 &&
                      sizes.in <= kMostChannels && sizes.out <= kMostChannels && sizes.stride > 0 && sizes.stride <= 8;
  return usable ? layout_of(block, sizes) : Nearest(0);
}

inline Tensor norm(Wiring& wiring, std::int64_t channels, Tensor input) {
  return wiring.operation("batch_norm", {&input, 1}, {{"num_features", channels}});
}

inline Tensor activated(Wiring& wiring, Tensor input, std::string_view activation = "relu") {
  return wiring.operation(activation, {&input, 1}, {{"inplace", true}});
}

inline Tensor convolved(Wiring& wiring, const Convolution& of, const Layout& layout, Tensor input) {
  if (layout.norm_first) input = activated(wiring, norm(wiring, of.in, input));
  const Tensor output = wiring.operation("conv2d", {&input, 1},
                                         {{"in_channels", of.in},
                                          {"out_channels", of.out},
                                          {"kernel_size", of.kernel},
                                          {"stride", of.stride},
                                          {"padding", of.kernel / 2},
                                          {"groups", of.groups},
                                          {"bias", false}});
  if (layout.norm_first) return output;
  const Tensor normal = norm(wiring, of.out, output);
  return of.active ? activated(wiring, normal, layout.activation) : normal;
}

/// x * sigmoid(fc2(relu(fc1(mean of x))))
inline Tensor gated(Wiring& wiring, std::int64_t channels, std::int64_t inner, Tensor input) {
  Tensor scale = wiring.operation("adaptive_avg_pool2d", {&input, 1}, {{"output_size", std::int64_t{1}}});
  const auto fully = [&](std::int64_t in, std::int64_t out) {
    scale = wiring.operation("conv2d", {&scale, 1},
                             {{"in_channels", in}, {"out_channels", out}, {"kernel_size", std::int64_t{1}}});
  };
  fully(channels, inner);
  scale = activated(wiring, scale);
  fully(inner, channels);
  return wiring.multiply(input, wiring.operation("sigmoid", {&scale, 1}));
}

inline Tensor built(Wiring& wiring, const Layout& layout, Tensor input) {
  Tensor output = input;
  for (const Convolution& each : layout.main) {
    const bool last = &each == &layout.main.back();
    if (last && layout.gate > 0) output = gated(wiring, each.in, layout.gate, output);
    output = convolved(wiring, each, layout, output);
  }
  if (!layout.adds) return output;
  const Tensor shortcut = layout.shortcut ? convolved(wiring, *layout.shortcut, layout, input) : input;
  const Tensor sum = wiring.add(output, shortcut, true);
  return layout.activates ? activated(wiring, sum) : sum;
}

}  // namespace cut_blocks_detail

inline bool expands_exactly(const CutBlock& block, const core::Shape& input) {
  const cut_blocks_detail::Nearest nearest = cut_blocks_detail::nearest_of(block, input);
  return nearest.best() && nearest.left() == 0;
}

inline Tensor expand_block(Wiring& wiring, Part row, const CutBlock& block, Tensor input) {
  namespace detail = cut_blocks_detail;
  const core::Shape from = wiring.shape(input);
  const detail::Nearest nearest = detail::nearest_of(block, from);
  if (!nearest.best() || nearest.left() > block.parameters / 3) return wiring.call_hidden(row, input);
  if (nearest.left() > 0) {
    wiring.guess(row, "is shown without its layers, and no sizes give its parameters exactly: " +
                          core::with_separators(nearest.left()) + " of them are counted apart");
    const std::vector<std::int64_t> rest = {nearest.left()};
    wiring.operation(model::kParameterOp, {}, {{"shape", rest}});
  }
  return detail::built(wiring, *nearest.best(), input);
}

}  // namespace gpumem::connect
