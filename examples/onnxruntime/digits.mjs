// A program of onnxruntime-node runs a network on kiln: scans of handwritten digits are classified.
//
//     node digits.mjs [NODE_MODULES PACKAGE]    the folder that onnxruntime-node is in, and kiln's package
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const [, , modules, kilnPackage = 'kiln-onnxruntime'] = process.argv;
const FOLDER = 'examples/models/digits/';

// [register]
const ort = require(modules ? `${modules}/onnxruntime-node` : 'onnxruntime-node');
require(kilnPackage).register(ort);
// [/register]

// The raw data of a tensor's file (ONNX's TensorProto), which ends with it in files like these.
function read(file, Array, count) {
  const bytes = new Uint8Array(readFileSync(FOLDER + file));
  return new Array(bytes.slice(bytes.length - count * Array.BYTES_PER_ELEMENT).buffer);
}

// [run]
const session = await ort.InferenceSession.create(`${FOLDER}model.onnx`, { executionProviders: ['kiln', 'cpu'] });
const scans = new ort.Tensor('float32', read('test_data_set_0/input_0.pb', Float32Array, 360 * 64), [360, 1, 8, 8]);
const outputs = await session.run({ [session.inputNames[0]]: scans });
// [/run]

const probabilities = outputs[session.outputNames[0]].data;
const labels = read('labels.pb', BigInt64Array, 360);
let right = 0;
for (let i = 0; i < 360; i++) {
  const row = [...probabilities.slice(10 * i, 10 * i + 10)];
  right += row.indexOf(Math.max(...row)) === Number(labels[i]);
}
console.log(`onnxruntime-node ${ort.env.versions.node} on kiln: ${right} of 360 scans`);
process.exitCode = right === 360 ? 0 : 1;
