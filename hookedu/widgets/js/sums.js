// Sums over the numbers that are shown, as hookedu's Stats has them.

/**
 * @param {ArrayLike<number>} values
 * @returns {{mean: number, std: number, min: number | null, max: number | null, zeros: number, nan: number, inf: number}}
 */
export function summary(values) {
  let [nan, inf, zeros, count, sum] = [0, 0, 0, 0, 0];
  let [min, max] = [Infinity, -Infinity];
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (Number.isNaN(value)) nan++;
    else if (!Number.isFinite(value)) inf++;
    else {
      count++;
      sum += value;
      if (value === 0) zeros++;
      if (value < min) min = value;
      if (value > max) max = value;
    }
  }
  const mean = sum / count;
  let squares = 0;
  for (let i = 0; i < values.length; i++) {
    const off = values[i] - mean;
    if (Number.isFinite(off)) squares += off * off;
  }
  const std = Math.sqrt(squares / (count - 1));
  const some = count > 0;
  return {
    mean,
    std,
    min: some ? min : null,
    max: some ? max : null,
    zeros: zeros / values.length,
    nan,
    inf,
  };
}

/**
 * The scale of one map by itself; Python has the same rule in `range_of`.
 *
 * @param {ArrayLike<number>} values
 * @param {import("./drawing.js").Scale["map"]} map
 * @returns {import("./drawing.js").Scale}
 */
export function colourScale(values, map) {
  const found = summary(values);
  const signed = map === "RdBu_r";
  let low = found.min ?? (signed ? -1 : 0);
  let high = found.max ?? 1;
  if (signed) {
    high = Math.max(-low, high);
    low = -high;
  }
  if (low === 0 && high === 0 && !signed) high = 1; // a map of zeros is as dark as zeros elsewhere
  if (low === high) {
    const width = Math.abs(low) / 2 || 0.5;
    low -= width;
    high += width;
  }
  return { map, low, high };
}

/**
 * The indices of the highest values, or of those farthest from zero, the first one first.
 *
 * @param {ArrayLike<number>} values
 * @param {number} n
 * @param {boolean} signed
 */
export function topOf(values, n, signed) {
  /** @type {number[]} */
  const top = [];
  const rank = (/** @type {number} */ i) => (signed ? Math.abs(values[i]) : values[i]);
  for (let i = 0; i < values.length; i++) {
    if (!Number.isFinite(values[i]) || (signed && values[i] === 0)) continue;
    let at = top.length;
    while (at > 0 && rank(top[at - 1]) < rank(i)) at--;
    if (at < n) top.splice(at, 0, i);
    if (top.length > n) top.pop();
  }
  return top;
}
