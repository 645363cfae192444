// timm's and torchvision's image transformers that attend within windows: Swin, SwinV2, SwinV2-CR (images with the
// channels after the pixels, every second block shifted), Nest (blocks of one size at every level), torchvision's
// MaxViT (windows, then a grid), VOLO (weights for the window around a pixel). Source: torchvision 0.21,
// torchvision.models.swin_transformer, maxvit; timm 1.0.9, timm.models.swin_transformer, swin_transformer_v2,
// swin_transformer_v2_cr, nest, volo.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/architectures/image_tokens.hpp"

namespace gpumem::architectures {

// A tree prints no window. That of published models is a 32nd of the image, in timm's V2 mostly a 16th; no stage has
// one that is larger than its image. Scores are written out, with a learned bias (timm:
// use_fused_attn(experimental=True) says no by default).

namespace timm_swin_detail {

inline constexpr std::int64_t kHeadWidth = 32;

/// V2's bias is what a network makes of distances, and its queries and keys are normed.
inline bool is_second(const Module& attention) { return attention.has("cpb_mlp") || attention.has("meta_mlp"); }

/// Published models of timm's V2 have two sizes of windows for the same images.
inline bool has_two_windows(const Module& attention) {
  return attention.has("cpb_mlp") && attention.class_name() == "WindowAttention";
}

inline std::int64_t window_in(Forward& f, const Module& attention, std::int64_t height) {
  const std::int64_t image = f.rank(model::kFirstGraphInput) == 4 ? f.size(model::kFirstGraphInput, 2) : 0;
  const std::int64_t part = has_two_windows(attention) ? 16 : 32;
  if (image > 0 && image % part == 0) return std::min(image / part, height);
  for (const std::int64_t window : {7, 12, 8, 16, 6, 4}) {
    if (height % window == 0) return window;
  }
  return height;
}

/// How a block attends.
struct Windows {
  std::int64_t side = 1;
  std::int64_t count = 1;  ///< of an image
  bool shifted = false;
};

inline Tensor bias_of(Forward& f, const Module& attention, const Windows& windows, std::int64_t heads) {
  const std::int64_t area = windows.side * windows.side;
  const std::int64_t across = 2 * windows.side - 1;
  if (attention.has("meta_mlp")) {
    const Tensor made = attention("meta_mlp", f.constant("relative_coordinates_log", {area * area, 2}, "parameters"));
    const Tensor bias = f.unflatten(f.permute(made, {1, 0}), 1, {area, area});
    return f.call("unsqueeze", {bias}, {{"dim", std::int64_t{0}}});
  }
  if (!attention.has("cpb_mlp")) {
    const Tensor table = f.parameter("relative_position_bias_table", {across * across, heads});
    return window_bias(f, table, windows.side);
  }
  const Tensor made = attention("cpb_mlp", f.constant("relative_coords_table", {1, across, across, 2}, "parameters"));
  return f.scale(f.call("sigmoid", {window_bias(f, f.flatten(made, 0, 2), windows.side)}));
}

/// Windows [N W, s s, C] through the attention.
inline Tensor attend(Forward& f, const Module& attention, const Windows& windows, Tensor input) {
  const std::vector<Tensor> parts = parts_of(f, attention("qkv", input), 3, 2);
  const std::int64_t width = f.size(input, 2);
  const std::int64_t heads = width % kHeadWidth == 0 ? std::max<std::int64_t>(width / kHeadWidth, 1) : 1;
  const bool second = is_second(attention);
  const auto headed = [&](Tensor part) {
    const Tensor each = heads_of(f, part, heads);
    return second ? f.call("lp_normalize", {each}, {{"dim", std::int64_t{3}}}) : each;
  };
  const Tensor query = headed(parts[0]);
  const Tensor key = f.permute(headed(parts[1]), {0, 1, 3, 2});
  Tensor scores = f.call("matmul", {second ? query : f.scale(query), key});
  if (second) scores = f.multiply(scores, f.parameter("logit_scale", {heads, 1, 1}));
  scores = f.add(scores, bias_of(f, attention, windows, heads));
  if (windows.shifted) {  // windows that the shift put together out of parts have a mask
    const std::int64_t area = windows.side * windows.side;
    const Tensor mask = f.constant("attn_mask", {1, windows.count, 1, area, area}, "parameters");
    scores = f.flatten(f.add(f.unflatten(scores, 0, {-1, windows.count}), mask), 0, 1);
  }
  const bool named = attention.has("softmax");
  const Tensor weights = named ? attention("softmax", scores) : f.call("softmax", {scores}, {{"dim", std::int64_t{3}}});
  const Tensor output = f.call("matmul", {attention("attn_drop", weights), heads_of(f, parts[2], heads)});
  return attention({"proj", "proj_drop"}, merged(f, output));
}

inline Tensor attend_in_windows(Forward& f, const Module& attention, Tensor input, bool shifted) {
  const std::int64_t height = f.size(input, 1);
  const std::int64_t width = f.size(input, 2);
  const std::int64_t side = f.rank(input) == 4 ? std::max<std::int64_t>(window_in(f, attention, height), 1) : 0;
  if (side == 0) return attention.in_order(input);
  if (has_two_windows(attention)) {
    attention.guess("is called on windows of a size that is not printed: taken as " + std::to_string(side));
  }
  Windows windows = {.side = side, .shifted = shifted && height > side};
  if (windows.shifted) input = f.call("roll", {input});
  const std::int64_t below = (side - height % side) % side;
  const std::int64_t right = (side - width % side) % side;
  input = f.call("pad", {input}, {{"padding", Sizes{0, 0, 0, right, 0, below}}});  // copies in any case
  windows.count = ((height + below) / side) * ((width + right) / side);
  const Tensor output = attend(f, attention, windows, cut_windows(f, input, side));
  Tensor images = join_windows(f, output, height + below, width + right, side);
  if (below + right > 0) images = f.contiguous(f.slice(f.slice(images, 1, 0, height), 2, 0, width));
  return windows.shifted ? f.call("roll", {images}) : images;
}

/// torchvision's block: norms before what they belong to, in V2 behind it; one module drops paths of both branches.
inline Tensor call_torchvision_block(Forward& f, const Module& block, Tensor input, bool shifted) {
  const auto attention = block.find("attn");
  if (!attention || !attention->is_container()) return block.in_order(input);
  const bool behind = block.class_name() == "SwinTransformerBlockV2";
  Tensor output = attend_in_windows(f, *attention, behind ? input : block("norm1", input), shifted);
  output = block("stochastic_depth", behind ? block("norm1", output) : output);
  const Tensor sum = f.add(input, output);
  output = behind ? block({"mlp", "norm2"}, sum) : block({"norm2", "mlp"}, sum);
  return f.add(sum, block("stochastic_depth", output));
}

/// norm1(attn(x)) or attn(norm1(x)), and the same with the MLP, each added.
inline Tensor call_block(Forward& f, const Module& block, Tensor input) {
  if (f.rank(input) != 4) return block.in_order(input);
  const bool odd = !block.name().empty() && (block.name().back() - '0') % 2 == 1;
  if (block.has("stochastic_depth")) return call_torchvision_block(f, block, input, odd);
  const Branches all = branches_of(block);
  for (const std::vector<Module>& branch : all.branches) {
    Tensor output = input;
    for (const Module& part : branch) {
      const bool attention = part.is_container() && part.name() == "attn";
      output = attention ? attend_in_windows(f, part, output, odd) : part.call(output);
    }
    if (f.failed()) return input;
    input = added(f, input, output);
  }
  return call_all(all.last, input);
}

/// PatchMerging: four pixels side by side, [N, h, w, C] -> [N, h/2, w/2, 4 C].
inline Tensor call_merging(Forward& f, const Module& block, Tensor input) {
  if (f.rank(input) != 4 || !f.channels_last(input)) return block.in_order(input);
  const std::int64_t height = f.size(input, 1) / 2;
  const std::int64_t width = f.size(input, 2) / 2;
  const std::int64_t channels = f.size(input, 3);
  const Tensor parted = reshaped(f, input, {height, 2, width, 2, channels});
  const Tensor four = reshaped(f, f.permute(parted, {0, 1, 3, 4, 2, 5}), {height, width, 4 * channels});
  const auto norm = block.find("norm");
  const bool first = norm && norm->normed_width() == 4 * channels;  // in V2 it comes after the reduction
  return first ? block({"norm", "reduction"}, four) : block({"reduction", "norm"}, four);
}

/// torchvision's model: stages and what merges patches in turns, one list.
inline Tensor call_torchvision(Forward& f, const Module& model, Tensor input) {
  Tensor output = model("features.0.2", channels_behind(f, model("features.0.0", input)));
  const std::vector<Module> features = model.parts("features");
  for (std::size_t at = 1; at < features.size(); ++at) output = features[at].call(output);
  return model({"avgpool", "flatten", "head"}, channels_in_front(f, model("norm", output)));
}

/// timm's model: patches with the channels last.
inline Tensor call_model(Forward& f, const Module& model, Tensor input) {
  if (model.has("features.0.0")) return call_torchvision(f, model, input);
  if (!model.has("patch_embed.proj")) return model.in_order(input);
  Tensor output = model("patch_embed.norm", channels_behind(f, model("patch_embed.proj", input)));
  for (const Module& part : model.parts()) {
    if (part.name() != "patch_embed") output = part.call(output);
  }
  return output;
}

}  // namespace timm_swin_detail

inline constexpr std::array<ModuleForward, 3> kTimmSwin = {
    {{names<"SwinTransformerBlock", "SwinTransformerV2Block", "SwinTransformerV2CrBlock", "SwinTransformerBlockV2">,
      timm_swin_detail::call_block},
     {names<"PatchMerging", "PatchMergingV2">, timm_swin_detail::call_merging},
     {names<"SwinTransformer", "SwinTransformerV2", "SwinTransformerV2Cr">, timm_swin_detail::call_model}}};

// Nest: images are cut into blocks of one size at every level, whose pixels attend only to each other; between levels
// the image is halved. Attention has five axes, which no fused kernel takes, so that its scores are materialised.
// Positions are parameters of a level, which no line shows.

namespace timm_nest_detail {

inline Tensor call_layer(Forward& f, const Module& layer, Tensor input) {
  constexpr ImageAttention kWhole = {.fused = false, .head_width = 32};
  const auto attention = layer.find("attn");
  if (!attention || !attention->is_container()) return layer.in_order(input);
  const std::vector<Tensor> qkv = parts_of(f, layer({"norm1", "attn.qkv"}, input), 3, 2);
  const Tensor output = projected(*attention, attend_in_heads(f, *attention, kWhole, {qkv[0], qkv[1], qkv[2]}));
  const Tensor sum = f.add(input, layer("drop_path", output));
  return f.add(sum, layer({"norm2", "mlp", "drop_path"}, sum));
}

/// A level on images [N, C, h, w], cut into blocks of `side` x `side` pixels.
inline Tensor call_level(Forward& f, const Module& level, std::int64_t side, Tensor input) {
  const std::vector<Module> layers = level.parts("transformer_encoder");
  const Tensor images = channels_behind(f, level("pool", input));
  const std::int64_t height = f.size(images, 1);
  const std::int64_t width = f.size(images, 2);
  const bool cut = f.rank(images) == 4 && side > 0 && height % side == 0 && width % side == 0 && !layers.empty();
  if (!cut) return level.in_order(input);
  Tensor tokens = cut_windows(f, images, side);
  tokens = f.add(tokens, f.parameter("pos_embed", {1, side * side, f.size(images, 3)}));
  for (const Module& layer : layers) tokens = call_layer(f, layer, tokens);
  return f.permute(join_windows(f, tokens, height, width, side), {0, 3, 1, 2});
}

/// ConvPool: a convolution, a norm of its channels, every second pixel.
inline Tensor call_pool(Forward& f, const Module& block, Tensor input) {
  if (!block.has("conv")) return block.in_order(input);
  return block("pool", channels_in_front(f, block("norm", channels_behind(f, block("conv", input)))));
}

inline Tensor call_model(Forward& f, const Module& model, Tensor input) {
  constexpr std::size_t kMostLevels = 8;
  const std::vector<Module> levels = model.parts("levels");
  Tensor images = model("patch_embed.proj", input);
  if (f.rank(images) != 4 || levels.empty() || levels.size() > kMostLevels) return model.in_order(input);
  const std::int64_t side = f.size(images, 2) >> (levels.size() - 1);
  for (const Module& level : levels) images = call_level(f, level, side, images);
  images = model("norm", channels_behind(f, images));
  return model({"head_drop", "head"}, f.call("mean", {images}, {{"dim", Sizes{1, 2}}}));
}

}  // namespace timm_nest_detail

inline constexpr std::array<ModuleForward, 2> kTimmNest = {
    {{names<"Nest">, timm_nest_detail::call_model}, {names<"ConvPool">, timm_nest_detail::call_pool}}};

// torchvision's MaxViT: a layer is an inverted bottleneck, then attention within windows, then attention within a grid,
// whose pixels lie as far apart as there are windows. Partitions are 7 pixels wide in published models, and by default.

namespace torchvision_maxvit_detail {

inline constexpr std::int64_t kHeadWidth = 32;
inline constexpr std::int64_t kPartition = 7;

/// RelativePositionalMultiHeadAttention on partitions [N, G, P, C]; its einsums are batched products of copies.
inline Tensor call_attention(Forward& f, const Module& attention, Tensor input) {
  if (!attention.has("to_qkv") || f.rank(input) != 4) return attention.in_order(input);
  const std::int64_t groups = f.size(input, 1);
  const std::int64_t pixels = f.size(input, 2);
  const std::int64_t width = f.size(input, 3);
  const std::int64_t heads = width % kHeadWidth == 0 ? std::max<std::int64_t>(width / kHeadWidth, 1) : 1;
  const auto headed = [&](Tensor part) {
    return f.permute(f.unflatten(part, 3, {heads, width / heads}), {0, 1, 3, 2, 4});
  };
  const std::vector<Tensor> qkv = parts_of(f, attention("to_qkv", input), 3, 3);
  const Tensor query = headed(qkv[0]);
  const Tensor key = headed(qkv[1]);
  const Tensor value = headed(qkv[2]);
  const Tensor turned = f.flatten(f.permute(f.scale(key), {0, 1, 2, 4, 3}), 0, 2);
  const Tensor product = f.call("matmul", {f.flatten(query, 0, 2), turned});
  const Tensor scores = f.unflatten(product, 0, {-1, groups, heads});
  const std::int64_t side = side_of(pixels);
  const std::int64_t across = 2 * side - 1;
  const Tensor table = f.parameter("relative_position_bias_table", {across * across, heads});
  const Tensor biased = f.add(scores, window_bias(f, table, side));
  const Tensor weights = f.call("softmax", {biased}, {{"dim", std::int64_t{4}}});
  const Tensor found = f.call("matmul", {f.flatten(weights, 0, 2), f.flatten(value, 0, 2)});
  const Tensor output = f.permute(f.unflatten(found, 0, {-1, groups, heads}), {0, 1, 3, 2, 4});
  return attention("merge", f.flatten(output, 3, 4));
}

/// How many pixels lie side by side in a partition of a layer.
inline std::int64_t partition_in(Forward& f, const Module& layer, std::int64_t height, std::int64_t width) {
  for (const std::int64_t side : {kPartition, std::int64_t{8}, std::int64_t{6}, std::int64_t{4}}) {
    if (height % side != 0 || width % side != 0) continue;
    if (side != kPartition) {
      layer.guess("cuts images into partitions of a size that is not printed: taken as " + std::to_string(side));
    }
    return side;
  }
  f.fail(
      "the size of its partitions is not printed, and they are not 4, 6, 7 or 8 pixels wide: export the graph of the "
      "model");
  return 1;
}

/// PartitionAttentionLayer: images [N, C, h, w] as partitions, attention and an MLP with shortcuts, images again.
inline Tensor call_partitions(Forward& f, const Module& layer, Tensor input) {
  if (!layer.has("attn_layer") || !layer.has("mlp_layer") || f.rank(input) != 4) return layer.in_order(input);
  const std::int64_t channels = f.size(input, 1);
  const std::int64_t height = f.size(input, 2);
  const std::int64_t width = f.size(input, 3);
  const std::int64_t partition = partition_in(f, layer, height, width);
  const auto swap = layer.find("partition_swap");
  const bool grid = swap && swap->class_name() == "SwapAxes";
  const std::int64_t side = grid ? height / partition : partition;
  const std::int64_t rows = height / side;
  const std::int64_t columns = width / side;
  const auto swapped = [&](Tensor tensor) { return grid ? f.permute(tensor, {0, 2, 1, 3}) : tensor; };
  const Tensor cut = f.permute(reshaped(f, input, {channels, rows, side, columns, side}), {0, 2, 4, 3, 5, 1});
  const Tensor parts = swapped(reshaped(f, cut, {rows * columns, side * side, channels}));
  const Tensor found = f.add(parts, layer({"attn_layer", "stochastic_dropout"}, parts));
  const Tensor output = f.add(found, layer({"mlp_layer", "stochastic_dropout"}, found));
  const Tensor apart = reshaped(f, swapped(output), {rows, columns, side, side, channels});
  return reshaped(f, f.permute(apart, {0, 5, 1, 3, 2, 4}), {channels, height, width});
}

/// MaxVitLayer; MBConv is proj(x) + layers(x), other than the class of this name in efficientnet.
inline Tensor call_layer(Forward& f, const Module& layer, Tensor input) {
  const auto conv = layer.find("layers.MBconv");
  if (!conv || !conv->has("layers")) return layer.in_order(input);
  const Tensor shortcut = (*conv)("proj", input);
  const Tensor output = f.add(shortcut, (*conv)({"layers", "stochastic_depth"}, input));
  return layer({"layers.window_attention", "layers.grid_attention"}, output);
}

}  // namespace torchvision_maxvit_detail

inline constexpr std::array<ModuleForward, 3> kTorchvisionMaxvit = {
    {{names<"RelativePositionalMultiHeadAttention">, torchvision_maxvit_detail::call_attention},
     {names<"PartitionAttentionLayer">, torchvision_maxvit_detail::call_partitions},
     {names<"MaxVitLayer">, torchvision_maxvit_detail::call_layer}}};

// VOLO: images with the channels after the pixels. An outlooker computes weights for each window of pixels from the
// pixel in its middle; blocks with attention follow; a class token joins at last, and a second classifier sees every
// token.

namespace timm_volo_detail {

/// Scores of scaled queries, written out.
inline Tensor attend_written(Forward& f, const Module& attention, const Heads& of) {
  const Tensor scores = f.call("matmul", {f.scale(of.query), f.permute(of.key, {0, 1, 3, 2})});
  const Tensor weights = attention("attn_drop", f.call("softmax", {scores}, {{"dim", std::int64_t{3}}}));
  return f.call("matmul", {weights, of.value});
}

/// OutlookAttention.
inline Tensor call_outlook(Forward& f, const Module& attention, Tensor input) {
  const auto unfold = attention.find("unfold");
  const auto weights = attention.width("out_features");
  if (!unfold || !weights || f.rank(input) != 4) return attention.in_order(input);
  const std::int64_t side = std::max<std::int64_t>(unfold->width("kernel_size").value_or(3), 1);
  const std::int64_t stride = std::max<std::int64_t>(unfold->width("stride").value_or(2), 1);
  const std::int64_t area = side * side;
  const auto scores = attention.find("attn");
  const std::int64_t all = scores ? scores->width("out_features").value_or(area * area) : area * area;
  const std::int64_t heads = std::max<std::int64_t>(all / (area * area), 1);
  const std::int64_t height = f.size(input, 1);
  const std::int64_t width = f.size(input, 2);
  const std::int64_t channels = f.size(input, 3);
  const std::int64_t windows = ((height + stride - 1) / stride) * ((width + stride - 1) / stride);
  const Tensor cut = attention("unfold", f.permute(attention("v", input), {0, 3, 1, 2}));
  const Tensor value = f.permute(reshaped(f, cut, {heads, channels / heads, area, windows}), {0, 1, 4, 3, 2});
  const Tensor pooled = f.permute(attention("pool", f.permute(input, {0, 3, 1, 2})), {0, 2, 3, 1});
  const Tensor made = reshaped(f, attention("attn", pooled), {windows, heads, area, area});
  const Tensor scaled = f.scale(f.permute(made, {0, 2, 1, 3, 4}));
  const Tensor shares = attention("attn_drop", f.call("softmax", {scaled}, {{"dim", std::int64_t{4}}}));
  const Tensor found = f.permute(f.call("matmul", {shares, value}), {0, 1, 4, 3, 2});
  const Tensor images = f.call("fold", {reshaped(f, found, {channels * area, windows})},
                               {{"output_size", Sizes{height, width}},
                                {"kernel_size", side},
                                {"dilation", std::int64_t{1}},
                                {"padding", side / 2},
                                {"stride", stride}});
  return attention({"proj", "proj_drop"}, f.permute(images, {0, 2, 3, 1}));
}

/// ClassBlock: what the class token learns of all tokens.
inline Tensor call_class_block(Forward& f, const Module& block, Tensor input) {
  const auto attention = block.find("attn");
  if (!attention || f.rank(input) != 3) return block.in_order(input);
  const Tensor token = f.slice(input, 1, 0, 1);
  const Tensor normed = block("norm1", input);
  const std::vector<Tensor> kv = parts_of(f, (*attention)("kv", normed), 2, 2);
  const Tensor query = (*attention)("q", f.slice(normed, 1, 0, 1));
  const std::int64_t heads = heads_in(f.size(query, 2), 32);
  const Heads of = {heads_of(f, query, heads), heads_of(f, kv[0], heads), heads_of(f, kv[1], heads)};
  const Tensor found = merged(f, attend_written(f, *attention, of));
  Tensor output = f.add(token, block("drop_path1", (*attention)({"proj", "proj_drop"}, found)));
  output = f.add(output, block({"norm2", "mlp", "drop_path2"}, output));
  return f.concatenate({output, f.slice(input, 1, 1, Forward::kRest)}, 1);
}

/// What the second classifier finds in any token is added to the class token's.
inline Tensor classified(Forward& f, const Module& model, Tensor tokens) {
  const Tensor token = f.select(tokens, 1, 0);
  const Tensor all = model("head_drop", tokens);
  const Tensor found = model("head", token);
  if (!model.has("aux_head")) return found;
  const Tensor each = model("aux_head", f.slice(all, 1, 1, Forward::kRest));
  return f.add(found, f.scale(f.call("max_values", {each}, {{"dim", std::int64_t{1}}})));
}

inline Tensor call_model(Forward& f, const Module& model, Tensor input) {
  constexpr std::size_t kPlaced = 2;  // positions join before this part
  Tensor output = f.permute(model({"patch_embed.conv", "patch_embed.proj"}, input), {0, 2, 3, 1});
  if (f.rank(output) != 4) return model.in_order(input);
  const std::vector<Module> network = model.parts("network");
  for (std::size_t part = 0; part < network.size() && !f.failed(); ++part) {
    if (part == kPlaced) {
      const Sizes positions = {1, f.size(output, 1), f.size(output, 2), f.size(output, 3)};
      output = model("pos_drop", f.add(output, f.parameter("pos_embed", positions)));
    }
    const bool smaller = network[part].class_name() == "Downsample";
    output = smaller ? f.permute(network[part]("proj", f.permute(output, {0, 3, 1, 2})), {0, 2, 3, 1})
                     : network[part].call(output);
  }
  if (f.failed() || f.rank(output) != 4) return output;
  output = reshaped(f, output, {f.size(output, 1) * f.size(output, 2), f.size(output, 3)});
  const std::vector<Module> post = model.parts("post_network");
  if (!post.empty()) output = with_class_token(f, output);
  for (const Module& block : post) output = block.call(output);
  return classified(f, model, model("norm", output));
}

}  // namespace timm_volo_detail

inline constexpr std::array<ModuleForward, 3> kTimmVolo = {{{names<"OutlookAttention">, timm_volo_detail::call_outlook},
                                                            {names<"ClassBlock">, timm_volo_detail::call_class_block},
                                                            {names<"VOLO">, timm_volo_detail::call_model}}};

}  // namespace gpumem::architectures
