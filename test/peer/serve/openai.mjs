// OpenAI's own client against kiln serve: openai.mjs PROGRAM SCRIPTURE MODULES.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Server, chatty, embedding, genaiRun, raw } from './server.mjs';

const [program, scripture, modules] = process.argv.slice(2);
if (!existsSync(join(modules, 'openai'))) {
  console.log("SKIPPED: OpenAI's client is not here");
  process.exit(77);
}
const OpenAI = createRequire(join(modules, 'x.js'))('openai').default;
const chat = chatty(scripture), vectors = embedding(scripture);
const server = new Server(program, [scripture, chat.folder, vectors.folder, '--api-key', 'k1', '--threads', '2', '--max-body', '65536',
                                    '--read-timeout', '2']);
const url = await server.url;
const client = new OpenAI({ baseURL: url + '/v1', apiKey: 'k1', maxRetries: 0 });
const text = { model: 'scripture', prompt: 'In the beginning', max_tokens: 24, temperature: 0 };
const talk = { model: 'chatty', messages: [{ role: 'user', content: 'In the beginning' }], max_tokens: 24, temperature: 0 };
const expected = genaiRun(program, scripture, text.prompt, 24, 4);
let passed = 0;
async function test(name, f) {
  try {
    await f();
    ++passed;
  } catch (e) {
    console.error(`FAILED ${name}: ${e.stack}`);
    process.exitCode = 1;
  }
}

await test('models', async () => {
  const names = [];
  for await (const m of client.models.list()) names.push(m.id);
  assert.deepEqual(names, ['chatty', 'scripture', 'vectors']);
  assert.equal((await client.models.retrieve('scripture')).object, 'model');
});

await test('greedy texts are those of genai run, whatever else is in the batch', async () => {
  const others = Array.from({ length: 12 }, (_, k) =>
    client.completions.create({ ...text, prompt: 'And it came to pass' + ' and'.repeat(k), max_tokens: 40, temperature: 1, seed: k }));
  const alike = await Promise.all(Array.from({ length: 8 }, () => client.completions.create(text)));
  for (const o of alike) assert.equal(o.choices[0].text, expected);
  await Promise.all(others);
  assert.deepEqual(alike[0].usage, { prompt_tokens: 4, completion_tokens: 24, total_tokens: 28 });
});

await test('streams', async () => {
  let made = '', usage;
  for await (const c of await client.completions.create({ ...text, stream: true, stream_options: { include_usage: true } })) {
    made += c.choices[0]?.text ?? '';
    usage = c.usage ?? usage;
  }
  assert.equal(made, expected);
  assert.equal(usage.completion_tokens, 24);
  const runner = client.chat.completions.stream(talk);
  const final = await runner.finalChatCompletion();
  assert.equal(final.choices[0].message.content, expected);
  assert.equal(final.choices[0].finish_reason, 'length');
});

await test('chat, n, stop, logprobs', async () => {
  const many = await client.chat.completions.create({ ...talk, n: 3 });
  assert.deepEqual(many.choices.map((c) => c.message.content), [expected, expected, expected]);
  const stop = expected.slice(10, 15);
  const cut = await client.chat.completions.create({ ...talk, stop });
  assert.equal(cut.choices[0].message.content, expected.slice(0, expected.indexOf(stop)));
  assert.equal(cut.choices[0].finish_reason, 'stop');
  const scored = await client.chat.completions.create({ ...talk, logprobs: true, top_logprobs: 2 });
  assert.equal(scored.choices[0].logprobs.content.map((t) => t.token).join(''), expected);
  assert.ok(scored.choices[0].logprobs.content.every((t) => t.logprob <= 0 && t.top_logprobs[0].logprob === t.logprob));
});

await test('schemas and tools', async () => {
  const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'], additionalProperties: false };
  const formed = await client.chat.completions.create({
    ...talk, response_format: { type: 'json_schema', json_schema: { name: 's', strict: true, schema } } });
  if (formed.choices[0].finish_reason === 'stop') assert.ok(Number.isInteger(JSON.parse(formed.choices[0].message.content).n));
  const parameters = { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'], additionalProperties: false };
  const called = await client.chat.completions.create({
    ...talk, max_tokens: 100, tools: [{ type: 'function', function: { name: 'f', parameters } }], tool_choice: 'required' });
  const call = called.choices[0].message.tool_calls[0];
  assert.equal(call.function.name, 'f');
  assert.equal(typeof JSON.parse(call.function.arguments).ok, 'boolean');
});

await test('embeddings', async () => {
  const input = ['In the beginning', 'And it came to pass', 'In the beginning'];
  const made = await client.embeddings.create({ model: 'vectors', input });  // the client asks for base64
  const plain = await client.embeddings.create({ model: 'vectors', input, encoding_format: 'float' });
  assert.deepEqual(made.data.map((d) => [...d.embedding]), plain.data.map((d) => d.embedding.map(Math.fround)));
  assert.deepEqual(made.data.map((d) => d.index), [0, 1, 2]);
  const [a, b, c] = plain.data.map((d) => d.embedding);
  const dot = (x, y) => x.reduce((sum, v, k) => sum + v * y[k], 0);
  assert.equal(a.length, 64);
  assert.ok(Math.abs(dot(a, a) - 1) < 1e-5 && dot(a, b) < 0.999);
  assert.deepEqual(a, c);
  const few = (await client.embeddings.create({ model: 'vectors', input: input[0], dimensions: 16, encoding_format: 'float' })).data[0].embedding;
  assert.equal(few.length, 16);
  const part = a.slice(0, 16), long = Math.sqrt(dot(part, part));
  few.forEach((v, k) => assert.ok(Math.abs(v - part[k] / long) < 1e-5));
  const many = await Promise.all(Array.from({ length: 16 }, () => client.embeddings.create({ model: 'vectors', input, encoding_format: 'float' })));
  for (const m of many) assert.deepEqual(m.data[0].embedding, a);
  await assert.rejects(client.embeddings.create({ model: 'scripture', input }), OpenAI.BadRequestError);
  await assert.rejects(client.embeddings.create({ model: 'vectors', input: 'and '.repeat(40) }), (e) => e.code === 'context_length_exceeded');
});

await test('errors are the classes of the client', async () => {
  await assert.rejects(client.completions.create({ ...text, model: 'none' }), OpenAI.NotFoundError);
  await assert.rejects(client.completions.create({ ...text, temperature: 9 }),
                       (e) => e instanceof OpenAI.BadRequestError && e.param === 'temperature');
  await assert.rejects(client.completions.create({ ...text, max_tokens: 1000 }), (e) => e.code === 'context_length_exceeded');
  await assert.rejects(new OpenAI({ baseURL: url + '/v1', apiKey: 'k2', maxRetries: 0 }).models.list(), OpenAI.AuthenticationError);
  await assert.rejects(client.completions.create({ ...text, prompt: 'x'.repeat(100000) }), (e) => e.status === 413);
});

await test('clients that leave end their sequences', async () => {
  for (let k = 0; k < 4; ++k) {
    const stream = await client.completions.create({ ...text, max_tokens: 240, n: 4, stream: true });
    for await (const c of stream) break;
    stream.controller.abort();
    const abort = new AbortController();
    const whole = client.completions.create({ ...text, max_tokens: 240, n: 8 }, { signal: abort.signal });
    setTimeout(() => abort.abort(), 20);
    await assert.rejects(whole);
  }
  for (let k = 0; k < 1500; ++k) {
    const all = await (await fetch(url + '/metrics')).text();
    if (/kiln_sequences\{model="scripture",state="running"\} 0/.test(all) && /kiln_canceled_sequences_total\{model="scripture"\} [1-9]/.test(all)) return;
    await new Promise((done) => setTimeout(done, 20));
  }
  assert.fail('sequences run on');
});

await test('hostile requests are refused and the next one is served', async () => {
  const head = 'POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer k1\r\n';
  assert.match(await raw(url, 'no http\r\n\r\n'), /^HTTP\/1.1 400 .*/s);
  assert.match(await raw(url, head + 'Content-Length: 99999999999\r\n\r\n'), /^HTTP\/1.1 413 .*body_too_large/s);
  assert.match(await raw(url, head + 'Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc'), /^HTTP\/1.1 415 /);
  assert.match(await raw(url, head + 'Content-Length: 2\r\nConnection: close\r\n\r\n\xff{'), /^HTTP\/1.1 400 .*invalid_json/s);
  assert.match(await raw(url, 'GET /' + 'a'.repeat(20000) + ' HTTP/1.1\r\n\r\n'), /^HTTP\/1.1 4(00|14) /);
  assert.match(await raw(url, head + 'Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n'), /^HTTP\/1.1 400 /);
  // curl says of JSON that it is a form
  for (const type of ['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']) {
    const form = await fetch(url + '/v1/completions', { method: 'POST', body: JSON.stringify(text) + ' '.repeat(30000),
                                                        headers: { 'Content-Type': type, Authorization: 'Bearer k1' } });
    assert.equal((await form.json()).choices?.[0].text, expected);
  }
  // what a GET carries is no further request
  for (const body of ['Content-Length: 38\r\n\r\n', 'Transfer-Encoding: chunked\r\n\r\n']) {
    const two = await raw(url, 'GET /health HTTP/1.1\r\nHost: x\r\n' + body + 'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n');
    assert.match(two, /^HTTP\/1.1 200 /);
    assert.equal(two.match(/HTTP\/1.1 /g).length, 1, two.slice(0, 600));
  }
  assert.equal((await raw(url, 'GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\nGET /ready HTTP/1.1\r\nConnection: close\r\n\r\n')).match(/HTTP\/1.1 200/g).length, 2);
  // a body is not waited for where the key is none
  assert.match(await raw(url, 'POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n'), /^HTTP\/1.1 401 /);
  // pieces without end, a head without end, and a body that does not come: the connection is closed
  const since = Date.now();
  await Promise.all([
    raw(url, head + 'Transfer-Encoding: chunked\r\n\r\n' + ('10000\r\n' + 'a'.repeat(65536) + '\r\n').repeat(20), 60000),
    raw(url, head + 'X: y\r\n'.repeat(100000), 60000),
    raw(url, head + 'Content-Length: 100\r\n\r\nabc', 60000)]);
  assert.ok(Date.now() - since < 50000, 'a connection stayed open');
  for (const body of ['{"model":"scripture","prompt":' + '['.repeat(30000), '{"model":"scripture","prompt":"\\ud800"}',
                      '{"model":"scripture","prompt":[1e999]}', '{"model":"scripture","prompt":"a","n":-1}', 'null'])
    assert.match(await raw(url, head + `Connection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`), /^HTTP\/1.1 400 .*"error"/s);
  assert.equal((await client.completions.create(text)).choices[0].text, expected);
});

await test('memory stays as it is', async () => {
  const load = async (n) => {
    for (let k = 0; k < n; ++k)
      await Promise.all(Array.from({ length: 8 }, (_, j) => client.completions.create({ ...text, seed: j }).then(
        (o) => assert.equal(o.choices[0].text, expected))));
  };
  await load(15);
  const sizes = [server.rss()];  // what leaks grows in every round
  do {
    await load(15);
    sizes.push(server.rss());
  } while (sizes.at(-1) >= 1.03 * sizes.at(-2) && sizes.length < 6);
  assert.ok(sizes.at(-1) < 1.03 * sizes.at(-2), `resident memory, KiB: ${sizes}`);
});

await test('a hangup loads the models again; a termination lets streams end', async () => {
  server.process.kill('SIGHUP');
  while (!server.lines.some((l) => l.event === 'reload')) await new Promise((done) => setTimeout(done, 20));
  const stream = await client.completions.create({ ...text, max_tokens: 200, stream: true });
  let made = '', finish;
  for await (const c of stream) {
    if (made === '') {
      server.process.kill('SIGTERM');
      setTimeout(() => server.process.kill('SIGHUP'), 30);  // which is no second signal
    }
    made += c.choices[0].text;
    finish = c.choices[0].finish_reason ?? finish;
  }
  assert.equal(finish, 'length');
  assert.ok(made.startsWith(expected));
  assert.equal(await server.ended, 0);
});
server.process.kill('SIGKILL');
chat.remove(), vectors.remove();
console.log(`${passed} passed`);
