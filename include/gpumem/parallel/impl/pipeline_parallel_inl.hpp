#pragma once

#include "gpumem/parallel/pipeline_parallel.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gpumem/parallel/sharing.hpp"

namespace gpumem::parallel {

namespace stage_text_detail {

/// Beyond what anybody writes.
inline constexpr std::size_t kMostLetters = std::size_t{1} << 20;

/// The number from `at` on; `at` moves past it. Nothing: there is none, or it is too large.
GPUMEM_INLINE std::optional<std::int64_t> number_at(std::string_view text, std::size_t& at) {
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  const std::size_t first = at;
  std::int64_t value = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    value = value * 10 + (text[at] - '0');
    if (value > kMost) return std::nullopt;
  }
  return at == first ? std::nullopt : std::optional(value);
}

GPUMEM_INLINE std::optional<std::vector<std::int64_t>> list_of(std::string_view text) {
  std::vector<std::int64_t> layers;
  for (std::size_t at = 0;; ++at) {
    const auto number = number_at(text, at);
    if (!number) return std::nullopt;
    layers.push_back(*number);
    if (at == text.size()) return layers;
    if (text[at] != ',') return std::nullopt;
  }
}

/// Every (..)*3, or, with `groups` false, every x*3, is written out.
GPUMEM_INLINE std::optional<std::string> written_out(std::string_view text, bool groups) {
  std::string whole;
  for (std::size_t at = 0; at < text.size();) {
    const bool opens = groups && text[at] == '(';
    const std::size_t close = opens ? text.find(')', at) : at;
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view part = opens ? text.substr(at + 1, close - at - 1) : text.substr(at, 1);
    at = close + 1;
    std::int64_t times = 1;
    const bool repeats = (opens || !groups) && at < text.size() && text[at] == '*';
    if (opens && !repeats) return std::nullopt;
    if (repeats) {
      const auto number = number_at(text, ++at);
      if (!number) return std::nullopt;
      times = *number;
    }
    for (std::int64_t time = 0; time < times && !part.empty(); ++time) {
      if (whole.size() + part.size() > kMostLetters) return std::nullopt;
      whole += part;
    }
  }
  return whole;
}

}  // namespace stage_text_detail

GPUMEM_INLINE std::optional<std::vector<std::int64_t>> layers_of_stages(std::string_view text) {
  if (auto list = stage_text_detail::list_of(text)) return list;
  std::string plain(text);
  std::erase(plain, ',');
  const auto grouped = stage_text_detail::written_out(plain, true);
  const auto whole = grouped ? stage_text_detail::written_out(*grouped, false) : std::nullopt;
  if (!whole || whole->empty()) return std::nullopt;
  std::vector<std::int64_t> layers(1, 0);
  for (const char letter : *whole) {
    if (letter == '|') layers.push_back(0);
    else if (letter == 't') ++layers.back();
    else if (letter != 'E' && letter != 'L' && letter != 'm') return std::nullopt;
  }
  return layers;
}

namespace pipeline_parallel_detail {

using connect::Range;

/// Whether a parameter has a part in what each layer leaves: then it is computed once, and sent.
GPUMEM_INLINE std::vector<bool> trained_layers(const connect::WiredGraph& wired) {
  const auto layers = wired.graph().layers();
  std::vector<bool> trained(layers.size(), false);
  for (std::size_t at = 0; at < layers.size(); ++at) {
    const auto inputs = wired.inputs(at);
    trained[at] = layers[at].parameters > 0 || std::any_of(inputs.begin(), inputs.end(), [&](model::LayerIndex input) {
                    return input >= 0 && trained[static_cast<std::size_t>(input)];
                  });
  }
  return trained;
}

/// The blocks of each stage where the first or the last rank has a number of its own; none: they cannot be shared so.
GPUMEM_INLINE std::vector<std::int64_t> blocks_as_said(const model::RunSettings& run, const model::Layout& layout,
                                                       std::int64_t all) {
  const std::int64_t ranks = layout.pipeline_parallel;
  const std::int64_t chunks = layout.virtual_stages;
  for (const auto& own : {run.first_stage_blocks, run.last_stage_blocks}) {
    if (own && (*own < 0 || *own > all)) return {};
  }
  const std::int64_t others = ranks - (run.first_stage_blocks ? 1 : 0) - (run.last_stage_blocks ? 1 : 0);
  const std::int64_t rest = all - run.first_stage_blocks.value_or(0) - run.last_stage_blocks.value_or(0);
  if (rest < 0 || (others == 0 ? rest != 0 : rest == 0 || rest % (others * chunks) != 0)) return {};
  std::vector<std::int64_t> blocks;
  for (std::int64_t stage = 0; stage < ranks * chunks; ++stage) {
    const std::int64_t rank = rank_of_stage(layout, stage);
    const std::optional<std::int64_t> own = rank == 0           ? run.first_stage_blocks
                                            : rank == ranks - 1 ? run.last_stage_blocks
                                                                : std::nullopt;
    if (own && *own % chunks != 0) return {};
    blocks.push_back(own ? *own / chunks : rest / (others * chunks));
  }
  return blocks;
}

/// torchtitan's: what is left over goes to the first stages, one each. The first stage has the embedding in place of a
/// block, the last one norm and head.
GPUMEM_INLINE std::vector<std::int64_t> unevenly(std::int64_t counted, std::int64_t count) {
  std::vector<std::int64_t> blocks(static_cast<std::size_t>(count), counted / count);
  for (std::int64_t stage = 0; stage < counted % count; ++stage) ++blocks[static_cast<std::size_t>(stage)];
  return blocks;
}

/// The settings of the model's source, where the job's options do not say otherwise.
GPUMEM_INLINE model::RunSettings settings_of(model::RunSettings run, const model::Layout& layout) {
  const bool given = !layout.pipeline_layers.empty() || layout.first_stage_layers || layout.last_stage_layers;
  if (!given) return run;
  run.pipeline_layers = layout.pipeline_layers;
  run.first_stage_blocks = layout.first_stage_layers;
  run.last_stage_blocks = layout.last_stage_layers;
  run.embedding_counts = run.head_counts = false;
  return run;
}

/// The blocks of each stage, of which each rank has every pipeline_parallel-th; none: they cannot be shared.
/// Source: Megatron-LM core r0.12, core/transformer/transformer_block.py: get_num_layers_to_build().
GPUMEM_INLINE std::vector<std::int64_t> blocks_by(const model::RunSettings& run, const model::Layout& layout,
                                                  std::int64_t all, Shares shares) {
  if (!run.pipeline_layers.empty()) return layers_of_stages(run.pipeline_layers).value_or(std::vector<std::int64_t>());
  if (layout.pipeline_parallel > 1 && (run.first_stage_blocks || run.last_stage_blocks))
    return blocks_as_said(run, layout, all);
  const std::int64_t count = layout.pipeline_parallel * layout.virtual_stages;
  const bool even = all % count == 0 || shares == Shares::even || run.embedding_counts || run.head_counts;
  const std::int64_t before = run.embedding_counts || !even ? 1 : 0;
  const std::int64_t behind = run.head_counts || !even ? 1 : 0;
  const std::int64_t counted = all + before + behind;
  if (even && counted % count != 0) return {};
  std::vector<std::int64_t> blocks = unevenly(counted, count);
  blocks.front() -= before;
  blocks.back() -= behind;
  return blocks;
}

/// How many of the items each part has where parts in a row differ least in weight, the heaviest from the lightest.
/// Source: DeepSpeed 0.18, runtime/utils.py (partition_balanced).
GPUMEM_INLINE std::vector<std::int64_t> balanced(const std::vector<double>& weights, std::int64_t parts) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  struct Best {
    double most = kNever;
    double least = kNever;
    double cost = kNever;
    std::size_t first = 0;
  };
  const std::size_t count = weights.size();
  const auto most = static_cast<std::size_t>(parts);
  std::vector<double> sums(count + 1, 0.0);
  std::partial_sum(weights.begin(), weights.end(), sums.begin() + 1);
  std::vector<Best> best((count + 1) * (most + 1));
  const auto of = [&](std::size_t items, std::size_t part) -> Best& { return best[items * (most + 1) + part]; };
  of(0, 0) = {0.0, kNever, 0.0, 0};
  for (std::size_t items = 1; items <= count; ++items) {
    for (std::size_t part = 1; part <= std::min(items, most); ++part) {
      for (std::size_t first = 0; first < items; ++first) {
        const double own = sums[items] - sums[first];
        const double heaviest = std::max(of(first, part - 1).most, own);
        const double lightest = std::min(of(first, part - 1).least, own);
        if (of(items, part).cost >= heaviest - lightest) {
          of(items, part) = {heaviest, lightest, heaviest - lightest, first};
        }
      }
    }
  }
  std::vector<std::int64_t> shares(most, 0);
  for (std::size_t part = most, end = count; part > 0; --part) {
    const std::size_t first = of(end, part).first;
    shares[part - 1] = static_cast<std::int64_t>(end - first);
    end = first;
  }
  return shares;
}

/// DeepSpeed's stages have as many parameters each: what comes before the blocks and what comes after them are layers,
/// too, of the first and the last stage. Source: DeepSpeed 0.18, runtime/pipe/module.py (partition_method=parameters).
GPUMEM_INLINE std::vector<std::int64_t> by_parameters(const connect::WiredGraph& wired,
                                                      const std::vector<Range>& blocks, std::int64_t stages) {
  const auto layers = wired.graph().layers();
  const auto weight = [&](std::size_t first, std::size_t end) {
    double sum = 0.0;
    for (std::size_t at = first; at < end; ++at) sum += static_cast<double>(layers[at].parameters);
    return sum;
  };
  std::vector<double> weights = {weight(0, blocks.front().first)};
  for (const Range& block : blocks) weights.push_back(weight(block.first, block.end));
  weights.push_back(weight(blocks.back().end, layers.size()));
  std::vector<std::int64_t> shares = balanced(weights, stages);
  --shares.front();
  --shares.back();
  return shares;
}

/// Whether so many stages share the blocks by their parameters: nobody says how many layers each has. What many more
/// layers and stages than any model has would take is too long.
GPUMEM_INLINE bool shares_parameters(const model::RunSettings& run, std::int64_t all, std::int64_t stages,
                                     Shares shares) {
  constexpr std::int64_t kMostLayers = 1024;
  constexpr std::int64_t kMostSteps = std::int64_t{1} << 22;
  const bool said = !run.pipeline_layers.empty() || run.first_stage_blocks || run.last_stage_blocks;
  return shares == Shares::by_parameters && !said && all <= kMostLayers && stages <= all &&
         all * all * stages <= kMostSteps;
}

/// Options with which so many stages, or fewer, share the blocks.
GPUMEM_INLINE std::string shares_to_say(std::int64_t blocks, std::int64_t stages) {
  constexpr std::int64_t kMostNumbers = 32;
  if (stages > blocks || stages > kMostNumbers) {
    return "`pipeline_parallel=" + std::to_string(std::gcd(blocks, stages)) + "` without `virtual_stages`";
  }
  std::string layers;
  for (const std::int64_t of_stage : unevenly(blocks, stages)) {
    layers += (layers.empty() ? "" : ",") + std::to_string(of_stage);
  }
  return "`pipeline_layers=" + layers + "`";
}

GPUMEM_INLINE core::Error cannot_share(std::int64_t blocks, const model::RunSettings& run, std::int64_t stages,
                                       std::string_view file) {
  const std::string ways = " repeated blocks, which " + std::to_string(stages) + " pipeline stages cannot share ";
  const bool said = !run.pipeline_layers.empty();
  return {core::ErrorCode::invalid_argument,
          "has " + std::to_string(blocks) + ways +
              (said ? "as " + core::quoted(core::shortened(run.pipeline_layers, 60)) +
                          " says; give each stage's layers (`pipeline_layers=15,16,15`), as many numbers as "
                          "`pipeline_parallel` times `virtual_stages`, which add up to the blocks"
                    : "evenly; say " + shares_to_say(blocks, stages)),
          {std::string(file), 0, {}}};
}

/// Whether these are the blocks of so many stages: only the first and the last one may do without.
GPUMEM_INLINE bool are_shares(const std::vector<std::int64_t>& shares, std::int64_t stages, std::int64_t all) {
  if (static_cast<std::int64_t>(shares.size()) != stages) return false;
  std::int64_t sum = 0;
  for (std::size_t stage = 0; stage < shares.size(); ++stage) {
    const bool end = stage == 0 || stage + 1 == shares.size();
    if (shares[stage] < (end ? 0 : 1)) return false;
    sum += shares[stage];
  }
  return sum == all;
}

/// The runs of layers of the stages on one rank.
GPUMEM_INLINE core::Result<std::vector<Range>> stages_of(const connect::WiredGraph& wired, const model::Layout& layout,
                                                         std::int64_t rank, Shares how) {
  const std::vector<Range> blocks = connect::repeated_blocks(wired.graph());
  if (blocks.empty()) {
    return core::Error{core::ErrorCode::missing_information,
                       "a pipeline's stages are made of a model's repeated blocks, and this model shows none",
                       {wired.graph().file(), 0, {}}};
  }
  const std::int64_t count = layout.pipeline_parallel * layout.virtual_stages;
  const auto all = static_cast<std::int64_t>(blocks.size());
  const model::RunSettings run = settings_of(wired.graph().run_settings(), layout);
  const std::vector<std::int64_t> shares =
      shares_parameters(run, all, count, how) ? by_parameters(wired, blocks, count) : blocks_by(run, layout, all, how);
  if (!are_shares(shares, count, all)) return cannot_share(all, run, count, wired.graph().file());
  std::vector<Range> stages;
  std::int64_t first = 0;
  for (std::int64_t stage = 0; stage < count; ++stage) {
    const std::int64_t end = first + shares[static_cast<std::size_t>(stage)];
    if (rank_of_stage(layout, stage) == rank) {
      const std::uint32_t behind = end == 0 ? blocks.front().first : blocks[static_cast<std::size_t>(end) - 1].end;
      Range range{first == all ? behind : blocks[static_cast<std::size_t>(first)].first, behind};
      if (stage == 0) range.first = 0;
      if (stage + 1 == count) range.end = static_cast<std::uint32_t>(wired.graph().layers().size());
      stages.push_back(range);
    }
    first = end;
  }
  return stages;
}

}  // namespace pipeline_parallel_detail

GPUMEM_INLINE std::vector<std::int64_t> blocks_of_ranks(std::int64_t blocks, const model::Layout& layout,
                                                        Shares shares) {
  namespace detail = pipeline_parallel_detail;
  const std::vector<std::int64_t> stages = detail::blocks_by(detail::settings_of({}, layout), layout, blocks, shares);
  if (!detail::are_shares(stages, layout.pipeline_parallel * layout.virtual_stages, blocks)) return {};
  std::vector<std::int64_t> of_ranks(static_cast<std::size_t>(layout.pipeline_parallel), 0);
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    of_ranks[static_cast<std::size_t>(rank_of_stage(layout, static_cast<std::int64_t>(stage)))] += stages[stage];
  }
  return of_ranks;
}

GPUMEM_INLINE bool stages_are_alike(const connect::WiredGraph& wired) {
  const model::RunSettings& run = wired.graph().run_settings();
  return !run.first_stage_blocks && !run.last_stage_blocks && !run.embedding_counts && !run.head_counts &&
         run.pipeline_layers.empty();
}

GPUMEM_INLINE Shares shares_of(const model::TrainingJob& job) {
  if (job.loop == model::Loop::megatron) return Shares::even;
  return job.layout.sharding.kind == model::Shardings::zero_1 ? Shares::by_parameters : Shares::uneven;
}

GPUMEM_INLINE std::vector<std::size_t> modules_called(const model::ModelGraph& graph) {
  struct Turns {
    std::vector<std::size_t> owners;  ///< the first call of each module
    std::size_t calls = 0;
  };
  const auto layers = graph.layers();
  std::unordered_map<std::string, std::size_t> first_of_path;
  std::unordered_map<std::string, Turns> in_turn;
  std::vector<std::size_t> modules(layers.size());
  for (std::size_t at = 0; at < layers.size(); ++at) {
    modules[at] = at;
    if (layers[at].parameters == 0) continue;
    std::string path = graph.path(layers[at]);
    const auto [known, fresh] = first_of_path.try_emplace(path, at);
    if (fresh) {
      std::erase_if(path, [](char letter) { return letter >= '0' && letter <= '9'; });
      Turns& turns = in_turn[path];
      if (layers[at].tied_parameters == 0) turns.owners.push_back(at);
      else if (!turns.owners.empty()) known->second = turns.owners[turns.calls % turns.owners.size()];
      ++turns.calls;
    }
    modules[at] = known->second;
  }
  return modules;
}

GPUMEM_INLINE core::Result<StageLayers> stage_layers(const connect::WiredGraph& wired, const model::Layout& layout,
                                                     std::int64_t stage, Shares shares) {
  const auto count = wired.graph().layers().size();
  StageLayers found;
  found.has.assign(count, true);
  found.stages = {{0, static_cast<std::uint32_t>(count)}};
  if (layout.pipeline_parallel == 1) return found;
  core::Result<std::vector<connect::Range>> stages = pipeline_parallel_detail::stages_of(wired, layout, stage, shares);
  if (!stages) return stages.error();
  found.stages = *std::move(stages);
  found.trained = pipeline_parallel_detail::trained_layers(wired);
  found.has.assign(count, false);
  for (const connect::Range& range : found.stages) {
    std::fill(found.has.begin() + range.first, found.has.begin() + range.end, true);
  }
  for (std::size_t at = count; at-- > 0;) {
    if (!found.has[at]) continue;
    for (const model::LayerIndex input : wired.inputs(at)) {
      if (input < 0 || found.trained[static_cast<std::size_t>(input)]) continue;
      found.has[static_cast<std::size_t>(input)] = true;
    }
  }
  return found;
}

GPUMEM_INLINE std::int64_t stage_of_rank(const model::Layout& layout) {
  if (layout.rank.kind == model::Ranks::last) return layout.pipeline_parallel - 1;
  if (layout.rank.kind != model::Ranks::one) return 0;
  const std::int64_t a_stage = layout.data_parallel * layout.tensor_parallel * layout.context_parallel;
  return std::min(layout.rank.count / a_stage, layout.pipeline_parallel - 1);
}

GPUMEM_INLINE std::string rank_text(const model::Layout& layout) {
  const std::int64_t a_stage = layout.data_parallel * layout.tensor_parallel * layout.context_parallel;
  const std::int64_t world = a_stage * layout.pipeline_parallel;
  const bool splits = layout.data_parallel != world || layout.expert_parallel > 1;
  if (!splits) return {};
  const std::int64_t stage = stage_of_rank(layout);
  const bool named = layout.rank.kind == model::Ranks::one;
  const std::string rank = std::to_string(named ? layout.rank.count : (stage + 1) * a_stage - 1);
  if (layout.pipeline_parallel == 1) return "rank " + rank + " of " + std::to_string(world) + "; all ranks are alike";
  return "rank " + rank + " of " + std::to_string(world) + ": pipeline stage " + std::to_string(stage + 1) + " of " +
         std::to_string(layout.pipeline_parallel);
}

GPUMEM_INLINE std::vector<model::Rank> ranks_of_stages(const model::Layout& layout) {
  const std::int64_t a_stage = layout.data_parallel * layout.tensor_parallel * layout.context_parallel;
  std::vector<model::Rank> ranks;
  ranks.reserve(static_cast<std::size_t>(layout.pipeline_parallel));
  for (std::int64_t stage = 0; stage < layout.pipeline_parallel; ++stage) {
    ranks.push_back({model::Ranks::one, stage * a_stage});
  }
  return ranks;
}

GPUMEM_INLINE std::vector<model::Rank> ranks_to_compare(const model::TrainingJob& job) {
  const model::Layout& layout = job.layout;
  const bool given = !layout.pipeline_layers.empty() || layout.first_stage_layers || layout.last_stage_layers ||
                     (job.graph != nullptr && !job.graph->run_settings().pipeline_layers.empty());
  if (given || shares_of(job) == Shares::by_parameters) return ranks_of_stages(layout);
  const std::int64_t a_stage = layout.data_parallel * layout.tensor_parallel * layout.context_parallel;
  std::vector<model::Rank> ranks;
  for (const std::int64_t stage : {std::int64_t{0}, std::int64_t{1}, layout.pipeline_parallel - 1}) {
    const model::Rank rank{model::Ranks::one, stage * a_stage};
    const bool known = std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
    if (stage < layout.pipeline_parallel && !known) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace gpumem::parallel
