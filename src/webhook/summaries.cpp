#include "summaries.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace gpumem::webhook {

namespace {

constexpr std::size_t kMostEntries = 1024;
/// Without waiting for a FIFO's writer, and without becoming the process of a terminal.
constexpr int kFlags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

Error unreadable(const std::string& path, std::string message) {
  return {ErrorCode::unreadable_file, std::move(message), {path, 0, {}}};
}

/// A path that could lead out of the folder by its words.
bool leads_out(const std::string& path) {
  if (path.empty() || path.front() == '/' || path.find('\0') != std::string::npos) return true;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (path.compare(begin, end - begin, "..") == 0) return true;
    begin = end + 1;
  }
  return false;
}

/// For kernels without openat2(): who can change links below the folder while they are followed is not held back.
int open_after_looking(const std::string& folder, const std::string& relative) {
  std::array<char, PATH_MAX> root{};
  std::array<char, PATH_MAX> real{};
  if (realpath(folder.c_str(), root.data()) == nullptr) return -1;
  if (realpath((folder + "/" + relative).c_str(), real.data()) == nullptr) return -1;
  if (!std::string_view(real.data()).starts_with(std::string(root.data()) + "/")) {
    errno = EXDEV;
    return -1;
  }
  return open(real.data(), kFlags | O_NOFOLLOW);
}

/// Opens a path below the folder; the kernel refuses whatever leads out of it. -1 and errno if not.
int open_below(const std::string& folder, const std::string& relative) {
  const int root = open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return -1;
  open_how how{};
  how.flags = kFlags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const auto descriptor = static_cast<int>(syscall(SYS_openat2, root, relative.c_str(), &how, sizeof how));
  const int fault = errno;
  close(root);
  if (descriptor < 0 && (fault == ENOSYS || fault == EPERM)) return open_after_looking(folder, relative);
  errno = fault;
  return descriptor;
}

std::string reason(int fault) {
  if (fault == EXDEV) return "leads out of the folder of summaries";
  return std::string("cannot be opened: ") + std::strerror(fault);
}

}  // namespace

Result<Folder::File> Folder::open(const std::string& relative) const {
  if (path_.empty()) return unreadable(relative, "no folder of summaries is configured; give the summary as text");
  if (leads_out(relative)) return unreadable(relative, "must be a path below the folder of summaries");
  const int descriptor = open_below(path_, relative);
  if (descriptor < 0) return unreadable(relative, reason(errno));
  struct stat facts {};
  const bool told = fstat(descriptor, &facts) == 0;
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  File file(descriptor,
            {facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtim.tv_sec * kNanoseconds + facts.st_mtim.tv_nsec},
            most_bytes_);
  if (!told) return unreadable(relative, reason(errno));
  if (!S_ISREG(facts.st_mode)) return unreadable(relative, "is not a regular file");
  if (static_cast<std::size_t>(facts.st_size) > most_bytes_) {
    return unreadable(relative, "is larger than " + core::to_string(Bytes(static_cast<std::int64_t>(most_bytes_))));
  }
  return file;
}

Folder::File::File(File&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), stamp_(other.stamp_), most_bytes_(other.most_bytes_) {}

Folder::File::~File() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<std::string> Folder::File::read() const {
  std::string text;
  std::array<char, 1U << 16> chunk{};
  while (true) {
    const ssize_t count = ::read(descriptor_, chunk.data(), chunk.size());
    if (count == 0) return text;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return unreadable({}, reason(errno));
    text.append(chunk.data(), static_cast<std::size_t>(count));
    if (text.size() > most_bytes_) return unreadable({}, "grew while it was read");
  }
}

Summaries::Model Summaries::from_file(const std::string& relative) {
  const Result<Folder::File> file = folder_.open(relative);
  if (!file) return file.error();
  const std::string key = "file:" + relative;
  if (auto model = known(key, file->stamp())) return *std::move(model);
  const Result<std::string> text = file->read();
  if (!text) return Error(text.error()).in_file(relative);
  Result<ModelGraph> graph = summary::read(*text, {&ops::vocabulary(), relative, false});
  Model model = graph ? Model(std::make_shared<const ModelGraph>(*std::move(graph))) : Model(graph.error());
  keep({key, file->stamp(), text->size(), model});
  return model;
}

Summaries::Model Summaries::from_text(const std::string& text) {
  const std::string key = "text:" + text;
  if (auto model = known(key, std::nullopt)) return *std::move(model);
  Result<ModelGraph> graph = summary::read(text, {&ops::vocabulary(), "gpumem.io/summary-text", false});
  Model model = graph ? Model(std::make_shared<const ModelGraph>(*std::move(graph))) : Model(graph.error());
  keep({key, std::nullopt, text.size(), model});
  return model;
}

Summaries::Counters Summaries::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

std::optional<Summaries::Model> Summaries::known(const std::string& key, const std::optional<Folder::Stamp>& stamp) {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  const bool same = found != by_key_.end() && found->second->stamp == stamp;
  ++(same ? counters_.hits : counters_.misses);
  if (!same) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->model;
}

void Summaries::keep(Entry entry) {
  const std::lock_guard lock(mutex_);
  if (const auto old = by_key_.find(entry.key); old != by_key_.end()) forget(old->second);
  bytes_ += entry.bytes;
  entries_.push_front(std::move(entry));
  by_key_.emplace(entries_.front().key, entries_.begin());
  while (entries_.size() > 1 && (bytes_ > most_bytes_ || entries_.size() > kMostEntries)) {
    forget(std::prev(entries_.end()));
  }
}

void Summaries::forget(std::list<Entry>::iterator entry) {
  bytes_ -= entry->bytes;
  by_key_.erase(entry->key);
  entries_.erase(entry);
}

}  // namespace gpumem::webhook
