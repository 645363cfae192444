// Input: the page's HTML, its scripts, and the engine's answer about the first example.
// Output: the same HTML with that answer in it, written by the page's own functions, so that a browser shows it before it
// has run a script.
//
// These functions write into a document; this one has as much of a document as they use, and no more: what else they would
// set or call is an error, and not left out.
import {runInNewContext} from 'node:vm';

// The page's scripts that it takes to show an answer.
export const ANSWER_SCRIPTS = ['tools.js', 'form.js', 'answer.js', 'choices.js'];

const escaped = (text) => String(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

class Element {
  constructor(tag) { Object.seal(Object.assign(this, {tag, attributes: new Map(), children: null, inner: new Map()})); }
  set textContent(text) { this.children = [String(text)]; }
  get textContent() { return (this.children ?? []).map((child) => child.textContent ?? child).join(''); }
  set className(names) { this.setAttribute('class', names); }
  get className() { return this.attributes.get('class') ?? ''; }
  set hidden(is) { this.attributes.set('hidden', Boolean(is)); }
  get hidden() { return this.attributes.get('hidden') === true; }
  get firstChild() { return this.children[0]; }
  get clientWidth() { return 0; }
  get classList() {
    const names = () => this.className.split(' ').filter(Boolean);
    const without = (name) => names().filter((other) => other !== name);
    return {add: (name) => { this.className = [...without(name), name].join(' '); }, remove: (name) => { this.className = without(name).join(' '); }};
  }
  setAttribute(name, value) { this.attributes.set(name, String(value)); }
  append(...nodes) { this.children = [...(this.children ?? []), ...nodes]; }
  replaceChildren(...nodes) { this.children = nodes; }
  // The one element of this tag that stands in it.
  querySelector(tag) {
    if (!this.inner.has(tag)) this.inner.set(tag, new Element(tag));
    return this.inner.get(tag);
  }
  get inside() { return (this.children ?? []).map((child) => (child instanceof Element ? child.html : escaped(child))).join(''); }
  get html() {
    const said = [...this.attributes].filter(([, value]) => value !== false).map(([name, value]) => (value === true ? ` ${name}` : ` ${name}="${escaped(value)}"`));
    return `<${this.tag}${said.join('')}>${this.inside}</${this.tag}>`;
  }
}

// What the page's functions wrote, by the ids of what they wrote into.
export const written = (scripts, about, reply) => {
  const byId = new Map();
  const document = {
    createElement: (tag) => new Element(tag),
    createElementNS: (space, tag) => new Element(tag),
    querySelectorAll: () => [],
    getElementById: (id) => {
      if (!byId.has(id)) byId.set(id, new Element('?'));
      return byId.get(id);
    },
  };
  const run = `'use strict';\n${scripts}\nfor (const option of about.options) optionNamed.set(option.name, option);\nshowEstimate(reply);`;
  runInNewContext(run, {document, about, reply, performance: {mark: () => {}}});
  return byId;
};

const withAttribute = (opening, name, value) => {
  const rest = opening.replace(new RegExp(` ${name}(="[^"]*")?(?=[ >])`), '');
  if (value === undefined || value === false || value === '') return rest;
  return rest.replace(/>$/, () => (value === true ? ` ${name}>` : ` ${name}="${escaped(value)}">`));
};

// Where the element ends whose inside begins there. Others of its tag may stand in it.
const endOf = (page, tag, begin) => {
  const tags = new RegExp(`<(/?)${tag}(?=[ >])`, 'g');
  tags.lastIndex = begin;
  for (let open = 1; ;) {
    const found = tags.exec(page);
    if (!found) throw new Error(`a <${tag}> of the page has no end`);
    open += found[1] ? -1 : 1;
    if (open === 0) return found.index;
  }
};

const withInner = (inside, tag, html) => {
  const empty = `<${tag}></${tag}>`;
  if (inside.split(empty).length !== 2) throw new Error(`there is not one empty <${tag}> in ${inside}`);
  return inside.replace(empty, () => html);
};

export const withFirstAnswer = (html, scripts, about, reply) => {
  let page = html;
  for (const [id, element] of written(scripts, about, reply)) {
    const opening = new RegExp(`<(\\w+)[^>]* id="${id}"[^>]*>`).exec(page);
    if (!opening) throw new Error(`the page has no element ${id}`);
    const [before, tag] = opening;
    let after = before;
    for (const [name, value] of element.attributes) after = withAttribute(after, name, value);
    const begin = opening.index + before.length;
    let end = begin;
    let inside = '';
    if (element.children !== null || element.inner.size > 0) {
      end = endOf(page, tag, begin);
      inside = element.children === null ? page.slice(begin, end) : element.inside;
      for (const [name, inner] of element.inner) inside = withInner(inside, name, inner.html);
    }
    page = page.slice(0, opening.index) + after + inside + page.slice(end);
  }
  return page;
};
