// Input: a layer of a tree that cannot read the layer before it, because the code between the two is not printed.
// Output: what it is taken to read instead, and a warning that names its line. Tried in this order: the same tensor in
// another form (tokens for pixels, channels last); a tensor that is available (the input of a container around it, the
// output of an earlier part); several of these joined; a part of the tensor before it; and last a tensor of the size
// that it needs.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string>

#include "gpumem/connect/complete.hpp"
#include "gpumem/connect/wired_graph.hpp"
#include "gpumem/connect/wiring.hpp"

namespace gpumem::connect {

class Wiring;  // whose bodies use this file
struct Frame;
struct Wanted;

/// What the layer reads in place of `input`.
[[nodiscard]] Tensor repair(Wiring& wiring, Part layer, const Wanted& wanted, Tensor input, bool gate = false);

/// What a convolution of a table reads that does not follow from the layer before it: a tensor that another convolution
/// has read, or several of these side by side. Nothing if none fits its sizes.
[[nodiscard]] std::optional<Tensor> printed_source(Wiring& wiring, std::span<const Tensor> read,
                                                   const PrintedLayer& layer, Tensor latest);

/// At the end of a container: what no part read is added to its output where it has the same shape.
[[nodiscard]] Tensor join_left_over(Wiring& wiring, const Frame& frame, Tensor output);

namespace repair_detail {

using Axis = ops::ExpectedWidth::Axis;
inline constexpr std::size_t kLookBack = 64;  ///< results of a container that are looked at

/// The innermost containers around a layer: those further out are not looked at.
inline std::span<Frame> nearest_frames(Wiring& wiring) {
  constexpr std::size_t kMostFrames = 12;
  const std::span<Frame> all = wiring.frames();
  return all.last(std::min(all.size(), kMostFrames));
}

inline bool fits(const Wiring& wiring, const Wanted& wanted, Tensor tensor) {
  if (wanted.image && wiring.shape(tensor).rank() != 4) return false;
  return wiring.width_of(tensor, wanted) == wanted.width;
}

inline std::int64_t fixed(const core::Shape& shape, std::size_t axis) {
  return axis < shape.rank() && shape[axis].kind == core::Dim::Kind::fixed ? shape[axis].size : 0;
}

/// The side of a square of this many pixels; 0 if they make no square.
inline std::int64_t side_of(std::int64_t pixels) {
  const auto side =
      static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(std::max<std::int64_t>(pixels, 0)))));
  return side * side == pixels ? side : 0;
}

inline Tensor permuted(Wiring& wiring, Tensor tensor, std::vector<std::int64_t> dims) {
  return wiring.operation("permute", {&tensor, 1}, {{"dims", std::move(dims)}});
}

/// Tokens [N, T, C] as images [N, C, h, w]: T is a square, or one more where a class token is in front.
inline std::optional<Tensor> as_images(Wiring& wiring, Tensor tokens) {
  const core::Shape from = wiring.shape(tokens);
  const std::int64_t width = fixed(from, 2);
  std::int64_t count = fixed(from, 1);
  std::int64_t side = side_of(count);
  const bool classed = side == 0 && side_of(count - 1) > 0;
  if (classed) side = side_of(--count);
  if (side == 0 || width == 0) return std::nullopt;
  if (classed) {
    tokens = wiring.operation("slice", {&tokens, 1},
                              {{"dim", std::int64_t{1}}, {"start", std::int64_t{1}}, {"length", count}});
  }
  tokens = permuted(wiring, tokens, {0, 2, 1});
  return wiring.operation("reshape", {&tokens, 1}, {{"shape", std::vector<std::int64_t>{width, side, side}}});
}

/// The same elements with the axes in another order, or grouped in another way.
inline std::optional<Tensor> seen_otherwise(Wiring& wiring, const Wanted& wanted, Tensor input) {
  const core::Shape from = wiring.shape(input);
  const std::int64_t width = wanted.width.value_or(0);
  if (wanted.axis == Axis::last && from.rank() == 4 && fixed(from, 1) == width) {
    const Tensor flat = wiring.operation("flatten", {&input, 1}, {{"start_dim", std::int64_t{2}}});
    return permuted(wiring, flat, {0, 2, 1});
  }
  if (wanted.axis == Axis::last && from.rank() == 3 && fixed(from, 1) == width)
    return permuted(wiring, input, {0, 2, 1});
  if (wanted.axis != Axis::channels) return std::nullopt;
  if (from.rank() == 4 && fixed(from, 3) == width) return permuted(wiring, input, {0, 3, 1, 2});
  if (from.rank() == 3 && fixed(from, 2) == width && wanted.image) return as_images(wiring, input);
  if (from.rank() == 3 && fixed(from, 2) == width) {  // a batch norm over tokens
    return wiring.operation("flatten", {&input, 1}, {{"start_dim", std::int64_t{0}}, {"end_dim", std::int64_t{1}}});
  }
  if (from.rank() == 2 && fixed(from, 1) == width && wanted.image) {
    const Tensor tall = wiring.operation("unsqueeze", {&input, 1}, {{"dim", std::int64_t{2}}});
    return wiring.operation("unsqueeze", {&tall, 1}, {{"dim", std::int64_t{3}}});
  }
  return std::nullopt;
}

/// The input beside an earlier tensor of its size that has the channels it lacks: a skip.
inline std::optional<Tensor> beside_a_skip(Wiring& wiring, const Wanted& wanted, Tensor input) {
  const core::Shape shape = wiring.shape(input);
  if (wanted.axis != Axis::channels || shape.rank() != 4) return std::nullopt;
  const core::Dim lacks = core::Dim::fixed(*wanted.width - fixed(shape, 1));
  const auto fits = [&](Tensor tensor) {
    const core::Shape& of = wiring.shape(tensor);
    return tensor != input && of.rank() == 4 && of[1] == lacks && of[2] == shape[2] && of[3] == shape[3];
  };
  const std::span<Frame> frames = nearest_frames(wiring);
  for (std::size_t depth = frames.size(); depth > 0; --depth) {
    const std::span<const Tensor> results = frames[depth - 1].results;
    const auto last = results.last(std::min(results.size(), kLookBack));
    const auto found = std::find_if(last.rbegin(), last.rend(), fits);
    if (found != last.rend()) return wiring.concatenate(std::array<Tensor, 2>{*found, input});
  }
  return std::nullopt;
}

/// A tensor that is at hand: what an earlier part of a container around the layer left, or what such a container
/// reads, the nearest first; and the container.
struct AtHand {
  Tensor tensor = 0;
  Frame* frame = nullptr;
};
inline std::optional<AtHand> at_hand(Wiring& wiring, const Wanted& wanted, Tensor input) {
  const std::span<Frame> frames = nearest_frames(wiring);
  for (std::size_t depth = frames.size(); depth > 0; --depth) {
    Frame& frame = frames[depth - 1];
    std::optional<Tensor> found;
    if (fits(wiring, wanted, frame.input)) found = frame.input;
    const std::size_t last = frame.results.size();
    for (std::size_t at = last; at > last - std::min(last, kLookBack) && !found; --at) {
      if (fits(wiring, wanted, frame.results[at - 1])) found = frame.results[at - 1];
    }
    if (found && *found != input) return AtHand{*found, &frame};
  }
  return std::nullopt;
}

/// Whether what else the layer would read contradicts the tree: images whose axes change places, or a smaller image
/// than the one before it, which was enlarged for nothing.
inline bool contradicts(Wiring& wiring, const Wanted& wanted, Tensor input) {
  const core::Shape& shape = wiring.shape(input);
  if (wanted.axis != Axis::channels || shape.rank() != 4 || wiring.channels_last(input)) return false;
  if (fixed(shape, 3) == *wanted.width) return true;
  const auto found = at_hand(wiring, wanted, input);
  if (!found) return false;
  const core::Shape& other = wiring.shape(found->tensor);
  return other.rank() == 4 && fixed(other, 2) < fixed(shape, 2);
}

/// The last of what the parts of a container left, and at last what it reads, side by side.
inline std::optional<Tensor> joined(Wiring& wiring, const Wanted& wanted) {
  if (wanted.axis != Axis::channels) return std::nullopt;
  const std::span<Frame> frames = nearest_frames(wiring);
  for (std::size_t depth = frames.size(); depth > 0; --depth) {
    Frame& frame = frames[depth - 1];
    std::vector<Tensor> all = {frame.input};
    all.insert(all.end(), frame.results.begin(), frame.results.end());
    std::vector<Tensor> parts;
    std::int64_t sum = 0;
    for (std::size_t at = all.size(); at > all.size() - std::min(all.size(), kLookBack); --at) {
      const core::Shape& shape = wiring.shape(all[at - 1]);
      const core::Shape& like = wiring.shape(all.back());
      bool alike = shape.rank() == like.rank() && shape.rank() == 4;
      for (std::size_t axis = 2; alike && axis < shape.rank(); ++axis) alike = shape[axis] == like[axis];
      const bool again = std::find(parts.begin(), parts.end(), all[at - 1]) != parts.end();
      if (!alike || again) continue;
      parts.insert(parts.begin(), all[at - 1]);
      sum += fixed(shape, 1);
      if (sum >= *wanted.width) break;
    }
    if (sum == *wanted.width && parts.size() > 1) return wiring.concatenate(parts);
  }
  return std::nullopt;
}

/// The input with this many channels: a part of them, or copies side by side.
inline Tensor resized(Wiring& wiring, const Wanted& wanted, Tensor input) {
  const core::Shape from = wiring.shape(input);
  if (from.rank() < 2) return input;
  const std::size_t axis = wanted.axis == Axis::channels ? 1 : from.rank() - 1;
  const auto dim = static_cast<std::int64_t>(axis);
  std::int64_t width = fixed(from, axis);
  if (width == 0) return input;
  constexpr std::int64_t kMostCopies = 64;
  const std::int64_t copies = (*wanted.width + width - 1) / width;
  if (copies > kMostCopies) return input;
  if (copies > 1) {
    const std::vector<Tensor> all(static_cast<std::size_t>(copies), input);
    input = wiring.operation("concat", all, {{"dim", dim}});
    width *= copies;
  }
  if (width == *wanted.width) return input;
  return wiring.operation("slice", {&input, 1}, {{"dim", dim}, {"start", std::int64_t{0}}, {"length", *wanted.width}});
}

/// A tensor of the shape that the layer needs, of nothing: no gradient flows through it.
inline Tensor made_up(Wiring& wiring, const Wanted& wanted, Tensor input) {
  core::Shape shape = wiring.shape(input);
  std::vector<std::int64_t> sizes = {1};
  for (std::size_t axis = 1; axis < shape.rank(); ++axis)
    sizes.push_back(std::max<std::int64_t>(fixed(shape, axis), 1));
  while (wanted.image && sizes.size() < 4) sizes.push_back(1);
  if (sizes.size() < 2) sizes.push_back(1);
  (wanted.axis == Axis::channels ? sizes[1] : sizes.back()) = *wanted.width;
  std::vector<core::Dim> every = {core::Dim::batch()};
  for (std::size_t axis = 1; axis < sizes.size(); ++axis) every.push_back(core::Dim::fixed(-1));
  const Tensor one = wiring.operation(model::kConstantOp, {}, {{"shape", std::move(sizes)}});
  const Tensor all = wiring.operation("expand", {&one, 1}, {{"shape", every}});
  return wiring.operation("contiguous", {&all, 1});
}

/// Images for a layer that needs them, of whatever comes.
inline Tensor as_some_images(Wiring& wiring, Tensor input) {
  const core::Shape from = wiring.shape(input);
  if (from.rank() == 3) {
    if (const auto images = as_images(wiring, input)) return *images;
    const Tensor turned = permuted(wiring, input, {0, 2, 1});
    return wiring.operation("unsqueeze", {&turned, 1}, {{"dim", std::int64_t{3}}});
  }
  if (from.rank() == 2) {
    const Tensor tall = wiring.operation("unsqueeze", {&input, 1}, {{"dim", std::int64_t{2}}});
    return wiring.operation("unsqueeze", {&tall, 1}, {{"dim", std::int64_t{3}}});
  }
  return input;
}

/// The latest tensor of as many channels as a gate has, times the gate.
inline std::optional<Tensor> scaled(Wiring& wiring, Tensor gate) {
  const std::span<Frame> frames = nearest_frames(wiring);
  for (std::size_t depth = frames.size(); depth > 0; --depth) {
    const Frame& frame = frames[depth - 1];
    for (std::size_t at = frame.results.size(); at > 0; --at) {
      const core::Shape& shape = wiring.shape(frame.results[at - 1]);
      const bool larger = shape.rank() == 4 && fixed(shape, 2) > 1 && shape[1] == wiring.shape(gate)[1];
      if (larger) return wiring.multiply(frame.results[at - 1], gate);
    }
  }
  return std::nullopt;
}

inline bool one_size(const core::Shape& left, const core::Shape& right) {
  bool alike = left.rank() == right.rank() && left.rank() > 2;
  for (std::size_t axis = 2; alike && axis < left.rank(); ++axis) alike = left[axis] == right[axis];
  return alike;
}

/// The first of these, which has this shape, and of the others as many of its size as the convolution reads; none if
/// no number of them fits.
inline std::vector<Tensor> side_by_side(Wiring& wiring, std::span<const Tensor> all, const PrintedLayer& layer,
                                        core::Shape sum) {
  std::vector<Tensor> parts = {all[0]};
  for (const Tensor tensor : all.subspan(1)) {
    const core::Shape& shape = wiring.shape(tensor);
    if (!one_size(shape, sum)) continue;
    parts.insert(parts.begin(), tensor);
    sum.set(1, core::Dim::fixed(sum[1].size + shape[1].size));
    if (complete(layer, sum, true)) return parts;
  }
  return {};
}

/// The latest tensor, made as large as what the convolution leaves, alone or beside earlier ones: a decoder.
inline std::optional<Tensor> enlarged_source(Wiring& wiring, std::span<const Tensor> all, const PrintedLayer& layer,
                                             Tensor latest) {
  const core::Shape& from = wiring.shape(latest);
  if (from.rank() != 4 || layer.output.rank() != 4 || fixed(from, 2) == 0) return std::nullopt;
  const std::vector<std::int64_t> size = {fixed(layer.output, 2), fixed(layer.output, 3)};
  if (size[0] <= fixed(from, 2) || size[1] <= fixed(from, 3)) return std::nullopt;
  core::Shape grown = from;
  for (const std::size_t axis : {std::size_t{2}, std::size_t{3}}) grown.set(axis, layer.output[axis]);
  const auto enlarged = [&] { return wiring.operation("upsample", {&latest, 1}, {{"size", size}}); };
  if (complete(layer, grown, true)) return enlarged();
  // Beside one earlier tensor, whoever reads it.
  constexpr Tensor kMostTries = 2048;
  for (Tensor tensor = latest; tensor >= 0 && tensor > latest - kMostTries; --tensor) {
    const core::Shape& shape = wiring.shape(tensor);
    if (!one_size(shape, grown)) continue;
    core::Shape both = grown;
    both.set(1, core::Dim::fixed(grown[1].size + shape[1].size));
    if (complete(layer, both, true)) return wiring.concatenate(std::array<Tensor, 2>{enlarged(), tensor});
  }
  std::vector<Tensor> parts = side_by_side(wiring, all, layer, grown);
  if (parts.empty()) return std::nullopt;
  parts.back() = enlarged();
  return wiring.concatenate(parts);
}

inline std::string reads(const Wiring& wiring, const Wanted& wanted, Tensor input) {
  return "reads " + std::to_string(wanted.width.value_or(0)) + (wanted.axis == Axis::last ? " features" : " channels") +
         ", and follows " + core::to_string(wiring.shape(input)) + ": how its block is wired is not printed; ";
}

}  // namespace repair_detail

inline Tensor repair(Wiring& wiring, Part layer, const Wanted& wanted, Tensor input, bool gate) {
  namespace detail = repair_detail;
  const std::string reads = detail::reads(wiring, wanted, input);
  if (const auto scaled = gate ? detail::scaled(wiring, input) : std::nullopt) {
    wiring.guess(layer, reads + "a block that pools to one pixel is taken to scale its input");
    return *scaled;
  }
  if (!wanted.width) return detail::as_some_images(wiring, input);
  if (detail::contradicts(wiring, wanted, input)) {
    if (const auto both = detail::beside_a_skip(wiring, wanted, input)) {
      wiring.guess(layer, reads + "it is taken to read an earlier tensor beside it");
      return *both;
    }
    wiring.contradict();
  }
  if (const auto same = detail::seen_otherwise(wiring, wanted, input)) {
    wiring.guess(layer, reads + "it is taken to read the same tensor with its axes in another order");
    return *same;
  }
  if (const auto other = detail::at_hand(wiring, wanted, input)) {
    wiring.guess(layer, reads + "it is taken to read an earlier tensor of this size");
    other->frame->left_over.push_back(input);
    return other->tensor;
  }
  if (const auto joined = detail::joined(wiring, wanted)) {
    wiring.guess(layer, reads + "it is taken to read the layers before it, joined");
    return *joined;
  }
  if (wanted.optional) return input;
  wiring.guess(layer, reads + "a tensor of the size that it needs is taken instead");
  wiring.stand_in();
  if (wanted.image) input = detail::as_some_images(wiring, input);
  const Tensor resized = detail::resized(wiring, wanted, input);
  return detail::fits(wiring, wanted, resized) || wiring.failed() ? resized : detail::made_up(wiring, wanted, input);
}

inline std::optional<Tensor> printed_source(Wiring& wiring, std::span<const Tensor> read, const PrintedLayer& layer,
                                            Tensor latest) {
  constexpr std::size_t kMostTries = 48;
  const std::size_t last = read.size() - std::min(read.size(), kMostTries);
  std::vector<Tensor> all = {latest};
  for (std::size_t at = read.size(); at > last; --at) {
    if (std::find(all.begin(), all.end(), read[at - 1]) == all.end()) all.push_back(read[at - 1]);
  }
  if (const auto enlarged = repair_detail::enlarged_source(wiring, all, layer, latest)) return enlarged;
  for (const Tensor tensor : all) {
    if (complete(layer, wiring.shape(tensor), true)) return tensor;
  }
  const std::vector<Tensor> parts = repair_detail::side_by_side(wiring, all, layer, wiring.shape(latest));
  return parts.empty() ? std::nullopt : std::optional(wiring.concatenate(parts));
}

inline Tensor join_left_over(Wiring& wiring, const Frame& frame, Tensor output) {
  for (const Tensor left : frame.left_over) {
    const bool same = left != output && wiring.shape(left) == wiring.shape(output);
    if (same) output = wiring.add(output, left, false);
  }
  return output;
}

}  // namespace gpumem::connect
