// Input: a job that ran out of memory.
// Output: what it asks for when it runs again, or the verdict that it will not run again. Until then it waits in the
// class of higher priority (queue.hpp).
//
// Two rules. `exclusive` is CARMA's (arXiv:2508.19073; github.com/itu-rad/CARMA, src/server.py): it runs again with its
// GPUs to itself. `growing` is the looser one that CARMA's README names as its outlook: a GPU with, for example, 5 GiB
// more than last time. Here the step doubles with each failure, and the last try has the GPUs to itself, so that every
// job gets to run with all that a GPU has.
//
// No job starves, and none runs for ever: the number of retries is limited, and a job that ran out of memory on a GPU
// of its own runs again only if there is a larger GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gpumem/core/bytes.hpp"
#include "gpumem/place/policy.hpp"
#include "gpumem/place/server.hpp"

namespace gpumem::place {

enum class RecoveryKind : std::uint8_t { exclusive, growing };

struct RecoveryRule {
  RecoveryKind kind = RecoveryKind::exclusive;
  core::Bytes step{std::int64_t{5} << 30};  ///< of `growing`: what the first retry asks for beyond what was had
  std::int64_t retries = 3;                 ///< at most; the last of them without other jobs
};

/// How a job ran out of memory.
struct OutOfMemory {
  std::int64_t failures = 1;  ///< of this job so far, this one included
  core::Bytes had;            ///< what it could have on the smallest of its GPUs: the GPU less what others took
  bool alone = false;         ///< nobody else was on its GPUs
};

struct Retry {
  std::optional<Request> request;  ///< nothing: given up
  std::string words;               ///< what happens and why, for people
};

/// What becomes of the job that was placed for `request`, the last of its requests.
[[nodiscard]] Retry after_out_of_memory(const Request& request, const OutOfMemory& failure, const Server& server,
                                        const RecoveryRule& rule = {});

}  // namespace gpumem::place
