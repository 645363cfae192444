// The analyses that threads take and put back.
#pragma once

#include "gpumem/analysis/analysis.hpp"

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

namespace gpumem::analysis {

namespace analyses_detail {

/// Where this thread looks first, so that threads meet seldom and a thread finds what its own cache holds.
GPUMEM_INLINE std::size_t first_place() { return std::hash<std::thread::id>()(std::this_thread::get_id()); }

}  // namespace analyses_detail

GPUMEM_INLINE Analyses::~Analyses() {
  for (Place& place : places_) delete place.analysis.load(std::memory_order_acquire);
}

GPUMEM_INLINE void Analyses::PutBack::operator()(Analysis* analysis) const {
  std::unique_ptr<Analysis> own(analysis);
  if (analyses_ != nullptr) analyses_->put_back(std::move(own));
}

/// One that was recorded alike, if it is not in use; the places are left as they were.
GPUMEM_INLINE std::unique_ptr<Analysis> Analyses::find(const model::TrainingJob& job) {
  const std::size_t first = analyses_detail::first_place();
  for (std::size_t tried = 0; tried < kPlaces; ++tried) {
    Place& place = places_[(first + tried) % kPlaces];
    if (place.analysis.load(std::memory_order_relaxed) == nullptr) continue;
    std::unique_ptr<Analysis> found(place.analysis.exchange(nullptr, std::memory_order_acq_rel));
    if (found == nullptr) continue;
    if (found->forward_alike(job)) return found;
    put_back(std::move(found));
  }
  return nullptr;
}

GPUMEM_INLINE Analyses::Lent Analyses::take(const model::TrainingJob& job, const ops::Catalogue& ops) {
  std::unique_ptr<Analysis> analysis = find(job);
  if (analysis == nullptr) analysis = std::make_unique<Analysis>(job, ops);
  else analysis->set_job(job);
  analysis->forget_gpu();
  return {analysis.release(), PutBack(this)};
}

GPUMEM_INLINE bool Analyses::put_into_an_empty_place(std::unique_ptr<Analysis>& analysis) {
  const std::size_t first = analyses_detail::first_place();
  for (std::size_t tried = 0; tried < kPlaces; ++tried) {
    Analysis* empty = nullptr;
    Place& place = places_[(first + tried) % kPlaces];
    if (!place.analysis.compare_exchange_strong(empty, analysis.get(), std::memory_order_acq_rel)) continue;
    (void)analysis.release();
    return true;
  }
  return false;
}

GPUMEM_INLINE void Analyses::put_back(std::unique_ptr<Analysis> analysis) {
  if (analysis->bytes() > kLargest) return;
  if (put_into_an_empty_place(analysis)) return;
  // All are taken: they go in turn.
  Place& place = places_[next_to_go_.fetch_add(1, std::memory_order_relaxed) % kPlaces];
  analysis.reset(place.analysis.exchange(analysis.release(), std::memory_order_acq_rel));
}

}  // namespace gpumem::analysis
