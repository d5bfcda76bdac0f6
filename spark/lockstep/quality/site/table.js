// One table: what it means, its suite with the trend of each expectation, its days, and its runs.
const chosen = decodeURIComponent(location.hash.slice(1)); // a run, or a day
const isDay = /^\d{4}-\d{2}-\d{2}$/.test(chosen);
const newestFirst = DATA.runs;
const oldestFirst = [...newestFirst].reverse();

function share(check) {
  const [, success, unexpected, elements, observed] = check;
  if (unexpected !== null && elements) return { height: unexpected / elements, text: unexpected ? `${number(unexpected)} of ${number(elements)} rows do not hold` : `all ${number(elements)} rows hold` };
  return { height: success ? 0 : 1, text: observed === null ? (success ? "holds" : "does not hold") : `observed ${observed}` };
}

// Of an expectation, a bar for each run: how many of the rows did not hold.
function trendOf(text) {
  const place = DATA.expectations.findIndex((one) => one.text === text);
  const checked = oldestFirst.slice(-120).map((run) => [run, run.checks.find((check) => check[0] === place)]).filter(([, check]) => check);
  const most = Math.max(...checked.map(([, check]) => share(check).height), 0);
  return bars(checked.map(([run, check]) => {
    const { height, text: said } = share(check);
    return { height: most ? height / most : 0, kind: check[1] ? "" : DATA.expectations[place].severity === "warn" ? "warned" : "wrong", title: `${time(run.at)}: ${said}` };
  }), 3);
}

function newestOf(text) {
  const place = DATA.expectations.findIndex((one) => one.text === text);
  for (const run of newestFirst) {
    const check = run.checks.find((one) => one[0] === place);
    if (check) return check;
  }
  return null;
}

function suiteLine({ text, severity }) {
  const check = newestOf(text);
  const wrong = check && !check[1] ? ["wrong"] : [];
  return el("tr", {}, cells(
    ["", badge(severity, severity, ...wrong)], ["text", el("code", {}, text)],
    ["text", check ? share(check).text : "not checked yet"], ["", trendOf(text)]));
}

function detail(run) {
  const rows = run.checks.map((check) => {
    const { text, severity } = DATA.expectations[check[0]];
    return el("tr", {}, cells(
      ["", badge(severity, severity, ...(check[1] ? [] : ["wrong"]))], ["text", el("code", {}, text)],
      ["number", number(check[2])], ["number", number(check[3])], ["text", check[4] ?? ""], ["text", check[5]]));
  });
  return tableOf([["severity"], ["expectation"], ["do not hold", "number"], ["rows", "number"], ["observed"], ["why"]], rows);
}

function runLine(run) {
  const failed = run.checks.filter((check) => !check[1]).map((check) => check[5]);
  const summary = el("summary", {}, failed.length ? failed.join("; ") : `${run.checks.length} checks hold`);
  const details = el("details", { open: run.run === chosen }, summary, el("p", {}, "Slice: ", el("code", {}, run.slice)));
  details.addEventListener("toggle", () => { if (details.open && details.childElementCount < 3) details.append(detail(run)); });
  if (details.open) details.append(detail(run));
  return el("tr", { className: run.run === chosen ? "chosen" : "" }, cells(
    ["time", time(run.at)], ["", verdict(run)], ["number", number(run.rows)], ["text run", el("code", {}, run.run)], ["text", details]));
}

function runs() {
  const found = isDay ? newestFirst.filter((run) => run.at.startsWith(chosen)) : newestFirst;
  const all = isDay ? DATA.days[chosen]?.runs ?? 0 : Object.values(DATA.days).reduce((sum, of) => sum + of.runs, 0);
  const rest = all - found.length;
  return [
    el("h2", {}, isDay ? `Runs of ${chosen}` : "Runs"),
    isDay ? el("p", {}, el("a", { href: "#", onclick: () => { location.hash = ""; location.reload(); } }, "all days")) : null,
    found.length ? tableOf([["checked"], ["gate"], ["rows", "number"], ["run"], ["checks"]], found.map(runLine)) : el("p", {}, "None is kept here."),
    rest > 0 ? el("p", { className: "muted" }, `${number(rest)} older runs are not kept here: see lockstep quality show ${DATA.table} --day.`) : null,
  ];
}

const meanings = Object.entries(DATA.columns).map(([name, text]) => el("tr", {}, cells(["", el("code", {}, name)], ["text", text])));
MAIN.append(...[
  el("p", {}, el("a", { href: "../index.html" }, "Data docs")),
  el("h1", {}, DATA.table, " ", verdict(newestFirst[0])),
  el("p", {}, DATA.description),
  DATA.notes ? el("p", { className: "muted" }, DATA.notes) : null,
  el("h2", {}, "Expectations"),
  tableOf([["severity"], ["expectation"], ["newest run"], ["trend: rows that do not hold"]], DATA.suite.map(suiteLine)),
  el("h2", {}, "Days"),
  tableOf([["day"], ["runs", "number"], ["rows", "number"], ["shut", "number"], ["with warnings", "number"]], daysOf(DATA.days, (day) => `#${day}`)),
  ...runs(),
  meanings.length ? el("h2", {}, "Columns") : null,
  meanings.length ? tableOf([["column"], ["meaning"]], meanings) : null,
].filter((one) => one !== null));
window.addEventListener("hashchange", () => location.reload());
document.querySelector("tr.chosen")?.scrollIntoView({ block: "center" });
