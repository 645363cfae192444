// What else one asks about a job: which GPU, what would make it fit, and how it compares with another job.
const VERDICTS = {fits: ['yes', 'good'], tight: ['tight', 'may'], does_not_fit: ['no', 'bad'], unknown: ['not known', 'may']};
const fitsCell = (verdict) => ({text: VERDICTS[verdict][0], kind: VERDICTS[verdict][1], value: Object.keys(VERDICTS).indexOf(verdict)});
const gibCell = (bytes) => ({text: gib(bytes), value: bytes});

// A cell: {text, value, kind, onClick}; what is clicked is a button.
const cellOf = ({text, kind, onClick}) => {
  const cell = make('td', onClick ? null : text, kind ? {class: kind} : {});
  if (!onClick) return cell;
  const button = make('button', text, {type: 'button'});
  button.addEventListener('click', onClick);
  cell.append(button);
  return cell;
};
const rowOf = (cells) => {
  const row = make('tr');
  row.append(...cells.map(cellOf));
  return row;
};
const headOf = (titles) => {
  const head = make('thead');
  head.append(make('tr'));
  head.firstChild.append(...titles.map((title) => make('th', title, {scope: 'col'})));
  return head;
};

// A table whose titles order its rows; a second press turns the order round.
const showSortable = (table, titles, rows) => {
  const head = make('thead');
  const body = make('tbody');
  const titleRow = make('tr');
  head.append(titleRow);
  let by = -1;
  let rising = true;
  const show = () => {
    const ordered = by < 0 ? rows : [...rows].sort((one, other) => (one[by].value < other[by].value ? -1 : one[by].value > other[by].value ? 1 : 0) * (rising ? 1 : -1));
    body.replaceChildren(...ordered.map(rowOf));
    [...titleRow.children].forEach((cell, index) => cell.setAttribute('aria-sort', index !== by ? 'none' : rising ? 'ascending' : 'descending'));
  };
  titles.forEach((title, index) => {
    const cell = make('th', null, {scope: 'col'});
    const button = make('button', title, {type: 'button', class: 'plain'});
    button.addEventListener('click', () => {
      rising = by === index ? !rising : true;
      by = index;
      show();
    });
    cell.append(button);
    titleRow.append(cell);
  });
  table.replaceChildren(head, body);
  show();
};

// --- Which GPU ---
let gpusAsked = 0;
const clearGpus = (status) => {
  gpusAsked += 1;
  for (const id of ['gpus-scroll', 'gpus-fault']) hide(id);
  at('gpus-status').textContent = status;
};
const showGpus = ({gpus}) => {
  const rows = gpus.map((one) => [
    {text: one.gpu, value: one.gpu, onClick: () => chooseOptions({gpu: one.gpu})}, fitsCell(one.verdict), gibCell(one.expected_bytes), gibCell(one.upper_bytes),
    gibCell(one.headroom_bytes), {text: `${one.at_least ? 'at least ' : ''}${count(one.largest_batch)}`, value: one.largest_batch},
  ]);
  showSortable(at('gpus'), ['GPU', 'Fits', 'Expected GiB', 'Upper GiB', 'Free GiB', 'Largest batch'], rows);
  at('gpus-scroll').hidden = false;
  at('gpus-status').textContent = `${count(gpus.filter((one) => one.verdict === 'fits').length)} of ${count(gpus.length)} GPUs hold the job. Press a GPU to use it.`;
};
const compareGpus = async (model, job) => {
  clearGpus('Computing…');
  const own = gpusAsked;
  try {
    const reply = await Engine.ask('gpus', model, job);
    if (own !== gpusAsked) return;
    at('gpus-status').textContent = '';
    if (reply.text) showGpus(JSON.parse(reply.text));
    else showFault(at('gpus-fault'), reply.says);
  } catch (error) {
    if (own === gpusAsked) clearGpus(`Ended: ${error.message}.`);
  }
};

// --- What would make it fit ---
const settingsText = (settings) => Object.entries(settings).map(([name, value]) => spelled(`\`${name}=${value}\``)).join(' ');
const adviceRow = ({settings, cost, estimate, error}) => [
  {text: settingsText(settings), onClick: () => chooseOptions(settings)},
  estimate ? fitsCell(estimate.verdict) : {text: 'cannot be told', kind: 'may'},
  {text: estimate ? gib(estimate.expected_bytes) : ''}, {text: error ? error.message : cost, kind: 'layout'},
];
const showAdvice = (reply) => {
  if (!reply.text) {
    hide('advice');
    return;
  }
  const {changes, together} = JSON.parse(reply.text);
  const body = make('tbody');
  const costOf = (effect) => (effect.same_result ? 'together, with the same result' : `together: ${effect.cost}`);
  const all = together ? [{...together, cost: costOf(together)}, ...changes] : changes;
  body.append(...all.map((change) => rowOf(adviceRow(change))));
  at('advice-table').replaceChildren(headOf(['Change', 'Fits', 'Expected GiB', 'What it costs']), body);
  at('advice').hidden = all.length === 0;
  if (all.length > 0) at('fit').append(' What would make it fit stands below.');
};

// --- Two jobs side by side ---
let kept = null;  // {title, estimate, capacity}
let shownJob = null;
const figuresOf = ({estimate, capacity}) => [['Expected', estimate.expected_bytes], ['Upper', estimate.upper_bytes], ['GPU', capacity],
  ...Object.entries(estimate.breakdown).map(([name, bytes]) => [titled(name), bytes])];
const showComparison = () => {
  at('compare-drop').hidden = at('compare-scroll').hidden = kept === null;
  if (kept === null || shownJob === null) return;
  const now = new Map(figuresOf(shownJob));
  const before = new Map(figuresOf(kept));
  const body = make('tbody');
  body.append(rowOf([{text: 'Fits'}, fitsCell(kept.estimate.verdict), fitsCell(shownJob.estimate.verdict), {text: ''}]));
  for (const name of new Set([...before.keys(), ...now.keys()])) {
    const [one, other] = [before.get(name) || 0, now.get(name) || 0];
    if (one === 0 && other === 0) continue;
    const more = (other - one) / GIB;
    body.append(rowOf([{text: name}, gibCell(one), gibCell(other), {text: `${more > 0 ? '+' : ''}${more.toFixed(2)}`}]));
  }
  at('compare').replaceChildren(headOf(['GiB', 'Kept', 'Now', 'Difference']), body);
  at('compare-note').textContent = `Kept: ${kept.title}`;
};
const keepJob = () => {
  kept = shownJob;
  showComparison();
};
const dropJob = () => {
  kept = null;
  at('compare-note').textContent = '';
  showComparison();
};
