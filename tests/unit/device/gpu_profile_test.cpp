#include "gpumem/device/gpu_profile.hpp"

#include <filesystem>
#include <map>
#include <set>

#include "expect.hpp"

namespace gpumem::device {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

TEST(BuiltinProfiles, AreThoseUnderModels) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(GPUMEM_SOURCE_DIR "/models/gpus")) {
    if (entry.path().extension() == ".json") files.insert(entry.path().stem().string());
  }
  std::set<std::string> names;
  for (const BuiltinProfile& builtin : builtin_profiles()) names.emplace(builtin.name);
  EXPECT_EQ(names, files);
  EXPECT_GE(names.size(), 48U);
}

TEST(BuiltinProfiles, AreSoundAndNamedAsTheirFiles) {
  for (const BuiltinProfile& builtin : builtin_profiles()) {
    const auto profile = parse_profile(builtin.json, builtin.name);
    ASSERT_TRUE(succeeds(profile));
    EXPECT_EQ(profile->name, builtin.name);
    EXPECT_FALSE(profile->title.empty()) << builtin.name;
    EXPECT_FALSE(profile->architecture.empty()) << builtin.name;
    EXPECT_FALSE(profile->compute_capability.empty()) << builtin.name;
    EXPECT_GE(profile->memory_bytes.value, std::int64_t{4} << 30) << builtin.name;
    if (profile->usable_bytes) {
      EXPECT_LE(profile->usable_bytes->value, profile->memory_bytes.value) << builtin.name;
    }
  }
}

TEST(BuiltinProfiles, CublasTakesMoreFromHopperOn) {
  for (const BuiltinProfile& builtin : builtin_profiles()) {
    const auto profile = parse_profile(builtin.json, builtin.name);
    ASSERT_TRUE(succeeds(profile));
    if (!profile->cublas_workspace_bytes) continue;
    const bool hopper = std::stod(profile->compute_capability) >= 9.0;
    EXPECT_EQ(profile->cublas_workspace_bytes->value, hopper ? std::int64_t{32} << 20 : 8519680) << builtin.name;
  }
}

TEST(BuiltinProfiles, NamesAndAliasesAreUniqueAndInLowerCase) {
  std::map<std::string, std::string> seen;
  for (const BuiltinProfile& builtin : builtin_profiles()) {
    const auto profile = parse_profile(builtin.json, builtin.name);
    ASSERT_TRUE(succeeds(profile));
    std::vector<std::string> names = profile->aliases;
    names.push_back(profile->name);
    for (const std::string& name : names) {
      EXPECT_TRUE(seen.emplace(name, profile->name).second)
          << name << " is of " << seen[name] << " and " << profile->name;
      EXPECT_EQ(name.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), std::string::npos) << name;
    }
  }
}

TEST(BuiltinProfiles, ASliceIsSmallerThanItsWholeGpu) {
  int slices = 0;
  for (const BuiltinProfile& builtin : builtin_profiles()) {
    const auto profile = parse_profile(builtin.json, builtin.name);
    ASSERT_TRUE(succeeds(profile));
    EXPECT_EQ(profile->parent.empty(), builtin.name.find("-mig-") == std::string_view::npos) << builtin.name;
    if (profile->parent.empty()) continue;
    ++slices;
    const auto whole = find_profile(profile->parent);
    ASSERT_TRUE(succeeds(whole));
    EXPECT_LE(profile->capacity(), whole->capacity()) << builtin.name;
    EXPECT_TRUE(whole->parent.empty()) << builtin.name;
  }
  EXPECT_GE(slices, 12);
}

TEST(FindProfile, TakesNamesAndAliasesInAnyCase) {
  for (const char* name : {"a100-40gb", "A100-40GB", "NVIDIA A100 40GB", "a100 40gb", "NVIDIA A100-SXM4-40GB"}) {
    const auto profile = find_profile(name);
    ASSERT_TRUE(succeeds(profile)) << name;
    EXPECT_EQ(profile->name, "a100-40gb");
  }
}

TEST(FindProfile, TakesWhatPeopleAndDriversWrite) {
  const std::map<std::string, std::string> kNames = {{"4090", "rtx4090-24gb"},
                                                     {"RTX 3090", "rtx3090-24gb"},
                                                     {"NVIDIA GeForce RTX 3080", "rtx3080-10gb"},
                                                     {"2080 Ti", "rtx2080ti-11gb"},
                                                     {"4080", "rtx4080-16gb"},
                                                     {"4070 ti super", "rtx4070ti-super-16gb"},
                                                     {"A6000", "a6000-48gb"},
                                                     {"RTX A5000", "a5000-24gb"},
                                                     {"H20", "h20-96gb"},
                                                     {"GH200", "gh200-96gb"},
                                                     {"H100 PCIe", "h100-pcie-80gb"},
                                                     {"NVIDIA H100 80GB HBM3", "h100-80gb"},
                                                     {"NVIDIA A100 80GB PCIe", "a100-80gb"},
                                                     {"Tesla T4", "t4-16gb"},
                                                     {"l40s", "l40s-48gb"}};
  for (const auto& [name, profile] : kNames) {
    const auto found = find_profile(name);
    ASSERT_TRUE(succeeds(found)) << name;
    EXPECT_EQ(found->name, profile) << name;
  }
}

TEST(FindProfile, SaysWhichGpusANameMayMean) {
  EXPECT_TRUE(fails(find_profile("A100"), ErrorCode::unknown_gpu, 0, "GPU 'A100' may be one of a100-40gb, a100-80gb"));
  EXPECT_TRUE(fails(find_profile("v100"), ErrorCode::unknown_gpu, 0, "may be one of v100-16gb, v100-32gb"));
}

TEST(FindProfile, SaysWhatIsNearOrWhyThereIsNone) {
  EXPECT_TRUE(fails(find_profile("rtx4090-24g"), ErrorCode::unknown_gpu, 0, "(did you mean 'rtx4090-24gb'?)"));
  EXPECT_TRUE(fails(find_profile("MI300X"), ErrorCode::unknown_gpu, 0, "AMD makes it"));
}

TEST(FindProfile, NamesWhereTheListIs) {
  EXPECT_TRUE(fails(find_profile("a1000"), ErrorCode::unknown_gpu, 0, "no GPU profile 'a1000'; 'gpumem gpus' lists"));
  EXPECT_FALSE(find_profile(""));
}

TEST(FindProfile, LoadsAPath) {
  const auto profile = find_profile(GPUMEM_SOURCE_DIR "/models/gpus/t4-16gb.json");
  ASSERT_TRUE(succeeds(profile));
  EXPECT_EQ(profile->name, "t4-16gb");
  EXPECT_TRUE(fails(find_profile("nowhere.json"), ErrorCode::unreadable_file, 0, "cannot open"));
  EXPECT_TRUE(fails(find_profile("./nowhere"), ErrorCode::unreadable_file, 0, "cannot open"));
}

TEST(GpuProfile, CapacityIsWhatIsUsableWhereThatIsKnown) {
  GpuProfile profile;
  profile.memory_bytes.value = 100;
  EXPECT_EQ(profile.capacity(), core::Bytes(100));
  profile.usable_bytes = Figure{90, "measured"};
  EXPECT_EQ(profile.capacity(), core::Bytes(90));
}

/// A profile with these fields after its head.
std::string profile_of(std::string_view fields) {
  return R"({"format": "gpumem-gpu", "version": 1, )" + std::string(fields) + "}";
}

constexpr std::string_view kMemory = R"("figures": {"memory_bytes": {"value": 100, "source": "s"}})";

TEST(ParseProfile, ReadsEveryField) {
  const auto profile = parse_profile(profile_of(R"("name": "mine", "title": "Mine", "aliases": ["m"],
    "architecture": "ampere", "compute_capability": "8.0", "parent": "whole",
    "figures": {"memory_bytes": {"value": 100, "source": "a"}, "usable_bytes": {"value": 90, "source": "b"},
                "sm_count": {"value": 8, "source": "c"},
                "link_bandwidth_bytes_per_second": {"value": 300, "source": "e"},
                "network_bandwidth_bytes_per_second": {"value": 20, "source": "f"},
                "gpus_per_node": {"value": 4, "source": "g"}},
    "contexts": [{"name": "lazy", "software": "PyTorch", "bytes": 7, "convolution_bytes": 3, "source": "d"}])"));
  ASSERT_TRUE(succeeds(profile));
  EXPECT_EQ(profile->title, "Mine");
  EXPECT_EQ(profile->aliases, std::vector<std::string>{"m"});
  EXPECT_EQ(profile->parent, "whole");
  EXPECT_EQ(profile->usable_bytes->source, "b");
  EXPECT_EQ(profile->sm_count->value, 8);
  EXPECT_EQ(profile->link_bandwidth_bytes_per_second->value, 300);
  EXPECT_EQ(profile->network_bandwidth_bytes_per_second->value, 20);
  EXPECT_EQ(profile->gpus_per_node->value, 4);
  EXPECT_FALSE(profile->peak_fp32_flops.has_value()) << "what nobody published is absent";
  ASSERT_EQ(profile->contexts.size(), 1U);
  EXPECT_EQ(profile->contexts[0].name, "lazy");
  EXPECT_EQ(profile->contexts[0].bytes, 7);
  EXPECT_EQ(profile->contexts[0].convolution_bytes, 3);
  EXPECT_EQ(profile->contexts[0].batch_norm_bytes, 0);
}

TEST(ParseProfile, RefusesABadProfileAndPointsAtTheField) {
  struct Case {
    std::string json;
    std::string_view part;
  };
  const std::string memory(kMemory);
  const std::vector<Case> cases = {
      {"", "is not JSON"},
      {"{", "is not JSON"},
      {"[]", "must hold one JSON object"},
      {"{}", "/format must be"},
      {R"({"format": "gpumem-gpu"})", "/version must be 1"},
      {R"({"format": "gpumem-gpu", "version": 2})", "/version must be 1"},
      {profile_of(memory), "/name is missing"},
      {profile_of(R"("name": "x")"), "/figures is missing"},
      {profile_of(R"("name": 3, )" + memory), "/name must be text"},
      {profile_of(R"("name": "x", "aliases": "a", )" + memory), "/aliases must be a list"},
      {profile_of(R"("name": "x", "aliases": [1], )" + memory), "/aliases must be a list"},
      {profile_of(R"("name": "x", "colour": "red", )" + memory), "/colour is not a field"},
      {profile_of(R"("name": "x", "figures": [])"), "/figures must be an object"},
      {profile_of(R"("name": "x", "figures": {})"), "/figures/memory_bytes is missing"},
      {profile_of(R"("name": "x", "figures": {"memory_bytes": 100})"), "/figures/memory_bytes must be"},
      {profile_of(R"("name": "x", "figures": {"memory_bytes": {"value": 0, "source": "s"}})"), "/figures/memory_bytes"},
      {profile_of(R"("name": "x", "figures": {"memory_bytes": {"value": -1, "source": "s"}})"),
       "/figures/memory_bytes"},
      {profile_of(R"("name": "x", "figures": {"memory_bytes": {"value": 1.5, "source": "s"}})"),
       "/figures/memory_bytes"},
      {profile_of(R"("name": "x", "figures": {"memory_bytes": {"value": 18446744073709551615, "source": "s"}})"),
       "/figures/memory_bytes"},
      {profile_of(R"("name": "x", "figures": {"memory_bytes": {"value": 1, "source": ""}})"), "/figures/memory_bytes"},
      {profile_of(R"("name": "x", "figures": {"memory_bytes": {"value": 1}})"), "/figures/memory_bytes"},
      {profile_of(R"("name": "x", "figures": {"tensor_flops": {"value": 1, "source": "s"}})"),
       "/figures/tensor_flops is not a figure"},
      {profile_of(R"("name": "x", "contexts": {}, )" + memory), "/contexts must be a list"},
      {profile_of(R"("name": "x", "contexts": [{"software": "a", "bytes": -1, "source": "s"}], )" + memory),
       "/contexts must hold"},
      {profile_of(R"("name": "x", "contexts": [{"name": "a", "software": "b", "bytes": 5, "lower_bytes": 6,
                                                "source": "s"}], )" +
                  memory),
       "\"lower_bytes\" up to \"bytes\""},
      {profile_of(R"("name": "x", "contexts": [{"name": "a", "software": "b", "bytes": 5, "upper_bytes": 4,
                                                "source": "s"}], )" +
                  memory),
       "\"upper_bytes\" from there"},
      {std::string(100'000, '['), "is not JSON"},
  };
  for (const Case& row : cases) {
    const auto profile = parse_profile(row.json, "mine.json");
    ASSERT_TRUE(fails(profile, ErrorCode::malformed_input, 0, row.part)) << row.json.substr(0, 200);
    EXPECT_EQ(profile.error().place.file, "mine.json");
  }
}

TEST(ParseProfile, RefusesAFileThatIsFarTooLarge) {
  EXPECT_TRUE(fails(parse_profile(std::string((std::size_t{1} << 20) + 1, ' ')), ErrorCode::malformed_input, 0,
                    "larger than 1 MiB"));
}

}  // namespace
}  // namespace gpumem::device
