#include "gpumem/summary/model_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "expect.hpp"
#include "gpumem/serve/serving_job.hpp"
#include "gpumem/session/session.hpp"

namespace gpumem::summary {
namespace {

using testing::succeeds;

TEST(PublishedModels, EveryOneHasThePublishedNumberOfParameters) {
  constexpr double kMostApart = 0.01;
  for (const std::string_view name : published_model_names()) {
    const auto published = published_model(name);
    ASSERT_TRUE(published) << name;
    const auto graph = session::parse_summary(published->config, false, std::string(name));
    ASSERT_TRUE(succeeds(graph)) << name;
    const auto parameters = static_cast<double>(published->parameters);
    EXPECT_NEAR(static_cast<double>(graph->parameters()) / parameters, 1.0, kMostApart) << name;
  }
}

TEST(PublishedModels, NamesAreMoreThanAHundredAndTheirOwn) {
  const std::vector<std::string_view> names = published_model_names();
  EXPECT_GE(names.size(), 100U);
  EXPECT_EQ(std::set<std::string_view>(names.begin(), names.end()).size(), names.size());
}

TEST(PublishedModels, SizesStandWhereverAFamilyNamesThem) {
  const auto published = published_model("Qwen/Qwen2.5-VL-7B-Instruct");
  ASSERT_TRUE(published);
  for (const char* field : {"\"hidden_size\": 3584,", "\"out_hidden_size\": 3584,", "\"intermediate_size\": 3420,",
                            "\"tie_word_embeddings\": false"}) {
    EXPECT_NE(published->config.find(field), std::string::npos) << field;
  }
  for (const std::string_view name : published_model_names()) {
    const std::string config = published_model(name)->config;
    for (std::size_t at = config.find('{'); at != std::string::npos; at = config.find('{', at + 1)) {
      EXPECT_TRUE(config[at + 1] == '"' || config[at + 1] == '}') << name << ": " << config.substr(at, 30);
    }
  }
}

TEST(PublishedModels, HeadsAreNamedBehindAColon) {
  EXPECT_EQ(named_model("Qwen/Qwen3-8B:Model").name, "Qwen/Qwen3-8B");
  EXPECT_EQ(named_model("Qwen/Qwen3-8B:Model").head, "Model");
  for (const char* whole : {"Qwen/Qwen3-8B", "a:b", ":Model", "{\"a\":Model"}) {
    EXPECT_EQ(named_model(whole).name, whole);
    EXPECT_EQ(named_model(whole).head, "") << whole;
  }
  const auto whole = session::read_summary("Qwen/Qwen3-8B");
  const auto body = session::read_summary("Qwen/Qwen3-8B:Model");
  const auto classes = session::read_summary("Qwen/Qwen3-8B:ForSequenceClassification");
  ASSERT_TRUE(succeeds(whole));
  ASSERT_TRUE(succeeds(body));
  ASSERT_TRUE(succeeds(classes));
  constexpr std::int64_t kWidth = 4096;
  EXPECT_EQ(whole->parameters() - body->parameters(), 151936 * kWidth);
  EXPECT_EQ(classes->parameters() - body->parameters(), 2 * kWidth);
  // A head that is there stays; what has no class has none that another could take the place of.
  EXPECT_EQ(*with_head(R"({"architectures": ["GPT2LMHeadModel"]})", "Model"), R"({"architectures": ["GPT2Model"]})");
  EXPECT_EQ(*with_head(R"({"architectures": ["BertModel"]})", "Model"), R"({"architectures": ["BertModel"]})");
  EXPECT_FALSE(with_head(R"({"model_type": "bert"})", "Model"));
  EXPECT_FALSE(with_head("no config", "Model"));
  EXPECT_EQ(*with_head(R"({"architectures": ["Wav2Vec2ForPreTraining"]})", "ForCTC"),
            R"({"architectures": ["Wav2Vec2ForCTC"]})");
  EXPECT_EQ(named_model("config.json:ForFoo").head, "ForFoo");
  const auto unknown = with_head(R"({"architectures": ["BertModel"]})", "ForFoo");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("heads are"), std::string::npos) << unknown.error().message;
  const auto other = with_head(R"({"architectures": ["BertForMultipleChoice"]})", "Model");
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("names the class 'BertForMultipleChoice'"), std::string::npos);
  EXPECT_FALSE(session::read_summary("somebody/a-model:Model"));
}

TEST(PublishedModels, AModelThatSpeaksIsToldByItsConfig) {
  const auto whole = [](std::string_view type, std::string_view more = "") {
    return R"({"architectures": ["Qwen2_5OmniModel"], "model_type": ")" + std::string(type) + "\"" + std::string(more) +
           "}";
  };
  const std::string config = whole("qwen2_5_omni");
  EXPECT_EQ(head_with_speech(config, "", true), "ForConditionalGeneration");
  EXPECT_EQ(head_with_speech(config, "", false), "ThinkerForConditionalGeneration");
  EXPECT_EQ(head_with_speech(config, "ForSequenceClassification", true), "ForSequenceClassification");
  EXPECT_EQ(head_with_speech(config, "ForSequenceClassification", false), "ThinkerForSequenceClassification");
  EXPECT_EQ(head_with_speech(config, "Model", false), "Model");
  EXPECT_EQ(head_with_speech(whole("qwen3_omni_moe"), "", true), "ForConditionalGeneration");
  EXPECT_EQ(head_with_speech(whole("llama"), "", true), std::nullopt);
  EXPECT_EQ(head_with_speech(whole("qwen3_omni_moe_thinker"), "", true), std::nullopt) << "a thinker that was saved";
  EXPECT_NE(head_with_speech(whole("qwen3_omni_moe_thinker", R"(, "talker_config": {})"), "", true), std::nullopt);
  EXPECT_EQ(head_with_speech(R"({"model_type": "qwen3_omni_moe"})", "", false), std::nullopt) << "it names no class";
  EXPECT_EQ(head_with_speech("Llama(\n)", "", true), std::nullopt);
  EXPECT_EQ(
      head_with_speech(R"({"architectures": ["Qwen2_5OmniForSequenceClassification"], "model_type": "qwen2_5_omni"})",
                       "", false),
      "ThinkerForSequenceClassification");
  EXPECT_EQ(named_with_speech("Qwen/Qwen2.5-Omni-7B", "", false),
            "Qwen/Qwen2.5-Omni-7B:ThinkerForConditionalGeneration");
  for (const char* name : {"Qwen/Qwen3-8B", "my-omni-run", "-", "", "Qwen/Qwen2.5-Omni-7B:Model"}) {
    EXPECT_EQ(named_with_speech(name, "", true), name);
  }
  EXPECT_NE(named_with_speech(config, "", true).find("\"Qwen2_5OmniForConditionalGeneration\""), std::string::npos);
}

TEST(PublishedModels, CaseDoesNotCount) {
  const auto published = published_model("META-llama/llama-3.1-8b");
  ASSERT_TRUE(published);
  EXPECT_EQ(published->name, "meta-llama/Llama-3.1-8B");
  EXPECT_FALSE(published_model("somebody/a-model"));
  EXPECT_FALSE(published_model(""));
}

TEST(PublishedModels, CopiesOfOtherOwnersAreTheirMakersModels) {
  const auto name_of = [](std::string_view name) {
    const auto published = published_model(name);
    return published ? std::string(published->name) : std::string();
  };
  EXPECT_EQ(name_of("NousResearch/Llama-2-7b-hf"), "meta-llama/Llama-2-7b-hf");
  EXPECT_EQ(name_of("LLM-Research/Meta-Llama-3.1-8B-Instruct"), "meta-llama/Llama-3.1-8B-Instruct");
  EXPECT_EQ(name_of("unsloth/gemma-3-4b-it"), "google/gemma-3-4b-it");
  EXPECT_EQ(name_of("models/Qwen2.5-7B"), "") << "a folder of somebody's own";
  EXPECT_EQ(name_of("unsloth/my-model"), "");
  EXPECT_EQ(name_of("hugging-quants/Meta-Llama-3.1-405B-BNB-NF4-BF16"), "meta-llama/Llama-3.1-405B");
  EXPECT_EQ(name_of("TheBloke/Llama-2-7B-GPTQ"), "meta-llama/Llama-2-7b-hf");
  EXPECT_EQ(name_of("TechxGenus/Meta-Llama-3-8B-Instruct-AWQ"), "meta-llama/Meta-Llama-3-8B-Instruct");
  const auto packed = published_model("unsloth/llama-3-8b-Instruct-bnb-4bit");
  ASSERT_TRUE(packed);
  EXPECT_EQ(packed->name, "meta-llama/Meta-Llama-3-8B-Instruct");
  EXPECT_NE(packed->config.find("bitsandbytes"), std::string::npos) << packed->config;
  const auto repacked = published_model("unsloth/gpt-oss-20b-unsloth-bnb-4bit");
  ASSERT_TRUE(repacked);
  EXPECT_EQ(repacked->config.find("mxfp4"), std::string::npos) << repacked->config;
  EXPECT_EQ(repacked->config.find("quantization_config"), repacked->config.rfind("quantization_config"));
  EXPECT_TRUE(succeeds(session::parse_summary(repacked->config, false, "config.json")));
}

TEST(PublishedModels, CheckpointsOfFewerBitsAreTheWholeModels) {
  const std::pair<const char*, const char*> forms[] = {
      {"Qwen/Qwen2.5-7B-Instruct-AWQ", "awq"},
      {"Qwen/Qwen2.5-VL-72B-Instruct-GPTQ-Int4", "gptq"},
      {"Qwen/Qwen3-30B-A3B-Instruct-2507-FP8", "fp8"},
  };
  for (const auto& [name, method] : forms) {
    const auto published = published_model(name);
    ASSERT_TRUE(published) << name;
    EXPECT_TRUE(std::string_view(name).starts_with(published->name)) << published->name;
    const auto graph = session::parse_summary(published->config);
    ASSERT_TRUE(testing::succeeds(graph)) << name;
    EXPECT_EQ(graph->parameters(), published->parameters) << name;
    EXPECT_NE(published->config.find(method), std::string::npos) << published->config;
  }
  EXPECT_FALSE(published_model("somebody/a-model-AWQ"));
  EXPECT_FALSE(published_model("-AWQ"));
}

TEST(PublishedModels, ModelsOf2025GoByTheirNames) {
  const std::pair<const char*, std::int64_t> models[] = {{"ibm-granite/granite-4.0-h-tiny", 6'939'037'248},
                                                         {"zai-org/GLM-4.6", 352'797'814'784},
                                                         {"allenai/Olmo-3.1-32B-Think", 32'233'522'176},
                                                         {"nvidia/NVIDIA-Nemotron-Nano-9B-v2", 8'888'227'328},
                                                         {"Qwen/Qwen3-Coder-Next", 79'674'391'296},
                                                         {"answerdotai/ModernBERT-base", 149'655'232},
                                                         {"Alibaba-NLP/gte-modernbert-base", 149'014'272},
                                                         {"sentence-transformers/all-MiniLM-L6-v2", 22'713'216},
                                                         {"google/embeddinggemma-300m", 302'863'104},
                                                         {"ibm-granite/granite-3.3-8b-instruct", 8'170'864'640},
                                                         {"LiquidAI/LFM2-350M", 354'483'968}};
  for (const auto& [name, parameters] : models) {
    const auto published = published_model(name);
    ASSERT_TRUE(published) << name;
    const auto graph = session::parse_summary(published->config, false, name);
    ASSERT_TRUE(succeeds(graph)) << name;
    EXPECT_EQ(graph->parameters(), parameters) << name;
  }
  // As published without its four bits: neither form is taken for the other.
  EXPECT_EQ(published_model("unsloth/gpt-oss-20b-BF16")->config.find("mxfp4"), std::string::npos);
  EXPECT_NE(published_model("openai/gpt-oss-safeguard-20b")->config.find("mxfp4"), std::string::npos);
}

TEST(PublishedModels, AMisspeltNameGetsTheNearest) {
  const auto none = session::read_summary("meta-llama/Lama-3.1-8B");
  EXPECT_TRUE(testing::fails(none, core::ErrorCode::unreadable_file, 0, "did you mean 'meta-llama/Llama-3.1-8B'?"));
}

TEST(PublishedModels, TheOwnerMayBeLeftOut) {
  const std::pair<const char*, const char*> names[] = {{"Qwen3-8B", "Qwen/Qwen3-8B"},
                                                       {"qwen2.5-vl-7b-instruct", "Qwen/Qwen2.5-VL-7B-Instruct"},
                                                       {"Llama-3.1-8B", "meta-llama/Llama-3.1-8B"},
                                                       {"gpt2", "gpt2"}};
  for (const auto& [name, whole] : names) {
    const auto published = published_model(name);
    ASSERT_TRUE(published) << name;
    EXPECT_EQ(published->name, whole);
  }
  EXPECT_FALSE(published_model(""));
  EXPECT_FALSE(published_model("8B"));
}

TEST(PublishedModels, DenoisersGoByTheNamesOfTheirPipelines) {
  const auto flux = session::read_summary("FLUX.1-dev");
  ASSERT_TRUE(succeeds(flux));
  EXPECT_EQ(flux->parameters(), 11'901'408'320);
  const auto second = session::read_summary("stabilityai/stable-diffusion-2-1");
  ASSERT_TRUE(succeeds(second));
  const auto& said = second->remarks();
  EXPECT_TRUE(std::any_of(said.begin(), said.end(),
                          [](const auto& each) { return each.find("768 x 768 pixels") != std::string::npos; }));
  const auto schnell = published_model("black-forest-labs/FLUX.1-schnell");
  ASSERT_TRUE(schnell);
  EXPECT_EQ(schnell->config.find("guidance_embeds"), std::string::npos) << schnell->config;
}

TEST(PublishedModels, APartOfANameGetsTheNamesThatHoldIt) {
  const auto none = session::read_summary("Qwen2.5-VL-7B");
  EXPECT_TRUE(testing::fails(none, core::ErrorCode::unreadable_file, 0, "gpumem knows: Qwen/Qwen2.5-VL-7B-Instruct)"));
  EXPECT_EQ(published_models_like("QWEN3-", 2).size(), 2u);
  EXPECT_TRUE(published_models_like("", 2).empty());
  const auto file = session::read_summary("resnet.txt");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().message.find("name of a model"), std::string::npos) << file.error().message;
}

TEST(PublishedModels, ARowsFieldTakesThePlaceOfItsFamilys) {
  const auto tied = published_model("meta-llama/Llama-3.2-1B");
  ASSERT_TRUE(tied);
  EXPECT_NE(tied->config.find("\"tie_word_embeddings\": true"), std::string::npos) << tied->config;
  EXPECT_EQ(tied->config.find("\"tie_word_embeddings\": false"), std::string::npos) << tied->config;
}

TEST(PublishedModels, WeightsHaveTheBitsOfTheirCheckpoints) {
  session::Session door;
  serve::ServingRequest request;
  request.config = "openai/gpt-oss-120b";
  request.gpu = "h100-80gb";
  const auto server = door.serve(request);
  ASSERT_TRUE(succeeds(server));
  constexpr double kPublishedGib = 60.8;  // of its files
  EXPECT_NEAR(static_cast<double>(server->weights.count()) / (1024.0 * 1024 * 1024), kPublishedGib, 6.0);
  EXPECT_FALSE(server->starts) << "half of its layers keep all 131,072 tokens";
}

TEST(PublishedModels, ANameIsReadWhereAFileWouldBe) {
  session::Session door;
  const auto model = door.read("Qwen/Qwen3-0.6B");
  ASSERT_TRUE(succeeds(model));
  const auto remarks = (*model)->graph()->remarks();
  EXPECT_EQ(std::vector<std::string>(remarks.begin(), remarks.end()),
            std::vector<std::string>{"published sizes of Qwen/Qwen3-0.6B"});
  serve::ServingRequest request;
  request.config = "Qwen/Qwen3-0.6B";
  request.gpu = "h100-80gb";
  const auto server = door.serve(request);
  ASSERT_TRUE(succeeds(server));
  EXPECT_EQ(server->assumed.front(), "published sizes of Qwen/Qwen3-0.6B");
  const auto unknown = door.read("somebody/a-model");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("somebody/a-model/raw/main/config.json"), std::string::npos);
}

}  // namespace
}  // namespace gpumem::summary
