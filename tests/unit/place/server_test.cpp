#include <gtest/gtest.h>

#include <cmath>

#include "expect.hpp"
#include "gpumem/place/server.hpp"
#include "servers.hpp"

namespace gpumem::place {
namespace {

using core::Bytes;
using core::ErrorCode;
using testing::fails;
using testing::gib;
using testing::server_of;
using testing::succeeds;

TEST(ServerGpu, FreeIsLessTheLargerOfUsedAndSetAside) {
  ServerGpu gpu = server_of({{10.0}}).gpus[0];
  EXPECT_EQ(gpu.free(), gib(30));
  ASSERT_TRUE(succeeds(gpu.jobs.add({"a", gib(8)})));
  EXPECT_EQ(gpu.free(), gib(30));
  ASSERT_TRUE(succeeds(gpu.jobs.add({"b", gib(8)})));
  EXPECT_EQ(gpu.set_aside(), gib(16));
  EXPECT_EQ(gpu.free(), gib(24));
  gpu.used = gib(50);
  EXPECT_EQ(gpu.free(), Bytes());
}

TEST(ServerGpu, IsIdleWithNothingButTheDriver) {
  ServerGpu gpu = server_of({{}}).gpus[0];
  gpu.used = kIdleUse;
  EXPECT_TRUE(gpu.idle());
  gpu.used = Bytes(kIdleUse.count() + 1);
  EXPECT_FALSE(gpu.idle());
  gpu.used = Bytes();
  ASSERT_TRUE(succeeds(gpu.jobs.add({"a", Bytes()})));
  EXPECT_FALSE(gpu.idle());
}

TEST(PlacedJobs, ComeAndGo) {
  PlacedJobs jobs;
  ASSERT_TRUE(succeeds(jobs.add({"a", gib(1), 0.5})));
  ASSERT_TRUE(succeeds(jobs.add({"b", gib(2)})));
  EXPECT_EQ(jobs.size(), 2U);
  ASSERT_NE(jobs.find("a"), nullptr);
  EXPECT_EQ(jobs.find("a")->smact, 0.5);
  EXPECT_TRUE(jobs.remove("a"));
  EXPECT_FALSE(jobs.remove("a"));
  EXPECT_EQ(jobs.memory(), gib(2));
  EXPECT_EQ(jobs.begin()->id, "b");
  EXPECT_TRUE(jobs.remove("b"));
  EXPECT_TRUE(jobs.empty());
  EXPECT_EQ(jobs.memory(), Bytes());
}

TEST(PlacedJobs, RefuseWhatCannotBe) {
  constexpr auto kInvalid = ErrorCode::invalid_argument;
  PlacedJobs jobs;
  EXPECT_TRUE(fails(jobs.add({"", gib(1)}), kInvalid, 0, "has no id"));
  EXPECT_TRUE(fails(jobs.add({"a", Bytes(-1)}), kInvalid, 0, "negative"));
  EXPECT_TRUE(fails(jobs.add({"a", gib(1), 1.5}), kInvalid, 0, "between 0 and 1"));
  EXPECT_TRUE(fails(jobs.add({"a", gib(1), std::nan("")}), kInvalid, 0, "between 0 and 1"));
  ASSERT_TRUE(succeeds(jobs.add({"a", gib(1)})));
  EXPECT_TRUE(fails(jobs.add({"a", gib(1)}), kInvalid, 0, "'a' is on this GPU already"));
  EXPECT_TRUE(fails(jobs.add({"b", Bytes(INT64_MAX)}), ErrorCode::overflow, 0, "64 bits"));
  EXPECT_TRUE(fails(jobs.add({"b", gib(1), 0.0, true}), kInvalid, 0, "must have its GPU to itself"));
  EXPECT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs.memory(), gib(1));
}

TEST(PlacedJobs, AJobThatIsToBeAloneIs) {
  PlacedJobs jobs;
  ASSERT_TRUE(succeeds(jobs.add({"a", gib(1), 0.0, true})));
  EXPECT_TRUE(jobs.exclusive());
  EXPECT_TRUE(fails(jobs.add({"b", gib(1)}), ErrorCode::invalid_argument, 0, "the job there must have it to itself"));
  EXPECT_TRUE(jobs.remove("a"));
  EXPECT_FALSE(jobs.exclusive());
  EXPECT_TRUE(succeeds(jobs.add({"b", gib(1)})));
}

TEST(Server, IsValidated) {
  constexpr auto kInvalid = ErrorCode::invalid_argument;
  EXPECT_TRUE(succeeds(validate(server_of({{}, {50.0, 1.0}}))));
  EXPECT_TRUE(fails(validate(Server{}), kInvalid, 0, "the server has no GPUs"));
  EXPECT_TRUE(fails(validate(server_of({{0.0, 0.0, 0.0}})), kInvalid, 0, "GPU '0' has no memory"));
  EXPECT_TRUE(fails(validate(server_of({{-1.0}})), kInvalid, 0, "negative"));
  EXPECT_TRUE(fails(validate(server_of({{0.0, -0.1}})), kInvalid, 0, "between 0 and 1"));
  Server server = server_of({{}, {}});
  server.gpus[1].id = "0";
  EXPECT_TRUE(fails(validate(server), kInvalid, 0, "two GPUs have the id '0'"));
  server.gpus[1].id = "";
  EXPECT_TRUE(fails(validate(server), kInvalid, 0, "has no id"));
}

constexpr auto kMalformed = ErrorCode::malformed_input;

std::string server_with(std::string_view gpus) {
  return R"({"format": "gpumem-server", "version": 1, "gpus": )" + std::string(gpus) + "}";
}

/// Whether the server with these GPUs is refused at this field with these words.
::testing::AssertionResult refuses(std::string_view gpus, std::string_view element, std::string_view message) {
  const auto server = parse_server(server_with(gpus));
  if (!server && server.error().place.element != element) {
    return ::testing::AssertionFailure() << "at " << server.error().place.element << ", not at " << element;
  }
  return fails(server, kMalformed, 0, message);
}

TEST(ServerJson, ReadsAServer) {
  const auto server = parse_server(server_with(R"([
      {"id": "0", "profile": "a100-40gb", "used_mib": 13312, "smact": 0.41,
       "jobs": [{"id": "resnet50", "memory_mib": 12288, "smact": 0.38}, {"id": "vgg16"}]},
      {"id": "MIG-1", "profile": "a100-40gb-mig-1g.5gb", "jobs": [{"id": "x", "memory_bytes": 7, "exclusive": true}]},
      {"id": "2", "total_bytes": 1000, "used_bytes": 10, "smact": 1}])"));
  ASSERT_TRUE(succeeds(server));
  ASSERT_EQ(server->gpus.size(), 3U);
  const ServerGpu& first = server->gpus[0];
  EXPECT_EQ(first.id, "0");
  EXPECT_EQ(first.profile, "a100-40gb");
  EXPECT_EQ(first.total, device::find_profile("a100-40gb")->capacity());
  EXPECT_EQ(first.used, gib(13));
  EXPECT_EQ(first.smact, 0.41);
  EXPECT_EQ(first.set_aside(), gib(12));
  EXPECT_EQ(first.jobs.find("resnet50")->smact, 0.38);
  EXPECT_EQ(first.jobs.find("vgg16")->memory, Bytes());
  EXPECT_EQ(server->gpus[1].total, device::find_profile("a100-40gb-mig-1g.5gb")->capacity());
  EXPECT_TRUE(server->gpus[1].jobs.exclusive());
  EXPECT_EQ(server->gpus[2].total, Bytes(1000));
  EXPECT_EQ(server->gpus[2].used, Bytes(10));
  EXPECT_EQ(server->gpus[2].smact, 1.0);
}

TEST(ServerJson, ItsTotalGoesBeforeTheProfiles) {
  const std::string json = server_with(R"([{"total_mib": 1024, "id": "0", "profile": "a100-40gb"}])");
  EXPECT_EQ(parse_server(json)->gpus[0].total, gib(1));
}

TEST(ServerJson, LooksUpAProfileOnce) {
  int asked = 0;
  const auto find = [&](std::string_view name) {
    ++asked;
    return device::find_profile(name);
  };
  const std::string json = server_with(R"([{"id": "0", "profile": "h100-80gb"}, {"id": "1", "profile": "h100-80gb"}])");
  EXPECT_TRUE(succeeds(parse_server(json, "s.json", find)));
  EXPECT_EQ(asked, 1);
}

TEST(ServerJson, NamesTheFieldOfWhatIsWrong) {
  EXPECT_TRUE(refuses("7", "/gpus", "must be a list"));
  EXPECT_TRUE(refuses("[]", "/gpus", "the server has no GPUs"));
  EXPECT_TRUE(refuses("[7]", "/gpus/0", "must be an object"));
  EXPECT_TRUE(refuses(R"([{"id": "0"}])", "/gpus/0", "neither a profile nor total_mib"));
  EXPECT_TRUE(refuses(R"([{"total_mib": 1}])", "/gpus", "a GPU has no id"));
  EXPECT_TRUE(refuses(R"([{"id": 0, "total_mib": 1}])", "/gpus/0/id", "must be text"));
  EXPECT_TRUE(refuses(R"([{"id": "0", "total_mib": 0}])", "/gpus", "has no memory"));
  EXPECT_TRUE(refuses(R"([{"id": "0", "total_mib": 1, "used": 1}])", "/gpus/0/used", "is not a field of a GPU"));
  EXPECT_TRUE(refuses(R"([{"id": "0", "total_mib": 1, "total_bytes": 1}])", "/gpus/0/total_bytes", "is given twice"));
  EXPECT_TRUE(refuses(R"([{"id": "0", "total_mib": 1, "used_mib": -1}])", "/gpus/0/used_mib", "0 or more"));
  EXPECT_TRUE(refuses(R"([{"id": "0", "total_mib": 1.5}])", "/gpus/0/total_mib", "must be a whole number"));
  EXPECT_TRUE(refuses(R"([{"id": "0", "total_mib": 9223372036854775807}])", "/gpus/0/total_mib", "does not fit"));
  EXPECT_TRUE(refuses(R"([{"id": "0", "total_mib": 1, "smact": 41}])", "/gpus/0/smact", "a share from 0 to 1"));
  EXPECT_TRUE(refuses(R"([{"id": "0", "total_mib": 1, "smact": "1"}])", "/gpus/0/smact", "a share from 0 to 1"));
  EXPECT_TRUE(
      refuses(R"([{"id": "0", "total_mib": 1}, {"id": "0", "total_mib": 1}])", "/gpus", "two GPUs have the id '0'"));
}

TEST(ServerJson, NamesTheFieldOfAJobThatIsWrong) {
  const auto refuses_job = [](std::string_view jobs, std::string_view element, std::string_view message) {
    return refuses(R"([{"id": "0", "total_mib": 1, "jobs": )" + std::string(jobs) + "}]", element, message);
  };
  EXPECT_TRUE(refuses_job("{}", "/gpus/0/jobs", "must be a list"));
  EXPECT_TRUE(refuses_job("[0]", "/gpus/0/jobs/0", "must be an object"));
  EXPECT_TRUE(refuses_job("[{}]", "/gpus/0/jobs/0", "a job has no id"));
  EXPECT_TRUE(refuses_job(R"([{"id": "a"}, {"id": "a"}])", "/gpus/0/jobs/1", "is on this GPU already"));
  EXPECT_TRUE(refuses_job(R"([{"id": "a", "mib": 1}])", "/gpus/0/jobs/0/mib", "is not a field of a job"));
  EXPECT_TRUE(refuses_job(R"([{"id": "a", "memory_mib": -1}])", "/gpus/0/jobs/0/memory_mib", "0 or more"));
  EXPECT_TRUE(refuses_job(R"([{"id": "a", "exclusive": 1}])", "/gpus/0/jobs/0/exclusive", "true or false"));
  EXPECT_TRUE(
      refuses_job(R"([{"id": "a", "exclusive": true}, {"id": "b"}])", "/gpus/0/jobs/1", "must have it to itself"));
}

TEST(ServerJson, IsWhatItSays) {
  EXPECT_TRUE(fails(parse_server("[]"), kMalformed, 0, "must hold one JSON object"));
  EXPECT_TRUE(fails(parse_server("{"), kMalformed, 1, "is not JSON"));
  EXPECT_TRUE(fails(parse_server(R"({"version": 1, "gpus": []})"), kMalformed, 0, "must be \"gpumem-server\""));
  EXPECT_TRUE(fails(parse_server(R"({"format": "gpumem-server", "gpus": []})"), kMalformed, 0, "must be 1"));
  EXPECT_TRUE(fails(parse_server(R"({"format": "gpumem-server", "version": 1})"), kMalformed, 0, "has no GPUs"));
  EXPECT_TRUE(fails(parse_server(R"({"gpu": []})"), kMalformed, 0, "is not a field of a server"));
  EXPECT_EQ(parse_server("[]", "s.json").error().place.file, "s.json");
}

TEST(ServerJson, SaysWhereActivityIsFrom) {
  const auto server =
      parse_server(server_with(R"([{"id": "0", "total_mib": 1, "smact": 0.5, "smact_source": "gpm"}])"));
  ASSERT_TRUE(succeeds(server));
  EXPECT_EQ(server->gpus[0].smact_source, "gpm");
  EXPECT_TRUE(refuses(R"([{"id": "0", "total_mib": 1, "smact_source": "guess"}])", "/gpus/0/smact_source",
                      "must be \"dcgm\", \"gpm\" or \"utilisation\""));
  EXPECT_TRUE(refuses(R"([{"id": "0", "total_mib": 1, "smact_source": 1}])", "/gpus/0/smact_source", "must be"));
}

TEST(ServerJson, IsReadBackAsItWasWritten) {
  Server server = testing::server_of({{13.0, 0.412345}, {0.0}});
  server.gpus[0].profile = "a100-40gb";
  server.gpus[0].smact_source = "dcgm";
  server.gpus[1].id = "node \"3\"\n\xff";
  ASSERT_TRUE(succeeds(server.gpus[0].jobs.add({"resnet50", gib(12), 0.38, true})));
  const std::string json = to_json(server);
  const std::string expected =
      R"({"format": "gpumem-server", "version": 1,
 "gpus": [{"id":"0","profile":"a100-40gb","total_bytes":42949672960,"used_bytes":13958643712,"smact":0.4123,)"
      R"("smact_source":"dcgm","jobs":[{"id":"resnet50","memory_bytes":12884901888,"smact":0.38,"exclusive":true}]},
          {"id":"node \"3\"\n)"
      "\xEF\xBF\xBD"  // in place of what was no UTF-8
      R"(","total_bytes":42949672960,"used_bytes":0,"smact":0.0,"jobs":[]}]}
)";
  EXPECT_EQ(json, expected);
  const auto read = parse_server(json);
  ASSERT_TRUE(succeeds(read));
  EXPECT_EQ(read->gpus[0].total, server.gpus[0].total);
  EXPECT_EQ(read->gpus[0].jobs.find("resnet50")->memory, gib(12));
  EXPECT_TRUE(read->gpus[0].jobs.exclusive());
  EXPECT_EQ(to_json(*read), json);
}

TEST(ServerJson, SaysWhichProfileIsUnknown) {
  const auto server = parse_server(server_with(R"([{"id": "0", "profile": "a1000"}])"), "s.json");
  EXPECT_TRUE(fails(server, ErrorCode::unknown_gpu, 0, "there is no GPU profile 'a1000'"));
  EXPECT_EQ(server.error().place.file, "s.json");
  EXPECT_EQ(server.error().place.element, "/gpus/0/profile");
  const auto broken = parse_server(server_with(R"([{"id": "0", "profile": "/nowhere/a.json"}])"), "s.json");
  EXPECT_TRUE(fails(broken, ErrorCode::unreadable_file, 0, "/nowhere/a.json: "));
  EXPECT_EQ(broken.error().place.file, "s.json");
}

}  // namespace
}  // namespace gpumem::place
