(function () {
  "use strict";
  var box = document.getElementById("search");
  var table = document.getElementById("filled");
  if (!box || !table) { return; }
  var rows = Array.prototype.slice.call(table.tBodies[0].rows);
  function simple(text) { return text.toLowerCase().replace(/\u2212/g, "-"); }
  // Numbers are found with and without commas between their thousands.
  var texts = rows.map(function (row) {
    var text = Array.prototype.map.call(row.cells, function (cell) { return simple(cell.textContent); }).join(" ");
    return text + " " + text.replace(/,/g, "");
  });
  var found = document.getElementById("found");
  var waiting = 0;
  function search() {
    var words = simple(box.value).split(/\s+/).filter(Boolean);
    var shown = 0;
    rows.forEach(function (row, i) {
      var fits = words.every(function (word) { return texts[i].indexOf(word) >= 0; });
      row.hidden = !fits;
      shown += fits ? 1 : 0;
    });
    found.textContent = words.length ? shown + " of " + rows.length + " rows shown" : "";
  }
  // A press on a column's name sorts by it: numbers by size, words by letters, what is missing last.
  var body = table.tBodies[0];
  function key(cell) {
    var text = cell.hasAttribute("data-v") ? cell.getAttribute("data-v") : simple(cell.textContent).replace(/,/g, "").trim();
    if (text === "inf") { return Infinity; }
    return text !== "" && isFinite(Number(text)) ? Number(text) : text === "\u2013" ? "" : text;
  }
  function before(a, b) {
    if (a === "" || b === "") { return a === b ? 0 : a === "" ? 2 : -2; }
    if (typeof a !== typeof b) { return typeof a === "number" ? -1 : 1; }
    return a < b ? -1 : a > b ? 1 : 0;
  }
  Array.prototype.forEach.call(table.tHead.rows[0].cells, function (head, place) {
    var button = document.createElement("button");
    button.type = "button";
    while (head.firstChild) { button.appendChild(head.firstChild); }
    head.appendChild(button);
    button.addEventListener("click", function () {
      var down = head.getAttribute("aria-sort") === "ascending";
      Array.prototype.forEach.call(table.tHead.rows[0].cells, function (other) { other.removeAttribute("aria-sort"); });
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      rows.map(function (row, i) { return {row: row, i: i, key: key(row.cells[place])}; }).sort(function (a, b) {
        var order = before(a.key, b.key);
        return Math.abs(order) === 2 ? order : order === 0 ? a.i - b.i : down ? -order : order;
      }).forEach(function (entry) { body.appendChild(entry.row); });
    });
  });
  box.addEventListener("input", function () {
    window.clearTimeout(waiting);
    waiting = window.setTimeout(search, 80);
  });
  document.getElementById("searching").hidden = false;
}());
