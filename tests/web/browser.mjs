// Input: pages. Output: what headless Chromium makes of them, through its DevTools protocol over a pipe: no port is
// opened, and nothing beside Node and Chromium is needed.
import {spawn, spawnSync} from 'node:child_process';
import {mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync} from 'node:fs';
import {createServer} from 'node:http';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

export const findChromium = () => ['chromium', 'chromium-browser', 'google-chrome']
  .map((name) => spawnSync('sh', ['-c', `command -v ${name}`]).stdout.toString().trim()).find((path) => path);

// A host of the folder's files: its server, what was asked of it, and its address.
const TYPES = {html: 'text/html', css: 'text/css', js: 'text/javascript'};
export const servedFrom = async (folder) => {
  const asked = [];
  const server = createServer((request, reply) => {
    const name = new URL(request.url, 'http://x').pathname.slice(1) || 'index.html';
    asked.push(request.url);
    const known = readdirSync(folder).includes(name);
    reply.writeHead(known ? 200 : 404, {'content-type': TYPES[name.split('.').pop()] || 'text/plain'});
    reply.end(known ? readFileSync(join(folder, name)) : 'not here');
  });
  await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
  return {server, asked, address: `http://127.0.0.1:${server.address().port}/`};
};

// A script of a page: its messages to workers for which the condition holds wait in window.held.
export const holding = (condition) => `(() => {
  const send = Worker.prototype.postMessage;
  window.held = [];
  Worker.prototype.postMessage = function (message) {
    if (${condition}) window.held.push(() => send.call(this, message));
    else send.call(this, message);
  };
})()`;

const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage', '--hide-scrollbars', '--remote-debugging-pipe'];

export class Browser {
  constructor(program) {
    this.folder = mkdtempSync(join(tmpdir(), 'gpumem-web-'));
    this.process = spawn(program, [...FLAGS, `--user-data-dir=${this.folder}`, 'about:blank'],
      {stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe']});
    this.waiting = new Map();
    this.listeners = [];
    this.next = 1;
    let rest = '';
    this.process.stdio[4].setEncoding('utf8');
    this.process.stdio[4].on('data', (text) => {
      const messages = (rest + text).split('\0');
      rest = messages.pop();
      for (const message of messages) this.hear(JSON.parse(message));
    });
  }
  hear(message) {
    if (message.id === undefined) {
      for (const listener of this.listeners) listener(message);
      return;
    }
    const {resolve, reject} = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    if (message.error) reject(new Error(message.error.message));
    else resolve(message.result);
  }
  send(method, params = {}, sessionId = undefined) {
    const id = this.next;
    this.next += 1;
    this.process.stdio[3].write(`${JSON.stringify({id, method, params, sessionId})}\0`);
    return new Promise((resolve, reject) => { this.waiting.set(id, {resolve, reject}); });
  }
  async close() {
    const ended = new Promise((resolve) => { this.process.on('exit', resolve); });
    this.send('Browser.close').catch(() => {});
    await ended;
    rmSync(this.folder, {recursive: true, force: true, maxRetries: 5, retryDelay: 200});
  }
  // A new tab, which keeps what it asked for and what went wrong in it.
  async open(url, {width = 1280, height = 900, dark = false} = {}) {
    const {targetId} = await this.send('Target.createTarget', {url: 'about:blank'});
    const {sessionId} = await this.send('Target.attachToTarget', {targetId, flatten: true});
    const page = new Page(this, sessionId, targetId);
    this.listeners.push((message) => page.hear(message));
    for (const domain of ['Page', 'Runtime', 'Network', 'Log', 'Accessibility']) await page.send(`${domain}.enable`);
    await page.look(width, height, dark);
    await page.send('Page.navigate', {url});
    return page;
  }
}

class Page {
  constructor(browser, sessionId, targetId) {
    Object.assign(this, {browser, sessionId, targetId, requests: [], faults: []});
  }
  hear({method, params, sessionId}) {
    if (sessionId !== this.sessionId) return;
    if (method === 'Network.requestWillBeSent') this.requests.push(params.request.url);
    if (method === 'Network.webSocketCreated') this.requests.push(params.url);
    if (method === 'Runtime.exceptionThrown') this.faults.push(params.exceptionDetails.exception?.description || params.exceptionDetails.text);
    if (method === 'Log.entryAdded' && ['error', 'warning'].includes(params.entry.level)) this.faults.push(params.entry.text);
  }
  send(method, params = {}) { return this.browser.send(method, params, this.sessionId); }
  async look(width, height, dark) {
    await this.send('Emulation.setDeviceMetricsOverride', {width, height, deviceScaleFactor: 1, mobile: false});
    await this.send('Emulation.setEmulatedMedia', {features: [{name: 'prefers-color-scheme', value: dark ? 'dark' : 'light'}]});
  }
  // The value of an expression in the page; promises are waited for.
  async value(expression) {
    const {result, exceptionDetails} = await this.send('Runtime.evaluate', {expression, awaitPromise: true, returnByValue: true});
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description || exceptionDetails.text);
    return result.value;
  }
  // Until an expression holds.
  async until(expression, seconds = 60) {
    const end = Date.now() + 1000 * seconds;
    for (;;) {
      const value = await this.value(expression).catch(() => undefined);
      if (value) return value;
      if (Date.now() > end) {
        const seen = await this.value('document.body.innerText.slice(0, 600)');
        throw new Error(`not within ${seconds} s: ${expression}\nThe page shows: ${seen}\nFaults: ${this.faults.join(' | ')}`);
      }
      await new Promise((resolve) => { setTimeout(resolve, 25); });
    }
  }
  async key(key, {shift = false} = {}) {
    const codes = {Tab: 9, Enter: 13, ' ': 32, Escape: 27, ArrowDown: 40, ArrowUp: 38, Home: 36, End: 35};
    const common = {key, code: key === ' ' ? 'Space' : key, windowsVirtualKeyCode: codes[key], modifiers: shift ? 8 : 0};
    const text = key === 'Enter' ? '\r' : key === ' ' ? ' ' : undefined;
    await this.send('Input.dispatchKeyEvent', {type: text ? 'keyDown' : 'rawKeyDown', ...common, text});
    await this.send('Input.dispatchKeyEvent', {type: 'keyUp', ...common});
  }
  async type(text) { await this.send('Input.insertText', {text}); }
  async picture(path, whole = true) {
    const {data} = await this.send('Page.captureScreenshot', {format: 'png', captureBeyondViewport: whole});
    writeFileSync(path, Buffer.from(data, 'base64'));
  }
  async close() { await this.browser.send('Target.closeTarget', {targetId: this.targetId}); }
}
