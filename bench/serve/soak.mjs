// Mixed load on kiln serve, with clients that leave and requests that are none: soak.mjs PROGRAM SCRIPTURE [SECONDS] [PERCENT].
// No text may be wrong, no request lost, and resident memory stays as it was within 2 %, or so many: a sanitizer's own
// memory grows.
import { genaiRun, raw, Server } from '../../test/peer/serve/server.mjs';

const [program, scripture, seconds = '60', percent = '2'] = process.argv.slice(2);
const server = new Server(program, [scripture, '--threads', '2', '--read-timeout', '2']);
const url = await server.url;
const begin = Date.now(), end = begin + Number(seconds) * 1000;
const prompts = ['In the beginning', 'And it came to pass', 'Then said the king', 'Blessed is the man'];
const expected = new Map();
const ask = (body, signal) => fetch(url + '/v1/completions', { method: 'POST', body: JSON.stringify({ model: 'scripture', ...body }), signal });
for (const prompt of prompts) {
  const first = await (await ask({ prompt, max_tokens: 1, temperature: 0 })).json();
  expected.set(prompt, genaiRun(program, scripture, prompt, 40, first.usage.prompt_tokens));
}
const counts = { whole: 0, streamed: 0, drawn: 0, left: 0, refused: 0 };
const faults = [];
const check = (is, what) => is || faults.push(what);
const actions = [
  async (prompt) => {
    const o = await (await ask({ prompt, max_tokens: 40, temperature: 0 })).json();
    check(o.choices?.[0].text === expected.get(prompt), `whole: ${JSON.stringify(o)}`);
    ++counts.whole;
  },
  async (prompt) => {
    const all = await (await ask({ prompt, max_tokens: 40, temperature: 0, stream: true })).text();
    const text = all.split('\n\n').filter((e) => e.startsWith('data: {')).map((e) => JSON.parse(e.slice(6)).choices[0].text).join('');
    check(text === expected.get(prompt) && all.endsWith('data: [DONE]\n\n'), `stream: ${text}`);
    ++counts.streamed;
  },
  async (prompt) => {
    const o = await (await ask({ prompt, max_tokens: 30, temperature: 1, n: 4, top_p: 0.9, logprobs: 2 })).json();
    check(o.choices?.length === 4, `drawn: ${JSON.stringify(o)}`);
    ++counts.drawn;
  },
  async (prompt) => {
    const abort = new AbortController();
    setTimeout(() => abort.abort(), Math.random() * 40);
    await ask({ prompt, max_tokens: 200, n: 2, stream: Math.random() < 0.5 }, abort.signal).then((r) => r.text()).catch(() => undefined);
    ++counts.left;
  },
  async () => {
    const bodies = ['{', '{"model":"scripture","prompt":' + '['.repeat(999), '{"model":"scripture","prompt":"a","temperature":"x"}', '\xff\x00'];
    const body = bodies[Math.floor(Math.random() * bodies.length)];
    const cut = Math.random() < 0.3;  // the body does not come
    const answer = await raw(url, `POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(body) + (cut ? 9 : 0)}\r\n\r\n${body}`, cut ? 30 : 3000);
    check(cut || answer.startsWith('HTTP/1.1 400 '), `refused: ${answer.slice(0, 200)}`);
    ++counts.refused;
  },
];
let before = 0;
const samples = [];
const sampler = setInterval(() => samples.push(server.rss()), 5000);
await Promise.all(Array.from({ length: 12 }, async () => {
  while (Date.now() < end) {
    await actions[Math.floor(Math.random() * actions.length)](prompts[Math.floor(Math.random() * prompts.length)])
      .catch((e) => faults.push(String(e)));
    if (!before && Date.now() > begin + 0.3 * (end - begin)) before = server.rss();
  }
}));
clearInterval(sampler);
const peak = server.peak();
await new Promise((done) => setTimeout(done, 500));
const after = server.rss(), state = await (await fetch(url + '/metrics')).text();
check(/kiln_sequences\{model="scripture",state="running"\} 0/.test(state), 'sequences run on');
check(after <= (1 + Number(percent) / 100) * before, 'memory grew');
console.log(JSON.stringify(counts), `resident ${before} KiB, at the end ${after} KiB, at most ${peak} KiB (every 5 s: ${samples})`, `${faults.length} faults`, ...faults.slice(0, 3));
check((await server.end()) === 0, 'the exit status');
process.exit(faults.length > 0 ? 1 : 0);
