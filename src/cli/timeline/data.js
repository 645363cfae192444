// All text of the model reaches the page as text, never as markup.
const data = JSON.parse(document.getElementById('data').textContent);
const at = (id) => document.getElementById(id);
const make = (tag, text, attributes = {}) => {
  const element = document.createElement(tag);
  if (text !== undefined && text !== null) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
};
const count = (value) => value.toLocaleString('en-US');
const size = (bytes) => {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let value = Math.abs(bytes);
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; unit += 1; }
  return `${unit === 0 || value >= 999.5 ? Math.round(value) : value.toPrecision(3)} ${units[unit]}`;
};
const percent = (share) => `${(100 * share).toFixed(1)} %`;

// The stack, from the ground up: the parts of the breakdown, by its names.
const bands = [
  {key: 'context', title: 'Context'},
  {key: 'parameters', title: 'Parameters'},
  {key: 'optimizer', title: 'Optimizer'},
  {key: 'gradients', title: 'Gradients'},
  {key: 'activations', title: 'Activations'},
  {key: 'temporaries', title: 'Temporaries'},
  {key: 'workspace', title: 'Workspace'},
  {key: 'gathered', title: 'Gathered'},
  {key: 'communication', title: 'Communication'},
];
const bandOf = data.categories.map((name) => bands.findIndex((band) => band.key === name));

// Columns of differences become columns of values.
const points = data.points;
const n = points.event.length;
const summed = (column) => {
  const values = new Float64Array(n);
  let value = 0;
  for (let i = 0; i < n; i += 1) { value += column[i]; values[i] = value; }
  return values;
};
const event = summed(points.event);
const reserved = summed(points.reserved);
const stack = bands.map(() => new Float64Array(n));
stack[0].fill(data.context_bytes);
points.allocated.forEach((column, category) => {
  const values = summed(column);
  const band = stack[bandOf[category]];
  for (let i = 0; i < n; i += 1) band[i] += values[i];
});
const total = new Float64Array(n);
for (const band of stack) for (let i = 0; i < n; i += 1) total[i] += band[i];
const phaseOf = new Int32Array(n);
data.phases.forEach((phase, index) => phaseOf.fill(index, phase.first_point));
const stepName = (phase) => (phase.step > 0 ? `step ${phase.step}` : '');
const phaseName = (index) => {
  const phase = data.phases[index];
  return phase.step > 0 ? `${phase.phase}, step ${phase.step}` : phase.phase;
};
const layerName = (index) => (index < 0 ? '' : `${data.layers[index][0] || 'the model itself'} (${data.layers[index][1]})`);
const device = data.context_bytes + data.peak.reserved_bytes;

// Head.
const job = data.job;
at('title').textContent = `Memory of a training run: ${data.summary.file}`;
at('job').textContent = [
  `${count(data.summary.parameters)} parameters`, `batch ${count(job.batch_size)}`,
  job.seq_length ? `sequence ${count(job.seq_length)}` : '', job.precision, job.optimizer,
  job.lora ? `LoRA of rank ${job.lora}` : '', job.quantize && job.quantize !== 'none' ? `quantised: ${job.quantize}` : '',
  job.checkpointing ? `checkpointing${job.checkpointing === true ? '' : `: ${job.checkpointing}`}` : '',
  `${data.gpu.title} (${data.gpu.name})`,
].filter(Boolean).join(' · ');
const figure = (value, title, kind) => {
  const card = make('div', null, {class: `card ${kind || ''}`});
  card.append(make('b', value), make('span', title));
  at('figures').append(card);
};
figure(size(device), 'on the device: context and reserved');
figure(size(data.peak.reserved_bytes), 'reserved by the allocator');
figure(size(data.peak.allocated_bytes), 'in live tensors at the peak');
const [verdict, kind] = {fits: ['Fits', 'good'], tight: ['Tight', 'may'], does_not_fit: ['Does not fit', 'bad'], unknown: ['Not known', 'may']}[data.verdict];
const most = data.verdict === 'tight' && data.most_needed_bytes > data.gpu.capacity_bytes ? `, may need ${size(data.most_needed_bytes)}` : '';
figure(verdict, `${percent(device / data.gpu.capacity_bytes)} of ${size(data.gpu.capacity_bytes)}${most}`, kind);
