'use strict';
/* Sorting, filtering and picking of rows. The state is in the query of the address, so that a link keeps it. */
(() => {
  const UNITS = { p: 1e-12, n: 1e-9, 'µ': 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12 };
  const MANY_ROWS = 6;
  const query = new URLSearchParams(location.search);

  const remember = (key, value) => {
    if (value) query.set(key, value); else query.delete(key);
    const text = query.toString();
    /* Some viewers of local files forbid it; the page works without. */
    try { history.replaceState(null, '', (text ? '?' + text : location.pathname) + location.hash); } catch { }
  };

  /* The number that a cell begins with, in the base unit; NaN where there is none. */
  const number = text => {
    const found = /^[<>≥~]?\s*([+-]?\d+(?:\.\d+)?)(?:\s*[–±]\s*[\d.]+)?\s*(?:([pnµmkMGT])(?=s\b|bit|B\b|pps|op|Hz))?/.exec(text);
    return found ? parseFloat(found[1]) * (UNITS[found[2]] || 1) : NaN;
  };
  const compare = (a, b) => {
    const [x, y] = [number(a), number(b)];
    if (isNaN(x) && isNaN(y)) return a.localeCompare(b);
    if (isNaN(x)) return 1;
    return isNaN(y) ? -1 : x - y;
  };

  const enhance = (table, id) => {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    /* Labels that span rows, by row: every row gets its own while rows are moved or hidden. */
    const grid = rows.map(() => []);
    rows.forEach((row, at) => {
      let column = 0;
      for (const cell of row.cells) {
        while (grid[at][column]) column++;
        for (let below = 0; below < cell.rowSpan; below++) {
          if (grid[at + below]) grid[at + below][column] = { cell, own: below === 0 };
        }
        column++;
      }
    });
    const texts = grid.map(cells => cells.map(({ cell }) => cell.textContent.replace(/\s+/g, ' ').trim()));
    const spans = rows.flatMap(row => [...row.cells]).filter(cell => cell.rowSpan > 1).map(cell => [cell, cell.rowSpan]);
    let clones = [];
    const collapse = () => {
      clones.forEach(clone => clone.remove());
      clones = [];
      spans.forEach(([cell, span]) => { cell.rowSpan = span; });
    };
    const expand = () => {
      if (clones.length) return;
      spans.forEach(([cell]) => { cell.rowSpan = 1; });
      grid.forEach((cells, at) => cells.forEach(({ cell, own }, column) => {
        if (own) return;
        const clone = cell.cloneNode(true);
        rows[at].insertBefore(clone, rows[at].cells[column] || null);
        clones.push(clone);
      }));
    };

    const state = name => query.get(id + '.' + name) || '';
    const picked = new Set(state('pick').split('.').filter(Boolean).map(Number).filter(at => rows[at]));
    let only = state('only') === '1';
    let words = state('find');
    let sort = /^(\d+)([ud])$/.exec(state('sort'));
    sort = sort && { column: Number(sort[1]), down: sort[2] === 'd' };
    const heads = [];

    const show = () => {
      const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
      const order = rows.map((_, at) => at);
      if (sort) {
        const value = at => texts[at][sort.column] || '';
        order.sort((a, b) => {
          const [x, y] = [value(a), value(b)];
          const missing = isNaN(number(x)) - isNaN(number(y));
          return missing || (sort.down ? compare(y, x) : compare(x, y)) || a - b;
        });
      }
      if (sort || wanted.length || (only && picked.size)) expand(); else collapse();
      for (const at of order) {
        const text = texts[at].join(' ').toLowerCase();
        rows[at].hidden = !wanted.every(word => text.includes(word)) || (only && picked.size > 0 && !picked.has(at));
        rows[at].classList.toggle('picked', picked.has(at));
        body.append(rows[at]);
      }
      heads.forEach(({ head, column }) => {
        const here = sort && sort.column === column;
        if (here) head.setAttribute('aria-sort', sort.down ? 'descending' : 'ascending'); else head.removeAttribute('aria-sort');
      });
    };
    const change = () => {
      remember(id + '.sort', sort && sort.column + (sort.down ? 'd' : 'u'));
      remember(id + '.find', words);
      remember(id + '.pick', [...picked].sort((a, b) => a - b).join('.'));
      remember(id + '.only', only && picked.size ? '1' : '');
      show();
    };

    /* Headings of one column each; two rows of headings where columns share a setting. */
    const taken = [];
    [...table.tHead.rows].forEach((row, line) => {
      let column = 0;
      for (const head of row.cells) {
        while (taken[line] && taken[line][column]) column++;
        for (let down = 0; down < head.rowSpan; down++) {
          for (let right = 0; right < head.colSpan; right++) (taken[line + down] ||= [])[column + right] = true;
        }
        if (head.colSpan === 1 && line + head.rowSpan === table.tHead.rows.length) heads.push({ head, column });
        column += head.colSpan;
      }
    });
    heads.forEach(({ head, column }) => {
      const button = document.createElement('button');
      button.type = 'button';
      button.title = 'Sort by this column';
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener('click', () => {
        const here = sort && sort.column === column;
        sort = here && sort.down ? null : { column, down: Boolean(here) };
        change();
      });
    });

    rows.forEach((row, at) => row.addEventListener('click', event => {
      if (event.target.closest('a, button') || String(getSelection())) return;
      if (!picked.delete(at)) picked.add(at);
      if (!picked.size) only = box.checked = false;
      tools.classList.toggle('has-picked', picked.size > 0);
      change();
    }));
    const tools = document.createElement('span');
    tools.className = 'tools';
    const box = document.createElement('input');
    box.type = 'checkbox';
    box.checked = only;
    box.addEventListener('change', () => { only = box.checked; change(); });
    const label = document.createElement('label');
    label.className = 'only';
    label.append(box, ' picked rows only');
    const field = document.createElement('input');
    field.type = 'search';
    field.placeholder = 'Filter rows';
    field.setAttribute('aria-label', 'Filter rows');
    field.value = words;
    field.addEventListener('input', () => { words = field.value; change(); });
    tools.append(label, field);
    tools.classList.toggle('has-picked', picked.size > 0);
    if (rows.length >= MANY_ROWS) table.caption?.prepend(tools);
    show();
  };

  const all = [...document.querySelectorAll('.table > table')];
  all.forEach((table, at) => { if (table.tBodies[0]?.rows.length > 1) enhance(table, 't' + (at + 1)); });

  const unfold = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let part = target?.closest('details'); part; part = part.parentElement.closest('details')) part.open = true;
  };
  addEventListener('hashchange', unfold);
  unfold();
  let opened = [];
  addEventListener('beforeprint', () => {
    opened = [...document.querySelectorAll('details:not([open])')];
    opened.forEach(part => { part.open = true; });
  });
  addEventListener('afterprint', () => opened.forEach(part => { part.open = false; }));
})();
