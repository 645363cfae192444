#pragma once

#include <algorithm>
#include <unordered_map>

#include "gpumem/core/deadline.hpp"
#include "gpumem/plan/checkpoints.hpp"
#include "gpumem/plan/step_plan.hpp"

namespace gpumem::plan {

namespace step_plan_detail {

using ops::Function;
using ops::Gradient;
using ops::kNoTensor;
using ops::Library;
using ops::Output;
using ops::Tape;
using ops::TensorId;

using Slot = std::uint32_t;
inline constexpr Slot kNoSlot = UINT32_MAX;

/// Writes events, and knows which slots are taken and how many hold them.
class EventLog {
 public:
  /// In the memory of a plan that is not needed any more.
  explicit EventLog(StepPlan reused) : plan_(std::move(reused)) {
    plan_.events.clear();
    plan_.calls.clear();
    plan_.phases.clear();
    plan_.slots = 0;
  }

  Slot allocate(std::int64_t bytes, Category category, std::uint32_t layer) {
    Slot slot = 0;
    if (free_.empty()) {
      slot = plan_.slots++;
      holders_.push_back(1);
    } else {
      slot = free_.back();
      free_.pop_back();
      holders_[slot] = 1;
    }
    plan_.events.push_back({bytes, slot, layer, Event::Kind::allocate, category});
    return slot;
  }
  void hold(Slot slot) { ++holders_[slot]; }
  void drop(Slot slot) {
    if (slot == kNoSlot || --holders_[slot] != 0) return;
    plan_.events.push_back({0, slot, kNoLayer, Event::Kind::release, Category::temporary});
    free_.push_back(slot);
  }
  [[nodiscard]] bool sole(Slot slot) const { return holders_[slot] == 1; }
  void temporary(std::int64_t bytes, Category category, std::uint32_t layer) { drop(allocate(bytes, category, layer)); }
  void call(const LibraryCall& call, std::uint32_t layer) {
    plan_.events.push_back(
        {static_cast<std::int64_t>(plan_.calls.size()), 0, layer, Event::Kind::call, Category::temporary});
    plan_.calls.push_back(call);
  }
  void mark(Phase phase, std::int32_t step, std::int64_t batch_size) {
    plan_.phases.push_back({plan_.events.size(), phase, step, batch_size});
  }
  StepPlan& plan() { return plan_; }

 private:
  StepPlan plan_;
  std::vector<std::uint32_t> holders_;
  std::vector<Slot> free_;
};

/// Where a GPU's run and one under FakeTensorMode on the CPU differ beyond single ops, whose record rules know.
struct Dialect {
  bool adds_gradients_in_place;  ///< where they meet; engine.cpp asks for the sole holder, which fake tensors never are
  bool multi_tensor_optimizers;  ///< foreach and fused: the default where all parameters are on a GPU
  bool step_counts_on_device;    ///< not so on a GPU, where they are CPU tensors unless the optimizer is fused
  bool scales_gradients;         ///< torch.amp.GradScaler, which does nothing without a GPU

  static constexpr Dialect of(ops::Backend backend) {
    if (backend == ops::Backend::cpu) return {false, false, true, false};
    return {true, true, false, true};
  }
};

/// The bytes of every tensor on the tape at one batch size.
class Sizes {
 public:
  static core::Result<Sizes> at(const Tape& tape, std::int64_t batch_size, const model::ModelGraph& graph) {
    Sizes sizes;
    sizes.batch_size_ = batch_size;
    sizes.bytes_.reserve(tape.tensors().size());
    for (const ops::TapeTensor& tensor : tape.tensors()) {
      const auto bytes = tensor.size.bytes(batch_size).value();
      if (!bytes) {
        const model::Layer& layer = graph.layers()[tensor.layer];
        return core::Error{core::ErrorCode::overflow,
                           "a tensor of it does not fit 64 bits at batch size " + std::to_string(batch_size),
                           {graph.file(), layer.line, graph.path(layer)}};
      }
      sizes.bytes_.push_back(*bytes);
    }
    return sizes;
  }

  [[nodiscard]] std::int64_t of(TensorId tensor) const { return bytes_[static_cast<std::size_t>(tensor)]; }
  [[nodiscard]] std::int64_t batch_size() const { return batch_size_; }

 private:
  std::vector<std::int64_t> bytes_;
  std::int64_t batch_size_ = 0;
};

/// Runs the tape as PyTorch runs the program, and writes what it allocates and frees.
class Runner {
 public:
  Runner(const model::TrainingJob& job, const Recording& recording, std::span<const Range> blocks, StepPlan reused)
      : job_(job),
        recording_(recording),
        tape_(recording.tape),
        dialect_(Dialect::of(recording.tape.backend())),
        log_(std::move(reused)) {
    const std::size_t tensors = tape_.tensors().size();
    slot_of_.assign(tensors, kNoSlot);
    gradient_of_.assign(tensors, {});
    find_last_uses();
    find_tied();
    find_casts();
    find_blocks(blocks);
    met_of_.assign(tensors, kNoSlot);
    count_readers();
    log_.plan().events.reserve(tape_.functions().size() * 40);
    log_.plan().calls.reserve(tape_.functions().size() * 12);
  }

  void construct(const Sizes& sizes) {
    log_.mark(Phase::construction, 0, 0);
    const auto parameters = tape_.parameters();
    const auto buffers = tape_.buffers();
    std::size_t buffer = 0;
    for (const Tape::Parameter& parameter : parameters) {
      if (pace_.late()) return;
      while (buffer < buffers.size() && buffers[buffer] < parameter.tensor)
        add(buffers[buffer++], sizes, Category::buffer);
      if (!parameter.tied) add(parameter.tensor, sizes, Category::parameter);
    }
    while (buffer < buffers.size()) add(buffers[buffer++], sizes, Category::buffer);
    if (memory().state_made == model::OptimizerRow::StateMade::creation) create_state(sizes);
  }

  void summary_pass(const Sizes& sizes) {
    log_.mark(Phase::summary, 0, sizes.batch_size());
    for (const TensorId input : model_inputs()) add(input, sizes, Category::input);
    forward(sizes, true, false);
    drop_outputs();
    drop_saved();
    for (Block& block : blocks_) end_block(block);
    for (const TensorId input : model_inputs()) let_go(input);
  }

  void validation_pass(const Sizes& sizes) {
    log_.mark(Phase::validation, step_, sizes.batch_size());
    drop_batch();
    for (const TensorId input : tape_.inputs()) add(input, sizes, Category::input);
    forward(sizes, false, true);
    hold_outputs();
  }

  void train_step(const Sizes& sizes) {
    ++step_;
    // From the second pass on all are alike: each adds to the gradients that stand.
    constexpr std::int64_t kDistinctPasses = 3;
    const std::int64_t passes = std::min(job_.gradient_accumulation, kDistinctPasses);
    for (std::int64_t pass = 0; pass < passes && !pace_.was_late(); ++pass) {
      const bool first = pass == 0;
      const bool last = pass + 1 == passes;
      log_.mark(Phase::batch, step_, sizes.batch_size());
      drop_batch();
      if (first && job_.zero_grad == model::ZeroGrad::step_start) zero_grad();
      for (const TensorId input : tape_.inputs()) add(input, sizes, Category::input);
      if (first && job_.zero_grad == model::ZeroGrad::before_forward) zero_grad();
      log_.mark(Phase::forward, step_, sizes.batch_size());
      forward(sizes, true, true);
      if (pace_.was_late()) return;
      if (first && job_.zero_grad == model::ZeroGrad::before_backward) zero_grad();
      log_.mark(Phase::backward, step_, sizes.batch_size());
      backward(sizes);
      hold_outputs();
      if (!last) continue;
      log_.mark(Phase::optimizer, step_, sizes.batch_size());
      const Slot found = unscale();
      optimizer_step(sizes);
      log_.drop(found);
      if (job_.zero_grad == model::ZeroGrad::step_end) zero_grad();
    }
  }

  StepPlan take() && { return std::move(log_.plan()); }

 private:
  /// A gradient on its way through backward.
  struct Flow {
    Slot slot = kNoSlot;
    bool dense = true;
  };
  struct Part {
    TensorId of;
    Slot slot;
  };
  struct Meeting {
    Slot first = kNoSlot;
    Slot second = kNoSlot;
    bool first_dense = true;
  };

  [[nodiscard]] const model::OptimizerRow& memory() const { return model::row_of(job_.optimizer); }
  [[nodiscard]] const ops::TapeTensor& tensor(TensorId id) const { return tape_.tensor(id); }
  [[nodiscard]] TensorId root(TensorId id) const { return tensor(id).storage; }
  Slot& slot(TensorId id) { return slot_of_[static_cast<std::size_t>(root(id))]; }
  Flow& gradient(TensorId id) { return gradient_of_[static_cast<std::size_t>(id)]; }

  /// A name goes out of use behind the last function that reads it.
  void find_last_uses() {
    const auto functions = tape_.functions();
    std::vector<std::int32_t> last(tape_.tensors().size(), -1);
    for (std::size_t index = 0; index < functions.size(); ++index) {
      const Function& function = functions[index];
      last[static_cast<std::size_t>(function.output)] = static_cast<std::int32_t>(index);
      for (const TensorId input : tape_.list(function.inputs)) {
        last[static_cast<std::size_t>(input)] = static_cast<std::int32_t>(index);
      }
    }
    for (const TensorId held : recording_.held) last[static_cast<std::size_t>(held)] = -1;
    for (const TensorId input : tape_.inputs()) last[static_cast<std::size_t>(input)] = -1;
    for (const TensorId buffer : tape_.buffers()) last[static_cast<std::size_t>(buffer)] = -1;
    for (const Tape::Parameter& parameter : tape_.parameters()) last[static_cast<std::size_t>(parameter.tensor)] = -1;
    dies_from_.assign(functions.size() + 1, 0);
    for (const std::int32_t at : last) {
      if (at >= 0) ++dies_from_[static_cast<std::size_t>(at) + 1];
    }
    for (std::size_t index = 1; index < dies_from_.size(); ++index) dies_from_[index] += dies_from_[index - 1];
    dying_.resize(dies_from_.back());
    std::vector<std::uint32_t> next(dies_from_.begin(), dies_from_.end() - 1);
    for (std::size_t id = 0; id < last.size(); ++id) {
      if (last[id] >= 0) dying_[next[static_cast<std::size_t>(last[id])]++] = static_cast<TensorId>(id);
    }
  }

  /// The parameter that a tied one shares its memory and gradient with: the first of its size.
  void find_tied() {
    const auto elements = [&](const Tape::Parameter& parameter) {
      return tensor(parameter.tensor).size.elements.value().value_or(0);
    };
    std::unordered_map<std::int64_t, TensorId> first_of;
    for (const Tape::Parameter& parameter : tape_.parameters()) {
      if (!parameter.tied) first_of.try_emplace(elements(parameter), parameter.tensor);
    }
    for (const Tape::Parameter& parameter : tape_.parameters()) {
      const auto found = parameter.tied ? first_of.find(elements(parameter)) : first_of.end();
      if (found != first_of.end()) tied_to_.emplace(parameter.tensor, found->second);
    }
  }

  [[nodiscard]] TensorId owner(TensorId parameter) const {
    const auto found = tied_to_.find(parameter);
    return found == tied_to_.end() ? parameter : found->second;
  }

  /// How many gradients each parameter gets in a pass.
  void count_readers() {
    readers_of_.assign(tape_.tensors().size(), 0);
    is_parameter_.assign(tape_.tensors().size(), false);
    for (const Tape::Parameter& parameter : tape_.parameters()) {
      is_parameter_[static_cast<std::size_t>(parameter.tensor)] = true;
    }
    for (const Function& function : tape_.functions()) {
      if (!tensor(function.output).requires_grad) continue;
      for (const TensorId parameter : tape_.list(function.parameters)) {
        ++readers_of_[static_cast<std::size_t>(owner(parameter))];
      }
      for (const TensorId input : tape_.list(function.inputs)) {
        if (is_parameter(input)) ++readers_of_[static_cast<std::size_t>(owner(input))];
      }
    }
  }

  /// The inputs without the labels, which the losses added behind them.
  [[nodiscard]] std::span<const TensorId> model_inputs() const { return tape_.inputs().first(recording_.model_inputs); }

  void add(TensorId id, const Sizes& sizes, Category category) {
    slot(id) = log_.allocate(sizes.of(id), category, category == Category::input ? kNoLayer : tensor(id).layer);
  }
  void let_go(TensorId id) {
    if (slot(id) == kNoSlot) return;
    const Slot old = slot(id);
    if (log_.sole(old)) slot(id) = kNoSlot;
    log_.drop(old);
  }

  void call(const Function& function, Direction direction, const Sizes& sizes) {
    if (function.library == Library::none) return;
    const bool backward_thread = direction != Direction::forward || recomputing_;
    log_.call({function.library, direction, backward_thread, function.convolution, sizes.batch_size()}, function.layer);
  }

  void forward(const Sizes& sizes, bool with_gradients, bool with_loss) {
    const auto functions = tape_.functions();
    const std::size_t count = with_loss ? functions.size() : recording_.model_functions;
    for (std::size_t index = 0; index < count && !pace_.late(); ++index) {
      Block* block = with_gradients ? block_of(index) : nullptr;
      if (block != nullptr && index == block->run.first) hold_inputs(*block);
      run_forward(functions[index], sizes, with_gradients && block == nullptr);
      for (std::uint32_t at = dies_from_[index]; at < dies_from_[index + 1]; ++at) let_go(dying_[at]);
      // `outputs = model(inputs)` and `loss = criterion(...)` let go of the last step's.
      if (index + 1 == recording_.model_functions) drop_held(false);
    }
    if (with_loss) drop_held(true);
    end_autocast();
  }

  void run_forward(const Function& function, const Sizes& sizes, bool with_gradients) {
    const bool keeps = with_gradients && tensor(function.output).requires_grad;
    cast_parameters(function, sizes, keeps);
    const auto extras = tape_.list(function.extras);
    for (const TensorId extra : extras) {
      if (function.extras_first) add(extra, sizes, Category::activation);
    }
    if (function.kind == Output::fresh) {
      add(function.output, sizes, Category::activation);
    } else if (slot(function.output) != kNoSlot) {
      log_.hold(slot(function.output));
    }
    for (const TensorId extra : extras) {
      if (!function.extras_first) add(extra, sizes, Category::activation);
    }
    call(function, Direction::forward, sizes);
    for (const TensorId scratch : tape_.list(function.scratch)) add(scratch, sizes, Category::temporary);
    for (const TensorId scratch : tape_.list(function.scratch)) let_go(scratch);
    if (keeps) {
      for (const TensorId saved : tape_.list(function.saved)) {
        if (slot(saved) != kNoSlot) log_.hold(slot(saved));
      }
    }
    for (const TensorId extra : extras) let_go(extra);
    for (const Slot copy : passing_casts_) log_.drop(copy);
    passing_casts_.clear();
  }

  /// Autocast's cache has a copy of each trained parameter until the region ends; a frozen one is copied a call.
  /// Backward needs the copies of weights, not of biases; a matrix product's only for the gradient of its input.
  void cast_parameters(const Function& function, const Sizes& sizes, bool keeps) {
    if (!function.casts_parameters) return;
    const auto parameters = tape_.list(function.parameters);
    for (std::uint32_t at = 0; at < parameters.size(); ++at) {
      const TensorId of = owner(parameters[at]);
      Slot& cached = cached_cast_[static_cast<std::size_t>(of)];
      Slot copy = cached;
      if (copy == kNoSlot) {
        copy = log_.allocate(sizes.of(of) / 2, Category::activation, function.layer);
        if (tensor(of).requires_grad) {
          cached = copy;
          cached_.push_back(of);
        } else {
          passing_casts_.push_back(copy);
        }
      }
      if (!keeps || !backward_reads_parameter(function, at)) continue;
      kept_cast_[function.parameters.first + at] = copy;
      log_.hold(copy);
    }
  }

  [[nodiscard]] bool backward_reads_parameter(const Function& function, std::uint32_t at) const {
    if (function.library == Library::none) return true;
    const bool bias = at == 1 && function.parameters.count == 2;
    const auto inputs = tape_.list(function.inputs);
    const bool product = function.library != Library::convolution;
    return !bias && !(product && !inputs.empty() && !tensor(inputs[0]).requires_grad);
  }

  void end_autocast() {
    for (const TensorId of : cached_) {
      log_.drop(cached_cast_[static_cast<std::size_t>(of)]);
      cached_cast_[static_cast<std::size_t>(of)] = kNoSlot;
    }
    cached_.clear();
  }

  void drop_saved_of(const Function& function) {
    for (const TensorId saved : tape_.list(function.saved)) let_go(saved);
    drop_casts(function);
  }
  void drop_saved() {
    for (std::size_t index = 0; index < recording_.model_functions; ++index) {
      const Function& function = tape_.functions()[index];
      if (tensor(function.output).requires_grad && block_of(index) == nullptr) drop_saved_of(function);
    }
  }

  /// A call of torch.utils.checkpoint (use_reentrant=False): forward keeps its arguments and nothing else; the first
  /// backward that asks for a saved tensor runs all of it again.
  struct Block {
    Range run;
    std::uint32_t last_saver = 0;   ///< the function whose saved tensors are the last: the second run stops there
    std::vector<TensorId> inputs;   ///< made before it, read in it
    std::vector<TensorId> outputs;  ///< made in it, read behind it
    bool held = false;
    bool recomputed = false;
    std::vector<std::pair<TensorId, Slot>> first_run;  ///< what still stands of the first run when the second begins
  };

  Block* block_of(std::size_t function) {
    return block_at_.empty() || block_at_[function] == kNoSlot ? nullptr : &blocks_[block_at_[function]];
  }

  void find_blocks(std::span<const Range> runs) {
    if (runs.empty()) return;
    const auto functions = tape_.functions();
    block_at_.assign(functions.size(), kNoSlot);
    maker_of_.assign(tape_.tensors().size(), kNoSlot);
    std::vector<std::uint32_t> dies_at(tape_.tensors().size(), kNoSlot);
    for (std::uint32_t index = 0; index < functions.size(); ++index) {
      maker_of_[static_cast<std::size_t>(functions[index].output)] = index;
      for (std::uint32_t at = dies_from_[index]; at < dies_from_[index + 1]; ++at) {
        dies_at[static_cast<std::size_t>(dying_[at])] = index;
      }
    }
    for (const Range& run : runs) {
      Block block{run, run.first, {}, {}, false, false, {}};
      bool any = false;
      for (std::uint32_t index = run.first; index < run.end; ++index) {
        const Function& function = functions[index];
        if (saves(function)) {
          block.last_saver = index;
          any = true;
        }
        if (dies_at[static_cast<std::size_t>(function.output)] >= run.end) block.outputs.push_back(function.output);
        for (const TensorId input : tape_.list(function.inputs)) {
          const bool known = std::find(block.inputs.begin(), block.inputs.end(), input) != block.inputs.end();
          if (!known && !made_in(run, input) && !is_constant(input)) block.inputs.push_back(input);
        }
      }
      if (!any) continue;  // nothing in it is trained
      for (std::uint32_t index = run.first; index < run.end; ++index) {
        block_at_[index] = static_cast<std::uint32_t>(blocks_.size());
      }
      blocks_.push_back(std::move(block));
    }
  }

  [[nodiscard]] bool saves(const Function& function) const {
    return tensor(function.output).requires_grad && (function.saved.count > 0 || function.parameters.count > 0);
  }
  [[nodiscard]] bool made_in(const Range& run, TensorId id) const {
    const std::uint32_t maker = maker_of_[static_cast<std::size_t>(id)];
    return maker != kNoSlot && maker >= run.first && maker < run.end;
  }
  /// Parameters and buffers stand without anybody's help.
  [[nodiscard]] bool is_constant(TensorId id) const {
    const auto buffers = tape_.buffers();
    if (std::binary_search(buffers.begin(), buffers.end(), id)) return true;
    const auto parameters = tape_.parameters();
    const auto before = [](const Tape::Parameter& parameter, TensorId of) { return parameter.tensor < of; };
    const auto found = std::lower_bound(parameters.begin(), parameters.end(), id, before);
    return found != parameters.end() && found->tensor == id;
  }

  void hold_inputs(Block& block) {
    block.held = true;
    for (const TensorId input : block.inputs) {
      if (slot(input) != kNoSlot) log_.hold(slot(input));
    }
  }

  /// The second run: its tensors stand beside what is left of the first one's. It ends with the last tensor that is
  /// saved: an input is saved before its function runs, an output behind it.
  void recompute(Block& block, std::uint32_t upto, const Sizes& sizes) {
    block.recomputed = true;
    recomputing_ = true;
    const auto functions = tape_.functions();
    for (std::uint32_t index = block.run.first; index < block.run.end; ++index) {
      put_aside(block, functions[index].output);
      for (const TensorId extra : tape_.list(functions[index].extras)) put_aside(block, extra);
    }
    const bool runs_last = makes_what_it_saves(functions[block.last_saver]);
    const std::uint32_t end = block.last_saver + (runs_last ? 1U : 0U);
    for (std::uint32_t index = block.run.first; index < end; ++index) {
      const bool still_asked = index <= upto;
      run_forward(functions[index], sizes, still_asked);
      drop_dead(block, index, end);
    }
    if (!runs_last && block.last_saver <= upto) keep_inputs(functions[block.last_saver], sizes);
    for (std::uint32_t index = end; index < block.run.end; ++index) drop_dead(block, index, end);
    for (const TensorId output : block.outputs) {
      if (maker_of_[static_cast<std::size_t>(output)] < end) let_go(output);
    }
    end_autocast();
    recomputing_ = false;
  }

  [[nodiscard]] bool makes_what_it_saves(const Function& function) const {
    if (function.extras.count > 0) return true;
    const auto saved = tape_.list(function.saved);
    return std::find(saved.begin(), saved.end(), function.output) != saved.end();
  }

  void keep_inputs(const Function& function, const Sizes& sizes) {
    cast_parameters(function, sizes, true);
    for (const Slot copy : passing_casts_) log_.drop(copy);
    passing_casts_.clear();
    for (const TensorId saved : tape_.list(function.saved)) {
      if (slot(saved) != kNoSlot) log_.hold(slot(saved));
    }
  }

  /// Names of the second run that end here: only of what it has made.
  void drop_dead(const Block& block, std::uint32_t index, std::uint32_t end) {
    for (std::uint32_t at = dies_from_[index]; at < dies_from_[index + 1]; ++at) {
      const bool made = made_in(block.run, dying_[at]) && maker_of_[static_cast<std::size_t>(dying_[at])] < end;
      if (made) let_go(dying_[at]);
    }
  }

  void put_aside(Block& block, TensorId id) {
    if (root(id) != id || slot(id) == kNoSlot) return;
    block.first_run.push_back({id, slot(id)});
    slot(id) = kNoSlot;
  }

  /// Its last function is through: the graph lets go of the arguments.
  void end_block(Block& block) {
    for (const auto& [id, old] : block.first_run) slot(id) = old;
    block.first_run.clear();
    if (block.held) {
      for (const TensorId input : block.inputs) let_go(input);
    }
    block.held = false;
    block.recomputed = false;
  }

  void backward(const Sizes& sizes) {
    const auto functions = tape_.functions();
    const Slot scaled = scale_loss();
    // Tensor.backward() holds the ones that it starts from until it returns.
    const Slot ones = log_.allocate(sizes.of(recording_.loss), Category::activation_gradient, kNoLayer);
    awaited_ = readers_of_;
    if (scaled == kNoSlot) {
      log_.hold(ones);
      gradient(recording_.loss).slot = ones;
    } else {  // ones times the scale
      gradient(recording_.loss).slot =
          log_.allocate(sizes.of(recording_.loss), Category::activation_gradient, kNoLayer);
    }
    for (std::size_t index = functions.size(); index-- > 0 && !pace_.late();) {
      if (tensor(functions[index].output).requires_grad) run_backward(index, sizes);
      Block* block = block_of(index);
      if (block != nullptr && index == block->run.first) end_block(*block);
    }
    if (pace_.was_late()) return;
    // Parameters that no call reads (a summary shows that they are there, not what with) have gradients all the same.
    for (const Tape::Parameter& parameter : tape_.parameters()) {
      deliver(parameter.tensor);
      if (!parameter.frozen && !parameter.tied && gradient(parameter.tensor).slot == kNoSlot) {
        gradient(parameter.tensor).slot = parameter_gradient(parameter.tensor, sizes);
      }
    }
    log_.drop(ones);
    log_.drop(scaled);
  }

  /// GradScaler.scale: the scale (float32) and the growth tracker (int32) stand from the first call on; the scaled loss
  /// lives while backward() runs.
  Slot scale_loss() {
    if (!scales()) return kNoSlot;
    constexpr std::int64_t kScalar = 4;
    if (!has_scale_) {
      log_.allocate(kScalar, Category::optimizer, kNoLayer);
      log_.allocate(kScalar, Category::optimizer, kNoLayer);
      has_scale_ = true;
    }
    return log_.allocate(kScalar, Category::activation, kNoLayer);
  }

  /// GradScaler.step: the scale's inverse, made in float64; gradients are unscaled in place. found_inf stands until
  /// update().
  Slot unscale() {
    if (!scales()) return kNoSlot;
    constexpr std::int64_t kScalar = 4;
    constexpr std::int64_t kWide = 8;
    if (fused()) return log_.allocate(kScalar, Category::temporary, kNoLayer);  // it unscales by itself
    const Slot wide = log_.allocate(kWide, Category::temporary, kNoLayer);
    const Slot inverse_wide = log_.allocate(kWide, Category::temporary, kNoLayer);
    log_.drop(wide);
    const Slot inverse = log_.allocate(kScalar, Category::temporary, kNoLayer);
    log_.drop(inverse_wide);
    const Slot found = log_.allocate(kScalar, Category::temporary, kNoLayer);
    log_.drop(inverse);
    return found;
  }

  void run_backward(std::size_t index, const Sizes& sizes) {
    const Function& function = tape_.functions()[index];
    Block* block = block_of(index);
    Flow output = gradient(function.output);
    gradient(function.output) = {};
    const bool joined = function.gradient == Gradient::joined;
    const bool reached = output.slot != kNoSlot || (joined && has_parts(function.output));
    if (!reached) {
      if (block == nullptr || block->recomputed) drop_saved_of(function);
      return;
    }
    if (block != nullptr && !block->recomputed && saves(function)) {
      recompute(*block, static_cast<std::uint32_t>(index), sizes);
    }
    Slot copy = kNoSlot;
    if (function.contiguous_gradient && !output.dense) {
      copy = log_.allocate(sizes.of(function.output), Category::activation_gradient, function.layer);
    }
    flows_.clear();
    parameter_flows_.clear();
    make_input_gradients(function, output, sizes);
    for (const TensorId scratch : tape_.list(function.backward_scratch)) add(scratch, sizes, Category::temporary);
    make_parameter_gradients(function, sizes);
    for (const TensorId scratch : tape_.list(function.backward_scratch)) let_go(scratch);
    log_.drop(copy);
    log_.drop(output.slot);
    if (joined) drop_parts(function.output);
    if (block == nullptr || block->recomputed) drop_saved_of(function);
    const auto inputs = tape_.list(function.inputs);
    for (std::size_t at = 0; at < flows_.size(); ++at) {
      if (flows_[at].slot != kNoSlot) accumulate(inputs[at], flows_[at], sizes);
    }
    for (const auto& [parameter, slot] : parameter_flows_) meet(parameter, slot, sizes);
  }

  void make_input_gradients(const Function& function, const Flow& output, const Sizes& sizes) {
    const auto inputs = tape_.list(function.inputs);
    bool called = false;
    for (std::size_t at = 0; at < inputs.size(); ++at) {
      const bool flows = (at >= 32 || (function.no_gradient >> at & 1U) == 0) && tensor(inputs[at]).requires_grad;
      flows_.push_back(flows ? input_gradient(function, inputs[at], output, sizes) : Flow{});
      if (flows && !called && function.library != Library::none) {
        call(function, Direction::data_gradient, sizes);
        called = true;
      }
    }
  }

  Flow input_gradient(const Function& function, TensorId input, const Flow& output, const Sizes& sizes) {
    const bool same_size = sizes.of(input) == sizes.of(function.output);
    switch (function.gradient) {
      case Gradient::passed:
        if (!same_size && !is_split(input)) break;  // the input was broadcast: its gradient is a sum
        log_.hold(output.slot);
        return output;
      case Gradient::part:
      case Gradient::spread: log_.hold(output.slot); return {output.slot, output.dense && same_size};
      case Gradient::none: return {};
      case Gradient::fresh:
      case Gradient::joined: break;
    }
    const Category category = is_parameter(input) ? Category::gradient : Category::activation_gradient;
    return {log_.allocate(sizes.of(input), category, function.layer), true};
  }

  void make_parameter_gradients(const Function& function, const Sizes& sizes) {
    bool called = false;
    for (const TensorId parameter : tape_.list(function.parameters)) {
      if (!tensor(parameter).requires_grad) continue;
      Slot lower = kNoSlot;
      if (function.casts_parameters) {
        lower = log_.allocate(sizes.of(parameter) / 2, Category::activation_gradient, function.layer);
      }
      if (!called && lower != kNoSlot) call(function, Direction::weight_gradient, sizes);
      parameter_flows_.push_back({parameter, parameter_gradient(parameter, sizes)});
      if (!called && lower == kNoSlot) call(function, Direction::weight_gradient, sizes);
      called = true;
      log_.drop(lower);
    }
  }

  Slot parameter_gradient(TensorId parameter, const Sizes& sizes) {
    return log_.allocate(sizes.of(parameter), Category::gradient, tensor(parameter).layer);
  }

  /// The gradients of a parameter that several calls read meet before AccumulateGrad, which takes a first one as it is
  /// and adds one to what stands from an earlier pass in place.
  void meet(TensorId parameter, Slot fresh, const Sizes& sizes) {
    const TensorId of = owner(parameter);
    Slot& met = met_of_[static_cast<std::size_t>(of)];
    if (met == kNoSlot) {
      met = fresh;
    } else {
      met = sum_of({met, fresh, true}, sizes.of(parameter), Category::gradient, tensor(parameter).layer);
    }
    if (--awaited_[static_cast<std::size_t>(of)] == 0) deliver(of);
  }

  void deliver(TensorId parameter) {
    Slot& met = met_of_[static_cast<std::size_t>(parameter)];
    if (met == kNoSlot) return;
    Slot& stands = gradient(parameter).slot;
    if (stands == kNoSlot) {
      stands = met;
    } else {
      log_.drop(met);
    }
    met = kNoSlot;
  }

  /// Two gradients that meet become one (InputBuffer): in the place of the first, where that may be written to.
  Slot sum_of(const Meeting& meeting, std::int64_t bytes, Category category, std::uint32_t layer) {
    const bool in_place = dialect_.adds_gradients_in_place && meeting.first_dense && log_.sole(meeting.first);
    const Slot sum = in_place ? meeting.first : log_.allocate(bytes, category, layer);
    if (!in_place) log_.drop(meeting.first);
    log_.drop(meeting.second);
    return sum;
  }

  void accumulate(TensorId input, const Flow& flow, const Sizes& sizes) {
    if (is_split(input)) {
      parts_.push_back({input, flow.slot});
      return;
    }
    if (is_parameter(input)) {  // one that other calls read as a tensor
      meet(input, own_gradient(input, flow, sizes), sizes);
      return;
    }
    Flow& old = gradient(input);
    if (old.slot == kNoSlot) {
      old = flow;
      return;
    }
    const Meeting meeting = {old.slot, flow.slot, old.dense};
    old = {sum_of(meeting, sizes.of(input), Category::activation_gradient, tensor(input).layer), true};
  }

  /// A gradient that a parameter may keep: AccumulateGrad copies one that others hold, or that is not dense.
  Slot own_gradient(TensorId parameter, const Flow& flow, const Sizes& sizes) {
    if (flow.dense && log_.sole(flow.slot)) return flow.slot;
    const Slot copy = parameter_gradient(parameter, sizes);
    log_.drop(flow.slot);
    return copy;
  }

  [[nodiscard]] bool is_parameter(TensorId id) const { return is_parameter_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] bool is_split(TensorId id) const {
    return std::binary_search(recording_.splits.begin(), recording_.splits.end(), id);
  }
  [[nodiscard]] bool has_parts(TensorId id) const {
    return std::any_of(parts_.begin(), parts_.end(), [&](const Part& part) { return part.of == id; });
  }
  void drop_parts(TensorId id) {
    for (const Part& part : parts_) {
      if (part.of == id) log_.drop(part.slot);
    }
    std::erase_if(parts_, [&](const Part& part) { return part.of == id; });
  }
  void drop_casts(const Function& function) {
    if (!function.casts_parameters) return;
    for (std::uint32_t at = 0; at < function.parameters.count; ++at) {
      Slot& copy = kept_cast_[function.parameters.first + at];
      log_.drop(copy);
      copy = kNoSlot;
    }
  }
  void find_casts() {
    std::uint32_t places = 0;
    for (const Function& function : tape_.functions()) {
      if (function.casts_parameters) places = function.parameters.first + function.parameters.count;
    }
    kept_cast_.assign(places, kNoSlot);
    cached_cast_.assign(places == 0 ? 0 : tape_.tensors().size(), kNoSlot);
  }

  void zero_grad() {
    if (!job_.zero_grad_to_none) return;
    for (const Tape::Parameter& parameter : tape_.parameters()) {
      Flow& flow = gradient(parameter.tensor);
      log_.drop(flow.slot);
      flow = {};
    }
  }

  void create_state(const Sizes& sizes) {
    if (has_state_) return;
    has_state_ = true;
    for (const Tape::Parameter& parameter : tape_.parameters()) {
      if (pace_.late()) return;
      if (parameter.frozen || parameter.tied) continue;
      const bool factors = memory().state_shape == model::OptimizerRow::StateShape::factored;
      const auto factored = factors ? parameter.factored.value().value_or(0) : 0;
      const std::int64_t bytes =
          factored > 0 ? factored * core::element_size(core::DType::float32) : sizes.of(parameter.tensor);
      const bool scalars_count = dialect_.step_counts_on_device || fused();
      for (int scalar = 0; scalars_count && scalar < memory().scalars; ++scalar) {
        log_.allocate(core::element_size(core::DType::float32), Category::optimizer, tensor(parameter.tensor).layer);
      }
      for (int state = 0; state < memory().states; ++state) {
        log_.allocate(bytes, Category::optimizer, tensor(parameter.tensor).layer);
      }
    }
  }

  [[nodiscard]] bool fused() const { return job_.fused && dialect_.multi_tensor_optimizers && memory().has_fused; }
  [[nodiscard]] bool scales() const {
    return job_.precision == model::Precision::amp_fp16 && dialect_.scales_gradients;
  }

  void optimizer_step(const Sizes& sizes) {
    create_state(sizes);
    const bool foreach = job_.foreach && dialect_.multi_tensor_optimizers && memory().foreach_temporaries > 0;
    if (fused()) return;
    if (foreach) {
      take_for_all(sizes);
    } else {
      take_one_by_one(sizes);
    }
  }

  void take_for_all(const Sizes& sizes) {
    std::vector<Slot> taken;
    for (int temporary = 0; temporary < memory().foreach_temporaries; ++temporary) {
      for_each_trained([&](TensorId parameter) { taken.push_back(take(parameter, sizes)); });
    }
    for (const Slot slot : taken) log_.drop(slot);
  }

  void take_one_by_one(const Sizes& sizes) {
    if (memory().single_temporaries == 0) return;
    Slot last = kNoSlot;
    std::vector<Slot> taken;
    for_each_trained([&](TensorId parameter) {
      taken.clear();
      for (int temporary = 0; temporary < memory().single_temporaries; ++temporary) {
        taken.push_back(take(parameter, sizes));
      }
      log_.drop(last);
      last = kNoSlot;
      if (memory().single_keeps_last) {
        last = taken.back();
        taken.pop_back();
      }
      for (const Slot slot : taken) log_.drop(slot);
    });
    log_.drop(last);
  }

  Slot take(TensorId parameter, const Sizes& sizes) {
    return log_.allocate(sizes.of(parameter), Category::temporary, tensor(parameter).layer);
  }

  template <typename Visit>
  void for_each_trained(Visit visit) {
    for (const Tape::Parameter& parameter : tape_.parameters()) {
      if (pace_.late()) return;
      if (!parameter.frozen && !parameter.tied) visit(parameter.tensor);
    }
  }

  void drop_batch() {
    for (const TensorId input : tape_.inputs()) let_go(input);
  }

  /// The outputs and the loss stay under their names until the next step makes new ones.
  void hold_outputs() {
    // Two of them may be views of one tensor, which each holds.
    for (const TensorId held : recording_.held) {
      (held == recording_.loss ? held_loss_ : held_outputs_).push_back(slot(held));
    }
    for (const TensorId held : recording_.held) slot(held) = kNoSlot;
  }
  void drop_outputs() {
    for (const TensorId held : recording_.held) {
      if (held != recording_.loss) let_go(held);
    }
  }
  void drop_held(bool loss) {
    std::vector<Slot>& held = loss ? held_loss_ : held_outputs_;
    for (const Slot slot : held) log_.drop(slot);
    held.clear();
  }

  const model::TrainingJob& job_;
  const Recording& recording_;
  const Tape& tape_;
  Dialect dialect_;
  EventLog log_;
  std::vector<Slot> slot_of_;      ///< by the tensor that owns the memory
  std::vector<Flow> gradient_of_;  ///< by tensor; a parameter's stays until zero_grad
  std::vector<Slot> met_of_;       ///< by parameter: what its readers' gradients sum to so far in this pass
  std::vector<bool> is_parameter_;
  std::vector<std::int32_t> readers_of_;
  std::vector<std::int32_t> awaited_;
  std::vector<Slot> kept_cast_;          ///< autocast's copies that backward reads, by their places in the tape's lists
  std::vector<Slot> cached_cast_;        ///< autocast's cache, by parameter
  std::vector<TensorId> cached_;         ///< what it holds
  std::vector<Slot> passing_casts_;      ///< copies that go with the call
  std::vector<Block> blocks_;            ///< checkpointed
  std::vector<std::uint32_t> block_at_;  ///< by function; kNoSlot: in none
  std::vector<std::uint32_t> maker_of_;  ///< by tensor, the function that it is the output of; where blocks are
  bool recomputing_ = false;
  std::vector<std::uint32_t> dies_from_;
  std::vector<TensorId> dying_;  ///< behind function f: dies_from_[f] to dies_from_[f + 1]
  std::unordered_map<TensorId, TensorId> tied_to_;
  std::vector<Flow> flows_;  ///< what a function has made, of its inputs and of its parameters
  std::vector<std::pair<TensorId, Slot>> parameter_flows_;
  std::vector<Part> parts_;
  std::vector<Slot> held_outputs_;
  std::vector<Slot> held_loss_;
  std::int32_t step_ = 0;
  bool has_state_ = false;
  bool has_scale_ = false;  ///< GradScaler's
  core::Pace pace_;
};

}  // namespace step_plan_detail

GPUMEM_INLINE const PhaseMark& StepPlan::phase_of(std::size_t event) const {
  const auto next = std::upper_bound(phases.begin(), phases.end(), event,
                                     [](std::size_t at, const PhaseMark& mark) { return at < mark.first_event; });
  return *(next - 1);  // the first phase begins with the first event
}

GPUMEM_INLINE core::Result<StepPlan> make_step_plan(const model::TrainingJob& job, const Recording& recording,
                                                    StepPlan reused) {
  using step_plan_detail::Sizes;
  constexpr std::int64_t kSummaryBatch = 2;  // torchsummary's
  const auto sizes_at = [&](std::int64_t batch_size) { return Sizes::at(recording.tape, batch_size, *job.graph); };
  const core::Result<Sizes> full = sizes_at(job.batch_size);
  if (!full) return full.error();
  std::vector<Range> blocks;
  if (job.activation_checkpointing) {
    core::Result<std::vector<Range>> found = checkpointed(*job.graph, recording);
    if (!found) return found.error();
    blocks = *std::move(found);
  }
  step_plan_detail::Runner runner(job, recording, blocks, std::move(reused));
  runner.construct(*full);
  if (job.summary_pass) {
    const core::Result<Sizes> summary = sizes_at(kSummaryBatch);
    if (!summary) return summary.error();
    runner.summary_pass(*summary);
  }
  const std::int64_t last_batch = job.samples_per_epoch ? *job.samples_per_epoch % job.batch_size : 0;
  runner.train_step(*full);
  runner.train_step(*full);
  if (last_batch > 0) {
    const core::Result<Sizes> last = sizes_at(last_batch);
    if (!last) return last.error();
    runner.train_step(*last);
  }
  if (job.validation_pass) runner.validation_pass(*full);
  if (last_batch > 0 || job.validation_pass) runner.train_step(*full);
  if (core::deadline_passed()) return core::deadline_error();  // then the plan is not whole
  return std::move(runner).take();
}

}  // namespace gpumem::plan
