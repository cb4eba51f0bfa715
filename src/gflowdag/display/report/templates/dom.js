"use strict";
// Elements, numbers in words, and the one state that all panels share. Names are only ever set as text.

const report = JSON.parse(document.getElementById("content").textContent);
const { names, edges: probability } = report.graph;
const size = names.length;
const trueEdge = names.map(() => names.map(() => false));
for (const [i, j] of report.truth?.edges ?? []) trueEdge[i][j] = true;

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

const html = (tag, attributes = {}, ...children) => build(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) =>
  build(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const byId = (id) => document.getElementById(id);
const name = (i) => html("span", { class: "name" }, names[i]);

function shown(p) {
  if (p === null) return "–";
  if (p > 0 && p < 0.0005) return "<0.001";
  if (p < 1 && p > 0.9995) return ">0.999";
  return p.toFixed(3);
}

function percent(p) {
  if (p > 0 && p < 0.0005) return "<0.1 %";
  if (p < 1 && p >= 0.9995) return ">99.9 %";
  return `${(100 * p).toFixed(p < 0.1 || (p > 0.99 && p < 1) ? 1 : 0)} %`;
}

const minus = (text) => text.replaceAll("-", "−");
const spread = (error) => (error ? ` ± ${error < 0.0005 ? "<0.001" : error.toFixed(3)}` : "");
const plural = (count, word) => `${Number(count).toLocaleString("en")} ${word}${String(count) === "1" ? "" : "s"}`;
const sum = (values) => values.reduce((total, value) => total + value, 0);

// state.node: a chosen variable; state.pair: a chosen pair [i, j]; at most one of the two is set.
const state = { threshold: 0.5, node: null, pair: null, compare: false };
const listeners = [];
const onChange = (listener) => listeners.push(listener);

function change(values) {
  Object.assign(state, values);
  for (const listener of listeners) listener(state);
}

const chooseNode = (i) => change({ node: state.node === i ? null : i, pair: null });
const choosePair = (i, j) => {
  const same = state.pair && state.pair[0] === i && state.pair[1] === j;
  change({ node: null, pair: same ? null : [i, j] });
};

// Enter and space work on whatever acts as a button.
const onActivate = (action) => ({
  onclick: action,
  onkeydown: (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      action(event);
    }
  },
});
