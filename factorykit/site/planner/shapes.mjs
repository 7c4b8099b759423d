// The architecture of a model: a known one by name, or an estimate for a size such as "70B dense" or "1T MoE".

const AMOUNT = "([\\d.]+(?:e\\d+)?)\\s*(k|m(?:illion)?|b(?:n|illion)?|t(?:rillion)?|)";
const SIZED = new RegExp(`^\\s*${AMOUNT}\\s*(?:parameters?)?\\s*(?:(dense)|(mixture(?: of experts)?|moe)|-?a\\s*${AMOUNT})?\\s*$`, "i");
const MAGNITUDES = { "": 1, k: 1e3, m: 1e6, b: 1e9, t: 1e12 };

export function isSize(text) {
  return SIZED.test(text);
}

export function shapeOf(model, text) {
  if (Object.hasOwn(model.architectures, text)) return named(model, text);
  const [, number, letter, , mixed, used, usedLetter] = SIZED.exec(text) ?? [];
  if (!(Number(number) > 0)) throw new Error(`no model '${text}'; choose one, or give a size such as 70B, 1T MoE or 1T A32B`);
  const parameters = Number(number) * MAGNITUDES[letter.slice(0, 1).toLowerCase()];
  if (!mixed && !used) return dense(model, parameters);
  return mixture(model, parameters, used ? Number(used) * MAGNITUDES[usedLetter.slice(0, 1).toLowerCase()] : null);
}

function named(model, key) {
  return Object.fromEntries(model.shape.map((name, i) => [name, model.architectures[key][i]]));
}

// Depth by interpolation in a family of published models, widths chosen to match the size.
function dense(model, parameters) {
  const { family, base, head, kept, ratio } = model.sizes;
  const known = named(model, base);
  const layers = Math.max(Math.round(between(parameters, family)), 1);
  const vocabulary = known.vocabulary_size;
  const squares = layers * (2 + 3 * ratio);
  const lines = 2 * vocabulary + layers * 2 * kept * head;
  const width = (Math.sqrt(lines * lines + 4 * squares * parameters) - lines) / (2 * squares);
  const unit = Math.max(Math.min(2 ** Math.floor(Math.log2(width)) / 4, kept * head), head);
  const hidden = Math.max(Math.round(width / unit), 1) * unit;
  const heads = hidden / head;
  const shared = divisor(heads, kept);
  const rest = (parameters - 2 * vocabulary * hidden - hidden) / layers - (2 * hidden * hidden + 2 * hidden * shared * head + 2 * hidden);
  const ffn = Math.round(rest / (3 * hidden) / head) * head;
  if (!(ffn > 0)) throw new Error(`parameters = ${parameters}: with a vocabulary of ${vocabulary} no layers are left; give a larger size`);
  return { ...known, layers, hidden_size: hidden, ffn_size: ffn, attention_heads: heads, kv_heads: shared, head_size: head, tied_embeddings: 0 };
}

// The known mixture of experts nearest in size, with other numbers of experts and of experts per token.
function mixture(model, parameters, active) {
  const { mixtures, together, sizeStep } = model.sizes;
  const far = ([, size]) => Math.abs(Math.log(size / parameters));
  const [nearest, size] = Object.entries(mixtures).reduce((closest, other) => (far(other) < far(closest) ? other : closest));
  const known = named(model, nearest);
  const expertSize = size - model.chain({ ...known, experts: known.experts - 1 }).parameters;
  let step = together;
  while (step > 1 && step * expertSize > sizeStep * parameters) step /= 2;
  const experts = Math.max(Math.round((known.experts + (parameters - size) / expertSize) / step), 1) * step;
  const shape = { ...known, experts };
  if (active === null) return shape;
  if (active > parameters) throw new Error(`${active} active parameters are more than all ${parameters}`);
  const more = (active - model.chain(shape).active_parameters) / expertSize;
  return { ...shape, experts_per_token: Math.min(Math.max(Math.round(known.experts_per_token + more), 1), experts) };
}

function between(size, family) {
  const above = family.findIndex(([known]) => known >= size);
  const at = Math.max(above < 0 ? family.length - 1 : above, 1);
  const [[small, few], [large, many]] = [family[at - 1], family[at]];
  return few * (size / small) ** (Math.log(many / few) / Math.log(large / small));
}

function divisor(a, b) {
  return b ? divisor(b, a % b) : a;
}
