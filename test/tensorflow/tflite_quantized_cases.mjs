// Quantized models.
import {count, integers, reals} from './tfjs_graph.mjs';

export function quantized_cases(add) {
  const q = {scale: .05, zero: 3}, p = {scale: .04, zero: -7}, one = {steps: 1};
  for (const [type, more] of [['q', 0], ['u', 128]]) {
    const x = {scale: .05, zero: 3 + more}, y = {scale: .04, zero: -7 + more};
    for (const op of ['ADD', 'SUB', 'MUL'])
      for (const f of ['NONE', 'RELU', 'RELU6'])
        add(`${op} ${type} ${f}`, (m) => m.node(op, [m.input(type, [3, 8], undefined, x), m.input(type, [3, 8], undefined, y)], [[type, [3, 8], {scale: op === 'MUL' ? .2 : .09, zero: more + 2}]], {fused_activation_function: f}, 2), one);
    for (const op of ['RELU', 'RELU6']) add(`${op} ${type}`, (m) => m.node(op, [m.input(type, [40], undefined, x)], [[type, [40], y]], undefined, 2), one);
    add(`LOGISTIC ${type}`, (m) => m.node('LOGISTIC', [m.input(type, [60], undefined, x)], [[type, [60], {scale: 1 / 256, zero: more - 128}]]), one);
    add(`TANH ${type}`, (m) => m.node('TANH', [m.input(type, [60], undefined, x)], [[type, [60], {scale: 1 / 128, zero: more}]]), one);
    add(`SOFTMAX ${type}`, (m) => m.node('SOFTMAX', [m.input(type, [4, 10], undefined, x)], [[type, [4, 10], {scale: 1 / 256, zero: more - 128}]], {beta: 1}), one);
    for (const op of ['AVERAGE_POOL_2D', 'MAX_POOL_2D'])
      for (const padding of ['SAME', 'VALID'])
        add(`${op} ${type} ${padding}`, (m) => m.node(op, [m.input(type, [1, 5, 5, 3], undefined, x)], [[type, padding === 'SAME' ? [1, 3, 3, 3] : [1, 2, 2, 3], x]],
          {padding, stride_w: 2, stride_h: 2, filter_width: 2, filter_height: 2}), one);
    add(`DEQUANTIZE ${type}`, (m) => m.node('DEQUANTIZE', [m.input(type, [20], undefined, x)], [['f', [20]]], {}, 2));
    add(`QUANTIZE ${type}`, (m) => m.node('QUANTIZE', [m.input('f', [60], reals([60], -9, 9))], [[type, [60], x]]));
    add(`QUANTIZE ${type} again`, (m) => m.node('QUANTIZE', [m.input(type, [60], undefined, x)], [[type, [60], y]]), one);
    add(`CONCATENATION ${type}`, (m) => m.node('CONCATENATION', [m.input(type, [2, 3], undefined, x), m.input(type, [2, 3], undefined, x)], [[type, [2, 6], x]], {axis: 1}));
    add(`PAD ${type}`, (m) => m.node('PAD', [m.input(type, [2, 3], undefined, x), m.constant('i', [2, 2], [1, 0, 2, 1])], [[type, [3, 6], x]], {}, 2));
    add(`MEAN ${type}`, (m) => m.node('MEAN', [m.input(type, [1, 4, 4, 3], undefined, x), m.ints([1, 2])], [[type, [1, 3], y]], {keep_dims: false}, 2), one);
    add(`RESIZE_BILINEAR ${type}`, (m) => m.node('RESIZE_BILINEAR', [m.input(type, [1, 3, 4, 2], undefined, x), m.ints([6, 5])], [[type, [1, 6, 5, 2], x]], {half_pixel_centers: true}, 3), one);
    add(`RESIZE_NEAREST_NEIGHBOR ${type}`, (m) => m.node('RESIZE_NEAREST_NEIGHBOR', [m.input(type, [1, 3, 4, 2], undefined, x), m.ints([6, 5])], [[type, [1, 6, 5, 2], x]], {}, 2));
    add(`ARG_MAX ${type}`, (m) => m.node('ARG_MAX', [m.input(type, [3, 5], undefined, x), m.int(1)], [['i', [3]]], {output_type: 'INT32'}));
    for (const op of ['MAXIMUM', 'MINIMUM']) add(`${op} ${type}`, (m) => m.node(op, [m.input(type, [3, 5], undefined, x), m.input(type, [3, 5], undefined, x)], [[type, [3, 5], x]], undefined, 2));
    for (const op of ['RESHAPE', 'TRANSPOSE']) add(`${op} ${type}`, (m) => m.node(op, [m.input(type, [3, 4], undefined, x), m.ints(op === 'RESHAPE' ? [2, 6] : [1, 0])], [[type, op === 'RESHAPE' ? [2, 6] : [4, 3], x]], {}));
    add(`LESS ${type}`, (m) => m.node('LESS', [m.input(type, [20], undefined, x), m.input(type, [20], undefined, x)], [['b', [20]]], undefined, 2));
  }
  for (const op of ['HARD_SWISH', 'LEAKY_RELU', 'ABS', 'ELU'])
    add(`${op} q`, (m) => m.node(op, [m.input('q', [60], undefined, q)], [['q', [60], {scale: .06, zero: -20}]], op === 'LEAKY_RELU' ? {alpha: .1} : undefined, op === 'LEAKY_RELU' || op === 'ABS' ? 2 : 1), one);
  add('PRELU q', (m) => m.node('PRELU', [m.input('q', [1, 3, 2, 4], undefined, q), m.constant('q', [1, 1, 4], undefined, {scale: .01, zero: 0})], [['q', [1, 3, 2, 4], p]], undefined, 1), one);
  add('L2_NORMALIZATION q', (m) => m.node('L2_NORMALIZATION', [m.input('q', [3, 8], undefined, {scale: .05, zero: 0})], [['q', [3, 8], {scale: 1 / 128, zero: 0}]], {}, 2), one);
  add('LOG_SOFTMAX q', (m) => m.node('LOG_SOFTMAX', [m.input('q', [3, 8], undefined, q)], [['q', [3, 8], {scale: 16 / 256, zero: 127}]], {}, 2), one);
  add('SQUARED_DIFFERENCE q', (m) => m.node('SQUARED_DIFFERENCE', [m.input('q', [20], undefined, q), m.input('q', [20], undefined, p)], [['q', [20], {scale: .5, zero: -128}]], undefined, 2), one);
  add('SUM q', (m) => m.node('SUM', [m.input('q', [3, 4], undefined, q), m.ints([1])], [['q', [3], {scale: .2, zero: 0}]], {keep_dims: false}, 2), one);
  add('BATCH_MATMUL q', (m) => m.node('BATCH_MATMUL', [m.input('q', [2, 3, 8], undefined, q), m.input('q', [2, 8, 4], undefined, p)], [['q', [2, 3, 4], {scale: .3, zero: 1}]], {}, 2), one);

  // Weights of one scale, of a scale for each channel, unsigned, and of 16-bit activations.
  const activations = ['NONE', 'RELU', 'RELU6'];
  const weights = (m, shape, axis, per, type) => {
    const n = shape[axis], scale = per ? Array.from({length: n}, (_, i) => .01 + .003 * i) : .02;
    const zero = type === 'u' ? 120 : per ? Array(n).fill(0) : 0;
    return [m.constant(type, shape, type === 'u' ? undefined : integers(shape, -127, 128), {scale, zero, axis}), scale, n];
  };
  const biased = (m, [w, scale, n], x, type) => [w, m.constant(type === 's' ? 'l' : 'i', [n], integers([n], -900, 900), {scale: [scale].flat().map((s) => Math.fround(s * x.scale)), zero: Array([scale].flat().length).fill(0), axis: 0})];
  for (const [type, per] of [['q', true], ['q', false], ['u', false], ['s', true]])
    for (const [k, f] of activations.entries()) {
      const x = {scale: type === 's' ? .0002 : .05, zero: type === 's' ? 0 : type === 'u' ? 131 : 3}, w = type === 's' ? 'q' : type;
      const y = {scale: type === 's' ? .001 : .25, zero: type === 's' ? 0 : type === 'u' ? 120 : -8}, padding = k ? 'SAME' : 'VALID', n = k ? 6 : 4, version = type === 's' ? 4 : 3;
      add(`CONV_2D ${type} ${per} ${f}`, (m) => m.node('CONV_2D', [m.input(type, [1, 6, 6, 3], undefined, x), ...biased(m, weights(m, [4, 3, 3, 3], 0, per, w), x, type)], [[type, [1, n, n, 4], y]],
        {padding, stride_w: 1, stride_h: 1, fused_activation_function: f}, version), one);
      add(`DEPTHWISE_CONV_2D ${type} ${per} ${f}`, (m) => m.node('DEPTHWISE_CONV_2D', [m.input(type, [1, 6, 6, 3], undefined, x), ...biased(m, weights(m, [1, 3, 3, 6], 3, per, w), x, type)], [[type, [1, n, n, 6], y]],
        {padding, stride_w: 1, stride_h: 1, depth_multiplier: 2, fused_activation_function: f}, version), one);
      if (type !== 's' && !per || type === 's')
        add(`FULLY_CONNECTED ${type} ${f}`, (m) => m.node('FULLY_CONNECTED', [m.input(type, [2, 12], undefined, x), ...biased(m, weights(m, [5, 12], 0, false, w), x, type)], [[type, [2, 5], y]],
          {fused_activation_function: f}, 4), one);
    }
  add('TRANSPOSE_CONV q', (m) => {
    const x = {scale: .05, zero: 3};
    const [w, b] = biased(m, weights(m, [2, 3, 3, 4], 0, true, 'q'), x, 'q');
    return m.node('TRANSPOSE_CONV', [m.ints([1, 8, 8, 2]), w, m.input('q', [1, 4, 4, 4], undefined, x), b], [['q', [1, 8, 8, 2], {scale: .2, zero: 0}]], {padding: 'SAME', stride_w: 2, stride_h: 2}, 3);
  }, one);
  add('ADD s', (m) => m.node('ADD', [m.input('s', [20], undefined, {scale: .0001, zero: 0}), m.input('s', [20], undefined, {scale: .0002, zero: 0})], [['s', [20], {scale: .0004, zero: 0}]], {}, 2), one);
  add('MUL s', (m) => m.node('MUL', [m.input('s', [20], undefined, {scale: .0001, zero: 0}), m.input('s', [20], undefined, {scale: .0002, zero: 0})], [['s', [20], {scale: .001, zero: 0}]], {}, 2), one);

  // Weights alone quantized: the interpreter quantizes activations by their range, kiln computes in floats.
  const hybrid = {tolerance: .03};
  add('FULLY_CONNECTED hybrid', (m) => m.node('FULLY_CONNECTED', [m.input('f', [2, 12]), m.constant('q', [5, 12], undefined, {scale: .02, zero: 0}), m.constant('f', [5])], [['f', [2, 5]]], {}, 3), hybrid);
  add('CONV_2D hybrid', (m) => m.node('CONV_2D', [m.input('f', [1, 6, 6, 3]), m.constant('q', [4, 3, 3, 3], undefined, {scale: [.01, .02, .03, .04], zero: [0, 0, 0, 0], axis: 0}), m.constant('f', [4])], [['f', [1, 4, 4, 4]]], {padding: 'VALID', stride_w: 1, stride_h: 1}, 5), hybrid);
  // Weights of f16, widened by an operator: 0x3c00 is 1.
  const halves = (n) => Array.from({length: n}, (_, i) => 0x3c00 + 37 * i);
  add('DEQUANTIZE f16', (m) => m.node('FULLY_CONNECTED', [m.input('f', [2, 12]), m.node('DEQUANTIZE', [m.constant('h', [5, 12], halves(60))], [['f', [5, 12]]], {}, 3), -1], [['f', [2, 5]]], {}));
}
