// Colours follow the page's, light or dark.
let colours = {};
const readColours = () => {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  for (const name of ['ink', 'soft', 'line', 'band', 'card', 'accent', 'reserved', 'capacity']) colours[name] = colour(name);
  for (const band of bands) band.colour = colour(`c-${band.key}`);
};

// View: points first..last (fractions while zooming are not needed), and the cursor.
let first = 0;
let last = n - 1;
let cursor = -1;
let whole = false;
let drag = null;
const canvas = at('canvas');
const chart = at('chart');
const context2d = canvas.getContext('2d');
const narrow = () => chart.clientWidth < 640;
const margin = () => ({left: narrow() ? 54 : 66, right: 12, top: 22, bottom: 44});

const niceStep = (most) => {
  let step = 1;
  while (step * 7 < most) step *= 2;
  return step;
};
const scale = () => {
  const high = Math.max(...columnMaxima(), 1);
  const capacity = data.gpu.capacity_bytes;
  const near = capacity <= high * 1.5;
  return {top: (whole || near ? Math.max(high, capacity) : high) * 1.08, near: whole || near};
};
let maxima = null;
const columnMaxima = () => {
  if (!maxima) {
    maxima = [0];
    for (let i = first; i <= last; i += 1) {
      const high = Math.max(total[i], data.context_bytes + reserved[i]);
      if (high > maxima[0]) maxima[0] = high;
    }
  }
  return maxima;
};

// What every part of the drawing needs: the canvas' context, the plot's place in it, and where points and bytes lie.
const viewNow = (ratio, width, height) => {
  const m = margin();
  const plot = {x: m.left, y: m.top, w: width - m.left - m.right, h: height - m.top - m.bottom};
  const {top, near} = scale();
  const shown = last - first + 1;
  return {
    c: context2d, plot, top, near, shown, ratio,
    y: (bytes) => plot.y + plot.h * (1 - bytes / top),
    x: (point) => plot.x + plot.w * (point - first) / shown,
  };
};

// Left and right of what lies between two points, cut at the plot's sides; nothing if it is not shown.
const spanOf = ({plot, x}, begin, end) =>
  (end <= first || begin > last ? null : [Math.max(x(begin), plot.x), Math.min(x(end), plot.x + plot.w)]);

const phaseEnd = (index) => (index + 1 < data.phases.length ? data.phases[index + 1].first_point : n);

// Bands behind, names below.
const drawPhases = (view) => {
  const {c, plot} = view;
  const short = {construction: 'constr.', forward: 'fwd', backward: 'bwd', optimizer: 'opt', validation: 'val', summary: 'sum.', batch: ''};
  data.phases.forEach((phase, index) => {
    const span = spanOf(view, phase.first_point, phaseEnd(index));
    if (!span) return;
    const [x0, x1] = span;
    if (index % 2 === 1) { c.fillStyle = colours.band; c.fillRect(x0, plot.y, x1 - x0, plot.h); }
    c.fillStyle = colours.line;
    c.fillRect(x0, plot.y, 1, plot.h + 6);
    c.fillStyle = colours.soft;
    c.textAlign = 'center';
    for (const name of [phase.phase, short[phase.phase]]) {
      if (name && c.measureText(name).width + 6 <= x1 - x0) { c.fillText(name, (x0 + x1) / 2, plot.y + plot.h + 16); break; }
    }
  });
};

// Phases of one step that follow each other.
const stepsShown = () => {
  const steps = [];
  data.phases.forEach((phase, index) => {
    const name = stepName(phase);
    const previous = steps[steps.length - 1];
    if (previous && previous.name === name && name) previous.end = phaseEnd(index);
    else if (name) steps.push({name, begin: phase.first_point, end: phaseEnd(index)});
  });
  return steps;
};

const drawSteps = (view) => {
  const {c, plot} = view;
  for (const step of stepsShown()) {
    const span = spanOf(view, step.begin, step.end);
    if (!span) continue;
    const [x0, x1] = span;
    c.fillStyle = colours.soft;
    c.fillRect(x0 + 1, plot.y + plot.h + 23, Math.max(x1 - x0 - 2, 1), 1);
    c.fillStyle = colours.ink;
    if (c.measureText(step.name).width + 6 <= x1 - x0) c.fillText(step.name, (x0 + x1) / 2, plot.y + plot.h + 37);
  }
};

const drawGrid = ({c, plot, top, y}) => {
  const unit = top >= 2 ** 31 ? 2 ** 30 : top >= 2 ** 21 ? 2 ** 20 : 2 ** 10;
  const unitName = {[2 ** 30]: 'GiB', [2 ** 20]: 'MiB', [2 ** 10]: 'KiB'}[unit];
  const step = niceStep(top / unit);
  c.textAlign = 'right';
  for (let value = 0; value * unit <= top; value += step) {
    c.fillStyle = colours.line;
    c.fillRect(plot.x, Math.round(y(value * unit)), plot.w, 1);
    c.fillStyle = colours.soft;
    c.fillText(value === 0 ? '0' : `${value} ${unitName}`, plot.x - 7, y(value * unit) + 4);
  }
};

// Of the points in one column of pixels: the highest, and the most that is reserved.
const columnAt = (column, columns, shown) => {
  const from = first + Math.floor(shown * column / columns);
  const to = Math.max(from, Math.min(last, first + Math.ceil(shown * (column + 1) / columns) - 1));
  let best = from;
  let held = 0;
  for (let i = from; i <= to; i += 1) {
    if (total[i] > total[best]) best = i;
    if (reserved[i] > held) held = reserved[i];
  }
  return {best, held};
};

// The categories, stacked, and the line of what is reserved above them.
const drawStack = ({c, plot, top, shown, ratio, y}) => {
  const columns = Math.max(1, Math.round(plot.w * ratio));
  const columnWidth = plot.w / columns;
  const line = [];
  for (let column = 0; column < columns; column += 1) {
    const {best, held} = columnAt(column, columns, shown);
    line.push(held);
    let ground = y(0);
    for (let band = 0; band < bands.length; band += 1) {
      const bytes = stack[band][best];
      if (bytes <= 0) continue;
      const rise = plot.h * bytes / top;
      c.fillStyle = bands[band].colour;
      c.fillRect(plot.x + column * columnWidth, ground - rise, columnWidth + 0.3, rise);
      ground -= rise;
    }
  }
  c.strokeStyle = colours.reserved;
  c.lineWidth = 1.6;
  c.beginPath();
  line.forEach((bytes, column) => {
    const height = y(data.context_bytes + bytes);
    c.lineTo(plot.x + column * columnWidth, height);
    c.lineTo(plot.x + (column + 1) * columnWidth, height);
  });
  c.stroke();
};

// The GPU's capacity: a line where it is in sight, else a word at the top.
const drawCapacity = ({c, plot, near, y}) => {
  c.strokeStyle = colours.capacity;
  c.fillStyle = colours.capacity;
  c.textAlign = 'left';
  const text = `${data.gpu.name}: ${size(data.gpu.capacity_bytes)}`;
  if (!near) {
    c.fillText(`↑ ${text}`, plot.x + 6, plot.y - 8);
    return;
  }
  const height = y(data.gpu.capacity_bytes);
  c.setLineDash([7, 5]);
  c.beginPath();
  c.moveTo(plot.x, height);
  c.lineTo(plot.x + plot.w, height);
  c.stroke();
  c.setLineDash([]);
  c.fillText(text, plot.x + 6, height - 6);
};

const peakText = () => {
  let where = data.peak.layer >= 0 ? data.layers[data.peak.layer][0] : data.peak.phase;
  if (where.length > 44) where = `…${where.slice(-43)}`;
  return `peak ${size(total[data.peak.point])}${where ? `, ${where}` : ''}`;
};

const drawPeak = ({c, plot, x, y}) => {
  const peak = data.peak.point;
  if (peak < first || peak > last) return;
  const px = x(peak + 0.5);
  const text = peakText();
  const width = c.measureText(text).width;
  c.fillStyle = colours.card;
  c.strokeStyle = colours.ink;
  c.lineWidth = 1.6;
  c.beginPath();
  c.arc(px, y(total[peak]), 4, 0, 2 * Math.PI);
  c.fill();
  c.stroke();
  const tx = Math.max(plot.x + 2, Math.min(px + 12, plot.x + plot.w - width - 4));
  const ty = Math.max(plot.y + 11, y(data.context_bytes + data.peak.reserved_bytes) - 9);
  c.globalAlpha = 0.85;
  c.fillStyle = colours.card;
  c.fillRect(tx - 4, ty - 12, width + 8, 17);
  c.globalAlpha = 1;
  c.fillStyle = colours.ink;
  c.textAlign = 'left';
  c.fillText(text, tx, ty);
};

// What the pointer marks: the part to zoom into, and the cursor with its tip.
const drawPointer = ({c, plot, x}) => {
  if (drag && drag.moved) {
    c.globalAlpha = 0.18;
    c.fillStyle = colours.accent;
    c.fillRect(Math.min(drag.x, drag.now), plot.y, Math.abs(drag.now - drag.x), plot.h);
    c.globalAlpha = 1;
  }
  if (cursor >= first && cursor <= last) {
    c.fillStyle = colours.ink;
    c.fillRect(Math.round(x(cursor + 0.5)), plot.y, 1, plot.h);
    place(x(cursor + 0.5), plot);
  }
};

const clearCanvas = (ratio, width, height) => {
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  canvas.style.height = `${height}px`;
  context2d.setTransform(ratio, 0, 0, ratio, 0, 0);
  context2d.clearRect(0, 0, width, height);
  context2d.font = '12px system-ui, "Segoe UI", Roboto, sans-serif';
};

const draw = () => {
  const ratio = Math.max(1, window.devicePixelRatio || 1);
  const width = chart.clientWidth;
  const height = narrow() ? 330 : 430;
  clearCanvas(ratio, width, height);
  const view = viewNow(ratio, width, height);
  for (const part of [drawPhases, drawSteps, drawGrid, drawStack, drawCapacity, drawPeak, drawPointer]) part(view);
};

const tip = at('tip');
