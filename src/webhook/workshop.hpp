// Input: work that may take any time.
// Output: its reply, for callers that wait only for a limited time. An estimate cannot be interrupted: the caller goes
// on without it, and its thread is free again when it is done.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "admission.hpp"

namespace gpumem::webhook {

class Workshop {
 public:
  using Work = std::function<Reply()>;

  Workshop(std::size_t threads, std::size_t most_waiting);
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;
  ~Workshop();

  /// Nothing if it is not done by then, or if too much waits already, or if it threw. What `work` holds must outlive
  /// the workshop or be its own.
  [[nodiscard]] std::optional<Reply> run(Work work, std::chrono::milliseconds patience);

  /// Takes no more; true once no thread works, false if one still does by then.
  [[nodiscard]] bool stop(std::chrono::milliseconds patience);

 private:
  struct Task {
    Work work;
    std::optional<Reply> reply = {};
    bool done = false;
    bool abandoned = false;
  };

  void serve();

  std::mutex mutex_;
  std::condition_variable wanted_;  ///< work came, or the end
  std::condition_variable done_;
  std::deque<std::shared_ptr<Task>> waiting_;
  std::size_t most_waiting_;
  std::size_t working_ = 0;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace gpumem::webhook
