// Lengths of samples, and what is asked of them: the first line is the settings.
#include "gpumem/job/lengths.hpp"

#include "fuzz.hpp"

GPUMEM_FUZZ_TARGET(lengths) {
  const std::size_t end = std::min(input.find('\n'), input.size());
  const auto options = job::parse_length_options(input.substr(0, end));
  if (!options) {
    require_readable(options.error(), input);
    return false;
  }
  const auto lengths = job::parse_lengths(input.substr(std::min(end + 1, input.size())));
  if (!lengths) {
    require_readable(lengths.error(), input);
    return false;
  }
  require(std::ranges::is_sorted(*lengths, {}, &job::LengthCount::length), "lengths ascend");
  constexpr std::int64_t kCut = 4096;
  for (const std::int64_t batch : {std::int64_t{1}, std::int64_t{7}, std::int64_t{1} << 40}) {
    const auto found = job::longest_batch(*lengths, *options, {batch, 3}, kCut);
    require(found.has_value(), "lengths that are cut have a longest batch");
    require(found->peak >= 1 && found->usual <= found->nearly_all, "longer shares are no shorter");
    require(found->peak < kCut + options->pad_to, "no batch is longer than samples are cut to, and padded");
  }
  return true;
}
