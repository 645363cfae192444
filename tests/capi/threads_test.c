/* Many threads and one summary: each gets what a single one gets, on a small stack, while others read and free their
 * own.
 */
#include <pthread.h>

#include "check.h"

#define THREADS 8
#define BATCHES 12

static gpumem_summary* shared;
static int64_t expected[BATCHES];
static int rounds = 40;

static gpumem_job job_of(int batch) {
  gpumem_job job = GPUMEM_JOB_INIT;
  job.batch_size = 1 + batch * 7;
  job.precision = batch % 3 == 0 ? "amp-fp16" : NULL;
  job.optimizer = batch % 2 == 0 ? "sgd" : NULL;
  job.gpu = batch % 4 == 0 ? "t4" : "a100-40gb";
  job.deadline_ms = 600 * 1000;
  return job;
}

static int64_t need_of(const gpumem_summary* summary, int batch) {
  const gpumem_job job = job_of(batch);
  gpumem_estimate_result need = GPUMEM_ESTIMATE_RESULT_INIT;
  char message[200];
  if (gpumem_estimate(summary, &job, &need, message, sizeof message) != GPUMEM_OK) return -1;
  return need.expected_bytes;
}

/* How many of the answers were wrong. */
static void* work(void* argument) {
  const int thread = *(const int*)argument;
  size_t wrong = 0;
  int round;
  for (round = 0; round < rounds; ++round) {
    const int batch = (thread * 5 + round) % BATCHES;
    gpumem_summary* own = NULL;
    gpumem_job* parsed = NULL;
    gpumem_job learned = job_of(batch);
    gpumem_estimate_result need = GPUMEM_ESTIMATE_RESULT_INIT;
    if (need_of(shared, batch) != expected[batch]) ++wrong;
    if (gpumem_summary_from_memory(kSmallModel, sizeof kSmallModel - 1, NULL, &own, NULL, 0) != GPUMEM_OK) ++wrong;
    if (gpumem_job_from_json("{\"batch\":4,\"input\":\"64\"}", 24, &parsed, NULL, 0) != GPUMEM_OK) ++wrong;
    if (gpumem_estimate(own, parsed, &need, NULL, 0) != GPUMEM_OK) ++wrong;
    learned.estimator = round % 2 == 0 ? "gpumemnet-mlp" : "horus";
    if (gpumem_estimate(shared, &learned, &need, NULL, 0) != GPUMEM_OK) ++wrong;
    gpumem_job_free(parsed);
    gpumem_summary_free(own);
  }
  return (void*)wrong;
}

/* Containers as deep as estimates take them, where rules call each other as deep; 0 if all is well. */
static void* work_deeply(void* argument) {
  enum { kDepth = 490 };
  char* text = malloc((size_t)kDepth * (4 * kDepth + 80));
  char* at = text;
  gpumem_summary* deep = NULL;
  gpumem_job job = GPUMEM_JOB_INIT;
  gpumem_estimate_result need = GPUMEM_ESTIMATE_RESULT_INIT;
  int wrong = 0;
  int level;
  (void)argument;
  if (text == NULL) return (void*)1;
  at += sprintf(at, "Net(\n");
  for (level = 1; level <= kDepth; ++level) at += sprintf(at, "%*s(a): Bottleneck(\n", 2 * level, "");
  at += sprintf(at, "%*s(0): Linear(in_features=64, out_features=64, bias=True)\n", 2 * kDepth + 2, "");
  for (level = kDepth; level >= 1; --level) at += sprintf(at, "%*s)\n", 2 * level, "");
  at += sprintf(at, ")\n");
  job.batch_size = 2;
  job.input = "64";
  wrong += gpumem_summary_from_memory(text, (size_t)(at - text), NULL, &deep, NULL, 0) != GPUMEM_OK;
  wrong += gpumem_estimate(deep, &job, &need, NULL, 0) != GPUMEM_OK;
  gpumem_summary_free(deep);
  free(text);
  return wrong == 0 ? NULL : (void*)1;
}

int main(int argc, char** argv) {
  pthread_t threads[THREADS];
  int numbers[THREADS];
  pthread_attr_t attributes;
  int index;
  if (argc != 2) return 2;
  CHECK_STATUS(gpumem_summary_from_file(argv[1], NULL, &shared, NULL, 0), GPUMEM_OK);
  for (index = 0; index < BATCHES; ++index) {
    gpumem_summary* own = NULL;
    CHECK_STATUS(gpumem_summary_from_file(argv[1], NULL, &own, NULL, 0), GPUMEM_OK);
    expected[index] = need_of(own, index);
    CHECK(expected[index] > 0);
    gpumem_summary_free(own);
  }
  pthread_attr_init(&attributes);
#if !SANITIZED
  CHECK(pthread_attr_setstacksize(&attributes, 256 * 1024) == 0);
#endif
  for (index = 0; index < THREADS; ++index) {
    numbers[index] = index;
    CHECK(pthread_create(&threads[index], &attributes, work, &numbers[index]) == 0);
  }
  for (index = 0; index < THREADS; ++index) {
    void* wrong = NULL;
    CHECK(pthread_join(threads[index], &wrong) == 0);
    CHECK(wrong == NULL);
  }
  {
    void* wrong = NULL;
    CHECK(pthread_create(&threads[0], &attributes, work_deeply, NULL) == 0);
    CHECK(pthread_join(threads[0], &wrong) == 0);
    CHECK(wrong == NULL);
  }
  pthread_attr_destroy(&attributes);
  gpumem_summary_free(shared);
  return failures == 0 ? 0 : 1;
}
