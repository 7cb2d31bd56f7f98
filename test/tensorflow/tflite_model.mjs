// A TFLite model: the JSON from which flatc makes its file, and what TFLite's interpreter (npm's @tensorflow/tfjs-tflite,
// a WebAssembly build) computes of it.
import {execFileSync} from 'node:child_process';
import {readFileSync, rmSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {count, flags, integers, reals} from './tfjs_graph.mjs';

const types = {f: 'FLOAT32', i: 'INT32', b: 'BOOL', q: 'INT8', u: 'UINT8', s: 'INT16', l: 'INT64', h: 'FLOAT16'};
const arrays = {f: Float32Array, i: Int32Array, b: Uint8Array, q: Int8Array, u: Uint8Array, s: Int16Array, l: BigInt64Array, h: Uint16Array};
const drawn = {
  f: reals, i: integers, b: flags, l: integers, h: (s) => Array(count(s)).fill(0),
  q: (s) => integers(s, -128, 128), u: (s) => integers(s, 0, 256), s: (s) => integers(s, -32768, 32768),
};
const array = (type, data) => arrays[type].from(type === 'l' ? data.map((v) => BigInt(v)) : data);

// Operators whose options' table is not named as they are.
const tables = {
  CONV_2D: 'Conv2D', DEPTHWISE_CONV_2D: 'DepthwiseConv2D', AVERAGE_POOL_2D: 'Pool2D', MAX_POOL_2D: 'Pool2D', L2_POOL_2D: 'Pool2D',
  CONCATENATION: 'Concatenation', L2_NORMALIZATION: 'L2Norm', LOCAL_RESPONSE_NORMALIZATION: 'LocalResponseNormalization', LSTM: 'LSTM',
  RNN: 'RNN', SVDF: 'SVDF', UNIDIRECTIONAL_SEQUENCE_RNN: 'SequenceRNN', BIDIRECTIONAL_SEQUENCE_RNN: 'BidirectionalSequenceRNN',
  UNIDIRECTIONAL_SEQUENCE_LSTM: 'UnidirectionalSequenceLSTM', BIDIRECTIONAL_SEQUENCE_LSTM: 'BidirectionalSequenceLSTM',
  BATCH_MATMUL: 'BatchMatMul', TOPK_V2: 'TopKV2', PADV2: 'PadV2', SPACE_TO_BATCH_ND: 'SpaceToBatchND', BATCH_TO_SPACE_ND: 'BatchToSpaceND', CONV_3D: 'Conv3D', CONV_3D_TRANSPOSE: 'Conv3D',
  ...Object.fromEntries(['SUM', 'MEAN', 'REDUCE_PROD', 'REDUCE_MAX', 'REDUCE_MIN', 'REDUCE_ANY', 'REDUCE_ALL'].map((n) => [n, 'Reducer'])),
};
const camel = (name) => name.toLowerCase().replace(/(^|_)([a-z0-9])/g, (_, __, c) => c.toUpperCase());

// A map of numbers as a flexbuffer whose parts are 4 bytes wide.
export function flexbuffer(map) {
  const bytes = [], keys = Object.keys(map).sort(), at = {};
  for (const k of keys) { at[k] = bytes.length; bytes.push(...Buffer.from(k), 0); }
  const four = (v) => { const b = Buffer.alloc(4); b.writeUInt32LE(v >>> 0); bytes.push(...b); };
  while (bytes.length % 4) bytes.push(0);
  four(keys.length);
  const names = bytes.length;
  for (const k of keys) four(bytes.length - at[k]);
  four(bytes.length - names);
  four(4);
  four(keys.length);
  const values = bytes.length;
  for (const k of keys) {
    const v = map[k], b = Buffer.alloc(4);
    if (typeof v === 'boolean' || Number.isInteger(v)) b.writeInt32LE(Number(v)); else b.writeFloatLE(v.real ?? v);
    bytes.push(...b);
  }
  for (const k of keys) bytes.push((typeof map[k] === 'boolean' ? 26 : Number.isInteger(map[k]) ? 1 : 3) << 2 | 2);
  four(bytes.length - values);
  bytes.push(9 << 2 | 2, 4);
  return bytes;
}

export class Model {
  constructor() {
    this.inputs = [];
    this.buffers = [{}];
    this.codes = [];
    this.graphs = [];
    this.subgraph();
  }
  // A new subgraph, of which tensors and operators from now on are; `within(k)` goes on with another.
  subgraph() { this.graphs.push({tensors: [], inputs: [], outputs: [], operators: []}); return this.within(this.graphs.length - 1); }
  within(k) { this.graph = this.graphs[k]; return k; }

  // Each gives the tensor's index. `quant` is {scale, zero, axis}, each a number or a list.
  tensor(type, shape, quant, more = {}) {
    const t = {shape, type: types[type], buffer: 0, name: `t${this.graph.tensors.length}`, ...more};
    if (quant) t.quantization = {scale: [quant.scale].flat(), zero_point: [quant.zero ?? 0].flat(), quantized_dimension: quant.axis ?? 0};
    this.graph.tensors.push(t);
    return this.graph.tensors.length - 1;
  }
  input(type, shape, data = drawn[type](shape), quant) {
    const index = this.tensor(type, shape, quant);
    this.graph.inputs.push(index);
    if (this.graph === this.graphs[0]) this.inputs.push({name: `t${index}`, type, shape, data});
    return index;
  }
  constant(type, shape, data = drawn[type](shape), quant) {
    this.buffers.push({data: Array.from(new Uint8Array(array(type, data).buffer))});
    const index = this.tensor(type, shape, quant);
    this.graph.tensors[index].buffer = this.buffers.length - 1;
    return index;
  }
  ints(data) { return this.constant('i', [data.length], data); }
  int(v) { return this.constant('i', [], [v]); }
  state(shape) { return this.tensor('f', shape, undefined, {is_variable: true}); }
  // `outputs` are [type, shape, quant] or indices.
  node(op, inputs, outputs, options, version = 1) {
    const custom = !/^[A-Z0-9_]+$/.test(op);
    let code = this.codes.findIndex((c) => c.op === op && c.version === version);
    if (code < 0) code = this.codes.push({op, version, custom}) - 1;
    const made = outputs.map((o) => Array.isArray(o) ? this.tensor(...o) : o);
    const n = {opcode_index: code, inputs, outputs: made};
    if (options && custom) n.custom_options = flexbuffer(options);
    else if (options) { n.builtin_options_type = (tables[op] ?? camel(op)) + 'Options'; n.builtin_options = options; }
    this.graph.operators.push(n);
    return made.length === 1 ? made[0] : made;
  }
  output(...indices) { this.graph.outputs.push(...indices); }
  get outputs() { return this.graphs[0].outputs.map((k) => ({name: `t${k}`, type: this.graphs[0].tensors[k].type})); }

  json(codes) {
    return {
      version: 3, buffers: this.buffers,
      operator_codes: this.codes.map(({op, version, custom}) => custom ? {deprecated_builtin_code: 32, builtin_code: 'CUSTOM', custom_code: op, version}
        : {deprecated_builtin_code: Math.min(127, codes.indexOf(op)), builtin_code: op, version}),
      subgraphs: this.graphs,
    };
  }
}

// The files of all models: flatc makes them in one call.
export function files(models, schema, folder) {
  const codes = /enum BuiltinOperator : int \{([^}]*)\}/.exec(readFileSync(schema, 'utf8'))[1].split(',').map((n) => n.trim());
  const names = models.map((m, i) => {
    const name = join(folder, `case_${i}.json`);
    writeFileSync(name, JSON.stringify(m.json(codes)));
    return name;
  });
  execFileSync('flatc', ['-b', '-o', folder, schema, ...names], {stdio: ['ignore', 'ignore', 'inherit']});
  for (const n of names) rmSync(n);
  return models.map((_, i) => join(folder, `case_${i}.tflite`));
}

// TFLite's interpreter, whose script is written for a browser.
export async function interpreter(modules) {
  const folder = join(modules, '@tensorflow/tfjs-tflite/wasm/');
  globalThis.window = globalThis;
  globalThis.document = {currentScript: {src: 'file:///none'}};
  const factory = new Function(readFileSync(folder + 'tflite_web_api_cc.js', 'utf8') + ';return tflite_web_api_ModuleFactory;')();
  const quiet = () => {};
  const wasm = await factory({wasmBinary: readFileSync(folder + 'tflite_web_api_cc.wasm'), print: quiet, printErr: process.env.KILN_DEBUG ? console.error : quiet});
  return (file, model) => {
    const bytes = readFileSync(file), at = wasm._malloc(bytes.length);
    wasm.HEAPU8.set(bytes, at);
    const made = wasm.TFLiteWebModelRunner.CreateFromBufferAndOptions(at, bytes.length, {numThreads: 1, enableProfiling: false, maxProfilingBufferEntries: 1});
    if (!made.ok()) throw new Error(made.errorMessage());
    const runner = made.value(), list = (v) => Array.from({length: v.size()}, (_, i) => v.get(i));
    const given = list(runner.GetInputs());
    for (const input of model.inputs) {
      const to = given.find((g) => g.name === input.name);
      const data = array(input.type, input.data), place = to.data();
      place.set(place.BYTES_PER_ELEMENT === data.BYTES_PER_ELEMENT && typeof place[0] === typeof data[0] ? data : new place.constructor(data.buffer));
    }
    if (!runner.Infer()) throw new Error('the interpreter fails');
    const results = list(runner.GetOutputs());
    return model.outputs.map(({name, type}) => {
      const t = results.find((r) => r.name === name);
      return {shape: t.shape ? t.shape.split(',').map(Number) : [], type, data: Array.from(t.data(), Number)};
    });
  };
}
