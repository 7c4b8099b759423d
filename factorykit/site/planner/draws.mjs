// Random draws equal to those of Python: a Mersenne Twister seeded with a text, as random.Random seeds itself.

const WORDS = 624;
const MASK = (1n << 64n) - 1n;

function root(n, k) {
  let x = 1n << BigInt(Math.ceil(n.toString(2).length / Number(k)));
  for (;;) {
    const next = ((k - 1n) * x + n / x ** (k - 1n)) / k;
    if (next >= x) return x;
    x = next;
  }
}

const PRIMES = Array.from({ length: 408 }, (_, i) => i + 2).filter((n) => !Array.from({ length: 19 }, (_, i) => i + 2).some((d) => d < n && n % d === 0));
const CUBES = PRIMES.map((p) => root(BigInt(p) << 192n, 3n) & MASK);
const SQUARES = PRIMES.slice(0, 8).map((p) => root(BigInt(p) << 128n, 2n) & MASK);
const turned = (x, n) => ((x >> BigInt(n)) | (x << BigInt(64 - n))) & MASK;
const mixed = (x, a, b, c) => turned(x, a) ^ turned(x, b) ^ (c < 0 ? x >> BigInt(-c) : turned(x, c));

// SHA-512 of a text of at most 111 bytes, as a number.
function sha512(bytes) {
  const block = new Uint8Array(128);
  block.set(bytes);
  block[bytes.length] = 128;
  new DataView(block.buffer).setUint32(124, bytes.length * 8);
  const w = Array.from({ length: 16 }, (_, i) => new DataView(block.buffer).getBigUint64(8 * i));
  for (let i = 16; i < 80; i++) w.push((w[i - 16] + mixed(w[i - 15], 1, 8, -7) + w[i - 7] + mixed(w[i - 2], 19, 61, -6)) & MASK);
  let [a, b, c, d, e, f, g, h] = SQUARES;
  for (let i = 0; i < 80; i++) {
    const t1 = h + mixed(e, 14, 18, 41) + ((e & f) ^ (~e & g)) + CUBES[i] + w[i];
    const t2 = mixed(a, 28, 34, 39) + ((a & b) ^ (a & c) ^ (b & c));
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) & MASK, c, b, a, (t1 + t2) & MASK];
  }
  return [a, b, c, d, e, f, g, h].reduce((whole, part, i) => (whole << 64n) | ((part + SQUARES[i]) & MASK), 0n);
}

// A function that returns the next number from 0 to 1.
function generator(text) {
  const bytes = new TextEncoder().encode(text);
  let seed = bytes.reduce((whole, byte) => (whole << 8n) | BigInt(byte), 0n);
  seed = (seed << 512n) | sha512(bytes);
  const key = [];
  for (; seed; seed >>= 32n) key.push(Number(seed & 0xffffffffn));
  const state = new Uint32Array(WORDS);
  state[0] = 19650218;
  const before = (i) => state[i - 1] ^ (state[i - 1] >>> 30);
  for (let i = 1; i < WORDS; i++) state[i] = Math.imul(1812433253, before(i)) + i;
  let at = 1;
  const step = (change) => {
    state[at] = change(at);
    at += 1;
    if (at === WORDS) [state[0], at] = [state[WORDS - 1], 1];
  };
  for (let k = 0; k < Math.max(WORDS, key.length); k++) step((i) => (state[i] ^ Math.imul(before(i), 1664525)) + key[k % key.length] + (k % key.length));
  for (let k = 1; k < WORDS; k++) step((i) => (state[i] ^ Math.imul(before(i), 1566083941)) - i);
  state[0] = 0x80000000;
  at = WORDS;
  const next = () => {
    if (at === WORDS) {
      for (let i = 0; i < WORDS; i++) {
        const y = (state[i] & 0x80000000) | (state[(i + 1) % WORDS] & 0x7fffffff);
        state[i] = state[(i + 397) % WORDS] ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
      }
      at = 0;
    }
    let y = state[at++];
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return (y ^ (y >>> 18)) >>> 0;
  };
  return () => ((next() >>> 5) * 67108864 + (next() >>> 6)) / 9007199254740992;
}

// A random probability from each of n equal strata, in random order.
export function strata(name, n, seed = 0) {
  const random = generator(`${seed} ${name}`);
  const keys = Array.from({ length: n }, random);
  const order = keys.map((_, i) => i).sort((a, b) => keys[a] - keys[b]);
  return order.map((stratum) => (stratum + random()) / n);
}

// Wichura's algorithm AS 241 for quantiles of the normal distribution.
const polynomial = (factors, x) => factors.reduce((sum, factor) => sum * x + factor, 0);
const NEAR = [[2509.0809287301227, 33430.57558358813, 67265.7709270087, 45921.95393154987, 13731.69376550946, 1971.5909503065513, 133.14166789178438, 3.3871328727963665], [5226.495278852854, 28729.085735721943, 39307.89580009271, 21213.794301586597, 5394.196021424751, 687.1870074920579, 42.31333070160091, 1]];
const FAR = [[0.0007745450142783414, 0.022723844989269184, 0.2417807251774506, 1.2704582524523684, 3.6478483247632045, 5.769497221460691, 4.630337846156546, 1.4234371107496835], [1.0507500716444169e-09, 0.0005475938084995345, 0.015198666563616457, 0.14810397642748008, 0.6897673349851, 1.6763848301838038, 2.053191626637759, 1]];
const FARTHEST = [[2.0103343992922881e-07, 2.7115555687434876e-05, 0.0012426609473880784, 0.026532189526576124, 0.29656057182850487, 1.7848265399172913, 5.463784911164114, 6.657904643501103], [2.0442631033899397e-15, 1.421511758316446e-07, 1.8463183175100548e-05, 0.0007868691311456133, 0.014875361290850615, 0.1369298809227358, 0.599832206555888, 1]];

export function normalQuantile(share) {
  const q = share - 0.5;
  const ratio = ([over, under], x) => polynomial(over, x) / polynomial(under, x);
  if (Math.abs(q) <= 0.425) return q * ratio(NEAR, 0.180625 - q * q);
  const r = Math.sqrt(-Math.log(q < 0 ? share : 1 - share));
  return Math.sign(q) * (r <= 5 ? ratio(FAR, r - 1.6) : ratio(FARTHEST, r - 5));
}
