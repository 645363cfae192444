#include "gpumem_datasets/simulator.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>

#include "gpumem/place/policies.hpp"

namespace gpumem::datasets {

using namespace place;

namespace {

using Index = std::uint32_t;
inline constexpr std::int64_t kGrowthSteps = 8;

/// What happens. Of events of one time the first of these comes first: what ends makes room for what grows and starts.
enum class Kind : std::uint8_t { end, growth, arrival, wake };

struct Event {
  double at_s = 0.0;
  Kind kind = Kind::wake;
  std::uint64_t order = 0;  ///< events of one time and kind in the order in which they came to be known
  Index job = 0;
  std::uint32_t mark = 0;  ///< end: holds only if the job's is the same; growth: of this run
  std::int64_t step = 0;   ///< growth
};

struct Later {
  bool operator()(const Event& one, const Event& other) const {
    if (one.at_s != other.at_s) return one.at_s > other.at_s;
    if (one.kind != other.kind) return one.kind > other.kind;
    return one.order > other.order;
  }
};

/// A job on its way through the simulation.
struct State {
  Request request;                ///< as it is placed the next time
  std::vector<std::size_t> gpus;  ///< that it runs on; none: it does not run
  std::size_t run = 0;            ///< in Simulation::runs
  std::int64_t used = 0;          ///< on each GPU by now
  double left_s = 0.0;            ///< of its duration without other jobs
  double slowdown = 1.0;
  double since_s = 0.0;      ///< when left_s held
  std::uint32_t mark = 0;    ///< its latest end is the event with this mark
  std::uint32_t starts = 0;  ///< runs so far
  bool alone = false;        ///< nobody was ever on its GPUs with it, in this run
};

/// A GPU's jobs and what they make of it.
struct Load {
  std::vector<Index> jobs;
  std::vector<double> shares;  ///< their SM activities, each without other jobs
  double slowdown = 1.0;
  double since_s = 0.0;      ///< the sums are complete up to here
  double busy_s = 0.0;       ///< integral of SM activity
  double used_byte_s = 0.0;  ///< of memory
};

/// A well mixed number out of three (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
std::uint64_t mixed(std::uint64_t seed, std::uint64_t job, std::uint64_t start) {
  std::uint64_t value = seed;
  for (const std::uint64_t more : {job, start}) {
    value += 0x9E3779B97F4A7C15ULL * (more + 1);
    value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    value = (value ^ (value >> 27U)) * 0x94D049BB133111EBULL;
    value ^= value >> 31U;
  }
  return value;
}

/// Uniform from 0 to 1, the same for a job's run whatever else happens.
double drawn(std::uint64_t seed, std::uint64_t job, std::uint64_t start) {
  constexpr double kUnit = 1.0 / 9007199254740992.0;  // 2^-53
  return static_cast<double>(mixed(seed, job, start) >> 11U) * kUnit;
}

class Simulator {
 public:
  Simulator(const std::vector<SimulatedJob>& jobs, const Server& server, const Policy& policy,
            const SimulationOptions& options)
      : jobs_(jobs), server_(server), policy_(policy), options_(options) {
    states_.resize(jobs.size());
    loads_.resize(server.gpus.size());
    simulation_.jobs.resize(jobs.size());
    if (options.keep_usage) simulation_.usage.resize(server.gpus.size());
    for (const ServerGpu& gpu : server.gpus) largest_ = std::max(largest_, gpu.total);
  }

  Simulation run() {
    std::vector<Index> arrivals = by_arrival();
    simulation_.begin_s = jobs_[arrivals.front()].arrival_s;
    for (Load& load : loads_) load.since_s = simulation_.begin_s;
    now_ = simulation_.begin_s;
    next_placement_s_ = now_;
    for (const Index job : arrivals) {
      states_[job].request = first_request(job);
      expect({jobs_[job].arrival_s, Kind::arrival, 0, job, 0, 0});
    }
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at_s;
      handle(event);
      place_waiting();
    }
    // Nobody is left who could make room.
    while (!queue_.empty()) refuse(queue_.pop());
    add_up();
    return std::move(simulation_);
  }

 private:
  [[nodiscard]] std::vector<Index> by_arrival() const {
    std::vector<Index> arrivals(jobs_.size());
    std::iota(arrivals.begin(), arrivals.end(), Index{0});
    std::stable_sort(arrivals.begin(), arrivals.end(),
                     [&](Index one, Index other) { return jobs_[one].arrival_s < jobs_[other].arrival_s; });
    return arrivals;
  }

  [[nodiscard]] Request first_request(Index index) const {
    const SimulatedJob& job = jobs_[index];
    Request request{.id = job.id, .gpus = job.gpus, .memory = {}, .smact = job.smact};
    if (job.knowledge == Knowledge::none) {
      request.memory = core::Bytes(std::numeric_limits<std::int64_t>::max());  // beside nobody
      request.alone = core::Bytes();
    } else if (job.knowledge == Knowledge::estimated) {
      request.memory = job.reserve;
      request.alone = std::min(job.expected, largest_);
    }
    return request;
  }

  void expect(Event event) {
    event.order = ++order_;
    events_.push(event);
  }

  void handle(const Event& event) {
    State& state = states_[event.job];
    switch (event.kind) {
      case Kind::arrival: queue_.push(event.job); break;
      case Kind::growth:
        if (!state.gpus.empty() && state.starts == event.mark) grow(event.job, event.step);
        break;
      case Kind::end:
        if (!state.gpus.empty() && state.mark == event.mark) finish(event.job);
        break;
      case Kind::wake: break;
    }
  }

  // Placing.

  void place_waiting() {
    while (!queue_.empty() && !blocked_ && now_ >= next_placement_s_) {
      const Index job = queue_.front();
      const Request& request = states_[job].request;
      const Decision decision = policy_.decide(request, server_, options_.conditions, turn_);
      if (decision.placed()) {
        queue_.pop();
        start(job, decision.gpus);
        if (options_.window_s > 0.0) {
          next_placement_s_ = now_ + options_.window_s;
          expect({next_placement_s_, Kind::wake, 0, 0, 0, 0});
        }
      } else if (decision.refusal == Refusal::never) {
        refuse(queue_.pop());
      } else {
        blocked_ = true;  // until a job ends: nothing else makes room
      }
    }
  }

  void refuse(Index job) {
    JobOutcome& outcome = simulation_.jobs[job];
    outcome.verdict = Verdict::refused;
    outcome.end_s = now_;
  }

  void start(Index index, const std::vector<std::size_t>& gpus) {
    const SimulatedJob& job = jobs_[index];
    State& state = states_[index];
    state.gpus = gpus;
    state.run = simulation_.runs.size();
    state.used = 0;
    state.left_s = job.duration_s;
    state.slowdown = 1.0;
    state.since_s = now_;
    ++state.starts;
    state.alone = true;
    simulation_.runs.push_back({index, gpus, now_, now_, false});
    for (const std::size_t gpu : gpus) {
      Load& load = loads_[gpu];
      for (const Index other : load.jobs) states_[other].alone = false;
      state.alone = state.alone && load.jobs.empty();
      load.jobs.push_back(index);
      load.shares.push_back(job.smact);
      ServerGpu& known = server_.gpus[gpu];
      // What is not known cannot be set aside.
      const core::Bytes asked =
          job.knowledge == Knowledge::none ? core::Bytes() : state.request.memory.value_or(core::Bytes());
      const core::Bytes aside = std::min(asked, known.free());
      (void)known.jobs.add({job.id, aside, job.smact, state.request.exclusive});
    }
    // The job ends, also if no other slows it down.
    expect_end(index);
    change_speed(gpus);
    expect_growth(index);
  }

  void expect_growth(Index index) {
    State& state = states_[index];
    const double most = 0.5 * jobs_[index].duration_s;
    const double ramp = std::min(2.0 * options_.ramp_s * drawn(options_.seed, index, state.starts), most);
    const auto mark = state.starts;
    if (options_.ramp_s == 0.0) return grow(index, kGrowthSteps);
    for (std::int64_t step = 1; step <= kGrowthSteps; ++step) {
      const double part = static_cast<double>(step) / static_cast<double>(kGrowthSteps);
      expect({now_ + ramp * part, Kind::growth, 0, index, mark, step});
    }
  }

  // Memory.

  [[nodiscard]] static std::int64_t grown(std::int64_t need, std::int64_t step) {
    return step == kGrowthSteps ? need : need / kGrowthSteps * step;
  }

  void grow(Index index, std::int64_t step) {
    State& state = states_[index];
    const std::int64_t more = grown(jobs_[index].need.count(), step) - state.used;
    for (const std::size_t gpu : state.gpus) {
      const ServerGpu& known = server_.gpus[gpu];
      if (more > known.total.count() - known.used.count()) return crash(index);
    }
    state.used += more;
    for (const std::size_t gpu : state.gpus) use(gpu, more);
  }

  /// From now on this much more (or less) of the GPU's memory is in use.
  void use(std::size_t gpu, std::int64_t more) {
    add_time(gpu);
    server_.gpus[gpu].used = core::Bytes(server_.gpus[gpu].used.count() + more);
    note(gpu);
  }

  void crash(Index index) {
    State& state = states_[index];
    JobOutcome& outcome = simulation_.jobs[index];
    ++outcome.out_of_memory;
    simulation_.runs[state.run].out_of_memory = true;
    OutOfMemory failure;
    failure.failures = outcome.out_of_memory;
    failure.alone = state.alone;
    failure.had = core::Bytes(std::numeric_limits<std::int64_t>::max());
    for (const std::size_t gpu : state.gpus) {
      const ServerGpu& known = server_.gpus[gpu];
      failure.had = std::min(failure.had, core::Bytes(known.total.count() - known.used.count() + state.used));
    }
    leave(index);
    Retry retry = after_out_of_memory(state.request, failure, server_, options_.recovery);
    if (retry.request) {
      state.request = *retry.request;
      queue_.push_recovery(index);
    } else {
      outcome.verdict = Verdict::given_up;
    }
  }

  // Time.

  void finish(Index index) {
    JobOutcome& outcome = simulation_.jobs[index];
    outcome.start_s = simulation_.runs[states_[index].run].start_s;
    leave(index);
  }

  /// Takes the job off its GPUs.
  void leave(Index index) {
    State& state = states_[index];
    simulation_.runs[state.run].end_s = now_;
    simulation_.jobs[index].end_s = now_;
    const std::vector<std::size_t> gpus = std::move(state.gpus);
    state.gpus.clear();
    for (const std::size_t gpu : gpus) {
      Load& load = loads_[gpu];
      const auto at = std::find(load.jobs.begin(), load.jobs.end(), index) - load.jobs.begin();
      load.jobs.erase(load.jobs.begin() + at);
      load.shares.erase(load.shares.begin() + at);
      server_.gpus[gpu].jobs.remove(jobs_[index].id);
      use(gpu, -state.used);
    }
    change_speed(gpus);
    blocked_ = false;
  }

  /// After jobs came to these GPUs or left them: the speed of all jobs there, and the activity of all GPUs of these.
  void change_speed(const std::vector<std::size_t>& gpus) {
    touched_.assign(gpus.begin(), gpus.end());
    for (const std::size_t gpu : gpus) {
      loads_[gpu].slowdown = utilisation::slowdown(loads_[gpu].shares, options_.sharing);
    }
    for (const std::size_t gpu : gpus) {
      for (const Index job : loads_[gpu].jobs) slow_down(job);
    }
    for (const std::size_t gpu : touched_) {
      add_time(gpu);
      server_.gpus[gpu].smact = activity(gpu);
      note(gpu);
    }
  }

  void slow_down(Index index) {
    State& state = states_[index];
    double slowdown = 1.0;
    for (const std::size_t gpu : state.gpus) slowdown = std::max(slowdown, loads_[gpu].slowdown);
    if (slowdown == state.slowdown) return;
    state.left_s = std::max(0.0, state.left_s - (now_ - state.since_s) / state.slowdown);
    state.since_s = now_;
    state.slowdown = slowdown;
    expect_end(index);
    for (const std::size_t gpu : state.gpus) {
      if (std::find(touched_.begin(), touched_.end(), gpu) == touched_.end()) touched_.push_back(gpu);
    }
  }

  void expect_end(Index index) {
    State& state = states_[index];
    expect({now_ + state.left_s * state.slowdown, Kind::end, 0, index, ++state.mark, 0});
  }

  [[nodiscard]] double activity(std::size_t gpu) const {
    const Load& load = loads_[gpu];
    double sum = 0.0;
    for (std::size_t at = 0; at < load.jobs.size(); ++at) sum += load.shares[at] / states_[load.jobs[at]].slowdown;
    return std::min(sum, 1.0);
  }

  // What is reported.

  void add_time(std::size_t gpu) {
    Load& load = loads_[gpu];
    const double passed = now_ - load.since_s;
    load.since_s = now_;
    load.busy_s += passed * server_.gpus[gpu].smact;
    load.used_byte_s += passed * static_cast<double>(server_.gpus[gpu].used.count());
  }

  void note(std::size_t gpu) {
    if (!options_.keep_usage) return;
    std::vector<Usage>& usage = simulation_.usage[gpu];
    if (!usage.empty() && usage.back().at_s == now_) usage.pop_back();
    usage.push_back({now_, server_.gpus[gpu].used, server_.gpus[gpu].smact});
  }

  void add_up() {
    Totals& totals = simulation_.totals;
    double end = simulation_.begin_s;
    for (std::size_t index = 0; index < jobs_.size(); ++index) {
      const JobOutcome& job = simulation_.jobs[index];
      totals.out_of_memory += job.out_of_memory;
      end = std::max(end, job.end_s);
      if (job.verdict != Verdict::finished) {
        ++totals.failed;
        continue;
      }
      ++totals.finished;
      const double completion = job.end_s - jobs_[index].arrival_s;
      totals.mean_completion_s += completion;
      totals.mean_execution_s += job.end_s - job.start_s;
      totals.mean_wait_s += completion - (job.end_s - job.start_s);
    }
    totals.total_s = end - simulation_.begin_s;
    if (totals.finished > 0) {
      const auto count = static_cast<double>(totals.finished);
      for (double* mean : {&totals.mean_wait_s, &totals.mean_execution_s, &totals.mean_completion_s}) *mean /= count;
    }
    if (totals.total_s == 0.0) return;
    double memory = 0.0;
    for (std::size_t gpu = 0; gpu < loads_.size(); ++gpu) {
      totals.mean_smact += loads_[gpu].busy_s / totals.total_s;
      totals.mean_memory += loads_[gpu].used_byte_s / totals.total_s;
      memory += static_cast<double>(server_.gpus[gpu].total.count());
    }
    totals.mean_smact /= static_cast<double>(loads_.size());
    totals.mean_memory /= memory;
  }

  const std::vector<SimulatedJob>& jobs_;
  Server server_;
  const Policy& policy_;
  const SimulationOptions& options_;
  core::Bytes largest_;
  std::vector<State> states_;
  std::vector<Load> loads_;
  std::priority_queue<Event, std::vector<Event>, Later> events_;
  std::uint64_t order_ = 0;
  WaitingQueue<Index> queue_;
  std::vector<std::size_t> touched_;
  double now_ = 0.0;
  double next_placement_s_ = 0.0;
  bool blocked_ = false;  ///< the job at the head was refused, and no job has ended since
  std::size_t turn_ = 0;
  Simulation simulation_;
};

}  // namespace

core::Result<Simulation> simulate(const std::vector<SimulatedJob>& jobs, const Server& server, const Policy& policy,
                                  const SimulationOptions& options, const std::optional<PowerModel>& power) {
  if (const auto valid = validate(jobs, server); !valid) return valid.error();
  if (const auto valid = validate(options, power); !valid) return valid.error();
  Simulation simulation = Simulator(jobs, server, policy, options).run();
  if (power) {
    const Totals& totals = simulation.totals;
    const double mean_w = power->idle_w + (power->peak_w - power->idle_w) * totals.mean_smact;
    simulation.totals.energy_j = mean_w * totals.total_s * static_cast<double>(server.gpus.size());
  }
  return simulation;
}

}  // namespace gpumem::datasets
