"use strict";
// Elements, numbers in words, and the one state that all panels share. Names are only ever set as text.

const byId = (id) => document.getElementById(id);
const report = JSON.parse(byId("content").textContent);
const { names } = report.graph;
const size = names.length;

// Matrices come as the four byte planes of 32-bit floats, compressed: rows of Float32Array, NaN for "not known".
async function unpack(text) {
  if (text === null) return null;
  const packed = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const planes = new Uint8Array(await new Response(stream).arrayBuffer());
  const count = planes.length / 4, bytes = new Uint8Array(planes.length);
  for (let plane = 0; plane < 4; plane += 1)
    for (let k = 0; k < count; k += 1) bytes[4 * k + plane] = planes[plane * count + k];
  const values = new Float32Array(bytes.buffer);
  return names.map((_, i) => values.subarray(i * size, (i + 1) * size));
}

const matrices = Object.fromEntries(
  await Promise.all(Object.entries(report.matrices).map(async ([title, text]) => [title, await unpack(text)])));
const probability = matrices.edges;
const known = (matrix, i, j) => (matrix === null || Number.isNaN(matrix[i][j]) ? null : matrix[i][j]);
const errorOf = (i, j) => known(matrices.errors, i, j);
const trueEdges = new Set((report.truth?.edges ?? []).map(([i, j]) => i * size + j));
const isTrue = (i, j) => trueEdges.has(i * size + j);

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
const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

// state.node: a chosen variable; state.pair: a chosen pair [i, j]; at most one of the two is set.
const state = { threshold: 0.5, node: null, pair: null, compare: false, steps: 0, hideAlone: false, blocks: false };
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
