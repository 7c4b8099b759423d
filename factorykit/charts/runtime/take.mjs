// What a reader may take along: numbers, pictures, a link.
import { backdrop, download, make } from "./dom.mjs";
import { lines } from "./fit.mjs";

const MARGIN = 16;
const LINE = 17;

const escaped = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;");

// Pictures one below the other with a title above and lines about them below, as text of one SVG.
export function framed(svgs, title, about, { color, ground, font }) {
  const sizes = svgs.map((svg) => ["width", "height"].map((name) => Math.ceil(Number(new RegExp(`<svg[^>]*\\s${name}="([\\d.]+)"`).exec(svg)[1]))));
  const wide = Math.max(320, ...sizes.map(([width]) => width));
  const below = about.flatMap((line) => lines(line, 12, wide));
  const above = title ? lines(title, 16, wide, "600 16px system-ui, sans-serif") : [];
  let top = MARGIN + (title ? 10 + 20 * above.length : 0);
  const panels = svgs.map((svg, i) => {
    const placed = svg.replace("<svg ", `<svg x="${MARGIN}" y="${top}" `);
    top += sizes[i][1];
    return placed;
  });
  const [width, height] = [wide + 2 * MARGIN, top + LINE * (below.length + 1) + MARGIN];
  const head = above.map((line, i) => `<text x="${MARGIN}" y="${MARGIN + 16 + 20 * i}" font-size="16" font-weight="600">${escaped(line)}</text>`).join("");
  const foot = below.map((line, i) => `<text x="${MARGIN}" y="${top + LINE * (i + 1.3)}" font-size="12">${escaped(line)}</text>`).join("");
  const box = `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`;
  const paper = `<rect width="100%" height="100%" fill="${ground}"/>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" ${box}>${paper}<g fill="${color}" font-family="${font}">${head}${foot}</g>${panels.join("")}</svg>`;
}

// The views as one SVG in the colours of the page.
export async function picture(root, views, title, about) {
  const color = getComputedStyle(root).color;
  const svgs = await Promise.all(views.map((view) => view.toSVG()));
  const look = { color, ground: backdrop(root), font: "system-ui, sans-serif" };
  return framed(svgs.map((svg) => svg.replaceAll("currentColor", color)), title, about, look);
}

function png(svg, name) {
  const image = new Image();
  image.addEventListener("load", () => {
    const canvas = make("canvas", { width: image.width * 2, height: image.height * 2 });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => download(name, "image/png", blob));
  });
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
}

// Buttons under a chart; csv and link are omitted where there is nothing to take.
export function actions(name, { pin, csv, svg, link }) {
  const status = make("span", { class: "fk-note", role: "status" });
  const say = (text) => {
    status.textContent = text;
    setTimeout(() => {
      status.textContent = "";
    }, 3000);
  };
  const button = (text, act) =>
    make("button", { type: "button", onclick: () => Promise.resolve().then(act).catch((error) => say(`Did not work: ${error.message}`)) }, text);
  const buttons = [
    pin && button("Pin", pin),
    csv && button("CSV", () => download(`${name}.csv`, "text/csv", csv())),
    button("SVG", async () => download(`${name}.svg`, "image/svg+xml", await svg())),
    button("PNG", async () => png(await svg(), `${name}.png`)),
    link &&
      button("Copy link", async () => {
        history.replaceState(history.state, "", link());
        try {
          await navigator.clipboard.writeText(location.href);
          say("Link copied");
        } catch {
          say("The link stands in the address bar");
        }
      }),
  ];
  return make("div", { class: "fk-bar fk-actions" }, ...buttons.filter(Boolean), status);
}
