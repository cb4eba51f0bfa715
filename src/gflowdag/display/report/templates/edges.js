// The edges that the slider shows, what is expected of them, and the variables around a chosen one.

const OPEN_SHARE = 0.25; // the reverse direction has at least this share: the head is hollow
const LEAST_THRESHOLD = 0.01, MOST_DRAWN = 2500;

let expectedEdges = 0;
const likelyEdges = []; // all that the slider can show, the most probable first
names.forEach((_, i) => probability[i].forEach((p, j) => {
  if (i === j) return;
  expectedEdges += p;
  if (p > LEAST_THRESHOLD) likelyEdges.push([i, j]);
}));
likelyEdges.sort(([a, b], [c, d]) => probability[c][d] - probability[a][b]);

function edgesAbove(threshold) {
  const end = likelyEdges.findIndex(([i, j]) => probability[i][j] <= threshold);
  return end < 0 ? likelyEdges : likelyEdges.slice(0, end);
}

// A directed cycle among the edges, as a list of nodes, or null.
function findCycle(edges) {
  const next = names.map(() => []);
  for (const [i, j] of edges) next[i].push(j);
  const mark = names.map(() => 0), path = [];
  const visit = (i) => {
    mark[i] = 1;
    path.push(i);
    for (const j of next[i]) {
      if (mark[j] === 1) return path.slice(path.indexOf(j));
      const cycle = mark[j] === 0 ? visit(j) : null;
      if (cycle) return cycle;
    }
    mark[i] = 2;
    path.pop();
    return null;
  };
  for (let i = 0; i < size; i += 1) {
    const cycle = mark[i] === 0 ? visit(i) : null;
    if (cycle) return cycle;
  }
  return null;
}

function comparison(i, j) {
  if (isTrue(i, j)) return "hit";
  return isTrue(j, i) ? "reversed" : "false";
}

function drawnEdges({ threshold, compare, pair }) {
  const drawn = edgesAbove(threshold).slice(0, MOST_DRAWN).map(([i, j]) => {
    const p = probability[i][j], reverse = probability[j][i];
    return {
      source: i, target: j, open: reverse / (p + reverse) >= OPEN_SHARE,
      width: (0.8 + 2.6 * p).toFixed(2), opacity: (0.3 + 0.7 * p).toFixed(2), classes: compare ? comparison(i, j) : "",
      title: `${names[i]} → ${names[j]}: ${shown(p)}${spread(errorOf(i, j))}; reverse ${shown(reverse)}`,
    };
  });
  const present = new Set(drawn.map(({ source, target }) => source * size + target));
  const absent = (i, j) => !present.has(i * size + j) && !present.has(j * size + i);
  if (compare)
    for (const [i, j] of report.truth.edges.filter(([i, j]) => absent(i, j)))
      drawn.push({ source: i, target: j, classes: "missed", title: `missed: ${names[i]} → ${names[j]}: ${shown(probability[i][j])}` });
  if (pair && absent(...pair))
    drawn.push({ source: pair[0], target: pair[1], classes: "hidden-by-threshold", title: `below the threshold: ${shown(probability[pair[0]][pair[1]])}` });
  return drawn.map((edge) => ({ ...edge, attributes: { "data-source": edge.source, "data-target": edge.target } }));
}

// The variables at most `steps` edges away, with their height: parents of a variable stand above it, children below.
function neighbourhood(node, steps, edges) {
  const height = new Map([[node, 0]]);
  for (let step = 0; step < steps; step += 1) {
    const reached = [...height.keys()];
    for (const { source, target } of edges) {
      if (reached.includes(target) && !height.has(source)) height.set(source, height.get(target) - 1);
      if (reached.includes(source) && !height.has(target)) height.set(target, height.get(source) + 1);
    }
  }
  return height;
}

const ROW_HEIGHT = 84, ROW_WIDTH = 860, NODE_GAP = 18;

// A small drawing of a neighbourhood: a row for each height, neighbours near each other.
function neighbourhoodLayout(height, edges) {
  const at = names.map(() => null);
  const levels = [...new Set(height.values())].sort((a, b) => Math.abs(a) - Math.abs(b) || a - b);
  const edge = { top: 0, bottom: 0 }; // the next free rows above and below
  for (const level of levels) {
    const nodes = [...height.keys()].filter((i) => height.get(i) === level);
    const pull = new Map(nodes.map((i) => {
      const placed = edges.flatMap(({ source, target }) => (source === i ? [target] : target === i ? [source] : [])).filter((j) => at[j]);
      return [i, placed.length ? sum(placed.map((j) => at[j][0])) / placed.length : 0];
    }));
    nodes.sort((a, b) => pull.get(a) - pull.get(b) || a - b);
    const rows = Math.ceil(sum(nodes.map((i) => widths[i] + NODE_GAP)) / ROW_WIDTH);
    const perRow = Math.ceil(nodes.length / rows);
    for (let first = 0; first < nodes.length; first += perRow) {
      const row = nodes.slice(first, first + perRow);
      const y = ROW_HEIGHT * (level < 0 ? (edge.top -= 1) : edge.bottom++);
      let x = -sum(row.map((i) => widths[i] + NODE_GAP)) / 2;
      for (const i of row) {
        at[i] = [x + (widths[i] + NODE_GAP) / 2, y];
        x += widths[i] + NODE_GAP;
      }
    }
  }
  return makeLayout(at);
}
