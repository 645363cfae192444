// The engine in Node, as the page's worker has it: the same files, called the same way.
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {join, resolve} from 'node:path';

export const openEngine = async (build) => {
  const make = createRequire(import.meta.url)(resolve(build, 'engine.js'));
  const engine = await make({wasmBinary: readFileSync(join(build, 'engine.wasm')), print: () => {}, printErr: () => {}});
  const calling = (call, ...texts) => {
    const held = texts.map((text) => {
      const bytes = Buffer.from(text);
      const at = engine._malloc(bytes.length + 1);
      engine.HEAPU8.set(bytes, at);
      engine.HEAPU8[at + bytes.length] = 0;
      return at;
    });
    const answer = engine.UTF8ToString(call(...held));
    held.forEach((at) => engine._free(at));
    return answer;
  };
  return {
    about: () => JSON.parse(calling(engine._gpumem_web_about)),
    model: (name, bytes) => calling((at, text) => engine._gpumem_web_model(at, text, bytes.length), name, bytes),
    ask: (verb, question) => JSON.parse(calling(engine._gpumem_web_answer, verb, JSON.stringify(question))),
  };
};
