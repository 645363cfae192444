#include <cmath>
#include <numbers>
#include <numeric>

#include "shuffle.hpp"
#include "train_network.hpp"

namespace gpumem::train {

std::vector<std::vector<std::int64_t>> batches_of(std::int64_t count, std::int64_t size, std::uint64_t seed,
                                                  std::int64_t epoch) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  Random random(seed, static_cast<std::uint64_t>(epoch));
  shuffle(order, random);
  std::vector<std::vector<std::int64_t>> batches;
  for (std::int64_t first = 0; first < count; first += size) {
    const auto begin = order.begin() + first;
    const auto end = order.begin() + std::min(first + size, count);
    const bool alone = end - begin == 1 && !batches.empty();
    if (alone) batches.back().push_back(*begin);
    else batches.emplace_back(begin, end);
  }
  return batches;
}

double learning_rate_at(const TrainingOptions& options, std::int64_t step, std::int64_t steps) {
  if (options.schedule == Schedule::constant) return options.learning_rate;
  const double share = static_cast<double>(step) / static_cast<double>(steps);
  return options.learning_rate * 0.5 * (1.0 + std::cos(std::numbers::pi * share));
}

}  // namespace gpumem::train
