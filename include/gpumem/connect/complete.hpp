// Input: a layer of a table, the shape that it reads, and what the table prints about it: output shape and parameter
// count.
// Output: the attributes that a table does not print: kernel, stride, padding, groups and bias of a convolution,
// features of linear and normalisation layers.
// Units: elements.
//
// Where several fit, the usual one is taken: a kernel that is square and odd before any other, no bias in front of a
// batch norm, one group or one a channel before other groups, the padding that keeps the size before none.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/core/shape.hpp"
#include "gpumem/model/op_traits.hpp"
#include "gpumem/ops/axis.hpp"

namespace gpumem::connect {

struct PrintedLayer {
  const model::OpTraits* op = nullptr;  ///< null: unknown
  model::Attributes attributes;         ///< what the table does print, such as torchinfo's kernel_size
  core::Shape output;
  std::int64_t parameters = 0;
  bool before_batch_norm = false;
};

/// All attributes of the layer if it reads this shape; nothing if it cannot. `usual`: other groups than one, or one a
/// channel, do not count as a fit.
[[nodiscard]] std::optional<std::vector<model::Attribute>> complete(const PrintedLayer& layer, const core::Shape& input,
                                                                    bool usual = false);

/// Whether complete() finds anything in the usual way.
[[nodiscard]] bool can_read(const PrintedLayer& layer, const core::Shape& input);

namespace complete_detail {

using model::Attribute;
using Sizes = std::vector<std::int64_t>;

/// One size a spatial axis, kept in place: most are only looked at to see whether a layer fits.
class Axes {
 public:
  Axes() = default;
  Axes(std::size_t axes, std::int64_t size) : count_(axes) { std::fill_n(sizes_.begin(), axes, size); }

  void push_back(std::int64_t size) { sizes_[count_++] = size; }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] std::int64_t operator[](std::size_t axis) const { return sizes_[axis]; }
  [[nodiscard]] std::int64_t& operator[](std::size_t axis) { return sizes_[axis]; }
  [[nodiscard]] const std::int64_t* begin() const { return sizes_.data(); }
  [[nodiscard]] const std::int64_t* end() const { return sizes_.data() + count_; }

 private:
  std::array<std::int64_t, core::Shape::kMaxRank> sizes_{};
  std::size_t count_ = 0;
};

/// The attributes of a layer: those that are printed, and others after them.
class Completed {
 public:
  explicit Completed(const model::Attributes& printed) : printed_(printed) {
    constexpr std::size_t kMostAdded = 7;  // a convolution's
    all_.reserve(printed.all().size() + kMostAdded);
    all_.assign(printed.all().begin(), printed.all().end());
  }

  /// What is printed stays. Each name is set once.
  template <typename Value>
  void set(std::string_view name, Value value) {
    if (printed_.find(name) != nullptr) return;
    Attribute& added = all_.emplace_back();
    added.name = name;
    added.value.emplace<Value>(std::move(value));
  }
  void set(std::string_view name, const Axes& sizes) { set(name, Sizes(sizes.begin(), sizes.end())); }
  std::vector<Attribute> take() && { return std::move(all_); }

 private:
  model::Attributes printed_;
  std::vector<Attribute> all_;
};

struct Slide {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
};

/// How a kernel slides over `in` elements to leave `out`; nothing if no stride up to 64 does.
inline std::optional<Slide> slide_of(std::int64_t kernel, std::int64_t in, std::int64_t out) {
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
  Axes from;
  Axes to;
  bool transposed = false;
};

struct Found {
  Axes kernel;
  Axes stride;
  Axes padding;
  std::int64_t groups = 1;
  bool bias = false;
};

/// The convolution with this kernel, if it leaves what it should.
inline std::optional<Found> with_kernel(const Asked& asked, const Axes& kernel, std::int64_t groups, bool bias) {
  Found found{kernel, {}, {}, groups, bias};
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
inline std::int64_t side_of(std::int64_t elements, std::size_t axes) {
  constexpr std::int64_t kMostSide = 64;
  for (std::int64_t side = 1; side <= kMostSide; ++side) {
    std::int64_t volume = 1;
    for (std::size_t axis = 0; axis < axes; ++axis) volume *= side;
    if (volume >= elements) return volume == elements ? side : 0;
  }
  return 0;
}

enum class Kernels : std::uint8_t { odd, any };

inline std::optional<Found> of_elements(const Asked& asked, std::int64_t elements, std::int64_t groups, bool bias,
                                        Kernels kernels) {
  const std::size_t axes = asked.from.size();
  const std::int64_t side = side_of(elements, axes);
  if (side > 0 && (kernels == Kernels::any || side % 2 == 1)) {
    if (auto found = with_kernel(asked, Axes(axes, side), groups, bias)) return found;
  }
  constexpr std::int64_t kLongest = 15;
  if (kernels == Kernels::odd || axes < 2 || elements > kLongest || groups > 1) return std::nullopt;
  for (const std::size_t along : {axes - 1, axes - 2}) {  // 1x7, 7x1
    Axes kernel(axes, 1);
    kernel[along] = elements;
    if (auto found = with_kernel(asked, kernel, groups, bias)) return found;
  }
  return std::nullopt;
}

/// One group, and one a channel; with `usual` off, every number of groups that divides both sides' channels.
inline Sizes groups_to_try(const Asked& asked, bool usual) {
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

inline std::optional<Found> find(const Asked& asked, std::int64_t parameters, bool bias_first, bool usual) {
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

/// The fixed sizes after batch and channels; nothing if one is not.
inline std::optional<Axes> spatial(const core::Shape& shape) {
  Axes sizes;
  for (std::size_t axis = 2; axis < shape.rank(); ++axis) {
    if (shape[axis].kind != core::Dim::Kind::fixed) return std::nullopt;
    sizes.push_back(shape[axis].size);
  }
  return sizes;
}

/// What a convolution's shapes and count say about it.
struct Convolution {
  bool possible = true;              ///< it may read this shape
  std::optional<Asked> asked = {};   ///< nothing: its sizes are not all fixed
  std::optional<Found> kernel = {};  ///< nothing: its parameters are counted where it is called first
};

inline Convolution convolution_of(const PrintedLayer& layer, const core::Shape& input, bool usual) {
  if (input.rank() != layer.output.rank() || input.rank() < 3) return {.possible = false};
  const auto from = spatial(input);
  const auto to = spatial(layer.output);
  const bool sized =
      from && to && input[1].kind == core::Dim::Kind::fixed && layer.output[1].kind == core::Dim::Kind::fixed;
  if (!sized) return {};
  const bool transposed = layer.op->completion == model::Completion::transposed_convolution;
  Convolution found;
  found.asked = {input[1].size, layer.output[1].size, *from, *to, transposed};
  if (layer.parameters == 0) return found;
  found.kernel = find(*found.asked, layer.parameters, !layer.before_batch_norm, usual);
  found.possible = found.kernel.has_value();
  return found;
}

inline std::optional<std::vector<Attribute>> convolution(const PrintedLayer& layer, const core::Shape& input,
                                                         bool usual) {
  const Convolution found = convolution_of(layer, input, usual);
  if (!found.possible) return std::nullopt;
  Completed attributes(layer.attributes);
  if (found.asked) {
    attributes.set("in_channels", found.asked->in);
    attributes.set("out_channels", found.asked->out);
  }
  if (found.kernel) {
    attributes.set("kernel_size", found.kernel->kernel);
    attributes.set("stride", found.kernel->stride);
    attributes.set("padding", found.kernel->padding);
    attributes.set("groups", found.kernel->groups);
    attributes.set("bias", found.kernel->bias);
  }
  return std::move(attributes).take();
}

/// What a linear layer's shapes and count say about it.
struct Linear {
  bool possible = true;  ///< it may read this shape
  bool sized = false;    ///< its features are known
  bool biased = false;
};

inline Linear linear_of(const PrintedLayer& layer, const core::Shape& input) {
  if (input.rank() == 0 || layer.output.rank() == 0) return {.possible = false};
  const core::Dim in = input[input.rank() - 1];
  const core::Dim out = layer.output[layer.output.rank() - 1];
  if (in.kind != core::Dim::Kind::fixed || out.kind != core::Dim::Kind::fixed) return {};
  const core::Checked weight = core::Checked(in.size) * core::Checked(out.size);
  const core::Checked with_bias = weight + core::Checked(out.size);
  const bool biased = with_bias.value() == layer.parameters;
  const bool possible = biased || weight.value() == layer.parameters || layer.parameters == 0;
  return {possible, true, biased};
}

inline std::optional<std::vector<Attribute>> linear(const PrintedLayer& layer, const core::Shape& input) {
  const Linear found = linear_of(layer, input);
  if (!found.possible) return std::nullopt;
  Completed attributes(layer.attributes);
  if (found.sized) {
    attributes.set("in_features", input[input.rank() - 1].size);
    attributes.set("out_features", layer.output[layer.output.rank() - 1].size);
    attributes.set("bias", found.biased);
  }
  return std::move(attributes).take();
}

/// Two figures a channel; more are what the summary counts in addition (Keras: running statistics).
inline std::optional<std::vector<Attribute>> batch_norm(const PrintedLayer& layer, const core::Shape& input) {
  Completed attributes(layer.attributes);
  if (input.rank() < 2 || input[1].kind != core::Dim::Kind::fixed) return std::move(attributes).take();
  attributes.set("num_features", input[1].size);
  attributes.set("affine", layer.parameters > 0);
  return std::move(attributes).take();
}

/// Two figures an element of the last axis, or of more axes.
inline std::optional<std::vector<Attribute>> layer_norm(const PrintedLayer& layer, const core::Shape& input) {
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

inline std::optional<std::vector<Attribute>> attention(const PrintedLayer& layer, const core::Shape& input) {
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

inline std::optional<std::vector<model::Attribute>> complete(const PrintedLayer& layer, const core::Shape& input,
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

inline bool can_read(const PrintedLayer& layer, const core::Shape& input) {
  namespace detail = complete_detail;
  switch (layer.op == nullptr ? model::Completion::none : layer.op->completion) {
    case model::Completion::convolution:
    case model::Completion::transposed_convolution: return detail::convolution_of(layer, input, true).possible;
    case model::Completion::linear: return detail::linear_of(layer, input).possible;
    case model::Completion::batch_norm:
    case model::Completion::layer_norm:
    case model::Completion::attention:
    case model::Completion::none: break;
  }
  return true;
}

}  // namespace gpumem::connect
