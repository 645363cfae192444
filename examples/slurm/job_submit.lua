-- gpumem in Slurm, the part in slurmctld: turns what the plugin estimated (GPUMEM_MIB, MiB on one GPU) into shards of a
-- GPU, one a MiB, and refuses what no GPU holds. A job of several GPUs (GPUMEM_GPUS) gets shards of one GPU on each of
-- its nodes, or whole GPUs where it has several of a node: the shards of a job on a node are of one GPU. Lua 5.1, Slurm
-- 22.05; README.md tells how to set it up.
--
-- Jobs that did not ask stay as they are, unless a rule below is switched on. Slurm takes a job whose submission this
-- script fails on, with the edits made so far: so all of it runs in pcall(), and the edit comes last. slurmctld waits
-- while this runs: nothing here opens a file or starts a program.
--
-- A site with a job_submit.lua of its own calls gpumem_submit() and gpumem_modify() from it: see README.md.

-- Settings ----------------------------------------------------------------------------------------------------------

gpumem = {
  -- The largest Count of a shard line in gres.conf: what the largest GPU holds, in MiB.
  largest_mib = 40506,
  -- The same for partitions where it is another: largest_mib_of = { small = 15109, old = 7000 }
  largest_mib_of = {},
  -- GPUs of a node, for jobs on several GPUs that do not say how many nodes they want.
  gpus_per_node = 8,

  -- Rules for all jobs. By default, users may do as they like.
  -- May a job name shards itself (--gres=shard:N)? It bypasses the estimate.
  users_may_name_shards = true,
  -- May a figure come without the plugin's options? Such a job was not sent by the plugin as it is installed.
  users_may_name_figures = true,
}

-- What a job says ---------------------------------------------------------------------------------------------------

-- What the plugin sent along: the figures (texts, to be looked at; `gpus` among them), and whether its options were
-- used.
local function sent_by_plugin(job)
  local figures, options = { gpus = {} }, false
  for _, entry in pairs(job.spank_job_env or {}) do
    local text = tostring(entry)
    local figure, gpus = text:match("^GPUMEM_MIB=(.*)$"), text:match("^GPUMEM_GPUS=(.*)$")
    if figure then figures[#figures + 1] = figure end
    if gpus then figures.gpus[#figures.gpus + 1] = gpus end
    if text:find("^_SLURM_SPANK_OPTION_gpumem_") then options = true end
  end
  return figures, options
end

-- Whether a job names this resource itself. Slurm writes "gres:gpu:a100:2,gres:shard:5"; later releases "gres/gpu:2".
local function names(job, resource)
  for _, field in ipairs({ "tres_per_node", "tres_per_job", "tres_per_socket", "tres_per_task" }) do
    for item in tostring(job[field] or ""):lower():gmatch("[^,]+") do
      if item:gsub("^%s*gres[:/]", ""):match("^%s*([^:=%s]+)") == resource then return true end
    end
  end
  return false
end

-- The largest GPU of the partitions that the job names, or of the default one.
local function limit_of(job, partitions)
  local names = job.partition
  if names == nil or names == "" then
    for name, partition in pairs(partitions or {}) do
      if partition.flag_default == 1 then names = name end
    end
  end
  local largest
  for name in tostring(names or ""):gmatch("[^,]+") do
    largest = math.max(largest or 0, gpumem.largest_mib_of[name] or gpumem.largest_mib)
  end
  return largest or gpumem.largest_mib
end

-- 15059 as "15,059".
local function separated(number)
  local text = string.format("%d", number):reverse():gsub("(%d%d%d)", "%1,"):reverse()
  return (text:gsub("^,", ""))
end

-- Decisions: nothing, or why the job is refused ---------------------------------------------------------------------

local function broken_rule(job)
  if not gpumem.users_may_name_shards and names(job, "shard") then
    return "this cluster gives out shards of GPUs by --gpumem-model=FILE --gpumem-batch=N, not by hand"
  end
end

-- A figure in MiB; or nothing, and why.
local function figure_of(figures, options)
  if #figures == 0 then return nil, "--gpumem-... was given, and no estimate came with the job" end
  local figure = figures[1]
  if #figures > 1 or not figure:find("^%d+$") or #figure > 15 or tonumber(figure) == 0 then
    return nil, "GPUMEM_MIB is not a number of MiB"
  end
  if not options and not gpumem.users_may_name_figures then return nil, "GPUMEM_MIB is not for users to set" end
  return tonumber(figure)
end

-- How many GPUs the job takes; or nothing, and why.
local function gpus_of(figures)
  local gpus = figures.gpus[1] or "1"
  if #figures.gpus > 1 or not gpus:find("^%d+$") or #gpus > 7 or tonumber(gpus) == 0 then
    return nil, "GPUMEM_GPUS is not a number of GPUs"
  end
  return tonumber(gpus)
end

-- Nodes, and GPUs of each, of a job on several GPUs; or nothing, and why. Slurm writes NO_VAL where a job names no nodes.
local function nodes_of(job, gpus)
  local NO_VAL = 4294967294
  local nodes = tonumber(job.min_nodes)
  if nodes == nil or nodes >= NO_VAL or nodes < 1 then nodes = math.ceil(gpus / gpumem.gpus_per_node) end
  if gpus % nodes ~= 0 then
    return nil, string.format("the job's layout has %d GPUs, which is not a multiple of %d nodes; say --nodes=N", gpus, nodes)
  end
  if gpus / nodes > gpumem.gpus_per_node then
    return nil, string.format("the job's layout has %d GPUs, and a node has %d; say --nodes=%d", gpus, gpumem.gpus_per_node,
      math.ceil(gpus / gpumem.gpus_per_node))
  end
  return nodes, gpus / nodes
end

-- The shards to ask for, 0 if the job has GPUs of its own; or nothing, and why.
local function shards_of(job, partitions, figures, options)
  local need, fault = figure_of(figures, options)
  if not need then return nil, fault end
  local limit = limit_of(job, partitions)
  if need > limit then
    return nil, string.format("the job needs %s MiB on one GPU, and the largest GPU that it may use has %s MiB; " ..
      "choose a smaller batch (`gpumem fit` names the largest), or another partition", separated(need), separated(limit))
  end
  if names(job, "shard") then return nil, "a job that uses --gpumem-model names no shards itself" end
  return names(job, "gpu") and 0 or need
end

local function decide(job, partitions, figures, options)
  local fault = broken_rule(job)
  if fault then return fault end
  if #figures == 0 and not options then return end
  local shards, refusal = shards_of(job, partitions, figures, options)
  if not shards then return refusal end
  local gpus, wrong = gpus_of(figures)
  if not gpus then return wrong end
  if shards == 0 then return end
  local asked = string.format("gres:shard:%d", shards)
  if gpus > 1 then
    local nodes, of_each = nodes_of(job, gpus)
    if not nodes then return of_each end
    if of_each > 1 then asked = string.format("gres:gpu:%d", of_each) end
    job.min_nodes, job.max_nodes = nodes, nodes
  end
  local others = job.tres_per_node
  job.tres_per_node = (others ~= nil and others ~= "") and others .. "," .. asked or asked
end

-- What a job_submit.lua calls ---------------------------------------------------------------------------------------

local function refused(why)
  slurm.log_user("gpumem: %s", why)
  return slurm.ERROR
end

-- slurm.SUCCESS, or slurm.ERROR after telling the user why.
function gpumem_submit(job, partitions)
  local looked, figures, options = pcall(sent_by_plugin, job)
  if not looked then
    slurm.log_error("gpumem: %s", tostring(figures))
    return slurm.SUCCESS
  end
  local decided, why = pcall(decide, job, partitions, figures, options)
  if decided and why == nil then return slurm.SUCCESS end
  if decided then return refused(why) end
  slurm.log_error("gpumem: %s", tostring(why))
  if #figures == 0 and not options then return slurm.SUCCESS end
  return refused("the job could not be looked at; please tell the administrators of this cluster")
end

-- The same rules for `scontrol update`, except for root.
function gpumem_modify(job, modify_uid)
  if modify_uid == 0 then return slurm.SUCCESS end
  local decided, why = pcall(broken_rule, job)
  if decided and why ~= nil then return refused(why) end
  if not decided then slurm.log_error("gpumem: %s", tostring(why)) end
  return slurm.SUCCESS
end

function slurm_job_submit(job, partitions, submit_uid)
  return gpumem_submit(job, partitions)
end

function slurm_job_modify(job, record, partitions, modify_uid)
  return gpumem_modify(job, modify_uid)
end

return slurm.SUCCESS
