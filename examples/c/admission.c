/*
 * A scheduler's admission check in C: reads a job's model summary, asks what the job takes on the GPUs that the site
 * has, and says where it goes now.
 *
 *   cc admission.c $(pkg-config --cflags --libs gpumem-c) -o admission && ./admission resnet50.torchsummary.txt
 */
#include <gpumem/gpumem.h>
#include <stdio.h>

static const double kGiB = 1024.0 * 1024.0 * 1024.0;

/* What a resource manager knows of its GPUs: three A100s, one with a job, one idle, one busy with small jobs. */
static size_t server(gpumem_server_gpu* gpus) {
  const gpumem_server_gpu none = GPUMEM_SERVER_GPU_INIT;
  gpus[0] = gpus[1] = gpus[2] = none;
  gpus[0].id = "node1:0";
  gpus[0].total_bytes = INT64_C(42474471424);
  gpus[0].used_bytes = INT64_C(21474836480);
  gpus[0].set_aside_bytes = INT64_C(25769803776);
  gpus[0].jobs = 1;
  gpus[0].smact = 0.41;
  gpus[1].id = "node1:1";
  gpus[1].total_bytes = INT64_C(42474471424);
  gpus[2].id = "node2:0";
  gpus[2].total_bytes = INT64_C(42474471424);
  gpus[2].used_bytes = INT64_C(8589934592);
  gpus[2].set_aside_bytes = INT64_C(10737418240);
  gpus[2].jobs = 3;
  gpus[2].smact = 0.93;
  return 3;
}

/* 1 if the job was placed, 0 if not, -1 if nobody can say. */
static int admit(const gpumem_summary* summary, int64_t batch_size) {
  gpumem_job job = GPUMEM_JOB_INIT;
  gpumem_estimate_result need = GPUMEM_ESTIMATE_RESULT_INIT;
  gpumem_server_gpu gpus[3];
  gpumem_request request = GPUMEM_REQUEST_INIT;
  gpumem_placement placement = GPUMEM_PLACEMENT_INIT;
  gpumem_decision decision = GPUMEM_DECISION_INIT;
  size_t chosen = 0;
  char words[256];
  char message[256];

  job.batch_size = batch_size;
  job.gpu = "a100-40gb";
  job.deadline_ms = 1000;
  if (gpumem_estimate(summary, &job, &need, message, sizeof message) != GPUMEM_OK) {
    printf("batch %4d: %s\n", (int)batch_size, message);
    return -1;
  }
  request.id = "the job";
  request.memory_bytes = need.upper_bytes;
  request.alone_bytes = need.expected_bytes;
  placement.policy = "best-fit";
  decision.gpus = &chosen;
  decision.gpus_capacity = 1;
  decision.explanation = words;
  decision.explanation_size = sizeof words;
  if (gpumem_place(&request, gpus, server(gpus), &placement, NULL, &decision, message, sizeof message) != GPUMEM_OK) {
    printf("batch %4d: %s\n", (int)batch_size, message);
    return -1;
  }
  printf("batch %4d: needs %.2f GiB, at most %.2f; %s\n", (int)batch_size, (double)need.expected_bytes / kGiB,
         (double)need.upper_bytes / kGiB, words);
  return decision.gpus_count > 0;
}

int main(int argc, char** argv) {
  gpumem_summary* summary = NULL;
  gpumem_job job = GPUMEM_JOB_INIT;
  gpumem_fit_result fit = GPUMEM_FIT_RESULT_INIT;
  char message[256];
  if (argc != 2) {
    fprintf(stderr, "usage: %s SUMMARY\n", argv[0]);
    return 2;
  }
  if (gpumem_summary_from_file(argv[1], NULL, &summary, message, sizeof message) != GPUMEM_OK) {
    fprintf(stderr, "%s\n", message);
    return 3;
  }
  (void)admit(summary, 32);
  (void)admit(summary, 128);
  (void)admit(summary, 1024);
  (void)admit(summary, 0);
  job.gpu = "a100-40gb";
  if (gpumem_fit(summary, &job, &fit, NULL, NULL, message, sizeof message) == GPUMEM_OK) {
    printf("the largest batch for an A100: %d\n", (int)fit.batch_size);
  }
  gpumem_summary_free(summary);
  return 0;
}
