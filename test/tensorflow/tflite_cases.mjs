// Writes models of one operator each, in all its options and types, with inputs and what TFLite's interpreter computes
// of them, one JSON object a line.
//
//     node tflite_cases.mjs FOLDER_OF_NPM_MODULES FOLDER
import {writeFileSync} from 'node:fs';
import {fileURLToPath} from 'node:url';
import {join} from 'node:path';
import {Model, files, interpreter} from './tflite_model.mjs';
import {integers, seed} from './tfjs_graph.mjs';
import {float_cases} from './tflite_float_cases.mjs';
import {quantized_cases} from './tflite_quantized_cases.mjs';

const [modules, folder] = process.argv.slice(2);
const schema = fileURLToPath(new URL('../../include/kiln/tensorflow/impl/tflite/tflite_file.fbs', import.meta.url));
const cases = [];
// `build(model)` gives the outputs; `bounds` are {tolerance, steps}.
const add = (name, build, bounds = {}) => {
  const model = new Model();
  seed(cases.length + 1);
  model.output(...[build(model)].flat());
  cases.push({name, model, bounds});
};
float_cases(add);
quantized_cases(add);

const made = files(cases.map((c) => c.model), schema, folder), run = await interpreter(modules);
// A whole network.
for (let n = 0; n < 4; ++n) {
  seed(n + 1);
  cases.push({name: `digits ${n}`, bounds: {steps: 1}, model: {inputs: [{name: 'image', type: 'q', shape: [1, 8, 8, 1], data: integers([1, 8, 8, 1], -128, 128)}],
    outputs: [{name: 'probabilities', type: 'INT8'}]}});
  made.push(fileURLToPath(new URL('../../examples/models/digits/model.tflite', import.meta.url)));
}
const lines = [];
for (const [i, {name, model, bounds}] of cases.entries()) {
  try {
    lines.push(JSON.stringify({name, file: made[i], inputs: model.inputs, outputs: run(made[i], model), ...bounds}));
  } catch (e) {
    console.error(`${name}: ${e.message ?? e}`);
    process.exitCode = 1;
  }
}
writeFileSync(join(folder, 'cases'), lines.join('\n') + '\n');
