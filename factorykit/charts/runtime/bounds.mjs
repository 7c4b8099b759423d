// What an input may be: bounds as the vocabulary writes them, "(0, 1]" or "[1, inf)", or the words it may take.

export function holds(bounds, value) {
  const [low, high] = bounds.slice(1, -1).split(",").map((end) => Number(end.trim().replace("inf", "Infinity")));
  const above = bounds.startsWith("[") ? value >= low : value > low;
  const below = bounds.endsWith("]") ? value <= high : value < high;
  return above && below && Number.isFinite(value);
}

// Parts changes into values that are taken and sentences that say why others are not. Inputs: name to label and bounds.
export function admitted(changes, inputs) {
  const taken = {};
  const refused = [];
  for (const [name, value] of Object.entries(changes)) {
    const input = Object.hasOwn(inputs, name) ? inputs[name] : null;
    if (!input) refused.push(`there is no input ${name}`);
    else if (Array.isArray(input.bounds)) {
      if (input.bounds.includes(value)) taken[name] = value;
      else refused.push(`${input.label} is one of ${input.bounds.join(", ")}`);
    }
    else if (typeof value !== "number" || Number.isNaN(value)) refused.push(`${input.label} is no number`);
    else if (!holds(input.bounds, value)) refused.push(`${input.label} = ${value} is outside ${input.bounds}`);
    else taken[name] = value;
  }
  return { taken, refused };
}
