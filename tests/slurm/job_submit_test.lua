-- examples/slurm/job_submit.lua without Slurm: what becomes of jobs as slurmctld describes them.
--   lua5.1 tests/slurm/job_submit_test.lua examples/slurm/job_submit.lua
local said, logged
slurm = {
  SUCCESS = 0,
  ERROR = -1,
  log_user = function(format, ...) said = string.format(format, ...) end,
  log_error = function(format, ...) logged = string.format(format, ...) end,
}
assert(dofile(arg[1]) == slurm.SUCCESS)
gpumem.largest_mib = 40506
gpumem.largest_mib_of = { small = 8000 }
local usual = {}
for name, value in pairs(gpumem) do usual[name] = value end

local partitions = { all = { flag_default = 1 }, small = { flag_default = 0 } }
local option = "_SLURM_SPANK_OPTION_gpumem_gpumem_model=vgg16.txt"
local failures = 0

local function check(name, condition)
  if not condition then
    failures = failures + 1
    io.stderr:write("FAILED: ", name, "; said: ", tostring(said), "; logged: ", tostring(logged), "\n")
  end
end

local function submit(job, settings)
  for setting, value in pairs(usual) do gpumem[setting] = value end
  for setting, value in pairs(settings or {}) do gpumem[setting] = value end
  said, logged = nil, nil
  return slurm_job_submit(job, partitions, 1000), job
end
local function asks(figure, job)
  job = job or {}
  -- From 0, as Slurm numbers them.
  job.spank_job_env = { [0] = option, [1] = "GPUMEM_MIB=" .. figure }
  return job
end
local function accepted(name, job, expected, settings)
  local status, after = submit(job, settings)
  check(name .. " is accepted", status == slurm.SUCCESS and said == nil)
  check(name .. " asks for " .. tostring(expected) .. ", not " .. tostring(after.tres_per_node), after.tres_per_node == expected)
end
local function refused(name, job, text, settings)
  local before = job.tres_per_node
  local status, after = submit(job, settings)
  check(name .. " is refused", status == slurm.ERROR)
  check(name .. " is told why", said ~= nil and said:find(text, 1, true) ~= nil)
  check(name .. " is as it was", after.tres_per_node == before)
end

accepted("a job that asks", asks("15059"), "gres:shard:15059")
accepted("the largest", asks("40506"), "gres:shard:40506")
accepted("other resources beside", asks("100", { tres_per_node = "gres:license:1" }), "gres:license:1,gres:shard:100")
accepted("GPUs of its own", asks("100", { tres_per_node = "gres:gpu:a100:2" }), "gres:gpu:a100:2")
accepted("GPUs of the job", asks("100", { tres_per_job = "gres:gpu:2" }), nil)
accepted("GPUs of later releases", asks("100", { tres_per_node = "gres/gpu:2" }), "gres/gpu:2")
accepted("two partitions", asks("9000", { partition = "small,all" }), "gres:shard:9000")

-- Jobs on several GPUs.
local function asks_of(gpus, job)
  job = asks("15059", job)
  job.spank_job_env[2] = "GPUMEM_GPUS=" .. gpus
  return job
end
local function spread(name, job, expected, nodes, settings)
  accepted(name, job, expected, settings)
  check(name .. " gets nodes", job.min_nodes == nodes and job.max_nodes == nodes)
end
spread("a node's GPUs", asks_of("8"), "gres:gpu:8", 1)
spread("GPUs of two nodes", asks_of("16", { min_nodes = 4294967294 }), "gres:gpu:8", 2)
spread("a GPU of each node", asks_of("4", { min_nodes = 4 }), "gres:shard:15059", 4)
spread("nodes as the job says", asks_of("8", { min_nodes = 2 }), "gres:gpu:4", 2)
spread("smaller nodes", asks_of("8"), "gres:gpu:4", 2, { gpus_per_node = 4 })
accepted("one GPU", asks_of("1", { min_nodes = 2 }), "gres:shard:15059")
accepted("GPUs of its own, for a layout", asks_of("4", { tres_per_node = "gres:gpu:4" }), "gres:gpu:4")
refused("nodes that cannot be alike", asks_of("8", { min_nodes = 3 }), "8 GPUs, which is not a multiple of 3 nodes")
refused("GPUs that make no whole nodes", asks_of("9"), "9 GPUs, which is not a multiple of 2 nodes; say --nodes=N")
refused("more GPUs than a node has", asks_of("16", { min_nodes = 1 }), "a node has 8; say --nodes=2")
for _, gpus in ipairs({ "", "0", "-8", "8.5", "1e3", "12345678" }) do
  refused("the number of GPUs '" .. gpus .. "'", asks_of(gpus), "GPUMEM_GPUS is not a number of GPUs")
end
refused("two numbers of GPUs", { spank_job_env = { "GPUMEM_MIB=1", "GPUMEM_GPUS=2", "GPUMEM_GPUS=4" } }, "not a number of GPUs")

refused("more than there is", asks("1318031"),
  "the job needs 1,318,031 MiB on one GPU, and the largest GPU that it may use has 40,506 MiB")
refused("more than GPUs of its own", asks("50000", { tres_per_node = "gres:gpu:2" }), "needs 50,000 MiB")
refused("more than the partition has", asks("8001", { partition = "small" }), "has 8,000 MiB")
refused("shards of its own", asks("100", { tres_per_node = "gres:shard:5" }), "names no shards itself")
refused("shards among others", asks("100", { tres_per_job = "gres:x:1,gres/shard=5" }), "names no shards itself")
for _, figure in ipairs({ "", "0", "-1", "1e3", "12K", " 12", "0x10", "9999999999999999", "1\n2", "inf", "nan" }) do
  refused("the figure '" .. figure .. "'", asks(figure), "not a number of MiB")
end
refused("two figures", { spank_job_env = { "GPUMEM_MIB=1", "GPUMEM_MIB=2" } }, "not a number of MiB")
refused("no figure", { spank_job_env = { [0] = option } }, "no estimate came with the job")

for name, job in pairs({
  empty = {}, none = { spank_job_env = {} }, another = { spank_job_env = { [0] = "OTHER=1", "XGPUMEM_MIB=1" } },
  shards = { tres_per_node = "gres:shard:5" }, gpus = { tres_per_node = "gres:gpu:1" }, typed = { tres_per_job = "gres:gpu:a100:1" },
}) do
  accepted("a job that does not ask: " .. name, job, job.tres_per_node)
end

local strict = { users_may_name_shards = false, users_may_name_figures = false }
refused("shards by hand", { tres_per_node = "gres:gpu:1,gres:SHARD:5" }, "not by hand", strict)
accepted("by the plugin", asks("5"), "gres:shard:5", strict)
refused("a figure by hand", { spank_job_env = { "GPUMEM_MIB=5" } }, "not for users to set", strict)
accepted("a figure by hand, allowed", { spank_job_env = { "GPUMEM_MIB=5" } }, "gres:shard:5")
accepted("neither", {}, nil, strict)
check("shards by scontrol are refused", slurm_job_modify({ tres_per_node = "gres:shard:5" }, {}, partitions, 1000) == slurm.ERROR)
check("but not root's", slurm_job_modify({ tres_per_node = "gres:shard:5" }, {}, partitions, 0) == slurm.SUCCESS)
check("nor anything else", slurm_job_modify({ name = "x" }, {}, partitions, 1000) == slurm.SUCCESS)

-- A fault of the script, such as a setting that is not a table.
local broken = { largest_mib_of = 5 }
refused("a job that asks, and a fault", asks("5", { partition = "all" }), "tell the administrators", broken)
check("the fault is in slurmctld's log", logged ~= nil)
accepted("a job that does not ask, and a fault", { partition = "all" }, nil, broken)
local hostile = setmetatable({}, { __index = function() error("no such field") end })
check("a job that cannot be read", slurm_job_submit(hostile, partitions, 1000) == slurm.SUCCESS and logged ~= nil)
check("a change that cannot be read", (function()
  gpumem.users_may_name_shards = false
  return slurm_job_modify(hostile, {}, partitions, 1000)
end)() == slurm.SUCCESS)

if failures > 0 then
  io.stderr:write(failures, " checks failed\n")
  os.exit(1)
end
print("all checks passed")
