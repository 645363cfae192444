// Input: a job with a layout that passed check().
// Output: Sharing: what its sharding does to parameters, gradients and the optimizer's states, as figures and choices
// that the step's plan follows. One file a sharding says how its framework does it; sharing_of() is the list.
// Units: ranks, elements, element types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gpumem/core/result.hpp"
#include "gpumem/core/shape.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::parallel {

/// How a unit (a repeated block, or all that is in none; or a layer) gets its whole parameters before it is called.
enum class Gather : std::uint8_t {
  never,       ///< they are whole all the time
  in_place,    ///< into one flat parameter, of which the parameters are views
  copied_out,  ///< into a buffer, and from there into each parameter
};

/// What becomes of a gradient that backward has made.
enum class Reduction : std::uint8_t {
  none,         ///< it stays whole until zero_grad
  bucketed,     ///< it stays too, and is copied into a bucket that is reduced
  scattered,    ///< those of a unit are reduced together, and each rank keeps its share
  partitioned,  ///< those of a bucket are reduced, and each rank keeps its share
  main_buffer,  ///< it is added to a buffer in float32 that is never freed
};

struct Sharing {
  Gather gather = Gather::never;
  std::int64_t parameter_ranks = 1;      ///< that share each parameter
  bool layer_by_layer = false;           ///< each layer with parameters is a unit of its own
  std::int64_t persistent_elements = 0;  ///< parameters up to this size are always whole, in addition to their shards
  std::int64_t reuse_elements = 0;       ///< a unit that is called again before this many other elements is not freed
  bool prefetches = true;                ///< in backward the next unit is gathered while this one runs
  std::int64_t prefetch_elements = 0;    ///< of units gathered ahead in backward; 0: one unit
  bool float32_shards = false;  ///< shards of trained parameters are float32, whatever is gathered and computed in

  Reduction reduction = Reduction::none;
  std::int64_t gradient_ranks = 1;             ///< that share each gradient after its reduction
  std::optional<core::DType> reduced_in = {};  ///< nothing: in the gradient's type
  std::int64_t bucket_bytes = 0;               ///< of bucketed gradients
  std::int64_t first_bucket_bytes = 0;         ///< of the first bucket to be full
  std::int64_t bucket_elements = 0;            ///< of partitioned gradients
  bool buffers_stand = false;                  ///< bucket and shares of partitioned gradients, from the start on
  bool cat_gradients = false;                  ///< a unit's gradients become one tensor before they are reduced
  bool keeps_frozen_inputs = false;            ///< until backward ends: of units whose parameters are all frozen
  bool adapters_apart = false;                 ///< adapters are no part of the unit that they are in
  bool gradients_until_forward = false;        ///< zero_grad() does not release them; the next forward does

  std::int64_t state_ranks = 1;   ///< that share masters and states
  bool masters = false;           ///< float32 masters, besides the parameters
  bool gradients_copied = false;  ///< the step makes float32 copies of the gradients for the masters
  bool on_host = false;           ///< shards, their gradients and states are in the host's memory

  // Of a trained parameter whose own type this is: what its shard, its masters and states, and its gradient while it is
  // reduced are held in.
  [[nodiscard]] core::DType shard_type(core::DType own) const { return float32_shards ? core::DType::float32 : own; }
  [[nodiscard]] core::DType state_type(core::DType own) const {
    return masters || float32_shards ? core::DType::float32 : own;
  }
  [[nodiscard]] core::DType reduced_type(core::DType own) const { return reduced_in.value_or(own); }
};

/// What the job's layout does. Errors: invalid_argument where the sharding is not modelled, or not with the job's
/// precision or offloading.
[[nodiscard]] core::Result<Sharing> sharing_of(const model::TrainingJob& job);

/// "sharded: parameters over 8 ranks, ...", for people; empty for a job whose layout names no sharding.
[[nodiscard]] std::string sharing_text(const model::TrainingJob& job);

}  // namespace gpumem::parallel
