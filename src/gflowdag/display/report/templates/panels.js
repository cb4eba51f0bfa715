// Equivalence classes, distributions, traces, the true graph, other methods.

const DRAWN = { class: "graph of the class", allowed: "graph of the class that prior knowledge allows", sampled: "sampled graph of the class" };

// What a drawing says of directions. What sampled graphs share need not hold for others of their class.
function directionsText({ basis, graphs, maybeChance, directed, undirected }) {
  if (!directed.length && !undirected.length) return "No edges.";
  const listed = undirected.slice(0, 8).map(([i, j]) => `${names[i]} – ${names[j]}`).join(", ");
  const open = `${listed}${undirected.length > 8 ? ` and ${undirected.length - 8} more` : ""}`;
  if (basis !== "sampled") return undirected.length ? `Open direction: ${open}.` : "Every edge has one direction.";
  const draws = graphs === 1 ? "the only draw" : `all ${plural(graphs, "draw")}`;
  const found = undirected.length ? `Sampled in both directions: ${open}.` : `Every edge has one direction in ${draws}.`;
  if (!maybeChance) return found;
  return `${found} ${undirected.length ? `Only ${plural(graphs, "draw")}: the other directions` : "That"} may be chance.`;
}

const cardWidth = () => frameOf(wholeLayout).right - frameOf(wholeLayout).left;

// Of many variables there is no drawing: how a class differs from the most probable one.
function differencesText(drawing) {
  const [first] = report.classes.shown;
  if (drawing === first) return html("p", {}, "Too many variables for a small drawing; the other classes are compared with this one.");
  const pairs = ({ directed, undirected }) => new Map([...directed.map(([i, j]) => [[Math.min(i, j), Math.max(i, j)].join(), `${names[i]} → ${names[j]}`]),
    ...undirected.map(([i, j]) => [[Math.min(i, j), Math.max(i, j)].join(), `${names[i]} – ${names[j]}`])]);
  const ours = pairs(drawing), theirs = pairs(first);
  const only = (some, others) => [...some].filter(([key]) => !others.has(key)).map(([, text]) => text);
  const turned = [...ours].filter(([key, text]) => theirs.has(key) && theirs.get(key) !== text).map(([, text]) => text);
  const list = (title, found) => (found.length ? [html("p", {}, html("strong", {}, `${title}: `), `${found.slice(0, 8).join(", ")}${found.length > 8 ? ` and ${found.length - 8} more` : ""}.`)] : []);
  return html("div", {}, ...list("Has, unlike the first", only(ours, theirs)), ...list("Lacks", only(theirs, ours)), ...list("Directed otherwise", turned));
}

function classCard(drawing, rank) {
  const { probability: mass, logScore, sampled, members, basis, graphs, directed, undirected } = drawing;
  const edges = [
    ...directed.map(([i, j]) => ({ source: i, target: j, title: `${names[i]} → ${names[j]} in every ${DRAWN[basis]}` })),
    ...undirected.map(([i, j]) => {
      const [source, target] = wholeLayout.at[i][1] <= wholeLayout.at[j][1] ? [i, j] : [j, i];
      return { source, target, headless: true, title: `${names[i]} – ${names[j]}: either direction` };
    }),
  ];
  const picture = size > WIDE ? differencesText(drawing) : drawGraph(edges, `Equivalence class ${rank + 1}`);
  if (size <= WIDE) picture.setAttribute("style", `max-width: ${Math.round(1.1 * cardWidth())}px`);
  const count = (number) => number.toLocaleString("en");
  const found = basis === "allowed" ? `${count(graphs)} of them allowed, ${count(sampled)}` : `${count(sampled)} of them`;
  return html("article", { class: "card" },
    html("h3", {}, `${rank + 1}. ${percent(mass)}`),
    html("p", { class: "muted" }, `${plural(members, "graph")}, ${found} sampled; ${plural(directed.length + undirected.length, "edge")}${logScore === null ? "" : `; log score ${minus(logScore.toFixed(2))}`}`),
    picture,
    html("p", {}, directionsText(drawing)));
}

function showClasses() {
  const { shown: classes, total, mass } = report.classes;
  byId("class-summary").textContent =
    `${total.toLocaleString("en")} ${total === 1 ? "class was" : "classes were"} sampled; the ${classes.length === 1 ? "one" : `${classes.length} most probable`} below ${classes.length === 1 ? "holds" : "hold"} ${percent(mass)} of the probability.${mass < 0.05 ? " No class stands out: read the edges, not the classes." : ""}`;
  byId("class-cards").setAttribute("style", `--card: ${size > WIDE ? 320 : Math.round(Math.max(320, 0.62 * cardWidth()))}px`);
  byId("class-cards").replaceChildren(...classes.map(classCard));
}

function showDistributions() {
  const { edges, scores } = report.distributions;
  const ends = [...edges.mass, 0].map((_, k) => edges.first + k - 0.5);
  const counts = histogram("Number of edges", "edges in a graph", ends, edges.mass, { wholeX: true });
  rule(counts, edges.mean, `mean ${edges.mean.toFixed(1)}`);
  const figures = [counts.figure];
  if (scores) {
    const chart = histogram("Log score", "log prior + log marginal likelihood", scores.ends, scores.mass, {
      x: [scores.ends[0], Math.max(scores.best, scores.ends.at(-1))],
    });
    rule(chart, scores.best, `best graph ${minus(scores.best.toFixed(1))}`);
    figures.push(chart.figure);
  }
  byId("distribution-charts").replaceChildren(...figures);
}

function showTraces() {
  byId("trace-charts").replaceChildren(...report.traces.map(({ title, axis, x, lines }) =>
    linesChart(title, axis, "", lines.map((line) => line.map((y, k) => [x[k], y]))).figure));
}

function showTruth() {
  const { roc, pr, base } = report.truth;
  const unit = { x: [0, 1], y: [0, 1] };
  const diagonal = [[0, 0], [1, 1]], level = [[0, base], [1, base]];
  const rocChart = linesChart("ROC curve", "false positive rate", "true positive rate", [...roc.map(({ points }) => points), diagonal], unit);
  const prChart = linesChart("Precision and recall", "recall", "precision", [...pr.map(({ points }) => points), level], unit);
  const key = [...roc.map(({ name: method }) => method), "chance"];
  for (const chart of [rocChart, prChart]) {
    chart.picture.lastElementChild.setAttribute("style", REFERENCE);
    const legend = seriesKey(key);
    const swatch = legend.lastElementChild.firstElementChild;
    swatch.setAttribute("style", REFERENCE);
    swatch.classList.add("dashed");
    chart.figure.append(legend);
  }
  byId("truth-charts").replaceChildren(rocChart.figure, prChart.figure);
  onChange(({ threshold }) => {
    const kinds = edgesAbove(threshold).map(([i, j]) => comparison(i, j));
    const count = (kind) => kinds.filter((found) => found === kind).length;
    const touched = new Set(edgesAbove(threshold).flatMap(([i, j]) => [`${i},${j}`, `${j},${i}`]));
    const missed = report.truth.edges.filter(([i, j]) => !touched.has(`${i},${j}`)).length;
    byId("truth-counts").textContent =
      `Above ${threshold.toFixed(2)}: ${plural(count("hit"), "hit")}, ${count("reversed")} reversed, ${missed} missed of ${plural(report.truth.edges.length, "true edge")}; ${plural(count("false"), "edge")} that the true graph does not have.`;
  });
}

function showMethods() {
  const methods = report.methods.map(({ name: method, matrix }) => ({ method, edges: matrices[matrix] }));
  const every = names.flatMap((_, i) => names.map((_, j) => [i, j])).filter(([i, j]) => i !== j);
  const told = size <= WIDE ? every : every.filter(([i, j]) => Math.max(probability[i][j], ...methods.map(({ edges }) => edges[i][j])) > LEAST_THRESHOLD);
  const charts = methods.map(({ method, edges }) => {
    const chart = axes({ title: `${method} against ${report.method}`, xLabel: `edge probability by ${report.method}`, yLabel: `by ${method}`, x: [0, 1], y: [0, 1] });
    chart.picture.append(svg("path", { class: "series", style: REFERENCE, d: `M${chart.toX(0)},${chart.toY(0)}L${chart.toX(1)},${chart.toY(1)}` }));
    for (const [i, j] of told)
      chart.picture.append(svg("circle", { class: "dot", style: seriesColour(0), r: 3, cx: chart.toX(probability[i][j]).toFixed(1), cy: chart.toY(edges[i][j]).toFixed(1) },
        svg("title", {}, `${names[i]} → ${names[j]}: ${shown(probability[i][j])} and ${shown(edges[i][j])}`)));
    return chart.figure;
  });
  byId("method-charts").replaceChildren(...charts);
  const gap = ([i, j]) => Math.max(...methods.map(({ edges }) => Math.abs(edges[i][j] - probability[i][j])));
  const most = [...every].sort((a, b) => gap(b) - gap(a)).slice(0, 10);
  const titles = ["Edge", report.method, ...methods.map(({ method }) => method)];
  byId("method-table").replaceChildren(
    html("thead", {}, html("tr", {}, ...titles.map((title) => html("th", { scope: "col" }, title)))),
    html("tbody", {}, ...most.map(([i, j]) => html("tr", {}, html("td", {}, name(i), " → ", name(j)), html("td", {}, shown(probability[i][j])),
      ...methods.map(({ edges }) => html("td", {}, shown(edges[i][j])))))));
}
