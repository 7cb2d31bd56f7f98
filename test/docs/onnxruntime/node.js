const ort = require('onnxruntime-node');
require('./build/release/lib/onnxruntime/node').register(ort);

async function main() {
  const kiln = { name: 'kiln', migraphx_fp16_enable: true };
  const session = await ort.InferenceSession.create('<path to model>', { executionProviders: [kiln, 'cpu'] });
  const image = new ort.Tensor('float32', new Float32Array(64), [1, 1, 8, 8]);
  console.log((await session.run({ image })).probabilities.dims);
}
main();
