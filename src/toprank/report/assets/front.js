// The front page: how many rows to take, and the list as a file.
function drawFront() {
  const front = data.front;
  const shown = front.models[0];
  const curve = shown.curve;

  function amount(value) {
    const size = Math.abs(value);
    const text = size >= 100 ? count(size) : String(Number(size.toPrecision(3)));
    return (value < 0 && text !== "0" ? "\u2212" : "") + text;
  }

  const about = (value) => amount(Number(value.toPrecision(3)));

  // ---- how many ----------------------------------------------------------------------------
  const worth = () => [Number(place("value").value), Number(place("cost").value)];
  // shares come with six digits: a count that they are a whisker beside is that count
  const hits = (n, share) => {
    const whole = Math.round(n * share);
    return Math.abs(n * share - whole) <= 1e-6 * n ? whole : n * share;
  };
  const gain = (shares, value, cost) =>
    curve.x.map((n, i) => value * hits(n, shares[i]) - cost * n);

  function precisionChart(width) {
    const far = curve.x.at(-1);
    const series = front.models.map((one, j) => ({
      name: one.name, look: ["push", "logistic", "trees", "first"][j % 4], band: j === 0, curve: one.curve,
    })).reverse();
    return chart({
      width, title: "Right among the first rows", series,
      x: { range: [curve.x[0], far], log: true, label: "rows taken from the top", format: count },
      y: { top: 1, format: percent }, mark: { at: front.k, upright: true },
      said: "Share of right ones against the number of rows taken; at " + count(front.k) + " rows it is " +
        percent(shown.figures.precision.value) + ".",
    });
  }

  function moneyChart(width, value, cost) {
    const [y, low, high] = [curve.y, curve.low, curve.high].map((one) => gain(one, value, cost));
    const top = Math.max(...high, 1e-9) * 1.05;
    const clip = (values) => values.map((v) => Math.max(0, v));
    return chart({
      width, title: "Gained by taking so many", mark: null,
      series: [{ name: "gain", look: "push", band: true,
        curve: { x: curve.x, y: clip(y), low: clip(low), high: clip(high) } }],
      x: { range: [curve.x[0], curve.x.at(-1)], log: true, label: "rows taken from the top", format: count },
      y: { top, format: amount },
      said: "What the first rows bring less what they cost, against the number of rows taken.",
    });
  }

  function legend() {
    return make("div", { class: "legend", "aria-hidden": "true" }, ...front.models.map((one, j) => make("span", {},
      make("svg", { viewBox: "0 0 40 12" },
        make("path", { class: "curve " + ["push", "logistic", "trees", "first"][j % 4], d: "M0,6H40" })), one.name)));
  }

  function drawAmount() {
    const [value, cost] = worth();
    const holder = place("amount-charts");
    const columns = getComputedStyle(holder).gridTemplateColumns.split(" ").length;
    const width = (holder.clientWidth - 22 * (columns - 1)) / columns;
    const charts = [make("div", {}, precisionChart(width), front.models.length > 1 ? legend() : null)];
    let said = "Fill in both numbers to see how many rows pay for themselves.";
    if (value > 0) {
      charts.push(moneyChart(width, value, cost));
      const found = gain(curve.y, value, cost);
      const best = found.indexOf(Math.max(...found));
      const low = gain(curve.low, value, cost)[best];
      const high = gain(curve.high, value, cost)[best];
      said = found[best] > 0
        ? "It pays most to take about " + count(curve.x[best]) + " of these " + count(front.rows) +
          " rows, the first " + percent(curve.x[best] / front.rows) + ": a gain of about " + about(found[best]) +
          " (between " + about(low) + " and " + about(high) + ")."
        : "No number of rows from the top pays for itself at these numbers.";
    }
    place("amount-said").textContent = said;
    place("amount-said").classList.toggle("screen", !(value > 0)); // on paper nobody fills in numbers
    fill("amount-charts", ...charts);
  }

  // ---- the list as a file ------------------------------------------------------------------
  function cell(value) {
    let text = String(value);
    if (/^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text))) text = "'" + text; // no formula
    return /[",\n\r]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
  }

  function offerList() {
    const because = (one) => one.reasons.map((r) => r.column + " = " + r.value).join("; ");
    const sure = "sure" in shown.list[0];
    const lines = [["rank", "row", "score", front.target, ...(sure ? ["sure"] : []), "because"],
      ...shown.list.map((one, j) => [j + 1, one.id, one.score,
        one.positive ? front.positive : "not " + front.positive, ...(sure ? [one.sure] : []), because(one)])];
    const text = lines.map((line) => line.map(cell).join(",")).join("\r\n") + "\r\n";
    // the mark at the beginning tells spreadsheets that this is UTF-8
    place("save").href = URL.createObjectURL(new Blob(["\ufeff" + text], { type: "text/csv" }));
  }

  for (const id of ["value", "cost"]) place(id).addEventListener("input", drawAmount);
  let waiting = 0;
  window.addEventListener("resize", () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(drawAmount);
  });
  drawAmount();
  offerList();
}
