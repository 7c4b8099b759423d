// What a reader may take along: numbers, pictures, a link.
import { backdrop, download, make } from "./dom.mjs";

// The views as SVG in the colours of the page.
export async function pictures(root, views) {
  const color = getComputedStyle(root).color;
  const ground = backdrop(root);
  const svgs = await Promise.all(views.map((view) => view.toSVG()));
  return svgs.map((svg) => svg.replaceAll("currentColor", color).replace(/(<svg[^>]*>)/, `$1<rect width="100%" height="100%" fill="${ground}"/>`));
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

// Buttons under a chart; csv and link are left away where there is nothing to take.
export function actions(name, { csv, svgs, link }) {
  const said = make("span", { class: "fk-said", role: "status" });
  const say = (text) => {
    said.textContent = text;
    setTimeout(() => {
      said.textContent = "";
    }, 3000);
  };
  const button = (text, act) =>
    make("button", { type: "button", onclick: () => Promise.resolve().then(act).catch((error) => say(`Did not work: ${error.message}`)) }, text);
  const each = async (ending, take) => (await svgs()).forEach((svg, i) => take(svg, `${name}${i ? i + 1 : ""}.${ending}`));
  const buttons = [
    csv && button("CSV", () => download(`${name}.csv`, "text/csv", csv())),
    button("SVG", () => each("svg", (svg, file) => download(file, "image/svg+xml", svg))),
    button("PNG", () => each("png", png)),
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
  return make("div", { class: "fk-bar fk-actions" }, ...buttons.filter(Boolean), said);
}
