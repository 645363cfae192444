// Element by element, without parameters: torch.pow, sqrt, rsqrt, exp, square, neg, abs, sin, cos and log;
// Tensor.to(dtype) as "cast"; torch.where and Tensor.masked_fill, whose inputs broadcast.
#pragma once

#include <array>

#include "gpumem/ops/broadcast.hpp"

namespace gpumem::ops {

inline constexpr std::array<Op, 13> kPointwiseOps = {{
    {{"pow"}, broadcast_shape},
    {{"sqrt"}, same_shape},
    {{"rsqrt"}, same_shape},
    {{"exp"}, same_shape},
    {{"square"}, same_shape},
    {{"neg"}, same_shape},
    {{"abs"}, same_shape},
    {{"sin"}, same_shape},
    {{"cos"}, same_shape},
    {{"log"}, same_shape},
    {{"cast"}, same_shape},
    {{"masked_fill"}, broadcast_shape},
    {{"where"}, broadcast_shape},
}};

}  // namespace gpumem::ops
