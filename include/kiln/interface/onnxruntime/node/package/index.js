'use strict';

// kiln as an execution provider of onnxruntime-node: `register` gives it to a copy of that package, whose sessions then
// take 'kiln' among their executionProviders. The addon beside this file runs the stock library of that copy with
// kiln's plugin, off JavaScript's thread.

const addon = require('./kiln_onnxruntime.node');

// ONNX's numbers of element types, by the names that Tensor has for them.
const TYPES = {
  float32: 1, uint8: 2, int8: 3, uint16: 4, int16: 5, int32: 6, int64: 7, string: 8, bool: 9, float16: 10, float64: 11,
  uint32: 12, uint64: 13, uint4: 21, int4: 22,
};
const NAMES = Object.fromEntries(Object.entries(TYPES).map(([name, number]) => [number, name]));
const ARRAYS = {
  float32: Float32Array, uint8: Uint8Array, int8: Int8Array, uint16: Uint16Array, int16: Int16Array, int32: Int32Array,
  int64: BigInt64Array, bool: Uint8Array, float16: globalThis.Float16Array ?? Uint16Array, float64: Float64Array,
  uint32: Uint32Array, uint64: BigUint64Array, uint4: Uint8Array, int4: Uint8Array,
};
const SESSION_SETTINGS = [
  'intraOpNumThreads', 'interOpNumThreads', 'graphOptimizationLevel', 'executionMode', 'enableCpuMemArena',
  'enableMemPattern', 'optimizedModelFilePath', 'logId', 'logSeverityLevel', 'logVerbosityLevel',
];
const RUN_SETTINGS = ['logSeverityLevel', 'logVerbosityLevel', 'tag', 'terminate'];

// Members of options as texts, in one list: name, value, name, value.
function settingsOf(options, names) {
  const out = [];
  for (const name of names)
    if (options[name] !== undefined) out.push(name, String(options[name]));
  const entries = (prefix, object) => {
    for (const [key, value] of Object.entries(object ?? {}))
      if (value !== null && typeof value === 'object') entries(`${prefix}${key}.`, value);
      else out.push(prefix + key, String(value));
  };
  entries('extra.', options.extra);
  return out;
}

// The options of kiln's provider: what its entry among the executionProviders says beside the name.
function providerOptionsOf(options) {
  const out = {};
  for (const entry of options.executionProviders ?? [])
    if (entry !== null && typeof entry === 'object')
      for (const [key, value] of Object.entries(entry))
        if (key !== 'name') out[key] = typeof value === 'boolean' ? String(Number(value)) : String(value);
  // kiln has a pool of its own, which is as large as ONNX Runtime's was to be
  if (out.threads === undefined && options.intraOpNumThreads > 0) out.threads = String(options.intraOpNumThreads);
  return Object.entries(out).flat();
}

// Node-API has no kind for arrays of halves: the addon takes their bits.
function bitsOf(data) {
  const isHalves = globalThis.Float16Array !== undefined && data instanceof globalThis.Float16Array;
  return isHalves ? new Uint16Array(data.buffer, data.byteOffset, data.length) : data;
}

function metadataOf(value) {
  const type = NAMES[value.type];
  return type === undefined ? { name: value.name, isTensor: false }
    : { name: value.name, isTensor: true, type, shape: value.shape };
}

class Handler {
  #ort;
  #handle;
  constructor(ort, made) {
    this.#ort = ort;
    this.#handle = made.handle;
    this.inputNames = made.inputs.map((v) => v.name);
    this.outputNames = made.outputs.map((v) => v.name);
    this.inputMetadata = made.inputs.map(metadataOf);
    this.outputMetadata = made.outputs.map(metadataOf);
  }

  // A tensor as the addon takes it. Its memory is read, or written, until the run ends.
  #given(name, tensor) {
    if (!(tensor instanceof this.#ort.Tensor)) throw new TypeError(`'${name}' must be a Tensor`);
    if (tensor.location !== 'cpu' && tensor.location !== 'cpu-pinned')
      throw new TypeError(`tensor '${name}' is not in the CPU's memory: ${tensor.location}`);
    const type = TYPES[tensor.type];
    if (type === undefined) throw new TypeError(`tensor '${name}' has a type that kiln's backend does not take: ${tensor.type}`);
    return [type, [...tensor.dims], bitsOf(tensor.data)];
  }

  async run(feeds, fetches, options) {
    for (const name of Object.keys(feeds))
      if (!this.inputNames.includes(name)) throw new Error(`'${name}' is no input of the model: ${this.inputNames.join(', ')}`);
    const names = Object.keys(fetches);
    // strings have no memory to be written into: they are copied into the array that was given
    const into = names.map((name) => (fetches[name] && fetches[name].type !== 'string' ? this.#given(name, fetches[name]) : null));
    const inputs = Object.keys(feeds).map((name) => this.#given(name, feeds[name]));
    const results = await addon.run(this.#handle, Object.keys(feeds), inputs, names, into, settingsOf(options ?? {}, RUN_SETTINGS));
    const out = {};
    names.forEach((name, i) => {
      out[name] = results[i] === null ? fetches[name] : this.#made(name, results[i], fetches[name]);
    });
    return out;
  }

  #made(name, { type, dims, data }, given) {
    if (given) {
      const same = given.type === NAMES[type] && given.dims.length === dims.length && dims.every((n, i) => n === given.dims[i]);
      if (!same) throw new Error(`the tensor given for output '${name}' is ${given.type}[${given.dims}], the result ${NAMES[type]}[${dims}]`);
      data.forEach((text, i) => { given.data[i] = text; });
      return given;
    }
    const Array = ARRAYS[NAMES[type]];
    return new this.#ort.Tensor(NAMES[type], Array ? new Array(data) : data, dims);
  }

  startProfiling() {}
  endProfiling() { addon.endProfiling(this.#handle); }
  async dispose() { addon.dispose(this.#handle); }
}

/** Makes 'kiln' and 'migraphx' execution providers of `ort`, the module that require('onnxruntime-node') gives. */
function register(ort, priority = 50) {
  const backend = {
    async init() {},
    async createInferenceSessionHandler(model, options = {}) {
      if (options.externalData?.length)
        throw new Error("kiln's backend finds external data beside the model's file: give its path, without externalData");
      const settings = settingsOf(options, SESSION_SETTINGS);
      for (const [name, extent] of Object.entries(options.freeDimensionOverrides ?? {}))
        settings.push(`freeDimensionOverrides.${name}`, String(extent));
      if (options.enableProfiling) settings.push('profileFilePrefix', options.profileFilePrefix ?? 'onnxruntime_profile_');
      return new Handler(ort, await addon.create(model, settings, providerOptionsOf(options)));
    },
  };
  for (const name of ['kiln', 'migraphx']) ort.registerBackend(name, backend, priority);
}

module.exports = { register };
