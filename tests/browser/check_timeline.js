// Appended to a copy of a timeline page: uses it as a person would, and leaves what went wrong in #verdict.
window.addEventListener('load', () => {
  const faults = [...window.faults];
  const check = (holds, what) => { if (!holds) faults.push(what); };
  const data = JSON.parse(document.getElementById('data').textContent);
  const chart = document.getElementById('chart');
  const tip = document.getElementById('tip');
  const box = chart.getBoundingClientRect();
  const pointer = (type, share) => chart.dispatchEvent(new PointerEvent(type, {
    bubbles: true, pointerType: 'mouse', button: 0, clientX: box.left + share * box.width, clientY: box.top + 60,
  }));
  const key = (name, more = {}) => chart.dispatchEvent(new KeyboardEvent('keydown', {key: name, bubbles: true, ...more}));
  const now = () => Number(chart.getAttribute('aria-valuenow'));
  try {
    check(document.title.startsWith('gpumem timeline'), `title: ${document.title}`);
    check(document.querySelectorAll('#figures b').length === 4, 'four figures');
    check(document.querySelectorAll('#parts tbody tr').length >= 3, 'parts of the peak');
    const rows = document.querySelectorAll('#holders tbody tr').length;
    check(rows === data.holders.length + (data.holders_left_out > 0 ? 1 : 0), `${rows} rows of layers`);
    check(tip.hidden, 'no tooltip before the mouse comes');
    pointer('pointermove', 0.5);
    check(!tip.hidden, 'a tooltip under the mouse');
    check(/ [KMGT]?i?B /.test(tip.textContent), `bytes in the tooltip: ${tip.textContent}`);
    check(tip.textContent.includes(` of ${data.events.toLocaleString('en-US')}`), `event in the tooltip: ${tip.textContent}`);
    check(data.phases.some((phase) => tip.textContent.includes(phase.phase)), `phase in the tooltip: ${tip.textContent}`);
    pointer('pointerleave', 0.5);
    // On a phone it stands below the chart, and stays.
    check(tip.hidden === (window.innerWidth > 640), 'no tooltip when the mouse has gone');
    chart.focus();
    key('p');
    check(now() === data.peak.point + 1, `P goes to the peak: ${now()}`);
    if (data.peak.layer >= 0) {
      const [path, kind] = data.layers[data.peak.layer];
      check(tip.textContent.includes(path) && tip.textContent.includes(kind), `the peak's layer: ${tip.textContent}`);
    }
    key('Home');
    check(now() === 1, `Home: ${now()}`);
    key('ArrowRight');
    check(now() === 2, `right: ${now()}`);
    key('ArrowLeft');
    key('ArrowLeft');
    check(now() === 1, `left stops at the first: ${now()}`);
    key('End');
    check(now() === data.points.event.length, `End: ${now()}`);
    check(chart.getAttribute('aria-valuetext').length > 10, 'the cursor is told to screen readers');
    key('+');
    check(document.querySelectorAll('#ranges [aria-pressed="true"]').length === 0, 'zoomed in');
    key('0');
    check(document.querySelectorAll('#ranges [aria-pressed="true"]').length >= 1, 'zoomed out');
    pointer('pointerdown', 0.3);
    pointer('pointermove', 0.6);
    window.dispatchEvent(new PointerEvent('pointerup', {clientX: box.left + 0.6 * box.width}));
    check(document.querySelectorAll('#ranges [aria-pressed="true"]').length === 0, 'dragged into a part');
    chart.dispatchEvent(new MouseEvent('dblclick', {bubbles: true}));
    for (const button of document.querySelectorAll('button')) button.click();
    const canvas = document.getElementById('canvas');
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    const colours = new Set();
    for (let i = 0; i < pixels.length; i += 4 * 97) colours.add(`${pixels[i]},${pixels[i + 1]},${pixels[i + 2]}`);
    check(colours.size > 5, `the chart is drawn: ${colours.size} colours`);
    check(document.documentElement.scrollWidth <= window.innerWidth, 'nothing stands out on the right');
    check(window.pwned === undefined, 'no text of the model has run');
    check(document.querySelectorAll('img, iframe, object, a').length === 0, 'no text of the model is markup');
  } catch (error) {
    faults.push(String(error.stack || error));
  }
  const verdict = document.createElement('pre');
  verdict.id = 'verdict';
  verdict.textContent = [...faults, ...window.faults].length === 0 ? 'PAGE-OK' : `PAGE-FAULTS ${[...faults, ...window.faults].join(' | ')}`;
  document.body.append(verdict);
});
