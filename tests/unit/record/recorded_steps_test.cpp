#include <map>

#include "expect.hpp"
#include "golden.hpp"
#include "gpumem/analysis/analysis.hpp"
#include "gpumem/record/recorded_steps.hpp"
#include "gpumem/summary/recording_fields.hpp"
#include "plans.hpp"
#include "recordings.hpp"

namespace gpumem::record {
namespace {

using testing::fails;
using testing::kSmallRecording;
using testing::succeeds;
using testing::with;

TrainingJob job_of_recording(const std::string& text, std::int64_t batch_size) {
  auto graph = parse_summary(text);
  EXPECT_TRUE(succeeds(graph));
  return {graph ? *std::move(graph) : ModelGraph(), batch_size};
}

TEST(RecordedSteps, AllocatesWhatWasRecordedAtTheJobsBatch) {
  const TrainingJob job = job_of_recording(kSmallRecording, 10);
  const auto steps = recorded_steps(job);
  ASSERT_TRUE(succeeds(steps));
  using Strings = std::vector<std::string>;
  EXPECT_EQ(testing::events(job, *steps, plan::Phase::construction, 0), Strings{"+48 model parameter"});
  EXPECT_EQ(testing::events(job, *steps, plan::Phase::batch, 1), Strings{"+120 input"});
  EXPECT_EQ(testing::events(job, *steps, plan::Phase::forward, 1), Strings{"+160 fc activation"});
  EXPECT_EQ(testing::events(job, *steps, plan::Phase::backward, 1), (Strings{"+48 gradient", "-160 fc activation"}));
  EXPECT_EQ(testing::events(job, *steps, plan::Phase::batch, 2), (Strings{"-48 gradient", "-120 input"}));
  ASSERT_EQ(steps->calls.size(), 1U);
  EXPECT_EQ(steps->calls[0].library, ops::Library::gemm);
  EXPECT_EQ(steps->peak_bytes, 48 + 120 + 160 + 48);
}

TEST(RecordedSteps, EveryUseIsTheCategoryOfItsName) {
  for (const auto& [use, name] : model::kRecordedUses) {
    EXPECT_EQ(model::name_of(plan::kCategoryNames, category_of(use)), name);
  }
}

/// The numbers in a file are those of the recorder's own list.
template <typename Rows>
void expect_numbers_of(std::string_view python_class, const Rows& rows) {
  const std::string recorder = testing::text_of(GPUMEM_SOURCE_DIR "/src/python/gpumem/record/run.py");
  std::size_t at = recorder.find("class " + std::string(python_class) + "(enum.IntEnum):");
  ASSERT_NE(at, std::string::npos);
  for (std::size_t number = 0; number < rows.size(); ++number) {
    std::string name(rows[number].name);
    for (char& letter : name) letter = letter == ' ' ? '_' : static_cast<char>(letter - 'a' + 'A');
    const std::string row = "\n    " + name + " = " + std::to_string(number) + "\n";
    const std::size_t found = recorder.find(row, at);
    ASSERT_NE(found, std::string::npos) << row;
    at = found;
  }
  const std::string further = " = " + std::to_string(rows.size()) + "\n";
  EXPECT_GT(recorder.find(further, at), recorder.find("\nclass ", at));
}

TEST(RecordedSteps, TheRecorderNumbersUsesAndPhasesAsTheReaderDoes) {
  expect_numbers_of("Category", model::kRecordedUses);
  expect_numbers_of("Phase", summary::kRecordedPhases);
}

TEST(RecordedSteps, RefusesWhatOnlyAnotherRecordingCanTell) {
  TrainingJob job = job_of_recording(kSmallRecording, 10);
  job.precision = model::Precision::bf16;
  EXPECT_TRUE(fails(recorded_steps(job), ErrorCode::invalid_argument, 0, "record again"));
  job.precision = model::Precision::fp32;
  job.sequence_length = 128;
  EXPECT_TRUE(fails(recorded_steps(job), ErrorCode::invalid_argument, 0, "`sequence_arg`"));
}

TEST(RecordedSteps, RefusesSizesBelowZeroAndBeyond64Bits) {
  const std::string less = with(kSmallRecording, "[0, 1]]", "[-8, 1]]");
  EXPECT_TRUE(fails(recorded_steps(job_of_recording(less, 4)), ErrorCode::invalid_argument, 0, "below zero"));
  EXPECT_TRUE(succeeds(recorded_steps(job_of_recording(less, 8))));
  EXPECT_TRUE(
      fails(recorded_steps(job_of_recording(kSmallRecording, INT64_MAX / 2)), ErrorCode::overflow, 0, "64 bits"));
}

/// The rules of the libraries add to what was recorded; without them a plan is what PyTorch's own tracker counts.
TEST(RecordedSteps, ResNet18HasTheWorkspacesOfItsConvolutions) {
  auto graph = read_summary(testing::golden_recording("resnet18"));
  ASSERT_TRUE(succeeds(graph));
  const TrainingJob job(*std::move(graph), 32);
  const auto steps = recorded_steps(job);
  ASSERT_TRUE(succeeds(steps));
  std::map<ops::Library, int> calls;
  for (const plan::LibraryCall& call : steps->calls) ++calls[call.library];
  constexpr int kSteps = 2;
  constexpr int kConvolutions = 20;
  EXPECT_EQ(calls[ops::Library::convolution], kSteps * (3 * kConvolutions - 1)) << "an image gets no gradient";
  EXPECT_EQ(calls[ops::Library::gemm_bias], kSteps) << "fc";
  EXPECT_EQ(calls[ops::Library::gemm], kSteps * 2) << "fc's gradients";
  for (const plan::LibraryCall& call : steps->calls) {
    if (call.library != ops::Library::convolution) continue;
    const ops::Convolution& sizes = steps->convolutions[static_cast<std::size_t>(call.convolution)];
    EXPECT_EQ(call.batch_size, 32);
    EXPECT_GT(sizes.multiply_adds().value().value_or(0), 0);
  }
}

TEST(RecordedSteps, MoreSamplesTakeMore) {
  for (const char* name : {"mlp", "resnet18", "gpt", "lora"}) {
    auto graph = read_summary(testing::golden_recording(name));
    ASSERT_TRUE(succeeds(graph)) << name;
    TrainingJob job(*std::move(graph), 1);
    std::int64_t last = 0;
    for (job.batch_size = 2; job.batch_size <= 64; job.batch_size *= 2) {
      const auto steps = recorded_steps(job);
      ASSERT_TRUE(succeeds(steps)) << name << job.batch_size;
      EXPECT_GE(steps->peak_bytes, last) << name << job.batch_size;
      last = steps->peak_bytes;
    }
  }
}

TEST(RecordedSteps, TheReplayTakesARecordingAsItTakesASummary) {
  auto graph = read_summary(testing::golden_recording("resnet50"));
  ASSERT_TRUE(succeeds(graph));
  analysis::Analysis recorded(TrainingJob(*std::move(graph), 32));
  auto table = read_summary(GPUMEM_SOURCE_DIR "/models/summaries/resnet50.torchsummary.txt");
  ASSERT_TRUE(succeeds(table));
  TrainingJob job(*std::move(table), 32);
  job.optimizer = model::Optimizer::sgd_momentum;
  analysis::Analysis printed(job);
  const auto gpu = find_profile("a100-40gb");
  ASSERT_TRUE(succeeds(gpu));
  const auto one = recorded.run(*gpu);
  const auto two = printed.run(*gpu);
  ASSERT_TRUE(succeeds(one) && succeeds(two));
  EXPECT_EQ(one->context, two->context);
  EXPECT_NEAR(static_cast<double>(one->run.peak_reserved), static_cast<double>(two->run.peak_reserved),
              0.01 * static_cast<double>(two->run.peak_reserved));
  EXPECT_TRUE(fails(recorded.wired(), ErrorCode::invalid_argument, 0, "recorded step"));
}

/// Runs the small recording at a batch of 1,500,000, where its program sets this.
core::Result<analysis::JobRun> run_with_settings(const std::string& settings,
                                                 const device::AllocatorOptions& asked = {}) {
  const std::string text =
      with(kSmallRecording, R"("optimizer": )", R"("settings": {)" + settings + R"(}, "optimizer": )");
  analysis::Analysis analysis(job_of_recording(text, 1500000));
  const auto gpu = find_profile("a100-40gb");
  if (!gpu) return gpu.error();
  return analysis.run(*gpu, asked);
}

TEST(RecordedSteps, TheProgramsAllocatorOptionsCountWhereNoneAreAskedFor) {
  const auto plain = run_with_settings("");
  const auto rounded = run_with_settings(R"("alloc_conf": "roundup_power2_divisions:2")");
  const auto segments = run_with_settings(R"("alloc_conf": "expandable_segments:True")");
  const auto asked = run_with_settings(R"("alloc_conf": "roundup_power2_divisions:2")", {.expandable_segments = true});
  const auto unknown = run_with_settings(R"("alloc_conf": "backend:cudaMallocAsync")");
  ASSERT_TRUE(succeeds(plain) && succeeds(rounded) && succeeds(segments) && succeeds(asked) && succeeds(unknown));
  EXPECT_FALSE(plain->options.expandable_segments);
  EXPECT_TRUE(segments->options.expandable_segments);
  EXPECT_NE(rounded->run.peak_reserved, plain->run.peak_reserved);
  EXPECT_TRUE(asked->options.expandable_segments);
  EXPECT_EQ(asked->options.roundup_power2_divisions.front(), 0);
  EXPECT_EQ(unknown->options, plain->options);
}

TEST(RecordedSteps, TheProgramsAllocatorOptionsCanBeSwitchedOff) {
  const auto off = device::parse_allocator_options("expandable_segments:False");
  const auto whole = device::parse_allocator_options("per_process_memory_fraction:1");
  ASSERT_TRUE(succeeds(off) && succeeds(whole));
  const auto plain = run_with_settings("");
  const auto segments = run_with_settings(R"("alloc_conf": "expandable_segments:True")", *off);
  const auto fraction = run_with_settings(R"("memory_fraction": 0.00001)", *whole);
  ASSERT_TRUE(succeeds(plain) && succeeds(segments) && succeeds(fraction));
  EXPECT_FALSE(segments->options.expandable_segments);
  EXPECT_EQ(segments->run.peak_reserved, plain->run.peak_reserved);
  EXPECT_TRUE(fraction->fits);
}

TEST(RecordedSteps, GarbageIsCollectedOnlyWithinAFractionOfTheMemory) {
  const std::string collects = R"("alloc_conf": "garbage_collection_threshold:0.5")";
  const auto without = run_with_settings(collects);
  const auto within = run_with_settings(collects + R"(, "memory_fraction": 0.25)");
  ASSERT_TRUE(succeeds(without) && succeeds(within));
  EXPECT_EQ(without->options.garbage_collection_threshold, 0.0);
  EXPECT_EQ(within->options.garbage_collection_threshold, 0.5);
  const auto gpu = find_profile("a100-40gb");
  ASSERT_TRUE(succeeds(gpu));
  EXPECT_EQ(within->options.capacity->count(), gpu->capacity().count() / 4);
  const auto both = run_with_settings(R"("alloc_conf": "per_process_memory_fraction:0.5", "memory_fraction": 0.25)");
  ASSERT_TRUE(succeeds(both));
  EXPECT_EQ(both->options.capacity->count(), gpu->capacity().count() / 4) << "the call comes after the variable";
  EXPECT_EQ(both->limit.count(), gpu->capacity().count() / 4 + both->context.expected.count());
  const auto too_little = run_with_settings(R"("memory_fraction": 0.00001)");
  ASSERT_TRUE(succeeds(too_little));
  EXPECT_FALSE(too_little->fits);
}

/// The same net recorded with SGD and asked for with Adam has Adam's states and temporaries, and nothing of SGD's.
TEST(RecordedSteps, AnotherOptimizerTakesThePlaceOfTheRecordedOne) {
  auto graph = read_summary(testing::golden_recording("resnet18"));
  ASSERT_TRUE(succeeds(graph));
  TrainingJob job(*std::move(graph), 32);
  job.optimizer = model::Optimizer::adam;
  job.replaces_optimizer = true;
  const auto steps = recorded_steps(job);
  ASSERT_TRUE(succeeds(steps));
  const std::int64_t parameters = 4 * job.graph->parameters();
  std::int64_t states = 0;
  std::int64_t temporaries = 0;
  for (const plan::Event& event : steps->events) {
    if (event.kind != plan::Event::Kind::allocate) continue;
    if (event.category == plan::Category::optimizer) states += event.bytes;
    const bool optimizes =
        steps->phase_of(static_cast<std::size_t>(&event - steps->events.data())).phase == plan::Phase::optimizer;
    if (optimizes && event.category == plan::Category::temporary) temporaries += event.bytes;
  }
  EXPECT_EQ(states, 2 * parameters);
  EXPECT_EQ(temporaries, 2 * parameters) << "two steps, each with one copy of all";
}

/// States that follow a parameter's elements, or a matrix's rows and columns, and not its bytes.
TEST(RecordedSteps, AnotherOptimizersStatesAreOfTheParametersSizes) {
  const auto states_of = [](model::Optimizer optimizer) {
    auto graph = read_summary(testing::golden_recording("mlp"));
    EXPECT_TRUE(succeeds(graph));
    TrainingJob job(*std::move(graph), 8);
    job.optimizer = optimizer;
    job.replaces_optimizer = true;
    const auto steps = recorded_steps(job);
    EXPECT_TRUE(succeeds(steps));
    std::map<std::int64_t, int> states;  // how many have so many bytes
    for (const plan::Event& event : steps->events) {
      const bool of_optimizer = event.category == plan::Category::optimizer;
      if (event.kind != plan::Event::Kind::allocate || !of_optimizer) continue;
      ++states[event.bytes];
      EXPECT_NE(event.layer, plan::kNoLayer) << "of the parameter's layer";
    }
    return states;
  };
  using States = std::map<std::int64_t, int>;
  const std::int64_t block = 256;  // elements that share a float32 figure
  const auto bytes = [&](std::int64_t elements) { return elements + elements / block * 4; };
  // 784 to 1024, 1024 to 1024, 1024 to 10; biases are too small to be kept in eight bits.
  EXPECT_EQ(states_of(model::Optimizer::adamw_8bit),
            (States{{4 * 10, 2}, {4 * 1024, 4}, {bytes(10240), 2}, {bytes(784 * 1024), 2}, {bytes(1024 * 1024), 2}}));
  EXPECT_EQ(states_of(model::Optimizer::adafactor),
            (States{{4 * 10, 1}, {4 * 1024, 2}, {4 * (1024 + 10), 1}, {4 * (784 + 1024), 1}, {4 * (1024 + 1024), 1}}));
}

double multiply_adds(const plan::StepWork& work) {
  double sum = 0.0;
  for (const plan::Kernel& kernel : work.kernels) sum += kernel.multiply_adds;
  return sum;
}

TEST(RecordedWork, CountsAProduct) {
  auto graph = parse_summary(testing::kSmallRecording);
  ASSERT_TRUE(succeeds(graph));
  const auto work = recorded_work(TrainingJob(*std::move(graph), 10));
  ASSERT_TRUE(succeeds(work));
  ASSERT_EQ(work->kernels.size(), 1U);
  EXPECT_EQ(work->kernels[0].kind, plan::Kernel::Kind::product);
  EXPECT_EQ(work->kernels[0].multiply_adds, 10.0 * 3 * 4);
  EXPECT_EQ(work->kernels[0].bytes, 4.0 * (10 * 3 + 3 * 4 + 10 * 4));
  EXPECT_EQ(work->input_bytes, 10.0 * 3 * 4);
}

/// The same net as a summary and as a recording multiplies alike: forward once, backward twice except the image.
TEST(RecordedWork, ResNet50MultipliesAsItsSummarySays) {
  auto recorded = read_summary(testing::golden_recording("resnet50"));
  auto printed = read_summary(GPUMEM_SOURCE_DIR "/models/summaries/resnet50.torchsummary.txt");
  ASSERT_TRUE(succeeds(recorded) && succeeds(printed));
  const auto of_recording = recorded_work(TrainingJob(*std::move(recorded), 32));
  analysis::Analysis analysis(TrainingJob(*std::move(printed), 32));
  const auto of_summary = analysis.work();
  ASSERT_TRUE(succeeds(of_recording) && succeeds(of_summary));
  EXPECT_NEAR(multiply_adds(*of_recording), multiply_adds(**of_summary), 0.005 * multiply_adds(**of_summary));
}

TEST(RecordedWork, NeedsToKnowHowOftenKernelsRan) {
  auto graph = parse_summary(testing::with(testing::kSmallRecording, "\"kernels\": [[1, 1]],", ""));
  ASSERT_TRUE(succeeds(graph));
  EXPECT_TRUE(testing::fails(recorded_work(TrainingJob(*std::move(graph), 2)), ErrorCode::missing_information, 0,
                             "record again"));
}

}  // namespace
}  // namespace gpumem::record
