// Runs where the first answer has just been read with the page (packaging/first_answer.mjs). A link asks for another one.
if (location.hash.length > 1) {
  document.getElementById('result').hidden = true;
  document.getElementById('status').textContent = 'Loading…';
} else {
  performance.mark('gpumem-answer');
}
// What makes the answers comes once this one is painted: it would take the processor from that. A page that is not
// looked at is not painted.
addEventListener('DOMContentLoaded', () => {
  let begun = false;
  const load = () => {
    if (begun) return;
    begun = true;
    for (const src of ['examples.js', 'app.js']) {
      const onerror = () => { document.getElementById('status').textContent = `The page cannot start: ${src} is not there.`; };
      document.head.append(Object.assign(document.createElement('script'), {src, onerror, async: false}));
    }
  };
  setTimeout(load, 150);
  try {
    new PerformanceObserver(load).observe({type: 'paint', buffered: true});
  } catch {
    // Not every browser tells of paints.
  }
});
