addEventListener('load', () => {
  const faults = [];
  const drawings = [];
  const words = element => {
    const text = element.textContent.replace(/\s+/g, ' ').trim();
    const part = element.closest('section, header, footer');
    return `"${text.slice(0, 50)}"` + (part && part.id ? ` in #${part.id}` : '');
  };
  const height = document.documentElement.scrollHeight;
  document.querySelectorAll('details').forEach(part => { part.open = true; });
  const width = innerWidth;

  /* What a box with hidden or, on a wide screen, scrolling overflow does not show. */
  for (const box of document.querySelectorAll('body *')) {
    if (box.closest('svg') || box.classList.contains('visually-hidden')) continue;
    const { overflowX } = getComputedStyle(box);
    const isBox = overflowX === 'hidden' || (width > 1000 && overflowX !== 'visible');
    if (isBox && box.clientWidth > 0 && box.scrollWidth > box.clientWidth + 1 && box.tagName !== 'INPUT') {
      faults.push(`cut by ${box.scrollWidth - box.clientWidth} px: ${words(box.querySelector('caption .title') || box)}`);
    }
  }

  /* What scrolls on a narrow screen says so: a shadow where there is more, and a line above. */
  for (const box of document.querySelectorAll('.chart, .table')) {
    if (width > 600 || box.scrollWidth <= box.clientWidth + 1) continue;
    const { backgroundImage } = getComputedStyle(box);
    const caption = box.closest('figure')?.querySelector('figcaption') ?? box.querySelector('caption');
    const line = caption && getComputedStyle(caption, '::after').content;
    const says = backgroundImage.includes('gradient') && (!caption || line.includes('Scrolls'));
    if (!says) faults.push(`scrolls without a sign: ${words(box)}`);
  }

  /* Bars begin in the left half of what a narrow screen shows. */
  for (const svg of width > 600 ? [] : document.querySelectorAll('#udp svg')) {
    const bars = [...svg.querySelectorAll('rect[class^="fill-"]')].filter(bar => bar.querySelector('title'));
    const left = Math.min(...bars.map(bar => bar.getBoundingClientRect().left));
    if (bars.length && left > width / 2) drawings.push(`bars begin at ${left.toFixed(0)} px: ${words(svg)}`);
  }

  /* Text outside of its drawing. */
  const drawn = [];
  for (const svg of document.querySelectorAll('svg')) {
    const frame = svg.getBoundingClientRect();
    if (!frame.width) continue;
    const own = [];
    for (const text of svg.querySelectorAll('text')) {
      const rect = text.getBoundingClientRect();
      if (!rect.width) continue;
      own.push({ rect, element: text });
      const out = Math.max(frame.left - rect.left, rect.right - frame.right, frame.top - rect.top, rect.bottom - frame.bottom);
      if (out > 1) drawings.push(`outside of its drawing by ${out.toFixed(1)} px: ${words(text)}`);
    }
    drawn.push(own);
  }

  /* One text over another: between texts of a drawing, and between lines of the page. */
  const over = (texts, slack, found) => {
    texts.sort((a, b) => a.rect.top - b.rect.top);
    texts.forEach((one, at) => {
      for (const other of texts.slice(at + 1)) {
        if (other.rect.top >= one.rect.bottom - slack) break;
        const wide = Math.min(one.rect.right, other.rect.right) - Math.max(one.rect.left, other.rect.left);
        const high = Math.min(one.rect.bottom, other.rect.bottom) - other.rect.top;
        if (wide > 1 && high > slack && one.element !== other.element) {
          found.push(`${words(one.element)} over ${words(other.element)} by ${wide.toFixed(0)} px`);
        }
      }
    });
  };
  drawn.forEach(own => over(own, 4, drawings));
  const lines = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const element = node.parentElement;
    if (!node.data.trim() || element.closest('svg, script, style, .visually-hidden')) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const rect of range.getClientRects()) {
      if (rect.width > 0) lines.push({ rect, element });
    }
  }
  over(lines, 6, faults);
  const sideways = Math.max(0, document.documentElement.scrollWidth - innerWidth);
  parent.postMessage({ width, height, sideways, faults, drawings }, '*');
});
