#include "workshop.hpp"

namespace gpumem::webhook {

Workshop::Workshop(std::size_t threads, std::size_t most_waiting) : most_waiting_(most_waiting) {
  for (std::size_t thread = 0; thread < threads; ++thread) threads_.emplace_back([this] { serve(); });
}

Workshop::~Workshop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  wanted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::optional<Reply> Workshop::run(Work work, std::chrono::milliseconds patience) {
  const auto task = std::make_shared<Task>(Task{std::move(work)});
  std::unique_lock lock(mutex_);
  if (stopped_ || waiting_.size() >= most_waiting_) return std::nullopt;
  waiting_.push_back(task);
  wanted_.notify_one();
  if (!done_.wait_for(lock, patience, [&] { return task->done; })) {
    task->abandoned = true;
    return std::nullopt;
  }
  return std::move(task->reply);
}

bool Workshop::stop(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  stopped_ = true;
  wanted_.notify_all();
  return done_.wait_for(lock, patience, [&] { return working_ == 0 && waiting_.empty(); });
}

void Workshop::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    wanted_.wait(lock, [&] { return stopped_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::shared_ptr<Task> task = std::move(waiting_.front());
    waiting_.pop_front();
    if (task->abandoned) continue;
    ++working_;
    lock.unlock();
    std::optional<Reply> reply;
    try {
      reply = task->work();
    } catch (...) {  // gpumem throws nothing by design; memory may run out
      reply.reset();
    }
    lock.lock();
    --working_;
    task->reply = std::move(reply);
    task->done = true;
    done_.notify_all();
  }
}

}  // namespace gpumem::webhook
