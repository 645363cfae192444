// Uses the page in headless Chromium as people do, and holds what it shows to what the command line says.
//   node tests/web/page.mjs GPUMEM PAGE [PICTURES]   PICTURES: keep screenshots there
// Exit code 77 (skipped) where there is no Chromium.
import {spawnSync} from 'node:child_process';
import {mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join, resolve} from 'node:path';
import {fileURLToPath} from 'node:url';
import {gzipSync} from 'node:zlib';
import {Browser, findChromium, holding, servedFrom} from './browser.mjs';
import {contrastFaults, namelessControls} from './accessibility.mjs';
import {curveTests} from './curve.mjs';
import {firstAnswerTests} from './first_answer.mjs';

const [programPath, folder, pictures] = process.argv.slice(2);
const program = resolve(programPath);
const root = fileURLToPath(new URL('../..', import.meta.url));
const chromium = findChromium();
if (!chromium) {
  console.error('no Chromium is installed: skipped');
  process.exit(77);
}
const faults = [];
const check = (holds, what) => { if (!holds) faults.push(what); };
const same = (found, wanted, what) => check(found === wanted, `${what}: ${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`);
const answerOf = (...words) => JSON.parse(spawnSync(program, [...words, '--json'], {cwd: root, encoding: 'utf8', maxBuffer: 2 ** 28}).stdout);

const {server, asked, address} = await servedFrom(folder);
const browser = new Browser(chromium);
const scratch = mkdtempSync(join(tmpdir(), 'gpumem-page-'));

const el = (id) => `document.getElementById('${id}')`;
// All three answers are there, and are of the same job.
const READY = `${el('result')}.hidden === false && !${el('result')}.classList.contains('stale') && ${el('timeline')}.hidden === false
  && !document.querySelector('.stale')`;
const shown = (page, title) => page.value(`Number([...document.querySelectorAll('#figures div')].find((pair) => pair.firstChild.textContent === '${title}').lastChild.dataset.bytes)`);
const text = (page, id) => page.value(`${el(id)}.textContent`);
const picture = async (page, name, whole = true) => { if (pictures) await page.picture(join(pictures, `${name}.png`), whole); };
const set = (page, id, value, event = 'change') => page.value(`(() => { const e = ${el(id)}; e.value = ${JSON.stringify(value)}; e.dispatchEvent(new Event('${event}', {bubbles: true})); })()`);
const milliseconds = async (page) => Number(/(\d+) ms/.exec(await text(page, 'status'))[1]);
const paste = (page, model) => set(page, 'text', model, 'input');
const usual = async (page) => { await page.until(READY); };
const pause = (time) => new Promise((done) => { setTimeout(done, time); });
// Questions of this kind do not reach the engine until window.held is called.
const hold = (page, verb) => page.value(holding(`message.verb === '${verb}'`));
if (pictures) mkdirSync(pictures, {recursive: true});

const LLAMA = readFileSync(join(root, 'src/web/examples/llama3_8b.json'), 'utf8');
const LLAMA_WORDS = ['src/web/examples/llama3_8b.json', '--batch', '1', '--seq', '4096', '--gpu', 'h100-80gb', '--precision', 'bf16-mixed',
  '--optimizer', 'adamw', '--data-parallel', '64', '--sharding', 'fsdp2', '--checkpointing'];

const tests = {
  async 'the first answer is the command line\'s, and only the page\'s own files are asked for'() {
    const page = await browser.open(address);
    await usual(page);
    const {estimates: [wanted]} = answerOf('estimate', 'models/summaries/resnet50.torchsummary.txt', '--batch', '32');
    for (const [title, field] of [['Expected', 'expected_bytes'], ['Lower', 'lower_bytes'], ['Upper', 'upper_bytes'], ['Reserved', 'reserved_bytes']]) {
      same(await shown(page, title), wanted[field], title);
    }
    same(await text(page, 'largest-batch'), String(answerOf('fit', 'models/summaries/resnet50.torchsummary.txt').largest_batch), 'largest batch');
    check((await text(page, 'verdict')).startsWith('Fits: 3.96 GiB'), `verdict: ${await text(page, 'verdict')}`);
    same(await page.value("document.querySelectorAll('#parts tbody tr').length"), 7, 'parts');
    await page.until(`${el('timeline')}.contentDocument?.querySelectorAll('#holders tbody tr').length > 3`);
    const foreign = page.requests.filter((url) => !url.startsWith(address) && !/^(blob|data|about):/.test(url));
    same(foreign.join(' '), '', 'requests elsewhere');
    same(asked.map((url) => url.slice(1)).sort().join(' '), ' app.js engine.js examples.js', 'files that are asked for');
    const licences = await (await fetch(await page.value("document.querySelector('footer a').href"))).text();
    for (const name of ['Eigen', 'JSON for Modern C++', 'musl']) check(licences.includes(name), `the page's licences do not name ${name}`);
    await picture(page, 'light');
    same(page.faults.join(' | '), '', 'console');
    await page.close();
  },
  async 'no script can send anything away'() {
    const page = await browser.open(address);
    await usual(page);
    const before = asked.length;
    const tried = await page.value(`(async () => {
      const sent = [];
      await fetch('/away?1').then(() => sent.push('fetch'), () => {});
      await fetch('https://example.com/').then(() => sent.push('fetch elsewhere'), () => {});
      if (navigator.sendBeacon('/away?2', 'x')) await new Promise((done) => setTimeout(done, 200));
      try { const request = new XMLHttpRequest(); request.open('GET', '/away?3', false); request.send(); sent.push('request'); } catch {}
      try { new WebSocket('ws://' + location.host); await new Promise((done) => setTimeout(done, 100)); } catch {}
      const image = new Image(); image.src = '/away?4'; await new Promise((done) => { image.onload = done; image.onerror = done; });
      const form = document.createElement('form'); form.action = '/away?5'; document.body.append(form); form.submit();
      const inner = ${el('timeline')}.contentWindow;
      await inner.fetch('/away?6').then(() => sent.push('frame'), () => {});
      const worker = new Worker(URL.createObjectURL(new Blob(["fetch('" + location.origin + "/away?7').then(() => postMessage(1), () => postMessage(0))"])));
      await new Promise((done) => { worker.onmessage = ({data}) => { if (data) sent.push('worker'); done(); }; });
      await new Promise((done) => setTimeout(done, 200));
      return sent.join(', ');
    })()`);
    same(tried, '', 'what was sent');
    same(asked.slice(before).join(' '), '', 'what arrived');
    await page.close();
  },
  async 'an answer can be sent as a link'() {
    const page = await browser.open(address);
    await usual(page);
    await set(page, 'example', 'llama3-8b-fsdp2');
    await page.until(`${el('headline')}.textContent.startsWith('llama3_8b') && ${READY}`);
    const {estimates: [wanted]} = answerOf('estimate', ...LLAMA_WORDS);
    same(await shown(page, 'Expected'), wanted.expected_bytes, 'of the example');
    // A text of one's own, an option with a number, and one of the others.
    await paste(page, LLAMA.replace('"num_hidden_layers": 32', '"num_hidden_layers": 30'));
    await set(page, 'o-checkpointing', 'every:N');
    await set(page, 'o-checkpointing-n', '3', 'input');
    await set(page, 'o-loop', 'hf-trainer');
    await page.until(`${el('headline')}.textContent.startsWith('pasted.json') && ${el('command')}.textContent.includes('every:3') && ${el('command')}.textContent.includes('hf-trainer') && ${READY}`);
    const [figure, words, link] = [await shown(page, 'Expected'), await text(page, 'command'), await page.value('location.href')];
    check(figure !== wanted.expected_bytes, 'another model has another figure');
    check(link.length < 3000, `the link has ${link.length} characters`);
    const other = await browser.open(link);
    await usual(other);
    same(await shown(other, 'Expected'), figure, 'of the link');
    same(await text(other, 'command'), words, 'command of the link');
    same(await text(other, 'model-note'), '', 'a link fills nothing in');
    same(await other.value(`${el('text')}.value`), await page.value(`${el('text')}.value`), 'text of the link');
    check(!asked.some((url) => url.includes('#') || url.length > 40), 'the fragment went to the server');
    await other.close();
    // A link to nothing is no fault.
    const broken = await browser.open(`${address}#nonsense`);
    await usual(broken);
    check((await text(broken, 'headline')).startsWith('resnet50'), 'a broken link shows the first example');
    for (const one of [page, broken]) await one.close();
  },
  async 'what is done before the engine is there stays'() {
    const page = await browser.open('about:blank');
    await page.send('Page.addScriptToEvaluateOnNewDocument', {source: holding("message.task === 'load'")});
    await page.send('Page.navigate', {url: address});
    await page.until('window.held?.length === 1');
    await paste(page, LLAMA);
    await set(page, 'p-global_batch', '64', 'input');
    await pause(400);
    await page.value('window.held[0]()');
    await page.until(`${el('headline')}.textContent.startsWith('pasted.json') && ${READY}`);
    same(await page.value(`${el('text')}.value`), LLAMA, 'the text');
    same(await page.value(`${el('p-global_batch')}.value`), '64', 'the search');
    same(page.faults.join(' | '), '', 'console');
    await page.close();
  },
  async 'a model that is too long for a link is said to be'() {
    const page = await browser.open(address);
    await usual(page);
    // Names that do not pack.
    let seed = 7;
    const noise = () => { seed = (seed * 1103515245 + 12345) % 2 ** 31; return seed.toString(36); };
    const layers = Array.from({length: 4000}, (_, at) => ({name: `${noise()}${noise()}${at}`, op: 'relu', inputs: [at === 0 ? 'x' : '']}));
    layers.forEach((layer, at) => { if (at > 0) layer.inputs = [layers[at - 1].name]; });
    await paste(page, JSON.stringify({format: 'gpumem-graph', version: 1, inputs: [{name: 'x', shape: ['N', 8], dtype: 'float32'}], nodes: layers}));
    await page.until(`${el('link-note')}.textContent.includes('too large for a link')`);
    await page.close();
  },
  async 'the keyboard alone is enough'() {
    const page = await browser.open(address);
    await usual(page);
    const active = () => page.value('document.activeElement.id');
    const tabTo = async (id) => {
      for (let tabs = 0; tabs < 90; tabs += 1) {
        await page.key('Tab');
        if (await active() === id) return;
      }
      throw new Error(`no tab leads to ${id}`);
    };
    await page.key('Tab');
    same(await page.value('document.activeElement.className'), 'skip', 'the first stop');
    await tabTo('text');
    await page.send('Input.dispatchKeyEvent', {type: 'keyDown', key: 'a', code: 'KeyA', modifiers: 2, commands: ['selectAll']});
    await page.type(LLAMA);
    await tabTo('o-batch_size');
    await page.send('Input.dispatchKeyEvent', {type: 'keyDown', key: 'a', code: 'KeyA', modifiers: 2, commands: ['selectAll']});
    await page.type('2');
    await tabTo('o-seq_length');
    await page.send('Input.dispatchKeyEvent', {type: 'keyDown', key: 'a', code: 'KeyA', modifiers: 2, commands: ['selectAll']});
    await page.type('1024');
    await page.until(`/^pasted.json.*batch 2, 1,024 tokens/.test(${el('headline')}.textContent) && ${READY}`);
    const {estimates: [wanted]} = answerOf('estimate', 'src/web/examples/llama3_8b.json', '--batch', '2', '--seq', '1024');
    same(await shown(page, 'Expected'), wanted.expected_bytes, 'typed');
    await page.value(`${el('more')}.querySelector('summary').focus()`);
    await page.key('Enter');
    await page.until(`${el('more')}.open`);
    same(await page.value(`getComputedStyle(document.activeElement).outlineStyle`), 'solid', 'the focus is seen');
    await page.value(`${el('p-gpus')}.focus()`);
    await page.type('16');
    await tabTo('plan-go');
    await page.key('Enter');
    await page.until(`!${el('plan-scroll')}.hidden`);
    const plan = answerOf('plan', 'src/web/examples/llama3_8b.json', '--seq', '1024', '--gpus', '16', '--global-batch', '512');
    same(await page.value("document.querySelectorAll('#plan tbody tr').length"), plan.layouts.length, 'layouts');
    same(await page.value("document.querySelector('#plan tbody tr').cells[3].textContent"), (plan.layouts[0].estimate.expected_bytes / 2 ** 30).toFixed(2), 'the first layout');
    await picture(page, 'plan');
    await page.value(`${el('serve-go')}.click()`);
    await page.until(`!${el('served')}.hidden`);
    const server = answerOf('serve', 'src/web/examples/llama3_8b.json', '--max-model-len', '8192');
    same(await page.value("document.querySelector('#serve-parts tr:nth-child(2)').cells[1].textContent"), `${(server.weights_bytes / 2 ** 30).toFixed(2)} GiB`, 'the weights of a server');
    same(await page.value(`${el('serve-verdict')}.textContent.startsWith('It starts') === ${server.starts}`), true, 'whether the server starts');
    await picture(page, 'serve');
    // The link holds that it was asked for.
    const other = await browser.open(await page.value('location.href'));
    await other.until(`!${el('plan-scroll')}.hidden`);
    same(await text(other, 'plan'), await text(page, 'plan'), 'the plan of the link');
    for (const one of [page, other]) await one.close();
  },
  async 'an error names its place and leads there'() {
    const page = await browser.open(address);
    await usual(page);
    const summary = readFileSync(join(root, 'models/summaries/resnet50.torchsummary.txt'), 'utf8').replace('64, 112, 112', '64, 112, -112');
    await paste(page, summary);
    await page.until(`!${el('fault')}.hidden`);
    writeFileSync(join(scratch, 'pasted.txt'), summary);
    const {stderr} = spawnSync(program, ['estimate', 'pasted.txt', '--batch', '32'], {cwd: scratch, encoding: 'utf8'});
    same(`gpumem: error: ${await page.value("document.querySelector('#fault p').textContent")}\n`, stderr, 'the message');
    same(await page.value(`${el('fault')}.getAttribute('role')`), 'alert', 'it is told to screen readers');
    await page.value("document.querySelector('#fault button').click()");
    const line = Number(/Show line (\d+)/.exec(await text(page, 'fault'))[1]);
    same(await page.value(`(() => { const box = ${el('text')}; return box.value.slice(box.selectionStart, box.selectionEnd); })()`), summary.split('\n')[line - 1], 'the line');
    await picture(page, 'error', false);
    await paste(page, readFileSync(join(root, 'tests/browser/hostile.json'), 'utf8'));
    await page.until(`${el('headline')}.textContent.startsWith('pasted.json') && ${READY}`);
    same(await page.value("window.pwned === undefined && document.querySelectorAll('img, object, iframe').length"), 1, 'a hostile model is text');
    await page.close();
  },
  async 'files are read, packed ones as well'() {
    const page = await browser.open(address);
    await usual(page);
    const packed = join(scratch, 'vit.json.gz');
    writeFileSync(packed, gzipSync(readFileSync(join(root, 'models/graphs/vit_b_16.json'))));
    const {root: documentNode} = await page.send('DOM.getDocument');
    const {nodeId} = await page.send('DOM.querySelector', {nodeId: documentNode.nodeId, selector: '#file'});
    await page.send('DOM.setFileInputFiles', {nodeId, files: [packed]});
    await page.until(`${el('headline')}.textContent.startsWith('vit.json.gz') && ${READY}`);
    const {estimates: [wanted]} = answerOf('estimate', 'models/graphs/vit_b_16.json', '--batch', '32');
    same(await shown(page, 'Expected'), wanted.expected_bytes, 'unpacked');
    const cut = join(scratch, 'cut.json.gz');
    writeFileSync(cut, readFileSync(packed).subarray(0, 900));
    await page.send('DOM.setFileInputFiles', {nodeId, files: [cut]});
    await page.until(`/^cut.json.gz: ./.test(${el('model-note')}.textContent)`);
    // The same file once more, after its text was changed. An example that is chosen while one types is not lost.
    await paste(page, LLAMA);
    await page.until(`${el('headline')}.textContent.startsWith('pasted.json') || !${el('fault')}.hidden`);
    same(await text(page, 'model-note'), '2,048 tokens a sample are filled in.', 'the note of another model');
    await page.send('DOM.setFileInputFiles', {nodeId, files: [packed]});
    await page.until(`${el('headline')}.textContent.startsWith('vit.json.gz') && ${READY}`);
    await page.value(`(() => { const e = ${el('text')}; e.value = '{'; e.dispatchEvent(new Event('input', {bubbles: true})); })()`);
    await set(page, 'example', 'llama3-8b-fsdp2');
    await page.until(`${el('headline')}.textContent.startsWith('llama3_8b') && ${READY}`);
    await pause(400);
    same(await page.value(`${el('example')}.value + ' ' + ${el('fault')}.hidden + ${el('model-note')}.textContent`), 'llama3-8b-fsdp2 true', 'what was typed before');
    await page.close();
  },
  async 'every example has an answer'() {
    const page = await browser.open(address);
    await usual(page);
    const examples = JSON.parse(readFileSync(join(root, 'src/web/examples/examples.json')));
    check(examples.length > 3, 'there are examples');
    for (const {id, file, job} of examples) {
      await set(page, 'example', id);
      const name = file.split('/').pop();
      await page.until(`${el('headline')}.textContent.startsWith('${name}') && ${el('headline')}.textContent.endsWith('on ${job.gpu}') && ${READY} && ${el('fault')}.hidden`);
    }
    await page.close();
  },
  async 'a search can be stopped, and the page goes on'() {
    const page = await browser.open(address);
    await usual(page);
    await set(page, 'example', 'llama3-8b-fsdp2');
    await page.until(`${el('headline')}.textContent.startsWith('llama3') && ${READY}`);
    await page.value(`${el('plan-go')}.click(); ${el('plan-stop')}.click()`);
    await page.until(`${el('plan-status')}.textContent === 'Ended: stopped.'`);
    // In the middle of one, too. The answer that stood is still there.
    await page.value(`${el('plan-go')}.click()`);
    await page.until(`/^Searching: /.test(${el('plan-status')}.textContent)`);
    await page.value(`${el('plan-stop')}.click()`);
    await page.until(`${el('plan-status')}.textContent === 'Ended: stopped.' && ${READY}`);
    await set(page, 'o-batch_size', '4', 'input');
    await page.until(`${el('headline')}.textContent.includes('batch 4') && ${READY}`);
    await page.close();
  },
  async 'an answer of another job is marked until its own is there'() {
    const page = await browser.open(address);
    await usual(page);
    await hold(page, 'fit');
    await set(page, 'example', 'llama3-8b-fsdp2');
    await page.until(`${el('headline')}.textContent.startsWith('llama3_8b') && window.held.length === 1`);
    same(await page.value(`${el('largest-batch')} === null`), true, 'the former largest batch is taken away');
    same(await page.value(`${el('timeline')}.className + ${el('timeline-note')}.textContent`), 'staleDrawing…', 'the former timeline');
    await page.value('window.held[0]()');
    await usual(page);
    const words = LLAMA_WORDS.filter((_, at) => at !== 1 && at !== 2);
    same(await text(page, 'largest-batch'), String(answerOf('fit', ...words).largest_batch), 'largest batch');
    await page.until(`${el('timeline')}.contentDocument.body.textContent.includes('model.layers.31')`);
    await page.close();
  },
  async 'layouts are those of the job and the search that stand there'() {
    const page = await browser.open(address);
    await usual(page);
    await set(page, 'example', 'llama3-8b-fsdp2');
    await page.until(`${el('headline')}.textContent.startsWith('llama3') && ${READY}`);
    await set(page, 'p-gpus', '16', 'input');
    await page.value(`${el('plan-go')}.click()`);
    await page.until(`!${el('plan-scroll')}.hidden`);
    // A search has a batch of its own.
    await set(page, 'o-batch_size', '2', 'input');
    await page.until(`${el('headline')}.textContent.includes('batch 2') && ${READY}`);
    same(await page.value(`${el('plan-scroll')}.hidden`), false, 'another batch of the job leaves the layouts');
    const link = await page.value('location.href');
    await set(page, 'p-global_batch', '256', 'input');
    same(await page.value(`${el('plan-scroll')}.hidden + ${el('plan-status')}.textContent`), 'trueThe job has changed. Search again.', 'of another search');
    // While one runs: there is one at a time, and one of another job is ended.
    await hold(page, 'plan');
    await page.value(`${el('plan-go')}.click(); ${el('plan-go')}.click()`);
    await page.until('window.held.length > 0');
    await pause(100);
    same(await page.value('window.held.length'), 1, 'searches at once');
    await set(page, 'o-seq_length', '2048', 'input');
    await page.until(`${el('headline')}.textContent.includes('2,048 tokens') && ${READY}`);
    same(await page.value(`${el('plan-scroll')}.hidden + ' ' + ${el('plan-stop')}.hidden + ' ' + ${el('plan-status')}.textContent`), 'true true The job has changed. Search again.', 'of another job');
    await page.close();
    // By a link two questions come at once, and the model is still sent once.
    const other = await browser.open('about:blank');
    await other.send('Page.addScriptToEvaluateOnNewDocument', {source: `window.models = 0; const send = Worker.prototype.postMessage;
      Worker.prototype.postMessage = function (message) { if (message.task === 'model') window.models += 1; send.call(this, message); };`});
    await other.send('Page.navigate', {url: link});
    await other.until(`!${el('plan-scroll')}.hidden && ${READY}`);
    same(await other.value('window.models'), 1, 'how often the model was sent');
    await other.close();
  },
  async 'the address holds the last state, whichever is packed first'() {
    const page = await browser.open(address);
    await usual(page);
    await page.value(`(() => {
      const Packing = CompressionStream;
      window.CompressionStream = function (format) {
        window.CompressionStream = Packing;
        const {readable, writable} = new Packing(format);
        const late = new TransformStream({transform: async (part, out) => { await new Promise((done) => { window.release = done; }); out.enqueue(part); }});
        return {writable, readable: readable.pipeThrough(late)};
      };
    })()`);
    const before = await page.value('location.href');
    await set(page, 'o-batch_size', '5', 'input');
    await page.until('window.release');
    await set(page, 'o-batch_size', '6', 'input');
    await page.until(`location.href !== ${JSON.stringify(before)}`);
    const link = await page.value('location.href');
    await page.value('window.release()');
    await pause(300);
    same(await page.value('location.href'), link, 'the address');
    const other = await browser.open(link);
    await usual(other);
    check((await text(other, 'headline')).includes('batch 6'), await text(other, 'headline'));
    for (const one of [page, other]) await one.close();
  },
  async 'everything has a name, and is readable in light and dark'() {
    for (const dark of [false, true]) {
      const page = await browser.open(address, {dark});
      await usual(page);
      await page.value(`${el('more')}.open = true`);
      same((await namelessControls(page)).join(' | '), '', 'controls without a name');
      same((await contrastFaults(page)).join(' | '), '', `contrast, ${dark ? 'dark' : 'light'}`);
      if (dark) await picture(page, 'dark');
      same(await page.value("getComputedStyle(document.body).backgroundColor !== 'rgb(246, 247, 249)'"), dark, 'the page is dark');
      await page.close();
    }
  },
  async 'every option of the command line has a field'() {
    const page = await browser.open(address);
    await usual(page);
    const help = spawnSync(program, ['estimate', '--help'], {encoding: 'utf8'}).stdout;
    const own = ['json', 'help', 'trainer', 'adapter'];
    const flags = [...help.matchAll(/^ {2,8}(?:-\w,)?--(?:no-)?([\w-]+)/gm)].map((found) => found[1]).filter((flag) => !own.includes(flag));
    check(flags.length > 40, `${flags.length} options in the help`);
    const there = await page.value("[...document.querySelectorAll('[data-flag]')].map((field) => field.dataset.flag)");
    same([...there].sort().join(' '), [...flags].sort().join(' '), 'fields');
    await page.close();
  },
  async 'it fits a phone'() {
    const page = await browser.open(address, {width: 390, height: 844});
    await usual(page);
    await page.value(`${el('more')}.open = true; ${el('p-gpus')}.value = 8; ${el('plan-go')}.click()`);
    await page.until(`!${el('plan-scroll')}.hidden || !${el('plan-fault')}.hidden`);
    same(await page.value('document.documentElement.scrollWidth'), 390, 'width');
    await page.value(`${el('more')}.open = false`);
    await picture(page, 'narrow');
    await page.close();
  },
  async 'it works without a host'() {
    const page = await browser.open(`file://${resolve(folder)}/index.html`);
    await usual(page);
    check((await text(page, 'verdict')).startsWith('Fits: 3.96 GiB'), 'the answer from a file');
    same(page.faults.join(' | '), '', 'console');
    await page.close();
  },
  async 'a well-known model is named, advice is taken, and two jobs are compared'() {
    const page = await browser.open(address);
    await usual(page);
    const name = 'meta-llama/Llama-3.1-8B';
    await set(page, 'published', name);
    await page.until(`${el('headline')}.textContent.startsWith('${name}') && ${READY} && !${el('advice')}.hidden`);
    const words = [name, '--batch', '1', '--seq', '2048', '--gpu', 'a100-40gb'];
    const {estimates: [wanted]} = answerOf('estimate', ...words);
    same(await shown(page, 'Expected'), wanted.expected_bytes, 'of a well-known model');
    const none = /^Largest batch: none; not even batch 1 fits: it would need [^;]* on a100-40gb\. What would make it fit stands below\.$/;
    check(none.test(await text(page, 'fit')), `the largest batch: ${await text(page, 'fit')}`);
    const {changes: [first]} = answerOf('advise', ...words);
    await page.value(`${el('compare-keep')}.click()`);
    const button = `[...document.querySelectorAll('#advice-table button')].find((one) => one.textContent === '--${Object.keys(first.settings)[0].replaceAll('_', '-')}')`;
    await page.value(`${button}.click()`);
    await page.until(`${el('command')}.textContent.includes('--fused') && ${READY}`);
    same(await shown(page, 'Expected'), first.estimate.expected_bytes, 'with the first advice');
    const difference = ((first.estimate.expected_bytes - wanted.expected_bytes) / 2 ** 30).toFixed(2);
    check((await text(page, 'compare')).includes(difference), `the comparison has no ${difference}: ${await text(page, 'compare')}`);
    await picture(page, 'advice');
    const link = await page.value('location.href');
    const other = await browser.open(link);
    await usual(other);
    same(await shown(other, 'Expected'), first.estimate.expected_bytes, 'of the link');
    for (const one of [page, other]) await one.close();
  },
  async 'a model of images is given no tokens, and a name that is not known is said to be'() {
    const page = await browser.open(address);
    await usual(page);
    const name = 'google/vit-base-patch16-224';
    await set(page, 'published', name);
    await page.until(`${el('headline')}.textContent.startsWith('${name}') && ${READY}`);
    same(await page.value(`${el('o-seq_length')}.value`), '', 'tokens of a model of images');
    await set(page, 'published', 'nobody/nothing');
    same(await text(page, 'model-note'), 'gpumem does not know nobody/nothing. Paste its config.json.', 'the note');
    check((await text(page, 'headline')).startsWith(name), 'the answer stays');
    await page.close();
  },
  async 'GPUs are compared, and their table is sorted'() {
    const page = await browser.open(address);
    await usual(page);
    await page.value(`${el('gpus-go')}.click()`);
    await page.until(`!${el('gpus-scroll')}.hidden`);
    const {gpus} = answerOf('gpus', '--for', 'models/summaries/resnet50.torchsummary.txt', '--batch', '32');
    const column = (index) => page.value(`[...document.querySelectorAll('#gpus tbody tr')].map((row) => row.cells[${index}].textContent)`);
    same((await column(0)).join(' '), gpus.map((one) => one.gpu).join(' '), 'GPUs');
    await page.value("document.querySelectorAll('#gpus th button')[2].click()");
    const sorted = (await column(2)).map(Number);
    check(sorted.every((value, at) => at === 0 || sorted[at - 1] <= value), `not sorted: ${sorted.join(' ')}`);
    same(await page.value("document.querySelectorAll('#gpus th')[2].getAttribute('aria-sort')"), 'ascending', 'the order is said');
    await picture(page, 'gpus');
    await page.value("document.querySelector('#gpus td button').click()");
    await page.until(`${el('gpus-scroll')}.hidden && ${READY}`);
    await page.close();
  },
  async 'Llama-3-8B on 64 GPUs is answered within 50 ms, and the page is small'() {
    const page = await browser.open(address);
    await usual(page);
    const times = [];
    await set(page, 'example', 'llama3-8b-fsdp2');
    for (let layers = 0; layers < 8; layers += 1) {
      // Another text each time: nothing is known of it from before.
      if (layers > 0) await paste(page, LLAMA.replace('}', `, "unused_${layers}": 1}`).replace('14336', String(14336 + 64 * layers)));
      await page.until(`${el('headline')}.textContent.startsWith('${layers === 0 ? 'llama3' : 'pasted'}') && ${el('text')}.value.includes('${14336 + 64 * layers}') && ${READY}`);
      times.push(await milliseconds(page));
      await new Promise((done) => { setTimeout(done, 400); });
    }
    const link = await page.value('location.href');
    await page.close();
    const fresh = await browser.open(link);
    await usual(fresh);
    console.log(`Llama-3-8B on 64 GPUs: ${times.join(', ')} ms, a new text each; the first answer of a page: ${await milliseconds(fresh)} ms`);
    await fresh.close();
    check(Math.min(...times.slice(1)) <= 50, `Llama-3-8B took ${times.join(', ')} ms`);
    const packed = readdirSync(folder).reduce((sum, name) => sum + gzipSync(readFileSync(join(folder, name)), {level: 9}).length, 0);
    console.log(`the page: ${(packed / 2 ** 20).toFixed(2)} MiB packed`);
    check(packed <= 3 * 2 ** 20, `the page has ${packed} bytes packed`);
  },
};

Object.assign(tests, curveTests({browser, address, answerOf, check, el, same, set, text, usual}), firstAnswerTests({browser, address, check, same, text, usual}));
for (const [name, test] of Object.entries(tests)) {
  const before = faults.length;
  asked.length = 0;
  try {
    await test();
  } catch (error) {
    faults.push(String(error.stack || error));
  }
  console.log(`${faults.length === before ? 'ok    ' : 'FAILED'} ${name}`);
  for (const fault of faults.slice(before)) console.log(`       ${fault}`);
}
await browser.close();
server.close();
rmSync(scratch, {recursive: true});
process.exit(faults.length > 0 ? 1 : 0);
