#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "gpumem/core/file.hpp"
#include "report.hpp"
#include "table.hpp"

namespace gpumem::cli {

namespace {

using Json = nlohmann::ordered_json;

/// The GPU that the trace is replayed on, and what of its memory the allocator can have.
struct Target {
  GpuProfile gpu;
  std::int64_t context = 0;  ///< the largest figure that the profile has; 0: it has none
  std::int64_t capacity = 0;
};

struct Outcome {
  device::AllocationTrace trace;
  device::TraceReplay unlimited;
  std::optional<Target> target;
  device::TraceReplay on_target;  ///< with a target: within its capacity
  [[nodiscard]] bool fits() const { return !on_target.ended_at; }
};

Result<Target> target_of(const std::string& name) {
  Result<GpuProfile> gpu = find_profile(name);
  if (!gpu) return gpu.error();
  Target target{*std::move(gpu)};
  for (const device::ContextFigure& context : target.gpu.contexts) {
    target.context = std::max(target.context, context.bytes);
  }
  if (target.gpu.contexts.empty()) target.context = device::context_by_size(target.gpu).expected.count();
  target.capacity = std::max<std::int64_t>(target.gpu.capacity().count() - target.context, 0);
  return target;
}

Result<Outcome> replayed(const ReplayTraceOptions& options) {
  Result<device::AllocatorOptions> allocator = device::parse_allocator_options(options.allocator);
  if (!allocator) return allocator.error();
  Outcome outcome;
  if (!options.gpu.empty()) {
    Result<Target> target = target_of(options.gpu);
    if (!target) return target.error();
    outcome.target = *std::move(target);
  }
  const Result<std::string> text = core::read_file(options.trace);
  if (!text) return text.error();
  Result<device::AllocationTrace> trace = device::read_allocation_trace(*text, {options.trace, options.device});
  if (!trace) return trace.error();
  outcome.trace = *std::move(trace);
  outcome.unlimited = device::replay(outcome.trace, *allocator);
  if (outcome.target) {
    allocator->capacity = Bytes(outcome.target->capacity);
    outcome.on_target = device::replay(outcome.trace, *allocator);
  }
  return outcome;
}

Json to_json(const device::TraceReplay& replay) {
  return {{"peak_requested_bytes", replay.peak_requested},
          {"peak_allocated_bytes", replay.peak_allocated},
          {"peak_reserved_bytes", replay.peak_reserved},
          {"peak_segments", replay.peak_segments},
          {"retries", replay.retries},
          {"out_of_memory", replay.ended_at.has_value()}};
}

Json to_json(const Outcome& outcome, const ReplayTraceOptions& options) {
  const device::AllocationTrace& trace = outcome.trace;
  Json json;
  json["schema"] = 1;
  json["trace"] = {{"file", options.trace},
                   {"format", device::to_string(trace.format)},
                   {"device", trace.cpu ? Json("cpu") : Json(trace.device)},
                   {"events", trace.events.size()},
                   {"allocations", trace.allocations},
                   {"unknown_frees", trace.unknown_frees},
                   {"unknown_bytes", trace.unknown_bytes},
                   {"missing_frees", trace.missing_frees},
                   {"recorded_reserved_bytes", trace.recorded_reserved ? Json(*trace.recorded_reserved) : Json()}};
  json["alloc_conf"] = options.allocator;
  json["replay"] = to_json(outcome.unlimited);
  json["gpu"] = nullptr;
  if (outcome.target) {
    json["gpu"] = outcome.target->gpu.name;
    json["context_bytes"] = outcome.target->context;
    json["capacity_bytes"] = outcome.target->capacity;
    json["replay_on_gpu"] = to_json(outcome.on_target);
    json["fits"] = outcome.fits();
  }
  return json;
}

std::string count(std::int64_t number, const char* what) {
  return core::with_separators(number) + " " + what + (number == 1 ? "" : "s");
}

void print_on_gpu(const Outcome& outcome) {
  const Target& target = *outcome.target;
  std::printf("\n%s on %s (%s): %s for tensors", outcome.fits() ? "fits" : "does not fit", target.gpu.name.c_str(),
              target.gpu.title.c_str(), core::to_string(Bytes(target.capacity)).c_str());
  if (target.context > 0) {
    std::printf(", in addition to a context of %s\n", core::to_string(Bytes(target.context)).c_str());
  } else {
    std::printf("; the profile has no context, which takes some of it\n");
  }
  if (!outcome.fits()) {
    const auto event = static_cast<std::int64_t>(*outcome.on_target.ended_at);
    std::printf("memory runs out at event %s, a request of %s\n", core::with_separators(event + 1).c_str(),
                core::to_string(Bytes(outcome.trace.events[*outcome.on_target.ended_at].bytes)).c_str());
  } else if (outcome.on_target.retries > 0) {
    std::printf("but the cache had to be emptied %s, which slows the job down\n",
                count(outcome.on_target.retries, "time").c_str());
  }
}

void print_notes(const device::AllocationTrace& trace) {
  if (trace.cpu) {
    std::printf("\nrecorded on a CPU: the workspaces of cuBLAS and cuDNN are not in it\n");
  }
  if (trace.unknown_frees > 0) {
    std::printf("\n%s of memory from before the recording (%s) left out: record from before the model is built\n",
                count(trace.unknown_frees, "free").c_str(), core::to_string(Bytes(trace.unknown_bytes)).c_str());
  }
}

void print(const Outcome& outcome, const ReplayTraceOptions& options) {
  const device::AllocationTrace& trace = outcome.trace;
  std::printf("%s: %.*s of %s, %s, %s\n\n", options.trace.c_str(),
              static_cast<int>(device::to_string(trace.format).size()), device::to_string(trace.format).data(),
              trace.cpu ? "a CPU" : ("GPU " + std::to_string(trace.device)).c_str(),
              count(static_cast<std::int64_t>(trace.events.size()), "event").c_str(),
              count(trace.allocations, "allocation").c_str());
  Table table({{}, {.right = true}, {.right = true}});
  const auto figure = [&table](const char* name, std::int64_t bytes) {
    table.add({name, Bytes(bytes), core::with_separators(bytes) + " B"});
  };
  figure("peak requested", outcome.unlimited.peak_requested);
  figure("peak allocated", outcome.unlimited.peak_allocated);
  figure("peak reserved", outcome.unlimited.peak_reserved);
  if (trace.recorded_reserved) figure("(as recorded)", *trace.recorded_reserved);
  table.add({"peak segments", core::with_separators(outcome.unlimited.peak_segments), ""});
  std::printf("%s", table.text(terminal_of(STDOUT_FILENO)).c_str());
  if (outcome.target) print_on_gpu(outcome);
  print_notes(trace);
}

}  // namespace

int run_replay_trace(const ReplayTraceOptions& options) {
  const Result<Outcome> outcome = replayed(options);
  if (!outcome) return report_error(outcome.error());
  if (options.json) {
    std::printf("%s\n", to_json(*outcome, options).dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    print(*outcome, options);
  }
  return 0;
}

}  // namespace gpumem::cli
