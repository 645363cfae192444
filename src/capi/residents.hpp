// Input: names of GPUs and estimators.
// Output: these objects. Built-in ones are made once in a process, so that a call does not pay for them. Any number of
// threads may ask at once; an object that was returned never changes or moves.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "gpumem/gpumem.hpp"

namespace gpumem::capi {

/// A value that is made when it is first asked for. Two threads that ask at once may both make it; one's is kept.
/// (std::call_once would keep one waiting for the other, beyond its deadline.)
template <typename T>
class Resident {
 public:
  Resident() = default;
  Resident(const Resident&) = delete;
  Resident& operator=(const Resident&) = delete;
  ~Resident() { delete made_.load(std::memory_order_acquire); }

  /// Null until one was kept.
  [[nodiscard]] const T* get() const { return made_.load(std::memory_order_acquire); }

  const T* keep(std::unique_ptr<const T> made) {
    const T* known = nullptr;
    if (made_.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) return made.release();
    return known;
  }

 private:
  std::atomic<const T*> made_ = nullptr;
};

/// A resident, or a value of the caller's own.
template <typename T>
class Lent {
 public:
  explicit Lent(const T* resident) : view_(resident) {}
  explicit Lent(std::unique_ptr<const T> own) : own_(std::move(own)), view_(own_.get()) {}
  const T& operator*() const { return *view_; }
  const T* operator->() const { return view_; }

 private:
  std::unique_ptr<const T> own_;
  const T* view_;
};

/// The profile of this name, alias or path. Errors: those of find_profile.
[[nodiscard]] Result<Lent<GpuProfile>> gpu_of(const std::string& name);

/// The estimator of this name. With allocator options or a model that is named it is the caller's own, made for the
/// call. Errors: those of make_estimator and of parse_allocator_options.
[[nodiscard]] Result<Lent<Estimator>> estimator_of(const std::string& name, const std::string& alloc_conf,
                                                   const std::string& model);

}  // namespace gpumem::capi
