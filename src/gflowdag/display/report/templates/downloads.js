// Files made in the browser, then the first drawing of everything.

const PICTURE_STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size", "font-weight", "text-anchor", "dominant-baseline", "paint-order"];

const { digits } = report.graph; // significant ones of a probability
const asText = (text) => (/^'*[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]/.test(text) ? `'${text}` : text); // no formula
const csvCell = (text) => (/[",\r\n]/.test(text) ? `"${asText(text).replaceAll('"', '""')}"` : asText(text));
const xmlText = (text) => text.replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, "\uFFFD")
  .replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;").replaceAll("\r", "&#13;");
const dotText = (text) => `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n").replaceAll("\r", "\\r")}"`;

function csvFile() {
  const every = names.flatMap((_, i) => names.map((_, j) => [i, j])).filter(([i, j]) => i !== j);
  every.sort(([a, b], [c, d]) => probability[c][d] - probability[a][b]);
  const number = (value, digits) => (value === null ? "" : Number(value.toPrecision(digits)));
  const lines = every.map(([i, j]) => [csvCell(names[i]), csvCell(names[j]), number(probability[i][j], digits), number(errorOf(i, j), 3)].join(","));
  return ["source,target,probability,error", ...lines, ""].join("\n");
}

function graphmlFile() {
  const nodes = names.map((text, i) => `    <node id="n${i}"><data key="name">${xmlText(text)}</data></node>`);
  const edges = edgesAbove(state.threshold).map(([i, j]) => `    <edge source="n${i}" target="n${j}"><data key="probability">${Number(probability[i][j].toPrecision(digits))}</data></edge>`);
  return `<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="name" for="node" attr.name="name" attr.type="string"/>
  <key id="probability" for="edge" attr.name="probability" attr.type="double"/>
  <graph edgedefault="directed">
${[...nodes, ...edges].join("\n")}
  </graph>
</graphml>
`;
}

function dotFile() {
  const nodes = names.map((text) => `  ${dotText(text)};`);
  const edges = edgesAbove(state.threshold).map(([i, j]) => {
    const p = probability[i][j];
    return `  ${dotText(names[i])} -> ${dotText(names[j])} [label="${p.toFixed(3)}", penwidth=${(0.5 + 3 * p).toFixed(2)}];`;
  });
  return `digraph posterior {\n${[...nodes, ...edges].join("\n")}\n}\n`;
}

// The drawing as a whole, with its computed style written into it, so that it looks the same anywhere.
function svgFile() {
  const blocks = picture.classList.contains("as-blocks"), scale = viewport.view.scale;
  if (!blocks) fitNames(1); // all names
  const copy = picture.cloneNode(true), targets = copy.querySelectorAll("*");
  const hidden = [];
  picture.querySelectorAll("*").forEach((element, index) => {
    const style = getComputedStyle(element);
    if (style.display === "none" || style.visibility === "hidden") hidden.push(targets[index]);
    for (const property of PICTURE_STYLES) targets[index].setAttribute(property, style.getPropertyValue(property));
    for (const attribute of ["tabindex", "role", "aria-label", "aria-pressed", "class"]) targets[index].removeAttribute(attribute);
  });
  if (!blocks) fitNames(scale);
  hidden.push(...copy.querySelectorAll("path[stroke='rgba(0, 0, 0, 0)']"));
  for (const target of hidden) target.remove();
  const { left, top, right, bottom } = drawn.frame, background = getComputedStyle(document.querySelector("section")).backgroundColor;
  copy.querySelector("g").removeAttribute("transform");
  copy.prepend(svg("rect", { x: left, y: top, width: right - left, height: bottom - top, fill: background }));
  for (const attribute of ["style", "id", "role", "class"]) copy.removeAttribute(attribute);
  copy.setAttribute("viewBox", `${left} ${top} ${right - left} ${bottom - top}`);
  copy.setAttribute("width", right - left);
  copy.setAttribute("height", bottom - top);
  return new XMLSerializer().serializeToString(copy);
}

async function pngFile() {
  const address = URL.createObjectURL(new Blob([svgFile()], { type: "image/svg+xml" }));
  const image = new Image();
  image.src = address;
  await image.decode();
  const times = Math.min(2, 8000 / Math.max(image.naturalWidth, image.naturalHeight));
  const canvas = html("canvas", { width: Math.round(times * image.naturalWidth), height: Math.round(times * image.naturalHeight) });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(address);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

const FILES = {
  csv: [csvFile, "edges.csv", "text/csv"],
  graphml: [graphmlFile, "graph.graphml", "application/xml"],
  dot: [dotFile, "graph.dot", "text/vnd.graphviz"],
  svg: [svgFile, "graph.svg", "image/svg+xml"],
  png: [pngFile, "graph.png", "image/png"],
};

for (const button of document.querySelectorAll("[data-download]"))
  button.addEventListener("click", async () => {
    const [make, file, type] = FILES[button.dataset.download];
    const address = URL.createObjectURL(new Blob([await make()], { type }));
    html("a", { href: address, download: file }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  });

resizeBox();
fillTable();
showHeatMap();
addEventListener("resize", showHeatMap);
showClasses();
showDistributions();
if (report.traces.length) showTraces();
if (report.truth) showTruth();
if (report.methods.length) showMethods();
change({});
document.documentElement.dataset.ready = "true";
