// Input: any bytes.
// Output: nothing, or the process ends if the library breaks a promise.
// All fuzz targets share this. Each is one file with one GPUMEM_FUZZ_TARGET of the file's name; libfuzzer.cpp feeds it
// mutations, replay.cpp the stored files of corpus/ and regressions/. One program holds all of them: it is linked once.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "gpumem/all.hpp"
#include "gpumem/summary/graph_json.hpp"

namespace gpumem::fuzz {

/// Runs one input; true if the library accepted it, so that a replay can tell a seed from noise.
using Target = bool (*)(std::string_view input);

/// The targets that this program holds, by name.
inline std::map<std::string_view, Target>& targets() {
  static std::map<std::string_view, Target> all;
  return all;
}

/// The target of that name. A program asked for one that it does not hold ends with 1, and says so.
inline Target target_named(const char* name) {
  const auto found = name == nullptr ? targets().end() : targets().find(name);
  if (found != targets().end()) return found->second;
  std::fprintf(stderr, "fuzz: there is no target '%s'; there are:", name == nullptr ? "" : name);
  for (const auto& [other, target] : targets()) std::fprintf(stderr, " %s", std::string(other).c_str());
  std::fprintf(stderr, "\n");
  std::exit(1);
}

inline void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: broken promise: %s\n", promise);
  std::abort();
}

/// An error is one line for people: it says something, stays short whatever the input, points into the input, and
/// carries none of its control bytes to a terminal.
inline void require_readable(const Error& error, std::string_view input) {
  constexpr std::size_t kLongest = 2000;
  const std::string text = core::to_string(error);
  const auto control = [](char byte) { return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F; };
  require(!error.message.empty(), "an error has a message");
  require(text.size() <= kLongest, "an error stays short");
  require(std::none_of(text.begin(), text.end(), control), "an error holds no control bytes");
  require(error.place.line >= 0 && error.place.line <= 1 + std::count(input.begin(), input.end(), '\n'),
          "an error names a line of the input");
}

inline Result<MemoryEstimate> estimate(const TrainingJob& job) {
  static const estimate::Horus horus;
  static const GpuProfile gpu = [] {
    GpuProfile profile;
    profile.name = "fuzzed";
    profile.memory_bytes.value = std::int64_t{16} << 30;
    return profile;
  }();
  return horus.estimate(job, gpu);
}

inline void require_sound(const Result<MemoryEstimate>& result, const TrainingJob& job, std::string_view input) {
  if (!result) return require_readable(result.error(), input);
  const MemoryEstimate& found = *result;
  for (const auto& part : found.breakdown.parts()) require(part.bytes.count() >= 0, "no part is negative");
  require(found.breakdown.total().value() == found.expected.count(), "the parts sum to the expected figure");
  require(found.lower <= found.expected && found.expected <= found.upper, "lower <= expected <= upper");
  require(found.coverage.layers_total == static_cast<std::int64_t>(job.graph->layers().size()),
          "coverage counts every layer");
}

/// Containers above all layers together, counted up to `most`: the length of what to_graph_json() writes of them.
inline std::size_t scopes_above(const ModelGraph& graph, std::size_t most) {
  std::size_t count = 0;
  for (const model::Layer& layer : graph.layers()) {
    for (std::uint32_t at = layer.scope; at != 0 && count <= most; at = graph.scope(at).parent) ++count;
  }
  return count;
}

/// What graph JSON writes, it reads, and a graph estimates alike before and after.
inline void require_round_trip(const TrainingJob& job, const Result<MemoryEstimate>& before) {
  // A line of graph JSON names every container above its layer, so a file of a deep tree is long by its nature.
  constexpr std::size_t kMostScopes = 200'000;
  if (scopes_above(*job.graph, kMostScopes) > kMostScopes) return;
  const std::string text = to_graph_json(*job.graph);
  auto again = summary::graph_json().parse(text, 0, {&ops::vocabulary()});
  require(again.has_value(), "graph JSON reads what it wrote");
  require(to_graph_json(*again) == text, "graph JSON writes the same graph twice alike");
  require(again->parameters() == job.graph->parameters(), "parameters survive the round trip");
  TrainingJob second = job;
  second.graph = std::make_shared<const ModelGraph>(*std::move(again));
  const Result<MemoryEstimate> after = estimate(second);
  require(before.has_value() == after.has_value(), "a graph can be estimated after the round trip as before");
  require(!before || before->expected == after->expected, "the estimate survives the round trip");
}

/// Everything that may be asked about a model that was read, or of the error that came instead.
inline bool require_sound(Result<ModelGraph> graph, std::string_view input) {
  if (!graph) {
    require_readable(graph.error(), input);
    return false;
  }
  require(!graph->layers().empty(), "a model has layers");
  for (const model::Warning& warning : graph->warnings()) {
    require_readable({ErrorCode::malformed_input, warning.message, warning.place}, input);
  }
  constexpr std::int64_t kBatch = 32;
  TrainingJob job(*std::move(graph), kBatch);
  require_sound(estimate(job), job, input);
  job.input_shape = {3, 64, 64};
  job.sequence_length = 16;
  const Result<MemoryEstimate> found = estimate(job);
  require_sound(found, job, input);
  if (job.graph->recording() == nullptr) require_round_trip(job, found);
  job.batch_size = INT64_MAX;
  require_sound(estimate(job), job, input);
  return true;
}

/// Reads the input as this format and no other, strictly and leniently.
inline bool read_as(const summary::Format& format, std::string_view input) {
  const auto begin = format.sniff(input, 0);
  if (!begin) return false;
  require(*begin <= input.size(), "a summary begins within the text");
  const bool strict = require_sound(format.parse(input, *begin, {&ops::vocabulary()}), input);
  const bool lenient = require_sound(format.parse(input, *begin, {&ops::vocabulary(), "fuzzed", true}), input);
  require(lenient || !strict, "what reads strictly reads leniently");
  return lenient;
}

}  // namespace gpumem::fuzz

/// Defines a target, as GoogleTest's TEST defines a test: GPUMEM_FUZZ_TARGET(name) { ... return accepted; }, where
/// `input` is the std::string_view to run.
#define GPUMEM_FUZZ_TARGET(name)                                                                      \
  namespace gpumem::fuzz {                                                                            \
  bool fuzz_##name(std::string_view input);                                                           \
  [[maybe_unused]] static const bool name##_is_listed = targets().emplace(#name, fuzz_##name).second; \
  }                                                                                                   \
  bool gpumem::fuzz::fuzz_##name(std::string_view input)
