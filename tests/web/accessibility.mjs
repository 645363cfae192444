// Input: an open page. Output: what keeps people from using it: controls without a name, text that is hard to read.

const CONTROLS = new Set(['button', 'checkbox', 'combobox', 'link', 'spinbutton', 'textbox', 'slider', 'listbox', 'radio', 'region', 'form', 'main', 'Iframe', 'table']);
const MAY_BE_NAMELESS = new Set(['table', 'link']);

// By the tree that screen readers get.
export const namelessControls = async (page) => {
  const {nodes} = await page.send('Accessibility.getFullAXTree');
  const found = nodes.filter((node) => !node.ignored && CONTROLS.has(node.role?.value));
  const nameless = found.filter((node) => !node.name?.value && !MAY_BE_NAMELESS.has(node.role.value));
  const faults = nameless.map((node) => `a ${node.role.value} without a name`);
  if (found.length < 50) faults.push(`only ${found.length} controls in the tree`);
  const names = new Map();
  for (const node of found.filter((one) => ['combobox', 'spinbutton', 'textbox', 'checkbox'].includes(one.role.value))) {
    if (names.has(node.name.value)) faults.push(`two controls are called ${node.name.value}`);
    names.set(node.name.value, node);
  }
  return faults;
};

// Text whose contrast is below 4.5, as WCAG 2 counts it (AA).
export const contrastFaults = (page) => page.value(`(() => {
  const parts = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const channel = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = ([red, green, blue]) => 0.2126 * channel(red) + 0.7152 * channel(green) + 0.0722 * channel(blue);
  const backOf = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parts(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const faults = new Set();
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own && !['INPUT', 'SELECT', 'TEXTAREA'].includes(element.tagName)) continue;
    if (!element.getClientRects().length || element.closest('script, noscript, option')) continue;
    const style = getComputedStyle(element);
    const inked = element instanceof SVGElement ? style.fill : style.color;
    const [one, other] = [luminance(parts(inked)), luminance(backOf(element))].sort((left, right) => right - left);
    const ratio = (one + 0.05) / (other + 0.05);
    if (ratio < 4.5) faults.add(element.tagName + '#' + element.id + '.' + element.className + ' ' + element.textContent.slice(0, 20) + ': ' + ratio.toFixed(2));
  }
  return [...faults];
})()`);
