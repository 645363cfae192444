#pragma once

#include "gpumem/connect/complete.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <utility>

#include "gpumem/ops/window.hpp"

namespace gpumem::connect {

namespace complete_detail {

using model::Attribute;
using Sizes = std::vector<std::int64_t>;

/// The attributes of a layer, as they grow.
class Completed {
 public:
  explicit Completed(const model::Attributes& printed) {
    constexpr std::size_t kMostAdded = 7;  // a convolution's
    all_.reserve(printed.all().size() + kMostAdded);
    all_.assign(printed.all().begin(), printed.all().end());
  }

  void set(std::string_view name, model::AttributeValue value) {
    const auto same = [&](const Attribute& known) { return known.name == name; };
    if (std::none_of(all_.begin(), all_.end(), same)) all_.push_back({std::string(name), std::move(value)});
  }
  std::vector<Attribute> take() && { return std::move(all_); }

 private:
  std::vector<Attribute> all_;
};

struct Slide {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
};

/// How a kernel slides over `in` elements to leave `out`; nothing if no stride up to 64 does.
GPUMEM_INLINE std::optional<Slide> slide_of(std::int64_t kernel, std::int64_t in, std::int64_t out) {
  constexpr std::int64_t kMostStride = 64;
  if (out == 1 && in == kernel) return Slide{1, 0};
  const auto leaves = [&](std::int64_t stride, std::int64_t padding) {
    return ops::slid_length({kernel, stride, padding, 1}, in) == out;
  };
  const auto with_stride = [&](std::int64_t stride) -> std::optional<Slide> {
    if (kernel % 2 == 1 && leaves(stride, (kernel - 1) / 2)) return Slide{stride, (kernel - 1) / 2};
    for (std::int64_t padding = 0; padding <= kernel / 2; ++padding) {
      if (leaves(stride, padding)) return Slide{stride, padding};
    }
    return std::nullopt;
  };
  const std::int64_t about = std::clamp<std::int64_t>(in / std::max<std::int64_t>(out, 1), 1, kMostStride);
  if (const auto found = with_stride(about)) return found;
  for (std::int64_t stride = 1; stride <= std::min(2 * about + 1, kMostStride); ++stride) {
    if (const auto found = with_stride(stride)) return found;
  }
  // A dilated kernel keeps the size with more padding than half of it: as large as one that is not dilated.
  return in == out && kernel % 2 == 1 ? std::optional(Slide{1, (kernel - 1) / 2}) : std::nullopt;
}

/// A convolution to be found out: how many channels and pixels it reads and leaves, on each spatial axis.
struct Asked {
  std::int64_t in = 0;
  std::int64_t out = 0;
  Sizes from;
  Sizes to;
  bool transposed = false;
};

struct Found {
  Sizes kernel;
  Sizes stride;
  Sizes padding;
  std::int64_t groups = 1;
  bool bias = false;
};

/// The convolution with this kernel, if it leaves what it should.
GPUMEM_INLINE std::optional<Found> with_kernel(const Asked& asked, const Sizes& kernel, std::int64_t groups,
                                               bool bias) {
  Found found{kernel, {}, {}, groups, bias};
  found.stride.reserve(kernel.size());
  found.padding.reserve(kernel.size());
  for (std::size_t axis = 0; axis < kernel.size(); ++axis) {
    const std::int64_t large = asked.transposed ? asked.to[axis] : asked.from[axis];
    const std::int64_t small = asked.transposed ? asked.from[axis] : asked.to[axis];
    const auto slide = slide_of(kernel[axis], large, small);
    if (!slide) return std::nullopt;
    found.stride.push_back(slide->stride);
    found.padding.push_back(slide->padding);
  }
  return found;
}

/// Side of the square or cube with this many elements; 0 if there is none.
GPUMEM_INLINE std::int64_t side_of(std::int64_t elements, std::size_t axes) {
  constexpr std::int64_t kMostSide = 64;
  for (std::int64_t side = 1; side <= kMostSide; ++side) {
    std::int64_t volume = 1;
    for (std::size_t axis = 0; axis < axes; ++axis) volume *= side;
    if (volume == elements) return side;
  }
  return 0;
}

enum class Kernels : std::uint8_t { odd, any };

GPUMEM_INLINE std::optional<Found> of_elements(const Asked& asked, std::int64_t elements, std::int64_t groups,
                                               bool bias, Kernels kernels) {
  const std::size_t axes = asked.from.size();
  const std::int64_t side = side_of(elements, axes);
  if (side > 0 && (kernels == Kernels::any || side % 2 == 1)) {
    if (auto found = with_kernel(asked, Sizes(axes, side), groups, bias)) return found;
  }
  constexpr std::int64_t kLongest = 15;
  if (kernels == Kernels::odd || axes < 2 || elements > kLongest || groups > 1) return std::nullopt;
  for (const std::size_t along : {axes - 1, axes - 2}) {  // 1x7, 7x1
    Sizes kernel(axes, 1);
    kernel[along] = elements;
    if (auto found = with_kernel(asked, kernel, groups, bias)) return found;
  }
  return std::nullopt;
}

/// One group, and one a channel; with `usual` off, every number of groups that divides both sides' channels.
GPUMEM_INLINE Sizes groups_to_try(const Asked& asked, bool usual) {
  Sizes groups = {1};
  if (asked.in > 1 && asked.out % asked.in == 0) groups.push_back(asked.in);
  if (usual) return groups;
  constexpr std::int64_t kMostGroups = 4096;
  const std::int64_t most = std::min(std::gcd(asked.in, asked.out), kMostGroups);
  for (std::int64_t count = 2; count <= most; ++count) {
    if (asked.in % count == 0 && asked.out % count == 0 && count != asked.in) groups.push_back(count);
  }
  return groups;
}

GPUMEM_INLINE std::optional<Found> find(const Asked& asked, std::int64_t parameters, bool bias_first, bool usual) {
  const auto with = [&](Kernels kernels, bool bias, std::int64_t groups) -> std::optional<Found> {
    const std::int64_t weights = bias ? parameters - asked.out : parameters;
    const core::Checked planes = core::Checked(asked.out) * core::Checked(asked.in / groups);
    if (!planes.valid() || *planes.value() <= 0 || weights <= 0 || weights % *planes.value() != 0) return std::nullopt;
    return of_elements(asked, weights / *planes.value(), groups, bias, kernels);
  };
  // Nearly always the first that is tried: no list of groups is made for it.
  if (auto found = with(Kernels::odd, bias_first, 1)) return found;
  const Sizes groups = groups_to_try(asked, usual);
  for (const Kernels kernels : {Kernels::odd, Kernels::any}) {
    for (const bool bias : {bias_first, !bias_first}) {
      for (const std::int64_t count : groups) {
        if (auto found = with(kernels, bias, count)) return found;
      }
    }
  }
  return std::nullopt;
}

/// The fixed sizes behind batch and channels; nothing if one is not.
GPUMEM_INLINE std::optional<Sizes> spatial(const core::Shape& shape) {
  Sizes sizes;
  sizes.reserve(core::Shape::kMaxRank);
  for (std::size_t axis = 2; axis < shape.rank(); ++axis) {
    if (shape[axis].kind != core::Dim::Kind::fixed) return std::nullopt;
    sizes.push_back(shape[axis].size);
  }
  return sizes;
}

GPUMEM_INLINE std::optional<std::vector<Attribute>> convolution(const PrintedLayer& layer, const core::Shape& input,
                                                                bool usual) {
  Completed attributes(layer.attributes);
  if (input.rank() != layer.output.rank() || input.rank() < 3) return std::nullopt;
  const auto from = spatial(input);
  const auto to = spatial(layer.output);
  const bool sized =
      from && to && input[1].kind == core::Dim::Kind::fixed && layer.output[1].kind == core::Dim::Kind::fixed;
  if (!sized) return std::move(attributes).take();
  const bool transposed = layer.op->completion == model::Completion::transposed_convolution;
  const Asked asked = {input[1].size, layer.output[1].size, *from, *to, transposed};
  attributes.set("in_channels", asked.in);
  attributes.set("out_channels", asked.out);
  if (layer.parameters == 0) return std::move(attributes).take();  // shared: counted where it is called first
  auto found = find(asked, layer.parameters, !layer.before_batch_norm, usual);
  if (!found) return std::nullopt;
  attributes.set("kernel_size", std::move(found->kernel));
  attributes.set("stride", std::move(found->stride));
  attributes.set("padding", std::move(found->padding));
  attributes.set("groups", found->groups);
  attributes.set("bias", found->bias);
  return std::move(attributes).take();
}

GPUMEM_INLINE std::optional<std::vector<Attribute>> linear(const PrintedLayer& layer, const core::Shape& input) {
  Completed attributes(layer.attributes);
  if (input.rank() == 0 || layer.output.rank() == 0) return std::nullopt;
  const core::Dim in = input[input.rank() - 1];
  const core::Dim out = layer.output[layer.output.rank() - 1];
  if (in.kind != core::Dim::Kind::fixed || out.kind != core::Dim::Kind::fixed) return std::move(attributes).take();
  const core::Checked weight = core::Checked(in.size) * core::Checked(out.size);
  const core::Checked with_bias = weight + core::Checked(out.size);
  const bool biased = with_bias.value() == layer.parameters;
  if (!biased && weight.value() != layer.parameters && layer.parameters != 0) return std::nullopt;
  attributes.set("in_features", in.size);
  attributes.set("out_features", out.size);
  attributes.set("bias", biased);
  return std::move(attributes).take();
}

/// Two figures a channel; more are what the summary counts beside them (Keras: running statistics).
GPUMEM_INLINE std::optional<std::vector<Attribute>> batch_norm(const PrintedLayer& layer, const core::Shape& input) {
  Completed attributes(layer.attributes);
  if (input.rank() < 2 || input[1].kind != core::Dim::Kind::fixed) return std::move(attributes).take();
  attributes.set("num_features", input[1].size);
  attributes.set("affine", layer.parameters > 0);
  return std::move(attributes).take();
}

/// Two figures an element of the last axis, or of more axes.
GPUMEM_INLINE std::optional<std::vector<Attribute>> layer_norm(const PrintedLayer& layer, const core::Shape& input) {
  Completed attributes(layer.attributes);
  core::Checked elements = 1;
  Sizes sizes;
  for (std::size_t axis = input.rank(); axis > 1; --axis) {
    if (input[axis - 1].kind != core::Dim::Kind::fixed) break;
    sizes.insert(sizes.begin(), input[axis - 1].size);
    elements *= input[axis - 1].size;
    const bool fits = elements.value() == layer.parameters || (elements * 2).value() == layer.parameters;
    if (!fits && layer.parameters != 0) continue;
    attributes.set("normalized_shape", sizes);
    break;
  }
  return std::move(attributes).take();
}

GPUMEM_INLINE std::optional<std::vector<Attribute>> attention(const PrintedLayer& layer, const core::Shape& input) {
  Completed attributes(layer.attributes);
  if (input.rank() > 1 && input[input.rank() - 1].kind == core::Dim::Kind::fixed) {
    const core::Checked width = input[input.rank() - 1].size;
    attributes.set("embed_dim", *width.value());
    const core::Checked projections = core::Checked(4) * width * width;
    const bool whole =
        projections.value() == layer.parameters || (projections + core::Checked(4) * width).value() == layer.parameters;
    if (whole) attributes.set("out_proj", true);
  }
  return std::move(attributes).take();
}

}  // namespace complete_detail

GPUMEM_INLINE std::optional<std::vector<model::Attribute>> complete(const PrintedLayer& layer, const core::Shape& input,
                                                                    bool usual) {
  namespace detail = complete_detail;
  switch (layer.op == nullptr ? model::Completion::none : layer.op->completion) {
    case model::Completion::convolution:
    case model::Completion::transposed_convolution: return detail::convolution(layer, input, usual);
    case model::Completion::linear: return detail::linear(layer, input);
    case model::Completion::batch_norm: return detail::batch_norm(layer, input);
    case model::Completion::layer_norm: return detail::layer_norm(layer, input);
    case model::Completion::attention: return detail::attention(layer, input);
    case model::Completion::none: break;
  }
  return detail::Completed(layer.attributes).take();
}

}  // namespace gpumem::connect
