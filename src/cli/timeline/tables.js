// Legend and tables.
const swatchRow = (title, variable, kind) => {
  const item = make('li');
  const swatch = make('span', null, {class: `swatch ${kind || ''}`});
  if (kind) swatch.style.borderColor = `var(--${variable})`;
  else swatch.style.background = `var(--${variable})`;
  item.append(swatch, title);
  at('legend').append(item);
};
for (const band of bands) swatchRow(band.title, `c-${band.key}`);
swatchRow('Context and reserved', 'reserved', 'stroke');
swatchRow('Capacity of the GPU', 'capacity', 'stroke dashed');

const head = (table, titles) => {
  const row = table.createTHead().insertRow();
  titles.forEach(([title, kind]) => row.append(make('th', title, {scope: 'col', class: kind || ''})));
};
const peak = data.peak.point;
const cells = (row, title, values, colour) => {
  const name = make('th', null, {scope: 'row'});
  if (colour) { const swatch = make('span', null, {class: 'swatch'}); swatch.style.background = colour; name.append(swatch); }
  name.append(title);
  row.append(name);
  for (const value of values) row.append(make('td', value));
  return name;
};
const parts = at('parts');
head(parts, [['Part'], ['Bytes'], ['Share']]);
const body = parts.createTBody();
const fragmentation = data.peak.reserved_bytes - data.peak.allocated_bytes;
bands.forEach((band, index) => {
  if (stack[index][peak] > 0) cells(body.insertRow(), band.title, [size(stack[index][peak]), percent(stack[index][peak] / device)], `var(--c-${band.key})`);
});
cells(body.insertRow(), 'Fragmentation: reserved, not in use', [size(fragmentation), percent(fragmentation / device)], 'var(--line)');
cells(parts.createTFoot().insertRow(), 'On the device', [size(device), percent(1)]);

const holders = at('holders');
head(holders, [['Layer'], ['Holds'], ['Most of it', 'held'], ['Share']]);
const rows = holders.createTBody();
const live = data.peak.allocated_bytes;
for (const holder of data.holders) {
  const row = rows.insertRow();
  const sums = bands.map(() => 0);
  holder.held.forEach((bytes, category) => { sums[bandOf[category]] += bytes; });
  const most = sums.indexOf(Math.max(...sums));
  const name = cells(row, holder.layer < 0 ? 'of no layer: batches, workspaces of cuBLAS' : data.layers[holder.layer][0] || 'the model itself', [size(holder.total), bands[most].title, percent(holder.total / live)]);
  row.cells[2].className = 'held';
  if (holder.layer >= 0) name.append(make('span', ` ${data.layers[holder.layer][1]}`, {class: 'soft'}));
  const track = make('div', null, {class: 'track', 'aria-hidden': 'true'});
  sums.forEach((bytes, band) => {
    if (bytes <= 0) return;
    const piece = make('i');
    piece.style.width = `${100 * bytes / data.holders[0].total}%`;
    piece.style.background = `var(--c-${bands[band].key})`;
    track.append(piece);
  });
  name.append(track);
}
if (data.holders_left_out > 0) {
  const row = rows.insertRow();
  cells(row, `${count(data.holders_left_out)} more`, [size(data.held_by_others_bytes), '', percent(data.held_by_others_bytes / live)]);
  row.cells[2].className = 'held';
}
const foot = holders.createTFoot().insertRow();
cells(foot, 'In live tensors', [size(live), '', percent(1)]);
foot.cells[2].className = 'held';

const notes = [`Peak: ${data.peak.text}.`];
if (data.retries > 0) notes.push(`To go on, the allocator had to give back its cache ${count(data.retries)} times, which slows the run down.`);
if (data.verdict === 'tight' && data.upper_uncut_bytes > data.gpu.capacity_bytes) notes.push(`With more memory the job may take up to ${size(data.upper_uncut_bytes)}.`);
if (data.verdict === 'does_not_fit') notes.push('The job does not fit on this GPU: the figures are of one that is large enough.');
if (n < data.events) notes.push(`${count(n)} points show ${count(data.events)} events; no maximum is left out.`);
notes.push(`Written by gpumem ${data.version}.`);
at('notes').textContent = notes.join(' ');

readColours();
markRange();
draw();
new ResizeObserver(() => draw()).observe(chart);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { readColours(); draw(); });
