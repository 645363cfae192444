// The rows of PEFT's methods: their parameters by PEFT's definitions (tuners/*/layer.py), their settings, what they
// refuse, and that the page names each of them.
#include "gpumem/adapt/peft_methods.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "adapted_jobs.hpp"

namespace gpumem::adapt {
namespace {

using model::PeftMethod;

/// Of the small model, whose q_proj and v_proj have 16 features on either side.
TrainingJob with_method(PeftMethod method, std::optional<std::int64_t> rank = {}, std::string options = {}) {
  TrainingJob job = testing::small_model();
  job.peft = method;
  job.lora = rank;
  job.peft_options = std::move(options);
  return job;
}

struct Counted {
  std::int64_t trained = -1;
  std::string error;
};

Counted trained_by(const TrainingJob& job) {
  analysis::Analysis analysis(job);
  const auto pass = analysis.forward_pass();
  if (!pass) return {-1, pass.error().message};
  Counted counted{0, {}};
  for (const ops::Tape::Parameter& parameter : (*pass)->tape.parameters()) {
    if (parameter.tied || parameter.frozen) continue;
    counted.trained += *(*pass)->tape.tensor(parameter.tensor).size.elements.value();
  }
  return counted;
}

TEST(PeftMethods, TrainWhatPeftsDefinitionsSay) {
  struct Case {
    PeftMethod method;
    std::optional<std::int64_t> rank;
    std::string options;
    std::int64_t trained;
  };
  // Two layers with 16 features on either side; r is 2 where there is a rank.
  const Case cases[] = {
      {PeftMethod::lora, 2, "", 2 * 2 * 32},
      {PeftMethod::rslora, 2, "", 2 * 2 * 32},
      {PeftMethod::pissa, 2, "", 2 * 2 * 32},
      {PeftMethod::lora_fa, 2, "", 2 * 2 * 16},
      {PeftMethod::mica, 2, "", 2 * 2 * 16},
      {PeftMethod::dora, 2, "", 2 * (2 * 32 + 16)},
      {PeftMethod::adalora, 8, "init_r=3", 2 * (3 * 32 + 3)},
      {PeftMethod::vera, 2, "", 2 * (16 + 2)},
      {PeftMethod::pvera, 2, "", 2 * (16 + 4)},
      {PeftMethod::randlora, 4, "", 2 * (4 * 4 + 4 * 16)},
      {PeftMethod::tinylora, 2, "u=5", 2 * 5},
      {PeftMethod::tinylora, 2, "u=5,weight_tying=1.0", 5},
      {PeftMethod::unilora, 2, "theta_d_length=9", 9},
      {PeftMethod::vblora, 2, "num_vectors=6,vector_length=8,topk=2", 6 * 8 + 2 * (2 * 2 * 6 + 2 * 2 * 6)},
      {PeftMethod::gralora, 2, "", 2 * 2 * 32},
      {PeftMethod::gralora, 2, "hybrid_r=1", 2 * 3 * 32},
      {PeftMethod::lily, 2, "num_B=2", 2 * (2 * 16 + 2 * 2 * 16 + 2 * 2)},
      {PeftMethod::delora, 2, "", 2 * (2 * 32 + 1)},
      {PeftMethod::peanut, 2, "depth=1", 2 * (2 * 32 + 2 * 4)},
      {PeftMethod::deft, 2, "", 2 * 2 * 32},
      {PeftMethod::deft, 2, "para=true,decomposition_method=qr", 2 * 2 * 16},
      {PeftMethod::psoft, 4, "", 2 * (6 + 4 + 4)},
      {PeftMethod::loha, 2, "", 2 * 4 * 32},
      {PeftMethod::lokr, 1, "decompose_factor=4", 2 * (4 * 4 + 1 * 4 + 1 * 4)},
      {PeftMethod::lokr, 2, "decompose_factor=4", 2 * (4 * 4 + 4 * 4)},
      {PeftMethod::hira, 2, "", 2 * 2 * 32},
      // q_proj has a bias.
      {PeftMethod::glora, 2, "", 2 * 2 * 2 * 32 + 2 * (16 + 1) + 2},
      {PeftMethod::glora, 2, "config_A_B=vector,config_C=vector", 2 * 2 * 16 + 16 + 2},
      {PeftMethod::fourierft, {}, "n_frequency=7", 2 * 7},
      {PeftMethod::waveft, {}, "n_frequency=7", 2 * 7},
      {PeftMethod::c3a, {}, "block_size=4", 2 * 4 * 4 * 4},
      {PeftMethod::shira, 2, "", 2 * 2 * 32},
      {PeftMethod::osf, {}, "effective_rank=14", 2 * (2 * 32 + 2)},
      {PeftMethod::beft, {}, "", 16},
      {PeftMethod::ia3, {}, "", 16},
      {PeftMethod::road, {}, "variant=road_2", 2 * 2 * 16},
      {PeftMethod::oft, {}, "oft_block_size=4", 2 * 4 * 6},
      {PeftMethod::boft, {}, "boft_block_size=4", 2 * (4 * 16 + 16)},
      {PeftMethod::hra, 2, "", 2 * 2 * 16},
      {PeftMethod::miss, 2, "", 2 * 2 * 16},
      {PeftMethod::miss, 2, "init_weights=mini,mini_r=4", 2 * 2 * 4},
      {PeftMethod::miss, 2, "init_weights=bat", 2 * 8 * 4},
      {PeftMethod::trainable_tokens, {}, "token_indices=3+5", 2 * 16},
  };
  for (const Case& one : cases) {
    const Counted counted = trained_by(with_method(one.method, one.rank, one.options));
    EXPECT_EQ(counted.trained, one.trained)
        << model::name_of(model::kPeftMethods, one.method) << " " << one.options << ": " << counted.error;
  }
}

TEST(PeftMethods, TrainWhatTheirSettingsOfSharesAndClustersSay) {
  const auto trained = [](PeftMethod method, std::optional<std::int64_t> rank, const std::string& options) {
    const Counted counted = trained_by(with_method(method, rank, options));
    EXPECT_EQ(counted.error, "") << options;
    return counted.trained;
  };
  EXPECT_EQ(trained(PeftMethod::poly, 2, "n_tasks=3"), 2 * (2 * 4 * 2 * 16 + 3 * 4)) << "four skills";
  EXPECT_EQ(trained(PeftMethod::adamss, 2, "num_subspaces=4"), 2 * (4 * 2 + 16));
  EXPECT_EQ(trained(PeftMethod::supertuning, {}, "sparsity=0.5"), 2 * 128);
  EXPECT_EQ(trained(PeftMethod::supertuning, {}, "sparsity=0.5,r=2"), 2 * (128 + 2 * 32));
}

TEST(PeftMethods, LokrHasTheSettingsOfLycoris) {
  const auto trained = [](std::int64_t rank, const std::string& options) {
    const Counted counted = trained_by(with_method(PeftMethod::lokr, rank, "decompose_factor=4" + options));
    EXPECT_EQ(counted.error, "") << options;
    return counted.trained;
  };
  EXPECT_EQ(trained(1, ",full_matrix=true"), 2 * (4 * 4 + 4 * 4));
  EXPECT_EQ(trained(99, ",bypass_mode=true"), 2 * (4 * 4 + 4 * 4)) << "a rank above the sides is none";
  EXPECT_EQ(trained(99, ",factor_pattern.v_proj=2"), (4 * 4 + 4 * 4) + (2 * 2 + 8 * 8));
  const auto calls = testing::adapted_lines(with_method(PeftMethod::lokr, 99, "bypass_mode=true"));
  const auto makes_delta = [](const std::string& line) { return line.find(".kron") != std::string::npos; };
  EXPECT_TRUE(std::ranges::none_of(calls, makes_delta)) << "a delta as large as the weight";
  EXPECT_NE(trained_by(with_method(PeftMethod::loha, 2, "factor_pattern.v_proj=2")).error, "");
}

TEST(PeftMethods, ArePlannedWithStatesOfWhatTheyTrain) {
  for (const PeftMethodRow& row : peft_methods()) {
    const bool whole_model = row.targets == PeftTargets::prompts || row.targets == PeftTargets::attention;
    if (!row.refusal.empty() || whole_model || row.targets == PeftTargets::norms) continue;
    const std::string name(model::name_of(model::kPeftMethods, row.value));
    std::string options;
    if (row.value == PeftMethod::vblora) options = "num_vectors=6,vector_length=8";
    if (row.value == PeftMethod::c3a) options = "block_size=4";
    if (row.value == PeftMethod::oft) options = "oft_block_size=4";
    TrainingJob job = with_method(row.value, {}, options);
    if (row.rank > 0) job.lora = 2;
    analysis::Analysis analysis(job);
    const auto steps = analysis.steps();
    ASSERT_TRUE(testing::succeeds(steps)) << name;
    EXPECT_GT((*steps)->peak_bytes, 0) << name;
  }
}

TEST(PeftMethods, SayWhatIsWrong) {
  const std::pair<TrainingJob, const char*> cases[] = {
      {with_method(PeftMethod::xlora), "xlora is not modelled"},
      {with_method(PeftMethod::lora, 2, "use_dora=true"), "say `peft=dora`"},
      {with_method(PeftMethod::fourierft, 8), "has no rank"},
      {with_method(PeftMethod::fourierft, {}, "colour=1"), "it reads n_frequency"},
      {with_method(PeftMethod::fourierft, {}, "n_frequency=many"), "must be a whole number"},
      {with_method(PeftMethod::deft, 2, "para=perhaps"), "must be true or false"},
      {with_method(PeftMethod::osf, {}, "rank_pattern.q_proj=none"), "a whole number from 1"},
      {with_method(PeftMethod::loha, {}, "rank_pattern.model.layers.0.q_proj=4"), "paths and regular expressions"},
      {with_method(PeftMethod::ia3, {}, "rank_pattern.k_proj=4"), "is no setting"},
      {with_method(PeftMethod::vblora, {}, "topk=-1"), "a whole number from 0 on"},
      {with_method(PeftMethod::road, {}, "variant=road_9"), "one of road_1|road_2|road_4"},
      {with_method(PeftMethod::dora, std::int64_t{1} << 40), "the rank must be at most"},
      {with_method(PeftMethod::prompt_tuning), "virtual tokens"},
      {with_method(PeftMethod::frod, {}, "sparse_rate=2"), "a number from 0 to 1"},
      {with_method(PeftMethod::frod, {}, "sparse_rate=0x1p-3"), "a number from 0 to 1"},
      {with_method(PeftMethod::boft, {}, "boft_n_butterfly_factor=33"), "from 1 to 32"},
      {with_method(PeftMethod::boft, {}, "boft_n_butterfly_factor=0"), "from 1 to 32"},
      {with_method(PeftMethod::gralora, 3, "gralora_k=3"), "which does not divide the 16 inputs and 16 outputs"},
      {with_method(PeftMethod::gralora, 3, "gralora_k=2"), "no rank that gralora_k 2 does not divide"},
      {with_method(PeftMethod::vblora, 2, "vector_length=3"), "takes no vector_length 3"},
      {with_method(PeftMethod::c3a, {}, "block_size=5"), "takes no block_size 5"},
      {with_method(PeftMethod::adaption_prompt), "adapter_len=10"},
      {with_method(PeftMethod::adaption_prompt, {}, "adapter_len=10,adapter_layers=2"), "attention as Llama has it"},
      {with_method(PeftMethod::prefix_tuning, {}, "num_virtual_tokens=4"), "a cache of keys and values"},
  };
  for (const auto& [job, part] : cases) {
    const std::string error = trained_by(job).error;
    EXPECT_NE(error.find(part), std::string::npos) << part << ": " << error;
  }
  TrainingJob quantised = with_method(PeftMethod::ia3);
  quantised.quantize = model::Quantization::nf4;
  EXPECT_NE(trained_by(quantised).error.find("quantised base"), std::string::npos) << trained_by(quantised).error;
  TrainingJob none = testing::small_model();
  none.peft_options = "r=8";
  EXPECT_FALSE(model::validate(none)) << "no method is given";
}

/// Four layers with 16 features, four heads, and two of keys and values.
TrainingJob small_llama(PeftMethod method, std::string options) {
  const auto graph = parse_summary(R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 16,
      "intermediate_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
      "vocab_size": 100, "max_position_embeddings": 64, "attention_bias": true})");
  EXPECT_TRUE(graph) << graph.error().message;
  if (!graph) return testing::small_model();
  TrainingJob job(*graph, 2);
  job.sequence_length = 8;
  job.peft = method;
  job.peft_options = std::move(options);
  return job;
}

TEST(PeftMethods, PromptsAreMadeByWhatTheirSettingsSay) {
  const auto trained = [](PeftMethod method, const std::string& options) {
    const Counted counted = trained_by(small_llama(method, options));
    EXPECT_EQ(counted.error, "") << options;
    return counted.trained;
  };
  // Keys and values of four layers are eight rows of two heads of four.
  EXPECT_EQ(trained(PeftMethod::cpt, "num_virtual_tokens=3"), 3 * 16) << "what is learned on top of frozen ones";
  EXPECT_EQ(trained(PeftMethod::multitask_prompt_tuning, "num_virtual_tokens=3,num_tasks=2,num_ranks=3"),
            3 * 16 + 2 * (3 * 3) + 2 * (3 * 16));
  EXPECT_EQ(trained(PeftMethod::cartridge, "num_virtual_tokens=4"), 3 * 8 * 8) << "the first row is frozen";
  EXPECT_EQ(trained(PeftMethod::prefix_tuning, "num_virtual_tokens=4,prefix_projection=true,encoder_hidden_size=5"),
            4 * 8 + (8 * 5 + 5) + (5 * 64 + 64));
  constexpr std::int64_t kLstm = 2 * (4 * 4 * 16 + 4 * 4 * 4 + 2 * 4 * 4);
  EXPECT_EQ(trained(PeftMethod::p_tuning,
                    "num_virtual_tokens=3,encoder_hidden_size=4,encoder_num_layers=1,"
                    "encoder_reparameterization_type=LSTM"),
            3 * 16 + kLstm + (8 * 8 + 8) + (8 * 16 + 16));
  EXPECT_NE(trained_by(small_llama(PeftMethod::cartridge, "num_virtual_tokens=4,num_frozen_tokens=4")).error, "");
}

TEST(PeftMethods, AdaptionPromptsAreInTheLastBlocks) {
  const TrainingJob job = small_llama(PeftMethod::adaption_prompt, "adapter_len=5,adapter_layers=3");
  EXPECT_EQ(trained_by(job).trained, 3 * (5 * 16 + 1)) << trained_by(job).error;
  const auto calls = testing::adapted_lines(job);
  const auto count = [&](std::string_view part) {
    return std::ranges::count_if(calls, [&](const std::string& line) { return line.find(part) != std::string::npos; });
  };
  EXPECT_EQ(count("o_proj.scores"), 3);
  EXPECT_EQ(count("layers.0.self_attn.o_proj.adaption_gate"), 0) << "the first block has none";
  // One more of all: what the queries find in the prompt grows with its length.
  analysis::Analysis shorter(small_llama(PeftMethod::adaption_prompt, "adapter_len=1,adapter_layers=3"));
  analysis::Analysis longer(job);
  const auto few = shorter.steps();
  const auto many = longer.steps();
  ASSERT_TRUE(testing::succeeds(few));
  ASSERT_TRUE(testing::succeeds(many));
  EXPECT_GT((*many)->peak_bytes, (*few)->peak_bytes);
  const std::string error =
      trained_by(small_llama(PeftMethod::adaption_prompt, "adapter_len=5,adapter_layers=9")).error;
  EXPECT_NE(error.find("the model has 4 layers of attention"), std::string::npos) << error;
}

TEST(PeftMethods, FrodKeepsTheBasesWeightWhereItIsTold) {
  const auto peak = [](const std::string& options) {
    analysis::Analysis analysis(small_llama(PeftMethod::frod, options));
    const auto steps = analysis.steps();
    EXPECT_TRUE(testing::succeeds(steps)) << options;
    return steps ? (*steps)->peak_bytes : 0;
  };
  EXPECT_LT(peak("runtime_offload_base_weight=true"), peak("")) << "the weights of queries and values are on the CPU";
  EXPECT_NE(peak("projections_on_cpu=true"), peak("")) << "copied in every pass";
}

TEST(PeftMethods, FrodTrainsAShareOfASquareAndItsDiagonal) {
  EXPECT_EQ(trained_by(with_method(PeftMethod::frod, {}, "sparse_rate=0.1")).trained, 2 * (16 + 25));
  EXPECT_EQ(trained_by(with_method(PeftMethod::frod, {}, "sparse_rate=1")).trained, 2 * (16 + 16 * 15));
}

/// oft/bnb.py: x = oft_R(x), and then the base itself.
TEST(PeftMethods, OftTurnsWhatAQuantisedBaseReads) {
  TrainingJob job = with_method(PeftMethod::oft, {}, "oft_block_size=4");
  const Counted whole = trained_by(job);
  job.quantize = model::Quantization::nf4;
  const Counted held = trained_by(job);
  EXPECT_EQ(held.error, "");
  EXPECT_EQ(held.trained, whole.trained);
  const std::vector<std::string> lines = testing::adapted_lines(job);
  const auto base = std::ranges::find_if(
      lines, [](const std::string& line) { return line.find(" linear model.layers.0.v_proj ") != std::string::npos; });
  ASSERT_NE(base, lines.end());
  EXPECT_NE((base - 1)->find(".return"), std::string::npos) << "it reads what was turned";
  EXPECT_NE(base->find("<- " + std::to_string(base - lines.begin() - 1)), std::string::npos) << *base;
}

TEST(PeftMethods, BoftSaysThatItsFactorsNeedAnExtension) {
  const std::string factors = "boft_block_size=4,boft_n_butterfly_factor=2";
  EXPECT_EQ(trained_by(with_method(PeftMethod::boft, {}, factors)).trained, 2 * (4 * 16 + 16));
  EXPECT_EQ(trained_by(with_method(PeftMethod::boft, {}, factors + ",fbd_cuda=true")).trained, 2 * (2 * 4 * 16 + 16));
  const TrainingJob job = with_method(PeftMethod::boft, {}, "boft_n_butterfly_factor=2");
  analysis::Analysis analysis(job);
  const auto adapted = analysis.adapted();
  ASSERT_TRUE(testing::succeeds(adapted));
  const auto remarks = (*adapted)->remarks();
  EXPECT_EQ(std::ranges::count_if(remarks, [](const std::string& one) { return one.find("fbd_cuda") != one.npos; }), 1);
}

TEST(PeftMethods, TakeASettingOfALayerByItsName) {
  TrainingJob job = with_method(PeftMethod::osf, {}, "effective_rank=12,rank_pattern.q_proj=14");
  EXPECT_EQ(trained_by(job).trained, (2 * 32 + 2) + (4 * 32 + 4)) << trained_by(job).error;
}

TEST(PeftMethods, LorasRankIsThatOfItsPattern) {
  EXPECT_EQ(trained_by(with_method(PeftMethod::lora, 2)).trained, 2 * 2 * 32);
  EXPECT_EQ(trained_by(with_method(PeftMethod::lora, 2, "rank_pattern.q_proj=4")).trained, (4 + 2) * 32);
  const auto config = peft_config(std::vector<PeftSetting>{
      {"peft_type", "LORA"}, {"r", "2"}, {"rank_pattern.q_proj", "4"}, {"rank_pattern.a.b", "8"}});
  ASSERT_TRUE(config);
  std::string options;
  for (const PeftOption& option : config->options) options += std::string(option.option) + "=" + option.value + " ";
  EXPECT_EQ(options, "peft=lora lora=2 peft_options=rank_pattern.q_proj=4 ");
  EXPECT_EQ(config->not_modelled, std::vector<std::string>{"rank_pattern.a.b 8"});
}

/// A graph whose file says of a layer what no model has.
std::string refusal_of(PeftMethod method, const std::string& options, const std::string& nodes) {
  const auto graph =
      parse_summary(R"({"format": "gpumem-graph", "version": 1, "inputs": [{"name": "ids", "shape": ["N", 8],
      "dtype": "int64"}, {"name": "x", "shape": ["N", 4, 8, 16]}], "nodes": [)" +
                    nodes + "]}");
  EXPECT_TRUE(graph) << graph.error().message;
  if (!graph) return {};
  TrainingJob job(*graph, 1);
  job.peft = method;
  job.peft_options = options;
  return trained_by(job).error;
}

TEST(PeftMethods, HostileGraphsAreRefused) {
  const std::string words = R"({"name": "words", "op": "embedding", "inputs": ["ids"],
      "attrs": {"num_embeddings": 100, "embedding_dim": 64}},)";
  const std::string cached_input = R"({"name": "k", "op": "relu", "inputs": ["x"], "attrs": {"cache": true}})";
  EXPECT_NE(
      refusal_of(PeftMethod::prefix_tuning, "num_virtual_tokens=20", words + cached_input).find("a cache of keys"),
      std::string::npos);
  const std::string wide = R"({"name": "q_proj", "op": "linear", "inputs": ["words"],
      "attrs": {"in_features": 64, "out_features": 4294967311, "bias": false}})";
  EXPECT_FALSE(refusal_of(PeftMethod::boft, "boft_block_size=2147483648", words + wide).empty());
}

TEST(PeftMethods, ReadPeftsConfigs) {
  const std::vector<PeftSetting> dora = {{"peft_type", "LORA"},
                                         {"r", "16"},
                                         {"use_dora", "true"},
                                         {"lora_alpha", "32"},
                                         {"bias", "none"},
                                         {"target_modules", "q_proj+v_proj"},
                                         {"lora_dropout", "0.05"},
                                         {"colour", "red"},
                                         {"modules_to_save", "lm_head+model.embed_tokens"},
                                         {"base_model_name_or_path", "made-up"}};
  const auto config = peft_config(dora);
  ASSERT_TRUE(config);
  std::string options;
  for (const PeftOption& option : config->options) options += std::string(option.option) + "=" + option.value + " ";
  EXPECT_EQ(options,
            "peft=dora lora=16 lora_targets=q_proj+v_proj lora_dropout=0.05 train=*lm_head,*model.embed_tokens ");
  EXPECT_EQ(config->base_model, "made-up");
  EXPECT_EQ(config->not_modelled, std::vector<std::string>{});
  EXPECT_EQ(config->unknown, std::vector<std::string>{"colour"});
  const auto odd = peft_config(std::vector<PeftSetting>{{"peft_type", "LORA"}, {"r", "4"}, {"modules_to_save", "a|b"}});
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->not_modelled, std::vector<std::string>{"modules_to_save a|b"}) << "no name of a module";

  const auto experts = peft_config(std::vector<PeftSetting>{{"peft_type", "LORA"},
                                                            {"r", "4"},
                                                            {"target_parameters", "mlp.experts.down_proj+x.weight"},
                                                            {"target_modules", "q_proj"}});
  ASSERT_TRUE(experts);
  EXPECT_EQ(experts->options.back().value, "q_proj+parameter:mlp.experts.down_proj+parameter:x.weight");
  EXPECT_EQ(experts->unknown, std::vector<std::string>{});
  EXPECT_EQ(with_parameters({}, "['experts.down_proj', 'x']"), "parameter:experts.down_proj+parameter:x");

  const auto osf = peft_config(std::vector<PeftSetting>{{"peft_type", "OSF"}, {"rank_pattern.q_proj", "9"}});
  ASSERT_TRUE(osf);
  EXPECT_EQ(osf->options.back().value, "rank_pattern.q_proj=9");
  const auto unheard = peft_config(std::vector<PeftSetting>{{"peft_type", "UNHEARD_OF"}});
  ASSERT_TRUE(unheard);
  EXPECT_EQ(unheard->not_modelled, std::vector<std::string>{"peft_type UNHEARD_OF"});
  EXPECT_FALSE(peft_config(std::vector<PeftSetting>{{"r", "9"}}));
}

TEST(PeftMethods, StandOnThePage) {
  std::ifstream file(GPUMEM_SOURCE_DIR "/docs/language-models.md");
  std::stringstream page;
  page << file.rdbuf();
  for (const PeftMethodRow& row : peft_methods()) {
    const std::string name = "`" + std::string(model::name_of(model::kPeftMethods, row.value)) + "`";
    EXPECT_NE(page.str().find(name), std::string::npos) << "docs/language-models.md does not name " << name;
  }
}

}  // namespace
}  // namespace gpumem::adapt
