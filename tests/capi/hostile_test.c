/* The C API from C: hostile input neither blocks it nor crashes it. */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"

/* At PATH is not a regular file. */
static void refused(const char* path) {
  gpumem_summary* summary = NULL;
  CHECK_STATUS(gpumem_summary_from_file(path, NULL, &summary, MESSAGE), GPUMEM_UNREADABLE_FILE);
  CHECK(summary == NULL);
}

static void only_regular_files_are_read(const char* folder) {
  char path[512];
  char other[512];
  refused(folder);
  refused("");
  refused("-");
  refused("/dev/zero");
  refused("/dev/stdin");
  refused("/proc/self/mem");

  snprintf(path, sizeof path, "%s/fifo", folder);
  CHECK(mkfifo(path, 0600) == 0);
  refused(path);
  CHECK(strstr(message, "regular file") != NULL);
  snprintf(other, sizeof other, "%s/link", folder);
  CHECK(symlink("fifo", other) == 0);
  refused(other);
  CHECK(unlink(other) == 0 && unlink(path) == 0);
  CHECK(symlink("link", other) == 0); /* to itself */
  refused(other);
  CHECK(unlink(other) == 0);
}

static void a_file_may_be_so_large(const char* folder) {
  char path[512];
  char other[512];
  gpumem_summary* summary = NULL;
  gpumem_read_options options = GPUMEM_READ_OPTIONS_INIT;
  int file;
  snprintf(path, sizeof path, "%s/sparse", folder);
  file = open(path, O_CREAT | O_WRONLY, 0600);
  CHECK(ftruncate(file, (off_t)1 << 40) == 0); /* 1 TiB of nothing */
  refused(path);
  CHECK(ftruncate(file, 0) == 0);
  CHECK(write(file, kSmallModel, sizeof kSmallModel - 1) == (ssize_t)sizeof kSmallModel - 1);
  options.largest_bytes = (int64_t)sizeof kSmallModel - 2;
  CHECK_STATUS(gpumem_summary_from_file(path, &options, &summary, MESSAGE), GPUMEM_UNREADABLE_FILE);
  options.largest_bytes = (int64_t)sizeof kSmallModel - 1;
  CHECK_STATUS(gpumem_summary_from_file(path, &options, &summary, MESSAGE), GPUMEM_OK);
  gpumem_summary_free(summary);
  snprintf(other, sizeof other, "%s/link", folder);
  CHECK(symlink("sparse", other) == 0); /* as volumes of Kubernetes have them */
  CHECK_STATUS(gpumem_summary_from_file(other, NULL, &summary, MESSAGE), GPUMEM_OK);
  gpumem_summary_free(summary);
  close(file);
  CHECK(unlink(other) == 0 && unlink(path) == 0);
}

static void profiles_and_models_are_regular_files_too(const char* folder) {
  char fifo[512];
  gpumem_summary* summary = small_model();
  gpumem_job job = usual_job();
  gpumem_estimate_result need = GPUMEM_ESTIMATE_RESULT_INIT;
  snprintf(fifo, sizeof fifo, "%s/fifo", folder);
  CHECK(mkfifo(fifo, 0600) == 0);
  job.gpu = fifo;
  CHECK_STATUS(gpumem_estimate(summary, &job, &need, MESSAGE), GPUMEM_UNREADABLE_FILE);
  job.gpu = "/dev/zero";
  CHECK_STATUS(gpumem_estimate(summary, &job, &need, MESSAGE), GPUMEM_UNREADABLE_FILE);
  job.gpu = NULL;
  job.estimator = "gpumemnet-mlp";
  job.model = folder;
  CHECK_STATUS(gpumem_estimate(summary, &job, &need, MESSAGE), GPUMEM_UNREADABLE_FILE);
  CHECK(unlink(fifo) == 0);
  gpumem_summary_free(summary);
}

static void write_text(const char* path, const char* text) {
  FILE* file = fopen(path, "w");
  CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* What has a model's name is read as carefully: in FOLDER, which is the HuggingFace cache as well. */
static void names_are_looked_up_with_care(const char* folder) {
  static const char kConfig[] =
      "{\"model_type\": \"llama\", \"hidden_size\": 64, \"intermediate_size\": 128, \"num_hidden_layers\": 2, "
      "\"num_attention_heads\": 4, \"vocab_size\": 100}";
  gpumem_summary* summary = NULL;
  gpumem_read_options options = GPUMEM_READ_OPTIONS_INIT;
  char before[4096];
  CHECK(getcwd(before, sizeof before) != NULL && chdir(folder) == 0);
  CHECK(setenv("HF_HUB_CACHE", folder, 1) == 0);
  CHECK(mkdir("models--own--small", 0700) == 0 && mkdir("models--own--small/refs", 0700) == 0);
  CHECK(mkdir("models--own--small/snapshots", 0700) == 0 && mkdir("models--own--small/snapshots/one", 0700) == 0);
  write_text("models--own--small/refs/main", "one");
  write_text("models--own--small/snapshots/one/config.json", kConfig);
  options.largest_bytes = (int64_t)sizeof kConfig - 2;
  CHECK_STATUS(gpumem_summary_from_file("own/small", &options, &summary, MESSAGE), GPUMEM_UNREADABLE_FILE);
  options.largest_bytes = (int64_t)sizeof kConfig - 1;
  CHECK_STATUS(gpumem_summary_from_file("own/small", &options, &summary, MESSAGE), GPUMEM_OK);
  gpumem_summary_free(summary);
  summary = NULL;
  CHECK_STATUS(gpumem_summary_from_file("Qwen/Qwen3-8B", NULL, &summary, MESSAGE), GPUMEM_OK);
  gpumem_summary_free(summary);
  CHECK(symlink("Qwen", "Qwen") == 0); /* to itself: nobody knows what is there */
  refused("Qwen/Qwen3-8B");
  CHECK(unlink("Qwen") == 0 && unlink("models--own--small/refs/main") == 0);
  CHECK(unlink("models--own--small/snapshots/one/config.json") == 0 && rmdir("models--own--small/snapshots/one") == 0);
  CHECK(rmdir("models--own--small/snapshots") == 0 && rmdir("models--own--small/refs") == 0);
  CHECK(rmdir("models--own--small") == 0 && unsetenv("HF_HUB_CACHE") == 0 && chdir(before) == 0);
}

static void nests(const char* head, const char* part, size_t count) {
  gpumem_summary* summary = NULL;
  gpumem_job job = usual_job();
  gpumem_estimate_result need = GPUMEM_ESTIMATE_RESULT_INIT;
  size_t length = 0;
  char* text = repeated(head, part, count, "", &length);
  message[0] = '\0';
  if (gpumem_summary_from_memory(text, length, NULL, &summary, MESSAGE) == GPUMEM_OK) {
    (void)gpumem_estimate(summary, &job, &need, MESSAGE);
  } else {
    CHECK(summary == NULL && message[0] != '\0');
  }
  gpumem_summary_free(summary);
  free(text);
}

static void nesting_does_no_harm(void) {
  const size_t ten_million = 10 * 1000 * 1000;
  nests("", "[", ten_million);
  nests("", "{\"a\":", ten_million / 5);
  nests("{\"format\":\"gpumem-graph\",\"version\":1,\"inputs\":", "[", ten_million);
  nests("{\"format\":\"gpumem-graph\",\"version\":1,\"nodes\":[{\"attrs\":", "{\"a\":", ten_million / 5);
  nests("Sequential(\n", "  (0): Sequential(\n", ten_million / 19);
  nests("Linear(in_features=", "(", ten_million);
  nests("", "\xef\xbf\xbd", ten_million / 3);
}

static void a_deadline_ends_the_work(void) {
  gpumem_summary* summary = NULL;
  gpumem_read_options options = GPUMEM_READ_OPTIONS_INIT;
  gpumem_job job = GPUMEM_JOB_INIT;
  gpumem_estimate_result need = GPUMEM_ESTIMATE_RESULT_INIT;
  gpumem_fit_result fit = GPUMEM_FIT_RESULT_INIT;
  size_t length = 0;
  const size_t layers = SANITIZED ? 20 * 1000 : 150 * 1000;
  char* text =
      repeated("Sequential(\n", "  (0): Linear(in_features=64, out_features=64, bias=True)\n", layers, ")\n", &length);
  options.deadline_ms = 1;
  CHECK_STATUS(gpumem_summary_from_memory(text, length, &options, &summary, MESSAGE), GPUMEM_DEADLINE_EXCEEDED);
  CHECK(summary == NULL && strstr(message, "deadline") != NULL);
  options.deadline_ms = 600 * 1000;
  CHECK_STATUS(gpumem_summary_from_memory(text, length, &options, &summary, MESSAGE), GPUMEM_OK);
  job.batch_size = 8;
  job.input = "64";
  job.deadline_ms = 1;
  CHECK_STATUS(gpumem_estimate(summary, &job, &need, MESSAGE), GPUMEM_DEADLINE_EXCEEDED);
  CHECK_STATUS(gpumem_fit(summary, &job, &fit, NULL, NULL, MESSAGE), GPUMEM_DEADLINE_EXCEEDED);
  job.estimator = "fake-tensor";
  CHECK_STATUS(gpumem_estimate(summary, &job, &need, MESSAGE), GPUMEM_DEADLINE_EXCEEDED);
  job.estimator = "gpumemnet-mlp";
  CHECK_STATUS(gpumem_estimate(summary, &job, &need, MESSAGE), GPUMEM_DEADLINE_EXCEEDED);
  job.estimator = NULL;
  job.deadline_ms = 0; /* of the call, not of the thread */
  CHECK_STATUS(gpumem_estimate(summary, &job, &need, MESSAGE), GPUMEM_OK);
  job.deadline_ms = INT64_MAX;
  CHECK_STATUS(gpumem_estimate(summary, &job, &need, MESSAGE), GPUMEM_OK);
  gpumem_summary_free(summary);
  free(text);
}

/* A short text that asks for a long tape: refused before it takes the machine. */
static void long_recurrences_are_refused(void) {
  gpumem_summary* summary = NULL;
  gpumem_job job = GPUMEM_JOB_INIT;
  gpumem_estimate_result need = GPUMEM_ESTIMATE_RESULT_INIT;
  size_t length = 0;
  char* text =
      repeated("Net(\n  (e): Embedding(100, 8)\n", "  (l): LSTM(8, 8, batch_first=True)\n", 1000, ")\n", &length);
  CHECK_STATUS(gpumem_summary_from_memory(text, length, NULL, &summary, MESSAGE), GPUMEM_OK);
  job.batch_size = 1;
  job.seq_length = 65536;
  job.estimator = "fake-tensor";
  CHECK_STATUS(gpumem_estimate(summary, &job, &need, MESSAGE), GPUMEM_OVERFLOW);
  CHECK(strstr(message, "calls") != NULL);
  gpumem_summary_free(summary);
  free(text);
}

/* In a process that may have 256 MiB of addresses: refusals, no crash. */
static void too_little_memory_is_an_error(void) {
  const pid_t child = fork();
  int status = 0;
  if (child == 0) {
    const struct rlimit limit = {(rlim_t)1 << 28, (rlim_t)1 << 28};
    gpumem_summary* summary = NULL;
    gpumem_read_options options = GPUMEM_READ_OPTIONS_INIT;
    gpumem_job job = GPUMEM_JOB_INIT;
    gpumem_estimate_result need = GPUMEM_ESTIMATE_RESULT_INIT;
    gpumem_status came = GPUMEM_OK;
    size_t length = 0;
    char* text = repeated("Sequential(\n", "  (0): Linear(in_features=64, out_features=64, bias=True)\n", 200 * 1000,
                          ")\n", &length);
    setrlimit(RLIMIT_AS, &limit);
    came = gpumem_summary_from_memory(text, length, &options, &summary, MESSAGE);
    job.batch_size = 8;
    job.input = "64";
    if (came == GPUMEM_OK) came = gpumem_estimate(summary, &job, &need, MESSAGE);
    _exit(came == GPUMEM_OUT_OF_MEMORY ? 0 : 1);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
  char folder[] = "/tmp/gpumem-capi-XXXXXX";
  CHECK(mkdtemp(folder) != NULL);
  only_regular_files_are_read(folder);
  a_file_may_be_so_large(folder);
  profiles_and_models_are_regular_files_too(folder);
  names_are_looked_up_with_care(folder);
  CHECK(rmdir(folder) == 0);
  nesting_does_no_harm();
  a_deadline_ends_the_work();
  if (!SANITIZED) long_recurrences_are_refused();
  if (!SANITIZED) too_little_memory_is_an_error();
  if (failures > 0) fprintf(stderr, "%d checks failed\n", failures);
  return failures == 0 ? 0 : 1;
}
