/* The C API from C: questions in words, and what went wrong as JSON. */
#include "calls.h"

static gpumem_answer* answer_to(const char* question, const gpumem_summary* summary, const char* const* names,
                                const char* const* values, size_t count) {
  gpumem_answer* answer = NULL;
  CHECK_STATUS(gpumem_ask(question, summary, names, values, count, &answer, MESSAGE), GPUMEM_OK);
  CHECK(answer != NULL);
  return answer;
}

static int has(const gpumem_answer* answer, const char* form, const char* words) {
  const char* text = gpumem_answer_text(answer, form);
  return text != NULL && strstr(text, words) != NULL;
}

static void an_estimate_is_that_of_the_struct(void) {
  static const char* const kNames[] = {"batch_size", "input", "deadline_ms"};
  static const char* const kValues[] = {"32", "64", "60000"};
  gpumem_summary* summary = small_model();
  gpumem_job job = usual_job();
  gpumem_estimate_result need = GPUMEM_ESTIMATE_RESULT_INIT;
  char figure[64];
  gpumem_answer* answer = answer_to("estimate", summary, kNames, kValues, 3);
  CHECK_STATUS(gpumem_estimate(summary, &job, &need, MESSAGE), GPUMEM_OK);
  snprintf(figure, sizeof figure, "\"expected_bytes\":%lld,", (long long)need.expected_bytes);
  CHECK(has(answer, "figures", figure));
  gpumem_summary_free(summary); /* the answer keeps what it needs */
  CHECK(has(answer, "json", "\"schema\": 1"));
  CHECK(has(answer, "text", "estimator"));
  CHECK(gpumem_answer_text(answer, "json") == gpumem_answer_text(answer, "json"));
  CHECK(gpumem_answer_text(answer, "xml") == NULL && gpumem_answer_text(answer, NULL) == NULL);
  CHECK(gpumem_answer_text(NULL, "json") == NULL);
  CHECK(gpumem_answer_part(answer, "estimate") == NULL);
  gpumem_answer_free(answer);
  gpumem_answer_free(NULL);
}

static void a_fit_has_estimates_within(void) {
  static const char* const kNames[] = {"input"};
  static const char* const kValues[] = {"64"};
  gpumem_summary* summary = small_model();
  gpumem_answer* answer = answer_to("fit", summary, kNames, kValues, 1);
  CHECK(has(answer, "figures", "\"at_least\":true"));
  CHECK(has(gpumem_answer_part(answer, "estimate"), "figures", "\"verdict\":\"fits\""));
  CHECK(gpumem_answer_part(answer, "one_more") == NULL);
  CHECK(gpumem_answer_part(answer, NULL) == NULL && gpumem_answer_part(NULL, "estimate") == NULL);
  gpumem_answer_free(answer);
  gpumem_summary_free(summary);
}

static void a_plan_asks_for_no_batch(void) {
  static const char* const kNames[] = {"input", "global_batch", "gpus", "framework"};
  static const char* const kValues[] = {"64", "64", "2", "fsdp2"};
  static const char* const kLimited[] = {"input", "global_batch", "gpus", "at_most_tensor_parallel"};
  static const char* const kLimits[] = {"64", "64", "2", "1"};
  gpumem_summary* summary = small_model();
  gpumem_answer* answer = answer_to("plan", summary, kNames, kValues, 4);
  CHECK(has(answer, "json", "\"global_batch\": 64"));
  CHECK(has(answer, "json", "\"framework\": \"fsdp2\""));
  CHECK(has(answer, "text", "fsdp2"));
  gpumem_answer_free(answer);
  answer = answer_to("plan", summary, kLimited, kLimits, 4);
  CHECK(has(answer, "json", "\"layouts\""));
  gpumem_answer_free(answer);
  gpumem_summary_free(summary);
}

static void advice_names_changes(void) {
  static const char* const kNames[] = {"input", "batch_size", "gpu"};
  static const char* const kValues[] = {"64", "8", "a100-40gb"};
  gpumem_summary* summary = small_model();
  gpumem_answer* answer = answer_to("advise", summary, kNames, kValues, 3);
  CHECK(has(answer, "json", "\"changes\""));
  CHECK(has(answer, "json", "\"verdict\": \"fits\""));
  CHECK(has(answer, "text", "it fits: "));
  CHECK(has(answer, "text", "--fused"));
  gpumem_answer_free(answer);
  gpumem_summary_free(summary);
}

static void a_model_is_named(void) {
  gpumem_summary* summary = NULL;
  CHECK(gpumem_summary_from_file("meta-llama/llama-3.1-8b", NULL, &summary, message, sizeof message) == GPUMEM_OK);
  gpumem_summary_free(summary);
  CHECK(gpumem_summary_from_file("meta-llama/Lama-3.1-8B", NULL, &summary, message, sizeof message) ==
        GPUMEM_UNREADABLE_FILE);
  CHECK(strstr(message, "did you mean 'meta-llama/Llama-3.1-8B'?") != NULL);
}

static void what_there_is(void) {
  static const struct {
    const char* question;
    const char* words;
  } kQuestions[] = {
      {"gpus", "\"a100-40gb\""}, {"estimators", "\"replay\""}, {"options", "\"adafactor\""}, {"job", "\"batch_size\""}};
  for (size_t index = 0; index < sizeof kQuestions / sizeof *kQuestions; ++index) {
    gpumem_answer* answer = answer_to(kQuestions[index].question, NULL, NULL, NULL, 0);
    CHECK(has(answer, "json", kQuestions[index].words));
    gpumem_answer_free(answer);
  }
}

/* What these words say is refused with `status`, and `words` are in the message and in the failure. */
static void all_refused(const char* question, const char* const* names, const char* const* values, size_t count,
                        gpumem_status status, const char* words) {
  gpumem_summary* summary = small_model();
  gpumem_answer* answer = NULL;
  CHECK_STATUS(gpumem_ask(question, summary, names, values, count, &answer, MESSAGE), status);
  CHECK(answer == NULL);
  if (strstr(message, words) == NULL) fprintf(stderr, "%s %s=%s: %s\n", question, *names, *values, message);
  CHECK(strstr(message, words) != NULL);
  CHECK(strstr(gpumem_last_failure(), words) != NULL);
  CHECK(strstr(gpumem_last_failure(), gpumem_status_name(status)) != NULL);
  gpumem_summary_free(summary);
}

static void refused(const char* question, const char* name, const char* value, gpumem_status status,
                    const char* words) {
  all_refused(question, &name, &value, 1, status, words);
}

/* No word is left unread: it would be a mistake that nobody notices. */
static void words_of_no_use_are_errors(void) {
  static const char* const kNone[] = {"gpus", "estimators", "options", "summary", "server"};
  static const char* const kJobs[] = {"estimate", "fit", "plan", "job"};
  static const char* const kTwice[] = {"batch_size", "batch_size"};
  static const char* const kBoth[] = {"batch_size", "seq_length"};
  static const char* const kNumbers[] = {"1", "2"};
  size_t index;
  for (index = 0; index < sizeof kNone / sizeof *kNone; ++index) {
    refused(kNone[index], "gpu", "t4-16gb", GPUMEM_INVALID_ARGUMENT, "no word 'gpu'");
    refused(kNone[index], "command", "vllm", GPUMEM_INVALID_ARGUMENT, "no `command`");
  }
  for (index = 0; index < sizeof kJobs / sizeof *kJobs; ++index) {
    refused(kJobs[index], "command", "vllm", GPUMEM_INVALID_ARGUMENT, "no `command`");
    refused(kJobs[index], "setting", "key=1", GPUMEM_INVALID_ARGUMENT, "no `setting`");
    all_refused(kJobs[index], kTwice, kNumbers, 2, GPUMEM_INVALID_ARGUMENT, "'batch_size' is given twice");
  }
  refused("serve", "setting", "key=1", GPUMEM_INVALID_ARGUMENT, "no `setting`");
  all_refused("fit", kBoth, kNumbers, 2, GPUMEM_INVALID_ARGUMENT, "leave out");
}

static void wrong_words_are_errors(void) {
  refused("estimat", "batch_size", "1", GPUMEM_INVALID_ARGUMENT, "there is no question");
  refused("estimate", "bacth", "1", GPUMEM_INVALID_ARGUMENT, "bacth");
  refused("estimate", "batch_size", "0", GPUMEM_INVALID_ARGUMENT, "at least 1");
  refused("estimate", "batch_size", "many", GPUMEM_MALFORMED_INPUT, "whole number");
  refused("estimate", "gpu", "gpu-0", GPUMEM_UNKNOWN_GPU, "gpu-0");
  refused("estimate", "deadline_ms", "soon", GPUMEM_INVALID_ARGUMENT, "deadline_ms");
  refused("estimate", "deadline_ms", "-1", GPUMEM_INVALID_ARGUMENT, "deadline_ms");
  refused("plan", "at_most_expert_parallel", "0", GPUMEM_INVALID_ARGUMENT, "at_most_expert_parallel");
  refused("plan", "show", "0", GPUMEM_INVALID_ARGUMENT, "show");
  refused("plan", "network_gbps", "1x", GPUMEM_INVALID_ARGUMENT, "network_gbps");
  refused("posttrain", "setting", "key", GPUMEM_INVALID_ARGUMENT, "KEY=VALUE");
  refused("serve", "tensor_parallel_size", "2", GPUMEM_INVALID_ARGUMENT, "config.json");
  refused("serve", "model", "-", GPUMEM_UNREADABLE_FILE, "./-");
  refused("server", "window_ms", "3600001", GPUMEM_INVALID_ARGUMENT, "window_ms");
}

static void null_pointers_are_errors(void) {
  static const char* const kWords[] = {NULL};
  static const char* const kName[] = {"batch_size"};
  gpumem_answer* answer = NULL;
  CHECK_STATUS(gpumem_ask(NULL, NULL, NULL, NULL, 0, &answer, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  CHECK_STATUS(gpumem_ask("gpus", NULL, NULL, NULL, 0, NULL, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  CHECK_STATUS(gpumem_ask("gpus", NULL, NULL, kName, 1, &answer, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  CHECK_STATUS(gpumem_ask("gpus", NULL, kName, NULL, 1, &answer, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  CHECK_STATUS(gpumem_ask("gpus", NULL, kName, kWords, 1, &answer, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  CHECK_STATUS(gpumem_ask("estimate", NULL, NULL, NULL, 0, &answer, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  CHECK_STATUS(gpumem_ask("summary", NULL, NULL, NULL, 0, &answer, NULL, 0), GPUMEM_INVALID_ARGUMENT);
  CHECK(answer == NULL);
}

static void a_failure_has_its_place(void) {
  gpumem_summary* summary = NULL;
  CHECK(strcmp(gpumem_last_failure(), "{}") == 0); /* the first call of the test */
  CHECK_STATUS(gpumem_summary_from_file("/no/such/file", NULL, &summary, NULL, 0), GPUMEM_UNREADABLE_FILE);
  CHECK(strstr(gpumem_last_failure(), "\"file\":\"/no/such/file\"") != NULL);
  CHECK(strstr(gpumem_last_failure(), "\"exit_code\":3") != NULL);
  gpumem_after_fork();
  CHECK(strstr(gpumem_last_failure(), "unreadable_file") != NULL);
}

int main(void) {
  a_failure_has_its_place();
  an_estimate_is_that_of_the_struct();
  a_fit_has_estimates_within();
  a_plan_asks_for_no_batch();
  advice_names_changes();
  a_model_is_named();
  what_there_is();
  words_of_no_use_are_errors();
  wrong_words_are_errors();
  null_pointers_are_errors();
  if (failures > 0) fprintf(stderr, "%d checks failed\n", failures);
  return failures == 0 ? 0 : 1;
}
