#include "process.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <ctime>
#include <memory>

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

std::optional<std::int64_t> number_of(std::string_view word) {
  std::int64_t value = 0;
  const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (fault != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

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
    const auto number = number_of(word);
    if (!number) return std::nullopt;
    (field == kParent ? facts.parent : field == kGroup ? facts.group : facts.started) = *number;
  }
  return facts;
}

std::optional<ProcessFacts> facts_of(std::int64_t pid) {
  return parse_stat(text_of(("/proc/" + std::to_string(pid) + "/stat").c_str()));
}

Process process_of(std::int64_t pid) {
  const auto facts = facts_of(pid);
  return {pid, facts ? facts->started : 0};
}

bool is_alive(const Process& process) {
  if (process.pid <= 0) return false;
  if (const auto facts = facts_of(process.pid)) {
    return !has_ended(*facts) && (process.started == 0 || facts->started == process.started);
  }
  return kill(static_cast<pid_t>(process.pid), 0) == 0 || errno == EPERM;
}

bool group_is_alive(const Process& leader) {
  if (leader.pid <= 1) return false;
  const auto now = facts_of(leader.pid);
  if (now && leader.started != 0 && now->started != leader.started) return false;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), &closedir);
  if (folder == nullptr) return kill(static_cast<pid_t>(-leader.pid), 0) == 0 || errno == EPERM;
  while (const dirent* entry = readdir(folder.get())) {
    const auto pid = number_of(entry->d_name);
    if (!pid) continue;
    const auto facts = facts_of(*pid);
    if (facts && facts->group == leader.pid && !has_ended(*facts)) return true;
  }
  return false;
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
