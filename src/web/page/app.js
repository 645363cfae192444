// Puts the parts together: what changes, what is asked then, and what is shown.
const LARGEST_MODEL = 256 * 2 ** 20;
const LONGEST_SHOWN = 400000;
const FIRST_PLAN = {global_batch: 512, framework: 'any'};
let model = {name: 'pasted.txt', bytes: new Uint8Array()};
let chosen = 0;   // how often a model was
let searched = null;  // {model, text, running}: the search for layouts that runs, or whose layouts are shown
let wanted = 0;   // how often something changed
let links = 0;
let busy = false;

const settled = (milliseconds, action) => {
  let timer = 0;
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(action, milliseconds);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
};

const nameOf = (text) => (text.trimStart().startsWith('{') ? 'pasted.json' : 'pasted.txt');
const typed = settled(200, () => {
  setText(nameOf(at('text').value), at('text').value);
  changed();
});
// What was typed just before is no more.
const showModel = (text) => {
  typed.cancel();
  at('text').value = text;
  at('text').readOnly = false;
};
const take = (taken, example, note) => {
  chosen += 1;
  model = taken;
  at('example').value = example;
  at('published').value = '';
  at('model-note').textContent = note;
};
const setExample = (id) => {
  const example = GPUMEM_EXAMPLES.find((one) => one.id === id);
  if (!example) return false;
  take({name: example.name, bytes: new TextEncoder().encode(example.text), example: id}, id, '');
  showModel(example.text);
  return true;
};
const takeText = (name, text, note) => take({name, bytes: new TextEncoder().encode(text)}, '', note);
const setText = (name, text) => takeText(name, text, fillTokens(text));
// A config says no number of tokens: one is filled in where there is none.
const USUAL_TOKENS = 2048;
const fillTokens = (text) => {
  const entry = fields.get('seq_length');
  if (!/"(vocab_size|text_config)"\s*:/.test(text) || valueOf(entry) !== undefined) return '';
  setField(entry, USUAL_TOKENS);
  return `${count(USUAL_TOKENS)} tokens a sample are filled in.`;
};
// Its sizes are in the engine; the name is all that it needs.
const setPublished = (name) => {
  const known = published.get(name.toLowerCase());
  if (!known) return false;
  take({name: known.name, bytes: new Uint8Array(), published: true}, '', `${count(known.parameters)} parameters, as published.`);
  showModel('');
  at('published').value = known.name;
  setField(fields.get('batch_size'), 1);
  if (known.tokens && valueOf(fields.get('seq_length')) === undefined) setField(fields.get('seq_length'), USUAL_TOKENS);
  return true;
};
const published = new Map();  // lower case → {name, parameters, tokens}
// Options as the library names them: {"fused": "true"}.
const chooseOptions = (settings) => {
  for (const [name, value] of Object.entries(settings)) {
    const entry = fields.get(name);
    if (entry) setField(entry, entry.option.type === 'flag' ? value === 'true' : value);
  }
  changed();
};

const setFile = async (file) => {
  const note = at('model-note');
  note.textContent = `Reading ${file.name}…`;
  chosen += 1;
  const own = chosen;
  try {
    let bytes = new Uint8Array(await file.arrayBuffer());
    if (bytes[0] === 0x1f && bytes[1] === 0x8b) bytes = await through(bytes, new DecompressionStream('gzip'), LARGEST_MODEL);
    if (bytes.length > LARGEST_MODEL) throw new Error('is larger than 256 MiB');
    if (own !== chosen) return;
    const shown = bytes.length <= LONGEST_SHOWN;
    take({name: file.name, bytes}, '', `${file.name}, ${count(bytes.length)} bytes${shown ? '' : '. It is too long to be shown here'}. ${shown ? fillTokens(new TextDecoder().decode(bytes)) : ''}`.trim());
    showModel(shown ? new TextDecoder().decode(bytes) : '');
    at('text').readOnly = !shown;
    changed();
  } catch (error) {
    if (own === chosen) note.textContent = `${file.name}: ${error.message}.`;
  }
};

const goToLine = (line) => {
  const lines = at('text').value.split('\n');
  const begin = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  const box = at('text');
  box.focus();
  box.setSelectionRange(begin, begin + (lines[line - 1] || '').length);
  box.scrollTop = Math.max(0, (line - 3) * parseFloat(getComputedStyle(box).lineHeight));
};

// Packing takes its time: a link that was overtaken by another is not written into the address.
const keepLink = async () => {
  links += 1;
  const own = links;
  const {link, note} = await linkOf(model, readJob(), readPlan(), searched !== null && !searched.running);
  if (own === links) {
    history.replaceState(null, '', `#${link}`);
    at('link-note').textContent = note;
  }
  return new URL(`#${link}`, location.href).href;
};

const shownFault = (reply) => {
  const field = markFaults(reply.says, reply.error ? reply.error.message : '') || markFaults(reply.says, reply.says);
  showFault(at('fault'), reply.says, reply.error, model.bytes.length <= LONGEST_SHOWN ? goToLine : null, field);
  at('result').hidden = true;
  at('status').textContent = '';
};

// One round of questions. It ends where something changed meanwhile.
const answerAll = async (round) => {
  const job = readJob();
  const now = model;
  const current = () => round === wanted;
  at('command').textContent = commandOf(now, job);
  const reply = await Engine.ask('estimate', now, job);
  if (!current()) return;
  if (!reply.text) {
    shownFault(reply);
    return;
  }
  const verdict = showEstimate(reply);
  const {batch_size: ignored, ...rest} = job;
  const fit = await Engine.ask('fit', now, rest);
  if (!current()) return;
  showFit(fit);
  if (verdict !== 'fits') {
    const advice = await Engine.ask('advise', now, job);
    if (!current()) return;
    showAdvice(advice);
  }
  const timeline = await Engine.ask('timeline', now, job);
  if (!current()) return;
  showTimeline(timeline);
  await showCurve({model: now, job, fit: fit.text ? JSON.parse(fit.text) : {}, current});
};

const run = async () => {
  if (busy) return;
  busy = true;
  for (let done = -1; done !== wanted;) {
    done = wanted;
    try {
      await answerAll(done);
    } catch (error) {
      // A search that is stopped takes the engine with it: what else was asked is asked again.
      if (error.message === STOPPED) done = -1;
      else shownFault({says: `The computation failed: ${error.message}. The command line may have the answer.`});
    }
  }
  busy = false;
};

// What a search for layouts is asked. A job's batch is no part of it: the search has the global one.
const searchOf = () => {
  const {batch_size: ignored, ...job} = readJob();
  return {job, plan: readPlan()};
};
const clearLayouts = (status) => {
  for (const id of ['plan-scroll', 'plan-fault', 'plan-stop']) hide(id);
  at('settings').replaceChildren();
  at('plan-status').textContent = status;
};
// A search of something else than what stands in the fields now is ended, and its layouts are taken away.
const keepLayouts = () => {
  if (!searched || (searched.model === model && searched.text === JSON.stringify(searchOf()))) return;
  const {running} = searched;
  searched = null;
  clearLayouts('The job has changed. Search again.');
  if (running) Engine.end(STOPPED);
};
const askAgain = () => {
  wanted += 1;
  at('result').classList.add('stale');
  const more = [...at('more-options').querySelectorAll('input, select')].map((element) => fields.get(element.id.slice(2)));
  const set = more.filter((entry) => entry && valueOf(entry) !== undefined).length;
  at('more-count').textContent = set > 0 ? `(${set} set)` : '';
  keepLink();
  run();
};
const changed = () => {
  keepLayouts();
  clearServer('');
  clearGpus('');
  askAgain();
};

const findLayouts = async () => {
  if (searched && searched.running) return;
  const {job, plan} = searchOf();
  const own = {model, text: JSON.stringify({job, plan}), running: true};
  searched = own;
  clearLayouts('Searching…');
  at('plan-stop').hidden = false;
  Engine.onProgress = (done, all) => { at('plan-status').textContent = `Searching: ${count(done)} of ${count(all)} layouts`; };
  try {
    const reply = await Engine.ask('plan', model, job, {plan});
    own.running = false;
    keepLayouts();
    if (own !== searched) return;
    hide('plan-stop');
    if (reply.text) showPlan(reply);
    if (reply.says) {
      clearLayouts('');
      showFault(at('plan-fault'), reply.says);
    }
    keepLink();
  } catch (error) {
    if (own !== searched) return;
    searched = null;
    clearLayouts(`Ended: ${error.message}.`);
  }
};

const copy = async (button, text) => {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = 'Copied';
  } catch {
    button.textContent = 'Not allowed: copy it by hand';
  }
  setTimeout(() => { button.textContent = before; }, 2000);
};

const listenToDrops = () => {
  const over = (event) => {
    if (![...event.dataTransfer.types].includes('Files')) return;
    event.preventDefault();
    at('drop').hidden = false;
  };
  addEventListener('dragover', over);
  addEventListener('dragleave', (event) => { if (event.relatedTarget === null) hide('drop'); });
  addEventListener('drop', (event) => {
    hide('drop');
    const {files} = event.dataTransfer;
    if (files.length === 0) return;
    event.preventDefault();
    setFile(files[0]).then(() => { if (files.length > 1) at('model-note').textContent += ` ${files[1].name} is not read: the page takes one file.`; });
  });
};

const listen = () => {
  const later = settled(120, changed);
  at('job').addEventListener('submit', (event) => event.preventDefault());
  at('job').addEventListener('reset', () => setTimeout(() => { writeJob({batch_size: 1}); writePlan(FIRST_PLAN); changed(); }));
  for (const id of ['main-options', 'layout-options', 'more-options']) {
    at(id).addEventListener('input', later);
    at(id).addEventListener('change', later);
  }
  at('text').addEventListener('input', typed);
  at('example').addEventListener('change', () => {
    if (!setExample(at('example').value)) return;
    writeJob(GPUMEM_EXAMPLES.find((one) => one.id === at('example').value).job);
    changed();
  });
  at('published').addEventListener('change', () => {
    const name = at('published').value.trim();
    if (setPublished(name)) changed();
    else if (name !== '') at('model-note').textContent = `gpumem does not know ${name}. Paste its config.json.`;
  });
  at('gpus-go').addEventListener('click', () => {
    const {gpu: ignored, ...job} = readJob();
    compareGpus(model, job);
  });
  at('compare-keep').addEventListener('click', keepJob);
  at('compare-drop').addEventListener('click', dropJob);
  at('file').addEventListener('change', () => {
    if (at('file').files.length > 0) setFile(at('file').files[0]);
    at('file').value = '';  // or the same file, once it was edited, could not be chosen again
  });
  at('curve-axis').addEventListener('change', () => { if (curveAsked) showCurve({...curveAsked}).catch(askAgain); });
  at('plan-fields').addEventListener('input', keepLayouts);
  at('plan-fields').addEventListener('change', keepLink);
  at('plan-go').addEventListener('click', findLayouts);
  at('serve-go').addEventListener('click', () => estimateServer(model, readJob()));
  at('serve-fields').addEventListener('input', () => clearServer(''));
  at('plan-stop').addEventListener('click', () => Engine.end(STOPPED));
  at('copy-command').addEventListener('click', () => copy(at('copy-command'), at('command').textContent));
  at('copy-link').addEventListener('click', async () => copy(at('copy-link'), await keepLink()));
  addEventListener('hashchange', restore);
  listenToDrops();
};

// Writes what the address says into the fields; without it, the first example. Returns whether layouts are to be
// searched; undefined: the address changed meanwhile.
const writeState = async () => {
  links += 1;  // one that is being packed would be written over the address
  const fragment = location.hash;
  const state = await stateOf(fragment);
  if (fragment !== location.hash) return undefined;
  const first = GPUMEM_EXAMPLES[0];
  if (!state || !((state.example && setExample(state.example)) || (state.published && setPublished(String(state.published))))) {
    if (state && typeof state.text === 'string') {
      takeText(String(state.name || nameOf(state.text)), state.text, '');  // the link's job says its tokens
      showModel(state.text);
    } else if (!state) setExample(first.id);
    else at('model-note').textContent = `This link has no model. Paste ${state.name || 'it'} or choose its file.`;
  }
  writeJob(state ? state.job : first.job);
  writePlan(state && state.plan ? state.plan : FIRST_PLAN);
  return Boolean(state && state.planned);
};
const restore = async () => {
  const planned = await writeState();
  if (planned === undefined) return;
  changed();
  if (planned) findLayouts();
};

// Before the engine is there, what was made with the page: the first example's answer, which is in the HTML already, and
// then the form.
const showFirst = () => {
  const {about, reply} = GPUMEM_FIRST;
  for (const option of about.options) optionNamed.set(option.name, option);
  if (location.hash.length <= 1) showEstimate(reply);
};
const showForm = () => {
  const {about} = GPUMEM_FIRST;
  at('example').append(make('option', 'Your own', {value: ''}));
  for (const {id, title} of GPUMEM_EXAMPLES) at('example').append(make('option', title, {value: id}));
  for (const one of about.models) {
    published.set(one.name.toLowerCase(), one);
    at('published-names').append(make('option', `${(one.parameters / 1e9).toPrecision(3)} billion parameters`, {value: one.name}));
  }
  makeForm(about);
  at('version').textContent = about.version;
  if (location.hash.length > 1) return;
  setExample(GPUMEM_EXAMPLES[0].id);
  writeJob(GPUMEM_EXAMPLES[0].job);
  writePlan(FIRST_PLAN);
  at('command').textContent = commandOf(model, readJob());
};
// What is done before the engine is there stays, and is asked then.
const begin = async () => {
  showForm();
  listen();
  try {
    const planned = location.hash.length > 1 && await writeState();
    await Engine.start();
    if (wanted > 0) return;
    askAgain();
    if (planned) findLayouts();
  } catch (error) {
    at('status').textContent = `The page cannot start: ${error.message}. It needs a browser with WebAssembly.`;
  }
};
showFirst();
begin();
