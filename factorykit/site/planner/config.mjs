// The architecture of a model from a pasted config.json: a subset of fk.read_hf_config; unsupported fields are rejected.

const WHOLE = "; fk.read_hf_config reads more";

class Fields {
  constructor(words, given) {
    this.words = words;
    this.given = given;
    this.kind = String(given.model_type ?? "").slice(0, 60);
    const key = this.kind.replaceAll("-", "_");
    this.defaults = words.defaults[key] ?? words.defaults[key.replace(/_text$/, "")] ?? {};
    this.seen = new Set();
  }

  // The first of these fields in the file or in the defaults of the model type; null in the file counts as missing.
  get(...names) {
    for (const name of names) this.seen.add(name);
    const source = names.some((name) => name in this.given) ? this.given : this.defaults;
    const name = names.find((field) => source[field] != null);
    return name === undefined ? null : source[name];
  }

  count(names, otherwise = null) {
    let value = this.get(...names) ?? otherwise;
    if (value === null) throw new Error(`no field ${names.join(" or ")}, and ${this.kind ? `model type '${this.kind}' has no default for it` : "no model_type says what it is"}; add it`);
    if (Array.isArray(value) && value.length && value.every((item) => item === value[0])) [value] = value;
    if (typeof value !== "number" || value < 0 || value % 1 || value >= 2 ** 53) throw new Error(`${names[0]} = ${JSON.stringify(value).slice(0, 60)} is no count; give a whole number`);
    return value;
  }

  refuseStrangers() {
    const counts = (value) => !(value == null || ["boolean", "string"].includes(typeof value) || value === 0 || (typeof value === "object" && !Object.keys(value).length));
    const names = Object.keys(this.given).filter((name) => !this.seen.has(name) && !this.words.unimportant.includes(name) && counts(this.given[name]));
    if (names.length) throw new Error(`${names.slice(0, 10).join(", ")} not understood; remove what changes no count${WHOLE}`);
  }
}

export function readConfig({ config: words }, text) {
  let config = null;
  try {
    config = JSON.parse(text);
  } catch (error) {
    throw new Error(`this is no JSON: ${error.message}`, { cause: error });
  }
  if (!config || typeof config !== "object" || Array.isArray(config)) throw new Error("a configuration is an object with fields");
  const inner = words.inner.map((name) => config[name]).find((part) => part && typeof part === "object") ?? config;
  const outer = Object.fromEntries(["tie_word_embeddings", "model_type"].filter((name) => name in config).map((name) => [name, config[name]]));
  const parts = words.parts.map((name) => inner[name]).filter((part) => part && typeof part === "object" && !Array.isArray(part));
  const fields = new Fields(words, Object.assign({}, outer, ...parts, inner));
  const shape = shapeIn(fields, words);
  fields.refuseStrangers();
  const { attention_heads: heads, kv_heads: kept = heads, experts = 0, experts_per_token: visited = 1 } = shape;
  if (heads % kept) throw new Error(`kv_heads = ${kept} do not divide attention_heads = ${heads}`);
  if (experts > 1 && !(visited >= 1 && visited <= experts)) throw new Error(`experts_per_token = ${visited} of ${experts} experts`);
  return shape;
}

function shapeIn(fields, words) {
  const { names } = words;
  if (words.uncounted[fields.kind]) throw new Error(`${fields.kind}: ${words.uncounted[fields.kind]} not counted`);
  if (fields.get("is_encoder_decoder")) throw new Error("encoder and cross attention are not counted");
  const shape = { layers: 0 };
  const kinds = fields.get("layer_types") ?? [];
  const others = ["hybrid_override_pattern", "layers_block_type", "attn_type_list", "attn_layer_period", "full_attention_interval", "attn_layer_indices", "mamba_d_ssm", "word_embed_proj_dim", "index_n_heads", "index_topk", "use_mtp", "expert_layer_period"];
  const odd = others.find((name) => fields.get(name) && fields.get(name) !== fields.get("hidden_size"));
  const unlike = Array.isArray(kinds) ? kinds.find((kind) => !words.softmax.includes(kind)) : kinds;
  if (odd || unlike) throw new Error(`${odd ?? `layer_types ${unlike}`} is not read here${WHOLE}`);
  if (fields.get("attn_output_gate")) shape.gated_attention = 1;
  shape.layers = kinds.length || fields.count(names.layers);
  if (kinds.length && fields.get(...names.layers) !== null && fields.count(names.layers) !== kinds.length) throw new Error(`kinds of ${kinds.length} layers for another number of layers; correct one`);
  shape.hidden_size = fields.count(names.hidden_size);
  shape.vocabulary_size = fields.count(names.vocabulary_size);
  attention(fields, names, shape);
  windowOf(fields, kinds, shape);
  shape.gated_ffn = gated(fields, words);
  const tied = fields.get("tie_word_embeddings");
  if (tied === null) throw new Error("no field tie_word_embeddings; add it");
  shape.tied_embeddings = Number(Boolean(tied));
  feedForward(fields, words, shape);
  const modules = fields.count(names.mtp_layers, 0);
  if (modules) shape.mtp_layers = modules;
  return shape;
}

function attention(fields, names, shape) {
  shape.attention_heads = fields.count(names.attention_heads);
  if (fields.get("multi_query") && !fields.get("new_decoder_architecture")) {
    fields.get(...names.kv_heads);
    shape.kv_heads = 1;
  } else if (fields.get(...names.kv_heads) !== null) shape.kv_heads = fields.count(names.kv_heads);
  const rank = fields.get("kv_lora_rank");
  if (fields.get(...names.head_size) !== null || rank) shape.head_size = fields.count(rank ? ["qk_nope_head_dim"] : names.head_size);
  for (const [name, field] of [["q_lora_rank", "q_lora_rank"], ["kv_lora_rank", "kv_lora_rank"], ["rope_head_size", "qk_rope_head_dim"], ["value_head_size", "v_head_dim"]]) {
    if (fields.get(field) !== null) shape[name] = fields.count([field]);
  }
}

function windowOf(fields, kinds, shape) {
  if (fields.get("use_sliding_window") === false) {
    fields.get("sliding_window", "sliding_window_size", "sliding_window_pattern");
    return;
  }
  if (!fields.get("sliding_window")) {
    fields.get("sliding_window_pattern");
    return;
  }
  const size = fields.count(["sliding_window"]);
  const { layers } = shape;
  let windowed = layers;
  if (kinds.length) windowed = kinds.filter((kind) => kind === "sliding_attention").length;
  else if (fields.get("sliding_window_pattern")) windowed = layers - Math.floor(layers / Math.max(fields.count(["sliding_window_pattern"]), 1));
  else if (fields.get("use_sliding_window")) windowed = Math.max(layers - fields.count(["max_window_layers"], 0), 0);
  if (windowed) Object.assign(shape, { attention_window: size, windowed_layers_share: windowed / layers });
}

function gated(fields, { activations, withGate, plain }) {
  const activation = fields.get(...activations);
  const act = activation && typeof activation === "object" ? activation.name : activation;
  const known = fields.defaults.gated_ffn;
  if (act == null) throw new Error(`no field ${activations[0]}; add it`);
  if (!withGate.includes(act) && !plain.includes(act)) throw new Error(`activation '${act}' not understood`);
  if (known == null && plain.includes(act)) throw new Error(`whether the feed-forward blocks of model type '${fields.kind}' have a gate is not known, and ${act} says nothing of it`);
  return Number(known ?? withGate.includes(act));
}

function feedForward(fields, words, shape) {
  const { names, spacing } = words;
  const experts = fields.count(names.experts, 0);
  fields.get(...names.experts_per_token, ...names.expert_ffn_size, ...spacing, "first_k_dense_replace");
  const llama = fields.kind.startsWith("llama4") || "intermediate_size_mlp" in fields.given;
  const own = fields.kind.startsWith("llama4") ? ["intermediate_size_mlp"] : names.ffn_size;
  const width = () => (fields.get(...own) === null && fields.get("expansion_ratio") !== null ? shape.hidden_size * fields.count(["expansion_ratio"]) : fields.count(own));
  if (experts <= 1) {
    shape.ffn_size = width();
    return;
  }
  const dense = denseLayers(fields, spacing, shape.layers);
  const named = llama ? ["intermediate_size"] : names.expert_ffn_size;
  const size = fields.get(...named) === null ? width() : fields.count(named);
  if (!size) throw new Error(`${named[0]} = 0 with ${experts} experts; give their width`);
  Object.assign(shape, { dense_layers: dense, experts, experts_per_token: fields.count(names.experts_per_token), expert_ffn_size: size });
  shape.expert_biases = Number(Boolean(fields.get("expert_biases")));
  shape.ffn_size = dense || fields.get(...names.ffn_size) !== null ? width() : size;
  const shared = fields.count(["n_shared_experts", "moe_num_shared_experts", "num_shared_expert"], Number(llama));
  const whole = fields.count(["shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "shared_intermediate_size"], 0);
  shape.shared_experts = whole ? (Math.max(shared, 1) * whole) / size : shared;
}

function denseLayers(fields, spacing, layers) {
  const first = fields.count(["first_k_dense_replace", "moe_layer_start_index"], 0);
  const last = fields.get("moe_layer_end_index") ?? -1;
  const steps = [...spacing, "moe_layer_interval"].map((field) => [field, fields.get(field) ?? 1]);
  const [field, step] = steps.find(([, interval]) => String(interval) !== "1") ?? steps[0];
  const only = fields.get("mlp_only_layers") ?? [];
  const dense = first + (Array.isArray(only) ? only.length : 0);
  const skipped = Array.isArray(step) ? step.filter((flag) => flag === 0).length : 0;
  if (Array.isArray(step) && step.length === layers && step.every((flag) => flag === 0 || flag === 1) && skipped >= dense) return skipped;
  if (!Number.isInteger(step) || step < 1 || (step > 1 && dense) || ![-1, layers - 1].includes(last)) throw new Error(`${field} = ${JSON.stringify(step).slice(0, 60)} after ${dense} dense layers is not understood; give dense_layers`);
  return dense || layers - Math.floor(layers / step);
}
