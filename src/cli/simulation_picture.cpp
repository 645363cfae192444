// The timeline: a lane a GPU with its jobs as bars, and under them its memory and SM activity; at the bottom the queue.
#include <algorithm>
#include <cmath>

#include "draw/axis.hpp"
#include "draw/palette.hpp"
#include "figures.hpp"
#include "simulation_report.hpp"

namespace gpumem::cli {

namespace {

using datasets::Run;
using draw::Box;
using draw::Point;

constexpr double kWidth = 1200.0;
constexpr double kLeft = 92.0;
constexpr double kRight = 24.0;
constexpr double kTop = 96.0;
constexpr double kTrack = 15.0;  ///< height of a job's bar with the gap below it
constexpr double kBar = 13.0;
constexpr double kStrip = 46.0;  ///< of memory and SM activity
constexpr double kGap = 18.0;    ///< between lanes
constexpr double kFooter = 52.0;
constexpr double kLetter = 5.6;  ///< width of one, about, where jobs are named
constexpr std::string_view kJob = "#cfe3f2";
constexpr std::string_view kRecovered = "#cdebd9";
constexpr std::string_view kCrashed = "#f6d3c0";
constexpr std::string_view kMemory = "#0072b2";
constexpr std::string_view kActivity = "#d55e00";
constexpr std::string_view kCrash = "#b3261e";
constexpr std::string_view kQueue = "#777777";

/// A job's run on one GPU, and the track of the lane that it is drawn in.
struct Bar {
  const Run* run = nullptr;
  std::size_t track = 0;
};

struct Lane {
  std::vector<Bar> bars;
  std::size_t tracks = 1;

  [[nodiscard]] double height() const { return static_cast<double>(tracks) * kTrack + kStrip; }
};

/// Each run in the first track that is free when it starts.
std::vector<Lane> lanes_of(const SimulationReport& report) {
  std::vector<Lane> lanes(report.server.gpus.size());
  std::vector<std::vector<double>> free_from(lanes.size());
  for (const Run& run : report.simulation.runs) {
    for (const std::size_t gpu : run.gpus) {
      std::vector<double>& ends = free_from[gpu];
      const auto found = std::find_if(ends.begin(), ends.end(), [&](double end) { return end <= run.start_s; });
      const auto track = static_cast<std::size_t>(found - ends.begin());
      if (found == ends.end()) ends.push_back(0.0);
      ends[track] = run.end_s;
      lanes[gpu].bars.push_back({&run, track});
      lanes[gpu].tracks = std::max(lanes[gpu].tracks, ends.size());
    }
  }
  return lanes;
}

std::string whole_percent(double share) { return std::to_string(std::lround(kHundred * share)) + " %"; }

class Picture {
 public:
  explicit Picture(const SimulationReport& report)
      : report_(report),
        lanes_(lanes_of(report)),
        svg_(kWidth, height(), "GPUs over time: " + report.file, headline()) {
    time_ = {.upper = std::max(report.simulation.totals.total_s, 1.0), .begin = kLeft, .end = kWidth - kRight};
    ticks_ = draw::time_ticks(time_, 10);
  }

  std::string str() {
    svg_.rectangle({0, 0, kWidth, height()}, {.fill = "#ffffff"});
    draw_head();
    double y = kTop;
    for (std::size_t gpu = 0; gpu < lanes_.size(); ++gpu) {
      draw_lane(gpu, y);
      y += lanes_[gpu].height() + kGap;
    }
    draw_queue(y);
    draw_times(y + kStrip);
    return svg_.str();
  }

 private:
  [[nodiscard]] double height() const {
    double sum = kTop + kStrip + kFooter;
    for (const Lane& lane : lanes_) sum += lane.height() + kGap;
    return sum;
  }

  [[nodiscard]] double x_of(double at_s) const { return time_.at(at_s - report_.simulation.begin_s); }

  [[nodiscard]] std::string headline() const {
    const datasets::Totals& totals = report_.simulation.totals;
    return "total " + duration_words(totals.total_s) + ", out of memory " + std::to_string(totals.out_of_memory) +
           (totals.out_of_memory == 1 ? " time" : " times") + ", mean wait " + duration_words(totals.mean_wait_s) +
           ", mean execution " + duration_words(totals.mean_execution_s) + ", SM activity " +
           whole_percent(totals.mean_smact) + ", memory in use " + whole_percent(totals.mean_memory);
  }

  void draw_head() {
    const std::string title =
        report_.file.substr(report_.file.find_last_of('/') + 1) + ": " + report_.policy +
        (report_.estimator == "none" ? ", no estimates" : ", estimator " + report_.estimator + " " + report_.margin) +
        ", " + std::string(utilisation::to_string(report_.options.sharing));
    svg_.text({kLeft, 26}, core::shortened(title, 120), {.size = 17, .bold = true});
    svg_.text({kLeft, 47}, headline(), {.size = 13});
    double x = kLeft;
    const auto key = [&](std::string_view fill, std::string_view stroke, std::string_view words, double step) {
      svg_.rectangle({x, 59, 18, 11}, {.fill = fill, .stroke = stroke});
      svg_.text({x + 24, 69}, words, {.size = 12});
      x += step;
    };
    key(kJob, kMemory, "job", 70);
    key(kCrashed, kCrash, "ran out of memory", 160);
    key(kRecovered, "#009e73", "runs again after that", 176);
    const auto line = [&](std::string_view colour, std::string_view words, double step) {
      svg_.line({x, 65}, {x + 18, 65}, {.stroke = colour, .stroke_width = 2.5});
      svg_.text({x + 24, 69}, words, {.size = 12});
      x += step;
    };
    line(kMemory, "memory in use", 136);
    line(kActivity, "SM activity", 110);
    svg_.text({kLeft, 86}, "Strips go from 0 to 100 % of the GPU.", {.size = 11, .fill = "#666666"});
  }

  void grid(double top, double bottom) {
    for (const draw::Tick& tick : ticks_) {
      svg_.line({time_.at(tick.value), top}, {time_.at(tick.value), bottom}, {.stroke = draw::kGrid});
    }
  }

  void draw_lane(std::size_t gpu, double top) {
    const Lane& lane = lanes_[gpu];
    const double strip = top + static_cast<double>(lane.tracks) * kTrack;
    grid(top, strip + kStrip);
    const place::ServerGpu& known = report_.server.gpus[gpu];
    svg_.text({kLeft - 10, top + 12}, "GPU " + known.id, {.size = 13, .anchor = draw::Anchor::end, .bold = true});
    svg_.text({kLeft - 10, top + 27}, known.profile, {.size = 10, .anchor = draw::Anchor::end, .fill = "#666666"});
    for (const Bar& bar : lane.bars) draw_bar(bar, top);
    draw_strip(gpu, strip);
    // Crosses lie on top of all bars.
    for (const Bar& bar : lane.bars) {
      if (bar.run->out_of_memory) draw_cross(lane, bar, top);
    }
  }

  void draw_bar(const Bar& bar, double top) {
    const Run& run = *bar.run;
    const Box box = {x_of(run.start_s), top + static_cast<double>(bar.track) * kTrack,
                     std::max(1.5, x_of(run.end_s) - x_of(run.start_s)), kBar};
    const bool again = !run.out_of_memory && report_.simulation.jobs[run.job].out_of_memory > 0;
    const std::string_view fill = run.out_of_memory ? kCrashed : again ? kRecovered : kJob;
    const std::string_view stroke = run.out_of_memory ? kCrash : again ? std::string_view("#009e73") : kMemory;
    svg_.rectangle(box, {.fill = fill, .stroke = stroke, .stroke_width = 0.8}, tooltip(run));
    const std::string& name = report_.jobs[run.job].id;
    const auto room = static_cast<std::size_t>(std::max(0.0, (box.width - 6.0) / kLetter));
    constexpr std::size_t kLeast = 3;
    if (room < kLeast || run.out_of_memory) return;
    const std::string label = name.size() <= room ? name : core::shortened(name, std::max(room, kLeast) - 2);
    if (name.size() <= room || room > 2 * kLeast) svg_.text({box.x + 3, box.y + 10}, label, {.size = 10});
  }

  /// A cross where memory ran out, and whose it was if there is room up to the next bar of the track.
  void draw_cross(const Lane& lane, const Bar& bar, double top) {
    const double x = x_of(bar.run->end_s);
    const double y = top + static_cast<double>(bar.track) * kTrack + 0.5 * kBar;
    constexpr double kArm = 4.5;
    svg_.line({x - kArm, y - kArm}, {x + kArm, y + kArm}, {.stroke = kCrash, .stroke_width = 2.2});
    svg_.line({x - kArm, y + kArm}, {x + kArm, y - kArm}, {.stroke = kCrash, .stroke_width = 2.2});
    double next = time_.end;
    for (const Bar& other : lane.bars) {
      if (other.track == bar.track && other.run->start_s >= bar.run->end_s) {
        next = std::min(next, x_of(other.run->start_s));
      }
    }
    const std::string& name = report_.jobs[bar.run->job].id;
    if (static_cast<double>(name.size()) * kLetter + 3 * kArm > next - x) return;
    svg_.text({x + 2 * kArm, y + 3.5}, name, {.size = 10, .fill = kCrash});
  }

  [[nodiscard]] std::string tooltip(const Run& run) const {
    const datasets::SimulatedJob& job = report_.jobs[run.job];
    std::string text = job.id + ": " + core::to_string(job.need) + ", SM activity alone " + whole_percent(job.smact) +
                       "; started " + duration_words(run.start_s - report_.simulation.begin_s) +
                       " after the first arrival, " + (run.out_of_memory ? "ran out of memory after " : "ran ") +
                       duration_words(run.end_s - run.start_s);
    if (!run.out_of_memory) text += " (alone: " + duration_words(job.duration_s) + ")";
    if (job.knowledge == datasets::Knowledge::estimated) text += "; estimate " + core::to_string(job.expected);
    if (run.gpus.size() > 1) text += "; on " + std::to_string(run.gpus.size()) + " GPUs";
    return text;
  }

  void draw_strip(std::size_t gpu, double top) {
    const Box box = {kLeft, top, kWidth - kRight - kLeft, kStrip};
    const double total = static_cast<double>(report_.server.gpus[gpu].total.count());
    const auto y_of = [&](double share) { return box.bottom() - std::min(share, 1.0) * (kStrip - 4); };
    const double end = time_.end;
    std::vector<Point> memory = {{kLeft, box.bottom()}};
    std::vector<Point> activity = {{kLeft, box.bottom()}};
    for (const datasets::Usage& usage : report_.simulation.usage[gpu]) {
      const double x = x_of(usage.at_s);
      const double used = static_cast<double>(usage.used.count()) / total;
      memory.push_back({x, memory.back().y});
      memory.push_back({x, y_of(used)});
      activity.push_back({x, activity.back().y});
      activity.push_back({x, y_of(usage.smact)});
    }
    memory.push_back({end, memory.back().y});
    activity.push_back({end, activity.back().y});
    memory.push_back({end, box.bottom()});
    svg_.polygon(memory, {.fill = kMemory, .opacity = 0.3});
    svg_.polyline(activity, {.stroke = kActivity, .stroke_width = 1.3});
    svg_.line({kLeft, box.bottom()}, {end, box.bottom()}, {.stroke = "#999999"});
    svg_.line({kLeft, y_of(1.0)}, {end, y_of(1.0)}, {.stroke = draw::kGrid, .dashes = "4 3"});
    svg_.text({kLeft - 10, y_of(1.0) + 6}, "100 %", {.size = 10, .anchor = draw::Anchor::end, .fill = "#666666"});
    svg_.text({kLeft - 10, box.bottom()}, "0", {.size = 10, .anchor = draw::Anchor::end, .fill = "#666666"});
  }

  void draw_queue(double top) {
    const std::vector<Waiting> queue = waiting_over_time(report_);
    std::int64_t most = 1;
    for (const Waiting& change : queue) most = std::max(most, change.jobs);
    grid(top, top + kStrip);
    const double bottom = top + kStrip;
    std::vector<Point> points = {{kLeft, bottom}};
    for (const Waiting& change : queue) {
      const double x = x_of(change.at_s);
      points.push_back({x, points.back().y});
      points.push_back({x, bottom - static_cast<double>(change.jobs) / static_cast<double>(most) * (kStrip - 4)});
    }
    points.push_back({time_.end, points.back().y});
    points.push_back({time_.end, bottom});
    svg_.polygon(points, {.fill = kQueue, .opacity = 0.45});
    svg_.line({kLeft, bottom}, {time_.end, bottom}, {.stroke = "#999999"});
    svg_.text({kLeft - 10, top + 20}, "waiting", {.size = 13, .anchor = draw::Anchor::end, .bold = true});
    svg_.text({kLeft - 10, top + 34}, "up to " + std::to_string(most),
              {.size = 10, .anchor = draw::Anchor::end, .fill = "#666666"});
  }

  void draw_times(double top) {
    for (const draw::Tick& tick : ticks_) {
      svg_.text({time_.at(tick.value), top + 18}, tick.label, {.size = 12, .anchor = draw::Anchor::middle});
    }
    svg_.text({0.5 * (time_.begin + time_.end), top + 38}, "since the first arrival",
              {.size = 12, .anchor = draw::Anchor::middle, .fill = "#666666"});
  }

  const SimulationReport& report_;
  std::vector<Lane> lanes_;
  draw::Svg svg_;
  draw::Axis time_;
  std::vector<draw::Tick> ticks_;
};

}  // namespace

Result<std::string> to_svg(const SimulationReport& report) {
  constexpr std::size_t kMostGpus = 64;
  constexpr std::size_t kMostRuns = 5000;
  if (report.server.gpus.size() > kMostGpus || report.simulation.runs.size() > kMostRuns) {
    return Error{ErrorCode::invalid_argument,
                 "a picture shows up to 64 GPUs and 5,000 runs; leave out --out, or simulate a part of the trace",
                 {}};
  }
  return Picture(report).str();
}

}  // namespace gpumem::cli
