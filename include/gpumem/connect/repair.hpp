// Input: a layer of a tree that cannot read the layer before it, because the code between the two is not printed.
// Output: what it is taken to read instead, and a warning that names its line. Tried in this order: the same tensor in
// another form (tokens for pixels, channels last); a tensor that is available (the input of a container around it, the
// output of an earlier part); several of these joined; a part of the tensor before it; and last a tensor of the size
// that it needs.
#pragma once

#include <optional>
#include <span>

#include "gpumem/connect/complete.hpp"
#include "gpumem/connect/containers.hpp"

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

}  // namespace gpumem::connect
