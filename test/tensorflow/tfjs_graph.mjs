// A graph of TensorFlow, as the text of a GraphDef and as the JSON that tfjs-converter reads.

let state = 1;
// Numbers that every run draws alike (Marsaglia 2003, xorshift).
export function random() {
  state ^= state << 13; state ^= state >>> 17; state ^= state << 5;
  return (state >>> 0) / 4294967296;
}
export const seed = (n) => { state = (n * 2654435761 >>> 0) || 1; for (let i = 0; i < 8; ++i) random(); };
export const count = (shape) => shape.reduce((a, b) => a * b, 1);
export const reals = (shape, low = -2, high = 2) => Array.from({length: count(shape)}, () => Math.fround(low + (high - low) * random()));
export const integers = (shape, low = -5, high = 6) => Array.from({length: count(shape)}, () => Math.floor(low + (high - low) * random()));
export const flags = (shape) => Array.from({length: count(shape)}, () => random() < .5);

const types = {f: 'DT_FLOAT', i: 'DT_INT32', b: 'DT_BOOL'};
const names = {f: 'float32', i: 'int32', b: 'bool'};
const drawn = {f: reals, i: integers, b: flags};

// An output of a node in a function.
export const of = (node, k = 0, name = 'out') => `${node}:${name}:${k}`;

export class Graph {
  constructor(prefix = '') { this.prefix = prefix; this.nodes = []; this.weights = []; this.inputs = []; this.functions = []; }
  // Each gives the name of its value. `type` is f, i or b.
  input(type, shape, data = drawn[type](shape), declared = shape) {
    const name = `x${this.inputs.length}`;
    this.inputs.push({name, type, shape, data});
    this.nodes.push({name, op: 'Placeholder', inputs: [], attrs: {dtype: {type: types[type]}, shape: {shape: declared}}});
    return name;
  }
  constant(type, shape, data = drawn[type](shape)) {
    const name = `${this.prefix}c${this.nodes.length}`;
    this.weights.push({name, type, shape, data});
    this.nodes.push({name, op: 'Const', inputs: [], attrs: {dtype: {type: types[type]}}, value: {type, shape, data}});
    return name;
  }
  ints(data) { return this.constant('i', [data.length], data); }
  int(v) { return this.constant('i', [], [v]); }
  node(op, inputs, attrs = {}) {
    const name = `${this.prefix}n${this.nodes.length}`;
    this.nodes.push({name, op, inputs, attrs});
    return name;
  }

  // A function of these arguments; `build(graph, ...arguments)` gives its results. In it, outputs of nodes are
  // `node:name:k`: `of` writes them.
  function(name, types, build) {
    const inner = new Graph(`${name}_`);
    const inputs = [...types].map((type, i) => ({name: `a${i}`, type}));
    const results = build(inner, ...inputs.map((i) => i.name));
    this.weights.push(...inner.weights);
    this.functions.push({name, inputs, results, nodes: inner.nodes});
    return name;
  }

  text() {
    const node = (n, kind) => {
      const attrs = Object.entries(n.attrs).map(([k, v]) => `attr { key: "${k}" value { ${value(v)} } }`);
      if (n.value) attrs.push(`attr { key: "value" value { ${tensor(n.value)} } }`);
      return `${kind} { name: "${n.name}" op: "${n.op}" ${n.inputs.map((i) => `input: "${i}"`).join(' ')} ${attrs.join(' ')} }`;
    };
    const value = (a) => {
      if ('func' in a) return `func { name: "${a.func}" }`;
      if ('type' in a) return `type: ${a.type}`;
      if ('i' in a) return `i: ${a.i}`;
      if ('b' in a) return `b: ${a.b}`;
      if ('f' in a) return `f: ${a.f}`;
      if ('s' in a) return `s: "${a.s}"`;
      if ('texts' in a) return `list { ${a.texts.map((s) => `s: "${s}"`).join(' ')} }`;
      if ('ints' in a) return `list { ${a.ints.map((i) => `i: ${i}`).join(' ')} }`;
      return `shape { ${a.shape.map((d) => `dim { size: ${d} }`).join(' ')} }`;
    };
    const tensor = ({type, shape, data}) => {
      const field = {f: 'float_val', i: 'int_val', b: 'bool_val'}[type];
      return `tensor { dtype: ${types[type]} tensor_shape { ${shape.map((d) => `dim { size: ${d} }`).join(' ')} } ` +
             `${data.map((v) => `${field}: ${v}`).join(' ')} }`;
    };
    const library = this.functions.map((f) => `function { signature { name: "${f.name}" ` +
      f.inputs.map((i) => `input_arg { name: "${i.name}" type: ${types[i.type]} }`).join(' ') + ' ' +
      f.results.map((r, i) => `output_arg { name: "r${i}" type: DT_FLOAT }`).join(' ') + ' } ' +
      f.results.map((r, i) => `ret { key: "r${i}" value: "${r}" }`).join(' ') + '\n' +
      f.nodes.map((n) => node(n, 'node_def')).join('\n') + ' }').join('\n');
    return this.nodes.map((n) => node(n, 'node')).join('\n') + (library ? `\nlibrary { ${library} }` : '') + '\n';
  }

  json() {
    const value = (a) => {
      if ('func' in a) return {func: {name: a.func}};
      if ('i' in a) return {i: String(a.i)};
      if ('s' in a) return {s: Buffer.from(a.s).toString('base64')};
      if ('texts' in a) return {list: {s: a.texts.map((s) => Buffer.from(s).toString('base64'))}};
      if ('ints' in a) return {list: {i: a.ints.map(String)}};
      if ('shape' in a) return {shape: {dim: a.shape.map((d) => ({size: String(d)}))}};
      return a;
    };
    const node = (n) => ({
      name: n.name, op: n.op, input: n.inputs,
      attr: Object.fromEntries(Object.entries(n.attrs).map(([k, v]) => [k, value(v)])),
    });
    return {
      node: this.nodes.map(node),
      library: {function: this.functions.map((f) => ({
        signature: {name: f.name, inputArg: f.inputs.map((i) => ({name: i.name, type: types[i.type]})),
                    outputArg: f.results.map((r, i) => ({name: `r${i}`, type: 'DT_FLOAT'}))},
        nodeDef: f.nodes.map(node),
        ret: Object.fromEntries(f.results.map((r, i) => [`r${i}`, r])),
      }))},
      versions: {producer: 1},
    };
  }

  // What tfjs computes of the outputs: shapes and numbers.
  async run(tf, outputs) {
    const array = ({type, data}) => type === 'f' ? Float32Array.from(data) : type === 'i' ? Int32Array.from(data) : Uint8Array.from(data);
    const bytes = this.weights.map((w) => Buffer.from(array(w).buffer));
    const whole = Buffer.concat(bytes);
    const model = await tf.loadGraphModel({
      load: async () => ({
        modelTopology: this.json(),
        weightSpecs: this.weights.map((w) => ({name: w.name, shape: w.shape, dtype: names[w.type]})),
        weightData: whole.buffer.slice(whole.byteOffset, whole.byteOffset + whole.length),
      }),
    });
    const given = Object.fromEntries(this.inputs.map((i) => [i.name, tf.tensor(array(i), i.shape, names[i.type])]));
    const made = await model.executeAsync(given, outputs);
    return [made].flat().map((t) => ({shape: t.shape, type: t.dtype, data: Array.from(t.dataSync(), Number)}));
  }
}
