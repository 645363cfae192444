/*
 * gpumem.h: how much GPU memory a deep-learning training job will take, before it runs and without a GPU.
 * The C API of gpumem: plain C99, one stable ABI for schedulers, launchers and other languages.
 *
 *   gpumem_summary *summary = NULL;
 *   gpumem_job job = GPUMEM_JOB_INIT;
 *   gpumem_estimate_result need = GPUMEM_ESTIMATE_RESULT_INIT;
 *   char message[512];
 *   if (gpumem_summary_from_file("vgg16.txt", NULL, &summary, message, sizeof message) != GPUMEM_OK) ...
 *   job.batch_size = 64;
 *   job.gpu = "a100-40gb";
 *   if (gpumem_estimate(summary, &job, &need, message, sizeof message) == GPUMEM_OK) reserve(need.upper_bytes);
 *   gpumem_summary_free(summary);
 *
 * Units. Sizes are bytes, times are milliseconds, batch sizes are samples, shares are from 0 to 1. A figure that is not
 * told is -1.
 *
 * Results. A function returns GPUMEM_OK or says what went wrong, as a gpumem_status and in words: one line for people,
 * without a line end, written to `message` and always ended by a NUL; what does not fit into `message_size` bytes is
 * cut, never within a UTF-8 sequence, and a message that was cut ends in "...". After GPUMEM_OK the message is empty.
 * `message` may be NULL, or `message_size` 0. A result is written where the function succeeds; else it is as it was.
 *
 * Ownership. What is passed in stays the caller's and is not kept: texts and structs may go once the call returns. What
 * a function makes (gpumem_summary, a gpumem_job from JSON or words) is the caller's until the function that frees it;
 * these take NULL. Text that a handle gives out lives as long as the handle.
 *
 * Threads. Every function may be called from any thread at any time. A gpumem_summary never changes: any number of
 * threads may use one at once, and one of them frees it when all are done. Nothing is printed, no signal is touched, no
 * environment variable is read, no thread is started, and no C++ exception leaves the library. Null and wrong arguments
 * are errors (GPUMEM_INVALID_ARGUMENT), not crashes. A stack of 256 KiB is enough. Once the process ends (exit() runs,
 * or the library is unloaded) no function may be running or called.
 *
 * Deadlines. `deadline_ms` bounds the time of one call (0: none), which then ends with GPUMEM_DEADLINE_EXCEEDED, in the
 * calling thread. It ends at the next of many places where it looks at the clock, a little later than asked; see the
 * page docs/c.md for how much. A file system that does not answer is not interrupted.
 *
 * Structs grow. Each begins with its `size`, which the GPUMEM_..._INIT macros set to what the caller was compiled with.
 * A library that is newer than the caller takes what is missing as not given; one that is older refuses what it does
 * not know if it is not zero. In an array of structs `size` is the stride. All else that is zero stands for the
 * default.
 *
 * Compatibility. Functions, constants and the fields of structs keep their meaning while the shared library keeps its
 * SONAME (libgpumem_c.so.0); every symbol is versioned. The text of messages may change.
 */
#ifndef GPUMEM_GPUMEM_H
#define GPUMEM_GPUMEM_H

#include <stddef.h>
#include <stdint.h>

#if defined(GPUMEM_C_BUILDING) && (defined(__GNUC__) || defined(__clang__))
#define GPUMEM_API __attribute__((visibility("default")))
#else
#define GPUMEM_API
#endif

/* The functions throw nothing, which C++ callers may rely on. */
#ifdef __cplusplus
#define GPUMEM_NOTHROW noexcept
extern "C" {
#else
#define GPUMEM_NOTHROW
#endif

/* What a call came to. Values never change; later versions may add some. */
typedef int32_t gpumem_status;
enum {
  GPUMEM_OK = 0,
  GPUMEM_INVALID_ARGUMENT = 1,    /* a null pointer, a size or value out of range, an unknown name (optimizer, ...) */
  GPUMEM_UNKNOWN_GPU = 2,         /* no profile of that name */
  GPUMEM_UNREADABLE_FILE = 3,     /* not there, not allowed, too large, or no regular file */
  GPUMEM_UNKNOWN_FORMAT = 4,      /* the text is none of the summary formats, or several */
  GPUMEM_MALFORMED_INPUT = 5,     /* a summary, profile or job that breaks its format */
  GPUMEM_UNKNOWN_LAYER = 6,       /* a layer that holds parameters and that gpumem does not know */
  GPUMEM_MISSING_INFORMATION = 7, /* the input is sound but says too little for this estimate */
  GPUMEM_OVERFLOW = 8,            /* a size that does not fit 64 bits */
  GPUMEM_DEADLINE_EXCEEDED = 9,   /* the time was over before there was an answer */
  GPUMEM_OUT_OF_MEMORY = 10,      /* of this process, not of a GPU */
  GPUMEM_INTERNAL_ERROR = 11      /* a fault of gpumem: please report it */
};

/* Such as "1.2.3": the library that is running, which may be newer than this header. Never NULL; static. */
GPUMEM_API const char* gpumem_version(void) GPUMEM_NOTHROW;

/* "malformed_input"; "unknown" for what is no status. Never NULL; static. */
GPUMEM_API const char* gpumem_status_name(gpumem_status status) GPUMEM_NOTHROW;

/* ---- Model summaries ------------------------------------------------------------------------------------------ */

/* A model as its summary tells it. Immutable. */
typedef struct gpumem_summary gpumem_summary;

/* How a summary is read. NULL in place of it: all defaults. */
typedef struct gpumem_read_options {
  size_t size;           /* sizeof(gpumem_read_options) */
  int64_t deadline_ms;   /* 0: none */
  int64_t largest_bytes; /* longer texts are refused before they are read; 0: 16 MiB */
  int32_t lenient;       /* not 0: unknown layers that hold parameters are counted, and estimates are lower bounds */
  int32_t reserved;      /* 0 */
} gpumem_read_options;
#define GPUMEM_READ_OPTIONS_INIT \
  { sizeof(gpumem_read_options), 0, 0, 0, 0 }

/*
 * Reads a summary in any format that `gpumem estimate` takes. The path is opened with the rights of the
 * process and only if it is a regular file, also behind symbolic links: a FIFO, device or socket is refused unopened. A
 * message may quote up to 60 bytes of the file. "-" is a file of that name. A summary takes memory in proportion to its
 * length (docs/c.md). What no file has as a path may be a known model's name, or one of HuggingFace's local cache.
 * Errors: GPUMEM_UNREADABLE_FILE, GPUMEM_UNKNOWN_FORMAT, GPUMEM_MALFORMED_INPUT, GPUMEM_UNKNOWN_LAYER,
 * GPUMEM_MISSING_INFORMATION, GPUMEM_OVERFLOW, GPUMEM_DEADLINE_EXCEEDED; the message names file and line.
 */
GPUMEM_API gpumem_status gpumem_summary_from_file(const char* path, const gpumem_read_options* options,
                                                  gpumem_summary** summary, char* message,
                                                  size_t message_size) GPUMEM_NOTHROW;

/* The same for a text of `length` bytes, which needs no NUL at its end. */
GPUMEM_API gpumem_status gpumem_summary_from_memory(const char* text, size_t length, const gpumem_read_options* options,
                                                    gpumem_summary** summary, char* message,
                                                    size_t message_size) GPUMEM_NOTHROW;

GPUMEM_API void gpumem_summary_free(gpumem_summary* summary) GPUMEM_NOTHROW;

/* What was read. */
typedef struct gpumem_summary_info {
  size_t size;                  /* sizeof(gpumem_summary_info) */
  const char* format;           /* "torchsummary"; lives as long as the summary */
  int64_t layers;               /* that are computed */
  int64_t unknown_layers;       /* those of them that no op describes; 0 unless read leniently */
  int64_t parameters;           /* elements, tied ones once */
  int64_t trainable_parameters; /* those of them that get gradients */
  int64_t printed_batch_size;   /* that the summary was printed at; -1: it does not say */
  int64_t warnings;             /* how many gpumem_summary_warning() has */
} gpumem_summary_info;
#define GPUMEM_SUMMARY_INFO_INIT \
  { sizeof(gpumem_summary_info), NULL, 0, 0, 0, 0, 0, 0 }

GPUMEM_API gpumem_status gpumem_summary_describe(const gpumem_summary* summary, gpumem_summary_info* info,
                                                 char* message, size_t message_size) GPUMEM_NOTHROW;

/* What was odd about the text, such as a printed total that is not the sum: number `index` of them, from 0. Lives as
   long as the summary; NULL beyond the last. */
GPUMEM_API const char* gpumem_summary_warning(const gpumem_summary* summary, int64_t index) GPUMEM_NOTHROW;

/* ---- Jobs ----------------------------------------------------------------------------------------------------- */

/*
 * How the model is trained, and what is asked of it: the options of `gpumem estimate`, with the same names and
 * defaults. A text that is NULL or empty, and a number that is 0, is the default.
 */
typedef struct gpumem_job {
  size_t size;           /* sizeof(gpumem_job) */
  int64_t deadline_ms;   /* of the call that it is passed to; 0: none */
  int64_t batch_size;    /* 1 or more; gpumem_fit() ignores it */
  int64_t seq_length;    /* tokens a sample; 0: as the summary says */
  int64_t samples;       /* an epoch, whose last batch may be smaller; 0: every batch is full */
  int64_t accumulate;    /* forward-backward passes a step; 0: 1 */
  const char* input;     /* one sample's shape, "3x224x224"; NULL: as the summary says */
  const char* gpu;       /* a name that `gpumem gpus` lists, or a path (with a '/', or ending in .json) to a profile;
                            NULL: "a100-40gb" */
  const char* optimizer; /* "adam", "sgd", ...; gpumem_job_option_at() tells all choices; NULL: "adam" */
  const char* precision; /* "fp32", "amp-bf16", ...; NULL: "fp32" */
  const char* estimator; /* "replay", ..., as `gpumem estimate --help` lists them; NULL: "replay" */
  const char* model;     /* of learned estimators: a built-in model, or the path of a model's folder; NULL: their own */
  const char* zero_grad; /* "step-start", "before-forward", ...; NULL: where the loop does */
  const char* software;  /* a software stack that the GPU's profile names; NULL: its first */
  const char* alloc_conf; /* as PYTORCH_CUDA_ALLOC_CONF; NULL: PyTorch's defaults */
  int32_t no_foreach;     /* not 0: the optimizer's single-tensor form */
  int32_t fused;          /* not 0: the optimizer's fused form */
  int32_t validation;     /* not 0: a validation pass without gradients after each epoch */
  int32_t checkpointing;  /* not 0: activation checkpointing */
  const char* summary; /* never opened by the library: what "summary" and "lenient" of JSON said, for the caller to */
  int32_t lenient;     /* read the summary with, if that is wanted */
  int32_t reserved;    /* 0 */
  const char* more_options; /* a JSON object of further options, such as those that have no field here:
                               "{\"data_parallel\": 8}"; it is laid over the fields; NULL: none */
} gpumem_job;
#define GPUMEM_JOB_INIT                                                                                              \
  {                                                                                                                  \
    sizeof(gpumem_job), 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, NULL, 0, 0, \
        NULL                                                                                                         \
  }

/*
 * A job from JSON text of up to 1 MiB: one object with the fields that a line of `gpumem batch` has ("batch_size",
 * "seq_length", "gpu", ...; flags are true or false), all optional, and "deadline_ms". The job and its
 * texts are freed together by gpumem_job_free(); it may be copied and changed while it lives.
 * Errors: GPUMEM_MALFORMED_INPUT, naming the field.
 */
GPUMEM_API gpumem_status gpumem_job_from_json(const char* json, size_t length, gpumem_job** job, char* message,
                                              size_t message_size) GPUMEM_NOTHROW;

/*
 * The same of `count` options as on a command line: names as behind the dashes of `gpumem estimate` ("batch",
 * "data-parallel") or as in JSON, values as text. A flag is "true" or "false". An empty value, but of a number, is the
 * default; of two options of one name the last counts. No deadline.
 * Errors: GPUMEM_INVALID_ARGUMENT, GPUMEM_MALFORMED_INPUT, naming the option.
 */
GPUMEM_API gpumem_status gpumem_job_from_words(const char* const* names, const char* const* values, size_t count,
                                               gpumem_job** job, char* message, size_t message_size) GPUMEM_NOTHROW;

/* An option that a job has. Texts are static. */
typedef struct gpumem_job_option {
  size_t size;       /* of the struct in the library that is running */
  const char* name;  /* in JSON: "data_parallel" */
  const char* flag;  /* on a command line, behind "--": "data-parallel" */
  const char* value; /* what stands for its value in a line of help: "N"; NULL: a flag, which is true or false */
  const char* usual; /* its default as text; NULL: none, or the loop or the model says it */
  const char* help;  /* one line, with the choices if there are any */
} gpumem_job_option;
#define GPUMEM_JOB_OPTION_INIT \
  { sizeof(gpumem_job_option), NULL, NULL, NULL, NULL, NULL }

/* Number `index` of the options, from 0, in the order of help texts; NULL beyond the last. Static. */
GPUMEM_API const gpumem_job_option* gpumem_job_option_at(size_t index) GPUMEM_NOTHROW;

/*
 * Messages name a job's options between backticks, as the fields of gpumem_job and of JSON: "say `data_parallel=2`".
 * Writes `message` into `text` as your program spells options: with "--gpu-" `before` a flag and "=" `between` it and
 * its value, "say --gpu-data-parallel=2". NULL is "". What names no option stays; what does not fit into `size` bytes
 * is cut. Does nothing without a message or a text.
 */
GPUMEM_API void gpumem_spell_options(const char* message, const char* before, const char* between, char* text,
                                     size_t size) GPUMEM_NOTHROW;

/* Of a job that gpumem_job_from_json() or gpumem_job_from_words() made, and no other. */
GPUMEM_API void gpumem_job_free(gpumem_job* job) GPUMEM_NOTHROW;

/* ---- Estimates ------------------------------------------------------------------------------------------------ */

/* Whether a job runs on its GPU. */
typedef int32_t gpumem_verdict;
enum {
  GPUMEM_NOT_KNOWN = 0,   /* only a lower bound is known, and there is room for that */
  GPUMEM_FITS = 1,        /* also where it needs the most that is likely, and without giving back cached memory */
  GPUMEM_TIGHT = 2,       /* expected to fit; it may need more than there is, or must give back cached memory */
  GPUMEM_DOES_NOT_FIT = 3 /* expected to need more than there is */
};

/* What a job takes on one GPU; of a job on several, on the one that takes most. -1: the estimator does not tell. */
typedef struct gpumem_estimate_result {
  size_t size;             /* sizeof(gpumem_estimate_result) */
  int64_t expected_bytes;  /* the best single figure */
  int64_t lower_bytes;     /* equal to expected_bytes where the estimator gives no range */
  int64_t upper_bytes;     /* what a scheduler reserves */
  int64_t allocated_bytes; /* peak of live tensors: torch.cuda.max_memory_allocated */
  int64_t reserved_bytes;  /* peak of PyTorch's allocator: torch.cuda.max_memory_reserved */
  int64_t device_bytes;    /* context and reserved: what nvidia-smi shows */
  int64_t capacity_bytes;  /* of the GPU */
  /* What expected_bytes is made of: the parts sum to it, or are all -1. */
  int64_t context_bytes;       /* CUDA context, driver and loaded libraries */
  int64_t parameters_bytes;    /* and buffers */
  int64_t gradients_bytes;     /* at the moment when most is in live tensors, as all of these */
  int64_t optimizer_bytes;     /* its state */
  int64_t activations_bytes;   /* and their gradients, inputs */
  int64_t workspace_bytes;     /* of cuBLAS and cuDNN */
  int64_t fragmentation_bytes; /* reserved by the allocator, not allocated */
  double upper_coverage;       /* share of measured runs that upper_bytes covers; -1: no such runs were measured */
  int64_t retries;             /* how often the allocator gives back its cache for the job to fit, which slows it */
  int64_t layers;              /* of the model */
  int64_t unknown_layers;      /* not 0: all figures are lower bounds */
  int32_t fits;                /* 1: known to fit; 0: not. Where such jobs were measured, also a tight one */
  int32_t out_of_domain;       /* of learned estimators: in how many respects the job is unlike those that they were
                                  trained on; not 0: not to be trusted */
  char* assumed;               /* in: room for what the estimate takes as given although nobody said or measured it,
                                  "context: ...; workspaces: ...", cut as a message is; NULL: not wanted */
  size_t assumed_size;         /* in: its bytes */
  int64_t assumptions;         /* how many these are */
  int64_t gpus;                /* that the job's layout takes: each at most so much */
  int64_t most_needed_bytes;   /* what the job needs at most, without the memory that the allocator caches */
  gpumem_verdict verdict;      /* whether it fits, by one rule for every estimator and precision */
  int32_t reserved;            /* 0 */
  /* Of expected_bytes, as the parts above: */
  int64_t temporaries_bytes;   /* given back by the call that took them, such as a step of the optimizer */
  int64_t gathered_bytes;      /* parameters of other ranks, while a sharded unit is whole */
  int64_t communication_bytes; /* buffers of collectives */
  int64_t upper_uncut_bytes;   /* upper_bytes on a larger GPU: of a job that fits, upper_bytes ends at the capacity */
} gpumem_estimate_result;
#define GPUMEM_ESTIMATE_RESULT_INIT                                                                                    \
  {                                                                                                                    \
    sizeof(gpumem_estimate_result), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0, 0, 0, 0, 0, NULL, 0, 0, 0, 0, 0, \
        0, 0, 0, 0, 0                                                                                                  \
  }

/*
 * The memory of this job. A GPU or an estimator that is built in is made ready once in a process; a profile or a model
 * that is named by a path is read again when it has changed.
 * Errors: those of gpumem_summary_from_file() for profiles and models; GPUMEM_INVALID_ARGUMENT, GPUMEM_UNKNOWN_GPU,
 * GPUMEM_MISSING_INFORMATION, GPUMEM_OVERFLOW, GPUMEM_DEADLINE_EXCEEDED. A job that does not fit is no error.
 */
GPUMEM_API gpumem_status gpumem_estimate(const gpumem_summary* summary, const gpumem_job* job,
                                         gpumem_estimate_result* result, char* message,
                                         size_t message_size) GPUMEM_NOTHROW;

/* The largest batch, or the longest sequence, that fits the GPU. */
typedef struct gpumem_fit_result {
  size_t size;             /* sizeof(gpumem_fit_result) */
  int64_t batch_size;      /* 0: not even one sample fits; of gpumem_fit_sequence() the job's */
  int64_t estimates;       /* how many were made to find it */
  int32_t at_least;        /* 1: the largest that is tried fits (1,048,576 samples, 4,194,304 tokens) */
  int32_t has_next;        /* 1: `one_more` was written; 0 with at_least, model_ends, or where that is beyond 64 bits */
  int64_t sequence_length; /* of gpumem_fit_sequence(): tokens a sample; 0: not even one fits */
  int32_t model_ends;      /* of gpumem_fit_sequence(), 1: the model takes no longer sequence, whatever the memory */
  int32_t reserved;        /* 0 */
  int64_t safe;            /* the largest batch size, or length, with GPUMEM_FITS; 0: none */
  int64_t without_flushes; /* the largest for which the allocator gives back no cached memory; 0: none */
} gpumem_fit_result;
#define GPUMEM_FIT_RESULT_INIT \
  { sizeof(gpumem_fit_result), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/*
 * The largest batch with which the job is expected to fit its GPU, be it tight; a still larger one may fit by chance.
 * `at_batch` takes what the job takes there (untouched where batch_size is 0), `one_more` what it takes with one sample
 * more; each may be NULL. Errors: those of gpumem_estimate(); GPUMEM_MISSING_INFORMATION if layers are unknown.
 */
GPUMEM_API gpumem_status gpumem_fit(const gpumem_summary* summary, const gpumem_job* job, gpumem_fit_result* fit,
                                    gpumem_estimate_result* at_batch, gpumem_estimate_result* one_more, char* message,
                                    size_t message_size) GPUMEM_NOTHROW;

/*
 * The longest sequence with which the job, at its own batch_size, fits its GPU; its seq_length is ignored. `at_length`
 * and `one_more` as above, of tokens. Errors: as above; those of gpumem_estimate() for a model that reads no tokens.
 */
GPUMEM_API gpumem_status gpumem_fit_sequence(const gpumem_summary* summary, const gpumem_job* job,
                                             gpumem_fit_result* fit, gpumem_estimate_result* at_length,
                                             gpumem_estimate_result* one_more, char* message,
                                             size_t message_size) GPUMEM_NOTHROW;

/* ---- Layouts over GPUs ---------------------------------------------------------------------------------------- */

/* What a plan is asked for. A number that is 0, and a text that is NULL, is the default. */
typedef struct gpumem_plan_question {
  size_t size;           /* sizeof(gpumem_plan_question) */
  int64_t global_batch;  /* samples a step, of all GPUs; 1 or more */
  int64_t gpus;          /* 0: the fewest of 1, 2, 4, ... on which a layout fits */
  int64_t gpus_per_node; /* 0: as the GPU's profile says */
  double network_gbps;   /* of one GPU to other nodes, in 10^9 bits a second; 0: as the GPU's profile says */
  const char* framework; /* "fsdp2", "megatron", ..., as `gpumem plan --help` lists them; NULL: "any" */
} gpumem_plan_question;
#define GPUMEM_PLAN_QUESTION_INIT \
  { sizeof(gpumem_plan_question), 0, 0, 0, 0.0, NULL }

/* One way to run a job on several GPUs. Texts are static. */
typedef struct gpumem_layout {
  size_t size;               /* sizeof(gpumem_layout), also the stride of an array */
  const char* framework;     /* "megatron" */
  const char* sharding;      /* "fsdp2"; of "hsdp:N" the N is sharding_ranks */
  const char* schedule;      /* of a pipeline's micro-batches */
  const char* checkpointing; /* "none", "full", ... */
  int64_t gpus;
  int64_t data_parallel;
  int64_t sharding_ranks; /* of groups that shard (hsdp); 0: all ranks in data parallel */
  int64_t tensor_parallel;
  int64_t pipeline_parallel;
  int64_t virtual_stages;
  int64_t context_parallel;
  int64_t expert_parallel;
  int64_t micro_batch;    /* samples */
  int64_t accumulate;     /* micro-batches a step */
  int64_t expected_bytes; /* of the rank that takes most */
  int64_t upper_bytes;
  int64_t headroom_bytes;           /* of the GPU beyond upper_bytes */
  double step_seconds;              /* by a roofline, not measured */
  double tokens_per_second_per_gpu; /* -1: of a model that reads no tokens */
  int32_t sequence_parallel;
  int32_t reserved;
  char* settings; /* in: room for the layout in the framework's own words, lines ended by "\n"; NULL: not wanted */
  size_t settings_size;    /* in: its bytes */
  int64_t settings_length; /* of the whole text; where it does not fit, with its NUL, `settings` is empty */
} gpumem_layout;
#define GPUMEM_LAYOUT_INIT \
  { sizeof(gpumem_layout), NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0, 0, NULL, 0, 0 }

/*
 * The fastest layouts that fit, at most `count`, those without headroom last; `found` takes their number, maybe 0.
 * The job's batch_size, accumulate, checkpointing and layout are ignored; its estimator is the replay. Large jobs train
 * with precision "bf16-mixed": name it.
 * Errors: those of gpumem_estimate(); GPUMEM_MISSING_INFORMATION for a GPU whose profile says too little for a
 * roofline.
 */
GPUMEM_API gpumem_status gpumem_plan(const gpumem_summary* summary, const gpumem_job* job,
                                     const gpumem_plan_question* question, gpumem_layout* layouts, size_t count,
                                     size_t* found, char* message, size_t message_size) GPUMEM_NOTHROW;

/* ---- Servers -------------------------------------------------------------------------------------------------- */

/* One GPU of a server of vLLM once it has started; of a pipeline, the one with the least room for the cache. */
typedef struct gpumem_serving_result {
  size_t size;                   /* sizeof(gpumem_serving_result) */
  int64_t requested_bytes;       /* gpu_memory_utilization of the GPU's memory */
  int64_t expected_bytes;        /* what the server takes once it runs: requested_bytes and cuda_graph_bytes */
  int64_t weights_bytes;         /* as loaded */
  int64_t activation_bytes;      /* of the profiling pass */
  int64_t outside_pytorch_bytes; /* NCCL, libraries */
  int64_t cuda_graph_bytes;
  int64_t kv_cache_bytes;        /* what is left for it */
  int64_t kv_cache_needed_bytes; /* by one request of max_model_len */
  int64_t kv_cache_blocks;
  int64_t kv_cache_tokens;
  int64_t max_model_len;
  int64_t largest_max_model_len; /* that this cache holds; 0: none */
  double max_concurrency;        /* requests of max_model_len at once */
  gpumem_verdict verdict;
  int32_t starts;     /* 1: it does */
  char* reason;       /* in: room for why it does not start, as for a message; NULL: not wanted */
  size_t reason_size; /* in: its bytes */
} gpumem_serving_result;
#define GPUMEM_SERVING_RESULT_INIT \
  { sizeof(gpumem_serving_result), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0, 0, NULL, 0 }

/*
 * What a server of vLLM takes on each GPU, and whether it starts. `config`: a config.json, the folder of a model, or
 * the name of one that is cached or known. `gpu`: as in gpumem_job; NULL: the default. `engine_version`: "0.19.0";
 * NULL: the newest whose rules are known. `words`: "vllm", "serve", NAME and the flags of the command, or none.
 * A server that does not start is no error. Errors: GPUMEM_INVALID_ARGUMENT for a flag that has no rule, naming it;
 * those of reading the config; GPUMEM_UNKNOWN_FORMAT for a model that holds no KV cache.
 */
GPUMEM_API gpumem_status gpumem_serve(const char* config, const char* gpu, const char* engine_version,
                                      const char* const* words, size_t count, gpumem_serving_result* result,
                                      char* message, size_t message_size) GPUMEM_NOTHROW;

/* ---- Post-training -------------------------------------------------------------------------------------------- */

/* One GPU of a job of DPO, GRPO, PPO or the like, at the phase of an iteration that takes most. */
typedef struct gpumem_post_training_result {
  size_t size;            /* sizeof(gpumem_post_training_result) */
  int64_t expected_bytes; /* all of the GPU's memory that is in use */
  int64_t lower_bytes;
  int64_t upper_bytes;     /* what a scheduler reserves */
  int64_t allocated_bytes; /* live tensors of the training process in that phase */
  int64_t reserved_bytes;  /* the most that its allocator has reserved by then */
  int64_t rollout_bytes;   /* of the engine that generates, beside it */
  int64_t gpus;            /* of the whole job */
  gpumem_verdict verdict;
  int32_t fits;      /* 1: upper_bytes do */
  char* phase;       /* in: room for the phase's name, as for a message; NULL: not wanted */
  size_t phase_size; /* in: its bytes */
} gpumem_post_training_result;
#define GPUMEM_POST_TRAINING_RESULT_INIT \
  { sizeof(gpumem_post_training_result), 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, 0 }

/*
 * What a post-training job takes on each GPU. `model`: the policy's config.json, the folder of a model, or the name of
 * one that is cached or known; NULL: the one that the command names. `gpu`: as in gpumem_job; NULL: the default.
 * `options`: "NAME=VALUE" of `gpumem posttrain` with underscores, such as "algorithm=dpo", which hold over the command.
 * `words`: the command of a program, such as "swift", "rlhf", "--rlhf_type", "dpo", or none.
 * A job that does not fit is no error. Errors: GPUMEM_INVALID_ARGUMENT for an option that is none, naming it;
 * GPUMEM_MISSING_INFORMATION for what the job needs and nobody said; those of reading the model.
 */
GPUMEM_API gpumem_status gpumem_post_training(const char* model, const char* gpu, const char* const* options,
                                              size_t option_count, const char* const* words, size_t count,
                                              gpumem_post_training_result* result, char* message,
                                              size_t message_size) GPUMEM_NOTHROW;

/* ---- Placement ------------------------------------------------------------------------------------------------ */

/* A GPU of a server as its resource manager knows it; a MIG slice is a GPU of its own. */
typedef struct gpumem_server_gpu {
  size_t size;             /* sizeof(gpumem_server_gpu), also the stride of an array */
  const char* id;          /* "0", "node3:1"; NULL: its place in the array */
  int64_t total_bytes;     /* what jobs can have of it */
  int64_t used_bytes;      /* in use as monitored, by anybody */
  int64_t set_aside_bytes; /* for the jobs that were placed on it, which may not have grown to it yet */
  double smact;            /* mean SM activity */
  int32_t jobs;            /* placed on it, at most 256 */
  int32_t exclusive;       /* not 0: its job must have the GPU to itself */
} gpumem_server_gpu;
#define GPUMEM_SERVER_GPU_INIT \
  { sizeof(gpumem_server_gpu), NULL, 0, 0, 0, 0.0, 0, 0 }

/* What a job asks for. From an estimate: gpus = gpus, memory_bytes = upper_bytes (or expected_bytes and a margin),
   alone_bytes = expected_bytes. */
typedef struct gpumem_request {
  size_t size;          /* sizeof(gpumem_request) */
  const char* id;       /* for messages; NULL: "the job" */
  int64_t gpus;         /* all or nothing; 0: 1 */
  int64_t memory_bytes; /* to set aside on each of them, margin included; -1: no estimate */
  int64_t alone_bytes;  /* what is enough on an idle GPU, where nobody competes for the rest; -1: as memory_bytes */
  double smact;         /* its SM activity when it runs by itself; 0: not known */
  int32_t exclusive;    /* not 0: only GPUs without another job */
  int32_t reserved;     /* 0 */
} gpumem_request;
#define GPUMEM_REQUEST_INIT \
  { sizeof(gpumem_request), NULL, 1, -1, -1, 0.0, 0, 0 }

/* How GPUs are chosen. The macro has CARMA's values. NULL in place of it: these. */
typedef struct gpumem_placement {
  size_t size;              /* sizeof(gpumem_placement) */
  const char* policy;       /* "exclusive", "round-robin", "magm", "lug", "mug", "first-fit", "best-fit", "worst-fit";
                               NULL: "magm", the GPU with the most available memory */
  double smact_cap;         /* no job to a GPU at or above this SM activity; below 0: no cap */
  int64_t free_floor_bytes; /* nor next to others with less free memory than this */
  int32_t idle_first;       /* not 0: idle GPUs before any that has a job */
  int32_t reserved;         /* 0 */
} gpumem_placement;
#define GPUMEM_PLACEMENT_INIT \
  { sizeof(gpumem_placement), NULL, 0.80, INT64_C(5368709120), 0, 0 }

/* Why a job was not placed. */
typedef int32_t gpumem_refusal;
enum {
  GPUMEM_PLACED = 0,
  GPUMEM_REFUSED_NEVER = 1,       /* too few GPUs of this server could hold it even when empty */
  GPUMEM_REFUSED_OCCUPIED = 2,    /* it, or a job that is there, must run by itself */
  GPUMEM_REFUSED_NO_ESTIMATE = 3, /* the policy puts no job next to others of unknown memory */
  GPUMEM_REFUSED_MEMORY = 4,      /* less free memory than it asks for */
  GPUMEM_REFUSED_FREE_FLOOR = 5,  /* less free memory than the conditions ask for */
  GPUMEM_REFUSED_SMACT = 6        /* as busy as the conditions allow, or busier */
};

typedef struct gpumem_decision {
  size_t size;             /* sizeof(gpumem_decision) */
  size_t* gpus;            /* in: room for the request's `gpus` places; out: the GPUs, the preferred first */
  size_t gpus_capacity;    /* in: how many `gpus` has room for */
  size_t gpus_count;       /* out: how many were chosen; 0: none now */
  char* explanation;       /* in: room for the decision in words, as for a message; NULL: not wanted */
  size_t explanation_size; /* in: its bytes */
  size_t nearest;          /* out: if refused, the GPU that came closest */
  gpumem_refusal refusal;  /* out: GPUMEM_PLACED, or why not */
  int32_t open;            /* out: if refused, how many GPUs would take it, fewer than it asks for */
} gpumem_decision;
#define GPUMEM_DECISION_INIT \
  { sizeof(gpumem_decision), NULL, 0, 0, NULL, 0, 0, 0, 0 }

/*
 * Decides where a job goes among the `count` GPUs of a server, and sets nothing aside: that is the caller's to do.
 * `turn` is the place of "round-robin" on this server, 0 at first, which the caller keeps (NULL: 0). Refusal is no
 * error; `explanation` says why: "on GPU 2: ...", "not now: ...", "never: ...".
 */
GPUMEM_API gpumem_status gpumem_place(const gpumem_request* request, const gpumem_server_gpu* gpus, size_t count,
                                      const gpumem_placement* placement, uint64_t* turn, gpumem_decision* decision,
                                      char* message, size_t message_size) GPUMEM_NOTHROW;

/* ---- The GPUs of this machine ----------------------------------------------------------------------------------- */

/* The GPUs that NVIDIA's driver tells; MIG slices count as GPUs. Immutable: threads may share it. */
typedef struct gpumem_live_server gpumem_live_server;

/*
 * Asks the driver, whose library is loaded when it is asked. SM activity is watched for `window_ms` milliseconds, at
 * most an hour, and the call takes as long; 0: it is what the driver has kept of the last seconds.
 * GPUMEM_UNREADABLE_FILE where there is no driver, GPUMEM_MISSING_INFORMATION where it does not answer or no GPU can
 * take a job.
 */
GPUMEM_API gpumem_status gpumem_live_server_read(int64_t window_ms, gpumem_live_server** server, char* message,
                                                 size_t message_size) GPUMEM_NOTHROW;

GPUMEM_API void gpumem_live_server_free(gpumem_live_server* server) GPUMEM_NOTHROW;

/* What gpumem_place() takes; `id` is what CUDA_VISIBLE_DEVICES takes. Lives as long as the server. */
GPUMEM_API const gpumem_server_gpu* gpumem_live_server_gpus(const gpumem_live_server* server,
                                                            size_t* count) GPUMEM_NOTHROW;

/* The profile of a GPU, as `gpumem gpus` lists it, for estimates; "": none is known; NULL: there is no such GPU. */
GPUMEM_API const char* gpumem_live_server_profile(const gpumem_live_server* server, size_t index) GPUMEM_NOTHROW;

/* What was left out, or is not known, in words; NULL behind the last. */
GPUMEM_API const char* gpumem_live_server_warning(const gpumem_live_server* server, size_t index) GPUMEM_NOTHROW;

/* ---- Questions in words ----------------------------------------------------------------------------------------- */

typedef struct gpumem_answer gpumem_answer; /* as the command line gives it. Immutable: threads may share it */

/*
 * Asks any question, in words, and keeps the whole answer: for other languages, and where the structs above say too
 * little. `names` and `values` are `count` words: an option by its name with underscores, once, its value as on a
 * command line. "deadline_ms" goes with every question. The questions, and the words of their own:
 *   "estimate", "advise", "fit" ("find": "image", ...; "batch_size" alone: "sequence"), "job" (as understood): a job's.
 *   "plan": these (precision and optimizer are an estimate's where not given), "global_batch", "gpus", "framework",
 *     "gpus_per_node", "network_gbps", "no_overlap", "show", "at_most_tensor_parallel" (_context_, _pipeline_, ...).
 *   "serve", "serving-limits", "serving-advice": "model", "gpu", "engine_version", the engine's options and "command"s.
 *   "posttrain", "posttrain-limits", "posttrain-advice", "posttrain-layouts" (with "gpus"): "model", "gpu", options of
 *     `gpumem posttrain`, and each "command" (a word of it) and "setting" (KEY=VALUE) of a program.
 *   "server": "window_ms". "summary", "gpus", "estimators", "options": none.
 * `summary` is what "estimate", "advise", "fit", "plan" and "summary" are about; else NULL. The answer is the caller's.
 * Errors: GPUMEM_INVALID_ARGUMENT, naming the question or the word; those of the functions above.
 */
GPUMEM_API gpumem_status gpumem_ask(const char* question, const gpumem_summary* summary, const char* const* names,
                                    const char* const* values, size_t count, gpumem_answer** answer, char* message,
                                    size_t message_size) GPUMEM_NOTHROW;

/* A form of the answer: "json" as the command prints it ("job", "summary", "options", "estimators": their own); "text",
   as without --json; "figures" as JSON, of estimates, fits, servers. Lives as long as that; NULL: none or no memory. */
GPUMEM_API const char* gpumem_answer_text(const gpumem_answer* answer, const char* form) GPUMEM_NOTHROW;

/* An answer within: "estimate" and "one_more" of a fit. Lives as long as that; NULL: there is none. */
GPUMEM_API const gpumem_answer* gpumem_answer_part(const gpumem_answer* answer, const char* part) GPUMEM_NOTHROW;
GPUMEM_API void gpumem_answer_free(gpumem_answer* answer) GPUMEM_NOTHROW;

/* The last call of this thread that failed, as a JSON object: "code", "message" without the place, "text" with it,
   "exit_code" of the command line, and what is known of "file", "line", "element". Lives until the next failure. */
GPUMEM_API const char* gpumem_last_failure(void) GPUMEM_NOTHROW;

/* For a child process of fork(), before any other call: what threads of the parent may have held is not waited for. */
GPUMEM_API void gpumem_after_fork(void) GPUMEM_NOTHROW;

#ifdef __cplusplus
}
#endif

#endif /* GPUMEM_GPUMEM_H */
