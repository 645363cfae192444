// Input: the folder of the build for WebAssembly. Output: the page, as one folder of static files.
//   node packaging/web.mjs BUILD OUT
import {createHash} from 'node:crypto';
import {existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {gzipSync} from 'node:zlib';
import {openEngine} from '../src/web/engine.mjs';
import {ANSWER_SCRIPTS, withFirstAnswer} from './first_answer.mjs';

const [build, out] = process.argv.slice(2);
if (!build || !out) {
  console.error('usage: node packaging/web.mjs BUILD OUT');
  process.exit(2);
}
const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const page = join(root, 'src/web/page');
const read = (...path) => readFileSync(join(...path), 'utf8');

// The scripts as one, which share a function and leave nothing behind.
const SCRIPTS = ['tools.js', 'engine.js', 'form.js', 'answer.js', 'link.js', 'serving.js', 'choices.js', 'curve.js', 'app.js'];
const app = `'use strict';\n(() => {\n${SCRIPTS.map((name) => read(page, name)).join('\n')}})();\n`;

// As text: a page that is opened from a folder may load scripts, and nothing else. Packed: a host need not do it.
const engine = {
  script: `'use strict';\n${read(build, 'engine.js')}\n${read(page, 'worker.js')}`,
  wasm: gzipSync(readFileSync(join(build, 'engine.wasm')), {level: 9}).toString('base64'),
};

// The timeline's page stands in a frame with its own script and style: the policy allows these two texts, and the two that stand in the page itself.
const header = read(build, 'generated/timeline_html.hpp');
const timeline = [...header.matchAll(/R"gpumem\(([^]*?)\)gpumem"/g)].map((piece) => piece[1]).join('');
const hashOf = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const inTimeline = (tag) => {
  const found = [...timeline.matchAll(new RegExp(`<${tag}>([^]*?)</${tag}>`, 'g'))];
  if (found.length !== 1) throw new Error(`the timeline's page has ${found.length} <${tag}>, not one`);
  return found[0][1];
};

const examples = JSON.parse(read(root, 'src/web/examples/examples.json'))
  .map(({file, ...example}) => ({...example, name: file.split('/').pop(), text: read(root, file)}));

// The form and the first answer are there before the engine: made here, by the same engine.
const made = await openEngine(build);
const [first] = examples;
made.model(first.name, Buffer.from(first.text));
const reply = made.ask('estimate', {job: {summary: first.name, ...first.job}});
if (!reply.text) throw new Error(`the first example has no answer: ${reply.says}`);

// What the first answer needs is in the one file: a browser shows it before it has asked for another.
const [style, script] = [read(page, 'style.css'), read(page, 'first.js')];
const marks = {
  '@TIMELINE_SCRIPT@': hashOf(inTimeline('script')), '@TIMELINE_STYLE@': hashOf(inTimeline('style')),
  '@PAGE_SCRIPT@': hashOf(script), '@PAGE_STYLE@': hashOf(style), '@SCRIPT@': script, '@STYLE@': style,
};
const shows = ANSWER_SCRIPTS.map((name) => read(page, name)).join('\n');
const html = withFirstAnswer(read(page, 'index.html'), shows, made.about(), reply).replace(/@[A-Z_]+@/g, (mark) => marks[mark] ?? mark);

// For a model hub's static spaces; other hosts need no such file.
const readme = `---
title: gpumem
emoji: 📏
colorFrom: blue
colorTo: indigo
sdk: static
app_file: index.html
pinned: false
license: apache-2.0
short_description: GPU memory of a training job, before it runs
---

How much GPU memory a training or serving job takes. The page computes everything in the browser and sends nothing.
`;

const files = {
  'index.html': html,
  'app.js': app,
  'engine.js': `const GPUMEM_ENGINE = ${JSON.stringify(engine)};\n`,
  'LICENSE.txt': read(root, 'LICENSE'),
  'NOTICE.txt': read(root, 'packaging/NOTICE'),
  'examples.js': `const GPUMEM_EXAMPLES = ${JSON.stringify(examples)};\nconst GPUMEM_FIRST = ${JSON.stringify({about: made.about(), reply})};\n`,
  'README.md': readme,
};
if (existsSync(out) && readdirSync(out).some((name) => !(name in files))) {
  console.error(`${out} holds other files than the page's: name a new folder`);
  process.exit(1);
}
const fresh = `${out}.tmp${process.pid}`;
rmSync(fresh, {recursive: true, force: true});
mkdirSync(fresh, {recursive: true});
let packed = 0;
for (const [name, text] of Object.entries(files)) {
  writeFileSync(join(fresh, name), text);
  packed += gzipSync(text, {level: 9}).length;
}
rmSync(out, {recursive: true, force: true});
renameSync(fresh, out);
console.log(`${out}: ${Object.keys(files).length} files, ${(packed / 2 ** 20).toFixed(2)} MiB packed with gzip -9`);
