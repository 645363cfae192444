#pragma once

#include "gpumem/plan/step_plan.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "gpumem/core/deadline.hpp"
#include "gpumem/parallel/pipeline_parallel.hpp"
#include "gpumem/parallel/rank_graph.hpp"
#include "gpumem/parallel/sharing.hpp"
#include "gpumem/plan/checkpoints.hpp"
#include "gpumem/plan/forward_pass.hpp"
#include "gpumem/plan/gradient_flow.hpp"
#include "gpumem/plan/optimizer_step.hpp"
#include "gpumem/plan/run_state.hpp"
#include "gpumem/plan/sharded_model.hpp"

namespace gpumem::plan {

namespace step_plan_detail {

/// What the optimizer updates in place of the parameters.
GPUMEM_INLINE Masters masters_of(const model::TrainingJob& job, const parallel::Sharing& sharing) {
  return {sharing.masters, sharing.gradients_copied, sharing.on_host || job.offload == model::Offload::optimizer};
}

/// The script that trains: its loop, and what its names hold from one iteration to the next.
class TrainingScript {
 public:
  TrainingScript(const model::TrainingJob& job, const ForwardPass& pass, const parallel::Sharing& sharing,
                 std::span<const Range> blocks, StepPlan reused)
      : job_(job),
        loop_(model::row_of(job.loop)),
        pass_(pass),
        sharing_(sharing),
        held_(held_by_loop(job, pass)),
        expert_ranks_(
            parallel::expert_sharing_ranks(job.layout, parallel::expert_tensor_ranks(pass.wired.graph(), job.layout))),
        expert_state_ranks_(parallel::ranks_of_instance(job, expert_ranks_)),
        state_(pass, std::move(reused)),
        names_(pass, held_),
        calls_(state_, offloads_all(pass, job), saved_hooks(pass, job)),
        blocks_(state_, calls_, names_, blocks, job),
        shards_(state_, sharing),
        gradients_(state_, calls_, blocks_, shards_, job.optimizer_in_backward ? &optimizer_ : nullptr),
        optimizer_(state_.log(), state_.pace(), job, state_.backend(), masters_of(job, sharing)),
        semi_sync_(state_.log(), state_.pace(), sharing.on_host ? model::SemiSync::none : job.layout.semi_sync.kind),
        scaler_(state_, job),
        loader_(state_, job),
        pipe_(state_, job) {}

  void construct(const TensorBytes& bytes) {
    state_.set_batch(bytes);
    state_.log().begin(Phase::construction, 0, 0);
    if (loop_.workspace > 0) state_.log().allocate(loop_.workspace, Category::buffer, kNoLayer);
    constexpr std::int64_t kMib = std::int64_t{1} << 20;
    if (job_.resident > 0) state_.log().allocate(job_.resident * kMib, Category::buffer, kNoLayer);
    shards_.begin();
    add_parameters_and_buffers();
    shards_.construct();
    add_stand_ins();
    if (pipe_.used()) pipe_.construct(ends_of(0), pass_.stages.front());
    std::vector<TrainedParameter> trained = trained_parameters();
    semi_sync_.meet_over(trained, pass_.wired.graph(), job_.layout.semi_sync.count);
    optimizer_.update_all(std::move(trained));
    if (!state_.pace().was_late()) optimizer_.create();
  }

  void end_beyond(std::int64_t most) { state_.log().most(most); }
  void summary_pass(const TensorBytes& bytes) {
    begin(Phase::summary, 0, bytes);
    for (const ops::TensorId input : model_inputs()) state_.add_input(input);
    forward(true, false);
    for (const ops::TensorId held : held_) {
      if (held != pass_.loss) state_.let_go(held);
    }
    drop_saved();
    blocks_.drop_all();
    state_.let_go(model_inputs());
  }

  void validation_pass(const TensorBytes& bytes) {
    begin(Phase::validation, step_, bytes);
    loader_.release();
    loader_.load();
    forward(false, true);
    end_outputs();
    end_last_outputs();
    hold_outputs();
  }

  void train_step(const TensorBytes& bytes) {
    ++step_;
    calls_.begin_step();
    if (job_.layout.pipeline_parallel > 1) return pipeline_step(bytes);
    // From the second pass on all are alike: each adds to the gradients that are there.
    constexpr std::int64_t kDistinctPasses = 3;
    const std::int64_t passes = std::min(job_.gradient_accumulation, kDistinctPasses);
    for (std::int64_t pass = 0; pass < passes && !state_.pace().was_late(); ++pass) {
      forward_and_backward(bytes, pass == 0);
    }
    calls_.end_step();
    if (!state_.pace().was_late()) update(bytes);
  }

  StepPlan take() {
    StepPlan plan = state_.log().take();
    plan.cublas_workspace = pass_.wired.graph().run_settings().cublas_workspace;
    plan.convolutions.assign(pass_.tape.convolutions().begin(), pass_.tape.convolutions().end());
    return plan;
  }

 private:
  void begin(Phase phase, std::int32_t step, const TensorBytes& bytes) {
    state_.set_batch(bytes);
    state_.log().begin(phase, step, bytes.batch_size());
  }

  /// In the order of the layers.
  void add_parameters_and_buffers() {
    auto buffers = pass_.tape.buffers();
    const auto add_buffers_before = [&](ops::TensorId end) {
      for (; !buffers.empty() && buffers.front() < end; buffers = buffers.subspan(1)) {
        state_.add(buffers.front(), Category::buffer);
      }
    };
    for (const ops::Tape::Parameter& parameter : pass_.tape.parameters()) {
      if (state_.pace().late()) return;
      add_buffers_before(parameter.tensor);
      if (!parameter.tied && !shards_.is_away(parameter.tensor)) state_.add(parameter.tensor, Category::parameter);
    }
    state_.add(buffers, Category::buffer);
  }

  /// Where products add weights' gradients to main gradients, autograd gets a tensor in their place, one a shape, which
  /// is kept; products beside collectives have a workspace for each of three streams. Source: TransformerEngine 2.1,
  /// pytorch/module/base.py: get_dummy_wgrad, and of August 2026, pytorch/cpp_extensions/gemm.py: get_cublas_workspace.
  void add_stand_ins() {
    if (sharing_.reduction != parallel::Reduction::main_buffer) return;
    const model::ModelGraph& graph = pass_.wired.graph();
    constexpr std::int64_t kWorkspaces = std::int64_t{96} << 20;  // from Hopper on
    const bool overlaps = graph.run_settings().overlaps_products && job_.layout.tensor_parallel > 1;
    if (overlaps) state_.log().allocate(kWorkspaces, Category::buffer, kNoLayer);
    std::vector<std::pair<std::int64_t, std::int64_t>> shapes;
    for (std::uint32_t at = 0; at < graph.layers().size(); ++at) {
      const model::Attributes attributes = graph.attributes(graph.layers()[at]);
      if (!attributes.flag("fused_gradient", false)) continue;
      const std::pair shape(attributes.integer("in_features").value_or(0),
                            attributes.integer("out_features").value_or(0));
      if (std::find(shapes.begin(), shapes.end(), shape) != shapes.end()) continue;
      shapes.push_back(shape);
      const core::Checked bytes = core::Checked(shape.first) * core::Checked(shape.second) *
                                  core::Checked(core::element_size(pass_.tape.dtype()));
      state_.log().allocate(bytes.value().value_or(0), Category::gradient, at);
    }
  }

  /// Each tied one once.
  std::vector<TrainedParameter> trained_parameters() {
    std::vector<TrainedParameter> all;
    all.reserve(state_.trained().size());
    const std::vector<bool> held = held_by_rank();
    std::size_t number = 0;
    for (const ops::Tape::Parameter& parameter : pass_.tape.parameters()) {
      if (parameter.frozen || parameter.tied) continue;
      if (!held.empty() && !held[number++]) continue;
      const ops::TensorSize& size = pass_.tape.tensor(parameter.tensor).size;
      const std::int64_t whole = size.elements.value().value_or(0);
      const std::int64_t ranks = held.empty() ? state_ranks_of(parameter.tensor) : 1;
      const std::int64_t elements = whole / ranks + (whole % ranks == 0 ? 0 : 1);
      const std::uint32_t layer = state_.layer(parameter.tensor);
      all.push_back({elements * core::element_size(sharing_.state_type(size.dtype)), elements,
                     parameter.factored.value().value_or(0) / ranks, layer,
                     elements * core::element_size(sharing_.shard_type(size.dtype)),
                     projection_rank(pass_.wired.graph(), layer, elements, job_)});
    }
    return all;
  }

  /// The trained parameters for which the rank has all masters and states; none: it has a part of each.
  std::vector<bool> held_by_rank() const {
    if (!parallel::shares_layer_by_layer(job_)) return {};
    std::vector<parallel::SharedParameter> parameters;
    for (const ops::Tape::Parameter& parameter : pass_.tape.parameters()) {
      if (parameter.frozen || parameter.tied) continue;
      parameters.push_back({pass_.tape.tensor(parameter.tensor).size.elements.value().value_or(0),
                            pass_.wired.graph().layers()[state_.layer(parameter.tensor)].expert > 0});
    }
    return parallel::held_layer_by_layer(parameters, job_.layout, expert_ranks_);
  }

  /// Ranks that share a parameter's masters and states: of experts, which other ranks do not have, they are fewer.
  [[nodiscard]] std::int64_t state_ranks_of(ops::TensorId parameter) const {
    const model::ModelGraph& graph = pass_.wired.graph();
    if (graph.layers()[state_.layer(parameter)].expert == 0) return sharing_.state_ranks;
    if (sharing_.expert_ranks > 0) return sharing_.expert_ranks;
    const bool cut = job_.layout.sharding.kind == model::Shardings::distributed_optimizer;
    return cut ? expert_state_ranks_ : sharing_.state_ranks;
  }

  void forward_and_backward(const TensorBytes& bytes, bool first) {
    begin(Phase::batch, step_, bytes);
    loader_.release();
    if (first) zero_grad_at(model::ZeroGrad::step_start);
    loader_.load();
    if (first) zero_grad_at(model::ZeroGrad::before_forward);
    begin(Phase::forward, step_, bytes);
    forward(true, true);
    if (state_.pace().was_late()) return;
    end_outputs();
    if (first) zero_grad_at(model::ZeroGrad::before_backward);
    begin(Phase::backward, step_, bytes);
    gradients_.backward(pass_.stages.front(), scaler_.scale_loss());
    end_last_outputs();
    hold_outputs();
  }

  /// The rank's passes in the order of the schedule, each with the tensors of its micro-batch.
  void pipeline_step(const TensorBytes& bytes) {
    begin(Phase::batch, step_, bytes);
    for (const model::ZeroGrad place :
         {model::ZeroGrad::step_start, model::ZeroGrad::before_forward, model::ZeroGrad::before_backward}) {
      zero_grad_at(place);
    }
    const std::int64_t rank = parallel::stage_of_rank(job_.layout);
    std::vector<Recomputation::MicroBatch> held;
    std::vector<GradientFlow::Waiting> waiting;
    const std::int64_t group = parallel::micro_batch_group(job_);
    for (const parallel::StagePass& pass :
         parallel::schedule_of(job_.layout, rank, job_.gradient_accumulation, group)) {
      if (state_.pace().was_late()) return;
      if (pass.micro_batch >= held.size()) held.resize(pass.micro_batch + 1, blocks_.nothing_held());
      const std::size_t own = pass.micro_batch * pass_.stages.size() + pass.stage;
      if (own >= waiting.size()) waiting.resize(own + 1);
      if (!pass.backward && pipe_.used()) pipe_.receive(own, ends_of(pass.stage));
      blocks_.exchange(held[pass.micro_batch]);
      gradients_.exchange(waiting[own]);
      if (pass.backward) stage_backward(pass.stage, bytes, pass.gradients);
      else stage_forward(pass.stage, bytes);
      if (pass.backward) pipe_.send_back(own);
      gradients_.exchange(waiting[own]);
      blocks_.exchange(held[pass.micro_batch]);
    }
    shards_.end_step();
    gradients_.end_step();
    calls_.end_step();
    if (!state_.pace().was_late()) update(bytes);
  }

  void stage_forward(std::size_t stage, const TensorBytes& bytes) {
    const StagePart& part = pass_.stages[stage];
    begin(Phase::batch, step_, bytes);
    for (const ops::TensorId input : ends_of(stage).inputs) {
      if (state_.slot(input) == kNoSlot) state_.add_input(input);
    }
    begin(Phase::forward, step_, bytes);
    shards_.begin_forward();
    run_forward(part.functions.first, part.functions.end, true);
    end_outputs_of(stage, false);
    calls_.end_autocast();
  }

  /// The model's first stage has nothing to send back, and makes all gradients in the pass for weights. Source: PyTorch
  /// 2.6, distributed/pipelining/stage.py (backward_one_chunk, backward_weight_one_chunk).
  void stage_backward(std::size_t stage, const TensorBytes& bytes, parallel::Gradients made) {
    const StagePart& part = pass_.stages[stage];
    const bool first = part.functions.first == 0 && parallel::stage_of_rank(job_.layout) == 0;
    begin(Phase::backward, step_, bytes);
    if (made == parallel::Gradients::inputs) {
      if (!first) gradients_.backward_of_inputs(part, scaler_.scale_loss());
      return;
    }
    if (made == parallel::Gradients::weights && !first) gradients_.backward_of_weights(part);
    else gradients_.backward(part, scaler_.scale_loss());
    hold_graph(false);
    end_outputs_of(stage, true);
    state_.let_go(part.loss);
    state_.slot(part.loss) = kNoSlot;
    for (const ops::TensorId input : ends_of(stage).inputs) {
      if (state_.slot(input) == kNoSlot) continue;
      state_.let_go(input);
      state_.slot(input) = kNoSlot;
    }
  }

  /// The variables for what the stage returns in addition to its loss end: when it has run, or, of what outlives the
  /// loss, when its backward has.
  void end_outputs_of(std::size_t stage, bool backward_ran) {
    for (const ops::TensorId held : ends_of(stage).outputs) {
      if (outlives_loss(held) == backward_ran && state_.slot(held) != kNoSlot) state_.let_go(held);
    }
  }

  /// A stage's ends, found when the first micro-batch comes to it.
  const StageEnds& ends_of(std::size_t stage) {
    if (ends_.empty()) ends_.resize(pass_.stages.size());
    std::optional<StageEnds>& ends = ends_[stage];
    if (!ends) ends = stage_ends(pass_, pass_.stages[stage], held_);
    return *ends;
  }

  void update(const TensorBytes& bytes) {
    begin(Phase::optimizer, step_, bytes);
    const Slot found_inf = scaler_.unscale(optimizer_.fused());
    optimizer_.run();
    state_.log().drop(found_inf);
    semi_sync_.run();
    zero_grad_at(model::ZeroGrad::step_end);
  }

  void zero_grad_at(model::ZeroGrad place) {
    if (job_.zero_grad == place) gradients_.zero_grad();
  }

  void forward(bool with_gradients, bool with_loss) {
    shards_.begin_forward();
    run_forward(0, with_loss ? pass_.tape.functions().size() : pass_.model_functions, with_gradients);
    if (with_loss) drop(held_loss_);
    calls_.end_autocast();
  }

  /// The functions from `first` to before `end`.
  void run_forward(std::size_t first, std::size_t end, bool with_gradients) {
    const auto functions = pass_.tape.functions();
    for (std::size_t index = first; index < end && !state_.pace().late(); ++index) {
      shards_.begin_call(index);
      if (with_gradients) blocks_.begin_forward(index);
      calls_.run(functions[index], with_gradients && !blocks_.covers(index), Thread::forward,
                 with_gradients ? blocks_.results_of(index) : nullptr);
      state_.let_go(names_.ending_at(index));
      shards_.end_call(index);
      if (index + 1 == pass_.autocast_functions) calls_.end_autocast();
      if (index + 1 == pass_.model_functions) shards_.end_forward();
      // `outputs = model(inputs)` and `loss = criterion(...)` release the last step's.
      if (index + 1 == pass_.model_functions) drop(held_outputs_);
    }
  }

  /// What autograd keeps of a forward pass that no backward follows.
  void drop_saved() {
    const auto functions = pass_.tape.functions().first(pass_.model_functions);
    for (std::size_t index = 0; index < functions.size(); ++index) {
      if (state_.requires_grad(functions[index].output) && !blocks_.covers(index)) {
        calls_.drop_kept(functions[index], false);
      }
    }
  }

  /// The inputs without the labels, which the losses added after them.
  [[nodiscard]] std::span<const ops::TensorId> model_inputs() const {
    return pass_.tape.inputs().first(pass_.model_inputs);
  }

  /// A loop that keeps no outputs releases them when the function returns that computes the loss.
  void end_outputs() {
    if (loop_.keeps_outputs) return;
    for (const ops::TensorId held : held_) {
      if (held != pass_.loss && !outlives_loss(held)) state_.let_go(held);
    }
  }

  /// Backward has run: what outlived the loss goes too.
  void end_last_outputs() {
    if (loop_.keeps_outputs) return;
    for (const ops::TensorId held : held_) {
      if (held != pass_.loss && outlives_loss(held)) state_.let_go(held);
    }
  }

  [[nodiscard]] bool outlives_loss(ops::TensorId held) const {
    const model::ModelGraph& graph = pass_.wired.graph();
    return graph.attributes(graph.layers()[pass_.tape.tensor(held).layer]).flag("outlives_loss", false);
  }

  /// The outputs and the loss stay under their names until the next step makes new ones.
  void hold_outputs() {
    const bool alike = job_.batch_lengths == model::BatchLengths::alike;
    if (!alike && loop_.keeps_outputs) let_go_of_outputs();
    const bool keeps = loop_.keeps_outputs && alike;
    hold_graph(keeps);
    // Two of them may be views of one tensor, which each holds.
    for (const ops::TensorId held : held_) {
      if (held != pass_.loss && !keeps) continue;
      (held == pass_.loss ? held_loss_ : held_outputs_).push_back(state_.slot(held));
    }
    for (const ops::TensorId held : held_) {
      if (held == pass_.loss || keeps) state_.slot(held) = kNoSlot;
    }
  }
  /// What functions hold until the graph ends: with the loss's name, or when backward returns.
  void hold_graph(bool keeps) {
    std::vector<Slot> kept = calls_.take_kept_of_graph();
    if (!keeps) drop(kept);
    held_loss_.insert(held_loss_.end(), kept.begin(), kept.end());
  }
  void let_go_of_outputs() {
    for (const ops::TensorId held : held_) {
      if (held != pass_.loss) state_.let_go(held);
    }
  }
  void drop(std::vector<Slot>& held) {
    for (const Slot slot : held) state_.log().drop(slot);
    held.clear();
  }

  const model::TrainingJob& job_;
  const model::LoopRow& loop_;
  const ForwardPass& pass_;
  parallel::Sharing sharing_;
  std::vector<ops::TensorId> held_;
  std::int64_t expert_ranks_;        ///< that have the same experts
  std::int64_t expert_state_ranks_;  ///< of these, those that share their states
  RunState state_;
  NameLifetimes names_;
  ForwardCalls calls_;
  Recomputation blocks_;
  ShardedModel shards_;
  GradientFlow gradients_;
  OptimizerStep optimizer_;
  SemiSyncStep semi_sync_;
  GradientScaler scaler_;
  BatchLoader loader_;
  PipeBuffers pipe_;
  std::vector<std::optional<StageEnds>> ends_;  ///< by stage
  std::vector<Slot> held_outputs_;
  std::vector<Slot> held_loss_;
  std::int32_t step_ = 0;
};

}  // namespace step_plan_detail

GPUMEM_INLINE const PhaseMark& StepPlan::phase_of(std::size_t event) const {
  const auto next = std::upper_bound(phases.begin(), phases.end(), event,
                                     [](std::size_t at, const PhaseMark& mark) { return at < mark.first_event; });
  return *(next - 1);  // the first phase begins with the first event
}

namespace step_plan_detail {

/// Constructs the model and lets `write` write the rest, given the script and the sizes of a full batch.
template <typename Write>
core::Result<StepPlan> written(const model::TrainingJob& job, const ForwardPass& pass, StepPlan reused,
                               const Write& write) {
  const core::Result<TensorBytes> full = TensorBytes::at(job.batch_size, pass);
  if (!full) return full.error();
  const core::Result<std::vector<Range>> blocks = recomputed_parts(pass, job);
  if (!blocks) return blocks.error();
  const core::Result<parallel::Sharing> sharing = parallel::sharing_of(job);
  if (!sharing) return sharing.error();
  if (const core::Status meets = SemiSyncStep::check(pass.wired.graph(), job.layout); !meets) return meets.error();
  TrainingScript script(job, pass, *sharing, *blocks, std::move(reused));
  script.construct(*full);
  if (const core::Status done = write(script, *full); !done) return done.error();
  if (core::deadline_passed()) return core::deadline_error();  // then the plan is not whole
  return script.take();
}

}  // namespace step_plan_detail

GPUMEM_INLINE core::Result<StepPlan> make_step_plan(const model::TrainingJob& job, const ForwardPass& pass,
                                                    StepPlan reused, std::int64_t most) {
  constexpr std::int64_t kSummaryBatch = 2;  // torchsummary's
  return step_plan_detail::written(
      job, pass, std::move(reused), [&](auto& script, const TensorBytes& full) -> core::Status {
        script.end_beyond(most);
        if (job.summary_pass) {
          const core::Result<TensorBytes> summary = TensorBytes::at(kSummaryBatch, pass);
          if (!summary) return summary.error();
          script.summary_pass(*summary);
        }
        const std::int64_t last_batch = job.samples_per_epoch ? *job.samples_per_epoch % job.batch_size : 0;
        script.train_step(full);
        script.train_step(full);
        if (last_batch > 0) {
          const core::Result<TensorBytes> last = TensorBytes::at(last_batch, pass);
          if (!last) return last.error();
          script.train_step(*last);
        }
        if (job.validation_pass) script.validation_pass(full);
        if (last_batch > 0 || job.validation_pass) script.train_step(full);
        return core::Done{};
      });
}

GPUMEM_INLINE core::Result<StepPlan> make_run_plan(const model::TrainingJob& job, const ForwardPass& pass,
                                                   std::span<const RunPart> parts) {
  return step_plan_detail::written(job, pass, {}, [&](auto& script, const TensorBytes& full) -> core::Status {
    for (const RunPart part : parts) {
      if (part == RunPart::train) script.train_step(full);
      else script.validation_pass(full);
    }
    return core::Done{};
  });
}

}  // namespace gpumem::plan
