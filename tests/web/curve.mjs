// Tests of the page that page.mjs runs with its own: the chart over a size, and faults at their field.
export const curveTests = ({browser, address, answerOf, check, el, same, set, text, usual}) => ({
  async 'a chart shows memory over the batch size and the sequence length'() {
    const page = await browser.open(address);
    await usual(page);
    const dots = () => page.value("[...document.querySelectorAll('#curve circle')].map(({dataset}) => [Number(dataset.at), Number(dataset.bytes)])");
    const found = await dots();
    check(found.length >= 8, `${found.length} sizes`);
    const [batch, bytes] = found[found.length - 1];
    const {estimates: [wanted], capacity_bytes: capacity} = answerOf('estimate', 'models/summaries/resnet50.torchsummary.txt', '--batch', String(batch));
    same(bytes, wanted.expected_bytes, `expected at batch ${batch}`);
    check(bytes > capacity, 'the chart goes beyond what fits');
    const largest = Number(await text(page, 'largest-batch'));
    const [, below, above] = /between (\d+) and (\d+) samples/.exec(await text(page, 'curve-note')) || [];
    check(Number(below) <= largest && largest < Number(above), `${largest} is not from ${below} to ${above}`);
    check(await page.value(`${el('curve-axis')}.options[1].disabled`), 'a net of images has no sequence length');
    await set(page, 'example', 'llama3-8b-fsdp2');
    await page.until(`${el('headline')}.textContent.startsWith('llama3_8b')`);
    await usual(page);
    await set(page, 'curve-axis', 'seq_length');
    await page.until(`${el('curve-note')}.textContent.length > 0 && document.querySelector('#curve svg').getAttribute('aria-label').includes('tokens')`);
    const lengths = (await dots()).map(([length]) => length);
    check(lengths.includes(4096) && Math.max(...lengths) === 16384, `lengths: ${lengths}`);
    same(page.faults.join(' | '), '', 'console');
    await page.close();
  },
  async 'a chart without sizes says why, and a fault of it leaves the answer'() {
    const page = await browser.open(address);
    await usual(page);
    const headline = await text(page, 'headline');
    // In place of the worker's answers to questions for an estimate.
    const hear = (data) => page.value(`(() => {
      window.send = window.send || Worker.prototype.postMessage;
      Worker.prototype.postMessage = function (message) {
        if (message.verb === 'estimate') setTimeout(() => this.onmessage({data: {id: message.id, ...${JSON.stringify(data)}}}));
        else window.send.call(this, message);
      };
    })()`);
    const again = () => set(page, 'curve-axis', 'batch_size');
    const shown = () => page.value("document.querySelectorAll('#curve svg').length");
    await hear({reply: {says: 'too large for the test'}});
    await again();
    await page.until(`${el('curve-note')}.textContent.includes('none of its sizes has an answer. too large for the test')`);
    same(await shown(), 0, 'charts');
    await hear({died: 'broken by the test'});
    await again();
    await page.until(`${el('curve-note')}.textContent.includes('broken by the test')`);
    same(await shown(), 0, 'charts');
    same(await text(page, 'headline'), headline, 'the answer stays');
    check(await page.value(`${el('fault')}.hidden && !${el('result')}.hidden`), 'the answer is shown');
    await page.value('(() => { Worker.prototype.postMessage = window.send; })()');
    await again();
    await page.until("document.querySelectorAll('#curve svg').length === 1");
    same(page.faults.join(' | '), '', 'console');
    await page.close();
  },
  async 'a fault stands at the field that it names'() {
    const page = await browser.open(address);
    await usual(page);
    const marked = () => page.value("[...document.querySelectorAll('[aria-invalid=true]')].map(({id}) => id).join(' ')");
    for (const [id, wrong, right] of [['o-seq_length', '128', ''], ['o-batch_size', '0', '32']]) {
      await set(page, id, wrong, 'input');
      await page.until(`!${el('fault')}.hidden && document.querySelector('[aria-invalid=true]')`);
      same(await marked(), id, 'marked');
      const words = await page.value(`${el(`${id}-fault`)}.textContent`);
      check((await text(page, 'fault')).includes(words), `at the field: ${words}`);
      check(await page.value(`${el(id)}.getAttribute('aria-describedby').includes('${id}-fault')`), 'a reader of the field hears it');
      await page.value(`[...${el('fault')}.querySelectorAll('button')].find((one) => one.textContent === 'Go to the field').click()`);
      same(await page.value('document.activeElement.id'), id, 'the button leads there');
      await set(page, id, right, 'input');
      await usual(page);
      same(await marked(), '', 'an answer takes the marks away');
    }
    same(page.faults.join(' | '), '', 'console');
    await page.close();
  },
});
