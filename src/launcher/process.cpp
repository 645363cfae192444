#include "process.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <memory>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/file.hpp"

namespace gpumem::launcher {

namespace {

/// A small file of /proc. Empty: it cannot be read.
std::string text_of(const char* path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::array<char, 1024> text{};
  const ssize_t size = read(file, text.data(), text.size());
  close(file);
  return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : std::string();
}

/// Whether the kernel has a process of this pid, or of this group if it is negative. Who may not signal it is told so.
bool is_there(std::int64_t pid) { return kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM; }

bool has_ended(const ProcessFacts& facts) { return facts.state == 'Z' || facts.state == 'X'; }

}  // namespace

std::optional<ProcessFacts> parse_stat(std::string_view line) {
  // The second field is the program's name in parentheses, which may hold anything.
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 >= line.size()) return std::nullopt;
  constexpr int kState = 3;
  constexpr int kParent = 4;
  constexpr int kGroup = 5;
  constexpr int kStarted = 22;
  ProcessFacts facts;
  std::size_t at = name_end + 2;
  for (int field = kState; field <= kStarted; ++field) {
    const std::size_t end = std::min(line.find_first_of(" \n", at), line.size());
    if (at >= end) return std::nullopt;
    const std::string_view word = line.substr(at, end - at);
    at = end + 1;
    if (field == kState) facts.state = word[0];
    if (field != kParent && field != kGroup && field != kStarted) continue;
    const auto number = core::parse_whole(word);
    if (!number) return std::nullopt;
    (field == kParent ? facts.parent : field == kGroup ? facts.group : facts.started) = *number;
  }
  return facts;
}

std::optional<ProcessFacts> facts_of(std::int64_t pid) {
  if (pid <= 0) return std::nullopt;
  if (auto shown = parse_stat(text_of(("/proc/" + std::to_string(pid) + "/stat").c_str()))) return shown;
  if (!is_there(pid)) return std::nullopt;
  const pid_t group = getpgid(static_cast<pid_t>(pid));
  return ProcessFacts{'R', 0, group < 0 ? 0 : group, 0};
}

bool is_same(const ProcessFacts& facts, const Process& process) {
  return process.started == 0 || facts.started == 0 || facts.started == process.started;
}

Process process_of(std::int64_t pid) {
  const auto facts = facts_of(pid);
  return {pid, facts ? facts->started : 0};
}

bool is_alive(const Process& process) {
  const auto facts = facts_of(process.pid);
  return facts && !has_ended(*facts) && is_same(*facts, process);
}

bool group_is_alive(const Process& leader) {
  if (leader.pid <= 1) return false;
  const auto now = facts_of(leader.pid);
  if (now && !is_same(*now, leader)) return false;
  if (!is_there(-leader.pid)) return false;
  // One that has ended is there until it is waited for: whether another lives, /proc says.
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), &closedir);
  bool any_shown = false;
  while (const dirent* entry = folder == nullptr ? nullptr : readdir(folder.get())) {
    const auto pid = core::parse_whole(entry->d_name);
    if (!pid) continue;
    const auto facts = facts_of(*pid);
    if (!facts || facts->group != leader.pid) continue;
    if (!has_ended(*facts)) return true;
    any_shown = true;
  }
  return !any_shown;
}

bool is_stopped(const ProcessFacts& facts) { return facts.state == 'T' || facts.state == 't'; }

bool end_group(const Process& leader, double grace) {
  constexpr double kUnkillable = 2.0;
  const auto signal_group = [&](int signal) { (void)kill(static_cast<pid_t>(-leader.pid), signal); };
  const auto is_gone_after = [&](double seconds) {
    const double until = seconds_since_boot() + seconds;
    while (group_is_alive(leader)) {
      if (seconds_since_boot() >= until) return false;
      constexpr useconds_t kMicroseconds = 50'000;
      (void)usleep(kMicroseconds);
    }
    return true;
  };
  if (!group_is_alive(leader)) return false;
  signal_group(SIGTERM);
  signal_group(SIGCONT);
  if (is_gone_after(grace)) return false;
  signal_group(SIGKILL);
  (void)is_gone_after(kUnkillable);
  return true;
}

const std::string& boot_id() {
  static const std::string kId = [] {
    std::string id = text_of("/proc/sys/kernel/random/boot_id");
    while (!id.empty() && id.back() == '\n') id.pop_back();
    return id;
  }();
  return kId;
}

double seconds_since_boot() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  constexpr double kNanoseconds = 1e-9;
  return static_cast<double>(now.tv_sec) + kNanoseconds * static_cast<double>(now.tv_nsec);
}

}  // namespace gpumem::launcher
