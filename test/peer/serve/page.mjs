// The page of kiln serve in headless Chromium: page.mjs PROGRAM SCRIPTURE [SCREENSHOT.png]. Where there is no Chromium
// it is skipped.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Server, chatty, genaiRun } from './server.mjs';

const [program, scripture, screenshot] = process.argv.slice(2);
const browser = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'].find((name) => {
  try {
    execFileSync(name, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
});
if (!browser) {
  console.log('SKIPPED: no Chromium here, so nobody looks at the page');
  process.exit(77);
}
const chat = chatty(scripture), profile = mkdtempSync(join(tmpdir(), 'kiln_page_'));
const server = new Server(program, [scripture, chat.folder, '--threads', '2', '--api-key', 'k']);
const url = await server.url;
const chrome = spawn(browser, ['--headless', '--no-sandbox', '--disable-gpu', '--remote-debugging-pipe', '--window-size=900,700',
                               `--user-data-dir=${profile}`], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'], detached: true });
// Chrome's protocol: JSON that ends with a zero byte.
let last = 0, rest = '';
const waiting = new Map(), complaints = [];
chrome.stdio[4].on('data', (bytes) => {
  const all = (rest + bytes).split('\0');
  rest = all.pop();
  for (const one of all.map((text) => JSON.parse(text))) {
    if (one.method === 'Log.entryAdded' && one.params.entry.level === 'error') complaints.push(one.params.entry.text);
    if (one.method === 'Runtime.exceptionThrown') complaints.push(one.params.exceptionDetails.text);
    waiting.get(one.id)?.(one);
  }
});
const call = (method, params = {}, sessionId) => new Promise((done, failed) => {
  waiting.set(++last, (r) => (r.error ? failed(new Error(r.error.message)) : done(r.result)));
  chrome.stdio[3].write(JSON.stringify({ id: last, method, params, sessionId }) + '\0');
});
try {
  const { targetId } = await call('Target.createTarget', { url });
  const { sessionId } = await call('Target.attachToTarget', { targetId, flatten: true });
  for (const domain of ['Log', 'Runtime', 'Page']) await call(domain + '.enable', {}, sessionId);
  const value = async (expression) => (await call('Runtime.evaluate', { expression, returnByValue: true }, sessionId)).result.value;
  const until = async (expression, what) => {
    for (let k = 0; k < 2000; ++k) {
      if (await value(expression)) return;
      await new Promise((done) => setTimeout(done, 25));
    }
    assert.fail(`${what}: ${complaints} ${await value('document.body?.innerText')}`);
  };
  await until("document.readyState === 'complete' && document.getElementById('model') !== null", 'the page does not come');
  
  await value("document.getElementById('key').value = 'k', document.getElementById('key').dispatchEvent(new Event('change'))");
  await until("document.getElementById('model').options.length === 2", 'models are not listed');
  const say = (text) => value(`document.getElementById('text').value = ${JSON.stringify(text)}, document.getElementById('form').requestSubmit()`);
  const answers = "[...document.querySelectorAll('.assistant')].map((e) => e.textContent)";
  // a chat, to the end of what the model makes
  await say('In the beginning');
  const expected = genaiRun(program, scripture, 'In the beginning', 252, 4);
  await until(`${answers}[0] === ${JSON.stringify(expected)}`, 'the answer differs');
  await until("document.getElementById('send').textContent === 'Send'", 'the answer does not end');
  // a text for a model without a chat template, with what a page might take for its own
  await value("document.getElementById('model').value = 'scripture', document.getElementById('fresh').click()");
  await say('<b>In the beginning</b>');
  await until("document.getElementById('send').textContent === 'Send' && document.querySelector('.assistant')?.textContent.length > 20", 'no text');
  assert.equal(await value("document.querySelector('.user').innerHTML"), '&lt;b&gt;In the beginning&lt;/b&gt;');
  if (screenshot) {
    const { data } = await call('Page.captureScreenshot', {}, sessionId);
    writeFileSync(screenshot, Buffer.from(data, 'base64'));
  }
  // a list without a key, and the model without a template
  assert.deepEqual(complaints.filter((text) => !/status of 40[01]/.test(text)), []);
  console.log('the page chats');
} finally {
  const gone = new Promise((done) => chrome.on('exit', done));
  process.kill(-chrome.pid, 'SIGKILL');  // and all of its own processes
  await gone;
  await server.end();
  chat.remove();
  rmSync(profile, { recursive: true, force: true });
}
