"use strict";
const DATA = JSON.parse(document.getElementById("data").textContent);
const MAIN = document.getElementById("main");

// An element with properties and children. Text is always text, never HTML.
function el(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

function badge(text, ...kinds) {
  return el("span", { className: ["badge", ...kinds].join(" ") }, text);
}

function verdict(run) {
  if (!run) return badge("never checked");
  if (!run.success) return badge("shut", "shut");
  return run.warned ? badge("passed, warnings", "warning") : badge("passed", "passed");
}

function number(value) {
  return value === null || value === undefined ? "" : value.toLocaleString("en");
}

function time(text) {
  return text.replace("T", " ").replace("Z", " UTC");
}

function tableOf(titles, rows) {
  const head = titles.map(([title, kind]) => el("th", { className: kind }, title));
  return el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows));
}

function cells(...contents) {
  return contents.map(([kind, ...content]) => el("td", { className: kind }, ...content));
}

// A bar for each value, the oldest on the left: [{height: 0 to 1, kind, title}].
function bars(values, width = 4, height = 22) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("class", "trend");
  svg.setAttribute("width", Math.max(values.length * width, 1));
  svg.setAttribute("height", height);
  values.forEach((value, place) => {
    const bar = document.createElementNS(space, "rect");
    const tall = Math.max(2, value.height * height);
    const at = { x: place * width, y: height - tall, width: width - 1, height: tall, class: value.kind };
    for (const [name, content] of Object.entries(at)) bar.setAttribute(name, content);
    const title = document.createElementNS(space, "title");
    title.textContent = value.title;
    bar.append(title);
    svg.append(bar);
  });
  return svg;
}

function daysOf(days, link) {
  const newestFirst = Object.entries(days).sort(([one], [other]) => (one < other ? 1 : -1));
  return newestFirst.map(([day, sums]) =>
    el("tr", {}, cells(
      ["time", link ? el("a", { href: link(day) }, day) : day],
      ["number", number(sums.runs)], ["number", number(sums.rows)],
      ["number", sums.shut ? badge(number(sums.shut), "shut") : "0"],
      ["number", sums.warned ? badge(number(sums.warned), "warning") : "0"],
    )));
}
