/* The C API from C: what it gives, and what it refuses. */
#include "calls.h"

static void names_and_versions(void) {
  CHECK(strlen(gpumem_version()) >= 5);
  CHECK(strcmp(gpumem_status_name(GPUMEM_OK), "ok") == 0);
  CHECK(strcmp(gpumem_status_name(GPUMEM_DEADLINE_EXCEEDED), "deadline_exceeded") == 0);
  CHECK(strcmp(gpumem_status_name(12), "unknown") == 0);
  CHECK(strcmp(gpumem_status_name(-1), "unknown") == 0);
}

static void options_are_spelled_as_the_caller_does(void) {
  static const char kMessage[] = "say `tensor_parallel=2`, not `seq_length` or `zlib`";
  char text[96] = "untouched";
  gpumem_spell_options(kMessage, "--gpu-", "=", text, sizeof text);
  CHECK(strcmp(text, "say --gpu-tensor-parallel=2, not --gpu-seq or `zlib`") == 0);
  gpumem_spell_options(kMessage, NULL, NULL, text, sizeof text);
  CHECK(strcmp(text, "say tensor-parallel2, not seq or `zlib`") == 0);
  gpumem_spell_options(kMessage, "--", " ", text, 24);
  CHECK(strcmp(text, "say --tensor-paralle...") == 0);
  gpumem_spell_options(NULL, "--", " ", text, sizeof text);
  gpumem_spell_options(kMessage, "--", " ", NULL, 0);
  CHECK(strcmp(text, "say --tensor-paralle...") == 0);
}

static void a_summary_is_described(void) {
  gpumem_summary* summary = small_model();
  gpumem_summary_info info = GPUMEM_SUMMARY_INFO_INIT;
  CHECK_STATUS(gpumem_summary_describe(summary, &info, MESSAGE), GPUMEM_OK);
  CHECK(message[0] == '\0');
  CHECK(strcmp(info.format, "module_tree") == 0);
  CHECK(info.layers == 3);
  CHECK(info.unknown_layers == 0);
  CHECK(info.parameters == 64 * 32 + 32 + 32 * 10 + 10);
  CHECK(info.trainable_parameters == info.parameters);
  CHECK(info.printed_batch_size == -1);
  CHECK(info.warnings == 1); /* that a tree does not show everything */
  CHECK(strstr(gpumem_summary_warning(summary, 0), "not in it") != NULL);
  CHECK(gpumem_summary_warning(summary, 1) == NULL);
  CHECK(gpumem_summary_warning(summary, -1) == NULL);
  gpumem_summary_free(summary);
  gpumem_summary_free(NULL);
}

static void an_estimate_adds_up(const char* path) {
  gpumem_summary* summary = NULL;
  gpumem_job job = GPUMEM_JOB_INIT;
  gpumem_estimate_result need = GPUMEM_ESTIMATE_RESULT_INIT;
  job.batch_size = 32;
  job.gpu = "A100-40GB";
  CHECK_STATUS(gpumem_summary_from_file(path, NULL, &summary, MESSAGE), GPUMEM_OK);
  CHECK_STATUS(gpumem_estimate(summary, &job, &need, MESSAGE), GPUMEM_OK);
  CHECK(need.lower_bytes < need.expected_bytes && need.expected_bytes < need.upper_bytes);
  CHECK(need.allocated_bytes <= need.reserved_bytes && need.reserved_bytes < need.device_bytes);
  CHECK(need.device_bytes == need.expected_bytes);
  CHECK(need.context_bytes + need.parameters_bytes + need.gradients_bytes + need.optimizer_bytes +
            need.activations_bytes + need.temporaries_bytes + need.workspace_bytes + need.fragmentation_bytes +
            need.gathered_bytes + need.communication_bytes ==
        need.expected_bytes);
  CHECK(need.fits == 1 && need.upper_bytes <= need.capacity_bytes);
  CHECK(need.upper_uncut_bytes >= need.upper_bytes);
  CHECK(need.gpus == 1);
  CHECK(need.upper_coverage > 0.5 && need.upper_coverage <= 1.0);
  CHECK(need.layers == 158 && need.unknown_layers == 0);

  job.estimator = "fake-tensor";
  CHECK_STATUS(gpumem_estimate(summary, &job, &need, MESSAGE), GPUMEM_OK);
  CHECK(need.reserved_bytes == -1 && need.upper_coverage < 0.0);
  job.estimator = "gpumemnet-mlp";
  CHECK_STATUS(gpumem_estimate(summary, &job, &need, MESSAGE), GPUMEM_OK);
  CHECK(need.context_bytes == -1 && need.fragmentation_bytes == -1);
  gpumem_summary_free(summary);
}

/* The second call of a model is made of what the first one left. */
static void later_estimates_are_the_same(void) {
  gpumem_summary* summary = small_model();
  gpumem_job job = usual_job();
  gpumem_estimate_result first = GPUMEM_ESTIMATE_RESULT_INIT;
  gpumem_estimate_result other = GPUMEM_ESTIMATE_RESULT_INIT;
  gpumem_estimate_result again = GPUMEM_ESTIMATE_RESULT_INIT;
  CHECK_STATUS(gpumem_estimate(summary, &job, &first, MESSAGE), GPUMEM_OK);
  job.batch_size = 1 << 20;
  job.precision = "bf16";
  job.optimizer = "lion";
  CHECK_STATUS(gpumem_estimate(summary, &job, &other, MESSAGE), GPUMEM_OK);
  CHECK(other.expected_bytes != first.expected_bytes);
  job = usual_job();
  CHECK_STATUS(gpumem_estimate(summary, &job, &again, MESSAGE), GPUMEM_OK);
  CHECK(memcmp(&first, &again, sizeof first) == 0);
  gpumem_summary_free(summary);
}

static void the_largest_batch_fits_and_one_more_does_not(void) {
  gpumem_summary* summary = NULL;
  const char conv[] =
      "Sequential(\n"
      "  (0): Conv2d(3, 64, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))\n"
      "  (1): ReLU()\n"
      "  (2): Conv2d(64, 64, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))\n"
      ")\n";
  gpumem_job job = GPUMEM_JOB_INIT;
  gpumem_fit_result fit = GPUMEM_FIT_RESULT_INIT;
  gpumem_estimate_result at_batch = GPUMEM_ESTIMATE_RESULT_INIT;
  gpumem_estimate_result one_more = GPUMEM_ESTIMATE_RESULT_INIT;
  job.input = "3x224x224";
  job.gpu = "t4-16gb";
  CHECK_STATUS(gpumem_summary_from_memory(conv, sizeof conv - 1, NULL, &summary, MESSAGE), GPUMEM_OK);
  CHECK_STATUS(gpumem_fit(summary, &job, &fit, &at_batch, &one_more, MESSAGE), GPUMEM_OK);
  CHECK(fit.batch_size > 0 && fit.at_least == 0 && fit.has_next == 1 && fit.estimates > 1);
  CHECK(at_batch.verdict == GPUMEM_TIGHT && one_more.verdict == GPUMEM_DOES_NOT_FIT && one_more.fits == 0);
  CHECK(0 < fit.safe && fit.safe <= fit.without_flushes && fit.without_flushes <= fit.batch_size);
  job.batch_size = fit.safe;
  CHECK_STATUS(gpumem_estimate(summary, &job, &one_more, MESSAGE), GPUMEM_OK);
  CHECK(one_more.verdict == GPUMEM_FITS && one_more.fits == 1 && one_more.most_needed_bytes <= one_more.capacity_bytes);
  job.batch_size = fit.batch_size;
  CHECK_STATUS(gpumem_estimate(summary, &job, &one_more, MESSAGE), GPUMEM_OK);
  CHECK(one_more.expected_bytes == at_batch.expected_bytes);
  CHECK_STATUS(gpumem_fit(summary, &job, &fit, NULL, NULL, NULL, 0), GPUMEM_OK);
  job.input = "3x65536x65536";
  CHECK_STATUS(gpumem_fit(summary, &job, &fit, &at_batch, &one_more, MESSAGE), GPUMEM_OK);
  CHECK(fit.batch_size == 0 && fit.has_next == 1 && one_more.fits == 0);
  gpumem_summary_free(summary);
}

static void the_longest_sequence_fits_or_the_model_ends(void) {
  gpumem_summary* summary = NULL;
  const char* text =
      "{\"model_type\": \"gpt2\", \"architectures\": [\"GPT2LMHeadModel\"], \"n_embd\": 64, "
      "\"n_layer\": 2, \"n_head\": 2, \"n_positions\": 4096, \"vocab_size\": 50000}";
  gpumem_job job = GPUMEM_JOB_INIT;
  gpumem_fit_result fit = GPUMEM_FIT_RESULT_INIT;
  gpumem_estimate_result at_length = GPUMEM_ESTIMATE_RESULT_INIT;
  gpumem_estimate_result one_more = GPUMEM_ESTIMATE_RESULT_INIT;
  job.gpu = "t4-16gb";
  CHECK_STATUS(gpumem_summary_from_memory(text, strlen(text), NULL, &summary, MESSAGE), GPUMEM_OK);
  job.batch_size = 1;
  CHECK_STATUS(gpumem_fit_sequence(summary, &job, &fit, &at_length, &one_more, MESSAGE), GPUMEM_OK);
  CHECK(fit.sequence_length == 4096 && fit.model_ends == 1 && fit.has_next == 0 && fit.batch_size == 1);
  CHECK(at_length.fits == 1);
  job.batch_size = 16;
  CHECK_STATUS(gpumem_fit_sequence(summary, &job, &fit, &at_length, &one_more, MESSAGE), GPUMEM_OK);
  CHECK(fit.sequence_length > 0 && fit.sequence_length < 4096 && fit.model_ends == 0 && fit.has_next == 1);
  CHECK(at_length.verdict == GPUMEM_TIGHT && one_more.verdict == GPUMEM_DOES_NOT_FIT);
  CHECK(fit.safe <= fit.sequence_length);
  job.seq_length = fit.sequence_length;
  CHECK_STATUS(gpumem_estimate(summary, &job, &one_more, MESSAGE), GPUMEM_OK);
  CHECK(one_more.expected_bytes == at_length.expected_bytes);
  gpumem_summary_free(summary);
}

static void a_job_in_json_is_the_job(void) {
  const char json[] =
      "{\"id\": 7, \"summary\": \"a.txt\", \"batch_size\": 32, \"input\": [64], \"gpu\": \"a100-40gb\","
      " \"optimizer\": \"sgd\", \"foreach\": false, \"lenient\": true, \"deadline_ms\": 60000}";
  gpumem_summary* summary = small_model();
  gpumem_job* parsed = NULL;
  gpumem_job job = usual_job();
  gpumem_estimate_result one = GPUMEM_ESTIMATE_RESULT_INIT;
  gpumem_estimate_result two = GPUMEM_ESTIMATE_RESULT_INIT;
  CHECK_STATUS(gpumem_job_from_json(json, sizeof json - 1, &parsed, MESSAGE), GPUMEM_OK);
  CHECK(parsed->size == sizeof *parsed && parsed->deadline_ms == 60000 && parsed->no_foreach == 1);
  CHECK(strcmp(parsed->summary, "a.txt") == 0 && parsed->lenient == 1);
  CHECK_STATUS(gpumem_estimate(summary, parsed, &one, MESSAGE), GPUMEM_OK);
  job.optimizer = "sgd";
  job.no_foreach = 1;
  CHECK_STATUS(gpumem_estimate(summary, &job, &two, MESSAGE), GPUMEM_OK);
  CHECK(memcmp(&one, &two, sizeof one) == 0);
  gpumem_job_free(parsed);
  gpumem_job_free(NULL);
  gpumem_summary_free(summary);
}

static void broken_jobs_are_refused(void) {
  static const char* const broken[] = {"",
                                       "{",
                                       "[]",
                                       "7",
                                       "{\"batch\": \"many\"}",
                                       "{\"colour\": \"red\"}",
                                       "{\"seq\": 0}",
                                       "{\"samples\": 0}",
                                       "{\"accumulate\": 0}",
                                       "{\"deadline_ms\": -1}",
                                       "{\"deadline_ms\": 1.5}",
                                       "{\"deadline_ms\": 18446744073709551615}",
                                       "{\"input\": [[[[[[1]]]]]]}",
                                       "{\"input\": \"\xff\xfe\"}"};
  size_t index;
  size_t length = 0;
  char* deep = repeated("{\"input\":", "[", 10 * 1000 * 1000, "", &length);
  for (index = 0; index < sizeof broken / sizeof *broken; ++index) {
    gpumem_job* job = NULL;
    message[0] = '\0';
    CHECK(gpumem_job_from_json(broken[index], strlen(broken[index]), &job, MESSAGE) != GPUMEM_OK);
    CHECK(job == NULL && message[0] != '\0');
  }
  {
    gpumem_job* job = NULL;
    CHECK_STATUS(gpumem_job_from_json(deep, length, &job, MESSAGE), GPUMEM_MALFORMED_INPUT);
    CHECK_STATUS(gpumem_job_from_json(deep, 1000 * 1000, &job, MESSAGE), GPUMEM_MALFORMED_INPUT);
    CHECK_STATUS(gpumem_job_from_json(NULL, 7, &job, MESSAGE), GPUMEM_INVALID_ARGUMENT);
    CHECK_STATUS(gpumem_job_from_json("{}", 2, NULL, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  }
  free(deep);
}

static void wrong_arguments_are_errors(void) {
  gpumem_summary* summary = small_model();
  gpumem_summary* none = NULL;
  gpumem_job job = usual_job();
  gpumem_estimate_result need = GPUMEM_ESTIMATE_RESULT_INIT;
  gpumem_fit_result fit = GPUMEM_FIT_RESULT_INIT;
  gpumem_summary_info info = GPUMEM_SUMMARY_INFO_INIT;
  gpumem_read_options options = GPUMEM_READ_OPTIONS_INIT;
  CHECK_STATUS(gpumem_summary_from_file(NULL, NULL, &none, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  CHECK_STATUS(gpumem_summary_from_file("x", NULL, NULL, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  CHECK_STATUS(gpumem_summary_from_memory(NULL, 3, NULL, &none, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  CHECK_STATUS(gpumem_summary_from_memory("x", 1, NULL, NULL, NULL, 0), GPUMEM_INVALID_ARGUMENT);
  CHECK_STATUS(gpumem_summary_describe(NULL, &info, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  CHECK_STATUS(gpumem_summary_describe(summary, NULL, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  CHECK(gpumem_summary_warning(NULL, 0) == NULL);
  CHECK_STATUS(gpumem_estimate(NULL, &job, &need, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  CHECK_STATUS(gpumem_estimate(summary, NULL, &need, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  CHECK_STATUS(gpumem_estimate(summary, &job, NULL, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  CHECK_STATUS(gpumem_fit(NULL, &job, &fit, NULL, NULL, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  CHECK_STATUS(gpumem_fit(summary, NULL, &fit, NULL, NULL, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  CHECK_STATUS(gpumem_fit(summary, &job, NULL, NULL, NULL, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  options.largest_bytes = -1;
  CHECK_STATUS(gpumem_summary_from_memory("x", 1, &options, &none, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  CHECK(none == NULL);

  job.batch_size = 0;
  CHECK_STATUS(gpumem_estimate(summary, &job, &need, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  job = usual_job();
  job.optimizer = "newton";
  CHECK_STATUS(gpumem_estimate(summary, &job, &need, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  job = usual_job();
  job.estimator = "oracle";
  CHECK_STATUS(gpumem_estimate(summary, &job, &need, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  job = usual_job();
  job.gpu = "abacus";
  CHECK_STATUS(gpumem_estimate(summary, &job, &need, MESSAGE), GPUMEM_UNKNOWN_GPU);
  CHECK(strstr(message, "abacus") != NULL);
  job = usual_job();
  job.alloc_conf = "backend:cudaMallocAsync";
  CHECK_STATUS(gpumem_estimate(summary, &job, &need, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  job = usual_job();
  job.batch_size = INT64_MAX;
  CHECK_STATUS(gpumem_estimate(summary, &job, &need, MESSAGE), GPUMEM_OVERFLOW);
  job = usual_job();
  job.input = NULL;
  CHECK(gpumem_estimate(summary, &job, &need, MESSAGE) != GPUMEM_INTERNAL_ERROR);
  gpumem_summary_free(summary);
}

/* A caller of tomorrow, whose structs have a field more, and one whose structs were never set. */
static void structs_may_grow(void) {
  struct {
    gpumem_job known;
    int64_t later;
  } job = {GPUMEM_JOB_INIT, 0};
  struct {
    gpumem_estimate_result known;
    int64_t later;
  } need = {GPUMEM_ESTIMATE_RESULT_INIT, 7};
  gpumem_summary* summary = small_model();
  job.known.size = sizeof job;
  job.known.batch_size = 8;
  job.known.input = "64";
  need.known.size = sizeof need;
  CHECK_STATUS(gpumem_estimate(summary, &job.known, &need.known, MESSAGE), GPUMEM_OK);
  CHECK(need.later == 0 && need.known.size == sizeof need && need.known.expected_bytes > 0);
  job.later = 1;
  CHECK_STATUS(gpumem_estimate(summary, &job.known, &need.known, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  CHECK(strstr(message, "does not know") != NULL);
  job.known.size = 0;
  CHECK_STATUS(gpumem_estimate(summary, &job.known, &need.known, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  job.known.size = (size_t)-1;
  CHECK_STATUS(gpumem_estimate(summary, &job.known, &need.known, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  job.known.size = sizeof job.known;
  need.known.size = 16;
  CHECK_STATUS(gpumem_estimate(summary, &job.known, &need.known, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  job.known.reserved = 1;
  need.known.size = sizeof need.known;
  CHECK_STATUS(gpumem_estimate(summary, &job.known, &need.known, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  gpumem_summary_free(summary);
}

static void messages_are_cut_cleanly(void) {
  gpumem_summary* summary = small_model();
  gpumem_job job = usual_job();
  gpumem_estimate_result need = GPUMEM_ESTIMATE_RESULT_INIT;
  char buffer[64];
  size_t size;
  job.gpu = "\xc3\xa4\xc3\xb6\xc3\xbc\xe2\x82\xac\n\x1b[31m";
  for (size = 0; size < sizeof buffer; ++size) {
    size_t length;
    memset(buffer, '#', sizeof buffer);
    CHECK_STATUS(gpumem_estimate(summary, &job, &need, buffer, size), GPUMEM_UNKNOWN_GPU);
    CHECK(buffer[size] == '#');
    if (size == 0) continue;
    length = strlen(buffer);
    CHECK(length < size);
    CHECK(memchr(buffer, '\n', length) == NULL && memchr(buffer, '\x1b', length) == NULL);
    if (size > 4) CHECK(strcmp(buffer + length - 3, "...") == 0);
    /* What is before the dots is not half of a sequence. */
    CHECK(length <= 3 || (buffer[length - 4] & 0xC0) != 0xC0);
  }
  CHECK_STATUS(gpumem_estimate(summary, &job, &need, NULL, 64), GPUMEM_UNKNOWN_GPU);
  gpumem_summary_free(summary);
}

static void a_job_is_placed(void) {
  gpumem_server_gpu gpus[3] = {GPUMEM_SERVER_GPU_INIT, GPUMEM_SERVER_GPU_INIT, GPUMEM_SERVER_GPU_INIT};
  gpumem_request request = GPUMEM_REQUEST_INIT;
  gpumem_placement placement = GPUMEM_PLACEMENT_INIT;
  gpumem_decision decision = GPUMEM_DECISION_INIT;
  char words[200];
  size_t chosen[3];
  uint64_t turn = 0;
  const int64_t gib = (int64_t)1 << 30;
  size_t index;
  for (index = 0; index < 3; ++index) gpus[index].total_bytes = 40 * gib;
  gpus[0].used_bytes = 10 * gib;
  gpus[0].set_aside_bytes = 30 * gib;
  gpus[0].jobs = 2;
  gpus[1].used_bytes = 20 * gib;
  gpus[1].set_aside_bytes = 15 * gib;
  gpus[1].smact = 0.5;
  gpus[2].used_bytes = 1 * gib;
  gpus[2].set_aside_bytes = 12 * gib;
  gpus[2].smact = 0.9;
  request.memory_bytes = 12 * gib;
  request.alone_bytes = 10 * gib;
  decision.gpus = chosen;
  decision.gpus_capacity = 3;
  decision.explanation = words;
  decision.explanation_size = sizeof words;
  CHECK_STATUS(gpumem_place(&request, gpus, 3, NULL, NULL, &decision, MESSAGE), GPUMEM_OK);
  CHECK(decision.gpus_count == 1 && chosen[0] == 1 && decision.refusal == GPUMEM_PLACED);
  CHECK(strncmp(words, "on GPU 1", 8) == 0 && message[0] == '\0');

  placement.smact_cap = -1.0;
  CHECK_STATUS(gpumem_place(&request, gpus, 3, &placement, NULL, &decision, MESSAGE), GPUMEM_OK);
  CHECK(decision.gpus_count == 1 && chosen[0] == 2);
  placement.policy = "round-robin";
  placement.free_floor_bytes = 0;
  request.memory_bytes = gib;
  CHECK_STATUS(gpumem_place(&request, gpus, 3, &placement, &turn, &decision, MESSAGE), GPUMEM_OK);
  CHECK(chosen[0] == 0 && turn == 1);
  CHECK_STATUS(gpumem_place(&request, gpus, 3, &placement, &turn, &decision, MESSAGE), GPUMEM_OK);
  CHECK(chosen[0] == 1 && turn == 2);
  request.gpus = 3;
  CHECK_STATUS(gpumem_place(&request, gpus, 3, &placement, &turn, &decision, MESSAGE), GPUMEM_OK);
  CHECK(decision.gpus_count == 3);

  request.gpus = 1;
  request.memory_bytes = 100 * gib;
  request.alone_bytes = -1;
  CHECK_STATUS(gpumem_place(&request, gpus, 3, NULL, NULL, &decision, MESSAGE), GPUMEM_OK);
  CHECK(decision.gpus_count == 0 && decision.refusal == GPUMEM_REFUSED_NEVER);
  CHECK(strncmp(words, "never", 5) == 0);
  request.memory_bytes = 35 * gib;
  CHECK_STATUS(gpumem_place(&request, gpus, 3, NULL, NULL, &decision, MESSAGE), GPUMEM_OK);
  CHECK(decision.gpus_count == 0 && decision.refusal == GPUMEM_REFUSED_MEMORY && decision.nearest == 2);
}

static void wrong_placements_are_errors(void) {
  gpumem_server_gpu gpus[2] = {GPUMEM_SERVER_GPU_INIT, GPUMEM_SERVER_GPU_INIT};
  gpumem_request request = GPUMEM_REQUEST_INIT;
  gpumem_placement placement = GPUMEM_PLACEMENT_INIT;
  gpumem_decision decision = GPUMEM_DECISION_INIT;
  size_t chosen[2];
  gpus[0].total_bytes = gpus[1].total_bytes = (int64_t)1 << 34;
  CHECK_STATUS(gpumem_place(&request, gpus, 2, NULL, NULL, &decision, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  decision.gpus = chosen;
  decision.gpus_capacity = 2;
  CHECK_STATUS(gpumem_place(NULL, gpus, 2, NULL, NULL, &decision, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  CHECK_STATUS(gpumem_place(&request, NULL, 2, NULL, NULL, &decision, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  CHECK_STATUS(gpumem_place(&request, gpus, 0, NULL, NULL, &decision, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  CHECK_STATUS(gpumem_place(&request, gpus, (size_t)-1, NULL, NULL, &decision, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  CHECK_STATUS(gpumem_place(&request, gpus, 2, NULL, NULL, NULL, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  placement.policy = "prettiest";
  CHECK_STATUS(gpumem_place(&request, gpus, 2, &placement, NULL, &decision, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  request.gpus = -1;
  CHECK_STATUS(gpumem_place(&request, gpus, 2, NULL, NULL, &decision, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  request.gpus = INT64_MAX;
  CHECK_STATUS(gpumem_place(&request, gpus, 2, NULL, NULL, &decision, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  request.gpus = 1;
  gpus[1].jobs = 257;
  CHECK_STATUS(gpumem_place(&request, gpus, 2, NULL, NULL, &decision, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  gpus[1].jobs = 0;
  gpus[1].smact = 7.0;
  CHECK_STATUS(gpumem_place(&request, gpus, 2, NULL, NULL, &decision, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  gpus[1].smact = 0.0;
  gpus[1].size = 8;
  CHECK_STATUS(gpumem_place(&request, gpus, 2, NULL, NULL, &decision, MESSAGE), GPUMEM_INVALID_ARGUMENT);
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s SUMMARY-OF-RESNET50\n", argv[0]);
    return 2;
  }
  names_and_versions();
  options_are_spelled_as_the_caller_does();
  a_summary_is_described();
  an_estimate_adds_up(argv[1]);
  later_estimates_are_the_same();
  the_largest_batch_fits_and_one_more_does_not();
  the_longest_sequence_fits_or_the_model_ends();
  a_job_in_json_is_the_job();
  broken_jobs_are_refused();
  wrong_arguments_are_errors();
  structs_may_grow();
  messages_are_cut_cleanly();
  a_job_is_placed();
  wrong_placements_are_errors();
  if (failures > 0) fprintf(stderr, "%d checks failed\n", failures);
  return failures == 0 ? 0 : 1;
}
