#pragma once

#include "gpumem/plan/checkpoints.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "gpumem/plan/forward_pass.hpp"
#include "gpumem/plan/sharded_model.hpp"

namespace gpumem::plan {

namespace checkpoints_detail {

/// Whether the policy names the block at `at` of all of the model's.
GPUMEM_INLINE bool names(const model::CheckpointPolicy& policy, std::size_t at) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(policy.count, 1));
  switch (policy.kind) {
    case model::Checkpoints::first: return at < count;
    case model::Checkpoints::every: return (at + 1) % count == 0;
    case model::Checkpoints::first_of: return at % count == 0;
    case model::Checkpoints::every_other: return at / count % 2 == 0;
    default: return false;
  }
}

/// Those of the blocks that the policy names.
GPUMEM_INLINE std::vector<Range> chosen(const std::vector<Range>& blocks, const model::CheckpointPolicy& policy) {
  std::vector<Range> some;
  for (std::size_t at = 0; at < blocks.size(); ++at) {
    if (names(policy, at)) some.push_back(blocks[at]);
  }
  return some;
}

/// Each N blocks that follow each other as one part; of these every one, or every other.
GPUMEM_INLINE std::vector<Range> joined(const std::vector<Range>& blocks, const model::CheckpointPolicy& policy) {
  const auto most = static_cast<std::size_t>(std::max<std::int64_t>(policy.count, 1));
  const bool every_other = policy.kind == model::Checkpoints::joined_every_other;
  std::vector<Range> parts;
  std::size_t at_in_run = 0;  // of blocks that follow each other
  for (std::size_t at = 0; at < blocks.size(); ++at) {
    at_in_run = at > 0 && blocks[at - 1].end == blocks[at].first ? at_in_run + 1 : 0;
    if (every_other && at_in_run / most % 2 == 1) continue;
    if (at_in_run % most == 0) parts.push_back(blocks[at]);
    else parts.back().end = blocks[at].end;
  }
  return parts;
}

GPUMEM_INLINE core::Error nothing_repeats(const model::ModelGraph& graph) {
  return {core::ErrorCode::missing_information,
          "activation checkpointing wraps a model's repeated blocks, and this summary shows none: it "
          "needs a format that prints containers (print(model), torchinfo) or graph JSON; torchsummary "
          "tells only blocks of known classes, such as Bottleneck",
          {graph.file(), 0, {}}};
}

GPUMEM_INLINE core::Error no_attention(const model::ModelGraph& graph) {
  return {core::ErrorCode::missing_information,
          "selective-attention runs each attention again, and this summary shows none as a layer of its own; give the "
          "model's config.json, or another kind of checkpointing",
          {graph.file(), 0, {}}};
}

/// A name of several that are joined by '+', and whether a module has it.
struct ModuleName {
  std::string_view text;
  bool found = false;
};

GPUMEM_INLINE std::vector<ModuleName> names_of(std::string_view joined) {
  std::vector<ModuleName> names;
  for (const std::string_view name : joined_names(joined)) names.push_back({name});
  return names;
}

/// The path up to the outermost module that is named; empty: the layer is in none.
GPUMEM_INLINE std::string_view named_part(std::string_view path, std::span<ModuleName> names) {
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const std::string_view segment = path.substr(begin, end - begin);
    const auto named = std::find_if(names.begin(), names.end(), [&](const auto& name) { return name.text == segment; });
    if (named != names.end()) {
      named->found = true;
      return path.substr(0, end);
    }
    begin = end + 1;
  }
  return {};
}

/// The layers of each module of these names, one call of torch.utils.checkpoint a module.
GPUMEM_INLINE std::vector<Range> named_modules(const model::ModelGraph& graph, std::span<ModuleName> names,
                                               ModuleNames how) {
  std::vector<Range> modules;
  std::string last;
  for (std::uint32_t index = 0; index < graph.layers().size(); ++index) {
    const bool megatron = how == ModuleNames::megatron;
    const std::string path = megatron ? megatron_path(graph, index) : graph.path(graph.layers()[index]);
    const std::string_view part = named_part(path, names);
    if (!part.empty() && part == last && modules.back().end == index) modules.back().end = index + 1;
    else if (!part.empty()) modules.push_back({index, index + 1});
    last = part;
  }
  return modules;
}

GPUMEM_INLINE core::Error no_module(const model::ModelGraph& graph, std::string_view name) {
  return {core::ErrorCode::missing_information,
          "no module is called " + core::quoted(name) +
              "; give names as the model has them, such as selective:mlp or selective:mlp+self_attn",
          {graph.file(), 0, {}}};
}

/// The parts of the graph that run again.
GPUMEM_INLINE core::Result<std::vector<Range>> parts_of(const model::ModelGraph& graph,
                                                        const model::CheckpointPolicy& policy, ModuleNames how) {
  if (policy.kind == model::Checkpoints::selective_attention) {
    std::vector<Range> parts = attention_layers(graph);
    if (parts.empty()) return no_attention(graph);
    return parts;
  }
  if (policy.kind == model::Checkpoints::selective_modules) {
    std::vector<ModuleName> names = names_of(policy.modules);
    const bool megatron = how == ModuleNames::megatron;
    if (megatron) std::erase_if(names, [](const ModuleName& name) { return discards_output(name.text); });
    std::vector<Range> parts = named_modules(graph, names, how);
    for (const ModuleName& name : names) {
      if (!name.found && !(megatron && is_megatron_module(name.text))) return no_module(graph, name.text);
    }
    return parts;
  }
  std::vector<Range> blocks = blocks_of_all_stacks(graph);
  if (blocks.empty()) return nothing_repeats(graph);
  switch (policy.kind) {
    case model::Checkpoints::first:
    case model::Checkpoints::every:
    case model::Checkpoints::first_of:
    case model::Checkpoints::every_other: return chosen(blocks, policy);
    case model::Checkpoints::joined:
    case model::Checkpoints::joined_every_other: return joined(blocks, policy);
    default: return blocks;
  }
}

}  // namespace checkpoints_detail

GPUMEM_INLINE core::Result<std::vector<Range>> checkpointed(const ForwardPass& pass,
                                                            const model::CheckpointPolicy& policy, ModuleNames names) {
  const core::Result<std::vector<Range>> parts = checkpoints_detail::parts_of(pass.wired.graph(), policy, names);
  if (!parts) return parts.error();
  std::vector<Range> runs;
  std::uint32_t at = 0;
  const auto functions = pass.tape.functions().first(pass.model_functions);
  for (const Range& block : *parts) {
    while (at < functions.size() && functions[at].layer < block.first) ++at;
    const std::uint32_t first = at;
    while (at < functions.size() && functions[at].layer < block.end) ++at;
    if (at > first) runs.push_back({first, at});
  }
  return runs;
}

GPUMEM_INLINE std::vector<std::uint32_t> kept_results(const ops::Tape& tape, const Range& part,
                                                      const model::CheckpointPolicy& policy) {
  std::vector<std::uint32_t> kept;
  if (policy.kind != model::Checkpoints::selective_op) return kept;
  int products = 0;
  for (std::uint32_t index = part.first; index < part.end; ++index) {
    const ops::Function& function = tape.functions()[index];
    const bool multiplies = function.library == ops::Library::gemm || function.library == ops::Library::grouped_gemm;
    const bool product = multiplies && function.parameters.count > 0;
    const bool attention = function.library == ops::Library::none && function.multiply_adds.elements.value() != 0;
    if (product) ++products;
    if (attention || function.reduce_scatters || (product && products % 2 == 1)) kept.push_back(index);
  }
  return kept;
}

namespace checkpoints_detail {

/// A kernel of a library, or attention: nothing is fused with it.
GPUMEM_INLINE bool stands_alone(const ops::Function& function) {
  return function.library != ops::Library::none || function.multiply_adds.elements.value() != 0;
}

/// By tensor: whether it is read by one of the part's backward functions for which `asks` holds, or is the memory of a
/// view that is.
template <typename Asks>
std::vector<bool> saved_in(const ops::Tape& tape, const Range& part, Asks asks) {
  std::vector<bool> saved(tape.tensors().size(), false);
  for (const ops::Function& function : tape.functions().subspan(part.first, part.end - part.first)) {
    if (!asks(function)) continue;
    for (const ops::TensorId id : tape.list(function.saved)) {
      saved[static_cast<std::size_t>(tape.tensor(id).storage)] = true;
    }
  }
  return saved;
}

}  // namespace checkpoints_detail

GPUMEM_INLINE std::vector<std::uint32_t> compiled_results(const ops::Tape& tape, const Range& part) {
  namespace detail = checkpoints_detail;
  const std::vector<bool> read_again = detail::saved_in(tape, part, detail::stands_alone);
  std::vector<std::uint32_t> kept;
  for (std::uint32_t index = part.first; index < part.end; ++index) {
    const ops::Function& function = tape.functions()[index];
    const bool fresh = function.kind == ops::Output::fresh;
    const bool read = fresh && read_again[static_cast<std::size_t>(function.output)];
    if (detail::stands_alone(function) || read) kept.push_back(index);
  }
  return kept;
}

GPUMEM_INLINE std::vector<std::uint32_t> asked_for(const ops::Tape& tape, const Range& part,
                                                   const std::vector<std::uint32_t>& kept) {
  std::vector<bool> needed = checkpoints_detail::saved_in(tape, part, [](const ops::Function&) { return true; });
  std::vector<std::uint32_t> asked;
  for (std::uint32_t index = part.end; index-- > part.first;) {
    const ops::Function& function = tape.functions()[index];
    const auto memory = static_cast<std::size_t>(tape.tensor(function.output).storage);
    const auto extras = tape.list(function.extras);
    const bool reads = needed[memory] || std::any_of(extras.begin(), extras.end(), [&](ops::TensorId id) {
                         return needed[static_cast<std::size_t>(id)];
                       });
    if (!reads) continue;
    if (std::binary_search(kept.begin(), kept.end(), index)) {
      asked.push_back(index);
      continue;
    }
    for (const ops::TensorId input : tape.list(function.inputs)) {
      needed[static_cast<std::size_t>(tape.tensor(input).storage)] = true;
    }
  }
  std::reverse(asked.begin(), asked.end());
  return asked;
}

GPUMEM_INLINE ModuleNames names_of(const model::TrainingJob& job) {
  return job.loop == model::Loop::megatron ? ModuleNames::megatron : ModuleNames::paths;
}

GPUMEM_INLINE core::Result<std::vector<Range>> recomputed_parts(const ForwardPass& pass,
                                                                const model::TrainingJob& job) {
  if (const core::Status swaps = SwappedBlocks::check(pass.wired.graph(), job.block_swap); !swaps) return swaps.error();
  if (job.activation_checkpointing) return checkpointed(pass, job.checkpoints, names_of(job));
  if (!job.compile || repeated_blocks(pass.wired.graph()).empty()) return std::vector<Range>();
  return checkpointed(pass);
}

GPUMEM_INLINE std::vector<std::uint32_t> kept_of_part(const ops::Tape& tape, const Range& part,
                                                      const model::TrainingJob& job) {
  std::vector<std::uint32_t> kept =
      job.activation_checkpointing ? kept_results(tape, part, job.checkpoints) : compiled_results(tape, part);
  return job.compile ? asked_for(tape, part, kept) : kept;
}

GPUMEM_INLINE Recomputation::Recomputation(RunState& state, ForwardCalls& calls, const NameLifetimes& names,
                                           std::span<const Range> blocks, const model::TrainingJob& job)
    : state_(state), calls_(calls), names_(names), offloads_(job.offload == model::Offload::checkpoints) {
  if (blocks.empty()) return;
  block_at_.assign(state.tape().functions().size(), kNoBlock);
  const std::vector<std::uint32_t> name_ends = find_makers();
  for (const Range& run : blocks) find_block(run, name_ends);
  for (Block& block : blocks_) block.kept = kept_of_part(state.tape(), block.run, job);
  results_ = nothing_held().results;
}

GPUMEM_INLINE Recomputation::MicroBatch Recomputation::nothing_held() const {
  MicroBatch begun{state_.nothing_held(), {}};
  for (const Block& block : blocks_) begun.results.emplace_back(block.kept.size());
  return begun;
}

/// Sets `maker_of_`. Returns, for each tensor, the function after which its name ends.
GPUMEM_INLINE std::vector<std::uint32_t> Recomputation::find_makers() {
  const auto functions = state_.tape().functions();
  maker_of_.assign(state_.tape().tensors().size(), kNoFunction);
  std::vector<std::uint32_t> name_ends(state_.tape().tensors().size(), kNoFunction);
  for (std::uint32_t index = 0; index < functions.size(); ++index) {
    maker_of_[static_cast<std::size_t>(functions[index].output)] = index;
    for (const ops::TensorId id : names_.ending_at(index)) name_ends[static_cast<std::size_t>(id)] = index;
  }
  return name_ends;
}

GPUMEM_INLINE void Recomputation::find_block(const Range& run, const std::vector<std::uint32_t>& name_ends) {
  const ops::Tape& tape = state_.tape();
  Block block;
  block.run = run;
  block.last_saver = run.first;
  bool any_saver = false;
  for (std::uint32_t index = run.first; index < run.end; ++index) {
    const ops::Function& function = tape.functions()[index];
    if (saves(function) && !calls_.is_hooked(function)) {
      block.last_saver = index;
      any_saver = true;
    }
    if (name_ends[static_cast<std::size_t>(function.output)] >= run.end) block.outputs.push_back(function.output);
    for (const ops::TensorId input : tape.list(function.inputs)) {
      const bool known = std::find(block.inputs.begin(), block.inputs.end(), input) != block.inputs.end();
      if (!known && !made_in(run, input) && !is_constant(input)) block.inputs.push_back(input);
    }
  }
  if (!any_saver) return;  // nothing in it is trained
  for (std::uint32_t index = run.first; index < run.end; ++index) {
    block_at_[index] = static_cast<std::uint32_t>(blocks_.size());
  }
  blocks_.push_back(std::move(block));
}

GPUMEM_INLINE bool Recomputation::saves(const ops::Function& function) const {
  return state_.requires_grad(function.output) && (function.saved.count > 0 || function.parameters.count > 0);
}

GPUMEM_INLINE bool Recomputation::makes_what_it_saves(const ops::Function& function) const {
  if (function.extras.count > 0) return true;
  const auto saved = state_.tape().list(function.saved);
  return std::find(saved.begin(), saved.end(), function.output) != saved.end();
}

GPUMEM_INLINE bool Recomputation::made_in(const Range& run, ops::TensorId id) const {
  const std::uint32_t maker = maker_of_[static_cast<std::size_t>(id)];
  return maker != kNoFunction && maker >= run.first && maker < run.end;
}

/// Parameters and buffers are held anyway.
GPUMEM_INLINE bool Recomputation::is_constant(ops::TensorId id) const {
  const auto buffers = state_.tape().buffers();
  return state_.is_parameter(id) || std::binary_search(buffers.begin(), buffers.end(), id);
}

GPUMEM_INLINE void Recomputation::hold_inputs(Block& block) {
  ++block.held;
  for (const ops::TensorId input : block.inputs) {
    if (!on_host(input)) state_.hold(input);
  }
}

/// `upto`: the function whose backward asks. What stands behind it in the block has had its backward.
GPUMEM_INLINE void Recomputation::run_again(Block& block, std::uint32_t upto) {
  block.recomputed = true;
  const ops::Tape& tape = state_.tape();
  forget_names(block);
  fetch_inputs(block);
  const auto functions = tape.functions();
  for (std::uint32_t index = block.run.first; index < block.run.end; ++index) {
    const bool hooked = calls_.is_hooked(functions[index]);
    put_aside(block, functions[index].output, hooked);
    for (const ops::TensorId extra : tape.list(functions[index].extras)) put_aside(block, extra, hooked);
  }
  const bool runs_last = makes_what_it_saves(functions[block.last_saver]);
  const std::uint32_t end = block.last_saver + (runs_last ? 1U : 0U);
  for (std::uint32_t index = block.run.first; index < end; ++index) {
    const bool still_asked = index <= upto;
    call_again(block, index, still_asked);
    end_names(block, index, end);
  }
  if (!runs_last && block.last_saver <= upto) calls_.keep_inputs(functions[block.last_saver]);
  for (std::uint32_t index = end; index < block.run.end; ++index) end_names(block, index, end);
  for (const ops::TensorId output : block.outputs) {
    if (maker_of_[static_cast<std::size_t>(output)] < end) state_.let_go(output);
  }
  calls_.end_autocast();
}

/// Names of the second run that end here: only of what it has made.
GPUMEM_INLINE void Recomputation::end_names(const Block& block, std::uint32_t function, std::uint32_t end) {
  for (const ops::TensorId id : names_.ending_at(function)) {
    if (made_in(block.run, id) && maker_of_[static_cast<std::size_t>(id)] < end) state_.let_go(id);
  }
}

GPUMEM_INLINE ForwardCalls::Results* Recomputation::results_in(const Block& block, std::size_t function) {
  if (block.kept.empty()) return nullptr;
  const auto found = std::lower_bound(block.kept.begin(), block.kept.end(), function);
  if (found == block.kept.end() || *found != function) return nullptr;
  return &results_of_block(block)[static_cast<std::size_t>(found - block.kept.begin())];
}

GPUMEM_INLINE ForwardCalls::Results* Recomputation::results_of(std::size_t function) {
  const Block* block = block_of(function);
  return block == nullptr ? nullptr : results_in(*block, function);
}

/// The arguments come back from the host; one that others hold here is not copied again.
GPUMEM_INLINE void Recomputation::fetch_inputs(Block& block) {
  for (const ops::TensorId input : block.inputs) {
    if (!on_host(input)) continue;
    if (state_.slot(input) == kNoSlot) {
      state_.add(input, Category::activation);
    } else {
      state_.hold(input);
    }
  }
  block.fetched = true;
}

/// For results that are kept: their names have ended, unless the block returns them.
GPUMEM_INLINE void Recomputation::forget_names(Block& block) {
  const ops::Tape& tape = state_.tape();
  for (const std::uint32_t index : block.kept) {
    const ops::Function& function = tape.functions()[index];
    const bool handed_out =
        std::find(block.outputs.begin(), block.outputs.end(), function.output) != block.outputs.end();
    if (!handed_out) state_.slot(function.output) = kNoSlot;
    for (const ops::TensorId extra : tape.list(function.extras)) state_.slot(extra) = kNoSlot;
  }
}

GPUMEM_INLINE void Recomputation::call_again(Block& block, std::uint32_t function, bool recorded) {
  const ops::Function& called = state_.tape().functions()[function];
  ForwardCalls::Results* results = results_in(block, function);
  if (results != nullptr && !results->empty()) return calls_.take(called, recorded, *results);
  calls_.run(called, recorded, Thread::backward);
}

GPUMEM_INLINE void Recomputation::put_aside(Block& block, ops::TensorId id, bool hooked) {
  Slot& slot = state_.slot(id);
  if (!state_.owns_its_memory(id) || slot == kNoSlot) return;
  const bool returned = std::find(block.outputs.begin(), block.outputs.end(), id) != block.outputs.end();
  if (!hooked || returned) block.first_run.emplace_back(id, slot);  // else nothing but the hooks has it
  slot = kNoSlot;
}

GPUMEM_INLINE void Recomputation::end(Block& block) {
  for (const auto& [id, slot] : block.first_run) state_.slot(id) = slot;
  block.first_run.clear();
  // Of calls after the last one that backward asks for.
  for (ForwardCalls::Results& results : results_of_block(block)) {
    for (const Slot slot : results) state_.log().drop(slot);
    results.clear();
  }
  for (const ops::TensorId input : block.inputs) {
    const bool here = block.held > 0 && (!on_host(input) || block.fetched);
    if (here) state_.let_go(input);
  }
  block.fetched = false;
  if (block.held > 0) --block.held;
  block.recomputed = false;
}

}  // namespace gpumem::plan
