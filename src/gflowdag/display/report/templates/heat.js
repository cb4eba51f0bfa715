// The heat map: a picture of one pixel a cell, stretched; names beside it where there is room for them.

const ruler = document.createElement("canvas").getContext("2d");
const CELL_LIMITS = [1, 26], NAME_SPACING = 12, CLOSEST_CELL = 30;
const heatFrame = { margin: 0, extent: 0, cell: 1 };
const heatPicture = svg("svg", { id: "heat-picture", role: "img", tabindex: 0, "aria-label": "Heat map of edge probabilities, sources down and targets across; the table above holds the same numbers" });
const dataOrder = names.map((_, i) => i);
const at = wholeLayout.at;
const causalOrder = [...dataOrder].sort((a, b) => wholeLayout.group[a] - wholeLayout.group[b] || at[a][1] - at[b][1] || at[a][0] - at[b][0]);
let heatOrder = causalOrder, heatCursor = null;

const heatViewport = makeViewport(heatPicture, {
  limits() {
    const { margin, extent, cell } = heatFrame;
    const whole = extent / (size * cell);
    return { least: whole, most: Math.max(whole, CLOSEST_CELL / cell), fitted: whole, size: [extent, extent], extent: { left: 0, top: 0, right: size * cell, bottom: size * cell }, margin };
  },
  apply: drawHeatView,
});

// One pixel a cell: how opaque the colour is.
function heatPixels(order) {
  const canvas = html("canvas", { width: size, height: size }), context = canvas.getContext("2d");
  const image = context.createImageData(size, size);
  order.forEach((i, row) => order.forEach((j, across) => {
    const opacity = i === j ? 0 : Math.max(0.03, probability[i][j]);
    image.data[4 * (row * size + across) + 3] = Math.round(255 * opacity);
  }));
  context.putImageData(image, 0, 0);
  return canvas.toDataURL();
}

// Ends of the runs of variables of one block, in the order of the map.
function blockRuns(order) {
  if (!wholeLayout.blocks.length || order !== causalOrder) return [];
  return order.flatMap((i, k) => (k === 0 || wholeLayout.group[order[k - 1]] !== wholeLayout.group[i] ? [k] : [])).concat(size);
}

function showHeatMap() {
  heatOrder = byId("causal-order").checked ? causalOrder : dataOrder;
  const room = byId("heat").clientWidth || 700;
  ruler.font = `11px ${getComputedStyle(heatPicture).fontFamily}`;
  const longest = Math.max(...report.graph.labels.map((text) => ruler.measureText(text).width));
  const margin = Math.min(longest + 10, 0.34 * room);
  const wanted = Math.min(room - margin - 6, Math.max(0.8 * innerHeight, 300) - margin, CELL_LIMITS[1] * size);
  const extent = Math.max(wanted, 120), cell = extent / size;
  Object.assign(heatFrame, { margin, extent, cell });
  heatPicture.setAttribute("viewBox", `0 0 ${margin + extent + 4} ${margin + extent + 4}`);
  heatPicture.setAttribute("width", margin + extent + 4);
  heatPicture.setAttribute("height", margin + extent + 4);
  const runs = blockRuns(heatOrder);
  const frames = runs.slice(0, -1).map((from, k) => svg("rect", { class: "heat-block", x: from * cell, y: from * cell, width: (runs[k + 1] - from) * cell, height: (runs[k + 1] - from) * cell }));
  heatPicture.replaceChildren(
    svg("defs", {},
      svg("clipPath", { id: "heat-clip" }, svg("rect", { x: 0, y: 0, width: extent, height: extent })),
      svg("mask", { id: "heat-mask", style: "mask-type: alpha", maskUnits: "userSpaceOnUse", x: 0, y: 0, width: extent, height: extent },
        svg("image", { href: heatPixels(heatOrder), width: extent, height: extent, preserveAspectRatio: "none", style: "image-rendering: pixelated" }))),
    svg("g", { transform: `translate(${margin} ${margin})` },
      svg("g", { "clip-path": "url(#heat-clip)" },
        svg("rect", { class: "heat-ground", width: extent, height: extent }),
        svg("g", { class: "heat-world" },
          svg("rect", { class: "heat-cells", width: extent, height: extent, mask: "url(#heat-mask)" }),
          svg("path", { class: "heat-diagonal", d: `M0,0L${extent},${extent}` }),
          ...frames),
        svg("g", { class: "heat-cross" })),
      svg("rect", { class: "heat-frame", width: extent, height: extent }),
      svg("g", { class: "heat-names" })));
  heatViewport.fit();
  drawHeatView(heatViewport.view);
}

function drawHeatView({ x, y, scale }) {
  const { margin, extent, cell } = heatFrame, side = cell * scale;
  heatPicture.querySelector(".heat-world").setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)}) scale(${scale.toFixed(4)})`);
  const every = Math.max(1, Math.ceil(NAME_SPACING / side));
  const visible = (start) => heatOrder.map((i, k) => ({ i, place: start + (k + 0.5) * side, k })).filter(({ place }) => place >= 0 && place <= extent);
  const thinned = (start, marked) => visible(start).filter(({ k, place }) => (marked === null ? k % every === 0 : k === marked || (k % every === 0 && Math.abs(place - (start + (marked + 0.5) * side)) >= NAME_SPACING)));
  const down = thinned(y, heatCursor && heatCursor[0]), across = thinned(x, heatCursor && heatCursor[1]);
  const fits = (text) => ruler.measureText(text).width <= margin - 8;
  const label = (i) => {
    let text = report.graph.labels[i];
    if (fits(text)) return text;
    while (text.length > 1 && !fits(`${text}…`)) text = text.slice(0, -1);
    return `${text}…`;
  };
  const marked = (k, axis) => (heatCursor && heatCursor[axis] === k ? "marked" : null);
  heatPicture.querySelector(".heat-names").replaceChildren(
    ...down.map(({ i, place, k }) => svg("text", { x: -5, y: (place + 4).toFixed(1), "text-anchor": "end", class: marked(k, 0) }, label(i), svg("title", {}, names[i]))),
    ...across.map(({ i, place, k }) => svg("text", { transform: `translate(${(place + 4).toFixed(1)} -5) rotate(-90)`, class: marked(k, 1) }, label(i), svg("title", {}, names[i]))));
  const cross = heatCursor && [
    svg("rect", { x: 0, y: y + heatCursor[0] * side, width: extent, height: side }),
    svg("rect", { x: x + heatCursor[1] * side, y: 0, width: side, height: extent })];
  heatPicture.querySelector(".heat-cross").replaceChildren(...(cross ?? []));
}

function cellUnder(event) {
  const bounds = heatPicture.getBoundingClientRect(), { margin, cell } = heatFrame, { x, y, scale } = heatViewport.view;
  const ratio = (margin + heatFrame.extent + 4) / bounds.width;
  const place = [(event.clientY - bounds.top) * ratio - margin, (event.clientX - bounds.left) * ratio - margin];
  if (Math.min(...place) < 0 || Math.max(...place) > heatFrame.extent) return null;
  const found = [(place[0] - y) / (cell * scale), (place[1] - x) / (cell * scale)].map(Math.floor);
  return found.every((k) => k >= 0 && k < size) ? found : null;
}

function readCell(found) {
  heatCursor = found;
  drawHeatView(heatViewport.view);
  if (!found) return;
  const [i, j] = found.map((k) => heatOrder[k]);
  byId("heat-readout").textContent = i === j ? names[i]
    : `${names[i]} → ${names[j]}: ${shown(probability[i][j])}${spread(errorOf(i, j))}; reverse ${shown(probability[j][i])}`;
}

heatPicture.addEventListener("pointermove", (event) => readCell(cellUnder(event)));
heatPicture.addEventListener("pointerleave", () => readCell(null));
heatPicture.addEventListener("click", (event) => {
  const found = cellUnder(event);
  if (found && found[0] !== found[1]) choosePair(...found.map((k) => heatOrder[k]));
});
// With shift the arrow keys read cell by cell; Enter chooses.
heatPicture.addEventListener("keydown", (event) => {
  const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
  if (step && event.shiftKey) {
    event.preventDefault();
    event.stopImmediatePropagation();
    const start = heatCursor ?? [0, 0];
    readCell(start.map((k, axis) => clamp(k + (heatCursor ? step[axis] : 0), 0, size - 1)));
  } else if (event.key === "Enter" && heatCursor && heatCursor[0] !== heatCursor[1]) choosePair(...heatCursor.map((k) => heatOrder[k]));
}, { capture: true });

byId("causal-order").addEventListener("change", showHeatMap);
byId("heat").append(heatPicture, zoomButtons(heatViewport, "the heat map"));
