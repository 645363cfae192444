// Enters: a request for GPUs and the server. Leaves: a Decision: which GPUs, or why none now. One file a policy;
// policies.hpp is the list. A decision allocates nothing but its own list of GPUs: it is made for every waiting job at
// every event of a scheduler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/place/server.hpp"

namespace gpumem::place {

/// What a job asks for.
struct Request {
  std::string_view id;
  std::int64_t gpus = 1;              ///< all or nothing
  std::optional<core::Bytes> memory;  ///< to set aside on each of them, margin included; nothing: no estimate
  double smact = 0.0;                 ///< its expected SM activity alone; 0: not known
  bool exclusive = false;             ///< only GPUs without any other job, and none beside it later
};

/// When a GPU is open to a further job at all, whatever the policy prefers. CARMA's values by default.
struct Conditions {
  std::optional<double> smact_cap = 0.80;         ///< no job to a GPU at or above this mean SM activity
  core::Bytes free_floor{std::int64_t{5} << 30};  ///< nor to one with less free memory than this
};

/// Why a GPU did not take the job.
enum class Refusal : std::uint8_t { none, occupied, smact, free_floor, memory, too_few, never };

struct Decision {
  std::vector<std::size_t> gpus;  ///< indices into Server::gpus; empty: not now
  /// The most telling obstacle: `never` if no GPU of this server could hold the job even when empty.
  Refusal refusal = Refusal::none;
  std::size_t nearest = 0;  ///< the GPU that came closest, if `refusal` is of one GPU

  [[nodiscard]] bool placed() const { return !gpus.empty(); }
};

/// A way to choose among the GPUs that are open.
class Policy {
 public:
  Policy() = default;
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;
  virtual ~Policy() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;
  /// `turn` is the round-robin's place on the server, advanced by a placement; other policies leave it alone.
  [[nodiscard]] virtual Decision decide(const Request& request, const Server& server, const Conditions& conditions,
                                        std::size_t& turn) const = 0;
};

/// The decision in words a person can read: "on GPU 2: 23.1 GiB free, SM activity 41 %", "not now: GPU 1 comes closest
/// with 9.8 GiB free of the 12.2 GiB that vgg16 needs", "never: ...".
[[nodiscard]] std::string explain(const Decision& decision, const Request& request, const Server& server,
                                  const Conditions& conditions);

}  // namespace gpumem::place

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/impl/policy_inl.hpp"
#endif
