import type * as ort from 'onnxruntime-node';

/** The entry of kiln among a session's `executionProviders`, with options of docs/onnxruntime.md. */
export interface KilnExecutionProviderOption extends ort.InferenceSession.ExecutionProviderOption {
  readonly name: 'kiln' | 'migraphx';
  readonly [option: string]: string | number | boolean;
}

/**
 * Makes 'kiln' and 'migraphx' execution providers of a copy of onnxruntime-node.
 *
 * @param module - what `require('onnxruntime-node')` gives.
 * @param priority - where a session names no execution provider: above 100 kiln comes before ONNX Runtime's own, 50 is
 * the default.
 */
export function register(module: typeof ort, priority?: number): void;
