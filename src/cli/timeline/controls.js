const describe = (i) => {
  const bytes = points.bytes[i];
  const layer = points.layer[i];
  const category = data.categories[points.category[i]];
  const what = bytes === 0 ? 'library call' : `${bytes > 0 ? '+' : '−'}${size(bytes)} ${category}`;
  return {what, layer: layerName(layer), phase: phaseName(phaseOf[i])};
};
const showTip = () => {
  tip.hidden = cursor < 0;
  if (cursor < 0) return;
  const {what, layer, phase} = describe(cursor);
  const list = make('dl');
  const row = (title, bytes, colour) => {
    const term = make('dt');
    if (colour) { const swatch = make('span', null, {class: 'swatch'}); swatch.style.background = colour; term.append(swatch); }
    term.append(title);
    list.append(term, make('dd', size(bytes)));
  };
  for (let band = bands.length - 1; band >= 0; band -= 1) {
    if (stack[band][cursor] > 0) row(bands[band].title, stack[band][cursor], bands[band].colour);
  }
  row('Context and live tensors', total[cursor]);
  row('Context and reserved', data.context_bytes + reserved[cursor]);
  tip.replaceChildren(make('div', what, {class: 'what'}));
  if (layer) tip.append(make('div', layer, {class: 'what'}));
  tip.append(make('div', `${phase} · event ${count(event[cursor] + 1)} of ${count(data.events)}`, {class: 'soft'}), list);
  chart.setAttribute('aria-valuenow', String(cursor + 1));
  chart.setAttribute('aria-valuetext', `${what}${layer ? `, ${layer}` : ''}, ${phase}; ${size(total[cursor])} with the context, ${size(data.context_bytes + reserved[cursor])} reserved`);
};
const place = (px, plot) => {
  if (narrow()) return;
  const left = px + 16 + tip.offsetWidth < plot.x + plot.w ? px + 16 : px - 16 - tip.offsetWidth;
  tip.style.transform = `translate(${Math.max(0, left)}px, ${plot.y + 8}px)`;
};
const setCursor = (point) => {
  cursor = Math.min(n - 1, Math.max(0, point));
  if (cursor < first || cursor > last) {
    const shown = last - first;
    first = Math.max(0, Math.min(n - 1 - shown, cursor - Math.floor(shown / 2)));
    last = first + shown;
    maxima = null;
    markRange();
  }
  showTip();
  draw();
};
const setView = (from, to) => {
  const least = Math.min(19, n - 1);
  let begin = Math.max(0, Math.round(from));
  let end = Math.min(n - 1, Math.round(to));
  if (end - begin < least) {
    begin = Math.max(0, Math.min(Math.round((begin + end - least) / 2), n - 1 - least));
    end = begin + least;
  }
  first = begin;
  last = end;
  maxima = null;
  if (cursor < first || cursor > last) { cursor = -1; showTip(); }
  markRange();
  draw();
};
const zoom = (factor) => {
  const middle = cursor >= 0 ? cursor : (first + last) / 2;
  setView(middle - (middle - first) * factor, middle + (last - middle) * factor);
};

// Parts of the run as buttons.
const ranges = [{title: 'Whole run', first: 0, last: n - 1}];
data.phases.forEach((phase, index) => {
  const end = (index + 1 < data.phases.length ? data.phases[index + 1].first_point : n) - 1;
  const title = stepName(phase) || phase.phase;
  const known = ranges[ranges.length - 1];
  if (known.title.toLowerCase() === title) known.last = end;
  else ranges.push({title: title.charAt(0).toUpperCase() + title.slice(1), first: phase.first_point, last: end});
});
for (const range of ranges) {
  range.button = make('button', range.title, {type: 'button'});
  range.button.addEventListener('click', () => setView(range.first, range.last));
  at('ranges').append(range.button);
}
const markRange = () => {
  for (const range of ranges) range.button.setAttribute('aria-pressed', String(first === range.first && last === range.last));
};

// Mouse, touch, keys.
const pointAt = (clientX) => {
  const m = margin();
  const box = chart.getBoundingClientRect();
  const share = (clientX - box.left - m.left) / (box.width - m.left - m.right);
  return Math.min(last, Math.max(first, first + Math.floor(share * (last - first + 1))));
};
// Where several points share a column of pixels, the one that is drawn is told of.
const highestAt = (clientX) => {
  const from = pointAt(clientX);
  const to = Math.max(from, pointAt(clientX + 1) - 1);
  let best = from;
  for (let i = from; i <= to; i += 1) if (total[i] > total[best]) best = i;
  return best;
};
chart.addEventListener('pointermove', (move) => {
  if (drag) {
    drag.now = move.clientX - chart.getBoundingClientRect().left;
    drag.moved = drag.moved || Math.abs(drag.now - drag.x) > 5;
  }
  setCursor(highestAt(move.clientX));
});
chart.addEventListener('pointerleave', () => { if (!drag && !narrow() && document.activeElement !== chart) { cursor = -1; showTip(); draw(); } });
chart.addEventListener('pointerdown', (down) => {
  if (down.pointerType === 'mouse' && down.button === 0) {
    drag = {x: down.clientX - chart.getBoundingClientRect().left, begin: pointAt(down.clientX), moved: false};
    drag.now = drag.x;
  }
  setCursor(highestAt(down.clientX));
});
window.addEventListener('pointerup', (up) => {
  if (!drag) return;
  const {begin, moved} = drag;
  drag = null;
  if (!moved) return draw();
  const end = pointAt(up.clientX);
  setView(Math.min(begin, end), Math.max(begin, end));
});
chart.addEventListener('dblclick', () => setView(0, n - 1));
const actions = {
  ArrowLeft: (press) => setCursor((cursor < 0 ? first : cursor) - (press.shiftKey ? 50 : 1)),
  ArrowRight: (press) => setCursor((cursor < 0 ? first - 1 : cursor) + (press.shiftKey ? 50 : 1)),
  Home: () => setCursor(0),
  End: () => setCursor(n - 1),
  p: () => setCursor(data.peak.point),
  '+': () => zoom(0.5),
  '=': () => zoom(0.5),
  '-': () => zoom(2),
  0: () => setView(0, n - 1),
  Escape: () => { cursor = -1; showTip(); draw(); },
};
chart.addEventListener('keydown', (press) => {
  const action = actions[press.key.length === 1 ? press.key.toLowerCase() : press.key];
  if (!action || press.ctrlKey || press.metaKey || press.altKey) return;
  press.preventDefault();
  action(press);
});
chart.setAttribute('aria-valuemax', String(n));
chart.setAttribute('aria-valuenow', '1');
at('zoom-in').addEventListener('click', () => zoom(0.5));
at('zoom-out').addEventListener('click', () => zoom(2));
at('go-peak').addEventListener('click', () => { setCursor(data.peak.point); chart.focus(); });
at('whole-gpu').addEventListener('click', (click) => {
  whole = !whole;
  click.currentTarget.setAttribute('aria-pressed', String(whole));
  draw();
});
