// Tables: a click on a head (or Enter) sorts, a text box filters. Without this script they are plain tables.
for (const table of document.querySelectorAll("table.data")) {
  const body = table.tBodies[0], rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
  if (rows.length < 2) continue;
  const key = (row, column) => {
    const cell = row.cells[column];
    if (!cell) return null;
    return "v" in cell.dataset ? Number(cell.dataset.v) : cell.textContent === "–" ? null : cell.textContent;
  };
  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  const sort = (column) => {
    const up = heads[column].getAttribute("aria-sort") !== "ascending";
    heads.forEach((head, place) => head.setAttribute("aria-sort", place !== column ? "none" : up ? "ascending" : "descending"));
    const missing = rows.filter((row) => key(row, column) === null), known = rows.filter((row) => !missing.includes(row));
    known.sort((a, b) => compare(key(a, column), key(b, column)) * (up ? 1 : -1));
    body.append(...known, ...missing); // what is missing comes last, either way
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    button.title = "sort by this column";
    button.onclick = () => sort(column);
    head.append(button);
    head.setAttribute("aria-sort", "none");
  });
  if (rows.length < 8) continue;
  const filter = Object.assign(document.createElement("input"), { type: "search", placeholder: "filter rows" });
  filter.setAttribute("aria-label", "filter rows: all words must occur");
  const count = document.createElement("output");
  filter.oninput = () => {
    const words = filter.value.toLowerCase().split(/\s+/);
    const shown = rows.filter((row) => {
      const text = [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase();
      return !(row.hidden = !words.every((word) => text.includes(word)));
    });
    count.textContent = filter.value ? `${shown.length} of ${rows.length}` : "";
  };
  const bar = Object.assign(document.createElement("div"), { className: "filter" });
  bar.append(filter, count);
  table.closest(".scroll").before(bar);
}
