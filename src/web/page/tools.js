// What the other scripts share. All of them are put into one function by packaging/web.mjs.
const at = (id) => document.getElementById(id);
const make = (tag, text, attributes = {}) => {
  const element = document.createElement(tag);
  if (text !== null && text !== undefined) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
};
const SVG = 'http://www.w3.org/2000/svg';
const draw = (tag, attributes, text) => {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
};
const GIB = 2 ** 30;
const gib = (bytes) => (bytes / GIB).toFixed(2);
const size = (bytes) => `${gib(bytes)} GiB`;
// By hand: the browser's own words for numbers take 30 ms to load, before the first answer.
const count = (number) => String(number).replace(/^-?\d+/, (digits) => digits.replace(/\B(?=(\d{3})+$)/g, ','));
const percent = (share) => `${(100 * share).toFixed(1)} %`;
const titled = (name) => name.charAt(0).toUpperCase() + name.slice(1).replaceAll('_', ' ');

// Bytes through a stream that packs or unpacks. More than `most` of them is an error.
const through = async (bytes, stream, most) => {
  const writer = stream.writable.getWriter();
  const written = writer.write(bytes).then(() => writer.close());
  const reader = stream.readable.getReader();
  const parts = [];
  let length = 0;
  for (;;) {
    const {done, value} = await reader.read();
    if (done) break;
    length += value.length;
    if (length > most) {
      await reader.cancel().catch(() => {});
      written.catch(() => {});
      throw new Error(`unpacks to more than ${Math.floor(most / 2 ** 20)} MiB`);
    }
    parts.push(value);
  }
  await written;
  const whole = new Uint8Array(length);
  let place = 0;
  for (const part of parts) { whole.set(part, place); place += part.length; }
  return whole;
};
const fromBase64 = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const toBase64Url = (bytes) => {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
};
const fromBase64Url = (text) => fromBase64(text.replaceAll('-', '+').replaceAll('_', '/'));
