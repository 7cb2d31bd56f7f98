// ep_node.mjs PEER PACKAGE: sessions of onnxruntime-node on kiln give what its own provider gives. PEER is the folder of
// node_modules, PACKAGE kiln's.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { Worker, isMainThread, workerData } from 'node:worker_threads';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { setTimeout as sleep } from 'node:timers/promises';
import { model } from './models.mjs';

// Halves have an array of their own from Node 24 on. Until then one of integers of another kind than that of their bits
// stands for it: as Float16Array, Node-API must not be given it.
if (workerData === 'halves') globalThis.Float16Array ??= class Float16Array extends Int16Array {};
const require = createRequire(import.meta.url);
const [, , peer, folder] = process.argv;
const ort = require(`${peer}/onnxruntime-node`);
const { register } = require(folder);
register(ort, isMainThread ? 50 : 200);
const DIGITS = 'examples/models/digits/model.onnx';
const kiln = { executionProviders: ['kiln', 'cpu'], logSeverityLevel: 3 };
const cpu = { executionProviders: ['cpu'], logSeverityLevel: 3 };

const ARRAYS = {
  float32: Float32Array, float64: Float64Array, int8: Int8Array, uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array,
  int32: Int32Array, uint32: Uint32Array, int64: BigInt64Array, uint64: BigUint64Array, bool: Uint8Array,
  float16: globalThis.Float16Array ?? Uint16Array,
};
const NUMBERS = {
  float32: 1, uint8: 2, int8: 3, uint16: 4, int16: 5, int32: 6, int64: 7, string: 8, bool: 9, float16: 10, float64: 11,
  uint32: 12, uint64: 13,
};
// y = x, of n rows.
const identity = (type) => {
  const of = (name) => ({ name, type: NUMBERS[type], dims: ['n', 3] });
  return model([{ op: 'Identity', inputs: ['x'], outputs: ['y'] }], [of('x')], [of('y')]);
};
const product = (dims) => dims.reduce((a, b) => a * b, 1);

// A tensor of small numbers; halves as the bits of 1, 2, 0.5 and 3 where there is no Float16Array.
function ramp(type, dims) {
  const n = product(dims);
  const at = (i) => (type === 'bool' ? i % 2 : (i * 7) % 11);
  if (type === 'string') return new ort.Tensor('string', Array.from({ length: n }, (_, i) => 'text ' + at(i)), dims);
  const halves = [0x3c00, 0x4000, 0x3800, 0x4200];
  const big = type === 'int64' || type === 'uint64';
  const data = ARRAYS[type].from({ length: n }, (_, i) => (big ? BigInt(at(i)) : type === 'float16' ? halves[i % 4] : at(i)));
  return new ort.Tensor(type, data, dims);
}

function same(a, b, most = 0) {
  assert.equal(a.type, b.type);
  assert.deepEqual([...a.dims], [...b.dims]);
  assert.equal(a.data.length, b.data.length);
  for (let i = 0; i < a.data.length; i++)
    if (!(typeof a.data[i] === 'number' && Math.abs(a.data[i] - b.data[i]) <= most)) assert.equal(a.data[i], b.data[i]);
}

async function in_worker(workerData) {
  const worker = new Worker(new URL(import.meta.url), { argv: [peer, folder], workerData });
  const code = await new Promise((resolve, reject) => { worker.on('error', reject); worker.on('exit', resolve); });
  assert.equal(code, 0);
}

const tests = {
  async digits() {
    const own = await ort.InferenceSession.create(DIGITS, cpu);
    const session = await ort.InferenceSession.create(DIGITS, kiln);
    assert.deepEqual(session.inputNames, own.inputNames);
    assert.deepEqual(session.outputNames, own.outputNames);
    assert.deepEqual(session.inputMetadata, own.inputMetadata);
    assert.deepEqual(session.outputMetadata, own.outputMetadata);
    const [input] = session.inputNames, [output] = session.outputNames;
    const rest = session.inputMetadata[0].shape.slice(1);
    for (const batch of [1, 5, 2]) {  // one session for every size of the batch
      const feeds = { [input]: ramp('float32', [batch, ...rest]) };
      same((await session.run(feeds))[output], (await own.run(feeds))[output], 1e-4);
      same((await session.run(feeds, [output]))[output], (await own.run(feeds))[output], 1e-4);
    }
    await session.release();
    await assert.rejects(session.run({ [input]: ramp('float32', [1, ...rest]) }), /released/);
    await session.release();
  },

  // a session that names no provider: the priority decides whose it is
  async by_default() {
    const session = await ort.InferenceSession.create(DIGITS, { logSeverityLevel: 3 });
    const ours = (await ort.InferenceSession.create(DIGITS, kiln)).handler.constructor;
    assert.equal(session.handler instanceof ours, !isMainThread);
  },

  async from_bytes() {
    const bytes = readFileSync(DIGITS);
    const session = await ort.InferenceSession.create(new Uint8Array(bytes), kiln);
    const shared = await ort.InferenceSession.create(bytes.buffer, bytes.byteOffset, bytes.byteLength, kiln);
    assert.deepEqual(session.inputNames, shared.inputNames);
  },

  async every_type() {
    for (const type of [...Object.keys(ARRAYS), 'string']) {
      const session = await ort.InferenceSession.create(identity(type), kiln);
      assert.equal(session.inputMetadata[0].type, type);
      for (const dims of [[2, 3], [0, 3], [7, 3]]) {
        const x = ramp(type, dims);
        const { y } = await session.run({ x });
        same(y, x);
        assert.ok(type === 'string' || y.data instanceof ARRAYS[type]);
        if (product(dims) > 0) {
          // into memory of the program's, which comes back as it was given
          const into = type === 'string' ? new ort.Tensor('string', Array(product(dims)).fill(''), dims)
            : new ort.Tensor(type, new ARRAYS[type](product(dims)), dims);
          const result = await session.run({ x }, { y: into });
          assert.equal(result.y, into);
          same(into, x);
        }
      }
    }
  },

  // kiln took the nodes: with no fallback to the CPU's provider a session is made all the same
  async takes_every_node() {
    const strict = { ...kiln, extra: { session: { disable_cpu_ep_fallback: '1' } } };
    await ort.InferenceSession.create(DIGITS, strict);
  },

  async options() {
    const half = await ort.InferenceSession.create(DIGITS, { executionProviders: [{ name: 'kiln', fp16_enable: true }, 'cpu'], logSeverityLevel: 3 });
    const full = await ort.InferenceSession.create(DIGITS, { ...kiln, intraOpNumThreads: 1, graphOptimizationLevel: 'all', executionMode: 'sequential', enableMemPattern: true, enableCpuMemArena: false, logId: 'x', freeDimensionOverrides: { N: 2 } });
    const feeds = { [half.inputNames[0]]: ramp('float32', [2, ...half.inputMetadata[0].shape.slice(1)]) };
    const a = (await half.run(feeds))[half.outputNames[0]], b = (await full.run(feeds, { tag: 'tagged', logSeverityLevel: 3 }))[half.outputNames[0]];
    same(a, b, 0.1);
    assert.notDeepEqual(a.data, b.data);
    for (const [wrong, message] of [
      [{ executionProviders: [{ name: 'kiln', fp17_enable: '1' }] }, /fp17_enable/],
      [{ executionProviders: ['kiln'], graphOptimizationLevel: 'most' }, /graphOptimizationLevel must be one of all, basic/],
      [{ executionProviders: ['kiln'], intraOpNumThreads: -1 }, /intraOpNumThreads/],
      [{ executionProviders: ['kiln'], enableMemPattern: 'maybe' }, /enableMemPattern must be true or false/],
      [{ executionProviders: ['kiln'], externalData: ['weights.bin'] }, /externalData/],
    ])
      await assert.rejects(ort.InferenceSession.create(DIGITS, wrong), message);
  },

  async concurrent_runs() {
    const session = await ort.InferenceSession.create(DIGITS, kiln);
    const [input] = session.inputNames, [output] = session.outputNames;
    const shape = session.inputMetadata[0].shape;
    const feeds = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => ({ [input]: ramp('float32', [n, ...shape.slice(1)]) }));
    const alone = [];
    for (const f of feeds) alone.push((await session.run(f))[output]);
    const together = await Promise.all([...feeds, ...feeds].map((f) => session.run(f)));
    together.forEach((r, i) => same(r[output], alone[i % 8]));
    // a run that is under way ends after its session is released
    const last = session.run(feeds[7]);
    await session.release();
    same((await last)[output], alone[7]);
  },

  // JavaScript goes on while a session is made and runs
  async off_the_main_thread() {
    let ticks = 0, done = false;
    const of = (name) => ({ name, type: 1, dims: ['n', 'n'] });
    const square = { op: 'MatMul', inputs: ['x', 'x'], outputs: ['y'] };
    const session = await ort.InferenceSession.create(model([square], [of('x')], [of('y')]), { ...kiln, intraOpNumThreads: 1 });
    const x = ramp('float32', [1024, 1024]);
    const counting = (async () => { while (!done) { ticks++; await sleep(1); } })();
    for (let i = 0; i < 5; i++) await session.run({ x });
    done = true;
    await counting;
    assert.ok(ticks > 5, `${ticks} ticks`);
  },

  async bad_input() {
    const session = await ort.InferenceSession.create(DIGITS, kiln);
    const [input] = session.inputNames, [output] = session.outputNames;
    const shape = session.inputMetadata[0].shape.slice(1);
    const good = ramp('float32', [2, ...shape]);
    const ends = (feeds, message, fetches) => assert.rejects(fetches ? session.run(feeds, fetches) : session.run(feeds), message);
    await ends({}, /missing in 'feeds'/);
    await ends({ [input]: good, more: good }, /'more' is no input of the model/);
    await ends({ [input]: 5 }, /must be a Tensor/);
    await ends({ [input]: { type: 'float32', dims: [2], data: new Float32Array(2) } }, /must be a Tensor/);
    await ends({ [input]: ramp('float64', [2, ...shape]) }, /data type/i);
    await ends({ [input]: ramp('float32', [2, 3]) }, /rank|dimension/i);
    await ends({ [input]: ramp('string', [2, ...shape]) }, /data type/i);
    // a tensor whose memory is gone, and one whose dims lie
    const gone = ramp('float32', [2, ...shape]);
    structuredClone(gone.data.buffer, { transfer: [gone.data.buffer] });
    await ends({ [input]: gone }, /its dims say \d+ bytes, found 0/);
    const lying = ramp('float32', [2, ...shape]);
    Object.defineProperty(lying, 'dims', { value: [2 ** 40, 2 ** 30, ...shape] });
    await ends({ [input]: lying }, /dims/);
    Object.defineProperty(lying, 'dims', { value: [-2, ...shape] });
    await ends({ [input]: lying }, /not negative/);
    const texts = ramp('string', [1, 3]);
    texts.data[0] = 7;
    const named = await ort.InferenceSession.create(identity('string'), kiln);
    await assert.rejects(named.run({ x: texts }), /must be a string/);
    // memory of the wrong size or type for an output
    await ends({ [input]: good }, /invalid dimensions for output: \w+ .*Got: 1 Expected: 10/s, { [output]: ramp('float32', [1, 1]) });
    await ends({ [input]: good }, /output data type.*int64.*expected.*float/, { [output]: ramp('int64', [2, 10]) });
    // and the session still runs
    assert.equal((await session.run({ [input]: good }))[output].dims[0], 2);

    await assert.rejects(ort.InferenceSession.create('/no/such/model.onnx', kiln), /no\/such\/model/);
    await assert.rejects(ort.InferenceSession.create('', kiln), /path is empty/);
    await assert.rejects(ort.InferenceSession.create(new Uint8Array(100), kiln), /protobuf parsing failed/);
    await assert.rejects(ort.InferenceSession.create(new Uint8Array(0), kiln), /Model data pointer is null/);
    const addon = require(`${folder}/kiln_onnxruntime.node`);
    for (const [call, message] of [
      [() => addon.run(), /no session of kiln's/], [() => addon.run({}, [], [], [], [], []), /no session of kiln's/],
      [() => addon.create(), /the model must be a typed array/], [() => addon.create('x', 5, []), /session options must be an array/],
      [() => addon.create('x', [1], []), /session options must be a string/], [() => addon.dispose(3), /no session of kiln's/],
      [() => addon.endProfiling(null), /no session of kiln's/],
    ])
      assert.throws(call, message);
  },

  // nodes that kiln leaves run on ONNX Runtime's own provider, in the same session
  async mixed() {
    const of = (name, type) => ({ name, type, dims: ['n', 3] });
    const file = model([
      { op: 'Exp', inputs: ['x'], outputs: ['y'] }, { op: 'Cast', inputs: ['x'], outputs: ['s'], attributes: { to: 8 } },
    ], [of('x', 1)], [of('y', 1), of('s', 8)]);
    const own = await ort.InferenceSession.create(file, cpu);
    const session = await ort.InferenceSession.create(file, kiln);
    const x = ramp('float32', [4, 3]);
    const a = await session.run({ x }), b = await own.run({ x });
    same(a.y, b.y, 0.05);
    same(a.s, b.s);
  },

  // a run that is refused keeps no tensor's memory
  async refused_tensors_are_collected() {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc');
    const session = await ort.InferenceSession.create(identity('float32'), kiln);
    const refused = async () => {
      const x = ramp('float32', [1, 3]);
      Object.defineProperty(x, 'dims', { value: [2, 3] });
      await assert.rejects(session.run({ x }), /its dims say 24 bytes, found 12/);
      return new WeakRef(x.data);
    };
    const data = await refused();
    for (let i = 0; i < 20 && data.deref(); i++) {
      await sleep(5);
      collect();
    }
    assert.equal(data.deref(), undefined);
  },

  // a second thread of JavaScript has sessions of its own in the same process
  async worker() {
    await in_worker();
  },

  // where halves have an array of their own
  async float16_arrays() {
    await in_worker('halves');
  },
};

if (isMainThread) {
  for (const [name, test] of Object.entries(tests)) {
    await test();
    console.log('ok', name);
  }
} else if (workerData === 'halves') {
  assert.equal(ramp('float16', [3]).data.constructor, globalThis.Float16Array);
  await tests.every_type();
} else {
  await tests.digits();
  await tests.by_default();
}
