// Runs in a worker, behind emscripten's code: holds the engine, and answers one message after the other.
let engine = null;
// The likeliest reason: an abort does not say its own.
const OUT_OF_MEMORY = "it broke off, probably because it needs more than the engine's 2 GiB";

const given = (bytes) => {
  const at = engine._malloc(bytes.length + 1);
  if (at === 0) throw new Error('Aborted: no memory for the text');
  engine.HEAPU8.set(bytes, at);
  engine.HEAPU8[at + bytes.length] = 0;
  return at;
};
const calling = (call, ...texts) => {
  const held = texts.map((text) => given(typeof text === 'string' ? new TextEncoder().encode(text) : text));
  try {
    return engine.UTF8ToString(call(...held));
  } finally {
    held.forEach((at) => engine._free(at));
  }
};

const TASKS = {
  load: async ({wasm, id}) => {
    const onProgress = (done, all) => postMessage({progress: [done, all]});
    engine = await gpumemEngine({wasmBinary: wasm, onProgress, printErr: () => {}, print: () => {}});
    return {about: JSON.parse(calling(engine._gpumem_web_about)), id};
  },
  // Empty, or what is wrong.
  model: async ({name, bytes}) => ({says: calling((at, text) => engine._gpumem_web_model(at, text, bytes.length), name, bytes)}),
  ask: async ({verb, question}) => {
    const begin = performance.now();
    const text = calling(engine._gpumem_web_answer, verb, JSON.stringify(question));
    return {...JSON.parse(text), milliseconds: performance.now() - begin};
  },
};

onmessage = async ({data}) => {
  try {
    postMessage({id: data.id, reply: await TASKS[data.task](data)});
  } catch (error) {
    // The engine has no exceptions: after one, as where memory ran out, it must not be used again.
    const why = String(error && error.message || error);
    postMessage({id: data.id, died: why.startsWith('Aborted') ? OUT_OF_MEMORY : why});
  }
};
