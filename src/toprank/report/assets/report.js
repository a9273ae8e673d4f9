// Draws what depends on how hard the push is.
function drawPushes() {
  const first = 0;
  let at = data.start;

  function seriesOf(name) {
    const found = data.baselines.map((one, j) => (
      { name: one.name, look: ["logistic", "trees"][j], curve: one.curves[name] }));
    if (at !== first) {
      found.push({ name: data.labels[first], look: "first", curve: data.pushes[first].curves[name] });
    }
    found.push({ name: data.labels[at], look: "push", band: true, curve: data.pushes[at].curves[name] });
    return found;
  }

  function highest(name, least) {
    const every = [...data.pushes, ...data.baselines].map((one) => one.curves[name]);
    return Math.max(least, ...every.flatMap((curve) => curve.y), ...data.pushes[at].curves[name].high);
  }

  function drawCharts() {
    const holder = place("charts");
    const columns = getComputedStyle(holder).gridTemplateColumns.split(" ").length;
    const width = (holder.clientWidth - 22 * (columns - 1)) / columns;
    const now = data.pushes[at];
    const figure = (key) => now.figures[key];
    const roc = now.curves.roc;
    const end = roc.y[roc.y.length - 1];
    fill("charts",
      chart({
        width, title: "The ROC curve at the top", series: seriesOf("roc"),
        x: { range: [0, data.max_fpr], label: "negatives let through", format: percent },
        y: { top: Math.min(1, 1.05 * highest("roc", 0.02)), format: percent },
        said: "Share of positives found against share of negatives let through, up to " +
          percent(data.max_fpr) + ", where " + data.labels[at] + " finds " + percent(end) + ".",
      }),
      chart({
        width, title: "Positives among the first rows", series: seriesOf("precision"),
        x: { range: [now.curves.precision.x[0], now.curves.precision.x.at(-1)],
          label: "rows taken from the top", format: count },
        y: { top: 1, format: percent }, mark: { at: data.k, upright: true },
        said: "Precision against the number of rows taken; at " + count(data.k) + " rows it is " +
          percent(figure("precision").value) + " (" + interval(figure("precision"), "share") + ").",
      }),
      chart({
        width, title: "Lift over a random order", series: seriesOf("lift"),
        x: { range: [now.curves.lift.x[0], 1], log: true, label: "share of the list taken",
          format: percent },
        y: { top: 1.05 * highest("lift", 1.2), format: (v) => Number(v.toPrecision(3)) + "×" },
        mark: { at: 1 },
        said: "Lift against the share of the list taken, on a logarithmic axis; at " +
          count(data.k) + " rows it is " + written(figure("lift").value, "times") + ".",
      }));
    fill("legend", ...seriesOf("roc").reverse().map((one) => make("span", {},
      make("svg", { viewBox: "0 0 40 12" },
        one.band ? make("rect", { class: "band", x: 0, y: 0, width: 40, height: 12 }) : null,
        make("path", { class: "curve " + one.look, d: "M0,6H40" })),
      one.band ? one.name + ", with its 95% band" : one.name)));
    drawPoints();
  }

  function drawPoints() {
    const { precision, roc } = data.pushes[at].curves;
    const some = (curve) => curve.x.map((_, i) => i).filter((i) => i % 6 === 0);
    const band = (curve, i) => percent(curve.low[i]) + " to " + percent(curve.high[i]);
    fill("points",
      table("Positives among the first rows, " + data.labels[at],
        [["Rows taken"], ["Positives"], ["95% band"]],
        some(precision).map((i) => [count(precision.x[i]), percent(precision.y[i]), band(precision, i)])),
      table("ROC curve, " + data.labels[at],
        [["Negatives let through"], ["Positives found"], ["95% band"]],
        some(roc).map((i) => [percent(roc.x[i]), percent(roc.y[i]), band(roc, i)])));
  }

  // ---- figures -----------------------------------------------------------------------------
  function whisker(key) {
    const own = data.pushes[at].figures[key];
    const others = [["first", data.pushes[first].figures[key].value],
      ...data.baselines.map((one, j) => [["logistic", "trees"][j], one.figures[key].value])];
    const ends = data.pushes.flatMap((one) => [one.figures[key].low, one.figures[key].high, one.figures[key].value]);
    const known = [...ends, ...others.map(([, value]) => value)].filter((value) => value !== null);
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const X = (v) => 8 + ((v - low) / (high - low || 1)) * 224;
    const svg = make("svg", { viewBox: "0 0 240 24", "aria-hidden": "true" });
    if (own.low !== null) {
      svg.append(make("line", { class: "whisker", x1: X(own.low), x2: X(own.high), y1: 12, y2: 12 }));
    }
    for (const [look, value] of others) {
      svg.append(look === "logistic"
        ? make("rect", { class: "dot logistic", x: X(value) - 3.5, y: 8.5, width: 7, height: 7 })
        : look === "trees"
          ? make("path", { class: "dot trees", d: "M" + X(value) + ",7l5,9h-10z" })
          : make("circle", { class: "dot first", cx: X(value), cy: 12, r: 4.2 }));
    }
    svg.append(make("circle", { class: "dot", cx: X(own.value), cy: 12, r: 5 }));
    return svg;
  }

  function drawFigures() {
    const body = data.figures.map((figure) => {
      const own = data.pushes[at].figures[figure.key];
      const apart = own.value - data.pushes[first].figures[figure.key].value;
      return [
        [make("strong", {}, figure.label), make("br"), make("small", {}, figure.explained)],
        written(own.value, figure.unit), interval(own, figure.unit), [whisker(figure.key)],
        at === first ? "–" : change(apart, figure.unit),
      ];
    });
    fill("figures", table(
      "● " + data.labels[at] + " with its interval, ○ " + data.labels[first] +
      ", ■ logistic regression, ▲ boosted trees",
      [["Figure", "full"], ["Value", "number"], ["95% interval", "number"], ["", "picture"],
        ["Since " + data.labels[first], "number", "since " + data.labels[first]]], body, "stack"));
  }

  // ---- lists -------------------------------------------------------------------------------
  const item = (key) => data.items[key];
  const outcome = (one) => make("span", { class: "outcome " + (one.positive ? "yes" : "no") },
    one.positive ? "positive" : "negative");
  const good = (keys) => keys.filter((key) => item(key).positive).length;

  function reasons(one) {
    const said = one.reasons[at];
    if (!said.length) return "–";
    return said.flatMap((reason, j) => [j ? "; " : "", word(reason.column), " = ", word(reason.value),
      " ", make("small", {}, signed(reason.adds))]);
  }

  function shift(one) {
    const moved = one.rank[first] - one.rank[at];
    if (at === first || moved === 0) return "–";
    return (moved > 0 ? "▲ " : "▼ ") + count(Math.abs(moved));
  }

  function listing(caption, keys, cutAfter) {
    const body = [];
    for (const key of keys) {
      const one = item(key);
      const stays = one.rank.filter((rank) => rank <= data.k).length;
      body.push([count(one.rank[at]), [word(one.id)], [outcome(one)],
        scored(one.score[at]), shift(one),
        stays + " of " + data.ps.length, reasons(one)]);
      if (cutAfter && one.rank[at] === data.k) {
        body.push({ cut: "the cut: the first " + count(data.k) + " end here" });
      }
    }
    return table(caption, [["Rank", "number"], ["Row", "name"], ["Known to be"],
      ["Score", "number", "score"], ["Since " + data.labels[first], "number", "since " + data.labels[first]],
      ["In the top at", "tight", "in the top at"], ["Mostly because", "full"]], body, "stack");
  }

  function drawLists() {
    const now = data.pushes[at];
    const [mine, before] = [new Set(now.top), new Set(data.pushes[first].top)];
    const entering = now.top.filter((key) => !before.has(key));
    const leaving = data.pushes[first].top.filter((key) => !mine.has(key));
    const entry = (key) => make("li", {},
      make("span", { class: "who " + (item(key).positive ? "yes" : "no") },
        make("span", { class: "quiet" }, item(key).positive ? "positive " : "negative "),
        word(item(key).id)),
      make("span", {}, count(item(key).rank[first]) + " → " + count(item(key).rank[at])));
    const side = (title, keys, empty) => {
      const shown = keys.slice(0, keys.length > 12 ? 10 : 12);
      const rest = keys.slice(shown.length);
      return make("div", {}, make("h4", {}, title),
        keys.length ? make("ul", {}, ...shown.map(entry)) : make("p", { class: "small" }, empty),
        rest.length ? make("details", {}, make("summary", {}, "and " + count(rest.length) + " more"),
          make("ul", {}, ...rest.map(entry))) : null);
    };
    fill("changes", side("Entering", entering, "Nobody enters."), side("Leaving", leaving, "Nobody leaves."));
    place("moves").textContent = at === first
      ? "This is the list that the others are compared with. Push harder to see who moves."
      : rows(entering.length) + " of the first " + count(data.k) + " were not there at " +
        data.labels[first] + ": " + good(entering) + " of them are positive, against " +
        good(leaving) + " of those that leave.";
    fill("top", listing("The first " + count(data.k) + " rows at " + data.labels[at], now.top));
    drawCut(now);
    drawFeatures(now.features);
    return [entering.length, good(entering) - good(leaving)];
  }

  function drawCut(now) {
    let said = "The row at rank " + count(data.k) + " scores " + scored(now.score_at_cut) +
      " standard deviations above the mean";
    if (now.tied_at_cut) {
      said += ", and " + rows(now.tied_at_cut) + " share it: which of them is in is a matter of the order of the table";
    } else if (now.gap_at_cut !== null) {
      const gap = now.gap_at_cut;
      said += "; the next is behind by " + Number(gap.toPrecision(2));
    }
    const steady = now.top.filter((key) => item(key).rank.every((rank) => rank <= data.k)).length;
    said += ". " + rows(steady) + " of the first " + count(data.k) + " stay there whatever the strength is" +
      "; the others depend on it.";
    place("cut-said").textContent = data.ps.length > 1 ? said : said.split(". ")[0] + ".";
    fill("near", listing("Rows around the cut at " + data.labels[at], now.near, true));
  }

  // ---- columns -----------------------------------------------------------------------------
  function drawFeatures(found) {
    place("features-said").textContent = "At " + data.labels[at] + " the first " + count(data.k) +
      " rows score " + scored(found.total) + " standard deviations more than an average row. The score " +
      "is a sum over the columns, so each column has its part in that difference.";
    const part = (adds) => found.total > 0 ? minus(percentSigned(adds / found.total)) : "–";
    const most = Math.max(...found.columns.map((one) => Math.abs(one.adds)), 1e-12);
    const lowest = Math.min(0, ...found.columns.map((one) => one.adds)) / most;
    const X = (part) => 4 + ((part - lowest) / (1 - lowest || 1)) * 232;
    const bar = (adds) => {
      const [from, to] = [X(0), X(adds / most)];
      return make("svg", { viewBox: "0 0 240 24", "aria-hidden": "true" },
        make("rect", { class: adds >= 0 ? "bar" : "bar down", x: Math.min(from, to), y: 6,
          width: Math.max(1, Math.abs(to - from)), height: 12 }),
        make("line", { class: "axis", x1: from, x2: from, y1: 1, y2: 23 }));
    };
    const typical = (one) => {
      if (one.what === "text") return "text";
      const what = one.what === "median" ? ["median "] : [word(one.what), ": "];
      return [...what, word(one.in_top), ", in all ", word(one.in_all)];
    };
    const body = found.columns.map((one) => [[word(one.column)], [bar(one.adds)],
      part(one.adds), typical(one)]);
    if (found.others > 0) {
      body.push([count(found.others) + (found.others === 1 ? " other column" : " other columns"), [bar(found.others_add)],
        part(found.others_add), ""]);
    }
    fill("features-table", table("What each column adds, " + data.labels[at],
      [["Column", "full"], ["", "picture"], ["Its part", "number"],
        ["In the first " + count(data.k), "full"]], body, "stack"));
  }

  // ---- the comparison ----------------------------------------------------------------------
  function drawForest() {
    const lines = data.comparison.filter((line) => line.figure === "precision");
    if (!lines.length) return;
    const width = Math.max(280, Math.min(720, place("forest").clientWidth));
    const ends = lines.flatMap((line) => [line.low, line.high, line.folds_low, line.folds_high, 0]);
    const [low, high] = [Math.max(-1, Math.min(...ends)), Math.min(1, Math.max(...ends))];
    const X = (v) => 8 + ((Math.max(low, Math.min(high, v)) - low) / (high - low || 1)) * (width - 16);
    const bottom = 46 * lines.length + 6;
    const said = lines.map((line) => line.names.join(" \u2212 ") + ": " + change(line.difference, "share") +
      " (" + change(line.low, "share") + " to " + change(line.high, "share") + ")").join("; ");
    const svg = make("svg", { viewBox: "0 0 " + width + " " + (bottom + 36), role: "img",
      "aria-labelledby": "forest-title forest-desc" },
      make("title", { id: "forest-title" }, "Differences in the first " + count(data.k)),
      make("desc", { id: "forest-desc" }, said));
    for (const t of ticksOf(low, high, 6)) {
      svg.append(make("line", { class: Math.abs(t) < 1e-9 ? "axis" : "grid", x1: X(t), x2: X(t), y1: 4, y2: bottom }),
        make("text", { x: X(t), y: bottom + 15, "text-anchor": "middle" }, minus(String(Math.round(100 * t) || 0))));
    }
    lines.forEach((line, j) => {
      const y = 46 * j + 32;
      svg.append(make("text", { class: "halo", x: 8, y: y - 14 }, line.names.join(" \u2212 ")),
        make("line", { class: "mark", x1: X(line.folds_low), x2: X(line.folds_high), y1: y, y2: y }),
        make("line", { class: "whisker", x1: X(line.low), x2: X(line.high), y1: y, y2: y }),
        make("circle", { class: "dot", cx: X(line.difference), cy: y, r: 5 }));
    });
    svg.append(make("text", { x: width / 2, y: bottom + 32, "text-anchor": "middle" },
      "difference in the first " + count(data.k) + ", in points; dotted: over the folds"));
    fill("forest", make("figure", {}, svg));
  }

  // ---- all of it ---------------------------------------------------------------------------
  const slider = place("p");
  function draw() {
    at = Math.min(Number(slider.value), data.ps.length - 1);
    slider.setAttribute("aria-valuetext", data.labels[at]);
    place("p-value").textContent = data.labels[at];
    drawCharts();
    drawFigures();
    const [moved] = drawLists();
    const own = data.pushes[at].figures.precision;
    const found = Math.round(10 * own.value * data.k) / 10; // ties at the cut may leave a part of a row
    place("state").textContent = "At " + data.labels[at] + ", " +
      (found % 1 ? found.toFixed(1) : count(found)) + " of the first " + count(data.k) + " rows " + (found === 1 ? "is" : "are") + " positive (" + percent(own.value) + "; " + interval(own, "share") + ")" +
      (at === first ? "." : ", and " + rows(moved) + (moved === 1 ? " has" : " have") + " entered since " +
        data.labels[first] + ".");
  }
  slider.addEventListener("input", draw);
  let waiting = 0;
  window.addEventListener("resize", () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => { drawCharts(); drawForest(); });
  });
  draw();
  drawForest();
}

window.addEventListener("beforeprint", () => {
  for (const one of document.querySelectorAll("details")) one.open = true;
});
if (data.front) drawFront();
if (data.pushes) drawPushes();
