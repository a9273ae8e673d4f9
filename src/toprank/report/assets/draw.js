// What draws: words, elements, charts. Words from the table are only ever set as text.
const data = JSON.parse(document.getElementById("data").textContent);

// ---- words -------------------------------------------------------------------------------
const minus = (text) => text.replace("-", "\u2212");
const count = (value) => String(Math.round(value)).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");

function percent(share) {
  const value = 100 * share;
  if (value >= 99.95 && value < 100) return ">99.9%";
  if ((value >= 0.05 && value < 9.95) || (value > 99 && value < 100)) return Number(value.toFixed(1)) + "%";
  return value >= 9.95 || value === 0 ? value.toFixed(0) + "%" : Number(value.toPrecision(2)) + "%";
}

function written(value, unit) {
  if (value === null) return "unknown";
  if (unit === "share") return percent(value);
  return unit === "times" ? Number(value.toPrecision(3)) + "×" : value.toFixed(3);
}

function interval(one, unit) {
  if (one.low === null) return "no interval";
  return written(one.low, unit) + " to " + written(one.high, unit);
}

function change(value, unit) {
  if (unit === "share") return minus((value >= 0 ? "+" : "") + (100 * value).toFixed(1)) + " points";
  if (unit === "times") return signed(value) + "×";
  return minus((value >= 0 ? "+" : "") + value.toFixed(3));
}

const percentSigned = (part) => (Math.abs(part) < 0.0005 ? "0%" : (100 * part).toFixed(Math.abs(part) < 0.0995 ? 1 : 0) + "%");
const signed = (value) => minus((value >= 0 ? "+" : "") + Number(value.toPrecision(2)));
const scored = (value) => minus(String(Number(value.toPrecision(3))));
const rows = (n) => count(n) + (n === 1 ? " row" : " rows");

// ---- elements ----------------------------------------------------------------------------
function make(tag, attributes, ...children) {
  const svg = ["svg", "g", "path", "line", "text", "circle", "rect", "title", "desc"];
  const node = svg.includes(tag)
    ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const place = (id) => document.getElementById(id);
const fill = (id, ...children) => place(id).replaceChildren(...children);
const word = (text) => make("bdi", {}, text);

function table(caption, heads, body, kind) {
  const cell = (tag, content, name) => {
    const node = make(tag, name ? { class: name } : {});
    node.append(...[].concat(content));
    return node;
  };
  // a heading is [text, class, label where cells stand one below the other]
  const head = make("tr", {}, ...heads.map(([text, name]) => {
    const node = cell("th", text, name);
    node.setAttribute("scope", "col");
    return node;
  }));
  const lines = body.map((row) => {
    if (row.cut) return make("tr", { class: "cut" }, make("td", { colspan: heads.length }, row.cut));
    const [lead, ...rest] = row;
    const header = cell("th", lead, heads[0][1]);
    header.setAttribute("scope", "row");
    return make("tr", {}, header, ...rest.map((content, j) => {
      const [, name, label] = heads[j + 1];
      const node = cell("td", content, name);
      if (label) node.dataset.label = label;
      return node;
    }));
  });
  return make("table", kind ? { class: kind } : {}, make("caption", {}, caption),
    make("thead", {}, head), make("tbody", {}, ...lines));
}

// ---- charts ------------------------------------------------------------------------------
function ticksOf(low, high, most) {
  const rough = (high - low) / most;
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough);
  const found = [];
  for (let t = Math.ceil(low / step - 1e-9) * step; t <= high + 1e-9 * step; t += step) found.push(t);
  return found;
}

function logTicks(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const m of [1, 2, 5]) {
      const t = m * Math.pow(10, power);
      if (t >= low * 0.999 && t <= high * 1.001) found.push(t);
    }
  }
  return found.length > 6 ? found.filter((t) => /^1/.test(t.toExponential())) : found;
}

function pathOf(xs, ys, X, Y) {
  return xs.map((x, i) => (i ? "L" : "M") + X(x).toFixed(1) + "," + Y(ys[i]).toFixed(1)).join("");
}

let serial = 0;
function chart(spec) {
  const width = Math.max(260, Math.min(640, spec.width));
  const height = Math.round(Math.min(0.78 * width, 340));
  const [left, right, top, bottom] = [44, width - 14, 8, height - 40];
  const [low, high] = spec.x.range;
  const scale = spec.x.log ? Math.log : (v) => v;
  const X = (v) => left + ((scale(v) - scale(low)) / (scale(high) - scale(low))) * (right - left);
  const Y = (v) => bottom - (v / spec.y.top) * (bottom - top);
  serial += 1;
  const [title, desc] = ["chart-title-" + serial, "chart-desc-" + serial];
  const svg = make("svg", {
    viewBox: "0 0 " + width + " " + height, role: "img", "aria-labelledby": title + " " + desc,
  }, make("title", { id: title }, spec.title), make("desc", { id: desc }, spec.said));
  for (const t of ticksOf(0, spec.y.top, 5)) {
    svg.append(make("line", { class: "grid", x1: left, x2: right, y1: Y(t), y2: Y(t) }),
      make("text", { x: left - 6, y: Y(t) + 4, "text-anchor": "end" }, spec.y.format(t)));
  }
  const marks = spec.x.log ? logTicks(low, high) : ticksOf(low, high, 5);
  for (const t of marks) {
    svg.append(make("line", { class: "axis", x1: X(t), x2: X(t), y1: bottom, y2: bottom + 4 }),
      make("text", { x: X(t), y: bottom + 17, "text-anchor": "middle" }, spec.x.format(t)));
  }
  svg.append(make("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }),
    make("text", { x: (left + right) / 2, y: height - 4, "text-anchor": "middle" }, spec.x.label));
  if (spec.mark) {
    svg.append(make("path", { class: "mark", d: spec.mark.upright
      ? "M" + X(spec.mark.at) + "," + top + "V" + bottom
      : "M" + left + "," + Y(spec.mark.at) + "H" + right }));
  }
  for (const one of spec.series) {
    const { x, y, low: under, high: over } = one.curve;
    if (one.band) {
      const back = x.map((v, i) => [v, under[i]]).reverse();
      svg.append(make("path", { class: "band", d: pathOf(x, over, X, Y) +
        back.map(([v, u]) => "L" + X(v).toFixed(1) + "," + Y(u).toFixed(1)).join("") + "Z" }));
    }
    svg.append(make("path", { class: "curve " + one.look, d: pathOf(x, y, X, Y) }));
  }
  return make("figure", {}, make("figcaption", {}, spec.title), svg);
}
