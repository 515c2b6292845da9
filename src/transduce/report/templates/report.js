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
  box.addEventListener("input", function () {
    window.clearTimeout(waiting);
    waiting = window.setTimeout(search, 80);
  });
  document.getElementById("searching").hidden = false;
}());
