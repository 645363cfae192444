#pragma once

#include "gpumem/job/lengths.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/deadline.hpp"

namespace gpumem::job {

namespace lengths_detail {

inline constexpr std::int64_t kLongest = std::int64_t{1} << 31;
inline constexpr std::int64_t kMostSamples = std::int64_t{1} << 53;  // which a double counts

GPUMEM_INLINE std::optional<std::int64_t> whole(std::string_view word, std::int64_t most) {
  const std::optional<std::int64_t> value = core::parse_whole(word);
  return value && *value >= 1 && *value <= most ? value : std::nullopt;
}

/// The next word of a line; empty at its end.
GPUMEM_INLINE std::string_view next_word(std::string_view& line) {
  constexpr std::string_view kBetween = " \t\r,;";
  const std::size_t begin = std::min(line.find_first_not_of(kBetween), line.size());
  line.remove_prefix(begin);
  const std::size_t end = std::min(line.find_first_of(kBetween), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

/// "512" or "512x40"; `next` may be the count. Nothing: neither.
GPUMEM_INLINE std::optional<LengthCount> read_count(std::string_view word, std::string_view next) {
  const std::size_t times = word.find('x');
  const auto length = whole(word.substr(0, times), kLongest);
  if (!length) return std::nullopt;
  if (times != std::string_view::npos) next = word.substr(times + 1);
  if (next.empty() && times == std::string_view::npos) return LengthCount{*length, 1};
  const auto count = whole(next, kMostSamples);
  return count ? std::optional(LengthCount{*length, *count}) : std::nullopt;
}

GPUMEM_INLINE core::Error wrong(std::string message, std::int64_t line = 0) {
  return {line == 0 ? core::ErrorCode::invalid_argument : core::ErrorCode::malformed_input,
          std::move(message),
          {{}, line, {}}};
}

/// log C(all, drawn).
GPUMEM_INLINE double log_choose(double all, double drawn) {
  return std::lgamma(all + 1.0) - std::lgamma(drawn + 1.0) - std::lgamma(all - drawn + 1.0);
}

/// The smallest length with at least this share of all draws of `drawn` of `lengths` no longer; of all draws, that is
/// the longest. Logarithms round, so shares that are alike to twelve digits are equal.
GPUMEM_INLINE std::int64_t reached(const std::vector<LengthCount>& lengths, double drawn, double share) {
  constexpr double kRounding = 1e-12;
  double all = 0.0;
  for (const LengthCount& one : lengths) all += static_cast<double>(one.count);
  double among = 0.0;
  for (const LengthCount& one : lengths) {
    among += static_cast<double>(one.count);
    if (among < drawn || among >= all || share >= 1.0) continue;
    if (std::exp(log_choose(among, drawn) - log_choose(all, drawn)) >= share - kRounding) return one.length;
  }
  return lengths.back().length;
}

/// Batches of a sorted data set, each by its longest sample.
GPUMEM_INLINE std::vector<LengthCount> in_batches(const std::vector<LengthCount>& lengths, std::int64_t batch) {
  std::vector<LengthCount> batches;
  std::int64_t free = 0;                                 // places in the last batch that was begun
  for (std::size_t at = lengths.size(); at > 0; --at) {  // the longest first
    const LengthCount& one = lengths[at - 1];
    const std::int64_t left = one.count - std::min(free, one.count);
    free -= one.count - left;
    if (left == 0) continue;
    const std::int64_t begun = left / batch + (left % batch == 0 ? 0 : 1);
    batches.push_back({one.length, begun});
    free = begun * batch - left;
  }
  std::reverse(batches.begin(), batches.end());
  return batches;
}

GPUMEM_INLINE std::int64_t padded(std::int64_t length, std::int64_t to) { return (length + to - 1) / to * to; }

}  // namespace lengths_detail

GPUMEM_INLINE core::Result<std::vector<LengthCount>> parse_lengths(std::string_view text) {
  namespace detail = lengths_detail;
  std::map<std::int64_t, std::int64_t> counts;
  core::Checked samples = 0;
  core::Pace pace;
  for (std::int64_t line = 1; !text.empty(); ++line) {
    if (pace.late()) return core::deadline_error();
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view rest = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string_view word = detail::next_word(rest);
    if (word.empty() || word.front() == '#') continue;
    const auto one = detail::read_count(word, detail::next_word(rest));
    if (!one || !detail::next_word(rest).empty()) {
      return detail::wrong("a line of lengths has one whole number of tokens, or that and how many samples have it",
                           line);
    }
    samples += one->count;
    if (!samples.valid() || samples.value().value_or(0) > detail::kMostSamples) {
      return detail::wrong("there are more samples than can be counted", line);
    }
    counts[one->length] += one->count;
  }
  if (counts.empty()) return detail::wrong("there are no lengths", 1);
  std::vector<LengthCount> lengths;
  lengths.reserve(counts.size());
  for (const auto& [length, count] : counts) lengths.push_back({length, count});
  return lengths;
}

GPUMEM_INLINE core::Result<LengthOptions> parse_length_options(std::string_view text) {
  namespace detail = lengths_detail;
  LengthOptions options;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view one = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    if (one.empty()) continue;
    const std::size_t equal = std::min(one.find('='), one.size());
    const std::string_view name = one.substr(0, equal);
    const std::string_view value = one.substr(std::min(equal + 1, one.size()));
    const auto number = detail::whole(value, detail::kLongest);
    bool taken = false;
    if (name == "batching") {
      taken = value == "random" || value == "sorted" || value == "packed";
      options.batching = value == "sorted" ? Batching::sorted : value == "packed" ? Batching::packed : Batching::random;
    } else if (name == "pad_to" && number) {
      taken = true;
      options.pad_to = *number;
    } else if (name == "steps" && number) {
      taken = true;
      options.steps = number;
    } else if (name == "percentile") {
      options.percentile = core::parse_number(value).value_or(0.0);
      taken = options.percentile > 0.0 && options.percentile <= 100.0;
    }
    if (taken) continue;
    return detail::wrong("the setting " + core::quoted(one) +
                         " of lengths is none of batching=random, batching=sorted, batching=packed, pad_to=8, "
                         "steps=500 and percentile=99 (above 0, at most 100)");
  }
  return options;
}

GPUMEM_INLINE core::Result<LongestBatch> longest_batch(const std::vector<LengthCount>& lengths,
                                                       const LengthOptions& options, const Draws& draws,
                                                       std::optional<std::int64_t> longest) {
  namespace detail = lengths_detail;
  std::vector<LengthCount> cut;
  core::Checked samples = 0;
  core::Checked tokens = 0;
  for (const LengthCount& one : lengths) {
    const std::int64_t length = std::min(one.length, longest.value_or(one.length));
    samples += one.count;
    tokens += core::Checked(one.count) * core::Checked(one.length);
    if (!cut.empty() && cut.back().length == length) cut.back().count += one.count;
    else cut.push_back({length, one.count});
  }
  const std::int64_t all = samples.value().value_or(detail::kMostSamples);
  const core::Checked a_step = core::Checked(draws.batch_size) * core::Checked(draws.batches);
  const std::int64_t in_a_step = std::max<std::int64_t>(a_step.value().value_or(detail::kMostSamples), 1);
  LongestBatch found;
  found.steps = options.steps.value_or(all / in_a_step + (all % in_a_step == 0 ? 0 : 1));
  if (options.batching == Batching::packed) {
    if (!longest) {
      return detail::wrong("samples are packed to one length, which is not given; say `seq_length=4096`");
    }
    found.peak = std::min(*longest, tokens.value().value_or(*longest));
    found.usual = found.nearly_all = found.peak;
    return found;
  }
  const bool sorted = options.batching == Batching::sorted;
  const std::vector<LengthCount> drawn = sorted ? detail::in_batches(cut, draws.batch_size) : cut;
  const double of_a_batch = sorted ? 1.0 : static_cast<double>(std::min(draws.batch_size, all));
  const double batches = static_cast<double>(found.steps) * static_cast<double>(draws.batches);
  const auto length = [&](double count, double share) {
    return detail::padded(detail::reached(drawn, count, share), options.pad_to);
  };
  found.peak = length(of_a_batch * batches, options.percentile / 100.0);
  found.usual = length(of_a_batch, 0.5);
  found.nearly_all = length(of_a_batch, 0.99);
  found.padded = draws.batch_size > 1 && cut.size() > 1;
  return found;
}

GPUMEM_INLINE void take_any_batch(JobRequest& request) {
  request.training.batch_size = 1;
  if (request.lengths.empty()) return;
  request.training.batch_size = 2;  // only a batch of several samples is padded
  request.lengths_options += ",percentile=100";
}

}  // namespace gpumem::job
