// The blocks of convolutional nets of torchvision and timm that are sums: of their input and what they compute of it,
// of branches that are run as one later, of branches by their weights.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/architectures/image_tokens.hpp"

namespace gpumem::architectures {

// Blocks that add their input to what they compute: torchvision's and timm's ResNet (BasicBlock, Bottleneck: out +=
// identity, then the activation), MobileNetV2 and V3, MnasNet and EfficientNet (InvertedResidual, MBConv, FusedMBConv,
// where input and output have one shape), RegNet (ResBottleneckBlock). ShuffleNetV2's InvertedResidual joins its
// branches side by side. Source: torchvision.models, timm.models.

inline bool is_activation(std::string_view op) {
  constexpr std::array<std::string_view, 8> kActivations = {"relu", "relu6",      "silu", "hardswish",
                                                            "gelu", "leaky_relu", "mish", "hardtanh"};
  return std::find(kActivations.begin(), kActivations.end(), op) != kActivations.end();
}

/// The two sides of a sum.
struct Sides {
  Tensor main = 0;
  std::optional<Tensor> shortcut;
};

/// main + shortcut where there is one, input + main where they have one shape; else what the main path leaves.
inline Tensor join_sides(Forward& f, const Sides& sides, Tensor input, bool in_place) {
  const auto sum = [&](Tensor left, Tensor right) { return in_place ? add_into(f, left, right) : f.add(left, right); };
  if (sides.shortcut) return sum(sides.main, *sides.shortcut);
  if (!(f.shape(sides.main) == f.shape(input))) return sides.main;
  return in_place ? sum(sides.main, input) : sum(input, sides.main);
}

/// Whether a layer of this op is in the container.
inline bool holds_op(const Module& container, std::string_view op) {
  const std::vector<Module> parts = container.parts();
  return std::any_of(parts.begin(), parts.end(),
                     [&](const Module& part) { return part.is_container() ? holds_op(part, op) : part.op() == op; });
}

/// Where the shapes allow it MobileNetV2, whose activation is relu6, makes a new tensor of its sum, MobileNetV3 not.
inline bool adds_in_place(const Module& block) { return !holds_op(block, "relu6"); }

namespace residual_detail {

/// One relu stands for all of its calls, and the shortcut is declared last.
inline Tensor call_declared_resnet(Forward& f, const Module& block, Tensor input) {
  Sides sides{input, std::nullopt};
  const bool three = block.has("conv3");
  const std::string_view last = three ? "bn3" : "bn2";  // the sum comes after it
  for (const Module& part : block.parts()) {
    const std::string_view name = part.name();
    if (name == "relu" || name == "act2" || name == "act3") continue;
    if (name == "downsample" || name == "shortcut") {
      sides.shortcut = part.call(input);
      continue;
    }
    sides.main = part.call(sides.main);
    if (name.starts_with("bn") && name != last) sides.main = block("relu", sides.main);
    if (name == "bn2" && three && block.has("bn3")) sides.main = block("act2", sides.main);
  }
  const Tensor sum = join_sides(f, sides, input, true);
  return block.has("relu") ? block("relu", sum) : block(three ? "act3" : "act2", sum);
}

inline bool is_shortcut(std::string_view name) {
  constexpr std::array<std::string_view, 5> kNames = {"downsample", "shortcut", "identity", "skip", "proj"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

/// The parts of a block that declares its shortcut by a usual name.
struct NamedParts {
  std::vector<Module> main;
  std::optional<Module> shortcut;
  std::optional<Module> last;  ///< the activation after the sum
};

/// Not inlined, like what follows the calls in call_named: the blocks of a tree nest, and each would keep room for it.
[[gnu::noinline]] inline NamedParts named_parts(const Module& block) {
  NamedParts parts;
  for (const Module& part : block.parts()) {
    if (is_shortcut(part.name())) {
      parts.shortcut = part;
    } else {
      parts.main.push_back(part);
    }
  }
  for (std::size_t at = parts.main.size(); at > 1; --at) {  // only what drops paths may follow the activation
    const Module part = parts.main[at - 1];
    if (is_activation(part.op()) && part.name().starts_with("act")) {
      parts.last = part;
      parts.main.erase(parts.main.begin() + static_cast<std::ptrdiff_t>(at) - 1);
      break;
    }
    if (!part.name().starts_with("drop_path") && !part.name().starts_with("attn_last")) break;
  }
  return parts;
}

[[gnu::noinline]] inline Tensor join_named(Forward& f, Sides sides, Tensor input) {
  if (sides.shortcut && !(f.shape(*sides.shortcut) == f.shape(sides.main))) sides.shortcut.reset();
  return join_sides(f, sides, input, false);
}

/// Any block that declares its shortcut by a usual name, and the activation after the sum last: the others are called
/// in their order.
inline Tensor call_named(Forward& f, const Module& block, Tensor input) {
  const NamedParts parts = named_parts(block);
  Sides sides{input, std::nullopt};
  if (parts.shortcut) sides.shortcut = parts.shortcut->call(input);
  sides.main = call_all(parts.main, input);
  const Tensor sum = join_named(f, sides, input);
  return parts.last ? parts.last->call(sum) : sum;
}

/// out = main(x); out += shortcut(x); activation(out).
inline Tensor call_resnet(Forward& f, const Module& block, Tensor input) {
  const bool plain = block.has("bn1") || block.has("relu");
  return plain ? call_declared_resnet(f, block, input) : call_named(f, block, input);
}

/// RegNet: shortcut(x) + main(x), the shortcut called first.
inline Tensor call_regnet(Forward& f, const Module& block, Tensor input) {
  if (!block.has("f") || !block.has("activation")) return block.in_order(input);
  const Tensor left = block("proj", input);
  return block("activation", f.add(left, block("f", input)));
}

/// ShuffleNetV2's groups of channels, taken in turns (channel_shuffle with two groups).
inline Tensor shuffled(Forward& f, Tensor input) {
  const Tensor parted = f.unflatten(input, 1, {2, f.size(input, 1) / 2});
  return f.flatten(f.contiguous(f.permute(parted, {0, 2, 1, 3, 4})), 1, 2);
}

/// ShuffleNetV2's block of the same name: two branches side by side, or one on half of the channels.
inline Tensor call_shuffle(Forward& f, const Module& block, Tensor input) {
  Tensor left = input;
  Tensor right = input;
  if (block.has("branch1")) {
    left = block("branch1", input);
  } else {
    const std::vector<Tensor> halves = parts_of(f, input, 2, 1);
    left = halves[0];
    right = halves[1];
  }
  return shuffled(f, f.concatenate({left, block("branch2", right)}, 1));
}

/// A StochasticDepth is called only where there is a sum.
template <bool EverInPlace>
Tensor call_inverted(Forward& f, const Module& block, Tensor input) {
  if (block.has("branch2")) return call_shuffle(f, block, input);
  Tensor main = input;
  for (const Module& part : block.parts()) {
    if (part.name() != "stochastic_depth") main = part.call(main);
  }
  if (!(f.shape(main) == f.shape(input))) return main;
  main = block("stochastic_depth", main);
  return join_sides(f, {main, std::nullopt}, input, EverInPlace && adds_in_place(block));
}

inline constexpr std::array<std::string_view, 9> kResnet = {
    "BasicBlock",          "Bottleneck",           "ResNestBottleneck",
    "SEResNetBlock",       "SEBottleneck",         "SEResNetBottleneck",
    "SEResNeXtBottleneck", "SelectiveKernelBasic", "SelectiveKernelBottleneck"};
inline constexpr std::array<std::string_view, 11> kNamed = {
    "MbConvBlock",   "MbConvLNBlock",    "BottleneckBlock",      "DarkBlock",
    "EdgeBlock",     "SelfAttnBlock",    "PreActBottleneck",     "PreActBasic",
    "ResBottleneck", "MultiBranchBlock", "LinearBottleneckBlock"};
inline constexpr std::array<std::string_view, 9> kMobile = {
    "InvertedResidual", "MBConv",    "FusedMBConv",     "DepthwiseSeparableConv",   "EdgeResidual",
    "CondConvResidual", "ConvBnAct", "MobileAttention", "UniversalInvertedResidual"};
inline constexpr std::array<std::string_view, 1> kMnasnet = {"_InvertedResidual"};
inline constexpr std::array<std::string_view, 1> kRegnet = {"ResBottleneckBlock"};

}  // namespace residual_detail

inline constexpr std::array<ModuleForward, 5> kResidualBlocks = {
    {{residual_detail::kResnet, residual_detail::call_resnet},
     {residual_detail::kNamed, residual_detail::call_named},
     {residual_detail::kRegnet, residual_detail::call_regnet},
     {residual_detail::kMnasnet, residual_detail::call_inverted<false>},
     {residual_detail::kMobile, residual_detail::call_inverted<true>}}};

// Blocks that are trained as several branches side by side, which are summed and run as one convolution later: RepVGG,
// MobileOne, FastViT, RepGhost, RepViT. Source: timm 1.0.9, timm.models.byobnet, fastvit, repghost, repvit.

namespace rep_block_detail {

/// The sum of what these parts make of one input; parts of a list are branches of their own.
inline std::optional<Tensor> summed(Forward& f, const Module& block, std::initializer_list<std::string_view> names,
                                    Tensor input) {
  std::optional<Tensor> sum;
  const auto add = [&](const Module& part) {
    const Tensor output = part.call(input);
    sum = sum ? add_into(f, *sum, output) : output;
  };
  for (const std::string_view name : names) {
    const auto part = block.find(name);
    if (!part) continue;
    if (part->class_name() != "ModuleList") {
      add(*part);
      continue;
    }
    for (const Module& branch : part->parts()) add(branch);
  }
  return sum;
}

/// RepVggBlock, MobileOneBlock, ReparamLargeKernelConv: branches, a gate, an activation.
inline Tensor call_rep(Forward& f, const Module& block, Tensor input) {
  const auto sum =
      summed(f, block, {"identity", "conv_scale", "conv_1x1", "conv_kxk", "large_conv", "small_conv"}, input);
  return block("act", block("se", block("attn", sum.value_or(input))));
}

/// RepVggDw of repvit: bn(conv(x) + conv1(x) + x).
inline Tensor call_depthwise(Forward& f, const Module& block, Tensor input) {
  const auto sum = summed(f, block, {"conv", "conv1"}, input);
  if (!sum) return block.in_order(input);
  return block("bn", f.add(*sum, input));
}

/// RepMixer: x + layer_scale(mixer(x) - norm(x)).
inline Tensor call_mixer(Forward& f, const Module& block, Tensor input) {
  if (!block.has("mixer")) return block.in_order(input);
  const Tensor mixed = block("mixer", input);
  const Tensor difference = f.add(mixed, block("norm", input));
  return f.add(input, block("layer_scale", difference));
}

/// RepMixerBlock: the mixer, and a sum with what the MLP makes of it. AttentionBlock: two such sums.
inline Tensor call_mixer_block(Forward& f, const Module& block, Tensor input) {
  const bool attention = block.has("layer_scale_1");
  Tensor mixed = block("token_mixer", attention ? block("norm", input) : input);
  if (attention) mixed = f.add(input, block("drop_path1", block("layer_scale_1", mixed)));
  const Tensor output = block(attention ? "layer_scale_2" : "layer_scale", block("mlp", mixed));
  return f.add(mixed, block(attention ? "drop_path2" : "drop_path", output));
}

/// RepConditionalPosEnc: x + pos_enc(x).
inline Tensor call_positions(Forward& f, const Module& block, Tensor input) {
  const Tensor output = block.in_order(input);
  const bool sum = f.shape(output) == f.shape(input);
  return sum ? f.add(output, input) : output;
}

/// RepViTBlock: token_mixer, se, x + channel_mixer(x).
inline Tensor call_repvit(Forward& f, const Module& block, Tensor input) {
  if (!block.has("channel_mixer")) return block.in_order(input);
  const Tensor mixed = block("se", block("token_mixer", input));
  return f.add(mixed, block("channel_mixer", mixed));
}

/// RepVitDownsample: pre_block, two convolutions, x + ffn(x).
inline Tensor call_repvit_downsample(Forward& f, const Module& block, Tensor input) {
  if (!block.has("ffn")) return block.in_order(input);
  const Tensor small = block("channel_downsample", block("spatial_downsample", block("pre_block", input)));
  return f.add(small, block("ffn", small));
}

}  // namespace rep_block_detail

inline constexpr std::array<ModuleForward, 7> kRepBlocks = {
    {{names<"RepVggBlock", "MobileOneBlock", "ReparamLargeKernelConv">, rep_block_detail::call_rep},
     {names<"RepVggDw">, rep_block_detail::call_depthwise},
     {names<"RepMixer">, rep_block_detail::call_mixer},
     {names<"RepMixerBlock", "AttentionBlock">, rep_block_detail::call_mixer_block},
     {names<"RepConditionalPosEnc", "ConvPosEnc", "PosConv">, rep_block_detail::call_positions},
     {names<"RepViTBlock">, rep_block_detail::call_repvit},
     {names<"RepVitDownsample">, rep_block_detail::call_repvit_downsample}}};

// Convolutions whose branches are weighted by a softmax: ResNeSt's SplitAttn, SKNet's SelectiveKernel; Res2Net's
// hierarchy of splits. Source: timm 1.0.9, timm.layers.split_attn, timm.layers.selective_kernel, timm.models.res2net.

namespace split_attention_detail {

inline Tensor summed(Forward& f, Tensor tensor, std::int64_t dim) { return f.call("sum", {tensor}, {{"dim", dim}}); }

inline Tensor one_pixel(Forward& f, Tensor images) {
  return f.call("mean", {images}, {{"dim", Sizes{2, 3}}, {"keepdim", true}});
}

/// [N, r C, h, w] -> r branches of C channels, each times its weight, summed.
inline Tensor call_split(Forward& f, const Module& block, Tensor input) {
  const auto reader = block.find("fc1");
  const auto reads = reader ? reader->width("in_channels") : std::nullopt;
  const Tensor all = block({"conv", "bn0", "drop", "act0"}, input);
  if (!reads) return all;
  const std::int64_t width = f.size(all, 1);
  const std::int64_t groups = *reads > 0 && width % *reads == 0 ? width / *reads : 1;
  const Tensor parted = groups > 1 ? f.unflatten(all, 1, {groups, *reads}) : all;
  const Tensor mean = one_pixel(f, groups > 1 ? summed(f, parted, 1) : all);
  Tensor weights = block({"fc1", "bn1", "act1", "fc2"}, mean);
  if (groups == 1) return f.multiply(all, f.call("sigmoid", {weights}));
  weights = reshaped(f, weights, {groups, *reads, 1, 1});
  weights = f.call("softmax", {weights}, {{"dim", std::int64_t{1}}});
  return summed(f, f.multiply(parted, weights), 1);
}

/// Paths side by side, their sum pooled and put through the gate, each path times its weight.
inline Tensor call_selective(Forward& f, const Module& block, Tensor input) {
  const auto paths = block.find("paths");
  const auto attn = block.find("attn");
  if (!paths || !attn || paths->parts().empty()) return block.in_order(input);
  const std::vector<Module> parts = paths->parts();
  const auto count = static_cast<std::int64_t>(parts.size());
  const std::int64_t each = f.channels(input) / std::max<std::int64_t>(count, 1);
  std::vector<Tensor> outputs;
  for (const Module& part : parts) {
    const auto conv = part.width("in_channels");
    const bool splits = conv && *conv == each && each * count == f.channels(input);
    const auto start = static_cast<std::int64_t>(outputs.size()) * each;
    const Tensor read = splits ? f.slice(input, 1, start, each) : input;
    const Tensor output = part.call(read);
    outputs.push_back(f.call("unsqueeze", {output}, {{"dim", std::int64_t{1}}}));
  }
  const Tensor stacked = f.concatenate(outputs, 1);
  const Tensor mean = one_pixel(f, summed(f, stacked, 1));
  Tensor weights = attn->in_order(mean);
  weights = reshaped(f, weights, {count, -1, 1, 1});
  weights = f.call("softmax", {weights}, {{"dim", std::int64_t{1}}});
  return summed(f, f.multiply(stacked, weights), 1);
}

/// Bottle2neck.
inline Tensor call_hierarchy(Forward& f, const Module& block, Tensor input) {
  if (!block.has("convs") || !block.has("bns")) return block.in_order(input);
  const Tensor split = in_hierarchy(f, block, block({"conv1", "bn1", "relu"}, input));
  Tensor output = block({"conv3", "bn3", "se"}, split);
  const Tensor shortcut = block("downsample", input);
  if (f.shape(output) == f.shape(shortcut)) output = add_into(f, output, shortcut);
  return block("relu", output);
}

}  // namespace split_attention_detail

inline constexpr std::array<ModuleForward, 3> kSplitAttention = {
    {{names<"SplitAttn">, split_attention_detail::call_split},
     {names<"SelectiveKernel">, split_attention_detail::call_selective},
     {names<"Bottle2neck">, split_attention_detail::call_hierarchy}}};

// ResNet as transformers has it, of a config.json. Source: transformers 5.5, models/resnet/modeling_resnet.py.

namespace resnet {

struct Model {
  std::vector<std::int64_t> widths;
  std::vector<std::int64_t> depths;
  PictureSize picture;
  std::int64_t channels = 3;
  std::int64_t stem = 64;
  std::int64_t labels = 2;
  bool narrows = true;               ///< blocks are bottlenecks
  bool first_halves = false;         ///< the first stage makes images smaller, too
  bool halves_by_narrowing = false;  ///< by the first convolution of a bottleneck, not the second
  std::string_view activation = "relu";
};

inline Model read(ConfigFields& config) {
  constexpr std::size_t kMostStages = 8;
  Model m;
  m.widths = config.sizes_or("hidden_sizes", {256, 512, 1024, 2048});
  m.depths = config.sizes_or("depths", {3, 4, 6, 3});
  m.picture = picture_read(config, 224);
  m.channels = config.size_or({"num_channels"}, 3);
  m.stem = config.size_or({"embedding_size"}, 64);
  m.labels = labels_of(config);
  const std::string_view kind = config.text({"layer_type"}, "bottleneck");
  m.narrows = kind == "bottleneck";
  m.first_halves = config.flag("downsample_in_first_stage", false);
  m.halves_by_narrowing = config.flag("downsample_in_bottleneck", false);
  m.activation = config.text({"hidden_act"}, "relu");
  config.ignore({"stage_names", "out_features", "out_indices"});
  if (kind != "bottleneck" && kind != "basic") config.fail("must be bottleneck or basic", "layer_type");
  if (m.widths.empty() || m.widths.size() > kMostStages || m.widths.size() != m.depths.size())
    config.fail("must have one to eight sizes, as many as depths", "hidden_sizes");
  for (const std::int64_t depth : m.depths) {
    if (depth > ConfigFields::kMostLayers) config.fail("has more layers than gpumem takes", "depths");
  }
  return m;
}

/// A convolution and its norm, with an activation where there is one.
inline Tensor normed(Forward& f, const Model& m, std::string_view name, Tensor image, Convolution of, bool active) {
  const InModule inside(f, name, name == "shortcut" ? "ResNetShortCut" : "ResNetConvLayer");
  of.padding = of.kernel / 2;
  of.bias = false;
  const Tensor made = convolution(f, "convolution", image, of);
  const Tensor even = f.layer("normalization", "BatchNorm2d", "batch_norm", {made}, {{"num_features", of.out}});
  return active ? f.activation("activation", even, m.activation) : even;
}

inline Tensor block(Forward& f, const Model& m, Tensor input, std::int64_t in, std::int64_t out, std::int64_t stride) {
  Tensor made = 0;
  {
    const InModule inside(f, "layer", "Sequential");
    if (m.narrows) {
      const std::int64_t inner = std::max<std::int64_t>(out / 4, 1);
      const std::int64_t first = m.halves_by_narrowing ? stride : 1;
      made = normed(f, m, "0", input, {.in = in, .out = inner, .stride = first}, true);
      made = normed(f, m, "1", made, {.in = inner, .out = inner, .kernel = 3, .stride = stride / first}, true);
      made = normed(f, m, "2", made, {.in = inner, .out = out}, false);
    } else {
      made = normed(f, m, "0", input, {.in = in, .out = out, .kernel = 3, .stride = stride}, true);
      made = normed(f, m, "1", made, {.in = out, .out = out, .kernel = 3}, false);
    }
  }
  const bool projects = in != out || stride != 1;
  const Tensor shortcut =
      projects ? normed(f, m, "shortcut", input, {.in = in, .out = out, .stride = stride}, false) : input;
  return f.activation("activation", add_into(f, made, shortcut), m.activation);
}

inline Tensor encoder(Forward& f, const Model& m, Tensor image) {
  const InModule inside(f, "encoder", "ResNetEncoder");
  const InModule list(f, "stages", "ModuleList");
  for (std::size_t at = 0; at < m.depths.size() && !f.failed(); ++at) {
    const InModule stage(f, std::to_string(at), "ResNetStage");
    const std::int64_t width = m.widths[at];
    image = stack(f, "layers", m.narrows ? "ResNetBottleNeckLayer" : "ResNetBasicLayer", m.depths[at], image,
                  [&](Tensor x, std::int64_t index) {
                    const std::int64_t read = index > 0 ? width : at > 0 ? m.widths[at - 1] : m.stem;
                    return block(f, m, x, read, width, index == 0 && (at > 0 || m.first_halves) ? 2 : 1);
                  });
  }
  return image;
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model m = read(config);
  check_classifies(config, head);
  if (!config.status()) return;
  Tensor pooled = 0;
  {
    const InModule inside(f, "resnet", "ResNetModel");
    Tensor image = f.sample_input("pixel_values", {m.channels, m.picture.height, m.picture.width});
    {
      const InModule stem(f, "embedder", "ResNetEmbeddings");
      image = normed(f, m, "embedder", image, {.in = m.channels, .out = m.stem, .kernel = 7, .stride = 2}, true);
      image = f.layer("pooler", "MaxPool2d", "max_pool2d", {image},
                      {{"kernel_size", Sizes{3, 3}}, {"stride", Sizes{2, 2}}, {"padding", Sizes{1, 1}}});
    }
    image = encoder(f, m, image);
    if (head == Head::none) f.hand_out(image);
    pooled = f.layer("pooler", "AdaptiveAvgPool2d", "adaptive_avg_pool2d", {image}, {{"output_size", Sizes{1, 1}}});
  }
  if (head == Head::none) return;
  const InModule classifier(f, "classifier", "Sequential");
  f.linear("1", f.flatten(pooled, 1, 3), m.widths.back(), m.labels);
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"ResNet", "resnet", "resnet"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kMostStages = 16;  // more than a config may have
  const std::string first = "encoder.stages.0.layers.0.";
  const bool narrows = t.has(first + "layer.2");
  std::vector<std::int64_t> depths;
  std::vector<std::int64_t> widths;
  const std::int64_t stages = std::min(t.count_of("encoder.stages"), kMostStages);
  for (std::int64_t at = 0; at < stages; ++at) {
    const std::string layers = "encoder.stages." + std::to_string(at) + ".layers";
    depths.push_back(t.count_of(layers));
    const std::string last = layers + ".0.layer." + (narrows ? "2" : "1") + ".convolution";
    widths.push_back(t.value(last, "out_channels").value_or(1));
  }
  t.list("depths", depths);
  t.list("hidden_sizes", widths);
  t.set_string("layer_type", narrows ? "bottleneck" : "basic");
  t.set_flag("downsample_in_first_stage", t.value(first + "shortcut.convolution", "stride").value_or(1) == 2);
  const std::string narrowing = "encoder.stages.1.layers.0.layer.0.convolution";
  t.set_flag("downsample_in_bottleneck", narrows && t.value(narrowing, "stride").value_or(1) == 2);
  t.size("num_channels", "embedder.embedder.convolution", "in_channels");
  t.size("embedding_size", "embedder.embedder.convolution", "out_channels");
  t.activation("hidden_act", "embedder.embedder.activation");
  t.size("num_labels", "/classifier.1", "out_features");
  t.image_size("image_size");
}

inline constexpr Architecture kArchitecture = {.name = "resnet",
                                               .model_types = names<"resnet">,
                                               .usual_head = Head::sequence_classification,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .blocks = names<"ResNetBottleNeckLayer", "ResNetBasicLayer">};

}  // namespace resnet

}  // namespace gpumem::architectures
