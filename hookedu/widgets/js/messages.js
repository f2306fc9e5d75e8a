// The tensors that Python sends beside a message (see post in live.py).

/**
 * @param {{name: string, shape: number[], kind: "float32" | "int32" | "uint8"}[]} tensors
 * @param {DataView[]} buffers
 */
export function decode(tensors, buffers) {
  const kinds = { float32: Float32Array, int32: Int32Array, uint8: Uint8Array };
  /** @type {Record<string, import("./shared.js").Tensor>} */
  const found = {};
  tensors.forEach(({ name, shape, kind }, number) => {
    const { buffer, byteOffset, byteLength } = buffers[number];
    // A copy, because a typed array must begin at a multiple of its size.
    const bytes = new Uint8Array(buffer, byteOffset, byteLength).slice().buffer;
    found[name] = { shape, values: new kinds[kind](bytes) };
  });
  return found;
}
