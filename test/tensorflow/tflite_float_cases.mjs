// Models of floats and plain integers.
import {count, integers, reals} from './tfjs_graph.mjs';

const broadcast = (a, b) => {
  const n = Math.max(a.length, b.length), at = (s, i) => s[i - n + s.length] ?? 1;
  return Array.from({length: n}, (_, i) => Math.max(at(a, i), at(b, i)));
};
const same = (n, stride) => Math.ceil(n / stride), valid = (n, k, stride, dilation = 1) => Math.ceil((n - (k - 1) * dilation) / stride);

// The interpreter's script reads no numbers of 64 bits.
const narrowed = (m, type, index, shape) => type === 'l' ? m.node('CAST', [index], [['i', shape]], {}) : index;

export function float_cases(add) {
  const activations = ['NONE', 'RELU', 'RELU_N1_TO_1', 'RELU6'];

  // Elements.
  const unary = {
    ABS: [-2, 2], CEIL: [-3, 3], COS: [-3, 3], ELU: [-3, 3], EXP: [-3, 3], FLOOR: [-3, 3], HARD_SWISH: [-5, 5], LOG: [.1, 5],
    LOGISTIC: [-6, 6], NEG: [-2, 2], RELU: [-2, 2], RELU6: [-3, 9], RELU_N1_TO_1: [-3, 3], ROUND: [-4, 4], RSQRT: [.2, 4], SIN: [-3, 3],
    SQRT: [0, 9], SQUARE: [-2, 2], TANH: [-3, 3], ZEROS_LIKE: [-1, 1], SIGN: [-1, 1], GELU: [-3, 3], RELU_0_TO_1: [-1, 2],
  };
  for (const [op, [low, high]] of Object.entries(unary))
    for (const shape of [[7], [2, 3, 5]]) add(`${op} ${shape}`, (m) => m.node(op, [m.input('f', shape, reals(shape, low, high))], [['f', shape]]));
  add('ROUND halves', (m) => m.node('ROUND', [m.input('f', [6], [-2.5, -1.5, -.5, .5, 1.5, 2.5])], [['f', [6]]]));
  add('GELU approximate', (m) => m.node('GELU', [m.input('f', [9])], [['f', [9]]], {approximate: true}));
  add('NEG i', (m) => m.node('NEG', [m.input('i', [9])], [['i', [9]]]));
  for (const alpha of [0, .1]) add(`LEAKY_RELU ${alpha}`, (m) => m.node('LEAKY_RELU', [m.input('f', [9])], [['f', [9]]], {alpha}));
  add('PRELU', (m) => m.node('PRELU', [m.input('f', [1, 3, 2, 4]), m.constant('f', [1, 1, 4])], [['f', [1, 3, 2, 4]]]));
  add('LOGICAL_NOT', (m) => m.node('LOGICAL_NOT', [m.input('b', [6])], [['b', [6]]]));

  const pairs = [[[2, 3], [2, 3]], [[2, 1, 4], [3, 1]], [[5], []]];
  for (const op of ['ADD', 'SUB', 'MUL', 'DIV', 'MAXIMUM', 'MINIMUM', 'SQUARED_DIFFERENCE', 'POW', 'FLOOR_DIV', 'FLOOR_MOD', 'ATAN2'])
    for (const [a, b] of op === 'ATAN2' ? pairs.slice(0, 1) : pairs)
      add(`${op} ${a}|${b}`, (m) => m.node(op, [m.input('f', a, reals(a, op === 'POW' ? .2 : -3, 3)), m.input('f', b, reals(b, op === 'ATAN2' ? -2 : .5, 2))],
        [['f', broadcast(a, b)]], ['ADD', 'SUB', 'MUL', 'DIV'].includes(op) ? {fused_activation_function: 'NONE'} : undefined));
  for (const op of ['ADD', 'SUB', 'MUL', 'DIV'])
    for (const f of activations.slice(1))
      add(`${op} ${f}`, (m) => m.node(op, [m.input('f', [3, 4]), m.input('f', [3, 4], reals([3, 4], .5, 2))], [['f', [3, 4]]], {fused_activation_function: f}));
  for (const op of ['ADD', 'SUB', 'MUL', 'MAXIMUM', 'MINIMUM', 'SQUARED_DIFFERENCE'])
    for (const [a, b] of pairs)
      add(`${op} i ${a}|${b}`, (m) => m.node(op, [m.input('i', a), m.input('i', b)], [['i', broadcast(a, b)]],
        ['ADD', 'SUB', 'MUL'].includes(op) ? {fused_activation_function: 'NONE'} : undefined));
  for (const op of ['DIV', 'FLOOR_DIV', 'FLOOR_MOD'])
    add(`${op} i`, (m) => m.node(op, [m.input('i', [8], [7, -7, 7, -7, 6, -6, 0, 5]), m.input('i', [8], [3, 3, -3, -3, 2, -2, 4, -7])], [['i', [8]]],
      op === 'DIV' ? {fused_activation_function: 'NONE'} : undefined));
  for (const op of ['EQUAL', 'NOT_EQUAL', 'LESS', 'LESS_EQUAL', 'GREATER', 'GREATER_EQUAL'])
    for (const type of ['f', 'i', 'l'])
      add(`${op} ${type}`, (m) => {
        const given = (shape) => type === 'l' ? m.node('CAST', [m.input('i', shape, integers(shape, 0, 3))], [['l', shape]], {}) : m.input(type, shape, integers(shape, 0, 3));
        return m.node(op, [given([4, 5]), given([5])], [['b', [4, 5]]]);
      });
  for (const op of ['LOGICAL_AND', 'LOGICAL_OR']) add(op, (m) => m.node(op, [m.input('b', [2, 4]), m.input('b', [4])], [['b', [2, 4]]]));
  add('ADD_N', (m) => m.node('ADD_N', [m.input('f', [2, 3]), m.input('f', [2, 3]), m.input('f', [2, 3])], [['f', [2, 3]]]));
  add('SELECT', (m) => m.node('SELECT', [m.input('b', [2, 3]), m.input('f', [2, 3]), m.input('f', [2, 3])], [['f', [2, 3]]]));
  add('SELECT rows', (m) => m.node('SELECT', [m.input('b', [4]), m.input('f', [4, 3]), m.input('f', [4, 3])], [['f', [4, 3]]]));
  add('SELECT_V2', (m) => m.node('SELECT_V2', [m.input('b', [3, 1]), m.input('f', [3, 4]), m.input('f', [4])], [['f', [3, 4]]]));
  for (const [from, to] of [['f', 'i'], ['i', 'f'], ['f', 'b'], ['b', 'f'], ['i', 'l'], ['u', 'f'], ['f', 'u']])
    add(`CAST ${from}${to}`, (m) => narrowed(m, to, m.node('CAST', [m.input(from, [11], from === 'f' ? reals([11], to === 'u' ? 0 : -9, 9) : undefined)], [[to, [11]]], {}), [11]));
  for (const narrow_range of [false])
    for (const [min, max, num_bits] of [[-1, 1, 8], [0, 6, 8], [-.3, 2, 4]])
      add(`FAKE_QUANT ${min} ${max} ${num_bits} ${narrow_range}`, (m) => m.node('FAKE_QUANT', [m.input('f', [40], reals([40], -2, 7))], [['f', [40]]], {min, max, num_bits, narrow_range}, 2));
  add('BUCKETIZE', (m) => m.node('BUCKETIZE', [m.input('f', [2, 5], [-2, -1, 0, .5, 1, 1.5, 2, 3, 4, 9])], [['i', [2, 5]]], {boundaries: [0, 1, 3]}));

  // Convolutions and pooling.
  for (const padding of ['SAME', 'VALID'])
    for (const [stride, dilation, act] of [[1, 1, 0], [2, 1, 1], [1, 2, 3], [3, 1, 2]]) {
      const [h, w] = [7, 8], out = (n, k, d = dilation) => padding === 'SAME' ? same(n, stride) : valid(n, k, stride, d);
      const f = activations[act], strides = {padding, stride_w: stride, stride_h: stride, fused_activation_function: f};
      const dilations = {dilation_w_factor: dilation, dilation_h_factor: dilation};
      add(`CONV_2D ${padding} ${stride} ${dilation} ${f}`, (m) => m.node('CONV_2D', [m.input('f', [2, h, w, 3]), m.constant('f', [4, 3, 2, 3]), m.constant('f', [4])],
        [['f', [2, out(h, 3), out(w, 2), 4]]], {...strides, ...dilations}));
      for (const mult of [1, 2])
        add(`DEPTHWISE_CONV_2D ${padding} ${stride} ${dilation} ${mult}`, (m) => m.node('DEPTHWISE_CONV_2D', [m.input('f', [2, h, w, 3]), m.constant('f', [1, 3, 2, 3 * mult]), m.constant('f', [3 * mult])],
          [['f', [2, out(h, 3), out(w, 2), 3 * mult]]], {...strides, ...dilations, depth_multiplier: mult}, 2));
      if (dilation === 1)
        for (const op of ['AVERAGE_POOL_2D', 'MAX_POOL_2D', 'L2_POOL_2D'])
          add(`${op} ${padding} ${stride} ${f}`, (m) => m.node(op, [m.input('f', [2, h, w, 3])], [['f', [2, out(h, 3), out(w, 2), 3]]], {...strides, filter_height: 3, filter_width: 2}));
    }
  add('CONV_2D groups', (m) => m.node('CONV_2D', [m.input('f', [1, 5, 5, 4]), m.constant('f', [6, 3, 3, 2]), m.constant('f', [6])], [['f', [1, 5, 5, 6]]], {padding: 'SAME', stride_w: 1, stride_h: 1}, 6));
  for (const padding of ['SAME', 'VALID'])
    for (const bias of [false, true]) {
      const n = padding === 'SAME' ? 8 : 9;
      add(`TRANSPOSE_CONV ${padding} ${bias}`, (m) => m.node('TRANSPOSE_CONV', [m.ints([1, n, n, 2]), m.constant('f', [2, 3, 3, 4]), m.input('f', [1, 4, 4, 4]), ...(bias ? [m.constant('f', [2])] : [])],
        [['f', [1, n, n, 2]]], {padding, stride_w: 2, stride_h: 2}, bias ? 3 : 1));
    }
  for (const padding of ['SAME', 'VALID']) {
    const n = padding === 'SAME' ? [4, 5, 6] : [3, 3, 5];
    add(`CONV_3D ${padding}`, (m) => m.node('CONV_3D', [m.input('f', [1, 4, 5, 6, 2]), m.constant('f', [2, 3, 2, 2, 3]), m.constant('f', [3])], [['f', [1, ...n, 3]]],
      {padding, stride_d: 1, stride_w: 1, stride_h: 1, dilation_d_factor: 1, dilation_w_factor: 1, dilation_h_factor: 1}));
  }
  add('CONV_3D_TRANSPOSE', (m) => m.node('CONV_3D_TRANSPOSE', [m.ints([1, 4, 4, 4, 3]), m.constant('f', [2, 2, 2, 3, 2]), m.input('f', [1, 2, 2, 2, 2])], [['f', [1, 4, 4, 4, 3]]],
    {padding: 'SAME', stride_d: 2, stride_w: 2, stride_h: 2, dilation_d_factor: 1, dilation_w_factor: 1, dilation_h_factor: 1}));
  for (const keep_num_dims of [false, true])
    for (const f of activations)
      add(`FULLY_CONNECTED ${keep_num_dims} ${f}`, (m) => m.node('FULLY_CONNECTED', [m.input('f', [2, 3, 4]), m.constant('f', [5, 4]), m.constant('f', [5])],
        [['f', keep_num_dims ? [2, 3, 5] : [6, 5]]], {fused_activation_function: f, keep_num_dims}, keep_num_dims ? 5 : 1));
  add('FULLY_CONNECTED joined', (m) => m.node('FULLY_CONNECTED', [m.input('f', [2, 3, 4]), m.constant('f', [5, 12]), -1], [['f', [2, 5]]], {}));
  for (const adj_x of [false, true])
    for (const adj_y of [false, true])
      add(`BATCH_MATMUL ${adj_x} ${adj_y}`, (m) => m.node('BATCH_MATMUL', [m.input('f', adj_x ? [2, 4, 3] : [2, 3, 4]), m.input('f', adj_y ? [2, 5, 4] : [2, 4, 5])], [['f', [2, 3, 5]]], {adj_x, adj_y}));
  for (const beta of [1, .5]) add(`SOFTMAX ${beta}`, (m) => m.node('SOFTMAX', [m.input('f', [3, 5])], [['f', [3, 5]]], {beta}));
  add('LOG_SOFTMAX', (m) => m.node('LOG_SOFTMAX', [m.input('f', [3, 5])], [['f', [3, 5]]], {}));
  add('L2_NORMALIZATION', (m) => m.node('L2_NORMALIZATION', [m.input('f', [3, 5])], [['f', [3, 5]]], {}));
  add('LOCAL_RESPONSE_NORMALIZATION', (m) => m.node('LOCAL_RESPONSE_NORMALIZATION', [m.input('f', [1, 2, 3, 6])], [['f', [1, 2, 3, 6]]], {radius: 2, bias: 1.5, alpha: .4, beta: .75}));

  // Reductions.
  for (const op of ['SUM', 'MEAN', 'REDUCE_MAX', 'REDUCE_MIN', 'REDUCE_PROD'])
    for (const type of ['f', 'i'])
      for (const [axes, keep_dims] of [[[1], false], [[0, 2], true], [[-1], true]]) {
        if (type === 'i' && op === 'MEAN') continue;
        const kept = [2, 3, 4].map((n, d) => axes.some((a) => (a + 3) % 3 === d) ? 1 : n);
        const shape = keep_dims ? kept : kept.filter((n, d) => !axes.some((a) => (a + 3) % 3 === d));
        add(`${op} ${type} ${axes} ${keep_dims}`, (m) => m.node(op, [m.input(type, [2, 3, 4]), m.ints(axes)], [[type, shape]], {keep_dims}));
      }
  for (const op of ['REDUCE_ANY', 'REDUCE_ALL']) add(op, (m) => m.node(op, [m.input('b', [3, 4]), m.ints([1])], [['b', [3]]], {keep_dims: false}));
  for (const op of ['ARG_MAX', 'ARG_MIN'])
    for (const to of ['i', 'l'])
      add(`${op} ${to}`, (m) => narrowed(m, to, m.node(op, [m.input('f', [3, 5]), m.int(1)], [[to, [3]]], {output_type: to === 'i' ? 'INT32' : 'INT64'}), [3]));
  for (const exclusive of [false, true])
    for (const reverse of [false, true]) add(`CUMSUM ${exclusive} ${reverse}`, (m) => m.node('CUMSUM', [m.input('f', [3, 4]), m.int(1)], [['f', [3, 4]]], {exclusive, reverse}));
  add('TOPK_V2', (m) => m.node('TOPK_V2', [m.input('f', [3, 6]), m.int(2)], [['f', [3, 2]], ['i', [3, 2]]], {}));

  // Images.
  for (const [op, type] of [['RESIZE_BILINEAR', 'f'], ['RESIZE_NEAREST_NEIGHBOR', 'f']])
    for (const more of [{}, {align_corners: true}, {half_pixel_centers: true}])
      for (const [h, w] of [[6, 5], [2, 7]])
        add(`${op} ${JSON.stringify(more)} ${h} ${w}`, (m) => m.node(op, [m.input(type, [1, 3, 4, 2]), m.ints([h, w])], [[type, [1, h, w, 2]]], more, 3));
  add('DEPTH_TO_SPACE', (m) => m.node('DEPTH_TO_SPACE', [m.input('f', [1, 2, 3, 8])], [['f', [1, 4, 6, 2]]], {block_size: 2}));
  add('SPACE_TO_DEPTH', (m) => m.node('SPACE_TO_DEPTH', [m.input('f', [1, 4, 6, 2])], [['f', [1, 2, 3, 8]]], {block_size: 2}));
  add('SPACE_TO_BATCH_ND', (m) => m.node('SPACE_TO_BATCH_ND', [m.input('f', [1, 4, 6, 2]), m.ints([2, 3]), m.constant('i', [2, 2], [0, 2, 1, 2])], [['f', [6, 3, 3, 2]]], {}));
  add('BATCH_TO_SPACE_ND', (m) => m.node('BATCH_TO_SPACE_ND', [m.input('f', [6, 3, 3, 2]), m.ints([2, 3]), m.constant('i', [2, 2], [0, 2, 1, 2])], [['f', [1, 4, 6, 2]]], {}));

  // Views.
  add('RESHAPE', (m) => m.node('RESHAPE', [m.input('f', [2, 6]), m.ints([3, -1])], [['f', [3, 4]]], {}));
  add('RESHAPE option', (m) => m.node('RESHAPE', [m.input('f', [2, 6])], [['f', [3, 4]]], {new_shape: [3, 4]}));
  add('SQUEEZE', (m) => m.node('SQUEEZE', [m.input('f', [1, 3, 1, 2])], [['f', [3, 2]]], {squeeze_dims: []}));
  add('SQUEEZE axes', (m) => m.node('SQUEEZE', [m.input('f', [1, 3, 1, 2])], [['f', [1, 3, 2]]], {squeeze_dims: [2]}));
  for (const axis of [0, -1, 1]) add(`EXPAND_DIMS ${axis}`, (m) => m.node('EXPAND_DIMS', [m.input('f', [2, 3]), m.int(axis)], [['f', axis === 0 ? [1, 2, 3] : axis === 1 ? [2, 1, 3] : [2, 3, 1]]], {}));
  add('TRANSPOSE', (m) => m.node('TRANSPOSE', [m.input('f', [2, 3, 4]), m.ints([2, 0, 1])], [['f', [4, 2, 3]]], {}));
  for (const axis of [0, 1, -1])
    add(`CONCATENATION ${axis}`, (m) => m.node('CONCATENATION', [m.input('f', [2, 3]), m.input('f', [2, 3])], [['f', axis === 0 ? [4, 3] : [2, 6]]], {axis, fused_activation_function: 'NONE'}));
  add('PACK', (m) => m.node('PACK', [m.input('f', [2, 3]), m.input('f', [2, 3])], [['f', [2, 2, 3]]], {values_count: 2, axis: 1}));
  add('UNPACK', (m) => m.node('UNPACK', [m.input('f', [2, 3])], [['f', [2]], ['f', [2]], ['f', [2]]], {num: 3, axis: 1}));
  add('SPLIT', (m) => m.node('SPLIT', [m.int(1), m.input('f', [2, 6])], [['f', [2, 3]], ['f', [2, 3]]], {num_splits: 2}));
  add('SPLIT_V', (m) => m.node('SPLIT_V', [m.input('f', [2, 6]), m.ints([1, -1, 2]), m.int(1)], [['f', [2, 1]], ['f', [2, 3]], ['f', [2, 2]]], {num_splits: 3}));
  add('SLICE', (m) => m.node('SLICE', [m.input('f', [4, 5]), m.ints([1, 2]), m.ints([-1, 2])], [['f', [3, 2]]], {}));
  for (const [more, shape, strides] of [[{}, [2, 2], [1, 2]], [{begin_mask: 1, end_mask: 2}, [3, 2], [1, 2]], [{shrink_axis_mask: 1}, [2], [1, 2]]])
    add(`STRIDED_SLICE ${JSON.stringify(more)}`, (m) => m.node('STRIDED_SLICE', [m.input('f', [4, 5]), m.ints([1, 1]), m.ints([3, 5]), m.ints(strides)], [['f', shape]], more));
  add('STRIDED_SLICE back', (m) => m.node('STRIDED_SLICE', [m.input('f', [4, 5]), m.ints([-1, 4]), m.ints([0, 0]), m.ints([-1, -2])], [['f', [3, 2]]], {}));
  add('PAD', (m) => m.node('PAD', [m.input('f', [2, 3]), m.constant('i', [2, 2], [1, 0, 2, 1])], [['f', [3, 6]]], {}));
  add('PADV2', (m) => m.node('PADV2', [m.input('f', [2, 3]), m.constant('i', [2, 2], [1, 0, 2, 1]), m.constant('f', [], [7])], [['f', [3, 6]]], {}));
  for (const mode of ['REFLECT', 'SYMMETRIC']) add(`MIRROR_PAD ${mode}`, (m) => m.node('MIRROR_PAD', [m.input('f', [2, 3]), m.constant('i', [2, 2], [1, 0, 2, 1])], [['f', [3, 6]]], {mode}));
  add('TILE', (m) => m.node('TILE', [m.input('f', [2, 3]), m.ints([2, 1])], [['f', [4, 3]]], {}));
  add('BROADCAST_TO', (m) => m.node('BROADCAST_TO', [m.input('f', [2, 1]), m.ints([3, 2, 4])], [['f', [3, 2, 4]]], {}, 2));
  add('BROADCAST_ARGS', (m) => m.node('BROADCAST_ARGS', [m.input('i', [3], [2, 1, 4]), m.input('i', [2], [3, 1])], [['i', [3]]]));
  add('REVERSE_V2', (m) => m.node('REVERSE_V2', [m.input('f', [2, 3, 2]), m.ints([1])], [['f', [2, 3, 2]]], {}));
  add('SHAPE', (m) => m.node('SHAPE', [m.input('f', [2, 3])], [['i', [2]]], {out_type: 'INT32'}));
  add('RANK', (m) => m.node('RANK', [m.input('f', [2, 3])], [['i', []]], {}));
  add('FILL', (m) => m.node('FILL', [m.ints([2, 3]), m.input('f', [], [3])], [['f', [2, 3]]], {}));
  add('RANGE', (m) => m.node('RANGE', [m.int(2), m.int(11), m.int(3)], [['i', [3]]], {}));
  add('MATRIX_DIAG', (m) => m.node('MATRIX_DIAG', [m.input('f', [2, 3])], [['f', [2, 3, 3]]], {}));
  for (const [h, w] of [[3, 3], [2, 4], [4, 2]]) add(`MATRIX_SET_DIAG ${h} ${w}`, (m) => m.node('MATRIX_SET_DIAG', [m.input('f', [2, h, w]), m.input('f', [2, Math.min(h, w)])], [['f', [2, h, w]]], {}));
  add('DYNAMIC_UPDATE_SLICE', (m) => m.node('DYNAMIC_UPDATE_SLICE', [m.input('f', [4, 5]), m.input('f', [2, 2]), m.input('i', [2], [3, 1])], [['f', [4, 5]]], {}));

  // Indices.
  add('GATHER', (m) => m.node('GATHER', [m.input('f', [4, 3]), m.input('i', [2, 2], [3, 0, 1, 1])], [['f', [2, 2, 3]]], {axis: 0}));
  add('GATHER axis', (m) => m.node('GATHER', [m.input('f', [2, 4, 3]), m.input('i', [2], [3, 0])], [['f', [2, 2, 3]]], {axis: 1}));
  add('GATHER batch', (m) => m.node('GATHER', [m.input('f', [2, 4, 3]), m.input('i', [2, 2], [3, 0, 1, 1])], [['f', [2, 2, 3]]], {axis: 1, batch_dims: 1}, 5));
  add('GATHER_ND', (m) => m.node('GATHER_ND', [m.input('f', [4, 3, 2]), m.input('i', [2, 2], [3, 0, 1, 1])], [['f', [2, 2]]], {}));
  add('EMBEDDING_LOOKUP', (m) => m.node('EMBEDDING_LOOKUP', [m.input('i', [3], [3, 0, 2]), m.constant('f', [4, 5])], [['f', [3, 5]]]));
  for (const axis of [-1, 0]) add(`ONE_HOT ${axis}`, (m) => m.node('ONE_HOT', [m.input('i', [3], [3, 0, 2]), m.int(4), m.constant('f', [], [2]), m.constant('f', [], [-1])], [['f', axis ? [3, 4] : [4, 3]]], {axis}));
  add('SCATTER_ND', (m) => m.node('SCATTER_ND', [m.input('i', [3, 1], [3, 0, 3]), m.input('f', [3, 2]), m.ints([5, 2])], [['f', [5, 2]]], {}));
  add('SPARSE_TO_DENSE', (m) => m.node('SPARSE_TO_DENSE', [m.constant('i', [3], [1, 2, 4]), m.ints([6]), m.input('f', [3]), m.constant('f', [], [-1])], [['f', [6]]], {}));
  add('SPARSE_TO_DENSE rows', (m) => m.node('SPARSE_TO_DENSE', [m.constant('i', [2, 2], [0, 1, 2, 2]), m.ints([3, 4]), m.input('f', [2]), m.constant('f', [], [0])], [['f', [3, 4]]], {}));
  add('SEGMENT_SUM', (m) => m.node('SEGMENT_SUM', [m.input('f', [4, 2]), m.ints([0, 0, 1, 2])], [['f', [3, 2]]]));
  for (const kind of ['SUM', 'PROD', 'MAX', 'MIN'])
    for (const type of ['f', 'i'])
      add(`UNSORTED_SEGMENT_${kind} ${type}`, (m) => m.node(`UNSORTED_SEGMENT_${kind}`, [m.input(type, [5, 2]), m.input('i', [5], [2, 0, -1, 2, 0]), m.int(4)], [[type, [4, 2]]]));
  add('REVERSE_SEQUENCE', (m) => m.node('REVERSE_SEQUENCE', [m.input('f', [2, 4, 3]), m.input('i', [2], [2, 3])], [['f', [2, 4, 3]]], {seq_dim: 1, batch_dim: 0}));
  add('WHERE', (m) => narrowed(m, 'l', m.node('WHERE', [m.input('b', [3, 4])], [['l', [1, 2]]]), [1, 2]));
  add('UNIQUE', (m) => m.node('UNIQUE', [m.input('i', [7], [4, 2, 4, 1, 2, 9, 4])], [['i', [1]], ['i', [7]]], {idx_out_type: 'INT32'}));

  // Boxes.
  const boxes = [0, 0, 1, 1, 0, .1, 1, 1.1, 0, -.1, 1, .9, 0, 10, 1, 11, 0, 10.1, 1, 11.1, 0, 100, 1, 101], scores = [.9, .75, .6, .95, .5, .3];
  for (const least of [0, .4])
    add(`NON_MAX_SUPPRESSION_V4 ${least}`, (m) => m.node('NON_MAX_SUPPRESSION_V4', [m.input('f', [6, 4], boxes), m.input('f', [6], scores), m.int(5), m.constant('f', [], [.5]), m.constant('f', [], [least])], [['i', [5]], ['i', []]], {}));
  add('NON_MAX_SUPPRESSION_V5', (m) => m.node('NON_MAX_SUPPRESSION_V5', [m.input('f', [6, 4], boxes), m.input('f', [6], scores), m.int(5), m.constant('f', [], [.5]), m.constant('f', [], [0]), m.constant('f', [], [0])], [['i', [5]], ['f', [5]], ['i', []]], {}));
  for (const use_regular_nms of [false, true])
    for (const per_box of [1, 2]) {
      const n = 10 * (use_regular_nms ? 1 : per_box);
      add(`TFLite_Detection_PostProcess ${use_regular_nms} ${per_box}`, (m) => m.node('TFLite_Detection_PostProcess', [m.input('f', [1, 12, 4], reals([1, 12, 4], -1, 1)), m.input('f', [1, 12, 4], reals([1, 12, 4], 0, 1)),
        m.constant('f', [12, 4], reals([12, 4], .2, .8))], [['f', [1, n, 4]], ['f', [1, n]], ['f', [1, n]], ['f', [1]]],
        {max_detections: 10, max_classes_per_detection: per_box, detections_per_class: 5, use_regular_nms, nms_score_threshold: {real: .3}, nms_iou_threshold: {real: .5}, num_classes: 3,
          y_scale: {real: 10}, x_scale: {real: 10}, h_scale: {real: 5}, w_scale: {real: 5}}));
    }

  // A score that is the threshold counts.
  const distinct = Array.from({length: 36}, (_, i) => ((i * 23 + 5) % 36 + 1) / 64);
  for (const use_regular_nms of [false, true])
    add(`TFLite_Detection_PostProcess threshold ${use_regular_nms}`, (m) => m.node('TFLite_Detection_PostProcess', [m.input('f', [1, 12, 4], reals([1, 12, 4], -1, 1)), m.input('f', [1, 12, 3], distinct),
      m.constant('f', [12, 4], reals([12, 4], .2, .8))], [['f', [1, 10, 4]], ['f', [1, 10]], ['f', [1, 10]], ['f', [1]]],
      {max_detections: 10, max_classes_per_detection: 1, detections_per_class: 12, use_regular_nms, nms_score_threshold: {real: 34 / 64}, nms_iou_threshold: {real: .99}, num_classes: 3,
        y_scale: {real: 10}, x_scale: {real: 10}, h_scale: {real: 5}, w_scale: {real: 5}}));

  // Recurrent layers.
  const T = 4, B = 2, I = 3, U = 5;
  for (const f of ['TANH', 'RELU']) {
    add(`RNN ${f}`, (m) => m.node('RNN', [m.input('f', [B, I]), m.constant('f', [U, I]), m.constant('f', [U, U]), m.constant('f', [U]), m.state([B, U])], [['f', [B, U]]], {fused_activation_function: f}));
    for (const time_major of [false, true])
      add(`UNIDIRECTIONAL_SEQUENCE_RNN ${f} ${time_major}`, (m) => m.node('UNIDIRECTIONAL_SEQUENCE_RNN', [m.input('f', time_major ? [T, B, I] : [B, T, I]), m.constant('f', [U, I]), m.constant('f', [U, U], reals([U, U], -.5, .5)), m.constant('f', [U]), m.state([B, U])],
        [['f', time_major ? [T, B, U] : [B, T, U]]], {time_major, fused_activation_function: f}));
  }
  for (const merge_outputs of [false, true])
    add(`BIDIRECTIONAL_SEQUENCE_RNN ${merge_outputs}`, (m) => m.node('BIDIRECTIONAL_SEQUENCE_RNN', [m.input('f', [B, T, I]), ...[0, 1].flatMap(() => [m.constant('f', [U, I]), m.constant('f', [U, U]), m.constant('f', [U]), m.state([B, U])]), -1, -1, -1],
      merge_outputs ? [['f', [B, T, 2 * U]]] : [['f', [B, T, U]], ['f', [B, T, U]]], {time_major: false, merge_outputs, fused_activation_function: 'TANH'}));
  const lstm = (m, coupled, peephole) => {
    const four = (shape) => [0, 1, 2, 3].map((g) => coupled && g === 0 ? -1 : m.constant('f', shape, reals(shape, -.6, .6)));
    return [...four([U, I]), ...four([U, U]), ...[0, 1, 2].map((g) => !peephole || coupled && g === 0 ? -1 : m.constant('f', [U])), ...four([U]), -1, -1];
  };
  for (const [coupled, peephole] of [[false, false], [true, false], [false, true], [true, true]]) {
    for (const time_major of [false, true])
      add(`UNIDIRECTIONAL_SEQUENCE_LSTM ${coupled} ${peephole} ${time_major}`, (m) => m.node('UNIDIRECTIONAL_SEQUENCE_LSTM', [m.input('f', time_major ? [T, B, I] : [B, T, I]), ...lstm(m, coupled, peephole), m.state([B, U]), m.state([B, U])],
        [['f', time_major ? [T, B, U] : [B, T, U]]], {time_major, fused_activation_function: 'TANH'}));
    add(`LSTM ${coupled} ${peephole}`, (m) => m.node('LSTM', [m.input('f', [B, I]), ...lstm(m, coupled, peephole), m.state([B, U]), m.state([B, U])], [['f', [B, U]]], {fused_activation_function: 'TANH', kernel_type: 'FULL' && 0}));
  }
  for (const merge_outputs of [false, true])
    add(`BIDIRECTIONAL_SEQUENCE_LSTM ${merge_outputs}`, (m) => m.node('BIDIRECTIONAL_SEQUENCE_LSTM', [m.input('f', [B, T, I]), ...lstm(m), ...lstm(m), ...[0, 1, 2, 3].map(() => m.state([B, U])), ...Array(9).fill(-1)],
      merge_outputs ? [['f', [B, T, 2 * U]]] : [['f', [B, T, U]], ['f', [B, T, U]]], {time_major: false, merge_outputs, fused_activation_function: 'TANH'}));
  for (const rank of [1, 2])
    add(`SVDF ${rank}`, (m) => m.node('SVDF', [m.input('f', [B, I]), m.constant('f', [4 * rank, I]), m.constant('f', [4 * rank, 6]), m.constant('f', [4]), m.state([B, 6 * 4 * rank])], [['f', [B, 4]]], {rank, fused_activation_function: 'NONE'}));

  // Subgraphs.
  for (const yes of [true, false])
    add(`IF ${yes}`, (m) => {
      const c = m.input('b', [1], [yes]), x = m.input('f', [3]), bodies = ['ADD', 'MUL'].map((op) => {
        const k = m.subgraph();
        m.output(m.node(op, [m.input('f', [3]), m.constant('f', [3])], [['f', [3]]], {}));
        return k;
      });
      m.within(0);
      return m.node('IF', [c, x], [['f', [3]]], {then_subgraph_index: bodies[0], else_subgraph_index: bodies[1]});
    });
  add('CALL_ONCE', (m) => {
    const once = m.subgraph(), options = {container: '', shared_name: 'v'};
    m.node('ASSIGN_VARIABLE', [m.node('VAR_HANDLE', [], [['i', [], undefined, {type: 'RESOURCE'}]], options), m.constant('f', [3])], [], {});
    m.within(0);
    const x = m.input('f', [3]);
    m.node('CALL_ONCE', [], [], {init_subgraph_index: once});
    return m.node('ADD', [x, m.node('READ_VARIABLE', [m.node('VAR_HANDLE', [], [['i', [], undefined, {type: 'RESOURCE'}]], options)], [['f', [3]]], {})], [['f', [3]]], {});
  });
  for (const start of [0, 9])
    add(`WHILE ${start}`, (m) => {
      const i = m.input('i', [1], [start]), x = m.input('f', [2]), cond = m.subgraph();
      const ci = m.input('i', [1]); m.input('f', [2]);
      m.output(m.node('LESS', [ci, m.constant('i', [1], [5])], [['b', [1]]]));
      const body = m.subgraph(), bi = m.input('i', [1]), bx = m.input('f', [2]);
      m.output(m.node('ADD', [bi, m.constant('i', [1], [2])], [['i', [1]]], {}), m.node('MUL', [bx, m.constant('f', [1], [1.5])], [['f', [2]]], {}));
      m.within(0);
      return m.node('WHILE', [i, x], [['i', [1]], ['f', [2]]], {cond_subgraph_index: cond, body_subgraph_index: body});
    });
}
