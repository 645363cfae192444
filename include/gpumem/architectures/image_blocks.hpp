// Input: the sizes of convolutional blocks on images of latents or pixels, [N, C, H, W].
// Output: the calls of the blocks that diffusers' UNets and autoencoders share.
// Source: diffusers 0.38, models/resnet.py: ResnetBlock2D, models/upsampling.py, models/downsampling.py.
#pragma once

#include <string>
#include <string_view>

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

/// The class that enable_gradient_checkpointing() wraps.
inline constexpr std::string_view kResnetBlock = "ResnetBlock2D";

/// Padded so that only the stride makes the image smaller.
inline Tensor image_conv(Forward& f, std::string_view name, Tensor input, std::int64_t in, std::int64_t out,
                         std::int64_t kernel, std::int64_t stride = 1) {
  return f.layer(name, "Conv2d", "conv2d", {input},
                 {{"in_channels", in},
                  {"out_channels", out},
                  {"kernel_size", Sizes(2, kernel)},
                  {"stride", Sizes(2, stride)},
                  {"padding", Sizes(2, kernel / 2)}});
}

inline Tensor image_norm(Forward& f, std::string_view name, Tensor input, std::int64_t channels, std::int64_t groups) {
  return f.layer(name, "GroupNorm", "group_norm", {input}, {{"num_groups", groups}, {"num_channels", channels}});
}

/// What a residual block reads besides its input.
struct ResnetOptions {
  std::int64_t groups = 32;
  std::string_view activation = "silu";
  double dropout = 0.0;
  std::int64_t time_width = 0;  ///< of the timestep's embedding; 0: the block reads none
  Tensor time = 0;
  std::string_view class_name = kResnetBlock;
};

inline Tensor resnet_block(Forward& f, const ResnetOptions& o, std::int64_t index, Tensor input, std::int64_t in,
                           std::int64_t out) {
  const InModule inside(f, std::to_string(index), o.class_name);
  const Tensor normed = image_norm(f, "norm1", input, in, o.groups);
  Tensor hidden = image_conv(f, "conv1", f.activation("nonlinearity", normed, o.activation), in, out, 3);
  if (o.time_width > 0) {
    const Tensor time = f.activation("nonlinearity", o.time, o.activation);
    hidden = f.add(hidden, f.unflatten(f.linear("time_emb_proj", time, o.time_width, out), 1, {out, 1, 1}));
  }
  hidden = f.activation("nonlinearity", image_norm(f, "norm2", hidden, out, o.groups), o.activation);
  hidden = image_conv(f, "conv2", f.dropout("dropout", hidden, o.dropout), out, out, 3);
  const Tensor residual = in == out ? input : image_conv(f, "conv_shortcut", f.contiguous(input), in, out, 1);
  return f.call("div", {f.add(residual, hidden)});
}

/// Upsample2D: each pixel repeated, to these sizes, and a convolution.
inline Tensor upsample_block(Forward& f, Tensor input, std::int64_t channels, std::int64_t height, std::int64_t width) {
  const InModule list(f, "upsamplers", "ModuleList");
  const InModule sampler(f, "0", "Upsample2D");
  const Tensor larger = f.call("upsample", {input}, {{"size", Sizes{height, width}}});
  return image_conv(f, "conv", larger, channels, channels, 3);
}

}  // namespace gpumem::architectures
