// Input: the plans of several models that one process holds, and the order in which their parts run.
// Output: PhasedPlan, one plan of all of them, with a name for each phase and the model that each slot belongs to: what
// goes through one allocator.
// Units: bytes; indices of events.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/plan/step_plan.hpp"

namespace gpumem::plan {

/// Where a phase begins: the same name may come again.
struct NamedPhase {
  std::size_t first_event = 0;
  std::string name;
};

struct PhasedPlan {
  StepPlan plan;  ///< it has no marks of its own: the phases are here
  std::vector<NamedPhase> phases;
  std::vector<std::uint8_t> owner_of_slot;  ///< the number of the model
};

/// Writes a PhasedPlan. Slots of a model's plan are its own; an event that lets go of memory that is not there does
/// nothing.
class PhaseWriter {
 public:
  using Model = std::uint8_t;
  using Categories = std::array<bool, kCategories>;

  PhaseWriter() = default;
  /// Writes where another plan was, whose content means nothing: to make room anew costs more than to write.
  explicit PhaseWriter(PhasedPlan reused);
  /// Makes room for so many events, which grow in place then.
  void expect(std::size_t events) { made_.plan.events.reserve(events); }

  /// A model and its plan, none of whose events is played yet. At most kMostModels.
  [[nodiscard]] Model add(StepPlan plan);
  static constexpr std::size_t kMostModels = 16;

  /// A phase begins with the next event.
  void begin(std::string_view name);
  /// The events from `first` to before `end` of the model's plan. Memory of categories that are not in `kept` is
  /// skipped: somebody else holds it, or the program does not make it. Of events that are played again, what they left
  /// goes where they make it anew.
  void play(Model model, std::size_t first, std::size_t end, const Categories& kept);
  void play(Model model, std::size_t first, std::size_t end);
  /// From here on, what belongs to a batch (inputs, activations, their gradients, temporaries) takes this share of its
  /// bytes: batches of shorter samples. 1 at first.
  void set_share(double share) { share_ = share; }
  /// Moves what the model holds of these categories to the host, and back again.
  void set_aside(Model model, const Categories& which);
  void bring_back(Model model, const Categories& which);
  /// Memory that no model's plan has: a cache of keys and values, logits. It belongs to `model`.
  [[nodiscard]] std::uint32_t allocate(Model model, std::int64_t bytes, Category category);
  void release(std::uint32_t slot);
  void empty_cache();

  [[nodiscard]] const StepPlan& plan_of(Model model) const { return models_[model].plan; }
  [[nodiscard]] PhasedPlan take() &&;

 private:
  struct Track {
    StepPlan plan;
    std::uint32_t first_slot = 0;
    std::uint32_t first_call = 0;
  };
  enum class State : std::uint8_t { empty, held, aside };
  struct Slot {
    std::int64_t bytes = 0;
    State state = State::empty;
    Category category = Category::activation;
    std::uint8_t stream = 0;
  };

  void take_slot(std::uint32_t slot, const Event& event);
  void give_slot(std::uint32_t slot);
  void raise(std::int64_t bytes);

  PhasedPlan made_;
  std::vector<Track> models_;
  std::vector<Slot> slots_;
  std::int64_t live_ = 0;
  double share_ = 1.0;
};

/// Keys and values of the tokens so far, one tensor of each a layer. Bytes are those of one token of all sequences.
struct GrowingCache {
  std::int64_t layers = 0;  ///< 0: the model keeps none
  std::int64_t keys = 0;
  std::int64_t values = 0;
  std::int64_t read_keys = 0;  ///< of the copy in another type that attention makes of a layer's keys
  std::int64_t sequences = 0;
  std::int64_t prompt = 0;      ///< tokens that are read at once
  std::int64_t completion = 0;  ///< tokens that are generated
};
/// Generates: for each token a longer tensor takes the place of each that is there, and `drawing` is taken for a moment
/// each. Freed blocks are too small for the longer ones, so that the allocator's cache grows with every 2 MiB that a
/// tensor gains; fewer tokens are played where they bring less than a quarter of that. Source: transformers 4.36 to
/// 5.17, cache_utils.py: DynamicCache.update (torch.cat).
void grow_cache(PhaseWriter& writer, PhaseWriter::Model model, const GrowingCache& cache,
                std::span<const std::int64_t> drawing);

/// Megatron's HybridDeviceOptimizer keeps this share of masters and states, with their parameters' steps, on the host.
/// Source: Megatron-LM core r0.12, core/optimizer/cpu_offloading/hybrid_optimizer.py.
void keep_on_host(StepPlan& plan, double share);

/// All categories, or only these.
[[nodiscard]] constexpr PhaseWriter::Categories all_categories() {
  PhaseWriter::Categories all{};
  for (bool& one : all) one = true;
  return all;
}
[[nodiscard]] constexpr PhaseWriter::Categories only(std::initializer_list<Category> categories) {
  PhaseWriter::Categories some{};
  for (const Category category : categories) some[static_cast<std::size_t>(category)] = true;
  return some;
}

}  // namespace gpumem::plan
