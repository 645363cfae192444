// Tests of the page that page.mjs runs with its own: the answer that is in its HTML, before any script.
const SHOWN = ['verdict', 'headline', 'figures', 'parts', 'peak', 'assumed', 'warnings', 'figures-help'];
const median = (times) => [...times].sort((one, other) => one - other)[Math.floor(times.length / 2)];

export const firstAnswerTests = ({browser, address, check, same, text, usual}) => ({
  async 'the answer in the HTML is the engine\'s'() {
    const html = await (await fetch(address)).text();
    const page = await browser.open(address);
    await usual(page);
    const [written, computed] = JSON.parse(await page.value(`JSON.stringify([new DOMParser().parseFromString(${JSON.stringify(html)}, 'text/html'), document]
      .map((one) => ${JSON.stringify(SHOWN)}.map((id) => one.getElementById(id).outerHTML)))`));
    written.forEach((one, index) => same(one, computed[index], `#${SHOWN[index]} of the HTML`));
    check(/\d ms/.test(await text(page, 'status')), 'the engine has answered');
    await page.close();
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
    const page = await browser.open('about:blank');
    await page.send('Page.addScriptToEvaluateOnNewDocument', {source: 'window.Worker = class { postMessage() {} terminate() {} };'});
    await page.send('Page.navigate', {url: `${address}#nonsense`});
    await page.until("document.getElementById('published-names').children.length > 0");
    check(await page.value("document.getElementById('result').hidden"), 'the first example stands there');
    same(await text(page, 'status'), 'Loading…', 'status');
    await page.close();
  },
});
