// Which tables: search by name and by day. A day shows its sums in the place of the newest run.
const search = el("input", { type: "search", placeholder: "table", ariaLabel: "table" });
const day = el("input", { type: "date", ariaLabel: "day" });
const list = el("div", {});

function line(one) {
  const sums = day.value && one.days[day.value];
  const href = `tables/${one.table}.html${day.value ? `#${day.value}` : ""}`;
  const name = el("a", { href }, one.table);
  const past = Object.entries(one.days).sort(([first], [second]) => (first < second ? -1 : 1)).slice(-30);
  const trend = bars(past.map(([date, of]) => ({
    height: 1,
    kind: of.shut ? "wrong" : of.warned ? "warned" : "",
    title: `${date}: ${of.runs} runs, ${of.rows} rows, shut ${of.shut} times, ${of.warned} with warnings`,
  })), 5, 14);
  if (sums) {
    const found = sums.shut ? badge(`shut ${sums.shut} times`, "shut") : badge("passed", "passed");
    const warned = sums.warned ? badge(`${sums.warned} with warnings`, "warning") : "";
    return el("tr", {}, cells(
      ["", name], ["", found], ["time", day.value], ["number", `${sums.runs} runs`], ["number", number(sums.rows)], ["", trend], ["text", warned]));
  }
  const newest = one.newest;
  return el("tr", {}, cells(
    ["", name], ["", verdict(newest)], ["time", newest ? time(newest.at) : ""],
    ["number", newest ? number(one.checks) : ""], ["number", newest ? number(newest.rows) : ""], ["", trend], ["text", one.failed.join("; ")]));
}

// What is shut comes first, then what warns.
function urgency({ newest }) {
  return !newest ? 3 : !newest.success ? 0 : newest.warned ? 1 : 2;
}

function show() {
  const wanted = search.value.trim().toLowerCase();
  const found = DATA.tables.filter((one) => one.table.includes(wanted) && (!day.value || day.value in one.days));
  found.sort((one, other) => urgency(one) - urgency(other));
  const titles = [["table"], ["gate"], ["checked"], [day.value ? "runs" : "checks", "number"], ["rows", "number"], ["30 days"], ["what failed"]];
  list.replaceChildren(found.length ? tableOf(titles, found.map(line)) : el("p", {}, "No table was checked so."));
}

const shut = DATA.tables.filter((one) => one.newest && !one.newest.success).length;
MAIN.append(
  el("h1", {}, "Data docs"),
  el("p", { className: "muted" }, `${DATA.tables.length} tables with a suite; ${shut === 1 ? "one gate is" : shut ? `${shut} gates are` : "no gate is"} shut.`),
  // dbt's pages are beside this one, as files and in Airflow.
  ...(DATA.dbt ? [el("p", {}, "What the marts are made from: ", el("a", { href: "../dbt_docs/index.html" }, "dbt docs"))] : []),
  search, day, list,
);
search.addEventListener("input", show);
day.addEventListener("input", show);
show();
