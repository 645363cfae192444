// Input: jobs that wait.
// Output: the next one. There are two classes, each first in, first out. Jobs that ran out of memory go before all
// others, as in CARMA (github.com/itu-rad/CARMA, src/server.py), whose main queue waits while its recovery queue holds
// a job. Nobody overtakes within a class: a job that cannot be placed holds up those after it, so a large job does not
// starve.
#pragma once

#include <cstddef>
#include <deque>
#include <utility>

namespace gpumem::place {

/// `Job` is whatever its user tells jobs apart by.
/// Thread safety: one thread at a time.
template <typename Job>
class WaitingQueue {
 public:
  /// A job that has just arrived.
  void push(Job job) { arrived_.push_back(std::move(job)); }
  /// A job that ran out of memory and runs again.
  void push_recovery(Job job) { recovering_.push_back(std::move(job)); }

  [[nodiscard]] bool empty() const { return recovering_.empty() && arrived_.empty(); }
  [[nodiscard]] std::size_t size() const { return recovering_.size() + arrived_.size(); }
  /// Those of them that ran out of memory.
  [[nodiscard]] std::size_t recovering() const { return recovering_.size(); }

  /// The job whose turn it is. The queue must not be empty.
  [[nodiscard]] Job& front() { return recovering_.empty() ? arrived_.front() : recovering_.front(); }
  [[nodiscard]] const Job& front() const { return recovering_.empty() ? arrived_.front() : recovering_.front(); }
  /// Takes it out. The queue must not be empty.
  Job pop() {
    std::deque<Job>& turn = recovering_.empty() ? arrived_ : recovering_;
    Job job = std::move(turn.front());
    turn.pop_front();
    return job;
  }

 private:
  std::deque<Job> recovering_;
  std::deque<Job> arrived_;
};

}  // namespace gpumem::place
