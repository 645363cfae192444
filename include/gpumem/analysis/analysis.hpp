// Input: a training job.
// Output: the result of every stage: the wired graph, the adapted one, the forward pass, the step plan, the kernels of
// a step, the context on a GPU and the allocator's run there. Each is made once, when it is first asked for. An
// Analysis that is moved to another job keeps every stage that is the same for both.
// Units: bytes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "gpumem/adapt/adapt.hpp"
#include "gpumem/analysis/allocator_run.hpp"
#include "gpumem/connect/connect.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/device/allocator_options.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/device/workspace.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/ops/catalogue.hpp"
#include "gpumem/parallel/rank_graph.hpp"
#include "gpumem/parallel/sharing.hpp"
#include "gpumem/plan/forward_pass.hpp"
#include "gpumem/plan/step_plan.hpp"

namespace gpumem::analysis {

// Input: the memory that an Analysis worked in.
// Output: the same memory for the next Analysis of this thread. To allocate it again for each job would cost more than
// the computation. Its content means nothing.
// Units: bytes.

struct WorkingMemory {
  plan::StepPlan plan;  ///< the next plan takes its memory
  AllocatorMemory allocator;

  [[nodiscard]] std::size_t bytes() const;
};

/// A thread keeps no more than this.
inline constexpr std::size_t kMostWorkingMemory = std::size_t{4} << 20;

/// What this thread has kept; empty if nothing.
[[nodiscard]] WorkingMemory take_working_memory();
/// Keeps it for this thread, unless it is too large, or the thread has kept more.
void leave_working_memory(WorkingMemory memory);

/// The fields of a job that connecting looks at. A stage is given these and nothing else, so that what it makes can
/// depend on nothing else.
template <typename Job>
[[nodiscard]] auto wiring_key(Job& job) {
  return std::tie(job.graph, job.input_shape, job.sequence_length, job.strict, job.padding, job.attention,
                  job.activation_checkpointing, job.transformers, job.loop, job.image, job.images, job.frames,
                  job.seconds, job.parts, job.layout.tensor_parallel, job.layout.expert_parallel);
}

/// The fields that the forward pass depends on, in addition to adapt::inputs_need_gradients() and a layout that splits
/// the model.
template <typename Job>
[[nodiscard]] auto forward_pass_key(Job& job) {
  return std::tuple_cat(wiring_key(job), adapt::adaptation_key(job),
                        std::tie(job.loss, job.objective, job.float_outputs, job.attention, job.cudnn_attention));
}

/// Which steps are planned.
enum class Steps : std::uint8_t {
  whole,
  without_optimizer,  ///< with plain SGD in its place, which keeps no state and takes no memory
};

/// What a plan is made from: a wired graph and its forward pass, or a recording.
struct PlanSource {
  const model::ModelGraph* graph = nullptr;   ///< whose layers a plan's events name
  std::string_view edges = {};                ///< how these were found, see WiredGraph::edges(); "recorded"
  bool convolves = false;                     ///< calls cuDNN's convolutions
  bool normalises = false;                    ///< calls cuDNN's batch normalisation
  connect::Guesses guesses = {};              ///< of these edges; the graph's warnings say where
  std::int64_t unknown_layers = 0;            ///< layers for which at most the parameters are counted
  std::span<const std::string> remarks = {};  ///< what adapting the graph took as given
  std::int64_t routed_elements = 0;           ///< a sample, of what the rank's experts make of the tokens sent to them
  /// Of a loss in chunks that are chosen by the number of tokens: how many bytes more those of a smaller batch may
  /// take.
  std::int64_t shorter_batches = 0;
  std::string loss = {};  ///< in words: how such chunks are chosen, where they depend on the GPU
};

/// What NCCL takes of each GPU of a job.
[[nodiscard]] device::Communicators communicators(const model::TrainingJob& job, const device::GpuProfile& gpu);

/// A job on one GPU.
struct JobRun {
  AllocatorRun run;                  ///< of a job that does not fit: what it would take on a GPU that is large enough
  device::AllocatorOptions options;  ///< with the capacity that `run` had
  device::Context context;           ///< CUDA's
  device::Communicators communicators = {};  ///< of a job on several GPUs
  /// What the process may take of the GPU, also outside of the allocator: all of it, or a fraction that is set.
  core::Bytes limit = {};
  bool fits = false;

  /// All that is in use outside of the allocator.
  [[nodiscard]] device::Context beside() const;
};

/// The job must be one that model::validate() accepts. What a stage gives is valid until the job is changed. A stage
/// that failed gives the same error when it is asked again, unless a deadline had passed: then the next call starts
/// again.
/// Thread safety: one thread at a time.
class Analysis {
 public:
  /// The ops must outlive it.
  explicit Analysis(model::TrainingJob job, const ops::Catalogue& ops = ops::catalogue());
  ~Analysis();
  Analysis(const Analysis&) = delete;
  Analysis& operator=(const Analysis&) = delete;

  [[nodiscard]] const model::TrainingJob& job() const { return job_; }
  void set_job(model::TrainingJob job);
  void set_batch_size(std::int64_t batch_size);
  /// An Analysis that has made nothing yet takes what another one has made of the model before its forward pass, where
  /// that is the same for both jobs. Both must have one catalogue of ops.
  void take_stages_of(const Analysis& other);
  /// Keeps what is known of the parts of a model while they have no more layers than this together. A search through
  /// many layouts comes back to the same parts.
  void keep_parts(std::size_t layers) { kept_layers_ = layers; }
  /// Gives the memory of its plans to another Analysis, so that the next plan need not allocate.
  void hand_memory_to(Analysis& next);
  /// Whether the forward pass stays if the job becomes this one.
  [[nodiscard]] bool forward_alike(const model::TrainingJob& job) const {
    return forward_pass_key(job_) == forward_pass_key(job) && same_adaptation(job) && same_split(job);
  }

  [[nodiscard]] const ops::Catalogue& ops() const { return *ops_; }

  /// parallel::check_modelled() for the replay, asked once a job: every question about a plan begins with it.
  [[nodiscard]] const core::Status& modelled();

  /// The graph with an edge for everything that a layer reads, and every shape. Errors: those of connecting;
  /// invalid_argument for a recording, which has calls and no layers.
  [[nodiscard]] core::Result<const connect::WiredGraph*> wired();
  /// Tokens that the images of a sample have in its sequence; 0: it has none.
  [[nodiscard]] core::Result<std::int64_t> picture_tokens() const { return connect::picture_tokens(job_, *ops_); }

  /// The graph that is trained: the wired one, with adapters, frozen layers and quantised weights where the job has
  /// them. Errors: those of connecting and of adapt::adapt().
  [[nodiscard]] core::Result<const connect::WiredGraph*> adapted();

  /// One rank's part of it, where the layout splits the model; else all of it. Errors: those of adapted() and of
  /// parallel::rank_graph().
  [[nodiscard]] core::Result<const connect::WiredGraph*> ranked();

  /// What forward keeps for backward. Errors: those of ranked() and of plan::make_forward_pass().
  [[nodiscard]] core::Result<const plan::ForwardPass*> forward_pass(ops::Backend backend = ops::Backend::cuda);

  /// What steps() is made from. Errors: those of connecting and of the forward pass.
  [[nodiscard]] core::Result<PlanSource> source();

  /// Allocations and frees of the run. Errors: those of the forward pass and of planning.
  [[nodiscard]] core::Result<const plan::StepPlan*> steps(ops::Backend backend = ops::Backend::cuda,
                                                          Steps which = Steps::whole);

  /// Whether the tensors of steps() hold more than this at some moment: the plan is made no further than there. Errors:
  /// those of steps().
  [[nodiscard]] core::Result<bool> holds_more_than(std::int64_t bytes);

  /// The kernels of a step. Errors: those of the forward pass and of plan::step_work().
  [[nodiscard]] core::Result<const plan::StepWork*> work();

  /// What CUDA takes on this GPU before the first tensor; communicators are apart. Errors: those of the forward pass;
  /// invalid_argument for a software stack that the GPU's profile does not name.
  [[nodiscard]] core::Result<device::Context> context(const device::GpuProfile& gpu);

  /// Chooses what depends on the GPU: whose kernel masked attention is, and the chunks of a loss that asks what is
  /// free. Plans that were made otherwise are gone. run() does so too. Errors: those of planning.
  [[nodiscard]] core::Status choose_for(const device::GpuProfile& gpu);
  /// What was chosen is open again.
  void forget_gpu() {
    set_loss_target(0);
    free_at_loss_.reset();
  }

  /// The run through the allocator, in the GPU's memory less the context (a capacity among the options is ignored: the
  /// GPU has one). Errors: those of planning and of modelled(); overflow for a job beyond any machine.
  [[nodiscard]] core::Result<JobRun> run(const device::GpuProfile& gpu, const device::AllocatorOptions& options = {});

  /// Roughly what it holds.
  [[nodiscard]] std::size_t bytes() const;

 private:
  template <typename Value>
  using Stage = std::optional<core::Result<Value>>;

  /// All that a run depends on in addition to the plan.
  struct RunKey {
    core::Bytes capacity;
    core::Bytes beside;  ///< as expected
    std::int64_t cublas_workspace = 0;
    device::ConvolutionWorkspaceRule convolution_workspace;
    device::AllocatorOptions options;

    friend bool operator==(const RunKey&, const RunKey&) = default;
  };
  struct KnownRun {
    RunKey key;
    core::Result<JobRun> run;
  };
  static constexpr std::size_t kMostRuns = 32;
  static constexpr std::size_t kBackends = 2;

  template <typename Value, typename Make>
  static core::Result<const Value*> made(Stage<Value>& stage, Make make);
  /// `made` knows what is in use outside of the allocator.
  [[nodiscard]] core::Result<JobRun> run_anew(const device::GpuProfile& gpu, device::AllocatorOptions options,
                                              JobRun made);
  void forget_plans();
  void take_kernels_of(const device::GpuProfile& gpu);
  void set_loss_target(std::int64_t mib);
  [[nodiscard]] bool same_adaptation(const model::TrainingJob& job) const {
    return adapt::adaptation_key(job_) == adapt::adaptation_key(job) &&
           adapt::inputs_need_gradients(job_) == adapt::inputs_need_gradients(job);
  }

  [[nodiscard]] bool same_split(const model::TrainingJob& job) const { return same_split(job_, job); }
  [[nodiscard]] static bool same_split(const model::TrainingJob& left, const model::TrainingJob& right) {
    const bool whole = !parallel::splits_model(left.layout) && !parallel::splits_model(right.layout);
    return whole || parallel::same_rank_graph(left, right);
  }

  /// What was made of another part of the same model. A pipeline's ranks are compared again and again while a batch
  /// size is looked for, so the parts of the last few are kept.
  struct OtherPart {
    model::TrainingJob job;
    Stage<connect::WiredGraph> ranked;
    std::array<Stage<plan::ForwardPass>, kBackends> forward_passes;
  };
  static constexpr std::size_t kMostOtherParts = 3;
  void change_part(const model::TrainingJob& job);
  [[nodiscard]] bool keeps_too_many_parts() const;

  model::TrainingJob job_;
  const ops::Catalogue* ops_;
  Stage<connect::WiredGraph> wired_;
  Stage<connect::WiredGraph> adapted_;  ///< of a job that adapts its graph
  Stage<connect::WiredGraph> ranked_;   ///< of a job whose layout splits the model
  std::array<Stage<plan::ForwardPass>, kBackends> forward_passes_;
  std::vector<OtherPart> other_parts_;  ///< the one that was left last comes last
  std::size_t kept_layers_ = 0;         ///< of these, where they are more than a few
  std::array<std::array<Stage<plan::StepPlan>, 2>, kBackends> plans_;
  Stage<plan::StepWork> work_;
  std::vector<KnownRun> runs_;
  std::optional<core::Status> modelled_;
  bool cudnn_attention_ = false;             ///< of the GPU that a run was last asked for
  std::int64_t loss_target_ = 0;             ///< MiB of a chunk, of a loss that asks for free memory; 0: not chosen
  std::optional<core::Bytes> free_at_loss_;  ///< what it was chosen by
  std::optional<core::Bytes> room_at_loss_;  ///< of a GPU and its contexts, where it was chosen
  WorkingMemory memory_;                     ///< of plans that are no longer needed, and of the allocator's last run
};

// Input: jobs, from any number of threads.
// Output: an Analysis for each job. The caller owns it until it puts it back. The pool then keeps it, and a later job
// with the same summary reuses its edges, its forward pass and the memory of its plan.
// Units: bytes.

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
