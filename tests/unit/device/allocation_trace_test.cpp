#include "gpumem/device/allocation_trace.hpp"

#include "expect.hpp"

namespace gpumem::device {
namespace {

using core::Bytes;
using core::ErrorCode;
using testing::fails;
using testing::succeeds;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

std::string snapshot(const std::string& actions) {
  return R"({"segments": [{"address": 1, "blocks": [{"size": 512, "state": "inactive"}]}], "device_traces": [[)" +
         actions + R"(]], "allocator_settings": {}})";
}

std::string action(const std::string& word, std::int64_t address, std::int64_t bytes, std::int64_t stream = 0) {
  return R"({"action": ")" + word + R"(", "addr": )" + std::to_string(address) + R"(, "size": )" +
         std::to_string(bytes) + R"(, "stream": )" + std::to_string(stream) +
         R"(, "frames": [{"name": "f", "addr": 7, "args": {"Bytes": 1}}]})";
}

std::string memory(double time, std::int64_t address, std::int64_t bytes, int type = 0, int id = -1,
                   std::int64_t reserved = 0) {
  return R"({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": )" +
         std::to_string(time) + R"(, "args": {"Total Reserved": )" + std::to_string(reserved) +
         R"(, "Total Allocated": 0, "Bytes": )" + std::to_string(bytes) + R"(, "Addr": )" + std::to_string(address) +
         R"(, "Device Type": )" + std::to_string(type) + R"(, "Device Id": )" + std::to_string(id) + "}}";
}

std::string profile(const std::string& events) {
  return R"({"schemaVersion": 1, "deviceProperties": [{"id": 0}], "traceEvents": [)" + events + "]}";
}

/// "4@0 0- 8@1": a request with its bytes and id, the end of an id; ":s" after it where the stream is not 0.
std::string shown(const AllocationTrace& trace) {
  std::string text;
  for (const TraceEvent& event : trace.events) {
    if (!text.empty()) text += ' ';
    text += event.bytes == 0 ? std::to_string(event.id) + "-"
                             : std::to_string(event.bytes) + "@" + std::to_string(event.id);
    if (event.stream != 0) text += ":" + std::to_string(event.stream);
  }
  return text;
}

TEST(AllocationTrace, ReadsASnapshot) {
  const auto trace = read_allocation_trace(snapshot(
      action("segment_alloc", 4096, 2 * kMiB) + "," + action("alloc", 4096, 100) + "," +
      action("alloc", 8192, 200, 94000) + "," + action("free_requested", 4096, 100) + "," +
      action("free_completed", 4096, 100) + R"(,{"action": "oom", "device_free": 5, "size": 6, "stream": 0},)" +
      R"({"action": "snapshot", "addr": 0, "size": 0, "stream": 0},)" + action("alloc", 4096, 300)));
  ASSERT_TRUE(succeeds(trace));
  EXPECT_EQ(trace->format, TraceFormat::cuda_snapshot);
  EXPECT_FALSE(trace->cpu);
  EXPECT_EQ(shown(*trace), "100@0 200@1:1 0- 300@2");
  EXPECT_EQ(trace->allocations, 3U);
  EXPECT_EQ(trace->recorded_reserved, 2 * kMiB);
  EXPECT_EQ(trace->unknown_frees, 0);
}

TEST(AllocationTrace, SegmentsThatCameAndWentTellWhatWasReserved) {
  const auto trace = read_allocation_trace(snapshot(
      action("segment_alloc", 1, 20) + "," + action("segment_map", 2, 30) + "," + action("segment_free", 1, 20) + "," +
      action("segment_alloc", 3, 25) + "," + action("segment_unmap", 2, 30) + "," + action("alloc", 3, 25)));
  ASSERT_TRUE(succeeds(trace));
  EXPECT_EQ(trace->recorded_reserved, 55);
}

TEST(AllocationTrace, ReadsAProfilersTraceOfACpu) {
  const auto trace = read_allocation_trace(
      profile(R"({"ph": "X", "name": "aten::mm", "ts": 1, "dur": 5, "args": {"Bytes": "no", "Input Dims": [[1]]}},)" +
              memory(2.5, 64, 400) + "," + memory(3, 128, 4) + "," + memory(4, 64, -400)));
  ASSERT_TRUE(succeeds(trace));
  EXPECT_EQ(trace->format, TraceFormat::profiler);
  EXPECT_TRUE(trace->cpu);
  EXPECT_EQ(shown(*trace), "400@0 4@1 0-");
  EXPECT_FALSE(trace->recorded_reserved);
}

TEST(AllocationTrace, ReadsABareListOfEvents) {
  const auto trace = read_allocation_trace("[" + memory(1, 64, 400) + "," + memory(2, 64, -400) + "]");
  ASSERT_TRUE(succeeds(trace));
  EXPECT_EQ(shown(*trace), "400@0 0-");
}

TEST(AllocationTrace, AProfilersEventsAreTakenInOrderOfTime) {
  const auto trace = read_allocation_trace(
      profile(memory(3, 64, -400) + "," + memory(1, 64, 400) + "," + memory(3, 64, 8) + "," + memory(2, 128, 4)));
  ASSERT_TRUE(succeeds(trace));
  EXPECT_EQ(shown(*trace), "400@0 4@1 0- 8@2");
}

TEST(AllocationTrace, TheGpuGoesBeforeTheCpu) {
  const std::string text = profile(memory(1, 64, 400) + "," + memory(2, 64, 512, 1, 1, 4096) + "," +
                                   memory(3, 64, 1024, 1, 0, 2048) + "," + memory(4, 64, -400));
  const auto first = read_allocation_trace(text);
  ASSERT_TRUE(succeeds(first));
  EXPECT_FALSE(first->cpu);
  EXPECT_EQ(first->device, 0);
  EXPECT_EQ(shown(*first), "1024@0");
  EXPECT_EQ(first->recorded_reserved, 2048);
  const auto second = read_allocation_trace(text, {{}, 1});
  ASSERT_TRUE(succeeds(second));
  EXPECT_EQ(second->device, 1);
  EXPECT_EQ(shown(*second), "512@0");
  EXPECT_TRUE(fails(read_allocation_trace(text, {{}, 2}), ErrorCode::missing_information, 0, "of GPU 2"));
}

TEST(AllocationTrace, TheFirstDeviceWithAllocationsIsTaken) {
  const auto trace = read_allocation_trace(R"({"device_traces": [[], [)" + action("alloc", 1, 100) + "], [" +
                                           action("alloc", 1, 200) + "]]}");
  ASSERT_TRUE(succeeds(trace));
  EXPECT_EQ(trace->device, 1);
  EXPECT_EQ(shown(*trace), "100@0");
}

TEST(AllocationTrace, FreesOfEarlierMemoryAreCounted) {
  const auto trace = read_allocation_trace(snapshot(action("free_completed", 1, 100) + "," + action("alloc", 1, 50) +
                                                    R"(,{"action": "free_completed", "addr": 9})"));
  ASSERT_TRUE(succeeds(trace));
  EXPECT_EQ(shown(*trace), "50@0");
  EXPECT_EQ(trace->unknown_frees, 2);
  EXPECT_EQ(trace->unknown_bytes, 100);
}

TEST(AllocationTrace, AnAddressThatComesAgainWasFreed) {
  const auto trace = read_allocation_trace(profile(memory(1, 64, 400) + "," + memory(2, 64, 8)));
  ASSERT_TRUE(succeeds(trace));
  EXPECT_EQ(shown(*trace), "400@0 0- 8@1");
  EXPECT_EQ(trace->missing_frees, 1);
}

TEST(AllocationTrace, EmptyRequestsAreLeftOut) {
  const auto trace = read_allocation_trace(snapshot(action("alloc", 1, 0) + "," + action("alloc", 2, 5)));
  ASSERT_TRUE(succeeds(trace));
  EXPECT_EQ(shown(*trace), "5@0");
}

TEST(AllocationTrace, ErrorsNameTheirPlace) {
  struct Case {
    std::string json;
    std::string element;
  };
  const std::string good = memory(1, 64, 400) + ",";
  for (const Case& one : std::vector<Case>{
           {snapshot(action("alloc", 1, 1) + "," + action("alloc", 2, -1)), "/device_traces/0/1/size"},
           {snapshot(action("alloc", 1, INT64_MAX)), "/device_traces/0/0/size"},
           {snapshot(R"({"action": "alloc", "addr": "x", "size": 1})"), "/device_traces/0/0/addr"},
           {snapshot(R"({"action": "alloc", "addr": 1, "size": 1, "stream": 1.5})"), "/device_traces/0/0/stream"},
           {snapshot(R"({"addr": 1, "size": 1})"), "/device_traces/0/0/action"},
           {profile(good + R"({"name": "[memory]", "ts": 1})"), "/traceEvents/1/args"},
           {profile(good + R"({"name": "[memory]", "ts": 1, "args": {"Addr": 1, "Device Type": 0}})"),
            "/traceEvents/1/args/Bytes"},
           {profile(good + R"({"name": "[memory]", "ts": 1, "args": {"Bytes": 1, "Device Type": 0}})"),
            "/traceEvents/1/args/Addr"},
           {profile(good + R"({"name": "[memory]", "ts": 1, "args": {"Bytes": 1, "Addr": 0}})"),
            "/traceEvents/1/args/Device Type"},
           {profile(good + R"({"name": "[memory]", "args": {"Bytes": 1, "Addr": 0, "Device Type": 0}})"),
            "/traceEvents/1/ts"},
           {"[" + good + R"({"name": "[memory]", "ts": 1, "args": [1]}])", "/1/args"},
       }) {
    const auto trace = read_allocation_trace(one.json, {"trace.json", {}});
    EXPECT_TRUE(fails(trace, ErrorCode::malformed_input, 0, "must be")) << one.json;
    if (trace) continue;
    EXPECT_EQ(trace.error().place.element, one.element);
    EXPECT_EQ(trace.error().place.file, "trace.json");
  }
}

TEST(AllocationTrace, SyntaxErrorsNameTheirLine) {
  EXPECT_TRUE(fails(read_allocation_trace("{\"traceEvents\": [\n{},\n"), ErrorCode::malformed_input, 3, "is not JSON"));
  EXPECT_TRUE(fails(read_allocation_trace("\x80\x04\x95"), ErrorCode::malformed_input, 1, "json.dump"));
  EXPECT_TRUE(fails(read_allocation_trace(""), ErrorCode::malformed_input, 1, "is not JSON"));
  EXPECT_TRUE(fails(read_allocation_trace("[1e999]"), ErrorCode::malformed_input, 1, "is not JSON"));
}

TEST(AllocationTrace, OtherJsonIsRefused) {
  for (const char* json : {"{}", "7", "\"traceEvents\"", R"({"traceEvents": 1})", R"({"device_traces": [1]})",
                           R"({"a": {"traceEvents": [{}]}})"}) {
    EXPECT_TRUE(fails(read_allocation_trace(json), ErrorCode::unknown_format, 0, "neither")) << json;
  }
}

TEST(AllocationTrace, RecordingsWithoutAllocationsSayHowToMakeOne) {
  EXPECT_TRUE(fails(read_allocation_trace(R"({"device_traces": {"a": [{"action": 1}]}})"),
                    ErrorCode::missing_information, 0, "no allocation"));
  EXPECT_TRUE(fails(read_allocation_trace(profile("{}")), ErrorCode::missing_information, 0, "profile_memory=True"));
  EXPECT_TRUE(
      fails(read_allocation_trace("[1, [2], {\"a\": 3}]"), ErrorCode::missing_information, 0, "profile_memory"));
  EXPECT_TRUE(
      fails(read_allocation_trace(snapshot("")), ErrorCode::missing_information, 0, "_record_memory_history()"));
}

TEST(AllocationTrace, StreamsAreBounded) {
  std::string actions;
  for (int i = 0; i < 1025; ++i) actions += (i > 0 ? "," : "") + action("alloc", i, 1, i);
  EXPECT_TRUE(fails(read_allocation_trace(snapshot(actions)), ErrorCode::malformed_input, 0, "1024 streams"));
}

AllocationTrace three_requests() {
  AllocationTrace trace;
  trace.events = {{30 * kMiB, 0, 0}, {100, 1, 0}, {0, 0, 0}, {40 * kMiB, 2, 0}};
  trace.allocations = 3;
  return trace;
}

TEST(Replay, GivesThePeaks) {
  const TraceReplay result = replay(three_requests());
  EXPECT_EQ(result.peak_requested, 40 * kMiB + 100);
  EXPECT_EQ(result.peak_allocated, 40 * kMiB + 512);
  EXPECT_EQ(result.peak_reserved, 72 * kMiB);
  EXPECT_EQ(result.peak_segments, 3);
  EXPECT_EQ(result.retries, 0);
  EXPECT_FALSE(result.ended_at);
}

TEST(Replay, ObeysTheCapacity) {
  AllocatorOptions options;
  options.capacity = Bytes(50 * kMiB);
  const TraceReplay tight = replay(three_requests(), options);
  EXPECT_EQ(tight.peak_reserved, 42 * kMiB);
  EXPECT_EQ(tight.retries, 1);
  EXPECT_FALSE(tight.ended_at);
  options.capacity = Bytes(40 * kMiB);
  EXPECT_EQ(replay(three_requests(), options).ended_at, 3U);
}

}  // namespace
}  // namespace gpumem::device
