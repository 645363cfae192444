// Input: process ids.
// Output: whether these processes still live, and which job a process belongs to. A pid by itself says nothing, because
// the kernel uses it again. Together with the time at which the process started, and the boot that this time counts
// from, it names one process for ever.
// Units: clock ticks since boot.
// Source: proc(5), /proc/PID/stat, fields 3 (state), 4 (parent), 5 (process group) and 22 (start time);
// /proc/sys/kernel/random/boot_id.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace gpumem::launcher {

/// One process of this boot.
struct Process {
  std::int64_t pid = 0;
  std::int64_t started = 0;  ///< ticks since boot; 0: not known

  friend bool operator==(const Process&, const Process&) = default;
};

/// What /proc says about a process.
struct ProcessFacts {
  char state = 'R';
  std::int64_t parent = 0;  ///< 0: not known
  std::int64_t group = 0;
  std::int64_t started = 0;  ///< 0: not known
};

/// Reads a line of /proc/PID/stat. Nothing: it is none.
[[nodiscard]] std::optional<ProcessFacts> parse_stat(std::string_view line);
/// Nothing: there is no such process. Of one that /proc hides (mounted with hidepid, where other users' processes
/// cannot be seen) its group is told, which getpgid(2) knows; its state, parent and start are not known.
[[nodiscard]] std::optional<ProcessFacts> facts_of(std::int64_t pid);
using FindFacts = std::function<std::optional<ProcessFacts>(std::int64_t pid)>;

/// Whether what is said about its pid is said about this very process, as far as the starts are known.
[[nodiscard]] bool is_same(const ProcessFacts& facts, const Process& process);
/// The process of this pid as it is now. Its start is 0 where /proc does not show it.
[[nodiscard]] Process process_of(std::int64_t pid);
/// Whether this very process still runs; one that has ended and was not waited for does not. Where /proc hides the
/// processes of others, one whose pid is there counts as alive: a promise is better kept too long than lost.
[[nodiscard]] bool is_alive(const Process& process);
/// Whether any process is in the group that this one led; false once another process has its pid. Where /proc hides all
/// of them, a group that is there counts as alive.
[[nodiscard]] bool group_is_alive(const Process& leader);
/// Whether it is stopped: SIGSTOP, Ctrl-Z, a debugger. False where /proc hides it.
[[nodiscard]] bool is_stopped(const ProcessFacts& facts);

/// Seconds between SIGTERM and SIGKILL of a job that is to end.
inline constexpr double kGrace = 10.0;
/// Asks the group to end, and kills it where it still lives `grace` seconds later. Returns once no process of it lives,
/// or two seconds after SIGKILL: a process that waits for a device may live on. True: SIGKILL had to be sent.
bool end_group(const Process& leader, double grace = kGrace);

/// Names this start of the machine; empty where the kernel does not tell.
[[nodiscard]] const std::string& boot_id();
/// Seconds since boot, also of those that the machine slept. No clock that people set changes it.
[[nodiscard]] double seconds_since_boot();

}  // namespace gpumem::launcher
