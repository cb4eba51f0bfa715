// The graph panel: slider, drawing, cycle warning, and what is known about a chosen variable or pair.

const OPEN_SHARE = 0.25; // the reverse direction has at least this share: the head is hollow
const LISTED = 5, WORTH_LISTING = 0.05;
const everyEdge = names.flatMap((_, i) => names.map((_, j) => [i, j])).filter(([i, j]) => i !== j);
const edgesAbove = (threshold) => everyEdge.filter(([i, j]) => probability[i][j] > threshold);

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
  if (trueEdge[i][j]) return "hit";
  return trueEdge[j][i] ? "reversed" : "false";
}

function drawnEdges({ threshold, compare, pair }) {
  const drawn = edgesAbove(threshold).map(([i, j]) => {
    const p = probability[i][j], reverse = probability[j][i];
    return {
      source: i, target: j, open: reverse / (p + reverse) >= OPEN_SHARE,
      width: (0.8 + 2.6 * p).toFixed(2), opacity: (0.3 + 0.7 * p).toFixed(2), classes: compare ? comparison(i, j) : "",
      title: `${names[i]} → ${names[j]}: ${shown(p)}${spread(report.graph.errors[i][j])}; reverse ${shown(reverse)}`,
    };
  });
  const present = new Set(drawn.map(({ source, target }) => `${source},${target}`));
  const absent = ([i, j]) => !present.has(`${i},${j}`);
  if (compare)
    for (const [i, j] of report.truth.edges.filter(([i, j]) => absent([i, j]) && absent([j, i])))
      drawn.push({ source: i, target: j, classes: "missed", title: `missed: ${names[i]} → ${names[j]}: ${shown(probability[i][j])}` });
  if (pair && absent(pair) && absent([pair[1], pair[0]]))
    drawn.push({ source: pair[0], target: pair[1], classes: "hidden-by-threshold", title: `below the threshold: ${shown(probability[pair[0]][pair[1]])}` });
  return drawn.map((edge) => ({
    ...edge, attributes: { "data-source": edge.source, "data-target": edge.target, onclick: () => choosePair(edge.source, edge.target) },
  }));
}

function redraw(current) {
  const focused = document.activeElement?.closest?.("#drawing .node")?.dataset.node;
  const picture = drawGraph(drawnEdges(current), (i) => ({
    tabindex: 0, role: "button", "data-node": i, "aria-label": names[i], "aria-pressed": String(current.node === i),
    ...onActivate(() => chooseNode(i)), onpointerenter: () => emphasise(i), onpointerleave: () => emphasise(state.node),
  }), "Graph of the edges above the threshold");
  const width = frame.right - frame.left;
  picture.setAttribute("width", width);
  picture.setAttribute("style", `width: min(100%, ${Math.round(width * 1.25)}px); min-width: ${Math.round(width * 0.6)}px`);
  picture.id = "graph-picture";
  byId("drawing").replaceChildren(picture);
  if (focused !== undefined) picture.querySelector(`[data-node="${focused}"]`).focus();
  emphasise(current.node);
}

// Fade everything that does not touch the variable; dash the boxes of its likely Markov blanket.
function emphasise(node) {
  for (const edge of document.querySelectorAll("#drawing .edge")) {
    const ends = [Number(edge.dataset.source), Number(edge.dataset.target)];
    const chosen = state.pair && ends.includes(state.pair[0]) && ends.includes(state.pair[1]);
    edge.classList.toggle("chosen", Boolean(chosen));
    edge.classList.toggle("faded", node !== null && !ends.includes(node));
  }
  for (const box of document.querySelectorAll("#drawing .node")) {
    const i = Number(box.dataset.node);
    box.classList.toggle("chosen", i === state.node || Boolean(state.pair?.includes(i)));
    box.classList.toggle("blanket", node !== null && i !== node && report.graph.blankets[i][node] > 0.5);
  }
}

function explainThreshold({ threshold }) {
  const above = edgesAbove(threshold);
  const falseEdges = sum(above.map(([i, j]) => 1 - probability[i][j]));
  const missing = sum(everyEdge.map(([i, j]) => probability[i][j])) - sum(above.map(([i, j]) => probability[i][j]));
  const expected = ` ${falseEdges.toFixed(1)} of them are expected to be false; ${missing.toFixed(1)} true ones are expected to be left out.`;
  byId("threshold-value").textContent = threshold.toFixed(2);
  byId("threshold-meaning").textContent = `${plural(above.length, "edge")} shown.${report.graph.vouched ? expected : ""}`;
  const cycle = findCycle(above);
  byId("cycle-warning").hidden = cycle === null;
  byId("cycle-warning").textContent = cycle
    ? `These edges contain a cycle (${[...cycle, cycle[0]].map((i) => names[i]).join(" → ")}): no single graph has all of them. Raise the threshold to see one graph.`
    : "";
}

function ranked(values, errors) {
  return values.map((p, i) => ({ i, p, error: errors[i] })).filter(({ p }) => p >= WORTH_LISTING).sort((a, b) => b.p - a.p);
}

function listing(title, found) {
  if (!found.length) return [html("h3", {}, title), html("p", { class: "muted" }, "none above 0.05")];
  const items = found.slice(0, LISTED).map(({ i, p, error }) =>
    html("li", { style: `--share: ${p.toFixed(3)}` },
      html("button", { type: "button", onclick: () => chooseNode(i), title: names[i] }, name(i)), `${shown(p)}${spread(error)}`));
  const rest = found.length > LISTED ? [html("p", { class: "muted" }, `and ${found.length - LISTED} more`)] : [];
  return [html("h3", {}, title), html("ol", {}, ...items), ...rest];
}

const column = (matrix, j) => matrix.map((row) => row[j]);

function nodeDetail(i) {
  const { edges, errors, paths, pathErrors, blankets, blanketErrors } = report.graph;
  return [
    html("p", { class: "title name" }, names[i]),
    ...listing("Parents", ranked(column(edges, i), column(errors, i))),
    ...listing("Children", ranked(edges[i], errors[i])),
    ...listing("Markov blanket", ranked(blankets[i], blanketErrors[i])),
    ...listing("Caused by, through some path", ranked(column(paths, i), column(pathErrors, i))),
    ...listing("Causes, through some path", ranked(paths[i], pathErrors[i])),
  ];
}

function pairDetail([i, j]) {
  const { errors, paths, pathErrors, blankets, blanketErrors } = report.graph;
  const facts = [
    [`${names[i]} → ${names[j]}`, probability[i][j], errors[i][j]],
    [`${names[j]} → ${names[i]}`, probability[j][i], errors[j][i]],
    ["no edge between them", Math.max(0, 1 - probability[i][j] - probability[j][i]), 0],
    [`some directed path from ${names[i]}`, paths[i][j], pathErrors[i][j]],
    [`some directed path from ${names[j]}`, paths[j][i], pathErrors[j][i]],
    ["in each other’s Markov blanket", blankets[i][j], blanketErrors[i][j]],
  ];
  return [
    html("p", { class: "title" }, name(i), " and ", name(j)),
    html("ol", {}, ...facts.map(([text, p, error]) =>
      html("li", { style: `--share: ${p.toFixed(3)}` }, html("span", { class: "name" }, text), `${shown(p)}${spread(error)}`))),
  ];
}

function showDetail({ node, pair }) {
  const hint = [html("p", { class: "muted" }, "Choose a variable to see its parents, its Markov blanket and what it causes; choose an edge to see both directions.")];
  byId("detail").replaceChildren(...(node !== null ? nodeDetail(node) : pair ? pairDetail(pair) : hint));
}

function showLegend({ compare }) {
  const coloured = (kind, text) => html("span", { class: kind }, text);
  const truth = [coloured("good", "hit"), coloured("unsure", "reversed"), coloured("bad", "not in the true graph"), html("span", {}, "dashed: missed")];
  byId("legend").replaceChildren(
    ...(compare ? truth : []),
    html("span", {}, "thicker: more probable"), html("span", {}, "hollow head: direction open (the reverse has ¼ or more)"),
    html("span", {}, "dashed box: in the Markov blanket of the chosen variable"));
}

byId("threshold").addEventListener("input", (event) => change({ threshold: Number(event.target.value) }));
byId("show-truth")?.addEventListener("change", (event) => change({ compare: event.target.checked }));
onChange(redraw);
onChange(explainThreshold);
onChange(showDetail);
onChange(showLegend);
