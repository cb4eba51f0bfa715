// The graph panel: what is drawn, where, and how large.

const WIDE = 40; // beyond so many variables the drawing takes the whole width
const LARGEST = 1.25, CLOSEST = 3;
const NAMED = 0.72; // below this scale names keep their size on the screen, and those that would overlap are left out
const NAME_SIZE = 13, SMALL_NAME_SIZE = 10.5, BLOCK_NAME_SIZE = 12.5;
const AS_BLOCKS = 0.5; // below this scale blocks stand for their variables, if wanted

const world = svg("g", { class: "world" });
const picture = svg("svg", { id: "graph-picture", role: "group", "aria-label": "Graph of the edges above the threshold" }, world);
let layout = wholeLayout; // of what is drawn now: of all variables, or of a neighbourhood
let drawn = { edges: [], nodes: [], frame: frameOf(wholeLayout), importance: names.map(() => 0), blockHeads: [] };
const box = { width: 0, height: 0 };
let scaleOfNames = null;

const viewport = makeViewport(picture, {
  limits() {
    const { left, top, right, bottom } = drawn.frame;
    const fitted = Math.min(LARGEST, box.width / (right - left), box.height / (bottom - top));
    return { least: fitted, most: Math.max(CLOSEST, 1.5 * fitted), fitted, size: [box.width, box.height], extent: drawn.frame };
  },
  apply({ x, y, scale }) {
    world.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(${scale.toFixed(4)})`);
    if (scale !== scaleOfNames) fitNames(scale);
  },
});

const isFitted = () => viewport.view.scale <= viewport.limits().fitted * 1.001;

function resizeBox() {
  const fitted = box.width > 0 && isFitted();
  const figure = byId("drawing"), { left, top, right, bottom } = frameOf(wholeLayout);
  const width = figure.clientWidth;
  if (!width) return;
  const tallest = document.fullscreenElement ? innerHeight - 72 : Math.max(0.8 * innerHeight, 320);
  const natural = (bottom - top) * Math.min(LARGEST, width / (right - left));
  const height = document.fullscreenElement ? tallest : Math.min(tallest, Math.max(natural, size > 12 ? 340 : 0));
  if (Math.abs(width - box.width) < 1 && Math.abs(height - box.height) < 1) return;
  const first = box.width === 0;
  Object.assign(box, { width, height });
  picture.setAttribute("viewBox", `0 0 ${width} ${Math.round(height)}`);
  picture.setAttribute("style", `height: ${Math.round(height)}px`);
  if (fitted || first) viewport.fit();
  else viewport.settle();
}

function redraw(current) {
  const focused = document.activeElement?.closest?.("#drawing .node")?.dataset.node;
  const fitted = isFitted();
  const before = layout;
  let edges = drawnEdges(current);
  const near = current.steps && current.node !== null ? neighbourhood(current.node, current.steps, edges) : null;
  layout = near ? neighbourhoodLayout(near, edges) : wholeLayout;
  if (near) edges = edges.filter(({ source, target }) => near.has(source) && near.has(target));
  const importance = names.map(() => 0);
  for (const { source, target } of edges) {
    importance[source] += probability[source][target];
    importance[target] += probability[source][target];
  }
  const kept = (i) => layout.at[i] && (!current.hideAlone || importance[i] > 0 || current.pair?.includes(i) || current.node === i);
  const nodes = names.map((_, i) => i).filter(kept);
  drawn = { edges, nodes, importance, frame: frameOf(layout, kept), blockHeads: [] };
  const tabbable = size <= WIDE ? () => true : (i) => i === (current.node ?? nodes[0]);
  world.replaceChildren(
    blockBoxes(kept), blockLines(edges),
    ...drawParts(layout, edges, nodes, (i) => ({
      tabindex: tabbable(i) ? 0 : -1, role: "button", "data-node": i, "aria-label": names[i], "aria-pressed": String(current.node === i),
    })),
    blockNames(kept));
  if (focused !== undefined) world.querySelector(`[data-node="${focused}"]`)?.focus({ preventScroll: true });
  emphasise(current.node);
  scaleOfNames = null;
  if (box.width === 0) return;
  if (before !== layout || fitted) viewport.fit();
  else viewport.settle();
}

const blockName = ({ members }) => (members.length === 1 ? names[members[0]] : `${names[members[0]]} and ${members.length - 1} more`);

function blockBoxes(isDrawn) {
  return svg("g", { class: "blocks" }, ...layout.blocks.map((block, index) => {
    const [left, top, right, bottom] = block.box;
    return block.members.some(isDrawn)
      ? svg("g", { class: `block${block.connected ? "" : " alone"}`, "data-block": index, role: "button", tabindex: -1, "aria-label": `block of ${blockName(block)}` },
        svg("rect", { x: left, y: top, width: right - left, height: bottom - top, rx: 12 }),
        svg("title", {}, block.connected ? `Block of ${plural(block.members.length, "variable")}: ${blockName(block)}` : `${plural(block.members.length, "variable")} without likely edges`))
      : null;
  }).filter((element) => element !== null));
}

function blockNames(isDrawn) {
  return svg("g", { class: "block-names" }, ...layout.blocks.flatMap(({ members, box: [left, top, right, bottom] }, index) =>
    (members.some(isDrawn) ? [svg("text", { x: (left + right) / 2, y: (top + bottom) / 2, "data-block": index })] : [])));
}

// One line for all shown edges between two blocks, with a head at each end that any of them points to.
function blockLines(edges) {
  const counts = new Map();
  for (const { source, target } of edges) {
    const a = layout.group[source], b = layout.group[target];
    if (a !== b) counts.set(`${a},${b}`, (counts.get(`${a},${b}`) ?? 0) + 1);
  }
  const lines = svg("g", { class: "block-lines", style: `opacity: ${clamp(100 / counts.size, 0.25, 1).toFixed(2)}` });
  for (const [key, count] of counts) {
    const [a, b] = key.split(",").map(Number), back = counts.get(`${b},${a}`) ?? 0;
    if (back && a > b) continue;
    const ends = [borderPoint(a, b), borderPoint(b, a)];
    const title = `${plural(count, "edge")} from the block of ${blockName(layout.blocks[a])} to that of ${blockName(layout.blocks[b])}${back ? `, ${back} back` : ""}`;
    const heads = [[1, count], [0, back]].filter(([, any]) => any).map(([end]) => {
      const [x, y] = ends[end], [fromX, fromY] = ends[1 - end];
      const turn = (180 / Math.PI) * Math.atan2(y - fromY, x - fromX);
      const head = svg("path", { class: "head", d: "M0,0L-10,-4.5L-10,4.5Z" });
      drawn.blockHeads.push({ head, place: `translate(${round(x)} ${round(y)}) rotate(${round(turn)})` });
      return head;
    });
    lines.append(svg("g", { class: "edge" },
      svg("path", { class: "line", d: `M${ends[0].map(round)}L${ends[1].map(round)}`, "stroke-width": (1 + 1.1 * Math.sqrt(count + back)).toFixed(2) }),
      ...heads, svg("title", {}, title)));
  }
  return lines;
}

// Where the line between the middles of two blocks leaves the first.
function borderPoint(from, to) {
  const [left, top, right, bottom] = layout.blocks[from].box, other = layout.blocks[to].box;
  const x = (left + right) / 2, y = (top + bottom) / 2;
  const dx = (other[0] + other[2]) / 2 - x, dy = (other[1] + other[3]) / 2 - y;
  const share = Math.min((right - left) / 2 / Math.max(Math.abs(dx), 1e-9), (bottom - top) / 2 / Math.max(Math.abs(dy), 1e-9));
  return [x + share * dx, y + share * dy];
}

// Names of readable size at any scale: the important ones first, and none on top of another.
function fitNames(scale) {
  scaleOfNames = scale;
  const asBlocks = state.blocks && layout.blocks.length > 0 && scale < AS_BLOCKS;
  picture.classList.toggle("as-blocks", asBlocks);
  picture.classList.toggle("small-names", scale < NAMED);
  if (asBlocks) return fitBlockNames(scale);
  const small = scale < NAMED, fontSize = small ? SMALL_NAME_SIZE / scale : NAME_SIZE;
  picture.style.setProperty("--name-size", `${fontSize.toFixed(2)}px`);
  const first = (i) => (i === state.node || state.pair?.includes(i) ? Infinity : drawn.importance[i]);
  const taken = [];
  const texts = new Map([...world.querySelectorAll(".names > text")].map((text) => [Number(text.dataset.name), text]));
  for (const i of small ? [...drawn.nodes].sort((a, b) => first(b) - first(a) || a - b) : drawn.nodes) {
    const [x, y] = layout.at[i];
    const half = ((widths[i] - 18) / 2) * (fontSize / NAME_SIZE), halfHeight = 0.62 * fontSize;
    const free = !small || taken.every(([x1, y1, half1]) => Math.abs(x - x1) >= half + half1 || Math.abs(y - y1) >= 2 * halfHeight);
    if (free && small) taken.push([x, y, half]);
    texts.get(i).classList.toggle("unnamed", !free);
  }
}

// Names of blocks, the largest first; one that would overlap another is left out.
function fitBlockNames(scale) {
  const labels = [...world.querySelectorAll(".block-names > text")], blockOf = (label) => layout.blocks[Number(label.dataset.block)];
  const fontSize = BLOCK_NAME_SIZE / scale, letter = 0.6 * fontSize, lineHeight = 1.2 * fontSize;
  const taken = [];
  for (const label of labels.sort((a, b) => blockOf(b).members.length - blockOf(a).members.length)) {
    const { members, box: [left, , right], connected } = blockOf(label);
    const letters = Math.floor((scale * (right - left) - 8) / (0.56 * BLOCK_NAME_SIZE));
    const cut = (text) => (text.length <= letters ? text : letters > 2 ? `${text.slice(0, letters - 1)}…` : "");
    const x = Number(label.getAttribute("x")), y = Number(label.getAttribute("y"));
    const lines = (connected ? [report.graph.labels[members[0]], ...(members.length > 1 ? [`+ ${members.length - 1}`] : [])] : [`${members.length} without edges`]).map(cut);
    const half = [(letter * Math.max(...lines.map((line) => line.length))) / 2, (lineHeight * lines.length) / 2];
    const free = taken.every(([x1, y1, half1]) => Math.abs(x - x1) >= half[0] + half1[0] || Math.abs(y - y1) >= half[1] + half1[1]);
    if (free) taken.push([x, y, half]);
    label.style.fontSize = `${fontSize.toFixed(1)}px`;
    label.replaceChildren(...(free ? lines : []).map((line, index) =>
      svg("tspan", { x, dy: `${index === 0 ? -0.6 * (lines.length - 1) + 0.35 : 1.2}em` }, line)));
  }
  const headSize = clamp(box.width / 900, 0.55, 1) / scale; // smaller on a phone, where blocks are small
  for (const { head, place } of drawn.blockHeads) head.setAttribute("transform", `${place} scale(${headSize.toFixed(3)})`);
}

// Fade everything that does not touch the variable; dash the boxes of its likely Markov blanket.
function emphasise(node) {
  const fades = node !== null && (layout === wholeLayout || node !== state.node); // a neighbourhood is drawn to be seen
  for (const edge of world.querySelectorAll(".edges > .edge")) {
    const ends = [Number(edge.dataset.source), Number(edge.dataset.target)];
    const chosen = state.pair && ends.includes(state.pair[0]) && ends.includes(state.pair[1]);
    edge.classList.toggle("chosen", Boolean(chosen));
    edge.classList.toggle("faded", fades && !ends.includes(node));
  }
  for (const text of world.querySelectorAll(".names > text")) text.classList.toggle("chosen", Number(text.dataset.name) === state.node);
  for (const element of world.querySelectorAll(".node")) {
    const i = Number(element.dataset.node);
    element.classList.toggle("chosen", i === state.node || Boolean(state.pair?.includes(i)));
    element.classList.toggle("blanket", node !== null && i !== node && matrices.blankets[i][node] > 0.5);
  }
}

const nodeUnder = (event) => event.target.closest?.(".node")?.dataset.node;
picture.addEventListener("click", (event) => {
  const node = nodeUnder(event), edge = event.target.closest(".edges > .edge"), block = event.target.closest(".block");
  if (node !== undefined) chooseNode(Number(node));
  else if (edge) choosePair(Number(edge.dataset.source), Number(edge.dataset.target));
  else if (block && picture.classList.contains("as-blocks")) openBlock(layout.blocks[Number(block.dataset.block)]);
});
picture.addEventListener("keydown", (event) => {
  const node = nodeUnder(event);
  if (node === undefined || (event.key !== "Enter" && event.key !== " ")) return;
  event.preventDefault();
  chooseNode(Number(node));
});
picture.addEventListener("pointerover", (event) => nodeUnder(event) !== undefined && emphasise(Number(nodeUnder(event))));
picture.addEventListener("pointerout", (event) => nodeUnder(event) !== undefined && emphasise(state.node));
picture.addEventListener("focusin", (event) => nodeUnder(event) !== undefined && event.target.matches(":focus-visible") && showNode(Number(nodeUnder(event))));

function openBlock({ box: [left, top, right, bottom] }) {
  const scale = Math.min(box.width / (right - left), box.height / (bottom - top), 1);
  viewport.centre({ left, top, right, bottom }, Math.max(scale * 0.95, AS_BLOCKS));
}

// Bring a variable into view, large enough to be read.
function showNode(i) {
  const place = layout.at[i];
  if (!place) return;
  const { x, y, scale } = viewport.view, [px, py] = [x + scale * place[0], y + scale * place[1]];
  const inside = px > 0 && px < box.width && py > 0 && py < box.height;
  if (inside && scale >= NAMED) return;
  viewport.centre({ left: place[0], right: place[0], top: place[1], bottom: place[1] }, Math.max(scale, 0.9));
}
