// Models that hear, speak or foresee series: their parameters, what decides the memory of a step, and that a config and
// what print(model) of transformers 5.17 shows give the same answer.
#include <array>
#include <string>
#include <string_view>

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem/architectures/architectures.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::testing {
namespace {

using core::ErrorCode;

core::Result<model::ModelGraph> series_model(std::string_view config) {
  return architectures::read_config(config, ops::vocabulary(), {}, {});
}

/// The most that a step holds, without the device's own part.
std::int64_t series_held(const model::ModelGraph& graph, std::int64_t tokens, bool checkpointing = false) {
  TrainingJob job(graph, 2);
  job.sequence_length = tokens;
  job.activation_checkpointing = checkpointing;
  const auto replay = make_estimator("replay");
  const auto estimate = (*replay)->estimate(job, *find_profile("b200"));
  EXPECT_TRUE(succeeds(estimate));
  return estimate && estimate->allocated ? estimate->allocated->count() : 0;
}

std::int64_t series_held(std::string_view config, std::int64_t tokens) {
  const auto graph = series_model(config);
  EXPECT_TRUE(succeeds(graph)) << config;
  return graph ? series_held(*graph, tokens) : 0;
}

constexpr std::string_view kSpeaks = R"({"model_type": "speecht5", "architectures": ["SpeechT5ForTextToSpeech"]})";
constexpr std::string_view kHears = R"({"model_type": "speecht5", "architectures": ["SpeechT5ForSpeechToText"]})";
constexpr std::string_view kPatches =
    R"({"model_type": "patchtst", "architectures": ["PatchTSTForPrediction"], "context_length": 512, "patch_length": 16,
    "patch_stride": 16, "num_attention_heads": 16})";
constexpr std::string_view kMoments =
    R"({"model_type": "time_series_transformer", "architectures": ["TimeSeriesTransformerForPrediction"],
    "prediction_length": 24})";

// As transformers counts the parameters of these classes with the sizes of their configs' defaults, which are those of
// microsoft/speecht5_tts and speecht5_asr.
TEST(SoundAndSeries, HaveThePublishedParameters) {
  struct Case {
    std::string_view config;
    std::int64_t parameters;
  };
  const Case cases[] = {
      {kSpeaks, 144'431'684},
      {R"({"model_type": "wav2vec2", "architectures": ["Wav2Vec2ForPreTraining"]})", 95'044'608},
      {kHears, 151'165'056},
      {R"({"model_type": "patchtst", "architectures": ["PatchTSTForPrediction"]})", 602'264},
      {R"({"model_type": "patchtst", "architectures": ["PatchTSTForClassification"], "use_cls_token": true})", 599'553},
      {kMoments, 125'635},
      // UsefulSensors/moonshine-tiny; the others are the sizes of the classes' configs.
      {R"({"model_type": "moonshine", "architectures": ["MoonshineForConditionalGeneration"]})", 27'092'736},
      {R"({"model_type": "patchtsmixer", "architectures": ["PatchTSMixerForPrediction"]})", 2'040},
      {R"({"model_type": "patchtsmixer", "architectures": ["PatchTSMixerForPretraining"]})", 1'584},
      {R"({"model_type": "patchtsmixer", "architectures": ["PatchTSMixerForPretraining"], "num_hidden_layers": 6})",
       3'024},
      {R"({"model_type": "vit_msn", "architectures": ["ViTMSNForImageClassification"]})", 85'800'194},
      {R"({"model_type": "videomae", "architectures": ["VideoMAEForVideoClassification"]})", 86'237'954},
      {R"({"model_type": "dinov2", "architectures": ["Dinov2ForImageClassification"]})", 85'728'770},
      {R"({"model_type": "dinov2_with_registers", "architectures": ["Dinov2WithRegistersForImageClassification"]})",
       85'824'002},
      {R"({"model_type": "dinov3_vit", "architectures": ["DINOv3ViTModel"]})", 21'595'008},
      {R"({"model_type": "wav2vec2-bert", "architectures": ["Wav2Vec2BertForCTC"], "vocab_size": 32})", 580'525'920},
      {R"({"model_type": "wav2vec2-bert", "architectures": ["Wav2Vec2BertModel"], "add_adapter": true})", 605'678'400},
      {R"({"model_type": "wav2vec2", "architectures": ["Wav2Vec2ForAudioFrameClassification"]})", 94'373'250},
      {R"({"model_type": "whisper", "architectures": ["WhisperForAudioClassification"], "vocab_size": 51865,
           "d_model": 384, "encoder_layers": 4, "encoder_attention_heads": 6, "encoder_ffn_dim": 1536,
           "decoder_layers": 4, "decoder_attention_heads": 6, "decoder_ffn_dim": 1536})",
       8'307'458},
      {R"({"model_type": "siglip", "architectures": ["SiglipForImageClassification"]})", 92'885'762}};
  for (const Case& each : cases) {
    const auto graph = series_model(each.config);
    ASSERT_TRUE(succeeds(graph)) << each.config;
    EXPECT_EQ(graph->parameters(), each.parameters) << each.config;
    EXPECT_EQ(graph->unknown_layers(), 0) << each.config;
  }
}

// A head that no architecture has is not taken for the usual one.
TEST(SoundAndSeries, HaveNoHeadThatIsNotKnown) {
  for (const auto& [type, name] :
       {std::pair("wav2vec2", "Wav2Vec2ForXVector"), std::pair("vit", "ViTForMaskedImageModeling"),
        std::pair("bert", "BertForMultipleChoice"), std::pair("wavlm", "WavLMForXVector")}) {
    const std::string config =
        R"({"model_type": ")" + std::string(type) + R"(", "architectures": [")" + name +
        R"("], "vocab_size": 32, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
                               "intermediate_size": 128, "max_position_embeddings": 64, "type_vocab_size": 2})";
    EXPECT_TRUE(fails(series_model(config), ErrorCode::malformed_input, 0, name)) << config;
  }
  EXPECT_TRUE(fails(series_model(R"({"model_type": "patchtsmixer", "architectures": ["PatchTSMixerForRegression"]})"),
                    ErrorCode::malformed_input, 0, "only ForPrediction"));
  EXPECT_TRUE(fails(series_model(R"({"model_type": "dinov2", "drop_path_rate": 0.1})"), ErrorCode::malformed_input, 0,
                    "left out"));
  EXPECT_TRUE(
      fails(series_model(R"({"model_type": "wav2vec2-bert", "architectures": ["Wav2Vec2BertForSequenceClassification"],
                             "add_adapter": true})"),
            ErrorCode::malformed_input, 0, "not possible with ForSequenceClassification"));
}

TEST(SoundAndSeries, DinoSaysWhichImagesItTakes) {
  const auto graph = series_model(R"({"model_type": "dinov2", "image_size": 518})");
  ASSERT_TRUE(succeeds(graph) && !graph->remarks().empty());
  EXPECT_NE(graph->remarks().front().find("518 x 518 pixels"), std::string::npos);
}

// What the adapter, tubelets and channels add.
TEST(SoundAndSeries, OfLaterModelsTheSizesAreRead) {
  const std::string_view frames =
      R"({"model_type": "wav2vec2-bert", "architectures": ["Wav2Vec2BertForCTC"], "num_hidden_layers": 2})";
  EXPECT_GT(series_held(frames, 400), series_held(frames, 100));
  EXPECT_GT(series_held(R"({"model_type": "moonshine"})", 160'000),
            series_held(R"({"model_type": "moonshine"})", 16'000));
  const auto video = [](std::string_view count) {
    return series_held(
        R"({"model_type": "videomae", "architectures": ["VideoMAEForVideoClassification"], "num_frames": )" +
            std::string(count) + "}",
        64);
  };
  EXPECT_GT(video("16"), video("8"));
}

TEST(SoundAndSeries, OfSpeechTheSequenceLengthCountsStepsOrSamples) {
  EXPECT_GT(series_held(kSpeaks, 400), series_held(kSpeaks, 100));
  EXPECT_GT(series_held(kHears, 160'000), series_held(kHears, 16'000));
  EXPECT_TRUE(fails(series_model(R"({"model_type": "speecht5", "architectures": ["SpeechT5ForSomethingElse"]})"),
                    ErrorCode::malformed_input, 0, "only SpeechT5ForTextToSpeech"));
}

TEST(SoundAndSeries, OfSeriesTheConfigSaysTheLengths) {
  const auto patches = [](std::string_view more) {
    return R"({"model_type": "patchtst", "architectures": ["PatchTSTForPrediction"], "patch_length": 16,
      "patch_stride": 8)" +
           std::string(more) + "}";
  };
  const std::string_view usual = R"(, "context_length": 512, "num_input_channels": 7)";
  EXPECT_EQ(series_held(patches(usual), 64), series_held(patches(usual), 128));
  EXPECT_GT(series_held(patches(R"(, "context_length": 1024, "num_input_channels": 7)"), 64),
            series_held(patches(usual), 64));
  EXPECT_GT(series_held(patches(R"(, "context_length": 512, "num_input_channels": 21)"), 64),
            series_held(patches(usual), 64));
  EXPECT_TRUE(
      fails(series_model(patches(R"(, "context_length": 8)")), ErrorCode::malformed_input, 0, "above patch_length"));
  EXPECT_TRUE(
      fails(series_model(patches(R"(, "context_length": 99999999)")), ErrorCode::malformed_input, 0, "gpumem takes"));
  EXPECT_TRUE(fails(series_model(R"({"model_type": "time_series_transformer"})"), ErrorCode::missing_information, 0,
                    "prediction_length"));
}

// What options of a config add: parameters as transformers 5.17 has them.
TEST(SoundAndSeries, OfPatchTstEveryOptionIsRead) {
  const auto parameters = [](std::string_view task, std::string_view more) {
    const auto graph = series_model(R"({"model_type": "patchtst", "architectures": ["PatchTSTFor)" + std::string(task) +
                                    R"("], "num_input_channels": 3)" + std::string(more) + "}");
    EXPECT_TRUE(succeeds(graph)) << task << more;
    return graph ? graph->parameters() : 0;
  };
  const std::int64_t plain = parameters("Prediction", "");
  EXPECT_EQ(parameters("Prediction", R"(, "loss": "nll")"), plain + 2 * (128 * 24 + 24));
  EXPECT_EQ(parameters("Prediction", R"(, "pooling_type": null)"), plain + 31 * 128 * 24);
  EXPECT_EQ(parameters("Prediction", R"(, "share_projection": false)"), plain + 2 * (128 * 24 + 24));
  EXPECT_EQ(parameters("Prediction", R"(, "share_embedding": false)"), plain + 2 * 2 * 128);
  EXPECT_EQ(parameters("Prediction", R"(, "channel_attention": true)"), plain + 3 * 2 * 128);
  EXPECT_EQ(parameters("Pretraining", ""), plain - (128 * 24 + 24) + 129);
  EXPECT_EQ(parameters("Regression", ""), plain - (128 * 24 + 24) + 3 * 128 + 1);
}

// A table of each category, and a row of each encoder's and decoder's first layer for each number of a moment.
TEST(SoundAndSeries, OfMomentsAllFeaturesAreRead) {
  const auto plain = series_model(kMoments);
  const auto more =
      series_model(R"({"model_type": "time_series_transformer", "prediction_length": 24, "num_time_features": 2,
      "num_static_real_features": 1, "num_static_categorical_features": 1, "cardinality": [366],
      "embedding_dimension": [2], "input_size": 1, "architectures": ["TimeSeriesTransformerForPrediction"]})");
  ASSERT_TRUE(succeeds(plain));
  ASSERT_TRUE(succeeds(more));
  EXPECT_EQ(more->parameters() - plain->parameters(), 366 * 2 + 2 * 64 * (2 + 1 + 2));
  EXPECT_GT(series_held(*more, 64), series_held(*plain, 64));
}

constexpr std::string_view kPrintedSpeech = R"(SpeechT5ForTextToSpeech(
  (speecht5): SpeechT5Model(
    (encoder): SpeechT5EncoderWithTextPrenet(
      (prenet): SpeechT5TextEncoderPrenet(
        (embed_tokens): Embedding(81, 768, padding_idx=1)
        (encode_positions): SpeechT5ScaledPositionalEncoding(
          (dropout): Dropout(p=0.1, inplace=False)
        )
      )
      (wrapped_encoder): SpeechT5Encoder(
        (layer_norm): LayerNorm((768,), eps=1e-05, elementwise_affine=True)
        (dropout): Dropout(p=0.1, inplace=False)
        (layers): ModuleList(
          (0-11): 12 x SpeechT5EncoderLayer(
            (attention): SpeechT5Attention(
              (k_proj): Linear(in_features=768, out_features=768, bias=True)
              (v_proj): Linear(in_features=768, out_features=768, bias=True)
              (q_proj): Linear(in_features=768, out_features=768, bias=True)
              (out_proj): Linear(in_features=768, out_features=768, bias=True)
            )
            (dropout): Dropout(p=0.1, inplace=False)
            (layer_norm): LayerNorm((768,), eps=1e-05, elementwise_affine=True)
            (feed_forward): SpeechT5FeedForward(
              (intermediate_dropout): Dropout(p=0.1, inplace=False)
              (intermediate_dense): Linear(in_features=768, out_features=3072, bias=True)
              (intermediate_act_fn): GELUActivation()
              (output_dense): Linear(in_features=3072, out_features=768, bias=True)
              (output_dropout): Dropout(p=0.1, inplace=False)
            )
            (final_layer_norm): LayerNorm((768,), eps=1e-05, elementwise_affine=True)
          )
        )
        (embed_positions): SpeechT5RelativePositionalEncoding(
          (pe_k): Embedding(320, 64)
        )
      )
    )
    (decoder): SpeechT5DecoderWithSpeechPrenet(
      (prenet): SpeechT5SpeechDecoderPrenet(
        (layers): ModuleList(
          (0): Linear(in_features=80, out_features=256, bias=True)
          (1): Linear(in_features=256, out_features=256, bias=True)
        )
        (final_layer): Linear(in_features=256, out_features=768, bias=True)
        (encode_positions): SpeechT5ScaledPositionalEncoding(
          (dropout): Dropout(p=0.1, inplace=False)
        )
        (speaker_embeds_layer): Linear(in_features=1280, out_features=768, bias=True)
      )
      (wrapped_decoder): SpeechT5Decoder(
        (layers): ModuleList(
          (0-5): 6 x SpeechT5DecoderLayer(
            (self_attn): SpeechT5Attention(
              (k_proj): Linear(in_features=768, out_features=768, bias=True)
              (v_proj): Linear(in_features=768, out_features=768, bias=True)
              (q_proj): Linear(in_features=768, out_features=768, bias=True)
              (out_proj): Linear(in_features=768, out_features=768, bias=True)
            )
            (dropout): Dropout(p=0.1, inplace=False)
            (self_attn_layer_norm): LayerNorm((768,), eps=1e-05, elementwise_affine=True)
            (encoder_attn): SpeechT5Attention(
              (k_proj): Linear(in_features=768, out_features=768, bias=True)
              (v_proj): Linear(in_features=768, out_features=768, bias=True)
              (q_proj): Linear(in_features=768, out_features=768, bias=True)
              (out_proj): Linear(in_features=768, out_features=768, bias=True)
            )
            (encoder_attn_layer_norm): LayerNorm((768,), eps=1e-05, elementwise_affine=True)
            (feed_forward): SpeechT5FeedForward(
              (intermediate_dropout): Dropout(p=0.1, inplace=False)
              (intermediate_dense): Linear(in_features=768, out_features=3072, bias=True)
              (intermediate_act_fn): GELUActivation()
              (output_dense): Linear(in_features=3072, out_features=768, bias=True)
              (output_dropout): Dropout(p=0.1, inplace=False)
            )
            (final_layer_norm): LayerNorm((768,), eps=1e-05, elementwise_affine=True)
          )
        )
      )
    )
  )
  (speech_decoder_postnet): SpeechT5SpeechDecoderPostnet(
    (feat_out): Linear(in_features=768, out_features=160, bias=True)
    (prob_out): Linear(in_features=768, out_features=2, bias=True)
    (layers): ModuleList(
      (0): SpeechT5BatchNormConvLayer(
        (conv): Conv1d(80, 256, kernel_size=(5,), stride=(1,), padding=(2,), bias=False)
        (batch_norm): BatchNorm1d(256, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
        (activation): Tanh()
        (dropout): Dropout(p=0.5, inplace=False)
      )
      (1-3): 3 x SpeechT5BatchNormConvLayer(
        (conv): Conv1d(256, 256, kernel_size=(5,), stride=(1,), padding=(2,), bias=False)
        (batch_norm): BatchNorm1d(256, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
        (activation): Tanh()
        (dropout): Dropout(p=0.5, inplace=False)
      )
      (4): SpeechT5BatchNormConvLayer(
        (conv): Conv1d(256, 80, kernel_size=(5,), stride=(1,), padding=(2,), bias=False)
        (batch_norm): BatchNorm1d(80, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
        (dropout): Dropout(p=0.5, inplace=False)
      )
    )
  )
)
)";

constexpr std::string_view kPrintedPatches = R"(PatchTSTForPrediction(
  (model): PatchTSTModel(
    (scaler): PatchTSTScaler(
      (scaler): PatchTSTStdScaler()
    )
    (patchifier): PatchTSTPatchify()
    (masking): Identity()
    (encoder): PatchTSTEncoder(
      (embedder): PatchTSTEmbedding(
        (input_embedding): Linear(in_features=16, out_features=128, bias=True)
      )
      (positional_encoder): PatchTSTPositionalEncoding(
        (positional_dropout): Identity()
      )
      (layers): ModuleList(
        (0-2): 3 x PatchTSTEncoderLayer(
          (self_attn): PatchTSTAttention(
            (k_proj): Linear(in_features=128, out_features=128, bias=True)
            (v_proj): Linear(in_features=128, out_features=128, bias=True)
            (q_proj): Linear(in_features=128, out_features=128, bias=True)
            (out_proj): Linear(in_features=128, out_features=128, bias=True)
          )
          (dropout_path1): Identity()
          (norm_sublayer1): PatchTSTBatchNorm(
            (batchnorm): BatchNorm1d(128, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
          )
          (ff): Sequential(
            (0): Linear(in_features=128, out_features=512, bias=True)
            (1): GELUActivation()
            (2): Identity()
            (3): Linear(in_features=512, out_features=128, bias=True)
          )
          (dropout_path3): Identity()
          (norm_sublayer3): PatchTSTBatchNorm(
            (batchnorm): BatchNorm1d(128, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
          )
        )
      )
    )
  )
  (head): PatchTSTPredictionHead(
    (flatten): Flatten(start_dim=2, end_dim=-1)
    (projection): Linear(in_features=128, out_features=24, bias=True)
    (dropout): Identity()
  )
)
)";

constexpr std::string_view kPrintedMoments = R"(TimeSeriesTransformerForPrediction(
  (model): TimeSeriesTransformerModel(
    (scaler): TimeSeriesMeanScaler()
    (encoder): TimeSeriesTransformerEncoder(
      (value_embedding): TimeSeriesValueEmbedding(
        (value_projection): Linear(in_features=9, out_features=64, bias=False)
      )
      (embed_positions): TimeSeriesSinusoidalPositionalEmbedding(48, 64)
      (layers): ModuleList(
        (0-1): 2 x TimeSeriesTransformerEncoderLayer(
          (self_attn): TimeSeriesTransformerAttention(
            (k_proj): Linear(in_features=64, out_features=64, bias=True)
            (v_proj): Linear(in_features=64, out_features=64, bias=True)
            (q_proj): Linear(in_features=64, out_features=64, bias=True)
            (out_proj): Linear(in_features=64, out_features=64, bias=True)
          )
          (self_attn_layer_norm): LayerNorm((64,), eps=1e-05, elementwise_affine=True)
          (activation_fn): GELUActivation()
          (fc1): Linear(in_features=64, out_features=32, bias=True)
          (fc2): Linear(in_features=32, out_features=64, bias=True)
          (final_layer_norm): LayerNorm((64,), eps=1e-05, elementwise_affine=True)
        )
      )
      (layernorm_embedding): LayerNorm((64,), eps=1e-05, elementwise_affine=True)
    )
    (decoder): TimeSeriesTransformerDecoder(
      (value_embedding): TimeSeriesValueEmbedding(
        (value_projection): Linear(in_features=9, out_features=64, bias=False)
      )
      (embed_positions): TimeSeriesSinusoidalPositionalEmbedding(48, 64)
      (layers): ModuleList(
        (0-1): 2 x TimeSeriesTransformerDecoderLayer(
          (self_attn): TimeSeriesTransformerAttention(
            (k_proj): Linear(in_features=64, out_features=64, bias=True)
            (v_proj): Linear(in_features=64, out_features=64, bias=True)
            (q_proj): Linear(in_features=64, out_features=64, bias=True)
            (out_proj): Linear(in_features=64, out_features=64, bias=True)
          )
          (activation_fn): GELUActivation()
          (self_attn_layer_norm): LayerNorm((64,), eps=1e-05, elementwise_affine=True)
          (encoder_attn): TimeSeriesTransformerAttention(
            (k_proj): Linear(in_features=64, out_features=64, bias=True)
            (v_proj): Linear(in_features=64, out_features=64, bias=True)
            (q_proj): Linear(in_features=64, out_features=64, bias=True)
            (out_proj): Linear(in_features=64, out_features=64, bias=True)
          )
          (encoder_attn_layer_norm): LayerNorm((64,), eps=1e-05, elementwise_affine=True)
          (fc1): Linear(in_features=64, out_features=32, bias=True)
          (fc2): Linear(in_features=32, out_features=64, bias=True)
          (final_layer_norm): LayerNorm((64,), eps=1e-05, elementwise_affine=True)
        )
      )
      (layernorm_embedding): LayerNorm((64,), eps=1e-05, elementwise_affine=True)
    )
  )
  (parameter_projection): ParameterProjection(
    (proj): ModuleList(
      (0-2): 3 x Linear(in_features=64, out_features=1, bias=True)
    )
    (domain_map): LambdaLayer()
  )
)
)";

TEST(SoundAndSeries, AConfigAndItsTreeAgree) {
  struct Case {
    std::string_view config;
    std::string_view tree;
    double apart;  ///< how far the answers may be: no tree of moments tells lags from features
  };
  const Case cases[] = {
      {kSpeaks, kPrintedSpeech, 0.0}, {kPatches, kPrintedPatches, 0.0}, {kMoments, kPrintedMoments, 0.02}};
  for (const Case& each : cases) {
    const auto graph = parse_summary(each.config);
    ASSERT_TRUE(succeeds(graph)) << each.config;
    const auto tree = parse_summary(each.tree);
    ASSERT_TRUE(succeeds(tree)) << each.config;
    for (const bool checkpointing : {false, true}) {
      const auto expected = static_cast<double>(series_held(*graph, 128, checkpointing));
      const auto printed = static_cast<double>(series_held(*tree, 128, checkpointing));
      EXPECT_NEAR(printed, expected, each.apart * expected) << each.config;
    }
  }
}

TEST(SoundAndSeries, ConvertsSpeechAndReadsSoundsWithoutWords) {
  constexpr std::string_view kConverts =
      R"({"model_type": "speecht5", "architectures": ["SpeechT5ForSpeechToSpeech"], "max_speech_positions": 100})";
  EXPECT_GT(series_held(kConverts, 320'000), series_held(kConverts, 16'000)) << "samples of the sound that is read";
  // facebook/w2v-bert-2.0 has no words.
  const auto body =
      series_model(R"({"model_type": "wav2vec2-bert", "architectures": ["Wav2Vec2BertModel"], "vocab_size": null})");
  EXPECT_TRUE(succeeds(body));
  const auto words =
      series_model(R"({"model_type": "wav2vec2-bert", "architectures": ["Wav2Vec2BertForCTC"], "vocab_size": null})");
  EXPECT_TRUE(fails(words, ErrorCode::malformed_input, 0, "ForCTC needs it"));
}

TEST(SoundAndSeries, PretrainingComparesEachFrameWithCodesOfOthers) {
  const auto with = [](int negatives) {
    return series_held(R"({"model_type": "wav2vec2", "architectures": ["Wav2Vec2ForPreTraining"],
        "num_hidden_layers": 2, "num_negatives": )" +
                           std::to_string(negatives) + "}",
                       16000);
  };
  // Two samples of 49 frames; targets and their norms in float32, 256 wide.
  EXPECT_GT(with(200) - with(100), std::int64_t{2} * 49 * 100 * 256 * 4);
}

}  // namespace
}  // namespace gpumem::testing
