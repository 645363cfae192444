// The state of the page as the fragment of its address, which browsers send to no server.
const LONGEST_LINK = 24000;
const LARGEST_STATE = 8 * 2 ** 20;

// `model`: {example}, {published} or {name, bytes}. What is left out for its size is said.
const linkOf = async (model, job, plan, planned) => {
  const state = {v: 1, job, plan, planned};
  const packed = async () => toBase64Url(await through(new TextEncoder().encode(JSON.stringify(state)), new CompressionStream('deflate-raw'), LARGEST_STATE));
  if (model.example) {
    state.example = model.example;
    return {link: await packed(), note: ''};
  }
  if (model.published) {
    state.published = model.name;
    return {link: await packed(), note: ''};
  }
  state.name = model.name;
  if (model.bytes.length < LARGEST_STATE / 4) {
    state.text = new TextDecoder().decode(model.bytes);
    const link = await packed();
    if (link.length <= LONGEST_LINK) return {link, note: ''};
    delete state.text;
  }
  const note = `The model is too large for a link, so the link has only the options. Send the file ${model.name} too.`;
  return {link: await packed(), note};
};

// Null: there is none, or it is of no use.
const stateOf = async (fragment) => {
  if (fragment.length < 2) return null;
  try {
    const bytes = await through(fromBase64Url(fragment.slice(1)), new DecompressionStream('deflate-raw'), LARGEST_STATE);
    const state = JSON.parse(new TextDecoder().decode(bytes));
    const usable = state.v === 1 && typeof state.job === 'object' && state.job !== null;
    return usable ? state : null;
  } catch {
    return null;
  }
};
