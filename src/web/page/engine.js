// The engine in its worker: the page never waits for it, and one that died is started anew.
const STOPPED = 'stopped';  // by its user
const LARGEST_ENGINE = 64 * 2 ** 20;
// Its text is long, so it comes last.
const engineIsRead = new Promise((done, fail) => {
  const script = make('script', null, {src: 'engine.js'});
  script.onload = done;
  script.onerror = () => fail(new Error('engine.js is not there'));
  document.head.append(script);
});
engineIsRead.catch(() => {});  // whoever asks is told
const Engine = {
  worker: null, ready: null, waiting: new Map(), next: 1, wasm: null, held: null, onProgress: null,
  turn: Promise.resolve(), stops: 0,

  // What the engine says of itself. All that ask wait for the same start.
  start() {
    this.ready ??= this.load();
    return this.ready;
  },
  async load() {
    await engineIsRead;
    if (!this.wasm) this.wasm = await through(fromBase64(GPUMEM_ENGINE.wasm), new DecompressionStream('gzip'), LARGEST_ENGINE);
    const url = URL.createObjectURL(new Blob([GPUMEM_ENGINE.script], {type: 'text/javascript'}));
    this.worker = new Worker(url);
    URL.revokeObjectURL(url);
    this.worker.onmessage = ({data}) => this.hear(data);
    this.worker.onerror = (event) => this.end(event.message || 'it cannot be started');
    this.held = null;
    return this.send({task: 'load', wasm: this.wasm});
  },
  hear(data) {
    if (data.progress) {
      if (this.onProgress) this.onProgress(...data.progress);
      return;
    }
    if (data.died !== undefined) {
      this.end(data.died);
      return;
    }
    const asked = this.waiting.get(data.id);
    this.waiting.delete(data.id);
    if (asked) asked.resolve(data.reply);
  },
  // All that wait are told why; what is asked next starts another one. A stop ends those whose turn has not come as well.
  end(why) {
    if (why === STOPPED) this.stops += 1;
    if (this.worker) this.worker.terminate();
    this.worker = null;
    this.ready = null;
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    for (const {reject} of waiting) reject(new Error(why));
  },
  send(message) {
    if (!this.worker) return Promise.reject(new Error(STOPPED));
    const id = this.next;
    this.next += 1;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, {resolve, reject});
      this.worker.postMessage({...message, id});
    });
  },
  // One question after the other: a model stays in the engine until what was asked of it is answered.
  ask(...question) {
    const {stops} = this;
    const asked = this.turn.then(() => {
      if (stops !== this.stops) throw new Error(STOPPED);
      return this.answer(...question);
    });
    this.turn = asked.catch(() => {});
    return asked;
  },
  // `model`: {name, bytes}; the same object is sent once.
  async answer(verb, model, job, more = {}) {
    await this.start();
    if (this.held !== model && !model.published) {
      const {says} = await this.send({task: 'model', name: model.name, bytes: model.bytes});
      if (says) return {says, error: {message: says}};
      this.held = model;
    }
    return this.send({task: 'ask', verb, question: {job: {summary: model.name, ...job}, ...more}});
  },
};
