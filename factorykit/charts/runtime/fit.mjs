// A specification made to fit its place: titles in lines, labels that leave room, legends in fewer columns.

// Width of a letter in its size where no canvas measures the text.
const LETTER = 0.6;

// A measure of the width of a text in a font, such as "600 15px sans-serif".
function measure(font, size) {
  const canvas = globalThis.document?.createElement("canvas").getContext("2d");
  if (canvas) canvas.font = font;
  return (text) => canvas?.measureText(text).width ?? text.length * size * LETTER;
}

// Text in lines of at most so many pixels.
export function lines(text, size, room, font = `${size}px system-ui, sans-serif`) {
  const long = measure(font, size);
  const out = [""];
  for (const word of String(text).split(" ")) {
    const longer = out.at(-1) ? `${out.at(-1)} ${word}` : word;
    if (long(longer) > room && out.at(-1)) out.push(word);
    else out[out.length - 1] = longer;
  }
  return out;
}

function wrapTitle(spec, room, { font, title: { fontWeight, fontSize, subtitleFontSize } }) {
  if (!spec.title) return;
  const title = typeof spec.title === "string" ? { text: spec.title } : spec.title;
  spec.title = { ...title, text: lines(title.text, fontSize, room, `${fontWeight} ${fontSize}px ${font}`) };
  if (title.subtitle) spec.title.subtitle = lines([title.subtitle].flat().join(" "), subtitleFontSize, room, `${subtitleFontSize}px ${font}`);
}

// On a narrow place no chart keeps wider labels than that, whatever it asked for.
function limitLabels(spec, labelLimit) {
  for (const layer of spec.layer || []) limitLabels(layer, labelLimit);
  for (const channel of ["x", "y"]) {
    const axis = spec.encoding?.[channel]?.axis;
    if (axis?.labelLimit > labelLimit) axis.labelLimit = labelLimit;
  }
}

// The rows of a data set; a page holds one of a picture that computes nothing by columns.
function rows(set) {
  if (Array.isArray(set)) return set;
  const fields = Object.entries(set.columns);
  return fields[0][1].map((_, n) => Object.fromEntries(fields.map(([field, values]) => [field, values[n]])));
}

// Percent as in the text around the chart: 80 %.
const LOCALE = { number: { decimal: ".", thousands: ",", grouping: [3], currency: ["$", ""], percent: " %" } };

// The specification with the rows and the theme of its payload, for a place of that width.
export function fitted(source, { grid, config }, room) {
  const spec = structuredClone(source);
  spec.config = { ...structuredClone(config), locale: LOCALE, aria: false }; // the place has one name; its marks say nothing
  if (spec.datasets) spec.datasets = Object.fromEntries(Object.entries(spec.datasets).map(([name, set]) => [name, rows(set)]));
  if (grid) spec.datasets = { ...spec.datasets, grid: grid.values.map((value) => ({ [grid.field]: value })) };
  wrapTitle(spec, room - 2 * spec.config.padding, spec.config);
  if (room < 480) {
    const labelLimit = Math.round(room * 0.4);
    spec.config.axis = { ...spec.config.axis, labelLimit };
    limitLabels(spec, labelLimit);
    spec.config.legend = { ...spec.config.legend, labelLimit: Math.round(room * 0.45) };
    spec.config.axisX = { ...spec.config.axisX, titleAnchor: "end" };
  }
  return spec;
}

// What is laid out for one width: the lines of the title and the room of labels.
export function layout({ title, config: { axis, legend } }) {
  return JSON.stringify([title, axis?.labelLimit, legend?.labelLimit]);
}

// A view is embedded once its place has a width; a widget may be rendered before it is on the page.
export function width(element) {
  return new Promise((resolve) => {
    const look = () => element.clientWidth > 0 && (observer.disconnect(), resolve(element.clientWidth));
    const observer = new ResizeObserver(look);
    observer.observe(element);
    look();
  });
}

// In how many columns a legend that leaves its place on the right has to stand; 0 if it fits or stands in one.
export function fewerColumns(place, columns) {
  const edge = place.getBoundingClientRect().right;
  let fewer = 0;
  for (const legend of place.querySelectorAll(".role-legend")) {
    const { left, right, width: wide } = legend.getBoundingClientRect();
    const now = columns ?? legend.querySelectorAll(".role-legend-label text").length;
    if (right > edge + 1 && now > 1) fewer = Math.max(1, Math.min(fewer || now - 1, Math.floor((now * (edge - left)) / wide)));
  }
  return fewer;
}
