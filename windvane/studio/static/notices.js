// What the page says aside: quiet notices that can be dismissed, and words for screen readers.

import { el } from './dom.js';

const notices = () => document.getElementById('notices');
let announcing = 0;

/** Show one sentence; it leaves by itself. */
export function notice(sentence, seconds = 9) {
  for (const old of notices().children) if (old.dataset.sentence === sentence) old.remove();
  const node = el('div', { class: 'notice', 'data-testid': 'problem', 'data-sentence': sentence },
    el('span', { text: sentence }),
    el('button', { type: 'button', class: 'notice-close', 'aria-label': 'Dismiss', text: '×',
      on: { click: () => node.remove() } }));
  notices().append(node);
  while (notices().children.length > 3) notices().firstChild.remove();
  setTimeout(() => node.remove(), seconds * 1000);
}

/** Tell a screen reader, at most about once a second. */
export function announce(sentence) {
  clearTimeout(announcing);
  announcing = setTimeout(() => (document.getElementById('announcer').textContent = sentence), 600);
}

/** Replace the page by one sentence. */
export function fullPage(sentence) {
  document.querySelector('header')?.remove();
  document.getElementById('main').replaceChildren(
    el('section', { class: 'full', 'data-testid': 'problem' }, el('h1', { text: sentence })));
}
