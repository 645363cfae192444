#include "../../../src/webhook/admission.hpp"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base64.hpp"
#include "golden.hpp"

namespace gpumem::webhook {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSummaries = GPUMEM_SOURCE_DIR "/models/summaries";

Admission admission_of(OnError on_error = OnError::deny) {
  PodJob defaults;
  defaults.target = "hami";
  defaults.margin.upper = true;
  constexpr std::size_t kMost = 1 << 20;
  return Admission({defaults, on_error}, Folder(kSummaries, kMost));
}

/// The review of examples/kubernetes, with these annotations instead.
Json review_of(const Json& annotations) {
  Json review = Json::parse(testing::text_of(GPUMEM_SOURCE_DIR "/examples/kubernetes/review.json"));
  review["request"]["object"]["metadata"]["annotations"] = annotations;
  return review;
}

Json job(std::string_view batch = "32") {
  return {{"gpumem.io/summary", "resnet50.torchsummary.txt"}, {"gpumem.io/batch", batch}};
}

struct Answer {
  Outcome outcome;
  Json response;
  Json pod;  ///< as it is made in the end
};

Answer answer(const Json& review, OnError on_error = OnError::deny) {
  Admission admission = admission_of(on_error);
  const Reply reply = admission.review(review.dump());
  const Json json = Json::parse(reply.body);
  EXPECT_EQ(json["apiVersion"], "admission.k8s.io/v1");
  EXPECT_EQ(json["kind"], "AdmissionReview");
  EXPECT_EQ(json["response"]["uid"], review["request"]["uid"]);
  Answer found{reply.outcome, json["response"], review["request"]["object"]};
  if (found.response.contains("patch")) {
    EXPECT_EQ(found.response["patchType"], "JSONPatch");
    found.pod = found.pod.patch(Json::parse(testing::decoded(found.response["patch"].get<std::string>())));
  }
  return found;
}

std::string message_of(const Answer& found) {
  return found.response.value("status", Json::object()).value("message", "");
}

TEST(Admission, SetsTheLimitsOfTheTarget) {
  const Answer found = answer(review_of(job()));
  EXPECT_EQ(found.outcome, Outcome::patched);
  EXPECT_EQ(found.response["allowed"], true);
  const Json& resources = found.pod["spec"]["containers"][0]["resources"];
  EXPECT_EQ(resources["limits"]["nvidia.com/gpu"], "1");
  EXPECT_GT(std::stoi(resources["limits"]["nvidia.com/gpumem"].get<std::string>()), 1000);
  EXPECT_EQ(resources["limits"]["memory"], "16Gi");
  EXPECT_EQ(resources["requests"], Json({{"cpu", "4"}, {"memory", "16Gi"}}));
  const std::string need = found.pod["metadata"]["annotations"]["gpumem.io/need"];
  EXPECT_NE(need.find("resnet50.torchsummary.txt at batch 32 needs "), std::string::npos) << need;
  EXPECT_EQ(found.response["warnings"][0], "gpumem: " + need);
}

TEST(Admission, AnswersAPatchedPodAlike) {
  Json review = review_of(job());
  const Answer first = answer(review);
  review["request"]["object"] = first.pod;
  EXPECT_EQ(answer(review).pod, first.pod);
}

TEST(Admission, MakesTheMapsThatAreMissing) {
  for (const Json& resources : {Json(nullptr), Json::object(), Json{{"limits", nullptr}}}) {
    Json review = review_of(job());
    Json& container = review["request"]["object"]["spec"]["containers"][0];
    container["resources"] = resources;
    if (resources.is_null()) container.erase("resources");
    EXPECT_TRUE(answer(review).pod["spec"]["containers"][0]["resources"]["limits"].contains("nvidia.com/gpumem"));
  }
}

TEST(Admission, ReplacesALimitWithAWordAndKeepsTheNumberOfGpus) {
  Json review = review_of(job());
  Json& resources = review["request"]["object"]["spec"]["containers"][0]["resources"];
  resources["limits"]["nvidia.com/gpu"] = 2;
  resources["limits"]["nvidia.com/gpumem"] = 77;
  resources["requests"]["nvidia.com/gpumem"] = "77";
  const Answer found = answer(review);
  const Json& made = found.pod["spec"]["containers"][0]["resources"];
  EXPECT_EQ(made["limits"]["nvidia.com/gpu"], 2);
  EXPECT_NE(made["limits"]["nvidia.com/gpumem"], "77");
  EXPECT_EQ(made["requests"]["nvidia.com/gpumem"], made["limits"]["nvidia.com/gpumem"]);
  ASSERT_EQ(found.response["warnings"].size(), 2U);
  EXPECT_NE(found.response["warnings"][1].get<std::string>().find("was '77', is now "), std::string::npos);
}

Json job_on(std::string_view gpus) {
  Json annotations = job();
  annotations["gpumem.io/data-parallel"] = gpus;
  annotations["gpumem.io/sharding"] = "ddp";
  return annotations;
}

TEST(Admission, AsksForAllGpusOfALayout) {
  const Answer found = answer(review_of(job_on("4")));
  ASSERT_EQ(found.outcome, Outcome::patched) << message_of(found);
  EXPECT_EQ(found.pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"], "4");
  const std::string need = found.pod["metadata"]["annotations"]["gpumem.io/need"];
  EXPECT_NE(need.find(" MiB on each of 4 GPUs"), std::string::npos) << need;
  Json review = review_of(job_on("4"));
  review["request"]["object"] = found.pod;
  EXPECT_EQ(answer(review).pod, found.pod);
}

TEST(Admission, AsksForTheGpusOfOnePodOfALayout) {
  Json annotations = job_on("16");
  annotations["gpumem.io/gpus-per-node"] = "4";
  const Answer found = answer(review_of(annotations));
  ASSERT_EQ(found.outcome, Outcome::patched) << message_of(found);
  EXPECT_EQ(found.pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"], "4");
  const std::string need = found.pod["metadata"]["annotations"]["gpumem.io/need"];
  EXPECT_NE(need.find(" MiB on each of 16 GPUs, 4 a pod"), std::string::npos) << need;
  for (const char* wrong : {"", "0", "-1", "4.5", "2000"}) {
    annotations["gpumem.io/gpus-per-node"] = wrong;
    EXPECT_NE(message_of(answer(review_of(annotations))).find("it counts the GPUs of this pod"), std::string::npos);
  }
}

TEST(Admission, RefusesANumberOfGpusThatTheLayoutDoesNotHave) {
  Json review = review_of(job_on("4"));
  review["request"]["object"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = 2;
  EXPECT_NE(message_of(answer(review)).find("has the limit nvidia.com/gpu of '2', and the job takes 4 GPUs of a node"),
            std::string::npos)
      << message_of(answer(review));
}

TEST(Admission, TakesTheContainerThatIsNamed) {
  Json annotations = job();
  annotations["gpumem.io/container"] = "second";
  Json review = review_of(annotations);
  EXPECT_NE(message_of(answer(review)).find("no container 'second'"), std::string::npos);
  review["request"]["object"]["spec"]["containers"].push_back({{"name", "second"}});
  const Answer found = answer(review);
  EXPECT_FALSE(found.pod["spec"]["containers"][0]["resources"]["limits"].contains("nvidia.com/gpumem"));
  EXPECT_TRUE(found.pod["spec"]["containers"][1]["resources"]["limits"].contains("nvidia.com/gpumem"));
}

TEST(Admission, KnowsEveryTargetOnKubernetes) {
  const auto limits = [](const char* target) {
    Json annotations = job();
    annotations["gpumem.io/for"] = target;
    return answer(review_of(annotations)).pod;
  };
  EXPECT_TRUE(limits("volcano")["spec"]["containers"][0]["resources"]["limits"].contains("volcano.sh/vgpu-memory"));
  EXPECT_TRUE(limits("nvidia-mig")["spec"]["containers"][0]["resources"]["limits"].contains("nvidia.com/mig-1g.10gb"));
  EXPECT_TRUE(limits("kai")["metadata"]["annotations"].contains("gpu-memory"));
  EXPECT_TRUE(limits("kai-fraction")["metadata"]["annotations"].contains("gpu-fraction"));
  EXPECT_FALSE(limits("kai")["spec"]["containers"][0]["resources"]["limits"].contains("nvidia.com/gpu"));
}

TEST(Admission, RefusesALimitThatTheTargetGivesByOtherMeans) {
  Json annotations = job();
  annotations["gpumem.io/for"] = "kai";
  Json review = review_of(annotations);
  review["request"]["object"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "1";
  EXPECT_NE(message_of(answer(review)).find("has the limit nvidia.com/gpu"), std::string::npos);
}

TEST(Admission, TakesASummaryThatStandsInTheAnnotation) {
  const std::string text = testing::text_of(std::string(kSummaries) + "/resnet50.torchsummary.txt");
  const Answer inlined = answer(review_of({{"gpumem.io/summary-text", text}, {"gpumem.io/batch", "32"}}));
  const Answer named = answer(review_of(job()));
  EXPECT_EQ(inlined.pod["spec"], named.pod["spec"]);
}

TEST(Admission, TakesTheJobsOptions) {
  const auto asked = [](const char* name, const char* value) {
    Json annotations = job();
    annotations[std::string("gpumem.io/") + name] = value;
    const Answer found = answer(review_of(annotations));
    EXPECT_EQ(found.outcome, Outcome::patched) << name << ": " << message_of(found);
    const Json& limits = found.pod["spec"]["containers"][0]["resources"]["limits"];
    return std::stoi(limits["nvidia.com/gpumem"].get<std::string>());
  };
  const int plain = asked("optimizer", "adam");
  EXPECT_LT(asked("optimizer", "sgd"), plain);
  EXPECT_LT(asked("precision", "amp-bf16"), plain);
  EXPECT_GT(asked("software", "eager-loading"), plain);
  EXPECT_GT(asked("margin", "10GiB"), plain);
  EXPECT_NE(asked("estimator", "horus"), plain);
  EXPECT_LE(asked("alloc-conf", "expandable_segments:True"), plain);
  EXPECT_LE(asked("foreach", "false"), plain);
  EXPECT_GE(asked("accumulate", "2"), plain);
}

TEST(Admission, DeniesWhatNoGpuHoldsWhateverItDoesOnErrors) {
  for (const OnError on_error : {OnError::allow, OnError::deny}) {
    const Answer found = answer(review_of(job("4096")), on_error);
    EXPECT_EQ(found.outcome, Outcome::does_not_fit);
    EXPECT_EQ(found.response["allowed"], false);
    EXPECT_EQ(found.response["status"]["code"], 403);
    EXPECT_NE(message_of(found).find("no a100-40gb holds it: it needs "), std::string::npos) << message_of(found);
    EXPECT_NE(message_of(found).find("the GPU has 39.6 GiB"), std::string::npos) << message_of(found);
  }
}

struct Fault {
  const char* name;
  const char* value;
  const char* part;  ///< of the message
};

TEST(Admission, SaysWhatIsWrongWithAnAnnotation) {
  for (const Fault& fault :
       std::initializer_list<Fault>{{"gpumem.io/batch", "many", "must be a whole number, not 'many'"},
                                    {"gpumem.io/batch", "0", "needs the annotation gpumem.io/batch, 1 or more"},
                                    {"gpumem.io/batch", "-4", "batch"},
                                    {"gpumem.io/batch", "99999999999999999999", "must be a whole number"},
                                    {"gpumem.io/bacth", "32", "'gpumem.io/bacth' is unknown"},
                                    {"gpumem.io/fused", "yes", "must be \"true\" or \"false\""},
                                    {"gpumem.io/optimizer", "adamm", "there is no optimizer 'adamm'"},
                                    {"gpumem.io/margin", "2", "there is no margin '2'"},
                                    {"gpumem.io/for", "k8s", "there is no target 'k8s'"},
                                    {"gpumem.io/for", "slurm", "is not for pods"},
                                    {"gpumem.io/gpu", "a1000", "a1000"},
                                    {"gpumem.io/gpu", "/etc/passwd", "not a path"},
                                    {"gpumem.io/gpu", "gpu.json", "not a path"},
                                    {"gpumem.io/model", "..", "must be the name of a built-in model"},
                                    {"gpumem.io/estimator", "all", "must name one estimator"},
                                    {"gpumem.io/estimator", "psychic", "psychic"},
                                    {"gpumem.io/alloc-conf", "nonsense", "nonsense"},
                                    {"gpumem.io/input", "3x", "is not of the form"},
                                    {"gpumem.io/summary-text", "x", "needs one of the annotations"},
                                    {"gpumem.io/summary", "README.md", "README.md"},
                                    {"gpumem.io/summary", "../../CMakeLists.txt", "must be a path below the folder"},
                                    {"gpumem.io/summary", "/etc/passwd", "must be a path below the folder"},
                                    {"gpumem.io/summary", "nowhere.txt", "No such file"}}) {
    Json annotations = job();
    annotations[fault.name] = fault.value;
    const Answer denied = answer(review_of(annotations));
    EXPECT_EQ(denied.outcome, Outcome::denied_unknown) << fault.name << " " << fault.value;
    EXPECT_EQ(denied.response["allowed"], false);
    EXPECT_NE(message_of(denied).find(fault.part), std::string::npos) << message_of(denied);
    const Answer allowed = answer(review_of(annotations), OnError::allow);
    EXPECT_EQ(allowed.outcome, Outcome::allowed_unknown);
    EXPECT_EQ(allowed.response["allowed"], true);
    EXPECT_FALSE(allowed.response.contains("patch"));
    EXPECT_EQ(allowed.response["warnings"].size(), 1U);
    EXPECT_LE(allowed.response["warnings"][0].get<std::string>().size(), 256U);
  }
}

TEST(Admission, LeavesAloneWhatDoesNotAsk) {
  const auto untouched = [](const Json& review) {
    const Answer found = answer(review);
    EXPECT_EQ(found.outcome, Outcome::untouched);
    EXPECT_EQ(found.response, Json({{"uid", review["request"]["uid"]}, {"allowed", true}}));
  };
  untouched(review_of(Json::object()));
  untouched(review_of({{"example.org/batch", "32"}, {"gpumem.io/need", "written by the webhook"}}));
  Json review = review_of(job());
  review["request"]["operation"] = "UPDATE";
  untouched(review);
  review = review_of(job());
  review["request"]["kind"] = {{"group", "apps"}, {"version", "v1"}, {"kind", "Deployment"}};
  untouched(review);
  review = review_of(job());
  review["request"]["subResource"] = "status";
  untouched(review);
  review = review_of(job());
  review["request"]["object"]["metadata"].erase("annotations");
  untouched(review);
}

TEST(Admission, SaysThatABodyIsNoReview) {
  Admission admission = admission_of();
  Json beta = review_of(job());
  beta["apiVersion"] = "admission.k8s.io/v1beta1";
  Json nameless = review_of(job());
  nameless["request"].erase("uid");
  std::string deep(100'000, '[');
  for (const std::string& body : {std::string(), std::string("{"), std::string("[]"), std::string("{\"kind\": 7}"),
                                  beta.dump(), nameless.dump(), deep, std::string("\xff\xfe")}) {
    const Reply reply = admission.review(body);
    EXPECT_EQ(reply.outcome, Outcome::malformed);
    EXPECT_FALSE(reply.body.empty());
    EXPECT_LE(reply.body.size(), 1100U);
  }
}

TEST(Admission, GivesUpAsItDoesOnErrors) {
  const std::string asks = review_of(job()).dump();
  const Reply denied = admission_of().give_up(asks, "too slow");
  EXPECT_EQ(denied.outcome, Outcome::denied_unknown);
  EXPECT_EQ(Json::parse(denied.body)["response"]["status"]["message"], "gpumem: too slow");
  EXPECT_EQ(admission_of(OnError::allow).give_up(asks, "too slow").outcome, Outcome::allowed_unknown);
  EXPECT_EQ(admission_of().give_up(review_of(Json::object()).dump(), "too slow").outcome, Outcome::untouched);
  EXPECT_EQ(admission_of().give_up("{", "too slow").outcome, Outcome::malformed);
}

TEST(Base64, IsThatOfRfc4648) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xff\xfb\xbf"), "//u/");
}

}  // namespace
}  // namespace gpumem::webhook
