-- gpumem in Slurm, the part in slurmctld: turns what the plugin estimated (GPUMEM_MIB, MiB on one GPU) into shards of a
-- GPU, one a MiB, and refuses what no GPU holds. Lua 5.1, Slurm 22.05; README.md tells how to set it up.
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

  -- Rules for all jobs. As they stand, users may do as they like.
  -- May a job name shards itself (--gres=shard:N)? It bypasses the estimate.
  users_may_name_shards = true,
  -- May a figure come without the plugin's options? Such a job was not sent by the plugin as it is installed.
  users_may_name_figures = true,
}

-- What a job says ---------------------------------------------------------------------------------------------------

-- What the plugin sent along: the figures (texts, to be looked at), and whether its options were used.
local function sent_by_plugin(job)
  local figures, options = {}, false
  for _, entry in pairs(job.spank_job_env or {}) do
    local text = tostring(entry)
    local figure = text:match("^GPUMEM_MIB=(.*)$")
    if figure then figures[#figures + 1] = figure end
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
    return nil, "GPUMEM_MIB is no number of MiB"
  end
  if not options and not gpumem.users_may_name_figures then return nil, "GPUMEM_MIB is not for users to set" end
  return tonumber(figure)
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
  if shards == 0 then return end
  local others = job.tres_per_node
  local asked = string.format("gres:shard:%d", shards)
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
