// Input: what happens to jobs in the queue.
// Output: Event, one value for each happening, and its line in the journal:
// {"crc32":"1a2b3c4d","event":{"job":7,"at":81.5,"kind":"start",...}}. Reading is strict: an unknown field is an error,
// because it may be a promise.
// Units: bytes; seconds since boot (CLOCK_BOOTTIME).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/place/policies.hpp"
#include "process.hpp"

namespace gpumem::launcher {

inline constexpr std::string_view kQueueFormat = "gpumem-queue";
inline constexpr std::int64_t kQueueVersion = 1;

/// What a job asks for: a place::Request that owns nothing and has no name.
struct Asked {
  std::int64_t gpus = 1;
  std::optional<core::Bytes> memory;
  std::optional<core::Bytes> alone;
  double smact = 0.0;
  bool exclusive = false;
  bool connected = false;

  friend bool operator==(const Asked&, const Asked&) = default;
};
[[nodiscard]] place::Request request_of(const Asked& asked, std::string_view id);
[[nodiscard]] Asked asked_of(const place::Request& request);

/// By which policy it is placed, and under which conditions.
struct Terms {
  std::string policy = "magm";
  place::Conditions conditions;
  /// Without an estimate: seconds until what it takes can be seen. Nobody joins it on its GPUs before.
  double settle_s = 30.0;
};

/// The first line of every journal.
struct Opened {
  std::int64_t next = 1;  ///< the number of the next job
  std::int64_t turn = 0;  ///< the round-robin's
};

/// A job joins the queue.
struct Joined {
  std::string name;  ///< for people
  std::int64_t user = 0;
  Process launcher;
  std::string boot;
  Asked asked;
  Terms terms;
  std::int64_t failures = 0;  ///< times that it ran out of memory; from 1 on it waits in the recovery class
};

/// What is promised on one GPU.
struct Promise {
  std::string gpu;  ///< its UUID
  core::Bytes memory;

  friend bool operator==(const Promise&, const Promise&) = default;
};

/// A job's turn has come: from here on the memory is promised to it.
struct Started {
  Process leader;  ///< of the job's process group
  std::vector<Promise> promises;
  std::int64_t turn = 0;  ///< the round-robin's from now on
};

/// It ran out of memory, and waits again: nothing is promised to it any more.
struct Recovers {
  Asked asked;
  std::int64_t failures = 1;
};

enum class Ending : std::uint8_t {
  done,
  failed,
  out_of_memory,  ///< and is not tried again
  cancelled,      ///< while it waited
  left,           ///< its launcher was told to end while it waited
  gone,           ///< its processes are not there any more; somebody else says so
};
[[nodiscard]] std::string_view to_string(Ending ending);

/// It is out of the queue.
struct Ended {
  Ending ending = Ending::done;
  std::int64_t exit_code = 0;
};

/// Somebody asks its launcher to end it.
struct Cancelled {
  std::int64_t user = 0;
};

struct Event {
  std::int64_t job = 0;  ///< 0 of Opened
  double at = 0.0;
  std::variant<Opened, Joined, Started, Recovers, Ended, Cancelled> what;
};

/// With its line end.
[[nodiscard]] std::string line_of(const Event& event);
/// The line, without its end, of an event that is JSON already.
[[nodiscard]] std::string framed(std::string_view body);
/// Whether the line (without its end) is whole: of this form, and with the right checksum.
[[nodiscard]] bool is_whole(std::string_view line);
/// From a whole line. Errors: malformed_input, naming the field.
[[nodiscard]] core::Result<Event> parse_event(std::string_view line);

}  // namespace gpumem::launcher
