// Writes graphs of one operator each, in all its attributes, with inputs and what tfjs (npm's tfjs-converter and
// tfjs-backend-cpu) computes of them, one JSON object a line.
//
//     node tfjs_cases.mjs FOLDER_OF_NPM_MODULES FILE

import {createRequire} from 'node:module';
import {writeFileSync} from 'node:fs';
import {addControlCases} from './tfjs_control.mjs';
import {Graph, reals, seed} from './tfjs_graph.mjs';

const [folder, file] = process.argv.slice(2);
const require = createRequire(folder + '/');
const core = require('@tensorflow/tfjs-core');
require('@tensorflow/tfjs-backend-cpu');
const {loadGraphModel} = require('@tensorflow/tfjs-converter');
const tf = {loadGraphModel, tensor: core.tensor};
console.warn = () => {};
await core.setBackend('cpu');

const cases = [];
// `build(graph)` gives the names of the outputs.
const add = (name, build) => cases.push({name, build});
const T = (type) => ({type: {f: 'DT_FLOAT', i: 'DT_INT32', b: 'DT_BOOL'}[type]});

// Elements, with the numbers that they are defined for.
const unary = {
  Abs: [-2, 2], Acos: [-.99, .99], Acosh: [1.01, 4], Asin: [-.99, .99], Asinh: [-3, 3], Atan: [-3, 3], Atanh: [-.9, .9], Ceil: [-3, 3],
  Cos: [-3, 3], Cosh: [-2, 2], Elu: [-3, 3], Erf: [-3, 3], Exp: [-3, 3], Expm1: [-1, 1], Floor: [-3, 3], Log: [.1, 5], Log1p: [-.5, 3],
  Neg: [-2, 2], Reciprocal: [.5, 3], Relu: [-2, 2], Relu6: [-3, 9], Round: [-4, 4], Rsqrt: [.2, 4], Selu: [-3, 3], Sigmoid: [-6, 6],
  Sign: [-1, 1], Sin: [-3, 3], Sinh: [-2, 2], Softplus: [-4, 4], Sqrt: [0, 9], Square: [-2, 2], Tan: [-1, 1], Tanh: [-3, 3],
  IsNan: [-1, 1], Identity: [-1, 1], StopGradient: [-1, 1], ZerosLike: [-1, 1], OnesLike: [-1, 1],
};
for (const [op, [low, high]] of Object.entries(unary))
  for (const shape of [[7], [2, 3, 5]])
    add(`${op} ${shape}`, (g) => [g.node(op, [g.input('f', shape, reals(shape, low, high))], {T: T('f')})]);
add('Round halves', (g) => [g.node('Round', [g.input('f', [6], [-2.5, -1.5, -.5, .5, 1.5, 2.5])], {T: T('f')})]);
for (const op of ['Abs', 'Neg', 'Square', 'Sign']) add(`${op} int`, (g) => [g.node(op, [g.input('i', [9])], {T: T('i')})]);
for (const alpha of [.2, .05]) add(`LeakyRelu ${alpha}`, (g) => [g.node('LeakyRelu', [g.input('f', [9])], {alpha: {f: alpha}, T: T('f')})]);

const pairs = [[[2, 3], [2, 3]], [[2, 1, 4], [3, 1]], [[5], []]];
for (const op of ['Add', 'AddV2', 'Sub', 'Mul', 'Maximum', 'Minimum', 'SquaredDifference', 'Greater', 'GreaterEqual', 'Less', 'LessEqual', 'Equal', 'NotEqual'])
  for (const type of ['f', 'i'])
    for (const [a, b] of pairs) add(`${op} ${type} ${a}|${b}`, (g) => [g.node(op, [g.input(type, a), g.input(type, b)], {T: T(type)})]);
for (const op of ['RealDiv', 'FloorDiv', 'FloorMod', 'DivNoNan', 'Pow'])
  for (const [a, b] of pairs)
    add(`${op} f ${a}|${b}`, (g) => [g.node(op, [g.input('f', a, reals(a, op === 'Pow' ? .2 : -4, 4)), g.input('f', b, reals(b, .5, 3))], {T: T('f')})]);
for (const op of ['FloorDiv', 'FloorMod'])
  add(`${op} i`, (g) => [g.node(op, [g.input('i', [8], [7, -7, 7, -7, 6, -6, 0, 5]), g.input('i', [8], [3, 3, -3, -3, 2, -2, 4, -7])], {T: T('i')})]);
add('FloorMod signs', (g) => [g.node('FloorMod', [g.input('f', [4], [5.5, -5.5, 5.5, -5.5]), g.input('f', [4], [2, 2, -2, -2])], {T: T('f')})]);
add('DivNoNan zero', (g) => [g.node('DivNoNan', [g.input('f', [3]), g.input('f', [3], [0, 2, 0])], {T: T('f')})]);
add('AddN', (g) => [g.node('AddN', [g.input('f', [2, 3]), g.input('f', [2, 3]), g.input('f', [2, 3])], {N: {i: 3}, T: T('f')})]);
for (const op of ['LogicalAnd', 'LogicalOr']) add(op, (g) => [g.node(op, [g.input('b', [2, 4]), g.input('b', [4])])]);
add('LogicalNot', (g) => [g.node('LogicalNot', [g.input('b', [6])])]);
add('SelectV2', (g) => [g.node('SelectV2', [g.input('b', [3, 1]), g.input('f', [3, 4]), g.input('f', [4])], {T: T('f')})]);
add('Select', (g) => [g.node('Select', [g.input('b', [2, 3]), g.input('f', [2, 3]), g.input('f', [2, 3])], {T: T('f')})]);
for (const [from, to] of [['f', 'i'], ['i', 'f'], ['f', 'b'], ['b', 'i'], ['b', 'f'], ['i', 'b']])
  add(`Cast ${from}${to}`, (g) => [g.node('Cast', [g.input(from, [11])], {SrcT: T(from), DstT: T(to)})]);
add('ClipByValue', (g) => [g.node('ClipByValue', [g.input('f', [9]), g.constant('f', [], [-.5]), g.constant('f', [], [1])], {T: T('f')})]);

// Products.
for (const a of [false, true])
  for (const b of [false, true]) {
    add(`MatMul ${a} ${b}`, (g) => [g.node('MatMul', [g.input('f', a ? [4, 3] : [3, 4]), g.input('f', b ? [5, 4] : [4, 5])],
      {transpose_a: {b: a}, transpose_b: {b: b}, T: T('f')})]);
    add(`BatchMatMulV2 ${a} ${b}`, (g) => [g.node('BatchMatMulV2', [g.input('f', a ? [2, 4, 3] : [2, 3, 4]), g.input('f', b ? [1, 5, 4] : [1, 4, 5])],
      {adj_x: {b: a}, adj_y: {b: b}, T: T('f')})]);
  }
for (const equation of ['ij,jk->ik', 'bij,bkj->bik', 'bi,bi->b'])
  add(`Einsum ${equation}`, (g) => {
    const extents = {i: 3, j: 4, k: 5, b: 2}, shapes = equation.split('->')[0].split(',').map((s) => [...s].map((c) => extents[c]));
    return [g.node('Einsum', shapes.map((s) => g.input('f', s)), {equation: {s: equation}, N: {i: 2}, T: T('f')})];
  });

// Windows.
const image = (last, c, h = 7, w = 6) => last ? [2, h, w, c] : [2, c, h, w];
const spread = (last, h, w) => last ? [1, h, w, 1] : [1, 1, h, w];
for (const stride of [1, 2])
  for (const padding of ['SAME', 'VALID'])
    for (const [dilation, kernel] of [[1, 3], [1, 2], [2, 3]]) {
      if (stride > 1 && dilation > 1) continue;
      const attrs = {strides: {ints: spread(true, stride, stride)}, dilations: {ints: spread(true, dilation, dilation)},
                     padding: {s: padding}, data_format: {s: 'NHWC'}, T: T('f')};
      add(`Conv2D ${stride} ${padding} ${dilation} ${kernel}`, (g) =>
        [g.node('Conv2D', [g.input('f', image(true, 3)), g.constant('f', [kernel, kernel, 3, 4])], attrs)]);
      add(`DepthwiseConv2dNative ${stride} ${padding} ${dilation} ${kernel}`, (g) =>
        [g.node('DepthwiseConv2dNative', [g.input('f', image(true, 3)), g.constant('f', [kernel, kernel, 3, 2])], attrs)]);
    }
add('Conv2D explicit', (g) => [g.node('Conv2D', [g.input('f', image(true, 3)), g.constant('f', [3, 3, 3, 4])],
  {strides: {ints: [1, 1, 1, 1]}, dilations: {ints: [1, 1, 1, 1]}, padding: {s: 'EXPLICIT'}, explicit_paddings: {ints: [0, 0, 2, 1, 0, 3, 0, 0]}, data_format: {s: 'NHWC'}, T: T('f')})]);
for (const stride of [1, 2])
  for (const padding of ['SAME', 'VALID'])
    for (const kernel of [2, 3])
      for (const op of ['MaxPool', 'AvgPool'])
        add(`${op} ${stride} ${padding} ${kernel}`, (g) => [g.node(op, [g.input('f', image(true, 3))],
          {ksize: {ints: spread(true, kernel, kernel)}, strides: {ints: spread(true, stride, stride)}, padding: {s: padding}, data_format: {s: 'NHWC'}, T: T('f')})]);
for (const padding of ['SAME', 'VALID'])
  for (const op of ['MaxPool3D', 'AvgPool3D'])
    add(`${op} ${padding}`, (g) => [g.node(op, [g.input('f', [1, 5, 4, 6, 2])],
      {ksize: {ints: [1, 2, 2, 2, 1]}, strides: {ints: [1, 2, 1, 2, 1]}, padding: {s: padding}, data_format: {s: 'NDHWC'}, T: T('f')})]);
for (const padding of ['SAME', 'VALID'])
  add(`Conv3D ${padding}`, (g) => [g.node('Conv3D', [g.input('f', [1, 5, 4, 6, 2]), g.constant('f', [2, 3, 2, 2, 3])],
    {strides: {ints: [1, 1, 2, 1, 1]}, dilations: {ints: [1, 1, 1, 1, 1]}, padding: {s: padding}, data_format: {s: 'NDHWC'}, T: T('f')})]);
for (const [stride, padding, size] of [[1, 'SAME', [4, 5]], [2, 'SAME', [8, 9]], [2, 'SAME', [7, 10]], [1, 'VALID', [6, 7]], [2, 'VALID', [9, 11]], [3, 'VALID', [12, 15]]]) {
  const small = size.map((n) => padding === 'SAME' ? Math.ceil(n / stride) : Math.ceil((n - 2) / stride));
  add(`Conv2DBackpropInput ${stride} ${padding} ${size}`, (g) =>
    [g.node('Conv2DBackpropInput', [g.ints([2, ...size, 3]), g.constant('f', [3, 3, 3, 4]), g.input('f', [2, ...small, 4])],
      {strides: {ints: spread(true, stride, stride)}, padding: {s: padding}, data_format: {s: 'NHWC'}, T: T('f')})]);
}
for (const op of ['FusedBatchNorm', 'FusedBatchNormV2', 'FusedBatchNormV3'])
  add(op, (g) => [g.node(op, [g.input('f', [2, 3, 4, 5]), g.constant('f', [5]), g.constant('f', [5]), g.constant('f', [5]), g.constant('f', [5], reals([5], .3, 2))],
    {epsilon: {f: .001}, is_training: {b: false}, data_format: {s: 'NHWC'}, T: T('f')})]);
add('BiasAdd', (g) => [g.node('BiasAdd', [g.input('f', [2, 3, 4, 5]), g.constant('f', [5])], {data_format: {s: 'NHWC'}, T: T('f')})]);
add('BiasAdd matrix', (g) => [g.node('BiasAdd', [g.input('f', [3, 5]), g.constant('f', [5])], {T: T('f')})]);
for (const radius of [1, 2])
  add(`LRN ${radius}`, (g) => [g.node('LRN', [g.input('f', [1, 2, 3, 7])], {depth_radius: {i: radius}, bias: {f: 1.5}, alpha: {f: .3}, beta: {f: .75}, T: T('f')})]);
for (const size of [[8, 9], [3, 2], [5, 12]])
  for (const [align, half] of [[false, false], [true, false], [false, true]])
    for (const op of ['ResizeBilinear', 'ResizeNearestNeighbor'])
      add(`${op} ${size} ${align} ${half}`, (g) => [g.node(op, [g.input('f', [2, 4, 5, 3]), g.ints(size)], {align_corners: {b: align}, half_pixel_centers: {b: half}, T: T('f')})]);
for (const b of [2, 3])
  add(`DepthToSpace ${b}`, (g) => [g.node('DepthToSpace', [g.input('f', [2, 3, 4, b * b * 2])], {block_size: {i: b}, data_format: {s: 'NHWC'}, T: T('f')})]);
add('SpaceToBatchND', (g) => [g.node('SpaceToBatchND', [g.input('f', [2, 5, 6, 3]), g.ints([2, 3]), g.constant('i', [2, 2], [0, 1, 2, 1])], {T: T('f')})]);
add('BatchToSpaceND', (g) => [g.node('BatchToSpaceND', [g.input('f', [12, 3, 3, 2]), g.ints([2, 3]), g.constant('i', [2, 2], [0, 1, 2, 1])], {T: T('f')})]);

// Reductions.
for (const op of ['Sum', 'Mean', 'Max', 'Min', 'Prod'])
  for (const axes of [[1], [0, 2], [-1], [0, 1, 2]])
    for (const keep of [false, true])
      add(`${op} ${axes} ${keep}`, (g) => [g.node(op, [g.input('f', [3, 2, 4]), g.ints(axes)], {keep_dims: {b: keep}, T: T('f')})]);
for (const op of ['All', 'Any'])
  for (const axes of [[1], [0, 1]])
    for (const keep of [false, true])
      add(`${op} ${axes} ${keep}`, (g) => [g.node(op, [g.input('b', [3, 4]), g.ints(axes)], {keep_dims: {b: keep}})]);
for (const op of ['ArgMax', 'ArgMin'])
  for (const axis of [0, 1, -1]) add(`${op} ${axis}`, (g) => [g.node(op, [g.input('f', [3, 4, 5]), g.int(axis)], {T: T('f'), output_type: T('i')})]);
for (const op of ['Softmax', 'LogSoftmax']) for (const shape of [[3, 5], [2, 3, 4]]) add(`${op} ${shape}`, (g) => [g.node(op, [g.input('f', shape)], {T: T('f')})]);
for (const op of ['Cumsum', 'Cumprod'])
  for (const exclusive of [false, true])
    for (const reverse of [false, true])
      add(`${op} ${exclusive} ${reverse}`, (g) => [g.node(op, [g.input('f', [2, 5]), g.int(1)], {exclusive: {b: exclusive}, reverse: {b: reverse}, T: T('f')})]);

// Extents.
for (const to of [[6, 4], [-1], [2, -1, 2], []]) {
  const from = to.length ? [2, 3, 4] : [1, 1];
  add(`Reshape ${to}`, (g) => [g.node('Reshape', [g.input('f', from), g.ints(to)], {T: T('f')})]);
}
for (const axes of [[], [1], [-1, 1]]) add(`Squeeze ${axes}`, (g) => [g.node('Squeeze', [g.input('f', [2, 1, 3, 1])], {squeeze_dims: {ints: axes}, T: T('f')})]);
for (const axis of [0, 1, -1]) add(`ExpandDims ${axis}`, (g) => [g.node('ExpandDims', [g.input('f', [2, 3]), g.int(axis)], {T: T('f')})]);
for (const order of [[1, 0, 2], [2, 0, 1]]) add(`Transpose ${order}`, (g) => [g.node('Transpose', [g.input('f', [2, 3, 4]), g.ints(order)], {T: T('f')})]);
for (const axis of [0, 1, -1]) {
  const b = (n) => axis === 0 ? [n, 3] : [2, n];
  add(`ConcatV2 ${axis}`, (g) => [g.node('ConcatV2', [g.input('f', b(2)), g.input('f', b(4)), g.input('f', b(1)), g.int(axis)], {N: {i: 3}, T: T('f')})]);
  add(`Concat ${axis}`, (g) => [g.node('Concat', [g.int(Math.abs(axis)), g.input('f', b(2)), g.input('f', b(4))], {N: {i: 2}, T: T('f')})]);
  add(`Pack ${axis}`, (g) => [g.node('Pack', [g.input('f', [2, 3]), g.input('f', [2, 3])], {N: {i: 2}, axis: {i: axis}, T: T('f')})]);
  const n = [2, 3][axis === 0 ? 0 : 1];
  add(`Unpack ${axis}`, (g) => { const u = g.node('Unpack', [g.input('f', [2, 3])], {num: {i: n}, axis: {i: axis}, T: T('f')}); return Array.from({length: n}, (_, k) => k ? `${u}:${k}` : u); });
  add(`Split ${axis}`, (g) => { const s = g.node('Split', [g.int(axis), g.input('f', [6, 6])], {num_split: {i: 3}, T: T('f')}); return [s, `${s}:1`, `${s}:2`]; });
  add(`SplitV ${axis}`, (g) => { const s = g.node('SplitV', [g.input('f', [7, 7]), g.ints([2, 4, 1]), g.int(axis)], {num_split: {i: 3}, T: T('f')}); return [s, `${s}:1`, `${s}:2`]; });
}
add('Split output 2 alone', (g) => { const s = g.node('Split', [g.int(1), g.input('f', [2, 6])], {num_split: {i: 3}, T: T('f')}); return [g.node('Neg', [`${s}:2`], {T: T('f')})]; });
add('Shape', (g) => [g.node('Shape', [g.input('f', [2, 3, 4])], {T: T('f')})]);
add('Size', (g) => [g.node('Size', [g.input('f', [2, 3, 4])], {T: T('f')})]);
add('Rank', (g) => [g.node('Rank', [g.input('f', [2, 3, 4])], {T: T('f')})]);
for (const [begin, size] of [[[0, 1, 2], [2, 2, 1]], [[1, 0, 0], [-1, -1, 2]]])
  add(`Slice ${begin}|${size}`, (g) => [g.node('Slice', [g.input('f', [2, 3, 4]), g.ints(begin), g.ints(size)], {T: T('f'), Index: T('i')})]);
const strided = (x, begin, end, strides, masks = {}) => add(`StridedSlice ${begin}|${end}|${strides}|${JSON.stringify(masks)}`, (g) =>
  [g.node('StridedSlice', [g.input('f', x), g.ints(begin), g.ints(end), g.ints(strides)],
    Object.fromEntries(['begin_mask', 'end_mask', 'ellipsis_mask', 'new_axis_mask', 'shrink_axis_mask'].map((m) => [m, {i: masks[m] || 0}])
      .concat([['T', T('f')], ['Index', T('i')]])))]);
strided([5, 6, 7], [1, 0, 2], [4, 6, 7], [1, 2, 3]);
strided([5, 6, 7], [4, 5, 6], [0, 1, 2], [-1, -2, -1]);
strided([5, 6, 7], [3, 3, 3], [1, 1, 1], [-1, 1, 1], {begin_mask: 1, end_mask: 6});
strided([5, 6, 7], [3, 4, 5], [0, 0, 0], [-1, -1, -1], {end_mask: 7});
strided([5, 6, 7], [0, 0, 0], [0, 0, 0], [-1, -2, -3], {begin_mask: 7, end_mask: 7});
strided([5, 6, 7], [-3, -2, -5], [-1, 100, -1], [1, 1, 2]);
strided([5, 6, 7], [2], [3], [1], {shrink_axis_mask: 1});
strided([5, 6, 7], [-1, 1], [0, 4], [1, 1], {shrink_axis_mask: 1});
strided([5, 6, 7], [0, 2], [0, 3], [1, 1], {ellipsis_mask: 1, shrink_axis_mask: 2});
strided([5, 6, 7], [1, 0, 2], [3, 0, 5], [1, 1, 2], {ellipsis_mask: 2});
strided([5, 6, 7], [0, 1, 0], [0, 3, 0], [1, 1, 1], {new_axis_mask: 5});
strided([5, 6, 7], [0, 0, 0, 2], [0, 0, 0, 6], [1, 1, 1, 2], {new_axis_mask: 4, ellipsis_mask: 2, begin_mask: 1, end_mask: 1});
strided([5, 6, 7], [1, 0, 3], [2, 0, 4], [1, 1, 1], {shrink_axis_mask: 5, new_axis_mask: 2});
strided([8], [10], [-10], [-3]);
for (const op of ['Pad', 'PadV2'])
  add(op, (g) => [g.node(op, [g.input('f', [2, 3]), g.constant('i', [2, 2], [1, 0, 2, 3])].concat(op === 'PadV2' ? [g.constant('f', [], [1.5])] : []), {T: T('f')})]);
for (const mode of ['REFLECT', 'SYMMETRIC'])
  add(`MirrorPad ${mode}`, (g) => [g.node('MirrorPad', [g.input('f', [3, 4]), g.constant('i', [2, 2], [1, 2, 2, 1])], {mode: {s: mode}, T: T('f')})]);
add('Tile', (g) => [g.node('Tile', [g.input('f', [2, 3]), g.ints([2, 3])], {T: T('f')})]);
add('BroadcastTo', (g) => [g.node('BroadcastTo', [g.input('f', [3, 1]), g.ints([2, 3, 4])], {T: T('f')})]);
for (const axes of [[0], [0, 2]]) add(`ReverseV2 ${axes}`, (g) => [g.node('ReverseV2', [g.input('f', [2, 3, 4]), g.ints(axes)], {T: T('f')})]);
add('Fill', (g) => [g.node('Fill', [g.ints([2, 3]), g.constant('f', [], [2.5])], {T: T('f')})]);
for (const [a, b, d] of [[0, 5, 1], [3, -4, -2]]) add(`Range ${a} ${b} ${d}`, (g) => [g.node('Range', [g.int(a), g.int(b), g.int(d)], {Tidx: T('i')})]);

// Indices.
for (const axis of [0, 1, 2]) add(`GatherV2 ${axis}`, (g) => [g.node('GatherV2', [g.input('f', [3, 4, 5]), g.constant('i', [2, 2], [0, 2, 1, 2]), g.int(axis)], {batch_dims: {i: 0}, Tparams: T('f')})]);
add('GatherV2 batch', (g) => [g.node('GatherV2', [g.input('f', [2, 4, 5]), g.constant('i', [2, 3], [0, 3, 1, 2, 2, 0]), g.int(1)], {batch_dims: {i: 1}, Tparams: T('f')})]);
add('GatherV2 batch, axis behind', (g) => [g.node('GatherV2', [g.input('f', [2, 4, 5]), g.constant('i', [2, 3], [0, 3, 1, 4, 2, 0]), g.int(2)], {batch_dims: {i: 1}, Tparams: T('f')})]);
add('GatherNd', (g) => [g.node('GatherNd', [g.input('f', [3, 4, 2]), g.constant('i', [3, 2], [0, 1, 2, 3, 1, 0])], {Tparams: T('f')})]);
// tfjs takes every axis of OneHot for the last one.
add('OneHot', (g) => [g.node('OneHot', [g.input('i', [2, 3], [0, 1, 3, -1, 2, 7]), g.int(4), g.constant('f', [], [2]), g.constant('f', [], [-1])], {axis: {i: -1}, T: T('f')})]);
for (const k of [1, 3]) add(`TopKV2 ${k}`, (g) => { const t = g.node('TopKV2', [g.input('f', [3, 6]), g.int(k)], {sorted: {b: true}, T: T('f')}); return [t, `${t}:1`]; });
add('ScatterNd', (g) => [g.node('ScatterNd', [g.constant('i', [3, 1], [4, 1, 4]), g.input('f', [3, 2]), g.ints([6, 2])], {T: T('f')})]);
add('TensorScatterUpdate', (g) => [g.node('TensorScatterUpdate', [g.input('f', [5, 2]), g.constant('i', [2, 1], [3, 0]), g.input('f', [2, 2])], {T: T('f')})]);
add('Where', (g) => [g.node('Where', [g.input('b', [3, 4])])]);
add('NonMaxSuppressionV3', (g) => {
  const corners = Array.from({length: 12}, () => { const [y, x] = reals([2], 0, 4); return [y, x, y + 2, x + 2]; }).flat();
  return [g.node('NonMaxSuppressionV3', [g.input('f', [12, 4], corners), g.input('f', [12], reals([12], 0, 1)), g.int(6), g.constant('f', [], [.3]), g.constant('f', [], [.1])], {T: T('f')})];
});

// Chains as exporters write them: shape arithmetic, and a whole small network.
add('Flatten', (g) => {
  const x = g.input('f', [2, 3, 4, 5], reals([2, 3, 4, 5]), [-1, 3, 4, 5]);
  const batch = g.node('StridedSlice', [g.node('Shape', [x], {T: T('f')}), g.ints([0]), g.ints([1]), g.ints([1])], {shrink_axis_mask: {i: 1}, T: T('i'), Index: T('i')});
  return [g.node('Reshape', [x, g.node('Pack', [batch, g.int(-1)], {N: {i: 2}, axis: {i: 0}, T: T('i')})], {T: T('f')})];
});
add('Network', (g) => {
  const conv = (x, shape, s) => {
    const y = g.node('Conv2D', [x, g.constant('f', shape, reals(shape, -.3, .3))], {strides: {ints: [1, s, s, 1]}, dilations: {ints: [1, 1, 1, 1]}, padding: {s: 'SAME'}, data_format: {s: 'NHWC'}, T: T('f')});
    return g.node('Relu6', [g.node('BiasAdd', [y, g.constant('f', [shape[3]])], {data_format: {s: 'NHWC'}, T: T('f')})], {T: T('f')});
  };
  const x = g.input('f', [2, 16, 16, 3], reals([2, 16, 16, 3]), [-1, 16, 16, 3]);
  let y = conv(conv(x, [3, 3, 3, 8], 2), [1, 1, 8, 16], 1);
  y = g.node('DepthwiseConv2dNative', [y, g.constant('f', [3, 3, 16, 1], reals([144], -.3, .3))], {strides: {ints: [1, 2, 2, 1]}, dilations: {ints: [1, 1, 1, 1]}, padding: {s: 'SAME'}, data_format: {s: 'NHWC'}, T: T('f')});
  y = g.node('AddV2', [conv(y, [3, 3, 16, 16], 1), y], {T: T('f')});
  y = g.node('Mean', [y, g.ints([1, 2])], {keep_dims: {b: false}, T: T('f')});
  return [g.node('Softmax', [g.node('MatMul', [y, g.constant('f', [16, 10])], {T: T('f')})], {T: T('f')})];
});

// Operators that mean the same as others above, or almost.
const notFinite = (g) => g.node('RealDiv', [g.input('f', [4], [1, 0, -2, 3]), g.constant('f', [4], [0, 0, 0, 1])], {T: T('f')});
for (const op of ['IsNan', 'IsInf', 'IsFinite']) add(`${op} of quotients`, (g) => [g.node(op, [notFinite(g)], {T: T('f')})]);
// tfjs rounds Mod down: the two agree on numbers of one sign.
for (const op of ['Div', 'Mod']) add(op, (g) => [g.node(op, [g.input('f', [2, 3], reals([2, 3], 1, 9)), g.input('f', [3], reals([3], 1, 4))], {T: T('f')})]);
add('Snapshot', (g) => [g.node('Snapshot', [g.input('f', [5])], {T: T('f')})]);
add('IdentityN', (g) => { const n = g.node('IdentityN', [g.input('f', [2]), g.input('f', [3])]); return [n, `${n}:1`]; });
add('PlaceholderWithDefault', (g) => [g.node('Neg', [g.node('PlaceholderWithDefault', [g.constant('f', [3])], {dtype: T('f'), shape: {shape: [3]}})], {T: T('f')})]);
for (const a of [false, true])
  for (const b of [false, true])
    add(`BatchMatMul ${a} ${b}`, (g) => [g.node('BatchMatMul', [g.input('f', a ? [2, 4, 3] : [2, 3, 4]), g.input('f', b ? [2, 5, 4] : [2, 4, 5])],
      {adj_x: {b: a}, adj_y: {b: b}, T: T('f')})]);
for (const axes of [[1], [0, 2], [-1]])
  for (const keep of [false, true])
    add(`EuclideanNorm ${axes} ${keep}`, (g) => [g.node('EuclideanNorm', [g.input('f', [3, 2, 4]), g.ints(axes)], {keep_dims: {b: keep}, T: T('f')})]);
add('ShapeN', (g) => { const n = g.node('ShapeN', [g.input('f', [2, 3]), g.input('f', [4])], {N: {i: 2}, T: T('f')}); return [n, `${n}:1`]; });
add('Gather', (g) => [g.node('Gather', [g.input('f', [3, 4]), g.constant('i', [2, 2], [0, 2, 1, 2])], {Tparams: T('f')})]);
add('Slice to the end', (g) => [g.node('Slice', [g.input('f', [3, 4]), g.ints([3, 4]), g.ints([-1, 0])], {T: T('f'), Index: T('i')})]);
for (const mode of ['REFLECT', 'SYMMETRIC'])
  add(`MirrorPad ${mode} to the edge`, (g) => [g.node('MirrorPad', [g.input('f', [3, 1]), g.constant('i', [2, 2], [2, 2, 0, 0])], {mode: {s: mode}, T: T('f')})]);
add('NonMaxSuppressionV2', (g) => {
  const corners = Array.from({length: 12}, () => { const [y, x] = reals([2], 0, 4); return [y, x, y + 2, x + 2]; }).flat();
  return [g.node('NonMaxSuppressionV2', [g.input('f', [12, 4], corners), g.input('f', [12], reals([12], 0, 1)), g.int(6), g.constant('f', [], [.3])], {T: T('f')})];
});

// What TensorFlow's optimizer and tfjs' converter join to a convolution or a product.
const joined = (ops, more = {}) => ({fused_ops: {texts: ops}, num_args: {i: 1}, T: T('f'), ...more});
const windows = {strides: {ints: [1, 1, 1, 1]}, dilations: {ints: [1, 1, 1, 1]}, padding: {s: 'SAME'}, data_format: {s: 'NHWC'}};
for (const then of [[], ['Relu'], ['Relu6'], ['Elu'], ['LeakyRelu'], ['Sigmoid'], ['Prelu']]) {
  const rest = (g, channels) => [g.constant('f', [channels]), ...(then[0] === 'Prelu' ? [g.constant('f', [channels])] : [])];
  const attrs = joined(['BiasAdd', ...then], {num_args: {i: then[0] === 'Prelu' ? 2 : 1}, leakyrelu_alpha: {f: .3}});
  add(`_FusedConv2D ${then}`, (g) => [g.node('_FusedConv2D', [g.input('f', image(true, 3)), g.constant('f', [3, 3, 3, 4]), ...rest(g, 4)], {...windows, ...attrs})]);
  // tfjs does not hand LeakyRelu's factor to this one
  if (then[0] !== 'LeakyRelu') add(`FusedDepthwiseConv2dNative ${then}`, (g) =>
    [g.node('FusedDepthwiseConv2dNative', [g.input('f', image(true, 3)), g.constant('f', [3, 3, 3, 2]), ...rest(g, 6)], {...windows, ...attrs})]);
  for (const turned of [false, true])
    add(`_FusedMatMul ${then} ${turned}`, (g) => [g.node('_FusedMatMul', [g.input('f', turned ? [4, 3] : [3, 4]), g.constant('f', [4, 5]), ...rest(g, 5)],
      {transpose_a: {b: turned}, transpose_b: {b: false}, ...attrs})]);
}
add('Prelu', (g) => [g.node('Prelu', [g.input('f', [2, 3, 4]), g.constant('f', [4])], {T: T('f')})]);
add('Atan2', (g) => [g.node('Atan2', [g.input('f', [3, 5]), g.input('f', [3, 5])], {T: T('f')})]);
for (const padded of [false, true])
  add(`NonMaxSuppressionV4 ${padded}`, (g) => {
    const corners = Array.from({length: 12}, () => { const [y, x] = reals([2], 0, 4); return [y, x, y + 2, x + 2]; }).flat();
    const n = g.node('NonMaxSuppressionV4', [g.input('f', [12, 4], corners), g.input('f', [12], reals([12], 0, 1)), g.int(9), g.constant('f', [], [.3]), g.constant('f', [], [.1])],
      {pad_to_max_output_size: {b: padded}, T: T('f')});
    return [n, `${n}:1`];
  });
add('NonMaxSuppressionV5', (g) => {
  const corners = Array.from({length: 12}, () => { const [y, x] = reals([2], 0, 4); return [y, x, y + 2, x + 2]; }).flat();
  const n = g.node('NonMaxSuppressionV5', [g.input('f', [12, 4], corners), g.input('f', [12], reals([12], 0, 1)), g.int(6), g.constant('f', [], [.3]), g.constant('f', [], [.1]), g.constant('f', [], [0])],
    {pad_to_max_output_size: {b: false}, T: T('f')});
  return [n, `${n}:1`];
});

addControlCases(add);

// Where tfjs gives another type than TensorFlow does: integers of a division of floats, floats as extents.
const typeOf = (name, type) => name.startsWith('FloorDiv f') ? 'float32' : name === 'ShapeN' ? 'int32' : type;
const lines = [], operators = new Set();
let index = 0;
for (const {name, build} of cases) {
  seed(++index);
  const g = new Graph();
  const outputs = build(g);
  try {
    const found = await g.run(tf, outputs);
    lines.push(JSON.stringify({name, graph: g.text(), inputs: g.inputs, names: outputs, outputs: found.map((o) => ({...o, type: typeOf(name, o.type)}))}));
    for (const n of [...g.nodes, ...g.functions.flatMap((f) => f.nodes)]) operators.add(n.op);
  } catch (e) {
    console.error(`${name}: ${e.message}`);
    process.exitCode = 1;
  }
}
writeFileSync(file, lines.join('\n') + '\n');
console.log(`${lines.length} cases of ${operators.size} operators`);
