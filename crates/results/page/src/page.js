'use strict';
/* Puts in what the server renders anew. Parts that were unfolded stay so. */
(() => {
  const main = document.querySelector('main');
  const link = document.getElementById('link');
  const events = new EventSource('/live' + location.pathname);
  events.onopen = () => { link.hidden = true; };
  events.onerror = () => { link.hidden = false; };
  events.onmessage = event => {
    const open = new Set([...main.querySelectorAll('details[open][id]')].map(part => part.id));
    main.innerHTML = event.data;
    main.dataset.updates = Number(main.dataset.updates || 0) + 1;
    open.forEach(id => {
      const part = document.getElementById(id);
      if (part) part.open = true;
    });
  };
  /* What is shown will not change any more. */
  events.addEventListener('end', () => { events.close(); });
})();
