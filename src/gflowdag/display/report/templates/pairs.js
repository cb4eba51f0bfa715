// The table of all pairs: sortable, filtered by name, linked with the graph.

const FIRST_ROWS = 20, MORE_ROWS = 500;
const assumedPairs = new Set(report.assumed.map(([i, j]) => i * size + j));
// The more probable direction of each pair comes first, and the most probable pair on top.
const pairRows = names.flatMap((_, a) => names.slice(0, a).map((_, b) => {
  const [i, j] = probability[a][b] > probability[b][a] ? [a, b] : [b, a];
  const forward = probability[i][j], reverse = probability[j][i];
  return { i, j, forward, reverse, absent: clamp(1 - forward - reverse, 0, 1), error: errorOf(i, j), assumed: assumedPairs.has(b * size + a) };
}));
const COLUMNS = [
  { title: "Pair", value: ({ i, j }) => `${names[i]} ${names[j]}`.toLowerCase(), cell: ({ i, j }) => [name(i), " → ", name(j)] },
  { title: "→", label: "probability of the direction as written", value: (row) => row.forward, cell: (row) => [shown(row.forward)] },
  { title: "←", label: "probability of the reverse direction", value: (row) => row.reverse, cell: (row) => [shown(row.reverse)] },
  { title: "none", label: "probability of no edge", value: (row) => row.absent, cell: (row) => [shown(row.absent)] },
];
if (pairRows.some(({ assumed }) => assumed))
  COLUMNS.push({ title: "direction", label: "assumed where the score forces the direction, or others that it follows from", value: ({ assumed }) => (assumed ? 1 : 0), cell: ({ assumed }) => [assumed ? "assumed" : ""] });
if (!report.graph.exact)
  COLUMNS.push({ title: "± error", label: "Monte-Carlo standard error of →", value: (row) => row.error ?? 0, cell: (row) => [row.error === null ? "–" : shown(row.error)] });
if (matrices.unweighted)
  COLUMNS.push({ title: "→ unweighted", label: "probability of → before importance weights", value: ({ i, j }) => matrices.unweighted[i][j], cell: ({ i, j }) => [shown(matrices.unweighted[i][j])] });
if (report.truth)
  COLUMNS.push({ title: "truth", label: "connection in the true graph", value: ({ i, j }) => (isTrue(i, j) ? 2 : isTrue(j, i) ? 1 : 0), cell: ({ i, j }) => [isTrue(i, j) ? "→" : isTrue(j, i) ? "←" : ""] });

const sorting = { column: 1, descending: true };
let rowsShown = FIRST_ROWS;

function stack({ forward, reverse }) {
  const bar = (share) => html("i", { style: `width: ${(100 * share).toFixed(1)}%` });
  return html("td", { class: "bar", "aria-hidden": "true" }, html("div", { class: "stack" }, bar(forward), bar(reverse)));
}

function tableHead() {
  const cells = COLUMNS.map(({ title, label }, index) => {
    const order = sorting.column === index ? (sorting.descending ? "descending" : "ascending") : "none";
    const sort = () => {
      sorting.descending = sorting.column === index ? !sorting.descending : index > 0;
      sorting.column = index;
      fillTable();
      byId("pair-table").querySelectorAll("th button")[index].focus();
    };
    return html("th", { scope: "col", "aria-sort": order }, html("button", { type: "button", title: label ?? "", onclick: sort }, title));
  });
  return html("thead", {}, html("tr", {}, ...cells, html("th", { class: "bar", scope: "col", "aria-hidden": "true" })));
}

function fillTable() {
  const typed = byId("filter").value.trim(), wanted = typed.toLowerCase();
  const { value } = COLUMNS[sorting.column], sign = sorting.descending ? -1 : 1;
  const found = pairRows
    .filter(({ i, j }) => names[i].toLowerCase().includes(wanted) || names[j].toLowerCase().includes(wanted))
    .sort((a, b) => (value(a) < value(b) ? -sign : value(a) > value(b) ? sign : 0));
  const visible = found.slice(0, rowsShown);
  const lines = visible.map((row) =>
    html("tr", { tabindex: 0, "data-pair": `${row.i},${row.j}`, ...onActivate(() => choosePair(row.i, row.j)) },
      ...COLUMNS.map(({ cell }) => html("td", {}, ...cell(row))), stack(row)));
  byId("pair-table").replaceChildren(tableHead(), html("tbody", {}, ...lines));
  byId("no-pairs").textContent = found.length || !typed ? "" : `No pair has a variable whose name contains “${typed}”.`;
  byId("more-pairs").hidden = found.length <= FIRST_ROWS;
  byId("more-pairs").textContent = visible.length === found.length ? `Show the first ${FIRST_ROWS} only`
    : found.length - visible.length > MORE_ROWS ? `Show ${MORE_ROWS} more of ${found.length.toLocaleString("en")} pairs` : `Show all ${found.length} pairs`;
  markRows(state);
}

function markRows({ threshold, pair, node }) {
  for (const line of document.querySelectorAll("#pair-table tbody tr")) {
    const [i, j] = line.dataset.pair.split(",").map(Number);
    line.classList.toggle("below", Math.max(probability[i][j], probability[j][i]) <= threshold);
    line.classList.toggle("chosen", Boolean(pair?.includes(i) && pair.includes(j)) || i === node || j === node);
  }
}

byId("filter").addEventListener("input", fillTable);
byId("more-pairs").addEventListener("click", () => {
  const all = byId("pair-table").querySelectorAll("tbody tr").length === rowsShown;
  rowsShown = all ? rowsShown + MORE_ROWS : FIRST_ROWS;
  fillTable();
});
onChange(markRows);
