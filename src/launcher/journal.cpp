#include "journal.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace gpumem::launcher {

namespace {

constexpr std::int64_t kLongestJournal = std::int64_t{256} << 20;
/// A journal shorter than this is never written again; a longer one where this share of it suffices.
constexpr std::int64_t kShortJournal = std::int64_t{64} << 10;
constexpr std::int64_t kWorthShortening = 4;

core::Error system_fault(const std::string& path, const char* doing) {
  return system_error(std::string("cannot ") + doing, path);
}

/// All of the text from `at` to the end. Nothing: it cannot be read.
std::optional<std::string> text_from(int file, std::int64_t at, std::int64_t most) {
  std::string text;
  constexpr std::size_t kChunk = std::size_t{64} << 10;
  while (static_cast<std::int64_t>(text.size()) <= most) {
    const std::size_t size = text.size();
    text.resize(size + kChunk);
    const ssize_t count = pread(file, text.data() + size, kChunk, at + static_cast<std::int64_t>(size));
    text.resize(size + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) return text;
  }
  return std::nullopt;
}

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(file, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

/// With all folders above it. What others may do there is the caller's umask.
core::Status make_directory(const std::string& path) {
  constexpr mode_t kMode = 0777;
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (mkdir(part.c_str(), kMode) != 0 && errno != EEXIST) return system_fault(part, "make the directory");
    if (end == std::string::npos) return core::Done{};
  }
}

/// Whether this user may put another file in the place of this one: in a sticky directory only its owner may, or the
/// directory's.
bool may_replace(const std::string& directory, int file) {
  struct stat folder {};
  struct stat facts {};
  if (stat(directory.c_str(), &folder) != 0 || fstat(file, &facts) != 0) return false;
  const uid_t user = geteuid();
  return (folder.st_mode & S_ISVTX) == 0 || user == 0 || user == folder.st_uid || user == facts.st_uid;
}

}  // namespace

core::Result<ParsedJournal> parse_journal(std::string_view text) {
  ParsedJournal parsed;
  std::int64_t number = 0;
  std::int64_t broken = 0;  // the first line that is not whole
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string_view::npos) break;
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (!is_whole(line)) {
      if (broken == 0) broken = number;
      continue;
    }
    if (broken != 0) {
      core::Error error = core::malformed(
          "is broken, and whole lines follow it, which no crash leaves behind; when no job runs, remove the file");
      error.place.line = broken;
      return error;
    }
    core::Result<Event> event = parse_event(line);
    if (!event) {
      event.error().place.line = number;
      return event.error();
    }
    parsed.events.push_back(*std::move(event));
    parsed.sound = at;
    parsed.last_line = line;
  }
  return parsed;
}

core::Result<std::string> queue_directory(const std::string& named) {
  std::string path = named;
  if (const char* variable = std::getenv("GPUMEM_QUEUE"); path.empty() && variable != nullptr) path = variable;
  if (path.empty()) {
    const std::string site = "/var/lib/gpumem/queue";
    if (access(site.c_str(), W_OK | X_OK) == 0) return site;
    const char* own = std::getenv("XDG_RUNTIME_DIR");
    if (own == nullptr || *own == '\0') {
      return core::Error{core::ErrorCode::invalid_argument,
                         "there is no queue: " + site +
                             " cannot be written, and XDG_RUNTIME_DIR is not set; name a "
                             "directory with --directory, or in the variable GPUMEM_QUEUE",
                         {}};
    }
    path = std::string(own) + "/gpumem/queue";
  }
  if (core::Status made = make_directory(path); !made) return made.error();
  if (access(path.c_str(), W_OK | X_OK) != 0) return system_fault(path, "write in the directory");
  return path;
}

core::Result<OpenFile> open_shared(const std::string& directory, const std::string& name, int flags) {
  const std::string path = directory + "/" + name;
  constexpr mode_t kReadWrite = 0666;
  // Not made at once: a kernel may refuse to make what is there already and another user's (fs.protected_regular).
  for (int tries = 0; tries < 2; ++tries) {
    OpenFile there(open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY));
    if (there.is_open()) return there;
    if (errno != ENOENT) return system_fault(path, "open");
    OpenFile made(open(path.c_str(), flags | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kReadWrite));
    if (!made.is_open()) {
      if (errno == EEXIST) continue;
      return system_fault(path, "make");
    }
    struct stat facts {};
    if (stat(directory.c_str(), &facts) == 0) (void)fchmod(made.number(), facts.st_mode & kReadWrite);
    return made;
  }
  return system_fault(path, "open");
}

core::Result<Journal> Journal::open(const std::string& directory) {
  Journal journal(directory);
  core::Result<OpenFile> lock = open_shared(directory, "lock", O_RDWR);
  if (!lock) return lock.error();
  journal.lock_ = *std::move(lock);
  if (core::Status read = journal.refresh(); !read) return read.error();
  return journal;
}

bool Journal::is_where_it_was() const {
  struct stat mine {};
  struct stat there {};
  if (fstat(file_.number(), &mine) != 0 || stat(path().c_str(), &there) != 0) return false;
  if (mine.st_ino != there.st_ino || mine.st_dev != there.st_dev || mine.st_size < sound_) return false;
  std::string last(last_line_.size(), '\0');
  const auto at = sound_ - static_cast<std::int64_t>(last.size());
  return pread(file_.number(), last.data(), last.size(), at) == static_cast<ssize_t>(last.size()) && last == last_line_;
}

core::Status Journal::begin_again() {
  ledger_ = Ledger();
  sound_ = 0;
  lines_ = 0;
  last_line_.clear();
  file_ = OpenFile(::open(path().c_str(), O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY));
  if (file_.is_open() || errno == ENOENT) return core::Done{};
  return system_fault(path(), "open");
}

core::Status Journal::read_on() {
  if (!file_.is_open() || !is_where_it_was()) {
    if (core::Status begun = begin_again(); !begun) return begun;
    if (!file_.is_open()) return core::Done{};
  }
  const auto text = text_from(file_.number(), sound_, kLongestJournal);
  if (!text) return system_fault(path(), "read");
  const core::Result<ParsedJournal> parsed = parse_journal(*text);
  const auto placed = [&](core::Error error, std::int64_t line) {
    error.place.line = lines_ + line;
    return std::move(error).in_file(path());
  };
  if (!parsed) return placed(parsed.error(), parsed.error().place.line);
  std::int64_t line = 0;
  for (const Event& event : parsed->events) {
    ++line;
    if (core::Status applied = ledger_.apply(event); !applied) return placed(applied.error(), line);
  }
  sound_ += static_cast<std::int64_t>(parsed->sound);
  lines_ += line;
  if (line > 0) last_line_ = std::string(parsed->last_line) + "\n";
  return core::Done{};
}

core::Status Journal::refresh() {
  core::Status read = read_on();
  if (read) return read;
  // Somebody may just have cut off a torn line and appended another. With the lock that cannot be.
  const core::Result<Locked> locked = lock();
  return locked ? core::Status(core::Done{}) : core::Status(locked.error());
}

/// Whether every job in it ended with an earlier start of the machine: a journal that cannot be read may hold promises.
bool Journal::is_of_another_boot() const {
  const auto text = text_from(file_.number(), 0, kLongestJournal);
  return text && !boot_id().empty() && text->find(boot_id()) == std::string::npos;
}

core::Result<Journal::Locked> Journal::lock() {
  Locked locked(*this);  // no failure point directly after it
  if (!wait_for_lock(lock_)) return system_fault(directory_ + "/lock", "lock");
  core::Status read = read_on();
  if (!read) {
    if (core::Status begun = begin_again(); !begun) return begun.error();
    read = read_on();
  }
  if (!read && is_of_another_boot() && ftruncate(file_.number(), 0) == 0) read = begin_again();
  if (!read) return read.error();
  return locked;
}

Journal::Locked::Locked(Journal& journal) : journal_(&journal) {
  sigset_t stops;
  sigemptyset(&stops);
  sigaddset(&stops, SIGTSTP);
  (void)pthread_sigmask(SIG_BLOCK, &stops, &before_);
}

Journal::Locked::~Locked() {
  if (journal_ == nullptr) return;
  flock(journal_->lock_.number(), LOCK_UN);
  (void)pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void Journal::Locked::forget() {
  journal_->lock_ = OpenFile();
  journal_ = nullptr;
}

/// The file is there, and ends with a whole line.
core::Status Journal::prepare_to_append() {
  if (!file_.is_open()) {
    core::Result<OpenFile> made = open_shared(directory_, "journal", O_RDWR | O_APPEND);
    if (!made) return made.error();
    file_ = *std::move(made);
  }
  struct stat facts {};
  if (fstat(file_.number(), &facts) != 0) return system_fault(path(), "read");
  if (facts.st_size > sound_ && ftruncate(file_.number(), sound_) != 0) return system_fault(path(), "repair");
  return core::Done{};
}

/// All of the text at the end, or nothing of it.
core::Status Journal::write(std::string_view text) {
  if (write_all(file_.number(), text)) return core::Done{};
  core::Error error = system_fault(path(), "write");
  (void)!ftruncate(file_.number(), sound_);
  return error;
}

core::Status Journal::Locked::append(const std::vector<Event>& events) {
  Journal& journal = *journal_;
  if (core::Status ready = journal.prepare_to_append(); !ready) return ready;
  std::vector<Event> all;
  if (!journal.ledger_.opened()) all.push_back({0, 0.0, Opened{}});
  all.insert(all.end(), events.begin(), events.end());
  Ledger after = journal.ledger_;
  std::string text;
  std::string last;
  for (const Event& event : all) {
    if (core::Status applied = after.apply(event); !applied) return applied;
    last = line_of(event);
    text += last;
  }
  if (core::Status written = journal.write(text); !written) return written;
  journal.ledger_ = std::move(after);
  journal.sound_ += static_cast<std::int64_t>(text.size());
  journal.lines_ += static_cast<std::int64_t>(all.size());
  journal.last_line_ = std::move(last);
  if (journal.sound_ > kShortJournal) journal.shorten();
  return core::Done{};
}

/// Under the lock. Where it does not succeed, the journal stays as it is: nothing is lost but space.
void Journal::shorten() {
  if (!may_replace(directory_, file_.number())) return;
  std::string text;
  for (const Event& event : ledger_.snapshot()) text += line_of(event);
  if (static_cast<std::int64_t>(text.size()) * kWorthShortening > sound_) return;
  const std::string beside = path() + ".new";
  if (unlink(beside.c_str()) != 0 && errno != ENOENT) return;  // what a crash has left there
  core::Result<OpenFile> made = open_shared(directory_, "journal.new", O_RDWR | O_APPEND);
  if (!made) return;
  if (!write_all(made->number(), text) || rename(beside.c_str(), path().c_str()) != 0) {
    (void)unlink(beside.c_str());
    return;
  }
  (void)read_on();  // it is another file now
}

}  // namespace gpumem::launcher
