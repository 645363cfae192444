#pragma once

#include "gpumem/device/allocation_trace.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

namespace gpumem::device {

namespace allocation_trace_detail {

using Json = nlohmann::json;
using ParseEvent = Json::parse_event_t;

// More than any machine has, and small enough that sums of a few fit 64 bits.
inline constexpr std::int64_t kMostBytes = std::int64_t{1} << 56;
// A job uses a handful; each costs the allocator a few KiB.
inline constexpr std::size_t kMostStreams = 1024;
inline constexpr std::int64_t kCpu = -1;  // instead of a GPU's number

/// What one recorded event said, before addresses are matched.
struct Record {
  enum class Kind : std::uint8_t { request, free, segment };
  Kind kind = Kind::request;
  std::int64_t device = 0;
  std::uint64_t address = 0;
  std::int64_t bytes = 0;  ///< of a segment: negative where it is released; of a free: 0 if not recorded
  std::int64_t stream = 0;
  std::int64_t reserved = 0;  ///< in all, as a profiler says; 0: it does not
  double time = 0.0;
};

/// Sees the JSON as it is parsed and keeps one event at a time: a recording may have gigabytes, most of them about
/// other things.
class Reader {
 public:
  std::vector<Record> records;
  std::optional<core::Error> error;

  /// Whether the text has a list where events belong.
  [[nodiscard]] bool has_events() const { return found_; }
  [[nodiscard]] TraceFormat format() const { return format_; }

  /// nlohmann's callback: true keeps what was parsed.
  bool operator()(int depth, ParseEvent event, const Json& parsed) {
    if (error) return false;
    switch (event) {
      case ParseEvent::key: return wants(depth, parsed.get_ref<const std::string&>());
      case ParseEvent::array_start: return enter_list(depth);
      case ParseEvent::object_start: return depth <= event_depth_ + 1;  // an event and its "args", or what is above
      case ParseEvent::object_end:
        if (event_depth_ == 0 || depth != event_depth_) return true;
        take(parsed);
        return false;
      case ParseEvent::value: return depth == 0 || depth > event_depth_;
      case ParseEvent::array_end: break;
    }
    return true;
  }

 private:
  // Events are the items of a bare list, of "traceEvents", or of the lists in "device_traces".
  static constexpr int kListDepth = 1;
  static constexpr int kProfilerDepth = 2;
  static constexpr int kSnapshotDepth = 3;

  bool wants(int depth, const std::string& key) {
    if (depth == 1 && event_depth_ != kListDepth) {
      event_depth_ = key == "traceEvents" ? kProfilerDepth : key == "device_traces" ? kSnapshotDepth : 0;
      return event_depth_ != 0;
    }
    const auto among = [&](std::initializer_list<std::string_view> names) {
      return std::find(names.begin(), names.end(), key) != names.end();
    };
    if (depth == event_depth_ + 1) {
      if (event_depth_ == kSnapshotDepth) return among({"action", "addr", "size", "stream"});
      return among({"name", "ts", "args"});
    }
    return depth == event_depth_ + 2 && among({"Addr", "Bytes", "Device Type", "Device Id", "Total Reserved"});
  }

  bool enter_list(int depth) {
    if (depth == 0) event_depth_ = kListDepth;
    if (event_depth_ == 0 || depth >= event_depth_) return false;
    if (depth == event_depth_ - 1) {
      found_ = true;
      format_ = event_depth_ == kSnapshotDepth ? TraceFormat::cuda_snapshot : TraceFormat::profiler;
      ++list_;
      event_ = -1;
    }
    return true;
  }

  void take(const Json& event) {
    ++event_;
    if (event_depth_ == kSnapshotDepth) {
      take_action(event);
    } else if (const auto name = event.find("name"); name != event.end() && *name == "[memory]") {
      take_memory(event);
    }
  }

  /// {"action": "alloc", "addr": 140..., "size": 512, "stream": 0}
  void take_action(const Json& event) {
    const auto action = event.find("action");
    if (action == event.end() || !action->is_string()) return fail("action", "a word");
    const auto& word = action->get_ref<const std::string&>();
    Record record;
    record.device = list_;
    const bool adds = word == "segment_alloc" || word == "segment_map";
    if (word == "free_completed") {  // what is only requested waits for other streams
      record.kind = Record::Kind::free;
    } else if (adds || word == "segment_free" || word == "segment_unmap") {
      record.kind = Record::Kind::segment;
    } else if (word != "alloc") {
      return;
    }
    const bool sized = event.contains("size") || record.kind != Record::Kind::free;
    const auto bytes = sized ? whole(event, "size") : 0;
    const auto stream = event.contains("stream") ? whole(event, "stream") : 0;
    const auto address = whole(event, "addr");
    if (!bytes || *bytes < 0 || *bytes > kMostBytes) return fail("size", "a number of bytes");
    if (!stream) return fail("stream", "a whole number");
    if (!address) return fail("addr", "an address");
    record.address = static_cast<std::uint64_t>(*address);
    record.bytes = record.kind == Record::Kind::segment && !adds ? -*bytes : *bytes;
    record.stream = *stream;
    records.push_back(record);
  }

  /// {"name": "[memory]", "ts": 1.5, "args": {"Addr": 94..., "Bytes": -512, "Device Type": 0, "Device Id": -1}}
  void take_memory(const Json& event) {
    const auto args = event.find("args");
    if (args == event.end() || !args->is_object()) return fail("args", "an object");
    const auto bytes = whole(*args, "Bytes");
    const auto address = whole(*args, "Addr");
    const auto type = whole(*args, "Device Type");
    const auto id = args->contains("Device Id") ? whole(*args, "Device Id") : 0;
    const auto reserved = args->contains("Total Reserved") ? whole(*args, "Total Reserved") : 0;
    const auto time = event.find("ts");
    if (!bytes || *bytes < -kMostBytes || *bytes > kMostBytes) return fail("args/Bytes", "a number of bytes");
    if (!address) return fail("args/Addr", "an address");
    if (!type) return fail("args/Device Type", "a whole number");
    if (!id) return fail("args/Device Id", "a whole number");
    if (!reserved) return fail("args/Total Reserved", "a number of bytes");
    if (time == event.end() || !time->is_number()) return fail("ts", "a time");
    if (*bytes == 0) return;
    Record record;
    record.kind = *bytes > 0 ? Record::Kind::request : Record::Kind::free;
    record.device = *type == 0 ? kCpu : std::max<std::int64_t>(*id, 0);
    record.address = static_cast<std::uint64_t>(*address);
    record.bytes = std::abs(*bytes);
    record.reserved = std::clamp<std::int64_t>(*reserved, 0, kMostBytes);
    record.time = time->get<double>();
    records.push_back(record);
  }

  static std::optional<std::int64_t> whole(const Json& object, const char* key) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_number_integer()) return std::nullopt;
    return found->get<std::int64_t>();  // an address beyond 2^63 wraps, and stays one of a kind
  }

  void fail(std::string_view key, std::string_view wanted) {
    std::string place = event_depth_ == kProfilerDepth ? "/traceEvents" : "";
    if (event_depth_ == kSnapshotDepth) place = "/device_traces/" + std::to_string(list_);
    place += "/" + std::to_string(event_) + "/" + std::string(key);
    error = core::Error{core::ErrorCode::malformed_input, "must be " + std::string(wanted), {{}, 0, std::move(place)}};
  }

  int event_depth_ = 0;  // how deep events lie where the parser is; 0: there are none
  bool found_ = false;
  TraceFormat format_ = TraceFormat::profiler;
  std::int64_t list_ = -1;   // of "device_traces": the device
  std::int64_t event_ = -1;  // in that list
};

/// Matches frees with requests by their addresses.
class Matcher {
 public:
  explicit Matcher(AllocationTrace& trace) : trace_(trace) {}

  /// False if there are more streams than a job can have.
  bool add(const Record& record) {
    if (record.reserved > 0) note_reserved(record.reserved);
    switch (record.kind) {
      case Record::Kind::segment:
        segments_ = std::clamp<std::int64_t>(segments_ + record.bytes, 0, kMostBytes);
        note_reserved(segments_);
        return true;
      case Record::Kind::free: end(record); return true;
      case Record::Kind::request: break;
    }
    return begin(record);
  }

 private:
  bool begin(const Record& record) {
    if (record.bytes == 0) return true;
    const auto [stream, is_new] = streams_.emplace(record.stream, static_cast<std::uint32_t>(streams_.size()));
    if (is_new && streams_.size() > kMostStreams) return false;
    const auto [live, free] = live_.emplace(record.address, trace_.allocations);
    if (!free) {
      ++trace_.missing_frees;
      trace_.events.push_back({0, live->second, 0});
      live->second = trace_.allocations;
    }
    trace_.events.push_back({record.bytes, trace_.allocations++, stream->second});
    return true;
  }

  void end(const Record& record) {
    const auto live = live_.find(record.address);
    if (live == live_.end()) {
      ++trace_.unknown_frees;
      trace_.unknown_bytes = std::min(trace_.unknown_bytes + record.bytes, kMostBytes);
      return;
    }
    trace_.events.push_back({0, live->second, 0});
    live_.erase(live);
  }

  void note_reserved(std::int64_t bytes) {
    trace_.recorded_reserved = std::max(trace_.recorded_reserved.value_or(0), bytes);
  }

  AllocationTrace& trace_;
  std::unordered_map<std::uint64_t, std::uint32_t> live_;  // by address
  std::unordered_map<std::int64_t, std::uint32_t> streams_;
  std::int64_t segments_ = 0;
};

/// The device that is asked for; else the first GPU with an allocation; else the CPU. Nothing if there is none.
GPUMEM_INLINE std::optional<std::int64_t> device_of(const std::vector<Record>& records,
                                                    std::optional<std::int64_t> wanted) {
  std::optional<std::int64_t> found;
  for (const Record& record : records) {
    if (record.kind != Record::Kind::request) continue;
    if (wanted && record.device != *wanted) continue;
    const bool better = !found || *found == kCpu || (record.device != kCpu && record.device < *found);
    if (better) found = record.device;
  }
  return found;
}

GPUMEM_INLINE core::Error missing(const Reader& reader, const TraceOptions& options) {
  std::string message = "holds no allocation";
  if (options.device) message += " of GPU " + std::to_string(*options.device);
  message += reader.format() == TraceFormat::profiler
                 ? "; profile with profile_memory=True"
                 : "; call torch.cuda.memory._record_memory_history() before what is to be recorded";
  return {core::ErrorCode::missing_information, std::move(message), {}};
}

GPUMEM_INLINE core::Error syntax_error(std::string_view json, std::size_t byte) {
  const std::string_view before = json.substr(0, std::min(byte, json.size()));
  const std::int64_t line = 1 + std::count(before.begin(), before.end(), '\n');
  return {core::ErrorCode::malformed_input,
          "is not JSON; the file is cut off, or is not text (a pickled snapshot must be written with json.dump)",
          {{}, line, {}}};
}

/// Parses all of the text; the events are in the reader then.
GPUMEM_INLINE core::Status read(std::string_view json, Reader& reader) {
  const auto callback = [&](int depth, ParseEvent event, Json& parsed) { return reader(depth, event, parsed); };
  try {
    const Json rest = Json::parse(json, callback);  // nothing of it is needed
    (void)rest;
  } catch (const Json::parse_error& error) {  // only it says where
    return syntax_error(json, error.byte);
  } catch (const Json::exception&) {  // a number that no double holds
    return syntax_error(json, 0);
  }
  if (reader.error) return *reader.error;
  if (reader.has_events()) return core::Done{};
  return core::Error{core::ErrorCode::unknown_format,
                     "has neither \"device_traces\" (torch.cuda.memory._snapshot()) nor \"traceEvents\" "
                     "(export_chrome_trace() of torch.profiler)",
                     {}};
}

}  // namespace allocation_trace_detail

GPUMEM_INLINE std::string_view to_string(TraceFormat format) {
  return format == TraceFormat::cuda_snapshot ? "torch.cuda.memory snapshot" : "torch.profiler trace";
}

GPUMEM_INLINE core::Result<AllocationTrace> read_allocation_trace(std::string_view json, const TraceOptions& options) {
  namespace detail = allocation_trace_detail;
  detail::Reader reader;
  core::Status read = detail::read(json, reader);
  if (!read) return std::move(read.error()).in_file(options.file);
  const auto device = detail::device_of(reader.records, options.device);
  if (!device) return detail::missing(reader, options).in_file(options.file);

  AllocationTrace trace;
  trace.format = reader.format();
  trace.cpu = *device == detail::kCpu;
  trace.device = trace.cpu ? 0 : *device;
  std::vector<detail::Record>& records = reader.records;
  std::erase_if(records, [&](const detail::Record& record) { return record.device != *device; });
  // A snapshot is in order; threads may have mixed a profiler's events.
  std::stable_sort(records.begin(), records.end(),
                   [](const detail::Record& left, const detail::Record& right) { return left.time < right.time; });
  detail::Matcher matcher(trace);
  for (const detail::Record& record : records) {
    if (matcher.add(record)) continue;
    return core::Error{core::ErrorCode::malformed_input, "has more than 1024 streams", {}}.in_file(options.file);
  }
  return trace;
}

GPUMEM_INLINE TraceReplay replay(const AllocationTrace& trace, const AllocatorOptions& options) {
  CachingAllocator allocator(options);
  std::vector<BlockId> blocks(trace.allocations, kNoBlock);
  TraceReplay result;
  for (const TraceEvent& event : trace.events) {
    if (event.bytes == 0) {
      allocator.free(blocks[event.id]);
      continue;
    }
    const auto block = allocator.allocate(event.bytes, event.stream);
    if (!block) {
      result.ended_at = static_cast<std::size_t>(&event - trace.events.data());
      break;
    }
    blocks[event.id] = *block;
  }
  result.peak_allocated = allocator.peak_allocated();
  result.peak_reserved = allocator.peak_reserved();
  result.peak_requested = allocator.peak_requested();
  result.peak_segments = allocator.peak_segments();
  result.retries = allocator.retries();
  return result;
}

}  // namespace gpumem::device
