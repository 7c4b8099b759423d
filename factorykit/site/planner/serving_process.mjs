// The Gaussian process of the residuals of factorykit/model/serving/residual.py: means with the weights of Python, intervals
// in the basis in which the joining rows are independent, which needs no inverse. Matrices are arrays of their rows.

// The scalar product of n numbers of a and of b, from a place on.
function product(a, from, b, start, n) {
  let sum = 0;
  for (let k = 0; k < n; k++) sum += a[from + k] * b[start + k];
  return sum;
}

const dot = (a, b) => product(a, 0, b, 0, a.length);

// Subtracts from n numbers of a, from a place on, the first rows of b of m numbers, each times its factor: every step-th of the
// factors, from a place on. Four rows at a time take a third of the time, since a is read and written for each.
function subtract(a, at, n, b, m, rows, factors, from = 0, step = 1) {
  let i = 0;
  for (; i + 3 < rows; i += 4) {
    const f = from + i * step;
    const w = factors[f];
    const x = factors[f + step];
    const y = factors[f + 2 * step];
    const z = factors[f + 3 * step];
    const p = i * m;
    for (let k = 0, q = p + m, r = q + m, s = r + m; k < n; k++) a[at + k] -= w * b[p + k] + x * b[q + k] + (y * b[r + k] + z * b[s + k]);
  }
  for (; i < rows; i++) {
    const factor = factors[from + i * step];
    for (let k = 0; k < n; k++) a[at + k] -= factor * b[i * m + k];
  }
  return a;
}

// The lower triangular factor of a symmetric positive definite matrix of n rows, in its place.
function factored(a, n) {
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < i; j++) a[i * n + j] = (a[i * n + j] - product(a, i * n, a, j * n, j)) / a[j * n + j];
    a[i * n + i] = Math.sqrt(a[i * n + i] - product(a, i * n, a, i * n, i));
  }
  return a;
}

// Solves L X = B of m rows of n numbers, and transposed(L) x = b, in the place of the right side.
function forward(l, m, b, n = 1) {
  for (let i = 0; i < m; i++) {
    subtract(b, i * n, n, b, n, i, l, i * m);
    for (let k = 0; k < n; k++) b[i * n + k] /= l[i * m + i];
  }
  return b;
}

function backward(l, m, b) {
  for (let i = m - 1; i >= 0; i--) {
    b[i] /= l[i * m + i];
    for (let k = 0; k < i; k++) b[k] -= l[i * m + k] * b[i];
  }
  return b;
}

function transposed(a, rows, columns) {
  const result = new Float64Array(a.length);
  for (let i = 0; i < rows; i++) for (let j = 0; j < columns; j++) result[j * rows + i] = a[i * columns + j];
  return result;
}

const range = (n) => Array.from({ length: n }, (_, i) => i);

// Of a family without measured rows.
const NONE = { rows: [], columns: new Float64Array(), squares: new Float64Array(), across: new Float64Array(), own: new Float64Array(), lines: new Float64Array() };

export class Process {
  // words: one object a row; features: one array a row; joining and weights: what the means of Python multiply.
  constructor({ words: names, family, calibrated, left_out: leftOut, least_half_width: least, jitter, joining: most }, values, words, features, { joining: common, rows: weights }) {
    const [linear, fall] = [values.linear ** 2, -0.5 / values.far_length ** 2];
    Object.assign(this, { names, family, calibrated, leftOut, least, jitter, values, words, features, linear, fall, common, weights, shared: new Map() });
    this.lengths = features[0].map((_, i) => values[`length_${i}`]);
    const patterns = range(2 ** names.length);
    const carried = (scale, pattern) => names.reduce((whole, name, i) => whole * (pattern & (1 << i) ? 1 : values[`${scale}_carry_${name}`]), values[scale] ** 2);
    this.offsets = patterns.map((pattern) => names.reduce((sum, name, i) => sum + (pattern & (1 << i) ? values[`offset_${name}`] ** 2 : 0), 0));
    this.near = patterns.map((pattern) => carried("near", pattern));
    this.far = patterns.map((pattern) => carried("far", pattern));
    const step = Math.max(Math.floor(words.length / most), 1);
    this.joining = this.known(range(Math.ceil(words.length / step)).map((i) => i * step));
    const m = this.joining.rows.length;
    this.joint = this.among(this.joining);
    for (let i = 0; i < m; i++) this.joint[i * m + i] += jitter;
    factored(this.joint, m);
    this.condition();
  }

  // Measured rows, with what their covariances need: features in correlation lengths, by feature, and their squares.
  known(rows) {
    const { lengths, features } = this;
    const columns = Float64Array.from({ length: lengths.length * rows.length }, (_, i) => {
      const k = Math.floor(i / rows.length);
      return features[rows[i % rows.length]][k] / lengths[k];
    });
    return { rows, columns, squares: Float64Array.from(rows, (row) => this.square(features[row])) };
  }

  square(x) {
    return x.reduce((sum, value, k) => sum + (value / this.lengths[k]) ** 2, 0);
  }

  // Which words of a row each of the measured rows shares, as bits.
  patterns(row) {
    const { names, words, shared } = this;
    const key = names.map((name) => row[name]).join(" ");
    if (!shared.has(key)) shared.set(key, Uint8Array.from(words, (other) => names.reduce((bits, name, i) => bits | (other[name] === row[name] ? 1 << i : 0), 0)));
    return shared.get(key);
  }

  // The squared distances of a row to the first of some known rows, in lengths, put at a place of an array.
  apart(x, { rows, columns, squares }, target, at, count) {
    const own = this.square(x);
    for (let i = 0; i < count; i++) target[at + i] = own + squares[i];
    subtract(target, at, count, columns, rows.length, x.length, x.map((value, k) => (2 * value) / this.lengths[k]));
  }

  // The covariances of a row with the first of some known rows, put at a place of an array.
  with(x, patterns, known, target = new Float64Array(known.rows.length), at = 0, count = known.rows.length) {
    const { offsets, near, far, linear, fall, lengths } = this;
    this.apart(x, known, target, at, count);
    for (let i = 0; i < count; i++) {
      const pattern = patterns[known.rows[i]];
      const apart = target[at + i];
      target[at + i] = 4 * linear + offsets[pattern] + near[pattern] * Math.exp(-0.5 * apart) + far[pattern] * Math.exp(fall * apart);
    }
    return subtract(target, at, count, known.columns, known.rows.length, x.length, x.map((value, k) => -linear * value * lengths[k]));
  }

  // The covariances of a measured row with the first of some known rows.
  across(row, ...to) {
    return this.with(this.features[row], this.patterns(this.words[row]), ...to);
  }

  // The covariances of known rows among each other, below the diagonal.
  among(known) {
    const n = known.rows.length;
    const covariances = new Float64Array(n * n);
    for (const [i, row] of known.rows.entries()) this.across(row, known, covariances, i * n, i + 1);
    return covariances;
  }

  key(words) {
    return this.family.map((name) => words[name]).join(" ");
  }

  // A function that returns the mean of the residual of features, of rows with the same words.
  mean(words) {
    const { joining, joint, linear, fall, offsets, near, far, lengths } = this;
    const m = joining.rows.length;
    const { rows, across } = this.blocks.get(this.key(words)) ?? NONE;
    const own = Float64Array.from(rows, (row) => this.weights[row]);
    const shift = backward(joint, m, Float64Array.from(joining.rows, (_, p) => -product(across, p * rows.length, own, 0, rows.length)));
    const known = this.known([...joining.rows, ...rows]);
    const n = known.rows.length;
    const weights = [...shift.map((value, i) => value + this.common[i]), ...own];
    const shared = this.patterns(words);
    const [nearby, distant] = [near, far].map((part) => Float64Array.from(known.rows, (row, i) => weights[i] * part[shared[row]]));
    const constant = known.rows.reduce((sum, row, i) => sum + weights[i] * (4 * linear + offsets[shared[row]]), 0);
    const slope = lengths.map((length, k) => linear * length * product(known.columns, k * n, weights, 0, n));
    const apart = new Float64Array(n);
    return (x) => {
      this.apart(x, known, apart, 0, n);
      let sum = constant + dot(slope, x);
      for (let i = 0; i < n; i++) sum += nearby[i] * Math.exp(-0.5 * apart[i]) + distant[i] * Math.exp(fall * apart[i]);
      return sum;
    };
  }

  // Prepares each family: what its rows share with the joining rows, the rest, and, for intervals, both together.
  condition() {
    const { joining, joint, jitter, words } = this;
    const m = joining.rows.length;
    const total = new Float64Array(m * m);
    this.blocks = new Map();
    for (const [i, row] of words.entries()) {
      const key = this.key(row);
      this.blocks.set(key, this.blocks.get(key) ?? { rows: [] });
      this.blocks.get(key).rows.push(i);
    }
    for (const block of this.blocks.values()) {
      const n = block.rows.length;
      Object.assign(block, this.known(block.rows));
      const own = this.among(block);
      const across = new Float64Array(m * n);
      for (const [p, row] of joining.rows.entries()) this.across(row, block, across, p * n);
      forward(joint, m, across, n);
      for (const [i, row] of block.rows.entries()) {
        subtract(own, i * n, i + 1, across, n, m, across, i, n);
        own[i * n + i] += this.values[`noise_${words[row].mode}`] ** 2 + jitter;
      }
      const lines = forward(factored(own, n), n, transposed(across, m, n), m);
      for (let p = 0; p < m; p++) subtract(total, p * m, p + 1, lines, m, n, lines, p, m);
      Object.assign(block, { across, own, lines });
    }
    for (let p = 0; p < m; p++) {
      for (let k = 0; k <= p; k++) total[p * m + k] *= -1;
      total[p * m + p] += 1;
    }
    this.total = factored(total, m);
  }

  // Half the width of the 90 % interval of the residual.
  half(words, x) {
    const { joining, values, joint, total } = this;
    const m = joining.rows.length;
    const block = this.blocks.get(this.key(words)) ?? NONE;
    const n = block.rows.length;
    const shared = this.patterns(words);
    const cross = forward(joint, m, this.with(x, shared, joining));
    const rest = forward(block.own, n, subtract(this.with(x, shared, block), 0, n, block.across, n, m, cross));
    const unknown = this.linear * (4 + dot(x, x)) + this.offsets.at(-1) + this.near.at(-1) + this.far.at(-1) - dot(cross, cross) - dot(rest, rest);
    forward(total, m, subtract(cross, 0, m, block.lines, m, n, rest));
    return this.widened(words, Math.sqrt(Math.max(unknown + dot(cross, cross), 0) + values[`noise_${words.mode}`] ** 2));
  }

  // The calibrated width, in proportion of logarithms between the known deviations of the mode.
  widened(words, deviation) {
    const { values, leftOut, calibrated, least } = this;
    const known = leftOut.map((name) => [values[`deviation_${words.mode}_${name}`], values[`half_width_${words.mode}_${name}`]].map(Math.log)).sort(([a, b], [c, d]) => a - c || b - d);
    const own = calibrated.reduce((whole, name) => whole * (values[`width_${name}_${words[name]}`] ?? 1), 1);
    const at = Math.min(Math.max(Math.log(deviation), known[0][0]), known.at(-1)[0]);
    const above = Math.max(known.findIndex(([end]) => end >= at), 1);
    const [[a, b], [c, d]] = [known[above - 1], known[above]];
    return Math.max(deviation * own * Math.exp(c === a ? d : b + ((d - b) * (at - a)) / (c - a)), least);
  }
}
