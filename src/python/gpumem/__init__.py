"""How much GPU memory a deep-learning training job will take, before it runs and without a GPU.

    import gpumem

    need = gpumem.estimate("vgg16.txt", batch_size=64, gpu="a100-40gb", optimizer="sgd")
    if need.fits:
        reserve(need.upper_bytes)
    else:
        print(f"needs {need.expected_bytes} of {need.capacity_bytes} bytes")

A summary is read from any format that `gpumem estimate` takes: torchsummary, torchinfo,
print(model), Keras, graph JSON. With PyTorch at hand no summary is needed:

    need = gpumem.estimate(model, torch.empty(64, 3, 224, 224), optimizer="sgd")

(its graph is exported or, where that cannot be had, a step of it is recorded.)

What a whole training step does, with the program's own optimizer, precision and checkpointing, is
recorded without a GPU (PyTorch 2.1 or later): see estimate_step() and record.

Units: sizes are bytes, batch sizes samples, times milliseconds; what an estimator does not tell is
None.

Errors: every function raises gpumem.Error (UsageError, InputError, NoEstimateError), whose text
names options as the functions do; a wrong type is a TypeError. That a job does not fit is an answer, not an
error.

Threads: every function may be called from any thread; the GIL is released while it works. What the
functions return never changes, and all but Summary can be pickled.
"""

from ._errors import Error, ExportError, InputError, LibraryMissingError, NoEstimateError, UsageError
from .record import RecordError, record

# A recording can be made where only Python is; all else needs the library.
try:
    from ._advise import Advice, Change, advise
    from ._answers import Assumption, Bin, Estimate, EstimatorInfo, Fit, Gpu, Peak
    from ._api import (
        ATTENTIONS,
        LOOPS,
        LOSSES,
        OFFLOADS,
        OPTIMIZERS,
        PRECISIONS,
        SCHEDULES,
        SHARDINGS,
        TRANSFORMERS,
        ZERO_GRADS,
        Summary,
        __version__,
        estimate,
        estimate_module,
        estimate_step,
        estimators,
        export_module,
        fit,
        gpus,
        read_module,
        read_summary,
    )
    from ._machine import read_server
    from ._plan import FRAMEWORKS, Layout, Plan, plan
    from ._posttrain import (
        PostTraining,
        PostTrainingChange,
        PostTrainingLayout,
        PostTrainingLimits,
        PostTrainingPhase,
        advise_posttrain,
        plan_posttrain,
        posttrain,
        posttrain_limits,
    )
    from ._serve import Server, ServerChange, ServerLimits, advise_server, serve, serving_limits
except LibraryMissingError as error:
    globals()["__getattr__"] = error.missing_name


__all__ = [
    "ATTENTIONS",
    "FRAMEWORKS",
    "LOOPS",
    "LOSSES",
    "OFFLOADS",
    "OPTIMIZERS",
    "PRECISIONS",
    "SCHEDULES",
    "SHARDINGS",
    "TRANSFORMERS",
    "ZERO_GRADS",
    "Advice",
    "Assumption",
    "Bin",
    "Change",
    "Error",
    "Estimate",
    "EstimatorInfo",
    "ExportError",
    "Fit",
    "Gpu",
    "InputError",
    "Layout",
    "NoEstimateError",
    "Peak",
    "Plan",
    "PostTraining",
    "PostTrainingChange",
    "PostTrainingLayout",
    "PostTrainingLimits",
    "PostTrainingPhase",
    "RecordError",
    "Server",
    "ServerChange",
    "ServerLimits",
    "Summary",
    "UsageError",
    "__version__",
    "advise",
    "advise_posttrain",
    "advise_server",
    "estimate",
    "estimate_module",
    "estimate_step",
    "estimators",
    "export_module",
    "fit",
    "gpus",
    "plan",
    "plan_posttrain",
    "posttrain",
    "posttrain_limits",
    "read_module",
    "read_server",
    "read_summary",
    "record",
    "serve",
    "serving_limits",
]

# They belong to the package, not to the files that define them: for help(), tracebacks and pickle.
for _name in __all__:
    if hasattr(globals().get(_name), "__module__"):
        globals()[_name].__module__ = __name__
del _name
