// Graphs with functions, control flow of both kinds, and lists, for tfjs_cases.mjs.
import {of, reals} from './tfjs_graph.mjs';

const T = (type) => ({type: {f: 'DT_FLOAT', i: 'DT_INT32', b: 'DT_BOOL'}[type]});

export function addControlCases(add) {
  for (const p of [true, false])
    for (const op of ['If', 'StatelessIf'])
      add(`${op} ${p}`, (g) => {
        const yes = g.function('yes', 'ff', (f, x, y) => [of(f.node('Mul', [x, y], {T: T('f')}))]);
        const no = g.function('no', 'ff', (f, x, y) => [of(f.node('Sub', [of(f.node('Exp', [x], {T: T('f')})), y], {T: T('f')}))]);
        return [g.node(op, [g.input('b', [], [p]), g.input('f', [2, 3]), g.constant('f', [3])],
          {then_branch: {func: yes}, else_branch: {func: no}})];
      });
  for (const op of ['While', 'StatelessWhile'])
    for (const n of [0, 1, 5])
      add(`${op} ${n}`, (g) => {
        const cond = g.function('cond', 'iiff', (f, i, n) => [of(f.node('Less', [i, n], {T: T('i')}))]);
        const body = g.function('body', 'iiff', (f, i, n, x, w) => [
          of(f.node('AddV2', [i, of(f.int(1))], {T: T('i')})), n, of(f.node('Tanh', [of(f.node('MatMul', [x, w], {T: T('f')}))], {T: T('f')})), w]);
        const loop = g.node(op, [g.int(0), g.input('i', [], [n]), g.input('f', [2, 3]), g.constant('f', [3, 3])],
          {cond: {func: cond}, body: {func: body}});
        return [loop, `${loop}:2`];
      });
  // until the sum is large, at most 20 times
  for (const most of [3, 20])
    add(`While sum ${most}`, (g) => {
      const cond = g.function('cond', 'if', (f, i, x) => [of(f.node('LogicalAnd', [
        of(f.node('Less', [i, of(f.int(most))], {T: T('i')})),
        of(f.node('Less', [of(f.node('Sum', [x, of(f.ints([0]))], {keep_dims: {b: false}, T: T('f')})), of(f.constant('f', [], [100]))], {T: T('f')}))]))]);
      const body = g.function('body', 'if', (f, i, x) => [of(f.node('AddV2', [i, of(f.int(1))], {T: T('i')})), of(f.node('AddV2', [x, x], {T: T('f')}))]);
      const loop = g.node('While', [g.int(0), g.input('f', [4], [1, 2, 3, 4])], {cond: {func: cond}, body: {func: body}});
      return [loop, `${loop}:1`];
    });
  // a condition within a loop
  add('While If', (g) => {
    const yes = g.function('yes', 'f', (f, x) => [of(f.node('Mul', [x, of(f.constant('f', [], [1.5]))], {T: T('f')}))]);
    const no = g.function('no', 'f', (f, x) => [of(f.node('Neg', [x], {T: T('f')}))]);
    const cond = g.function('cond', 'if', (f, i) => [of(f.node('Less', [i, of(f.int(5))], {T: T('i')}))]);
    const body = g.function('body', 'if', (f, i, x) => [
      of(f.node('AddV2', [i, of(f.int(1))], {T: T('i')})),
      of(f.node('If', [of(f.node('Less', [i, of(f.int(3))], {T: T('i')})), x], {then_branch: {func: yes}, else_branch: {func: no}}))]);
    return [`${g.node('While', [g.int(0), g.input('f', [3])], {cond: {func: cond}, body: {func: body}})}:1`];
  });
  // a recurrent cell over a list of steps
  for (const extents of [[2, 4], [-1, 4]])
    add(`RNN ${extents}`, (g) => {
      const list = {element_dtype: T('f'), shape_type: T('i')};
      const cond = g.function('cond', 'iiffff', (f, t, n) => [of(f.node('Less', [t, n], {T: T('i')}))]);
      const body = g.function('body', 'iiffff', (f, t, n, h, out, x, w) => {
        const step = f.node('TensorListGetItem', [x, t, of(f.ints([2, 3]))], {element_dtype: T('f')});
        const both = f.node('ConcatV2', [of(step, 0, 'item'), h, of(f.int(1))], {N: {i: 2}, T: T('f'), Tidx: T('i')});
        const next = f.node('Tanh', [of(f.node('MatMul', [of(both), w], {T: T('f')}))], {T: T('f')});
        return [of(f.node('AddV2', [t, of(f.int(1))], {T: T('i')})), n, of(next),
                of(f.node('TensorListSetItem', [out, t, of(next)], {element_dtype: T('f')}), 0, 'output_handle'), x, w];
      });
      const steps = g.node('TensorListFromTensor', [g.input('f', [5, 2, 3]), g.ints([2, 3])], list);
      const out = g.node('TensorListReserve', [g.ints(extents), g.int(5)], list);
      const loop = g.node('While', [g.int(0), g.int(5), g.constant('f', [2, 4], reals([8])), out, steps, g.constant('f', [7, 4])],
        {cond: {func: cond}, body: {func: body}});
      return [g.node('TensorListStack', [`${loop}:3`, g.ints([2, 4])], {element_dtype: T('f'), num_elements: {i: 5}}), `${loop}:2`];
    });
  for (const p of [true, false])
    add(`Switch ${p}`, (g) => {
      const flag = g.input('b', [], [p]), x = g.input('f', [2, 3]);
      const s = g.node('Switch', [x, flag], {T: T('f')});
      return [g.node('Merge', [g.node('Neg', [s], {T: T('f')}), g.node('Exp', [`${s}:1`], {T: T('f')})], {T: T('f'), N: {i: 2}})];
    });
  for (const n of [0, 4])
    add(`Enter ${n}`, (g) => {
      const enter = (v, constant, type) => g.node('Enter', [v], {frame_name: {s: 'frame'}, is_constant: {b: constant}, T: T(type)});
      const i = enter(g.int(0), false, 'i'), x = enter(g.input('f', [2, 2]), false, 'f');
      const limit = enter(g.int(n), true, 'i'), w = enter(g.constant('f', [2, 2]), true, 'f'), one = enter(g.int(1), true, 'i');
      // the inputs of Merge name nodes that come later
      const mi = g.node('Merge', [i, 'ni'], {T: T('i'), N: {i: 2}}), mx = g.node('Merge', [x, 'nx'], {T: T('f'), N: {i: 2}});
      const go = g.node('LoopCond', [g.node('Less', [mi, limit], {T: T('i')})]);
      const si = g.node('Switch', [mi, go], {T: T('i')}), sx = g.node('Switch', [mx, go], {T: T('f')});
      const next = g.node('AddV2', [`${si}:1`, one], {T: T('i')}), product = g.node('MatMul', [`${sx}:1`, w], {T: T('f')});
      g.nodes.push({name: 'ni', op: 'NextIteration', inputs: [next], attrs: {T: T('i')}}, {name: 'nx', op: 'NextIteration', inputs: [product], attrs: {T: T('f')}});
      return [g.node('Exit', [sx], {T: T('f')}), g.node('Exit', [si], {T: T('i')})];
    });
  const items = {element_dtype: T('f'), shape_type: T('i')};
  add('TensorList items', (g) => {
    const list = g.node('TensorListFromTensor', [g.input('f', [4, 3]), g.ints([3])], items);
    const set = g.node('TensorListSetItem', [list, g.int(2), g.input('f', [3])], items);
    return [g.node('TensorListStack', [set, g.ints([3])], {...items, num_elements: {i: 4}}), g.node('TensorListGetItem', [set, g.int(1), g.ints([3])], items),
            g.node('TensorListGather', [set, g.ints([2, 0]), g.ints([3])], items), g.node('TensorListLength', [set], {})];
  });
  for (const n of [1, 7]) add(`LinSpace ${n}`, (g) => [g.node('LinSpace', [g.constant('f', [], [-1]), g.constant('f', [], [3]), g.int(n)], {T: T('f')})]);
  // tfjs takes the number below for both
  for (const [lower, upper] of [[0, 0], [1, 1], [2, 2]])
    add(`MatrixBandPart ${lower} ${upper}`, (g) => [g.node('MatrixBandPart', [g.input('f', [2, 4, 5]), g.int(lower), g.int(upper)], {T: T('f')})]);
  add('SparseToDense', (g) => [g.node('SparseToDense', [g.constant('i', [3, 2], [0, 1, 2, 3, 1, 0]), g.ints([3, 4]), g.input('f', [3]), g.constant('f', [], [.5])], {T: T('f')})]);
}
