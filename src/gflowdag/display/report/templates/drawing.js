// Nodes and edges of a graph in a layout; edges are { source, target, ... }.
//
// A layout has `at` (places of the nodes; null for those that are not drawn), `bends` (points of edges by
// "source,target"), `group` (a number for each node: an edge between two groups runs straight).

const NODE_HEIGHT = 30, HEAD = 9, PORT_GAP = 13, PASSING = 7, MARGIN = 14, LIFT = 44;
const widths = report.graph.widths;

const wholeLayout = makeLayout(
  report.graph.positions,
  new Map(report.graph.bends.map((bend) => [`${bend.source},${bend.target}`, bend.points])),
  report.graph.blocks);

function makeLayout(at, bends = new Map(), blocks = []) {
  const group = at.map(() => 0);
  blocks.forEach(({ members }, block) => members.forEach((i) => { group[i] = block; }));
  const rows = blocks.length ? blocks.map(() => new Map()) : [new Map()]; // of each group: y → its nodes
  at.forEach((place, i) => place && rows[group[i]].set(place[1], [...(rows[group[i]].get(place[1]) ?? []), i]));
  return { at, bends, blocks, group, rows };
}

// Where the nodes are drawn, and all that lines can touch: they bend at given points, or pass beside a node.
function frameOf({ at, bends, blocks }, isDrawn = () => true) {
  const xs = [], ys = [];
  at.forEach((place, i) => {
    if (!place || !isDrawn(i)) return;
    xs.push(place[0] - widths[i] / 2 - PASSING, place[0] + widths[i] / 2 + PASSING);
    ys.push(place[1] - NODE_HEIGHT / 2, place[1] + NODE_HEIGHT / 2);
  });
  for (const [edge, points] of bends)
    if (edge.split(",").every((i) => isDrawn(Number(i)))) xs.push(...points.map(([x]) => x));
  for (const { members, box } of blocks)
    if (members.some(isDrawn)) {
      xs.push(box[0], box[2]);
      ys.push(box[1], box[3]);
    }
  if (!xs.length) return { left: 0, top: 0, right: 100, bottom: 100 };
  const lift = LIFT - MARGIN + HEAD - (blocks.length ? 16 : 0); // of edges between neighbours in the first row
  return {
    left: Math.min(...xs) - MARGIN, right: Math.max(...xs) + MARGIN,
    top: Math.min(...ys) - lift - MARGIN, bottom: Math.max(...ys) + MARGIN,
  };
}

// Where a line that wants to be at x can pass through a row of nodes.
function gapNear(layout, row, x) {
  const taken = row.map((i) => [layout.at[i][0] - widths[i] / 2 - PASSING, layout.at[i][0] + widths[i] / 2 + PASSING]);
  const free = (value) => taken.every(([low, high]) => value <= low || value >= high);
  if (free(x)) return x;
  const candidates = taken.flat().filter(free);
  return candidates.reduce((best, value) => (Math.abs(value - x) < Math.abs(best - x) ? value : best), candidates[0]);
}

function waypoints(layout, { source, target }) {
  const known = layout.bends.get(`${source},${target}`) ?? layout.bends.get(`${target},${source}`)?.slice().reverse();
  if (known) return known;
  const [x0, y0] = layout.at[source], [x1, y1] = layout.at[target];
  if (layout.group[source] !== layout.group[target]) return [];
  const rows = layout.rows[layout.group[source]];
  const between = [...rows.keys()].filter((y) => (y - y0) * (y - y1) < 0).sort((a, b) => (y1 > y0 ? a - b : b - a));
  return between.map((y) => [gapNear(layout, rows.get(y), x0 + ((x1 - x0) * (y - y0)) / (y1 - y0)), y]);
}

// Each edge gets its own place on the side of a box, ordered by where it comes from.
function withPorts(layout, edges) {
  const { at } = layout;
  const routed = edges.map((edge) => {
    const [x0, y0] = at[edge.source], [x1, y1] = at[edge.target];
    const middle = waypoints(layout, edge);
    return { edge, middle, down: y1 > y0, level: y1 === y0, ends: [null, null], towards: [middle[0]?.[0] ?? x1, middle.at(-1)?.[0] ?? x0] };
  });
  const sides = new Map();
  routed.forEach((route) => {
    [route.edge.source, route.edge.target].forEach((node, end) => {
      const top = route.level || route.down === (end === 1);
      const key = `${node},${top}`;
      if (!sides.has(key)) sides.set(key, []);
      sides.get(key).push({ route, end, node, top });
    });
  });
  for (const ports of sides.values()) {
    ports.sort((a, b) => a.route.towards[a.end] - b.route.towards[b.end] || a.route.edge.source - b.route.edge.source);
    ports.forEach(({ route, end, node, top }, index) => {
      const gap = Math.min(PORT_GAP, (widths[node] - 14) / Math.max(ports.length - 1, 1));
      const x = at[node][0] + (index - (ports.length - 1) / 2) * gap;
      route.ends[end] = [x, at[node][1] + (top ? -1 : 1) * (NODE_HEIGHT / 2)];
    });
  }
  return routed;
}

function linePath({ ends: [[x0, y0], [x1, y1]], middle, down, level }, shorten) {
  if (level) {
    const lift = Math.min(LIFT, 18 + 0.1 * Math.abs(x1 - x0));
    return `M${round(x0)},${round(y0)}C${round(x0)},${round(y0 - lift)} ${round(x1)},${round(y1 - lift - shorten)} ${round(x1)},${round(y1 - shorten)}`;
  }
  let path = `M${round(x0)},${round(y0)}`, [x, y] = [x0, y0];
  for (const [nextX, nextY] of [...middle, [x1, y1 + (down ? -shorten : shorten)]]) {
    const half = round((y + nextY) / 2);
    path += `C${round(x)},${half} ${round(nextX)},${half} ${round(nextX)},${round(nextY)}`;
    [x, y] = [nextX, nextY];
  }
  return path;
}

const round = (value) => Math.round(10 * value) / 10;

function headPath({ ends: [, [x, y]], down, level }) {
  const back = down || level ? -HEAD : HEAD;
  return `M${round(x)},${round(y)}L${round(x - 4.2)},${round(y + back)}L${round(x + 4.2)},${round(y + back)}Z`;
}

// The given edges, nodes and their names as three SVG groups: no box covers a name. An edge may have: headless, open, title, classes, width, opacity,
// attributes { name: value }. `nodeAttributes(i)` gives the attributes of a node.
function drawParts(layout, edges, nodes, nodeAttributes) {
  const lines = svg("g", { class: "edges" }), boxes = svg("g", { class: "nodes" }), texts = svg("g", { class: "names" });
  for (const route of withPorts(layout, edges)) {
    const { edge } = route;
    const between = layout.group[edge.source] !== layout.group[edge.target];
    lines.append(svg("g", { class: `edge${edge.open ? " open" : ""}${between ? " between" : ""} ${edge.classes ?? ""}`, opacity: edge.opacity ?? 1, ...edge.attributes },
      svg("path", { class: "touch", d: linePath(route, 0) }),
      svg("path", { class: "line", d: linePath(route, edge.headless ? 0 : HEAD - 1), "stroke-width": edge.width ?? 1.6 }),
      edge.headless ? null : svg("path", { class: "head", d: headPath(route) }),
      edge.title ? svg("title", {}, edge.title) : null));
  }
  for (const i of nodes) {
    const [x, y] = layout.at[i];
    boxes.append(svg("g", { class: "node", ...nodeAttributes(i) },
      svg("rect", { x: round(x - widths[i] / 2), y: round(y - NODE_HEIGHT / 2), width: widths[i], height: NODE_HEIGHT, rx: 7 }),
      svg("title", {}, names[i])));
    texts.append(svg("text", { x: round(x), y: round(y), "data-name": i }, report.graph.labels[i]));
  }
  return [lines, boxes, texts];
}

// A picture of all nodes and the given edges, as large as they are.
function drawGraph(edges, label) {
  const frame = frameOf(wholeLayout);
  return svg("svg", {
    viewBox: `${frame.left} ${frame.top} ${frame.right - frame.left} ${frame.bottom - frame.top}`,
    role: "group", "aria-label": label,
  }, ...drawParts(wholeLayout, edges, names.map((_, i) => i), () => ({})));
}
