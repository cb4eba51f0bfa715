// Small charts with two axes: bars, lines and dots over [x, y].

const WIDTH = 380, HEIGHT = 220, LEFT = 52, RIGHT = 10, TOP = 24, BOTTOM = 36;
const SERIES = ["var(--accent)", "var(--unsure)", "var(--good)", "var(--bad)", "var(--muted)"];
const REFERENCE = "--series: var(--muted); stroke-dasharray: 4 3"; // a line to compare with, of no method
const seriesColour = (index) => `--series: ${SERIES[index % SERIES.length]}`;

function ticks(low, high, wanted = 4, leastStep = 0) {
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(leastStep, power * [1, 2, 5, 10].find((factor) => rough <= factor * power * 1.0001));
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k += 1) found.push(k * step);
  return { step, found };
}

function tickText(value, step) {
  if (Math.abs(value) >= 1e6 || (value !== 0 && Math.abs(value) < 1e-4)) return minus(value.toExponential(1));
  return minus(value.toFixed(Math.max(0, -Math.floor(Math.log10(step) + 1e-9))));
}

function axes({ title, xLabel, yLabel, x: [x0, x1], y: [y0, y1], wholeX = false }) {
  if (x1 === x0) [x0, x1] = [x0 - 0.5, x1 + 0.5];
  if (y1 === y0) [y0, y1] = [y0 - 0.5, y1 + 0.5];
  const toX = (value) => LEFT + ((value - x0) / (x1 - x0)) * (WIDTH - LEFT - RIGHT);
  const toY = (value) => HEIGHT - BOTTOM - ((value - y0) / (y1 - y0)) * (HEIGHT - TOP - BOTTOM);
  const picture = svg("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title });
  picture.append(svg("path", { class: "axis", d: `M${LEFT},${TOP}V${HEIGHT - BOTTOM}H${WIDTH - RIGHT}` }));
  const across = ticks(x0, x1, 5, wholeX ? 1 : 0), up = ticks(y0, y1);
  for (const value of across.found)
    picture.append(svg("text", { x: toX(value), y: HEIGHT - BOTTOM + 14, "text-anchor": "middle" }, tickText(value, across.step)));
  for (const value of up.found)
    picture.append(svg("text", { x: LEFT - 6, y: toY(value) + 4, "text-anchor": "end" }, tickText(value, up.step)));
  picture.append(svg("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 4, "text-anchor": "middle" }, xLabel));
  const figure = html("figure", {}, html("figcaption", {}, title), picture);
  if (yLabel) picture.append(svg("text", { x: 8, y: 11 }, yLabel));
  return { figure, picture, toX, toY };
}

function rule(chart, value, label) {
  const x = chart.toX(value), right = x > WIDTH * 0.6;
  chart.picture.append(
    svg("line", { class: "rule", x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM }),
    svg("text", { class: "rule-label", x: x + (right ? -5 : 5), y: TOP + 8, "text-anchor": right ? "end" : "start" }, label));
}

function histogram(title, xLabel, ends, mass, options = {}) {
  const chart = axes({ title, xLabel, yLabel: "probability", x: [ends[0], ends.at(-1)], y: [0, 1.15 * Math.max(...mass)], ...options });
  mass.forEach((height, index) => {
    const left = chart.toX(ends[index]), right = chart.toX(ends[index + 1]), top = chart.toY(height);
    chart.picture.append(svg("rect", { class: "bar", x: left + 0.5, y: top, width: Math.max(right - left - 1, 0.5), height: HEIGHT - BOTTOM - top }));
  });
  return chart;
}

const MANY_LINES = 6;  // beyond, one line would hide the others

function linesChart(title, xLabel, yLabel, series, options = {}) {
  const points = series.flat().filter(([x, y]) => x !== null && y !== null);
  const range = (axis) => points.reduce(([low, high], point) => [Math.min(low, point[axis]), Math.max(high, point[axis])], [Infinity, -Infinity]);
  const chart = axes({ title, xLabel, yLabel, x: range(0), y: range(1), ...options });
  series.forEach((line, index) => {
    const d = line.filter(([, y]) => y !== null).map(([x, y], k) => `${k ? "L" : "M"}${chart.toX(x).toFixed(1)},${chart.toY(y).toFixed(1)}`).join("");
    chart.picture.append(svg("path", { class: series.length > MANY_LINES ? "series thin" : "series", style: seriesColour(index), d }));
  });
  return chart;
}

const seriesKey = (labels) =>
  html("p", { class: "legend" }, ...labels.map((label, index) =>
    html("span", {}, html("i", { class: "key", style: seriesColour(index) }), label)));
