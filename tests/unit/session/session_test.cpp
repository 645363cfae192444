#include "gpumem/session/session.hpp"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "expect.hpp"
#include "gpumem/core/deadline.hpp"
#include "gpumem/estimate.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/request/targets.hpp"
#include "gpumem/search/frameworks.hpp"
#include "gpumem/utilisation/utilisation_estimators.hpp"
#include "own_path.hpp"

namespace gpumem::session {
namespace {

const std::string kResnet = GPUMEM_SOURCE_DIR "/models/graphs/resnet50.json";
const std::string kGpt = GPUMEM_SOURCE_DIR "/models/graphs/gpt_like.json";

job::JobRequest asks(const std::string& summary, std::int64_t batch_size) {
  job::JobRequest request;
  request.summary = summary;
  request.training.batch_size = batch_size;
  return request;
}

TEST(EstimateMemory, AnswersAsASessionDoes) {
  job::JobRequest request = asks(kResnet, 32);
  request.gpu = "h100-80gb";
  request.training.optimizer = model::Optimizer::sgd;
  const auto wanted = Session().estimate(request);
  const auto found =
      gpumem::estimate_memory(kResnet, {{"batch_size", "32"}, {"gpu", "h100-80gb"}, {"optimizer", "sgd"}});
  ASSERT_TRUE(found && wanted);
  EXPECT_EQ(found->expected, wanted->expected);
  EXPECT_EQ(found->upper, wanted->upper);
}

TEST(EstimateMemory, NamesTheOptionThatIsWrong) {
  const auto asked = [](const char* name, const char* value) {
    return gpumem::estimate_memory(kResnet, {{"batch_size", "32"}, {name, value}});
  };
  EXPECT_TRUE(gpumem::testing::fails(asked("bacth", "3"), core::ErrorCode::invalid_argument, 0, "no option 'bacth'"));
  EXPECT_TRUE(gpumem::testing::fails(asked("optimizer", "adamm"), core::ErrorCode::invalid_argument, 0, "adamm"));
}

/// What the rooms behind a session make of the same request.
struct Parts {
  explicit Parts(const job::JobRequest& request)
      : graph(std::make_shared<const model::ModelGraph>(*read_summary(request.summary))),
        job(*job::job_from(request, graph)),
        gpu(*device::find_profile(request.gpu)),
        estimator(*estimate::make_estimator(request.estimator)) {}
  std::shared_ptr<const model::ModelGraph> graph;
  model::TrainingJob job;
  device::GpuProfile gpu;
  std::unique_ptr<estimate::Estimator> estimator;
};

TEST(Session, AnswersAsTheRoomsBehindItDo) {
  Session session;
  const job::JobRequest request = asks(kResnet, 32);
  const Parts parts(request);
  const auto estimate = session.estimate(request);
  ASSERT_TRUE(testing::succeeds(estimate));
  EXPECT_EQ(estimate->upper, parts.estimator->estimate(parts.job, parts.gpu)->upper);
  EXPECT_EQ(session.fit(request)->safe.size,
            estimate::largest_batch(parts.job, parts.gpu, *parts.estimator)->safe.size);
  const auto advice = session.advise(asks(kResnet, 2000));
  ASSERT_TRUE(testing::succeeds(advice));
  EXPECT_EQ(advice->now.verdict, estimate::Verdict::does_not_fit);
  EXPECT_EQ(session.timeline(request)->peak_reserved, *estimate->reserved);
  const auto busy = session.utilisation(request);
  ASSERT_TRUE(testing::succeeds(busy));
  EXPECT_EQ(
      busy->smact.expected,
      (*utilisation::make_utilisation_estimator("utilisation-mlp"))->estimate(parts.job, parts.gpu)->smact.expected);
  const auto asked = session.request(request, "slurm", {.bytes = {}, .upper = true}, {});
  ASSERT_TRUE(testing::succeeds(asked));
  EXPECT_EQ(asked->argument, request::make_request("slurm", *estimate, parts.gpu)->argument);
}

TEST(Session, FindsTheLongestSequenceAtTheBatchOfTheRequest) {
  Session session;
  const job::JobRequest request = asks(kGpt, 2);
  const Parts parts(request);
  const auto fit = session.fit_sequence(request);
  ASSERT_TRUE(testing::succeeds(fit));
  EXPECT_EQ(fit->batch_size, 2);
  EXPECT_EQ(fit->size, estimate::longest_sequence(parts.job, parts.gpu, *parts.estimator)->size);
  EXPECT_TRUE(testing::fails(session.fit_sequence(asks(kGpt, 0)), core::ErrorCode::invalid_argument, 0, "batch size"));
}

TEST(Session, PlansAtAnyBatchSize) {
  Session session;
  auto question = search::question_about("any", {});
  ASSERT_TRUE(testing::succeeds(question));
  question->gpus = 2;
  question->global_batch = 8;
  question->show = 1;
  const auto plan = session.plan(asks(kGpt, 0), *question);
  ASSERT_TRUE(testing::succeeds(plan));
  const Parts parts(asks(kGpt, 1));
  EXPECT_EQ(plan->candidates, search::find_layouts(parts.job, parts.gpu, *question)->candidates);
}

TEST(Session, MakesEachThingOnce) {
  Session session;
  EXPECT_EQ(session.read(kResnet)->get(), session.read(kResnet)->get());
  EXPECT_NE(session.read(kResnet)->get(), session.read(kResnet, true)->get());
  EXPECT_EQ(session.gpu("a100-40gb")->get(), session.gpu("a100-40gb")->get());
  job::JobRequest request = asks(kResnet, 1);
  EXPECT_EQ(session.estimator(request)->get(), session.estimator(request)->get());
  const auto usual = session.estimator(request);
  request.alloc_conf = "expandable_segments:True";
  EXPECT_NE(usual->get(), session.estimator(request)->get());
  request.estimator = "all";
  EXPECT_EQ(session.estimators(request)->size(), estimate::estimators().size());
  EXPECT_TRUE(testing::fails(session.estimator(request), core::ErrorCode::invalid_argument, 0, "all"));
}

TEST(Session, ReadsAFileAgainOnceItHasChanged) {
  Session session;
  const std::filesystem::path path = testing::own_path("changing.json");
  EXPECT_TRUE(testing::fails(session.read(path.string()), core::ErrorCode::unreadable_file, 0, "cannot open"));
  std::filesystem::copy_file(kResnet, path, std::filesystem::copy_options::overwrite_existing);
  const auto first = session.read(path.string());
  ASSERT_TRUE(testing::succeeds(first));
  const std::int64_t parameters = (*first)->graph()->parameters();
  EXPECT_EQ(session.read(path.string())->get(), first->get());
  std::filesystem::copy_file(kGpt, path, std::filesystem::copy_options::overwrite_existing);
  const auto second = session.read(path.string());
  ASSERT_TRUE(testing::succeeds(second));
  EXPECT_NE((*second)->graph()->parameters(), parameters);
  EXPECT_EQ((*first)->graph()->parameters(), parameters) << "what was returned never changes";
  std::ofstream(path, std::ios::trunc) << "nothing that is known";
  EXPECT_FALSE(session.read(path.string()));
  std::filesystem::remove(path);
}

/// A diffusers pipeline keeps each part in a folder of its own.
TEST(Session, ReadsAFolderAgainOnceAPartOfItHasChanged) {
  Session session;
  const std::filesystem::path folder = testing::own_path("pipeline");
  std::filesystem::create_directories(folder / "unet");
  std::ofstream(folder / "model_index.json")
      << R"({"_class_name": "StableDiffusionPipeline", "unet": ["diffusers", "UNet2DConditionModel"]})";
  const auto write = [&](const std::string& width) {
    std::ofstream(folder / "unet" / "config.json", std::ios::trunc)
        << R"({"_class_name": "UNet2DConditionModel", "cross_attention_dim": )" + width + "}";
  };
  write("768");
  const auto first = session.read(folder.string());
  ASSERT_TRUE(testing::succeeds(first));
  EXPECT_EQ(session.read(folder.string())->get(), first->get());
  write("1024");
  const auto second = session.read(folder.string());
  ASSERT_TRUE(testing::succeeds(second));
  EXPECT_GT((*second)->graph()->parameters(), (*first)->graph()->parameters());
  std::filesystem::remove_all(folder);
}

TEST(Session, WhatItReturnedOutlivesIt) {
  auto session = std::make_unique<Session>();
  const auto asked = session->ask(asks(kResnet, 32));
  const auto estimator = session->estimator(asks(kResnet, 32));
  ASSERT_TRUE(testing::succeeds(asked));
  ASSERT_TRUE(testing::succeeds(estimator));
  session.reset();
  const auto analysis = asked->analysis();
  EXPECT_TRUE(testing::succeeds((*estimator)->estimate(*analysis, *asked->gpu)));
}

TEST(Session, ADeadlineThatPassedIsNotRemembered) {
  Session session;
  {
    const core::Deadline deadline(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_FALSE(session.estimate(asks(kResnet, 32)));
  }
  EXPECT_TRUE(testing::succeeds(session.estimate(asks(kResnet, 32))));
}

TEST(Session, AnswersManyThreadsAsItAnswersOne) {
  Session session;
  Session alone;
  const auto resnet = alone.estimate(asks(kResnet, 8));
  const auto gpt = alone.estimate(asks(kGpt, 4));
  const auto fit = alone.fit(asks(kResnet, 0));
  const auto busy = alone.utilisation(asks(kResnet, 8));
  ASSERT_TRUE(resnet && gpt && fit && busy);
  std::atomic<int> wrong = 0;
  const auto work = [&](int thread) {
    for (int round = 0; round < 4; ++round) {
      const auto other = session.estimate(asks(kGpt, 4));
      const auto same = session.estimate(asks(kResnet, 8));
      if (!other || other->upper != gpt->upper) ++wrong;
      if (!same || same->upper != resnet->upper) ++wrong;
      if (thread % 2 == 0) {
        const auto largest = session.fit(asks(kResnet, 0));
        if (!largest || largest->safe.size != fit->safe.size) ++wrong;
      } else {
        const auto share = session.utilisation(asks(kResnet, 8));
        if (!share || share->smact.expected != busy->smact.expected) ++wrong;
      }
    }
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) threads.emplace_back(work, thread);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Kept, LetsTheOldestGo) {
  Kept<int> kept(2);
  int made = 0;
  const auto get = [&](const std::string& key, std::uint64_t stamp) {
    return **kept.get(key, stamp, [&]() -> Kept<int>::Shared { return std::make_shared<const int>(++made); });
  };
  EXPECT_EQ(get("a", 0), 1);
  EXPECT_EQ(get("b", 0), 2);
  EXPECT_EQ(get("a", 0), 1);
  EXPECT_EQ(get("c", 0), 3);
  EXPECT_EQ(get("b", 0), 2);
  EXPECT_EQ(get("a", 0), 4) << "the oldest went";
  EXPECT_EQ(get("c", 1), 5) << "it is another now";
  EXPECT_EQ(get("c", 1), 5);
}

}  // namespace
}  // namespace gpumem::session
