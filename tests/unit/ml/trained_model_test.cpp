#include <cmath>
#include <filesystem>
#include <limits>

#include "expect.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/ml/model_config.hpp"
#include "gpumem/ml/trained_model.hpp"
#include "own_path.hpp"

namespace gpumem::ml {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

namespace fs = std::filesystem;
using Outputs = std::vector<float>;

/// One Linear over two features, so that outputs are worked out by hand: 2 a - b + 0.5 and a + 3 b - 1, where a is the
/// first feature and b = log1p(the second) / 2.
ModelConfig linear_config() {
  ModelConfig config;
  config.name = "linear";
  config.nets = NetKind::mlp;
  config.network = {.features = 2, .outputs = 2, .branches = {{.encoder = {}, .members = {{}}}}};
  config.features = {{.name = "parameters_mib"}, {.name = "batch_size", .transform = Transform::log1p, .scale = 2.0}};
  config.head.names = {"one", "two"};
  config.provenance = {{"data", "made up for a test"}};
  config.test_vectors = {{.features = {3.0, 0.0}, .sequence = {}, .outputs = {6.5, 2.0}}};
  return config;
}

TensorFile linear_weights() {
  TensorFile file;
  file.tensors = {{"branches.0.members.0.output.weight", {2, 2}, {2, -1, 1, 3}},
                  {"branches.0.members.0.output.bias", {2}, {0.5F, -1}}};
  return file;
}

core::Result<TrainedModel> made(const ModelConfig& config, const TensorFile& weights) {
  return make_model(write_model_config(config), write_safetensors(weights), "models/linear");
}

const std::string kGolden = GPUMEM_SOURCE_DIR "/tests/golden/models/";

TEST(Transformed, IsTakenScaledAndCast) {
  EXPECT_EQ(transformed({.name = "x"}, 7.0), 7.0F);
  EXPECT_EQ(transformed({.name = "x", .mean = 1.0, .scale = 4.0}, 7.0), 1.5F);
  const FeatureSpec log = {.name = "x", .transform = Transform::log1p, .mean = 1.0, .scale = 2.0};
  EXPECT_EQ(transformed(log, std::expm1(5.0)), 2.0F);
  EXPECT_FALSE(std::isfinite(transformed(log, -1.0)));
  EXPECT_FALSE(std::isfinite(transformed(log, -2.0)));
  EXPECT_FALSE(std::isfinite(transformed({.name = "x"}, 1e39)));
  EXPECT_FALSE(std::isfinite(transformed({.name = "x"}, std::numeric_limits<double>::quiet_NaN())));
  EXPECT_TRUE(std::isfinite(transformed(log, 1e300)));
}

TEST(MakeModel, RunsRawFeatures) {
  const auto model = made(linear_config(), linear_weights());
  ASSERT_TRUE(succeeds(model));
  EXPECT_EQ(model->config, linear_config());
  const std::vector<double> raw = {1.0, std::expm1(4.0)};
  const auto outputs = run_raw(*model, raw, {});
  ASSERT_TRUE(succeeds(outputs));
  EXPECT_NEAR((*outputs)[0], 0.5, 1e-6);
  EXPECT_NEAR((*outputs)[1], 6.0, 1e-6);
}

TEST(MakeModel, RefusesWeightsThatDoNotFit) {
  struct Fault {
    std::string part;
    std::string tensor;
    void (*break_it)(TensorFile& file);
  };
  const std::string weight = "branches.0.members.0.output.weight";
  const std::vector<Fault> faults = {
      {"missing", weight, [](TensorFile& file) { file.tensors.erase(file.tensors.begin()); }},
      {"", "stray",
       [](TensorFile& file) {
         file.tensors.push_back({"stray", {1}, {0}});
       }},
      {"[4]", weight, [](TensorFile& file) { file.tensors[0].shape = {4}; }},
      {"finite", weight, [](TensorFile& file) { file.tensors[0].values[2] = std::nanf(""); }},
      {"finite", "branches.0.members.0.output.bias",
       [](TensorFile& file) { file.tensors[1].values[0] = std::numeric_limits<float>::infinity(); }},
  };
  for (const Fault& fault : faults) {
    TensorFile file = linear_weights();
    fault.break_it(file);
    const auto model = made(linear_config(), file);
    ASSERT_TRUE(fails(model, ErrorCode::malformed_input, 0, fault.part));
    EXPECT_EQ(model.error().place.element, fault.tensor);
    EXPECT_EQ(model.error().place.file, "models/linear/model.safetensors");
  }
}

TEST(MakeModel, RefusesADamagedFileByItsName) {
  const auto config = make_model("{", write_safetensors(linear_weights()), "m/");
  ASSERT_TRUE(fails(config, ErrorCode::malformed_input, 1, "is not JSON"));
  EXPECT_EQ(config.error().place.file, "m/config.json");
  const auto weights = make_model(write_model_config(linear_config()), "", "m/");
  ASSERT_TRUE(fails(weights, ErrorCode::malformed_input, 0, "is 0 bytes long"));
  EXPECT_EQ(weights.error().place.file, "m/model.safetensors");
  EXPECT_EQ(make_model("{", "").error().place.file, "config.json");
}

TEST(MakeModel, RefusesWeightsThatDoNotGiveTheTestVectors) {
  TensorFile file = linear_weights();
  file.tensors[0].values[0] = 2.01F;
  const auto model = made(linear_config(), file);
  ASSERT_TRUE(fails(model, ErrorCode::malformed_input, 0, "is not what the weights give (off by 0.00461"));
  EXPECT_EQ(model.error().place.element, "/test_vectors/0");
  EXPECT_EQ(model.error().place.file, "models/linear/config.json");
  file.tensors[0].values[0] = 2.001F;  // 3e-3 of 6.5
  EXPECT_TRUE(succeeds(made(linear_config(), file)));

  ModelConfig config = linear_config();
  config.test_vectors.push_back({.features = {1.0, -1.0}, .sequence = {}, .outputs = {0.0, 0.0}});
  const auto beyond = made(config, linear_weights());
  ASSERT_TRUE(fails(beyond, ErrorCode::malformed_input, 0, "-1 is beyond the model's feature 'batch_size'"));
  EXPECT_EQ(beyond.error().place.element, "/test_vectors/1/features/1");
}

TEST(RunRaw, NamesTheFigureThatIsWrong) {
  const auto model = load_model(kGolden + "sequence");
  ASSERT_TRUE(succeeds(model));
  const auto place = [&](const std::vector<double>& features, const std::vector<std::vector<double>>& sequence) {
    const auto outputs = run_raw(*model, features, sequence);
    return outputs ? "none" : std::string(core::to_string(outputs.error().code)) + outputs.error().place.element;
  };
  EXPECT_EQ(place({8}, {{1, 2, 3}}), "none");
  EXPECT_EQ(place({8, 9}, {{1, 2, 3}}), "invalid_argument/features");
  EXPECT_EQ(place({std::nan("")}, {{1, 2, 3}}), "invalid_argument/features/0");
  EXPECT_EQ(place({8}, {{1, 2, 3}, {1, 2}}), "invalid_argument/sequence/1");
  EXPECT_EQ(place({8}, {{1, 2, 3}, {1, -2, 3}}), "invalid_argument/sequence/1/1");
  const auto linear = made(linear_config(), linear_weights());
  ASSERT_TRUE(succeeds(linear));
  const std::vector<double> features = {1, 2};
  EXPECT_TRUE(fails(run_raw(*linear, features, std::vector<std::vector<double>>{{1}}), ErrorCode::invalid_argument, 0,
                    "the model reads none"));
}

TEST(RunRaw, SaysThatOutputsAreNotFinite) {
  TensorFile file = linear_weights();
  file.tensors[0].values[0] = 3e38F;
  file.tensors[0].values[2] = 3e38F;
  ModelConfig config = linear_config();
  config.test_vectors = {{.features = {0.0, 0.0}, .sequence = {}, .outputs = {0.5, -1.0}}};
  const auto model = made(config, file);
  ASSERT_TRUE(succeeds(model));
  const std::vector<double> features = {1e30, 0};
  EXPECT_TRUE(fails(run_raw(*model, features, {}), ErrorCode::overflow, 0, "is not finite"));
}

// Their outputs were computed by the script that makes them, which shares no code with this library.
TEST(LoadModel, GivesWhatAnotherProgramComputed) {
  for (const char* name : {"bins", "sequence"}) {
    const auto model = load_model(kGolden + name);
    ASSERT_TRUE(succeeds(model));
    for (const TestVector& vector : model->config.test_vectors) {
      const auto far = deviation(*model, vector);
      ASSERT_TRUE(succeeds(far));
      EXPECT_LT(*far, 1e-5) << name;
    }
  }
}

TEST(LoadModel, CutsASequenceThatIsTooLong) {
  const auto model = load_model(kGolden + "sequence");
  ASSERT_TRUE(succeeds(model));
  const TestVector& vector = model->config.test_vectors.back();
  ASSERT_GT(static_cast<std::int64_t>(vector.sequence.size()), model->config.network.sequence_length);
  std::vector<std::vector<double>> rows = vector.sequence;
  rows.back() = {1e30, 1e30, 1e30};
  const auto outputs = run_raw(*model, vector.features, rows);
  ASSERT_TRUE(succeeds(outputs));
  EXPECT_NEAR((*outputs)[0], vector.outputs[0], 1e-5);
}

TEST(LoadModel, SaysWhichFileIsMissing) {
  const auto model = load_model("/nowhere/");
  ASSERT_TRUE(fails(model, ErrorCode::unreadable_file, 0, "No such file or directory"));
  EXPECT_EQ(model.error().place.file, "/nowhere/config.json");
}

TEST(SaveModel, WritesWhatLoads) {
  const std::string folder = testing::own_path("save_model_test/deep/er").string();
  fs::remove_all(fs::path(folder).parent_path().parent_path());
  ASSERT_TRUE(succeeds(save_model(linear_config(), linear_weights(), folder)));
  const auto model = load_model(folder);
  ASSERT_TRUE(succeeds(model));
  EXPECT_EQ(model->config, linear_config());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 2);
  const auto weights = core::read_file(folder + "/model.safetensors");
  ASSERT_TRUE(succeeds(weights));
  EXPECT_EQ(*weights, write_safetensors(linear_weights()));

  // What would not load is not written, so that the one that is there stands.
  TensorFile wrong = linear_weights();
  wrong.tensors.pop_back();
  EXPECT_TRUE(fails(save_model(linear_config(), wrong, folder), ErrorCode::malformed_input, 0, "missing"));
  EXPECT_TRUE(succeeds(load_model(folder)));
  fs::remove_all(fs::path(folder).parent_path().parent_path());
}

TEST(SaveModel, SaysWhyItCannotWrite) {
  const auto saved = save_model(linear_config(), linear_weights(), "/dev/null/model");
  ASSERT_TRUE(fails(saved, ErrorCode::unreadable_file, 0, "cannot make the folder: Not a directory"));
  EXPECT_EQ(saved.error().place.file, "/dev/null/model");
}

TEST(BuiltinModels, LoadAndAreNamedAsTheirFolders) {
  EXPECT_GE(builtin_models().size(), 7U);
  for (const BuiltinModel& builtin : builtin_models()) {
    const auto model = find_model(builtin.name);
    ASSERT_TRUE(testing::succeeds(model)) << builtin.name;
    EXPECT_EQ(model->config.name, builtin.name);
    EXPECT_TRUE(builtin.name.ends_with("-" + std::string(model::name_of(kNetKinds, model->config.nets))))
        << builtin.name;
  }
}

TEST(BuiltinModels, SayWhereTheyCameFrom) {
  for (const BuiltinModel& builtin : builtin_models()) {
    const auto model = find_model(builtin.name);
    ASSERT_TRUE(testing::succeeds(model));
    for (const char* field : {"data", "gpu", "licence", "profile"}) {
      const auto& entries = model->config.provenance;
      EXPECT_TRUE(std::any_of(entries.begin(), entries.end(), [&](const auto& entry) { return entry.first == field; }))
          << builtin.name << ": " << field;
    }
  }
}

TEST(BuiltinModels, AreFoundByTheBeginningOfTheirNames) {
  const auto perceptrons = find_models("gpumemnet-mlp-");
  ASSERT_TRUE(testing::succeeds(perceptrons));
  EXPECT_EQ(perceptrons->size(), 3U);
  EXPECT_TRUE(testing::fails(find_models("crystal-ball-"), ErrorCode::invalid_argument, 0, "crystal-ball-"));
}

TEST(BuiltinModels, AFolderIsLoaded) {
  EXPECT_TRUE(testing::succeeds(find_model(GPUMEM_SOURCE_DIR "/tests/golden/models/bins")));
  EXPECT_TRUE(testing::fails(find_model("./nowhere"), ErrorCode::unreadable_file, 0, ""));
  EXPECT_TRUE(testing::fails(find_model("crystal-ball"), ErrorCode::invalid_argument, 0, "choose one of gpumemnet-"));
}

}  // namespace
}  // namespace gpumem::ml
