// The page's engine and the command line give the same answers, to the byte, for random jobs from a fixed seed: figures,
// warnings and errors. Only the seconds that an answer took may differ.
//   node tests/web/agreement.mjs GPUMEM BUILD [JOBS [SEED]]
import {spawnSync} from 'node:child_process';
import {mkdtempSync, readdirSync, readFileSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join, resolve} from 'node:path';
import {fileURLToPath} from 'node:url';
import {openEngine} from '../../src/web/engine.mjs';

const [programPath, build, jobs = '500', seed = '20'] = process.argv.slice(2);
const program = resolve(programPath);
const root = fileURLToPath(new URL('../..', import.meta.url));

let state = Number(seed);
const random = () => {  // mulberry32
  state = (state + 0x6d2b79f5) | 0;
  let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
};
const pick = (list) => list[Math.floor(random() * list.length)];
const chance = (share) => random() < share;

const filesIn = (folder, pattern) => readdirSync(join(root, folder)).filter((name) => pattern.test(name)).map((name) => join(folder, name));
const VISION = [...filesIn('models/summaries', /\.txt$/), ...filesIn('models/graphs', /\.json$/), ...filesIn('models/trees', /\.txt$/)];
const LANGUAGE = [...filesIn('tests/golden/cli/configs', /^llama.*\.json$/), ...filesIn('src/web/examples', /^llama.*\.json$/),
  'examples/trainers/tinyllama/config.json'];
const BROKEN = ['tests/golden/cli/wrong_total.txt', 'tests/golden/cli/unknown_layer.txt', 'README.md'];

const POWERS = [1, 2, 4, 8, 16, 32];
// A value of an option as a page's user may choose it.
const valueOf = (option, about) => {
  if (option.name === 'gpu') return chance(0.03) ? 'no-such-gpu' : pick(about.gpus).name;
  if (option.name === 'estimator') return pick(about.estimators);
  if (option.name === 'input') return pick(['3x224x224', '3x64x64', '1x28x28']);
  if (option.name === 'alloc_conf') return pick(['expandable_segments:True', 'max_split_size_mb:128', 'roundup_power2_divisions:4', 'nonsense']);
  if (option.name === 'freeze' || option.name === 'train') return pick(['*.bias', 'layer1', 'model.layers.0', '*']);
  if (option.name === 'rank') return pick(['max', 'last']);
  if (option.type === 'flag') return option.default !== 'true';
  if (option.type === 'fraction') return pick([0.05, 0.1, 0.25, 0.5, 0.0001]);
  if (option.type === 'whole') return option.name.startsWith('zero_') ? pick([1000, 1000000]) : pick(POWERS);
  const choices = (option.choices || []).filter((name) => name !== 'all').map((name) => name.replace(/:N$/, `:${pick([2, 4])}`));
  if (option.type === 'switch') return pick([true, true, ...choices]);
  return choices.length > 0 ? pick(choices) : undefined;
};

const LAYOUT = /parallel|sharding|stages|schedule|rank|zero_/;
// What the library asks for of this model is mostly given.
const complete = (summary, job) => {
  const asked = engine.ask('estimate', {job: {summary, batch_size: 1}}).says || '';
  if (asked.includes('--seq')) job.seq_length ??= pick([128, 512]);
  if (asked.includes('--input')) job.input ??= '3x224x224';
  const tokens = job.seq_length ? engine.ask('estimate', {job: {summary, batch_size: 1, seq_length: job.seq_length}}).says || '' : '';
  if (tokens.includes('reads no tokens')) delete job.seq_length;
  if (Object.keys(job).some((name) => /^lora_|^base_dtype|^quantize/.test(name))) job.lora ??= 8;
};

// In a layout every size must divide another: few of them at once, or nothing would be left but errors.
const makeJob = (about) => {
  const language = chance(0.4);
  const summary = chance(0.04) ? pick(BROKEN) : pick(language ? LANGUAGE : VISION);
  const job = {batch_size: pick([1, 2, 3, 7, 16, 32, 100]), gpu: pick(about.gpus).name};
  if (language && chance(0.9)) job.seq_length = pick([128, 512, 2048, 4096]);
  const most = pick([0, 1, 2, 3, 5]);
  const parallel = chance(0.4);
  for (let drawn = 0; drawn < most; drawn += 1) {
    const option = pick(about.options);
    if (['batch_size', 'software', 'model', 'seq_length'].includes(option.name)) continue;
    if (LAYOUT.test(option.name) && !parallel) continue;
    const value = valueOf(option, about);
    if (value !== undefined) job[option.name] = value;
  }
  if (parallel) Object.assign(job, {data_parallel: pick([2, 8, 64]), sharding: pick(about.options.find((one) => one.name === 'sharding').choices).replace(':N', ':2')});
  return {summary, job};
};

const wordsOf = (job, about) => Object.entries(job).flatMap(([name, value]) => {
  const {flag, type} = about.options.find((option) => option.name === name);
  if (value === true) return [`--${flag}`];
  if (value === false) return [type === 'flag' ? `--no-${flag}` : `--${flag}=false`];
  return type === 'switch' ? [`--${flag}=${value}`] : [`--${flag}`, String(value)];
});
const withoutTime = (text) => text.replace(/"seconds": [-+.e\d]+/g, '"seconds": 0');

// What the command line prints, on both its outputs, and what it would have printed of the engine's reply.
const printed = (words) => {
  const {stdout, stderr, status} = spawnSync(program, words, {cwd: root, encoding: 'utf8', maxBuffer: 2 ** 28});
  return {out: withoutTime(stdout), errors: stderr, ended: status !== null};
};
const wouldPrint = (reply) => ({
  out: withoutTime(reply.text || ''),
  errors: (reply.warnings || []).map(({says}) => `gpumem: warning: ${says}\n`).join('') + (reply.says ? `gpumem: error: ${reply.says}\n` : ''),
});

const engine = await openEngine(build);
const about = engine.about();
const counts = {estimate: 0, fit: 0, plan: 0, serve: 0, timeline: 0, errors: 0, warnings: 0, differ: 0};

const compare = (verb, ours, words, theirs) => {
  counts[verb] += 1;
  if (ours.errors.includes('error:')) counts.errors += 1;
  if (ours.errors.includes('warning:')) counts.warnings += 1;
  if (theirs.ended && ours.out === theirs.out && ours.errors === theirs.errors) return;
  counts.differ += 1;
  if (counts.differ > 5) return;
  let at = 0;
  while (at < ours.out.length && ours.out[at] === theirs.out[at]) at += 1;
  console.error(`differ: gpumem ${words.join(' ')}\n  page: ${JSON.stringify(ours.out.slice(at, at + 120))} ${ours.errors}` +
    `  command line: ${JSON.stringify(theirs.out.slice(at, at + 120))} ${theirs.errors}`);
};
const take = (summary) => {
  const wrong = engine.model(summary, readFileSync(join(root, summary)));
  if (wrong) throw new Error(wrong);
};

for (let done = 0; done < Number(jobs); done += 1) {
  const {summary, job} = makeJob(about);
  take(summary);
  if (chance(0.9)) complete(summary, job);
  const words = ['estimate', summary, '--json', ...wordsOf(job, about)];
  compare('estimate', wouldPrint(engine.ask('estimate', {job: {summary, ...job}})), words, printed(words));
  // Of some the largest batch as well.
  if (done % 20 !== 0) continue;
  const {batch_size: ignored, ...rest} = job;
  const fit = ['fit', summary, '--json', ...wordsOf(rest, about)];
  compare('fit', wouldPrint(engine.ask('fit', {job: {summary, ...rest}})), fit, printed(fit));
}

const PLANS = [{gpus: 8, global_batch: 64}, {gpus: 64, global_batch: 512, framework: 'fsdp2'}, {global_batch: 16}, {gpus: 16, global_batch: 7}];
for (const summary of ['src/web/examples/llama3_8b.json', 'examples/trainers/tinyllama/config.json']) {
  for (const plan of PLANS) {
    take(summary);
    const job = {seq_length: 2048, gpu: 'h100-80gb'};
    const own = Object.entries(plan).flatMap(([name, value]) => [`--${name.replaceAll('_', '-')}`, String(value)]);
    const words = ['plan', summary, '--json', ...wordsOf(job, about), ...own];
    compare('plan', wouldPrint(engine.ask('plan', {job: {summary, ...job}, plan})), words, printed(words));
  }
}

const SERVERS = [
  ['vllm', 'serve', 'llama', '--max-model-len', '8192'],
  ['vllm', 'serve', 'llama', '--tensor-parallel-size', '2', '--kv-cache-dtype', 'fp8', '--runner', 'pooling'],
  ['vllm', 'serve', 'llama', '--speculative-config', '{"method": "ngram", "num_speculative_tokens": 3}'],
  ['sglang', 'serve', 'llama', '--context-length', '8192'],
  ['vllm', 'serve', 'llama', '--no-such-flag'],
  [],
];
for (const summary of ['src/web/examples/llama3_8b.json', 'README.md']) {
  for (const command of SERVERS) {
    take(summary);
    const version = command[0] === 'sglang' ? '0.5.6' : '0.19.0';
    const words = ['serve', summary, '--gpu', 'h100-80gb', '--engine-version', version, '--json', ...(command.length > 0 ? ['--', ...command] : [])];
    compare('serve', wouldPrint(engine.ask('serve', {job: {summary, gpu: 'h100-80gb'}, serve: {version, command}})), words, printed(words));
  }
}

const folder = mkdtempSync(join(tmpdir(), 'gpumem-web-'));
for (const summary of ['models/graphs/resnet18.json', 'models/summaries/resnet50.torchsummary.txt', 'src/web/examples/llama3_8b.json']) {
  take(summary);
  const job = {batch_size: 2, ...(summary.endsWith('8b.json') ? {seq_length: 512, precision: 'bf16', data_parallel: 8, sharding: 'fsdp2'} : {})};
  const page = join(folder, 'page.html');
  const words = ['timeline', summary, '-o', page, ...wordsOf(job, about)];
  spawnSync(program, words, {cwd: root});
  const reply = engine.ask('timeline', {job: {summary, ...job}});
  compare('timeline', {out: reply.page || '', errors: reply.says || ''}, words, {out: readFileSync(page, 'utf8'), errors: '', ended: true});
}
rmSync(folder, {recursive: true});

console.log(Object.entries(counts).map(([name, number]) => `${number} ${name}`).join(', '));
if (counts.differ > 0 || counts.estimate !== Number(jobs)) process.exit(1);
const asked = counts.estimate + counts.fit + counts.plan + counts.serve + counts.timeline;
if (counts.errors * 2 > asked) {
  console.error('most of the jobs are errors: they say little');
  process.exit(1);
}
