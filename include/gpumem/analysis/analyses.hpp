// Input: jobs, from any number of threads.
// Output: an Analysis for each job. The caller owns it until it puts it back. The pool then keeps it, and a later job
// with the same summary reuses its edges, its forward pass and the memory of its plan.
// Units: bytes.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "gpumem/analysis/analysis.hpp"

namespace gpumem::analysis {

/// A few places. A thread takes out what is in one of them, works on it, and puts it back. Threads neither wait for
/// each other nor write to the same memory.
/// Thread safety: any number of threads may take and put back.
class Analyses {
 public:
  /// Puts an Analysis back when its user is done with it.
  class PutBack {
   public:
    explicit PutBack(Analyses* analyses = nullptr) : analyses_(analyses) {}
    void operator()(Analysis* analysis) const;

   private:
    Analyses* analyses_;
  };
  using Lent = std::unique_ptr<Analysis, PutBack>;

  Analyses() = default;
  Analyses(const Analyses&) = delete;
  Analyses& operator=(const Analyses&) = delete;
  ~Analyses();

  /// An Analysis of this job: one that has recorded a job alike, if such a one is not in use. It must be put back
  /// before the pool ends. All jobs of a pool have one catalogue of ops.
  [[nodiscard]] Lent take(const model::TrainingJob& job, const ops::Catalogue& ops = ops::catalogue());

  /// The most bytes of an Analysis that is kept, 64 MiB for all places together. A larger one is destroyed when it is
  /// put back.
  static constexpr std::size_t kLargest = std::size_t{8} << 20;

 private:
  static constexpr std::size_t kPlaces = 8;
  static constexpr std::size_t kCacheLine = 64;
  struct alignas(kCacheLine) Place {
    std::atomic<Analysis*> analysis = nullptr;
  };

  [[nodiscard]] std::unique_ptr<Analysis> find(const model::TrainingJob& job);
  void put_back(std::unique_ptr<Analysis> analysis);
  [[nodiscard]] bool put_into_an_empty_place(std::unique_ptr<Analysis>& analysis);

  std::array<Place, kPlaces> places_;
  std::atomic<std::size_t> next_to_go_ = 0;
};

}  // namespace gpumem::analysis
