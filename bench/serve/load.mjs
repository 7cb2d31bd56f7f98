// Load on kiln serve: load.mjs URL MODEL [--streams 32] [--tokens 128] [--rounds 4]
// [--rate REQUESTS_PER_SECOND --seconds 20] [--key KEY]. Without --rate, so many streams side by side against one alone;
// with it, requests that come as a Poisson process. Streams are read as bytes and their pieces counted, that the client takes little of the machine's time.
import { connect } from 'node:net';

const [url, model, ...words] = process.argv.slice(2);
const option = (name, otherwise) => {
  const at = words.indexOf('--' + name);
  return at < 0 ? otherwise : Number.isNaN(Number(words[at + 1])) ? words[at + 1] : Number(words[at + 1]);
};
const tokens = option('tokens', 128), streams = option('streams', 32), rounds = option('rounds', 4), rate = option('rate', 0), seconds = option('seconds', 20);
const { hostname, port } = new URL(url);
const now = () => performance.now();
const beginnings = ['In the beginning', 'And it came to pass', 'Then said the king', 'The children of Israel', 'Blessed is the man'];

// One stream: when each piece came.
function stream(prompt, count) {
  const body = JSON.stringify({ model, prompt, max_tokens: count, temperature: 0, stream: true, stream_options: { include_usage: true } });
  return new Promise((done, failed) => {
    const begin = now(), times = [];
    let rest = '', status = '', made = 0;
    const socket = connect(port, hostname, () => {
      socket.setNoDelay(true);
      socket.write(`POST /v1/completions HTTP/1.1\r\nHost: ${hostname}\r\nConnection: close\r\nAuthorization: Bearer ${option('key', '')}\r\n` +
        `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
    });
    socket.on('data', (bytes) => {
      const text = rest + bytes.toString('latin1'), t = now();
      if (!status) status = text.slice(9, 12);
      let from = 0;
      for (let at; (at = text.indexOf('"finish_reason":null', from)) >= 0; from = at + 20) times.push(t);
      made = Number(/"completion_tokens":(\d+)/.exec(text)?.[1] ?? made);  // a token may be no text yet
      rest = text.slice(Math.max(from, text.length - 30));
    });
    socket.on('error', failed);
    socket.on('close', () => done({ status, begin, times, made, end: now() }));
  });
}
const quantile = (all, q) => all.sort((a, b) => a - b)[Math.min(all.length - 1, Math.floor(q * all.length))];
const ms = (x) => x.toFixed(2) + ' ms';

function report(name, all, wall) {
  const good = all.filter((r) => r.status === '200' && r.times.length > 0);
  const first = good.map((r) => r.times[0] - r.begin);
  const between = good.flatMap((r) => r.times.slice(1).map((t, k) => t - r.times[k]));
  const made = good.reduce((n, r) => n + r.made, 0);
  const perSecond = made / wall * 1e3;
  console.log(`${name}: ${good.length} of ${all.length} requests, ${made} tokens, ${perSecond.toFixed(1)} tokens/s; ` +
    `first token p50 ${ms(quantile(first, 0.5))} p99 ${ms(quantile(first, 0.99))}; ` +
    `between tokens p50 ${ms(quantile(between, 0.5))} p99 ${ms(quantile(between, 0.99))}`);
  return perSecond;
}

// Prompts of all streams are as those of one: of every seven one is of each length.
const prompt = (k) => beginnings[k % beginnings.length] + ' and'.repeat(k % 7);
async function together(count, rounds) {
  const all = [], begin = now();
  await Promise.all(Array.from({ length: count }, async (_, k) => {
    for (let r = 0; r < rounds; ++r) all.push(await stream(prompt(k + count * r), tokens));
  }));
  return report(`${count} stream${count > 1 ? 's' : ''}`, all, now() - begin);
}

await stream(beginnings[0], 8);
if (rate === 0) {
  const one = await together(1, 7 * Math.ceil(rounds / 3)), many = await together(streams, rounds);
  console.log(`${streams} streams make ${(many / one).toFixed(2)} times the tokens a second of one`);
} else {
  const pending = [], begin = now();
  for (let at = 0; ;) {
    at += -Math.log(1 - Math.random()) / rate * 1e3;
    if (at > seconds * 1e3) break;
    await new Promise((done) => setTimeout(done, Math.max(0, at - (now() - begin))));
    pending.push(stream(prompt(pending.length), tokens));
  }
  report(`${rate} requests/s`, await Promise.all(pending), now() - begin);
}
