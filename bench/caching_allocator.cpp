// The caching allocator, an event at a time: training steps of ResNet-50's layers, random traffic, and the worst that
// can be done to it: very many free blocks, also of one size. Beside it, the same search in a std::set.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "gpumem/all.hpp"
#include "gpumem/connect/connect.hpp"

namespace {

using gpumem::device::AllocatorOptions;
using gpumem::device::Block;
using gpumem::device::BlockId;
using gpumem::device::CachingAllocator;
using gpumem::device::FreeBlocks;

/// A request (bytes > 0) into a slot, or the end of what the slot holds.
struct Event {
  std::int64_t bytes = 0;
  std::uint32_t slot = 0;
};

/// A training step with Adam, as its tensors come and go: forward keeps each layer's output, backward goes back with a
/// gradient that replaces the last one, and leaves the gradients of the parameters to the next step. What the
/// benchmark needs is the mixture of sizes and lifetimes, not a plan that is right.
std::vector<Event> training_steps(const gpumem::ModelGraph& graph, int steps) {
  const gpumem::TrainingJob job(std::make_shared<const gpumem::ModelGraph>(graph), 32);
  std::vector<std::int64_t> outputs;
  std::vector<std::int64_t> parameters;
  const auto wired = gpumem::connect::connect(job, gpumem::ops::catalogue());
  for (std::size_t i = 0; i < graph.layers().size(); ++i) {
    std::int64_t bytes = 0;
    for (const auto& shape : wired->outputs(i)) bytes += 4 * shape.elements(job.batch_size)->value().value_or(0);
    outputs.push_back(bytes);
    parameters.push_back(4 * graph.layers()[i].parameters);
  }
  const auto layers = static_cast<std::uint32_t>(outputs.size());
  std::vector<Event> events;
  const auto request = [&](std::int64_t bytes, std::uint32_t slot) {
    if (bytes > 0) events.push_back({bytes, slot});
  };
  const auto end = [&](std::int64_t bytes, std::uint32_t slot) {
    if (bytes > 0) events.push_back({0, slot});
  };
  for (std::uint32_t i = 0; i < layers; ++i) {
    for (std::uint32_t state = 0; state < 3; ++state) request(parameters[i], (2 + state) * layers + i);
  }
  const std::uint32_t workspace = 5 * layers;
  const std::uint32_t gradient = workspace + 1;
  for (int step = 0; step < steps; ++step) {
    for (std::uint32_t i = 0; i < layers; ++i) {
      if (step > 0) end(parameters[i], layers + i);
    }
    for (std::uint32_t i = 0; i < layers; ++i) {
      request(outputs[i], i);
      request(outputs[i] / 2, workspace);
      end(outputs[i] / 2, workspace);
    }
    for (std::uint32_t i = layers; i-- > 0;) {
      request(outputs[i], gradient + i % 2);
      request(outputs[i] / 2, workspace);
      request(parameters[i], layers + i);
      end(outputs[i] / 2, workspace);
      if (i + 1 < layers) end(outputs[i + 1], gradient + (i + 1) % 2);
      end(outputs[i], i);
    }
    end(outputs[0], gradient);
  }
  return events;
}

void run(CachingAllocator& allocator, const std::vector<Event>& events, std::vector<BlockId>& slots) {
  for (const Event& event : events) {
    if (event.bytes > 0) {
      slots[event.slot] = *allocator.allocate(event.bytes);
    } else {
      allocator.free(slots[event.slot]);
    }
  }
}

/// The time of one event, as the counter "event".
void count_events(benchmark::State& state, std::size_t events) {
  using benchmark::Counter;
  state.counters["event"] = Counter(static_cast<double>(events), Counter::kIsIterationInvariantRate | Counter::kInvert);
}

void allocator_resnet50(benchmark::State& state) {
  const auto events = training_steps(*gpumem::read_summary(GPUMEM_RESNET50), 5);
  std::vector<BlockId> slots(100'000);
  AllocatorOptions options;
  options.expandable_segments = state.range(0) != 0;
  for (auto _ : state) {
    CachingAllocator allocator(options);
    run(allocator, events, slots);
    benchmark::DoNotOptimize(allocator.peak_reserved());
  }
  state.counters["events"] = static_cast<double>(events.size());
  count_events(state, events.size());
}
BENCHMARK(allocator_resnet50)->ArgName("expandable")->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

void allocator_create(benchmark::State& state) {
  for (auto _ : state) {
    CachingAllocator allocator;
    benchmark::DoNotOptimize(allocator);
  }
}
BENCHMARK(allocator_create);

/// Each event ends a random block and requests another, of one of a hundred sizes or of any.
void allocator_random(benchmark::State& state) {
  const auto live = static_cast<std::size_t>(state.range(0));
  const bool any_size = state.range(1) != 0;
  std::mt19937_64 random(1);
  std::vector<std::int64_t> sizes(any_size ? 100'003 : 101);
  for (std::int64_t& size : sizes) size = 1 + static_cast<std::int64_t>(random() >> (40 + random() % 20));
  CachingAllocator allocator;
  std::vector<BlockId> blocks;
  for (std::size_t i = 0; i < live; ++i) blocks.push_back(*allocator.allocate(sizes[i % sizes.size()]));
  std::vector<std::uint32_t> victims(100'003);
  for (std::uint32_t& victim : victims) victim = static_cast<std::uint32_t>(random() % live);
  std::size_t at = 0;
  for (auto _ : state) {
    BlockId& block = blocks[victims[at % victims.size()]];
    allocator.free(block);
    block = *allocator.allocate(sizes[at % sizes.size()]);
    ++at;
  }
  count_events(state, 2);
}
BENCHMARK(allocator_random)->ArgNames({"live", "any_size"})->ArgsProduct({{100, 1'000, 10'000, 100'000}, {0, 1}});

/// Every second one of many blocks of one size ends, then all are requested again: one bin holds them all.
void allocator_one_size(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0));
  CachingAllocator allocator;
  std::vector<BlockId> blocks;
  for (std::size_t i = 0; i < count; ++i) blocks.push_back(*allocator.allocate(4096));
  std::vector<std::size_t> odd;
  for (std::size_t i = 1; i < count; i += 2) odd.push_back(i);
  std::shuffle(odd.begin(), odd.end(), std::mt19937_64(1));
  for (auto _ : state) {
    for (const std::size_t i : odd) allocator.free(blocks[i]);
    for (const std::size_t i : odd) blocks[i] = *allocator.allocate(4096);
  }
  count_events(state, 2 * odd.size());
}
BENCHMARK(allocator_one_size)->Arg(100)->Arg(10'000)->Arg(200'000)->Unit(benchmark::kMicrosecond);

/// What the allocator does with its free blocks: the best fit out, another in. Sizes as a training step has them.
template <typename Index>
void best_fit(benchmark::State& state, Index& index, std::vector<Block>& blocks) {
  std::mt19937_64 random(2);
  std::vector<std::int64_t> sizes(10'007);
  for (std::int64_t& size : sizes) size = 512 * (1 + static_cast<std::int64_t>(random() >> (49 + random() % 12)));
  for (BlockId id = 0; id < blocks.size(); ++id) {
    blocks[id].size = sizes[id % sizes.size()];
    blocks[id].address = id * (std::int64_t{1} << 20);
    index.insert(blocks.data(), id);
  }
  std::size_t at = 0;
  for (auto _ : state) {
    BlockId id = index.at_least(blocks.data(), sizes[at % sizes.size()]);
    if (id == gpumem::device::kNoBlock) id = index.first(blocks.data());
    index.erase(blocks.data(), id);
    blocks[id].size = sizes[(at + 5000) % sizes.size()];
    index.insert(blocks.data(), id);
    ++at;
  }
}

/// The same in the standard library.
class FreeSet {
 public:
  void insert(const Block* blocks, BlockId id) { set_.insert({blocks[id].size, blocks[id].address, id}); }
  void erase(const Block* blocks, BlockId id) { set_.erase({blocks[id].size, blocks[id].address, id}); }
  BlockId at_least(const Block*, std::int64_t size) const {
    const auto found = set_.lower_bound({size, 0, 0});
    return found == set_.end() ? gpumem::device::kNoBlock : std::get<2>(*found);
  }
  BlockId first(const Block*) const { return std::get<2>(*set_.begin()); }

 private:
  std::set<std::tuple<std::int64_t, std::int64_t, BlockId>> set_;
};

template <typename Index>
void free_blocks(benchmark::State& state) {
  std::vector<Block> blocks(static_cast<std::size_t>(state.range(0)));
  Index index;
  best_fit(state, index, blocks);
}
BENCHMARK(free_blocks<FreeBlocks>)->Arg(10)->Arg(50)->Arg(1'000)->Arg(100'000);
BENCHMARK(free_blocks<FreeSet>)->Arg(10)->Arg(50)->Arg(1'000)->Arg(100'000);

}  // namespace
