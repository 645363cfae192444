// Tests of the page that page.mjs runs with its own: the answer that is in its HTML, before any script, and how the scripts
// begin.
import {readFileSync} from 'node:fs';
import {ANSWER_SCRIPTS, withFirstAnswer, written} from '../../packaging/first_answer.mjs';

const SCRIPTS = ANSWER_SCRIPTS.map((name) => readFileSync(new URL(`../../src/web/page/${name}`, import.meta.url), 'utf8')).join('\n');
const median = (times) => [...times].sort((one, other) => one - other)[Math.floor(times.length / 2)];
// The range is drawn for the width that the build takes: what has no width.
const NO_WIDTH = "Object.defineProperty(Element.prototype, 'clientWidth', {get: () => 0});";
const NO_ENGINE = 'window.Worker = class { postMessage() {} terminate() {} };';
// What the engine's own first answer has not: these are of what follows it, or say how long it took.
const LATER = ['fit', 'timeline', 'timeline-note', 'curve', 'status'];
// The attributes of an element, and what is in it; parts with an id are looked at by themselves.
const SEEN = `(one, id) => {
  const element = one.getElementById(id);
  const attributes = [...element.attributes].filter(({name, value}) => name !== 'class' || value !== '').map(({name, value}) => name + '=' + value);
  return attributes.sort().join(' ') + (element.querySelector('[id]') ? '' : '>' + element.innerHTML);
}`;
const FORM_IS_THERE = "document.getElementById('published-names').children.length > 0";

export const firstAnswerTests = ({browser, address, check, same, text, usual}) => {
  // A page before which this script is run.
  const openWith = async (source, url = address) => {
    const page = await browser.open('about:blank');
    await page.send('Page.addScriptToEvaluateOnNewDocument', {source});
    await page.send('Page.navigate', {url});
    return page;
  };
  // All that the page's functions wrote, in the HTML and in the page as it is now.
  const compare = async (page, leftOut) => {
    const html = await (await fetch(address)).text();
    const {about, reply} = JSON.parse(await page.value('JSON.stringify(GPUMEM_FIRST)'));
    const ids = [...written(SCRIPTS, about, reply).keys()].filter((id) => !leftOut.includes(id));
    check(ids.length > 12, `only ${ids} were written`);
    const [there, now] = JSON.parse(await page.value(`JSON.stringify([new DOMParser().parseFromString(${JSON.stringify(html)}, 'text/html'), document]
      .map((one) => ${JSON.stringify(ids)}.map((id) => (${SEEN})(one, id))))`));
    there.forEach((one, index) => same(one, now[index], `#${ids[index]} of the HTML`));
  };
  const withText = (html, script) => withFirstAnswer(html, `const optionNamed = new Map(); const at = (id) => document.getElementById(id); const showEstimate = () => { ${script} };`, {options: []}, {});
  return {
    async 'the answer in the HTML is the page\'s own'() {
      const page = await openWith(NO_WIDTH + NO_ENGINE);
      await page.until(FORM_IS_THERE);
      await compare(page, []);
      await page.close();
    },
    async 'the answer in the HTML is the engine\'s'() {
      const page = await openWith(NO_WIDTH);
      await usual(page);
      await compare(page, LATER);
      check(/\d ms/.test(await text(page, 'status')), 'the engine has answered');
      await page.close();
    },
    'what is written into the HTML is there as it was written'() {
      same(withText('<div id="a"><p></p><ul></ul></div>', "at('a').querySelector('ul').append(\"$& $' <i>\");"),
        "<div id=\"a\"><p></p><ul>$&amp; $' &lt;i&gt;</ul></div>", 'a text');
      same(withText('<div id="a" hidden><div></div><div></div></div><p>b</p>', "at('a').textContent = '$1'; at('a').hidden = false;"),
        '<div id="a">$1</div><p>b</p>', 'an element with others of its tag');
      same(withText('<input id="a">', "at('a').setAttribute('aria-label', '$&');"), '<input id="a" aria-label="$&amp;">', 'an attribute');
      for (const script of ["at('a').value = '1';", "at('b').textContent = '';", "at('a').querySelector('ul').append('c');"]) {
        let fault = '';
        try { withText('<p id="a"></p>', script); } catch (error) { fault = error.message; }
        check(fault !== '', `${script} is left out, and nobody is told`);
      }
    },
    async 'the first answer is there with the page'() {
      const times = [];
      const painted = [];
      for (let round = 0; round < 10; round += 1) {
        const page = await browser.open(address);
        await page.until("performance.getEntriesByName('first-contentful-paint').length > 0");
        times.push(await page.value("Math.round(performance.getEntriesByName('gpumem-answer')[0].startTime)"));
        painted.push(await page.value("Math.round(performance.getEntriesByName('first-contentful-paint')[0].startTime)"));
        check((await text(page, 'verdict')).startsWith('Fits: 3.96 GiB'), `the first verdict: ${await text(page, 'verdict')}`);
        await page.close();
      }
      console.log(`medians of 10 from the page's opening: its first answer is read after ${median(times)} ms, and painted after ${median(painted)} ms`);
      check(median(times) <= 1000, `the first answer took ${times.join(', ')} ms`);
    },
    async 'a link\'s page shows no other answer first'() {
      const page = await openWith(NO_ENGINE, `${address}#nonsense`);
      await page.until(FORM_IS_THERE);
      check(await page.value("document.getElementById('result').hidden"), 'the first example stands there');
      same(await text(page, 'status'), 'Loading…', 'status');
      await page.close();
    },
    async 'the page starts where nobody tells of paints'() {
      for (const source of ['delete window.PerformanceObserver;', "window.PerformanceObserver = class { observe() { throw new TypeError('of another browser'); } };"]) {
        const page = await openWith(source + NO_ENGINE);
        await page.until(FORM_IS_THERE);
        same(page.faults.join(' | '), '', 'console');
        await page.close();
      }
    },
    async 'a page without one of its files says so'() {
      for (const name of ['examples.js', 'app.js']) {
        const page = await browser.open('about:blank');
        await page.send('Network.setBlockedURLs', {urls: [`*/${name}`]});
        await page.send('Page.navigate', {url: address});
        const says = `The page cannot start: ${name} is not there.`;
        await page.until(`document.getElementById('status')?.textContent === '${says}'`);
        await page.close();
      }
    },
    async 'without scripts the first answer stands there, and says what it is'() {
      const page = await browser.open('about:blank');
      await page.send('Emulation.setScriptExecutionDisabled', {value: true});
      await page.send('Page.navigate', {url: address});
      await page.until("document.querySelector('noscript p')?.innerText.startsWith('Below is the answer for the first example.')");
      check(await page.value("document.getElementById('verdict').innerText.startsWith('Fits: 3.96 GiB')"), 'no answer');
      await page.close();
    },
  };
};
