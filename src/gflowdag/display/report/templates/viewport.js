// Panning and zooming of a picture: wheel, pinch, drag and keys. It moves nothing itself: `apply(view)` is
// called with { x, y, scale }, which takes a point of the world to x + scale * point, in pixels of the box.

const WHEEL_SPEED = 0.0016, PINCH_SPEED = 0.012, KEY_STEP = 60, KEY_ZOOM = 1.3;
const SCROLL_PAUSE = 300; // milliseconds: a wheel that was scrolling the page goes on scrolling it

let lastScroll = -Infinity;
addEventListener("scroll", () => { lastScroll = performance.now(); }, { passive: true });

// `limits()` gives { least, most, fitted, size: [width, height], extent: { left, top, right, bottom } }, and perhaps
// a `margin` left of and above the box in the element.
function makeViewport(element, { limits, apply }) {
  const view = { x: 0, y: 0, scale: 1 };
  const pointers = new Map();
  let dragged = false, waiting = false;

  function show() {
    if (waiting) return; // several events in a frame make one drawing
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      apply(view);
    });
  }

  // The world stays in the box: centred where it is smaller, without empty margins where it is larger.
  function settle() {
    const { least, most, fitted, size: [width, height], extent } = limits();
    view.scale = clamp(view.scale, least, most);
    const within = (place, from, to, room) => {
      const low = room - view.scale * to, high = -view.scale * from;
      const slack = view.scale > fitted * 1.001 ? room / 3 : 0;
      return low > high ? (low + high) / 2 : clamp(place, low - slack, high + slack);
    };
    view.x = within(view.x, extent.left, extent.right, width);
    view.y = within(view.y, extent.top, extent.bottom, height);
    element.style.touchAction = view.scale > fitted * 1.01 ? "none" : "pan-y"; // one finger scrolls past a fitted picture
    show();
  }

  const panBy = (dx, dy) => { view.x += dx; view.y += dy; settle(); };

  function zoomAt(factor, px, py) {
    const { least, most } = limits();
    const scale = clamp(view.scale * factor, least, most), ratio = scale / view.scale;
    Object.assign(view, { x: px - ratio * (px - view.x), y: py - ratio * (py - view.y), scale });
    settle();
  }

  function zoom(factor) {
    const { size: [width, height] } = limits();
    zoomAt(factor, width / 2, height / 2);
  }

  function centre({ left, top, right, bottom }, scale) {
    const { size: [width, height] } = limits();
    Object.assign(view, { scale, x: width / 2 - (scale * (left + right)) / 2, y: height / 2 - (scale * (top + bottom)) / 2 });
    settle();
  }

  const fit = () => centre(limits().extent, limits().fitted);

  const place = (event) => {
    const box = element.getBoundingClientRect(), { margin = 0 } = limits(); // margin: what is left of and above the world
    return [event.clientX - box.left - margin, event.clientY - box.top - margin];
  };

  element.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && performance.now() - lastScroll < SCROLL_PAUSE) return;
    const lines = event.deltaMode === 1 ? 16 : 1;
    const factor = Math.exp(-event.deltaY * lines * (event.ctrlKey ? PINCH_SPEED : WHEEL_SPEED));
    if (!event.ctrlKey && factor < 1 && view.scale <= limits().least * 1.001) return; // the page scrolls on
    event.preventDefault();
    zoomAt(factor, ...place(event));
  }, { passive: false });

  element.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse" && event.button !== 0) return;
    pointers.set(event.pointerId, place(event));
    dragged = false;
  });

  element.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const now = place(event);
    if (!dragged && pointers.size === 1 && Math.hypot(now[0] - before[0], now[1] - before[1]) < 4) return;
    if (!dragged) element.setPointerCapture(event.pointerId);
    dragged = true;
    pointers.set(event.pointerId, now);
    const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (!other) return panBy(now[0] - before[0], now[1] - before[1]);
    const distance = (point) => Math.max(Math.hypot(point[0] - other[0], point[1] - other[1]), 1);
    zoomAt(distance(now) / distance(before), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
    panBy((now[0] - before[0]) / 2, (now[1] - before[1]) / 2);
  });

  for (const end of ["pointerup", "pointercancel", "pointerleave"])
    element.addEventListener(end, (event) => pointers.delete(event.pointerId));
  // The click that ends a drag chooses nothing.
  element.addEventListener("click", (event) => {
    if (dragged) event.stopPropagation();
    dragged = false;
  }, { capture: true });

  element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      ArrowLeft: () => panBy(KEY_STEP, 0), ArrowRight: () => panBy(-KEY_STEP, 0),
      ArrowUp: () => panBy(0, KEY_STEP), ArrowDown: () => panBy(0, -KEY_STEP),
      "+": () => zoom(KEY_ZOOM), "=": () => zoom(KEY_ZOOM), "-": () => zoom(1 / KEY_ZOOM), 0: fit,
    };
    const action = actions[event.key];
    const moves = event.key.startsWith("Arrow");
    if (!action || (moves && view.scale <= limits().fitted * 1.001)) return; // arrows scroll past a fitted picture
    event.preventDefault();
    action();
  });

  return { view, limits, fit, zoom, zoomAt, panBy, centre, settle };
}

function zoomButtons(viewport, subject) {
  const button = (text, label, action) => html("button", { type: "button", title: label, "aria-label": label, onclick: action }, text);
  return html("div", { class: "zoom", role: "group", "aria-label": `Zoom of ${subject}` },
    button("+", `zoom in (key +)`, () => viewport.zoom(1.5)),
    button("−", `zoom out (key −)`, () => viewport.zoom(1 / 1.5)),
    button("fit", `show all (key 0)`, () => viewport.fit()));
}
