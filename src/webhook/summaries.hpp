// Input: a path below one folder, or a summary's text.
// Output: the model, read once as long as the file does not change. Users name the paths and may write to the folder:
// only regular files below it are read, of bounded size, without waiting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "gpumem/all.hpp"

namespace gpumem::webhook {

/// The bytes of a file below a folder. Links are followed as long as they stay below it, for the files of a mounted
/// ConfigMap are links.
class Folder {
 public:
  /// What tells whether a file is still the same.
  struct Stamp {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::int64_t size = 0;
    std::int64_t changed_ns = 0;  ///< mtime
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  class File;

  Folder(std::string path, std::size_t most_bytes) : path_(std::move(path)), most_bytes_(most_bytes) {}

  /// Opens it without reading. Errors: unreadable_file: no folder is configured, the path is absolute or leads out of
  /// it, no such file, no regular file, or one that is too large.
  [[nodiscard]] Result<File> open(const std::string& relative) const;

 private:
  std::string path_;  ///< empty: none
  std::size_t most_bytes_;
};

class Folder::File {
 public:
  File(int descriptor, const Stamp& stamp, std::size_t most_bytes)
      : descriptor_(descriptor), stamp_(stamp), most_bytes_(most_bytes) {}
  File(File&& other) noexcept;
  File& operator=(File&&) = delete;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File();

  [[nodiscard]] const Stamp& stamp() const { return stamp_; }
  /// All of it. Errors: unreadable_file, also if it grew beyond the limit.
  [[nodiscard]] Result<std::string> read() const;

 private:
  int descriptor_;
  Stamp stamp_;
  std::size_t most_bytes_;
};

/// Serves any number of threads. Keeps the models used last, as many as their texts are below `most_bytes` together.
class Summaries {
 public:
  using Model = Result<std::shared_ptr<const ModelGraph>>;

  explicit Summaries(Folder folder, std::size_t most_bytes = std::size_t{64} << 20)
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  [[nodiscard]] Model from_file(const std::string& relative);
  [[nodiscard]] Model from_text(const std::string& text);

  struct Counters {
    std::int64_t hits = 0;
    std::int64_t misses = 0;
  };
  [[nodiscard]] Counters counters() const;

 private:
  struct Entry {
    std::string key;
    std::optional<Folder::Stamp> stamp;
    std::size_t bytes = 0;
    Model model;
  };

  [[nodiscard]] std::optional<Model> known(const std::string& key, const std::optional<Folder::Stamp>& stamp);
  void keep(Entry entry);
  void forget(std::list<Entry>::iterator entry);

  Folder folder_;
  std::size_t most_bytes_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  ///< the one used last is first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_key_;
  std::size_t bytes_ = 0;
  Counters counters_;
};

}  // namespace gpumem::webhook
