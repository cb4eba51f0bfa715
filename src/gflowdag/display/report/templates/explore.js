// The controls of the graph: threshold, search, neighbourhood, what is hidden, full screen.

function explainThreshold({ threshold }) {
  const above = edgesAbove(threshold);
  const falseEdges = sum(above.map(([i, j]) => 1 - probability[i][j]));
  const missing = Math.max(0, expectedEdges - sum(above.map(([i, j]) => probability[i][j])));
  const expected = ` ${falseEdges.toFixed(1)} of them are expected to be false; ${missing.toFixed(1)} true ones are expected to be left out.`;
  const most = above.length > MOST_DRAWN ? ` The ${MOST_DRAWN.toLocaleString("en")} most probable are drawn.` : "";
  byId("threshold-value").textContent = threshold.toFixed(2);
  byId("threshold-meaning").textContent = `${plural(above.length, "edge")} shown.${report.graph.vouched ? expected : ""}${most}`;
  const cycle = findCycle(above);
  byId("cycle-warning").hidden = cycle === null;
  byId("cycle-warning").textContent = cycle
    ? `These edges contain a cycle (${[...cycle, cycle[0]].map((i) => names[i]).join(" → ")}): no single graph has all of them. Raise the threshold to see one graph.`
    : "";
}

// Variables whose names contain a text, the best match first.
function matching(text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return [];
  const rank = (i) => {
    const place = names[i].toLowerCase().indexOf(wanted);
    return place < 0 ? Infinity : names[i].length === wanted.length ? -1 : place;
  };
  return names.map((_, i) => i).filter((i) => rank(i) < Infinity).sort((a, b) => rank(a) - rank(b) || a - b);
}

function markMatches() {
  const typed = byId("find").value, found = matching(typed);
  for (const element of world.querySelectorAll(".node")) element.classList.toggle("match", found.includes(Number(element.dataset.node)));
  byId("find-result").textContent = !typed.trim() ? ""
    : found.length === 0 ? `No variable’s name contains “${typed.trim()}”.`
    : `${plural(found.length, "variable")} found; Enter goes to ${names[found[0]]}.`;
}

function goTo(i) {
  change({ node: i, pair: null });
  showNode(i);
}

byId("names").replaceChildren(...names.map((text) => html("option", { value: text })));
byId("find").addEventListener("input", () => {
  markMatches();
  const exact = names.indexOf(byId("find").value);
  if (exact >= 0 && matching(names[exact]).length === 1) goTo(exact); // chosen from the list
});
byId("find").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && matching(event.target.value).length) goTo(matching(event.target.value)[0]);
  if (event.key === "Escape") change({ node: null, pair: null });
});

byId("threshold").addEventListener("input", (event) => change({ threshold: Number(event.target.value) }));
byId("show-truth")?.addEventListener("change", (event) => change({ compare: event.target.checked }));
byId("steps").addEventListener("change", (event) => change({ steps: Number(event.target.value) }));
byId("hide-alone").addEventListener("change", (event) => change({ hideAlone: event.target.checked }));
byId("as-blocks")?.addEventListener("change", (event) => change({ blocks: event.target.checked }));
byId("full-screen").hidden = !document.fullscreenEnabled;
byId("full-screen").addEventListener("click", () =>
  (document.fullscreenElement ? document.exitFullscreen() : byId("graph-and-detail").requestFullscreen()));

function explainSteps({ steps, node }) {
  byId("steps-hint").textContent = steps && node === null ? "Choose a variable: all are shown until then." : "";
}

byId("drawing").append(picture, zoomButtons(viewport, "the graph"));
byId("graph-and-detail").classList.toggle("wide", size > WIDE);
state.hideAlone = byId("hide-alone").checked;
state.blocks = Boolean(byId("as-blocks")?.checked);
onChange(redraw);
onChange(markMatches);
onChange(explainThreshold);
onChange(explainSteps);
new ResizeObserver(resizeBox).observe(byId("drawing"));
document.addEventListener("fullscreenchange", resizeBox);
addEventListener("beforeprint", () => { viewport.fit(); applyNow(); });

// What waits for the next frame would come too late for the printer.
function applyNow() {
  const { x, y, scale } = viewport.view;
  world.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
  fitNames(scale);
}
