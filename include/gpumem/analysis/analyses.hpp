// Enters: jobs, from any number of threads. Leaves: an Analysis of each, of the caller's own while it works. Keeps what
// the next job may share, be it of the same summary: the edges, the recording, the memory of a plan. Units: bytes.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "gpumem/analysis/analysis.hpp"

namespace gpumem::analysis {

/// A few places, each of which a thread empties while it works on what was in it: threads neither wait for each other
/// nor write to the same memory.
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

  /// An Analysis of this job, which must be put back before the pool ends: one that has recorded a job alike, if it is
  /// not in use. The pool is for jobs of one catalogue of ops.
  [[nodiscard]] Lent take(const model::TrainingJob& job, const ops::Catalogue& ops = ops::catalogue());

  /// Of one Analysis that is kept: 64 MiB together. A larger one goes when it is put back.
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

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/analysis/impl/analyses_inl.hpp"
#endif
