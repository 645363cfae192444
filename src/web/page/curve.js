// Memory over the batch size or the sequence length, with the line of what the GPU holds.
const CURVE_POINTS = 9;
const CURVE_HEIGHT = 220;
let curveAsked = null;  // {model, job, fit, current}: what the curve is drawn of

// The sizes to ask for: a little beyond what fits, and the job's own.
const sizesUpTo = (own, last, step) => {
  const sizes = new Set([own]);
  for (let index = 0; index < CURVE_POINTS; index += 1) {
    sizes.add(Math.max(step, Math.round(last * index / (CURVE_POINTS - 1) / step) * step));
  }
  return [...sizes].sort((one, other) => one - other);
};
const sizesOf = (axis, job, fit) => {
  if (axis === 'seq_length') return sizesUpTo(job.seq_length, job.seq_length * 4, 8);
  const own = job.batch_size || 1;
  const most = fit.largest_batch || own;
  return sizesUpTo(own, Math.max(own, fit.at_least ? most : Math.ceil(most * 1.25)), 1);
};

// Where the line crosses what the GPU holds, in words.
const crossing = (points, capacity, unit) => {
  const over = points.findIndex(({expected}) => expected > capacity);
  if (over < 0) return `The line stays below the ${size(capacity)} of the GPU.`;
  if (over === 0) return `The line is above the ${size(capacity)} of the GPU from the start.`;
  return `The line passes the ${size(capacity)} of the GPU between ${count(points[over - 1].at)} and ${count(points[over].at)} ${unit}.`;
};

const drawCurve = (points, own, capacity, unit) => {
  const width = Math.max(260, at('curve').clientWidth || 600);
  const [left, right, top, bottom] = [46, 12, 16, 26];
  const most = Math.max(capacity * 1.12, ...points.map(({upper}) => Math.min(upper, capacity * 1.6)), ...points.map(({expected}) => expected));
  const first = points[0].at;
  const last = points[points.length - 1].at;
  const x = (value) => left + (width - left - right) * (last > first ? (value - first) / (last - first) : 0.5);
  const y = (bytes) => CURVE_HEIGHT - bottom - (CURVE_HEIGHT - top - bottom) * Math.min(bytes, most) / most;
  const line = (list) => list.map(([value, bytes]) => `${x(value).toFixed(1)},${y(bytes).toFixed(1)}`).join(' ');
  const note = crossing(points, capacity, unit);
  const svg = draw('svg', {viewBox: `0 0 ${width} ${CURVE_HEIGHT}`, role: 'img', 'aria-label': `Memory over ${unit}. ${note}`});
  const band = [...points.map(({at: value, upper}) => [value, upper]), ...[...points].reverse().map(({at: value, lower}) => [value, lower])];
  svg.append(draw('polygon', {class: 'span', points: line(band)}),
    draw('polyline', {class: 'line', points: line(points.map(({at: value, expected}) => [value, expected]))}),
    draw('line', {class: 'cap', x1: left, x2: width - right, y1: y(capacity), y2: y(capacity)}),
    draw('line', {class: 'axis', x1: left, x2: width - right, y1: y(0), y2: y(0)}),
    draw('text', {class: 'cap-text', x: left + 6, y: y(capacity) - 5}, `the GPU holds ${size(capacity)}`),
    draw('text', {x: left, y: CURVE_HEIGHT - 8}, count(first)),
    draw('text', {x: width - right, y: CURVE_HEIGHT - 8, 'text-anchor': 'end'}, `${count(last)} ${unit}`),
    draw('text', {x: left - 6, y: y(most) + 4, 'text-anchor': 'end'}, (most / GIB).toFixed(most < 10 * GIB ? 1 : 0)),
    draw('text', {x: left - 6, y: y(0) + 4, 'text-anchor': 'end'}, '0 GiB'));
  for (const {at: value, expected} of points) {
    const dot = draw('circle', {class: value === own ? 'own' : 'dot', cx: x(value), cy: y(expected), r: value === own ? 5 : 3, 'data-at': value, 'data-bytes': expected});
    dot.append(draw('title', {}, `${count(value)}: ${size(expected)} expected`));
    svg.append(dot);
  }
  at('curve').replaceChildren(svg);
  at('curve-note').textContent = `${note} The band is the range of the estimate.`;
};

const clearCurve = (why) => {
  at('curve').replaceChildren();
  at('curve-note').textContent = why;
};

// Asks for one size after the other, until something changes.
const findCurve = async (asked) => {
  curveAsked = asked;
  const {model, job, fit, current} = asked;
  const box = at('curve-axis');
  box.options[1].disabled = !job.seq_length;
  if (!job.seq_length) box.value = 'batch_size';
  const axis = box.value;
  const points = [];
  let capacity = 0;
  let says = '';  // of a size without an answer
  for (const value of sizesOf(axis, job, fit)) {
    const reply = await Engine.ask('estimate', model, {...job, [axis]: value});
    if (!current() || curveAsked !== asked || box.value !== axis) return;
    says = reply.says || says;
    if (!reply.text) continue;  // a size that the model does not have
    const answer = JSON.parse(reply.text);
    const estimate = answer.estimates.find((one) => !one.error);
    if (!estimate) continue;
    capacity = answer.capacity_bytes;
    points.push({at: value, expected: estimate.expected_bytes, lower: estimate.lower_bytes, upper: estimate.upper_uncut_bytes});
  }
  at('curve').classList.remove('stale');
  if (points.length === 0) clearCurve(`No chart: none of its sizes has an answer. ${says}`.trim());
  else drawCurve(points, axis === 'seq_length' ? job.seq_length : job.batch_size || 1, capacity, axis === 'seq_length' ? 'tokens a sample' : 'samples a batch');
};

// The answer above it is there already: a fault of the chart takes the chart alone away. What is stopped is asked again.
const showCurve = async (asked) => {
  try {
    await findCurve(asked);
  } catch (error) {
    if (error.message === STOPPED) throw error;
    if (curveAsked !== asked || !asked.current()) return;
    at('curve').classList.remove('stale');
    clearCurve(`No chart: the computation failed: ${error.message}.`);
  }
};
