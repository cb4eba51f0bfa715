// Nodes and edges of a graph at the positions of the shared layout; edges are { source, target, ... }.

const NODE_HEIGHT = 30, HEAD = 9, PORT_GAP = 13, PASSING = 7, MARGIN = 14;
const at = report.graph.positions, widths = report.graph.widths;
const bends = new Map(report.graph.bends.map((bend) => [`${bend.source},${bend.target}`, bend.points]));
const rows = new Map();
at.forEach(([, y], i) => rows.set(y, [...(rows.get(y) ?? []), i]));
// All that lines can touch: they bend at given points, or pass beside a node.
const reach = [
  ...at.flatMap(([x], i) => [x - widths[i] / 2 - PASSING, x + widths[i] / 2 + PASSING]),
  ...report.graph.bends.flatMap(({ points }) => points.map(([x]) => x)),
];
const frame = {
  left: Math.min(...reach) - MARGIN,
  right: Math.max(...reach) + MARGIN,
  top: Math.min(...at.map(([, y]) => y)) - NODE_HEIGHT / 2 - 38,
  bottom: Math.max(...at.map(([, y]) => y)) + NODE_HEIGHT / 2 + MARGIN,
};

// Where a line that wants to be at x can pass through a row of nodes.
function gapNear(x, y) {
  const taken = rows.get(y).map((i) => [at[i][0] - widths[i] / 2 - PASSING, at[i][0] + widths[i] / 2 + PASSING]);
  const free = (value) => taken.every(([low, high]) => value <= low || value >= high);
  if (free(x)) return x;
  const candidates = taken.flat().filter(free);
  return candidates.reduce((best, value) => (Math.abs(value - x) < Math.abs(best - x) ? value : best), candidates[0]);
}

function waypoints({ source, target }) {
  const known = bends.get(`${source},${target}`) ?? bends.get(`${target},${source}`)?.slice().reverse();
  if (known) return known;
  const [x0, y0] = at[source], [x1, y1] = at[target];
  const between = [...rows.keys()].filter((y) => (y - y0) * (y - y1) < 0).sort((a, b) => (y1 > y0 ? a - b : b - a));
  return between.map((y) => [gapNear(x0 + ((x1 - x0) * (y - y0)) / (y1 - y0), y), y]);
}

// Each edge gets its own place on the side of a box, ordered by where it comes from.
function withPorts(edges) {
  const routed = edges.map((edge) => {
    const [x0, y0] = at[edge.source], [x1, y1] = at[edge.target];
    const middle = waypoints(edge);
    return { edge, middle, down: y1 > y0, level: y1 === y0, ends: [null, null], towards: [middle[0]?.[0] ?? x1, middle.at(-1)?.[0] ?? x0] };
  });
  const sides = new Map();
  routed.forEach((route) => {
    [route.edge.source, route.edge.target].forEach((node, end) => {
      const top = route.level || route.down === (end === 1);
      const key = `${node},${top}`;
      sides.set(key, [...(sides.get(key) ?? []), { route, end, node, top }]);
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
    const lift = Math.min(44, 18 + 0.1 * Math.abs(x1 - x0));
    return `M${x0},${y0}C${x0},${y0 - lift} ${x1},${y1 - lift - shorten} ${x1},${y1 - shorten}`;
  }
  let path = `M${x0},${y0}`, [x, y] = [x0, y0];
  for (const [nextX, nextY] of [...middle, [x1, y1 + (down ? -shorten : shorten)]]) {
    const half = (y + nextY) / 2;
    path += `C${x},${half} ${nextX},${half} ${nextX},${nextY}`;
    [x, y] = [nextX, nextY];
  }
  return path;
}

function headPath({ ends: [, [x, y]], down, level }) {
  const back = down || level ? -HEAD : HEAD;
  return `M${x},${y}L${x - 4.2},${y + back}L${x + 4.2},${y + back}Z`;
}

// An SVG of all nodes and the given edges. An edge may have: headless, open, title, classes, width, opacity,
// dataset { name: value }, events. `nodeOptions(i)` gives the attributes of a node.
function drawGraph(edges, nodeOptions, label) {
  const picture = svg("svg", {
    viewBox: `${frame.left} ${frame.top} ${frame.right - frame.left} ${frame.bottom - frame.top}`,
    role: "group", "aria-label": label,
  });
  for (const route of withPorts(edges)) {
    const { edge } = route;
    const shorten = edge.headless ? 0 : HEAD - 1;
    const group = svg("g", { class: `edge ${edge.open ? "open" : ""} ${edge.classes ?? ""}`, opacity: edge.opacity ?? 1, ...edge.attributes },
      svg("path", { class: "touch", d: linePath(route, 0) }),
      svg("path", { class: "line", d: linePath(route, shorten), "stroke-width": edge.width ?? 1.6 }),
      edge.headless ? null : svg("path", { class: "head", d: headPath(route) }),
      edge.title ? svg("title", {}, edge.title) : null);
    picture.append(group);
  }
  names.forEach((full, i) => {
    const [x, y] = at[i];
    picture.append(svg("g", { class: "node", ...nodeOptions(i) },
      svg("rect", { x: x - widths[i] / 2, y: y - NODE_HEIGHT / 2, width: widths[i], height: NODE_HEIGHT, rx: 7 }),
      svg("text", { x, y }, report.graph.labels[i]),
      svg("title", {}, full)));
  });
  return picture;
}
