// Shows answers. Texts of a model reach the page by textContent alone.
const PARTS = ['context', 'parameters', 'optimizer', 'gradients', 'activations', 'temporaries', 'workspace', 'fragmentation', 'gathered', 'communication'];
const partClass = (name) => `part ${PARTS.includes(name) ? name : 'other'}`;

const hide = (id) => { at(id).hidden = true; };
const fillList = (id, texts) => {
  at(id).hidden = texts.length === 0;
  at(id).querySelector('ul').replaceChildren(...texts.map((text) => make('li', text)));
};

// The place and the remedy as the command line says them; where a line is named, a way to it.
const showFault = (box, says, error, goTo, field) => {
  box.hidden = false;
  box.replaceChildren(make('h2', 'No answer'), make('p', says));
  if (field) {
    const button = make('button', 'Go to the field', {type: 'button'});
    button.addEventListener('click', () => {
      if (field.closest('details')) field.closest('details').open = true;
      field.focus();
    });
    box.append(button);
  }
  if (!error || !error.line || !goTo) return;
  const button = make('button', `Show line ${error.line}`, {type: 'button'});
  button.addEventListener('click', () => goTo(error.line));
  box.append(button);
};

const verdictOf = (estimate, capacity) => {
  const of = `${size(estimate.expected_bytes)} of ${size(capacity)}`;
  if (estimate.verdict === 'unknown') return ['may', `Not known: at least ${of}`];
  if (estimate.verdict === 'does_not_fit') return ['bad', `Does not fit: ${of}`];
  if (estimate.verdict === 'fits') return ['good', `Fits: ${of}`];
  const most = estimate.most_needed_bytes > capacity ? `, may need ${size(estimate.most_needed_bytes)}` : '';
  const back = estimate.retries > 0 ? '; the allocator has to give back its cache' : '';
  return ['may', `Tight: ${of}${most}${back}`];
};

const drawRange = (estimate, capacity) => {
  const width = Math.max(240, at('range').clientWidth || 600);
  const most = Math.max(capacity, estimate.upper_bytes, estimate.expected_bytes) * 1.02;
  const x = (bytes) => width * bytes / most;
  const svg = draw('svg', {viewBox: `0 0 ${width} 74`, preserveAspectRatio: 'none'});
  const anchor = (place) => (place < width * 0.15 ? 'start' : place > width * 0.85 ? 'end' : 'middle');
  const [low, high] = [x(estimate.lower_bytes), x(estimate.upper_bytes)];
  svg.append(draw('rect', {class: 'whole', x: 0, y: 24, width: x(capacity), height: 26, rx: 4}),
    draw('rect', {class: 'span', x: low, y: 24, width: Math.max(high - low, 2), height: 26, rx: 3}),
    draw('rect', {class: 'at', x: x(estimate.expected_bytes) - 2, y: 20, width: 4, height: 34, rx: 1.5}),
    draw('line', {class: 'cap', x1: x(capacity), x2: x(capacity), y1: 18, y2: 56}));
  const expected = x(estimate.expected_bytes);
  svg.append(draw('text', {class: 'strong', x: expected, y: 14, 'text-anchor': anchor(expected)}, `expected ${size(estimate.expected_bytes)}`));
  // What would stand on the other's text is left to the table of figures below.
  const room = Math.abs(high - x(capacity)) > 190;
  if (room) svg.append(draw('text', {x: high, y: 69, 'text-anchor': anchor(high)}, `${gib(estimate.lower_bytes)} to ${size(estimate.upper_bytes)}`));
  svg.append(draw('text', {class: 'cap-text', x: x(capacity), y: 69, 'text-anchor': anchor(x(capacity))}, `the GPU holds ${size(capacity)}`));
  at('range').replaceChildren(svg);
};

const showFigures = (estimate, capacity) => {
  const rows = [['Expected', estimate.expected_bytes, 'the best single figure: what nvidia-smi will show'],
    ['Lower', estimate.lower_bytes, 'the lower end of the range'], ['Upper', estimate.upper_bytes, 'the upper end: what to reserve'],
    ['Allocated', estimate.allocated_bytes, 'in live tensors: torch.cuda.max_memory_allocated'],
    ['Reserved', estimate.reserved_bytes, "held by PyTorch's allocator: torch.cuda.max_memory_reserved"],
    ['Device', estimate.device_bytes, 'reserved and the CUDA context: the same as expected'], ['GPU', capacity, 'what the GPU holds']];
  const known = rows.filter(([, bytes]) => bytes !== null);
  at('figures').replaceChildren(...known.map(([name, bytes, says]) => {
    const pair = make('div', null, {title: says});
    pair.append(make('dt', name), make('dd', size(bytes), {'data-bytes': bytes}));
    return pair;
  }));
  at('figures-help').querySelector('ul').replaceChildren(...known.map(([name, , says]) => make('li', `${name}: ${says}`)));
};

const showParts = (estimate) => {
  const rows = Object.entries(estimate.breakdown).filter(([, bytes]) => bytes !== null && bytes > 0);
  const head = make('thead');
  head.append(make('tr'));
  for (const name of ['Part', 'GiB', 'Share', '']) head.firstChild.append(make(name ? 'th' : 'td', name, name ? {scope: 'col'} : {class: 'bar-cell'}));
  const body = make('tbody');
  const most = Math.max(...rows.map(([, bytes]) => bytes), 1);
  for (const [name, bytes] of rows) {
    const row = make('tr');
    const swatch = draw('svg', {class: 'swatch', 'aria-hidden': 'true'});
    swatch.append(draw('rect', {class: partClass(name), width: 11, height: 11, rx: 2}));
    const title = make('th', null, {scope: 'row'});
    title.append(swatch, titled(name));
    const cell = make('td', null, {class: 'bar-cell'});
    const bar = draw('svg', {'aria-hidden': 'true'});
    bar.append(draw('rect', {class: partClass(name), width: `${100 * bytes / most}%`, height: 14, rx: 3}));
    cell.append(bar);
    row.append(title, make('td', gib(bytes)), make('td', percent(bytes / estimate.expected_bytes)), cell);
    body.append(row);
  }
  at('parts').replaceChildren(head, body);
};

// The library names its options between backquotes; the form shows them as the command line has them.
const spelled = (text) => text.replace(/`([a-z_]+)(?:=([^`]*))?`/g, (whole, name, value) => {
  if (!optionNamed.has(name)) return whole;
  const {flag, type} = optionNamed.get(name);
  if (value === 'false') return `--no-${flag}`;
  return value === undefined || value === 'true' ? `--${flag}` : `--${flag}${type === 'switch' ? '=' : ' '}${value}`;
});
const peakText = ({peak}) => (peak ? `Peak: ${spelled(peak.text)}.` : '');

const headlineOf = ({summary, gpu, job}) => {
  const words = [`${summary.file}: ${summary.format}`, `${count(summary.layers)} layers`, `${count(summary.parameters)} parameters`,
    `batch ${count(job.batch_size)}`];
  if (job.seq_length) words.push(`${count(job.seq_length)} tokens a sample`);
  words.push(job.precision, job.optimizer);
  if (job.lora) words.push(`LoRA of rank ${job.lora}`);
  if (job.quantize && job.quantize !== 'none') words.push(`quantised: ${job.quantize}`);
  if (job.checkpointing) words.push('checkpointing');
  return `${words.join(', ')}, on ${gpu}`;
};

// The largest batch and the timeline come later than the estimate. Until then those that stand are of another job.
const waitForRest = () => {
  at('fit').textContent = 'Looking for the largest batch…';
  at('timeline-note').textContent = 'Drawing…';
  for (const id of ['fit', 'timeline', 'curve']) at(id).classList.add('stale');
  at('timeline').setAttribute('aria-busy', 'true');
};
const drawn = (note) => {
  at('timeline-note').textContent = note;
  at('timeline').classList.remove('stale');
  at('timeline').removeAttribute('aria-busy');
};

// The first answer is made with the page, by the same engine.
const timeOf = ({milliseconds}) => {
  if (milliseconds === undefined) return 'Computed with the page';
  return `Computed in ${milliseconds < 1 ? 'less than 1' : Math.round(milliseconds)} ms`;
};
// Returns the verdict.
const showEstimate = (reply) => {
  const answer = JSON.parse(reply.text);
  const estimate = answer.estimates.find((one) => !one.error) || answer.estimates[0];
  const [kind, text] = verdictOf(estimate, answer.capacity_bytes);
  hide('fault');
  clearFaults();
  hide('advice');
  at('result').hidden = false;
  at('result').classList.remove('stale');
  waitForRest();
  at('verdict').className = kind;
  at('verdict').textContent = text;
  at('headline').textContent = headlineOf(answer);
  drawRange(estimate, answer.capacity_bytes);
  showFigures(estimate, answer.capacity_bytes);
  showParts(estimate);
  at('peak').textContent = peakText(estimate);
  const notes = estimate.assumed.map((one) => spelled(one.text));
  if (estimate.lower_bound && estimate.leaves_out) notes.push(`a lower bound: without ${estimate.leaves_out}`);
  if (estimate.verdict === 'tight' && estimate.retries > 0) notes.push('it fits because the allocator gives back its cache, which slows the job down');
  if (estimate.verdict === 'tight' && estimate.upper_uncut_bytes > estimate.upper_bytes) notes.push(`upper ends at what the GPU holds: with more memory the job may take up to ${size(estimate.upper_uncut_bytes)}`);
  fillList('assumed', notes);
  fillList('warnings', reply.warnings.map(({line, message}) => (line > 0 ? `Line ${line}: ${message}` : message)));
  at('status').className = kind;
  at('status').textContent = `${text}. ${timeOf(reply)}.`;
  shownJob = {title: headlineOf(answer), estimate, capacity: answer.capacity_bytes};
  showComparison();
  performance.mark('gpumem-answer');
  return estimate.verdict;
};

const oneMore = ({one_more: next}) => (next ? `; one more would need ${size(next.expected_bytes)}` : '');
// What is below the largest batch, where that is tight.
const below = (fit) => {
  if (fit.safe_batch === fit.largest_batch) return '.';
  const unflushed = fit.batch_without_flushes === fit.largest_batch ? '' : `; without cache flushes: ${count(fit.batch_without_flushes)}`;
  return `${unflushed}; safe batch: ${fit.safe_batch > 0 ? count(fit.safe_batch) : 'none'}.`;
};

const showFit = (reply) => {
  const box = at('fit');
  box.classList.remove('stale');
  if (!reply.text) {
    box.textContent = reply.says ? `Largest batch: ${reply.says}.` : '';
    return;
  }
  const fit = JSON.parse(reply.text);
  if (!fit.estimate) {
    box.textContent = `Largest batch: none; ${reply.why}.`;
    return;
  }
  box.replaceChildren('Largest batch that fits: ', make('strong', `${fit.at_least ? 'at least ' : ''}${count(fit.largest_batch)}`, {id: 'largest-batch'}),
    ` (${size(fit.estimate.expected_bytes)} expected${oneMore(fit)})${below(fit)}`);
};

// The page that `gpumem timeline` writes, as it is. It cannot reach more than this one.
const showTimeline = (reply) => {
  const frame = at('timeline');
  if (!reply.page) {
    frame.hidden = true;
    drawn(reply.says || '');
    return;
  }
  frame.hidden = false;
  frame.onload = () => {
    drawn('');
    const inner = frame.contentDocument;
    if (!inner) return;
    const fit = () => { frame.style.height = `${inner.documentElement.querySelector('main').offsetHeight + 24}px`; };
    fit();
    new ResizeObserver(fit).observe(inner.querySelector('main'));
  };
  frame.srcdoc = reply.page;
};

const planRow = (layout, text, index) => {
  const row = make('tr');
  row.append(make('td', String(index + 1)), make('td', layout.framework, {class: 'layout'}), make('td', text, {class: 'layout'}));
  const figures = [gib(layout.estimate.expected_bytes), gib(layout.estimate.upper_bytes), gib(layout.headroom_bytes), layout.step_seconds.toPrecision(3),
    layout.tokens_per_second_per_gpu === null ? layout.samples_per_second.toPrecision(3) : count(Math.round(layout.tokens_per_second_per_gpu))];
  for (const figure of figures) row.append(make('td', figure));
  return row;
};

const showPlan = (reply) => {
  const {layouts, gpus} = JSON.parse(reply.text);
  const tokens = layouts.length > 0 && layouts[0].tokens_per_second_per_gpu !== null;
  const head = make('thead');
  head.append(make('tr'));
  for (const name of ['', 'Framework', 'Layout', 'Expected GiB', 'Upper GiB', 'Free GiB', 'Step s', tokens ? 'Tokens/s per GPU' : 'Samples/s']) {
    head.firstChild.append(make(name ? 'th' : 'td', name, name ? {scope: 'col'} : {}));
  }
  for (const cell of [...head.querySelectorAll('th')].slice(0, 2)) cell.className = 'layout';
  const body = make('tbody');
  layouts.forEach((layout, index) => body.append(planRow(layout, reply.layouts[index], index)));
  at('plan').replaceChildren(head, body);
  hide('plan-fault');
  at('plan-scroll').hidden = layouts.length === 0;
  const settings = layouts.slice(0, 1).map((layout) => {
    const details = make('details');
    details.append(make('summary', `Settings of layout 1 for ${layout.framework}`), make('pre', layout.settings.text, {tabindex: '0'}));
    return details;
  });
  at('settings').replaceChildren(...settings);
  at('plan-status').textContent = `${layouts.length} layouts on ${count(gpus)} GPUs, fastest first, those without headroom last. Searched in ${(reply.milliseconds / 1000).toFixed(1)} s.`;
};
