/* What the page does by itself: draws the plots in its own colours, opens linked questions, fills in whole texts,
   lights the section being read. */
(function () {
  "use strict";
  var data = JSON.parse(document.getElementById("plot-data").textContent);
  var dark = window.matchMedia("(prefers-color-scheme: dark)");
  var onDark = { "#0072B2": "#56B4E9", "#D55E00": "#F0803C", "#56B4E9": "#9AD4F5", "#009E73": "#2FC79A",
    "rgba(0,114,178,0.28)": "rgba(86,180,233,0.34)", "rgba(0,114,178,0.13)": "rgba(86,180,233,0.16)" };

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  function recoloured(value, isDark) {
    if (typeof value === "string") { return isDark && onDark[value] ? onDark[value] : value; }
    if (Array.isArray(value)) { return value.map(function (item) { return recoloured(item, isDark); }); }
    if (value && typeof value === "object") {
      var copy = {};
      Object.keys(value).forEach(function (key) { copy[key] = recoloured(value[key], isDark); });
      return copy;
    }
    return value;
  }

  function draw(isDark) {
    if (!window.Plotly) { return; }
    document.querySelectorAll(".plot[data-plot]").forEach(function (box) {
      var spec = recoloured(data[box.dataset.plot], isDark);
      var layout = Object.assign({}, spec.layout, {
        paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", autosize: true,
        font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: colour("--text") },
        hoverlabel: { bgcolor: colour("--panel"), bordercolor: colour("--line"), font: { color: colour("--text") } }
      });
      ["xaxis", "yaxis"].forEach(function (axis) {
        layout[axis] = Object.assign({
          gridcolor: colour("--line"), linecolor: colour("--line"), tickcolor: colour("--line"), automargin: true
        }, layout[axis]);
        if (layout[axis].title) { layout[axis].title.font = { size: 12, color: colour("--muted") }; }
      });
      window.Plotly.react(box, spec.data, layout, { displayModeBar: false, responsive: true });
    });
  }

  function fill(details) {
    var target = details.querySelector("div");
    var source = document.getElementById(details.dataset.text);
    if (source && !target.hasChildNodes()) { target.appendChild(source.content.cloneNode(true)); }
  }

  function reveal() {
    var id = decodeURIComponent(location.hash.slice(1));
    var target = id && document.getElementById(id);
    if (!target) { return; }
    for (var node = target; node; node = node.parentElement) {
      if (node.tagName === "DETAILS") { node.open = true; }
    }
    target.scrollIntoView();
  }

  /* Lights the last section whose heading has passed a line 30 % below the top; the first one at the top of the page. */
  function follow() {
    var links = Array.from(document.querySelectorAll(".contents a"));
    var list = document.querySelector(".contents ul");
    var heads = links.map(function (link) { return document.querySelector(link.hash + " h2"); });
    var lit = null;
    function light() {
      var line = window.innerHeight * 0.3;
      var end = window.scrollY + window.innerHeight >= document.documentElement.scrollHeight - 2;
      var at = 0;
      if (window.scrollY > 1) {
        heads.forEach(function (head, place) { if (head.getBoundingClientRect().top <= line) { at = place; } });
        if (end) { at = links.length - 1; }
      }
      if (links[at] === lit) { return; }
      if (lit) { lit.removeAttribute("aria-current"); }
      lit = links[at];
      lit.setAttribute("aria-current", "true");
      if (list.scrollWidth > list.clientWidth) { list.scrollLeft = lit.offsetLeft - list.clientWidth / 3; }
    }
    var waiting = false;
    function soon() {
      if (waiting) { return; }
      waiting = true;
      window.requestAnimationFrame(function () { waiting = false; light(); });
    }
    window.addEventListener("scroll", soon, { passive: true });
    window.addEventListener("resize", soon);
    document.addEventListener("toggle", soon, true);
    light();
  }

  /* Says so beneath a table that is wider than its box. */
  function measure() {
    var seen = new ResizeObserver(function (entries) {
      entries.forEach(function (entry) {
        var box = entry.target.closest(".scroll");
        box.parentElement.classList.toggle("wider", box.scrollWidth > box.clientWidth + 1);
      });
    });
    document.querySelectorAll(".scroll").forEach(function (box) {
      seen.observe(box);
      seen.observe(box.firstElementChild);
    });
  }

  document.addEventListener("toggle", function (event) {
    if (event.target.matches("details.whole") && event.target.open) { fill(event.target); }
  }, true);
  document.querySelectorAll("button[data-open]").forEach(function (button) {
    button.addEventListener("click", function () {
      document.querySelectorAll("details.question").forEach(function (question) {
        question.open = button.dataset.open === "true";
      });
    });
  });
  dark.addEventListener("change", function () { draw(dark.matches); });
  window.addEventListener("beforeprint", function () { draw(false); });
  window.addEventListener("afterprint", function () { draw(dark.matches); });
  window.addEventListener("hashchange", reveal);
  window.addEventListener("load", function () { draw(dark.matches); });  // plotly stands after this script: links work first
  follow();
  measure();
  reveal();
})();
