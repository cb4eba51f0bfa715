// What is known about a chosen variable or pair, and the legend of the drawing.

const LISTED = 5, WORTH_LISTING = 0.05;

function ranked(valueOf, errorsOf) {
  return names.map((_, i) => ({ i, p: valueOf(i), error: errorsOf(i) })).filter(({ p }) => p >= WORTH_LISTING).sort((a, b) => b.p - a.p);
}

function listing(title, found) {
  if (!found.length) return [html("div", {}, html("h3", {}, title), html("p", { class: "muted" }, "none above 0.05"))];
  const items = found.slice(0, LISTED).map(({ i, p, error }) =>
    html("li", { style: `--share: ${p.toFixed(3)}` },
      html("button", { type: "button", onclick: () => goTo(i), title: names[i] }, name(i)), `${shown(p)}${spread(error)}`));
  const rest = found.length > LISTED ? [html("p", { class: "muted" }, `and ${found.length - LISTED} more`)] : [];
  return [html("div", {}, html("h3", {}, title), html("ol", {}, ...items), ...rest)];
}

function nodeDetail(i) {
  const { edges, errors, paths, pathErrors, blankets, blanketErrors } = matrices;
  const into = (matrix, errors) => ranked((k) => matrix[k][i], (k) => known(errors, k, i));
  const outOf = (matrix, errors) => ranked((k) => matrix[i][k], (k) => known(errors, i, k));
  return [
    html("p", { class: "title name" }, names[i]),
    ...listing("Parents", into(edges, errors)),
    ...listing("Children", outOf(edges, errors)),
    ...listing("Markov blanket", outOf(blankets, blanketErrors)),
    ...listing("Caused by, through some path", into(paths, pathErrors)),
    ...listing("Causes, through some path", outOf(paths, pathErrors)),
  ];
}

function pairDetail([i, j]) {
  const { paths, pathErrors, blankets, blanketErrors } = matrices;
  const facts = [
    [`${names[i]} → ${names[j]}`, probability[i][j], errorOf(i, j)],
    [`${names[j]} → ${names[i]}`, probability[j][i], errorOf(j, i)],
    ["no edge between them", Math.max(0, 1 - probability[i][j] - probability[j][i]), 0],
    [`some directed path from ${names[i]}`, paths[i][j], known(pathErrors, i, j)],
    [`some directed path from ${names[j]}`, paths[j][i], known(pathErrors, j, i)],
    ["in each other’s Markov blanket", blankets[i][j], known(blanketErrors, i, j)],
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
    html("span", {}, "dashed box: in the Markov blanket of the chosen variable"),
    ...(wholeLayout.blocks.length ? [html("span", {}, "shaded: a block of variables with most of their edges inside")] : []),
    html("span", { class: "screen" }, "wheel, pinch or + and − zoom, 0 shows all; drag or arrow keys move"));
}

onChange(showDetail);
onChange(showLegend);
