// ONNX files of a few nodes, for tests of kiln's package: the bytes of protocol buffers, as onnx.proto has the fields.

const varint = (n) => {
  const out = [];
  for (n = BigInt(n); n > 127n; n >>= 7n) out.push(Number((n & 127n) | 128n));
  return [...out, Number(n)];
};
const number = (field, n) => [...varint(field * 8), ...varint(n)];
const bytes = (field, content) => [...varint(field * 8 + 2), ...varint(content.length), ...content];
const text = (field, content) => bytes(field, [...Buffer.from(content)]);

const dimension = (d) => (typeof d === 'string' ? text(2, d) : number(1, d));
const valueInfo = ({ name, type, dims }) => [
  ...text(1, name),
  ...bytes(2, bytes(1, [...number(1, type), ...bytes(2, dims.flatMap((d) => bytes(1, dimension(d))))])),
];
const attribute = ([name, n]) => bytes(5, [...text(1, name), ...number(3, n), ...number(20, 2)]);
const node = ({ op, inputs, outputs, attributes = {} }) => [
  ...inputs.flatMap((name) => text(1, name)), ...outputs.flatMap((name) => text(2, name)), ...text(4, op),
  ...Object.entries(attributes).flatMap(attribute),
];

/** A model's bytes: nodes {op, inputs, outputs, attributes of integers}, inputs and outputs {name, type, dims}. */
export function model(nodes, inputs, outputs) {
  const graph = [
    ...nodes.flatMap((n) => bytes(1, node(n))), ...text(2, 'test'), ...inputs.flatMap((v) => bytes(11, valueInfo(v))),
    ...outputs.flatMap((v) => bytes(12, valueInfo(v))),
  ];
  return new Uint8Array([...number(1, 8), ...bytes(7, graph), ...bytes(8, [...text(1, ''), ...number(2, 17)])]);
}
