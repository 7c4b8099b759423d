// The Gaussian process of the residuals of factorykit/model/serving/residual.py: means with the weights of Python, intervals
// in the basis in which the joining rows are independent, which needs no inverse.

// The scalar product of n numbers of a and of b, from a place on; four sums, since each waits for its last addition.
function product(a, from, b, start, n) {
  let [w, x, y, z, k] = [0, 0, 0, 0, 0];
  for (; k + 3 < n; k += 4) {
    w += a[from + k] * b[start + k];
    x += a[from + k + 1] * b[start + k + 1];
    y += a[from + k + 2] * b[start + k + 2];
    z += a[from + k + 3] * b[start + k + 3];
  }
  for (; k < n; k++) w += a[from + k] * b[start + k];
  return w + x + (y + z);
}

const dot = (a, b) => product(a, 0, b, 0, a.length);

// The lower triangular factor of a symmetric positive definite matrix of n rows, in its place.
function factored(a, n) {
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < i; j++) a[i * n + j] = (a[i * n + j] - product(a, i * n, a, j * n, j)) / a[j * n + j];
    a[i * n + i] = Math.sqrt(a[i * n + i] - product(a, i * n, a, i * n, i));
  }
  return a;
}

// Solves L x = b and transposed(L) x = b, in the place of b.
function forward(l, n, b) {
  for (let i = 0; i < n; i++) b[i] = (b[i] - product(l, i * n, b, 0, i)) / l[i * n + i];
  return b;
}

function backward(l, n, b) {
  for (let i = n - 1; i >= 0; i--) {
    b[i] /= l[i * n + i];
    add(b, 0, l, -b[i], i, i * n);
  }
  return b;
}

// Adds a multiple of n numbers of b to a, from a place on.
function add(a, at, b, factor, n, start = 0) {
  for (let k = 0; k < n; k++) a[at + k] += b[start + k] * factor;
}

const range = (n) => Array.from({ length: n }, (_, i) => i);

// The numbers of the rows of each family.
function families(words, names) {
  const found = new Map();
  for (const [i, row] of words.entries()) {
    const key = names.map((name) => row[name]).join(" ");
    found.set(key, [...(found.get(key) ?? []), i]);
  }
  return found;
}

export class Process {
  // words: one object a row; features: one array a row; joining and weights: what the means of Python multiply.
  constructor({ words: names, family, calibrated, left_out: leftOut, jitter, joining: most }, values, words, features, { joining: common, rows: weights }) {
    Object.assign(this, { names, family, calibrated, leftOut, jitter, values, words, features, common, weights, shared: new Map(), blocks: null });
    this.lengths = Float64Array.from(features[0], (_, i) => 1 / values[`length_${i}`]);
    const patterns = range(2 ** names.length);
    const carried = (scale, pattern) => names.reduce((whole, name, i) => whole * (pattern & (1 << i) ? 1 : values[`${scale}_carry_${name}`]), values[scale] ** 2);
    this.offsets = patterns.map((pattern) => names.reduce((sum, name, i) => sum + (pattern & (1 << i) ? values[`offset_${name}`] ** 2 : 0), 0));
    this.near = patterns.map((pattern) => carried("near", pattern));
    this.far = patterns.map((pattern) => carried("far", pattern));
    const step = Math.max(Math.floor(words.length / most), 1);
    this.joining = range(Math.ceil(words.length / step)).map((i) => i * step);
    const m = this.joining.length;
    this.joint = new Float64Array(m * m);
    for (const [i, row] of this.joining.entries()) this.joint.set(this.across(row), i * m);
    for (let i = 0; i < m; i++) this.joint[i * m + i] += jitter;
    factored(this.joint, m);
    this.families = families(words, family);
  }

  // The covariances of a measured row with the joining rows.
  across(row) {
    return this.with(this.features[row], this.patterns(this.words[row]), this.joining);
  }

  // Which words of a row each of the measured rows shares, as bits.
  patterns(row) {
    const { names, words, shared } = this;
    const key = names.map((name) => row[name]).join(" ");
    if (!shared.has(key)) shared.set(key, Uint8Array.from(words, (each) => names.reduce((bits, name, i) => bits | (each[name] === row[name] ? 1 << i : 0), 0)));
    return shared.get(key);
  }

  // The covariances of a row with known rows.
  with(x, patterns, known) {
    const { lengths, values, features, offsets, near, far } = this;
    const [linear, ratio] = [values.linear ** 2, -0.5 / values.far_length ** 2];
    const found = new Float64Array(known.length);
    for (let i = 0; i < known.length; i++) {
      const other = features[known[i]];
      let [both, square] = [4, 0];
      for (let k = 0; k < lengths.length; k++) {
        const gap = (x[k] - other[k]) * lengths[k];
        both += x[k] * other[k];
        square += gap * gap;
      }
      const pattern = patterns[known[i]];
      found[i] = linear * both + offsets[pattern] + near[pattern] * Math.exp(-0.5 * square) + far[pattern] * Math.exp(ratio * square);
    }
    return found;
  }

  key(words) {
    return this.family.map((name) => words[name]).join(" ");
  }

  // A function that returns the mean of the residual of features, of rows with the same words.
  mean(words) {
    const { joining, joint } = this;
    const m = joining.length;
    const rows = this.families.get(this.key(words)) ?? [];
    const weights = Float64Array.from(rows, (row) => this.weights[row]);
    const shift = new Float64Array(m);
    for (const [i, row] of rows.entries()) add(shift, 0, this.across(row), -weights[i], m);
    const common = backward(joint, m, forward(joint, m, shift)).map((value, i) => value + this.common[i]);
    const shared = this.patterns(words);
    return (x) => dot(common, this.with(x, shared, joining)) + dot(weights, this.with(x, shared, rows));
  }

  // Prepares the intervals: of each family what its rows share with the joining rows, the rest, and both together.
  conditioning() {
    const { joining, joint, jitter, features, words } = this;
    const m = joining.length;
    const total = new Float64Array(m * m);
    const blocks = new Map();
    for (let i = 0; i < m; i++) total[i * m + i] = 1;
    for (const [key, rows] of this.families) {
      const n = rows.length;
      const across = rows.map((row) => forward(joint, m, this.across(row)));
      const own = new Float64Array(n * n);
      for (const [i, row] of rows.entries()) {
        const found = this.with(features[row], this.patterns(words[row]), rows);
        for (let j = 0; j <= i; j++) own[i * n + j] = found[j] - dot(across[i], across[j]);
        own[i * n + i] += this.values[`noise_${words[row].mode}`] ** 2 + jitter;
      }
      factored(own, n);
      const lines = across.map((line) => line.slice());
      for (const [i, line] of lines.entries()) {
        for (let j = 0; j < i; j++) add(line, 0, lines[j], -own[i * n + j], m);
        for (let p = 0; p < m; p++) line[p] /= own[i * n + i];
        for (let p = 0; p < m; p++) add(total, p * m, line, line[p], p + 1);
      }
      blocks.set(key, { rows, across, own, lines });
    }
    Object.assign(this, { total: factored(total, m), blocks });
  }

  // Half the width of the 90 % interval of the residual.
  half(words, x) {
    const { joining, values, joint, total } = this;
    const m = joining.length;
    const { rows, across, lines, own } = this.blocks.get(this.key(words)) ?? { rows: [], across: [], lines: [], own: new Float64Array() };
    const shared = this.patterns(words);
    const cross = forward(joint, m, this.with(x, shared, joining));
    const rest = forward(own, rows.length, this.with(x, shared, rows).map((value, i) => value - dot(across[i], cross)));
    const unknown = values.linear ** 2 * (4 + dot(x, x)) + this.offsets.at(-1) + this.near.at(-1) + this.far.at(-1) - dot(cross, cross) - dot(rest, rest);
    for (const [i, line] of lines.entries()) add(cross, 0, line, -rest[i], m);
    forward(total, m, cross);
    return this.widened(words, Math.sqrt(Math.max(unknown + dot(cross, cross), 0) + values[`noise_${words.mode}`] ** 2));
  }

  // The calibrated width, in proportion of logarithms between the known deviations of the mode.
  widened(words, deviation) {
    const { values, leftOut, calibrated } = this;
    const known = leftOut.map((name) => [values[`deviation_${words.mode}_${name}`], values[`half_width_${words.mode}_${name}`]].map(Math.log)).sort(([a, b], [c, d]) => a - c || b - d);
    const own = calibrated.reduce((whole, name) => whole * (values[`width_${name}_${words[name]}`] ?? 1), 1);
    const at = Math.min(Math.max(Math.log(deviation), known[0][0]), known.at(-1)[0]);
    const above = Math.max(known.findIndex(([end]) => end >= at), 1);
    const [[a, b], [c, d]] = [known[above - 1], known[above]];
    return deviation * own * Math.exp(c === a ? d : b + ((d - b) * (at - a)) / (c - a));
  }
}
