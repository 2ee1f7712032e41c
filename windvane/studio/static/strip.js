// A strip of a map: the outcome for every weight of one objective, with a handle to drag along it.

import { el } from './dom.js';

/** @param options from, to (words at the ends), label, onInput(value, held), onHover(value|null), testid */
export function createStrip(host, { from, to, label, onInput, onHover, testid }) {
  const image = el('img', { alt: '', class: 'strip-image', draggable: 'false' });
  let held = false;
  const input = el('input', {
    type: 'range', min: 0, max: 1000, step: 10, class: 'strip-input', 'aria-label': label, 'data-testid': testid,
    on: {
      input: () => {
        held = true;
        onInput?.(Number(input.value) / 1000, true);
      },
      change: () => {
        held = false;
        onInput?.(Number(input.value) / 1000, false);
      },
      pointermove: (event) => {
        const area = input.getBoundingClientRect();
        onHover?.(Math.min(Math.max((event.clientX - area.left) / area.width, 0), 1));
      },
      pointerleave: () => onHover?.(null),
    },
  });
  const node = el('div', { class: 'strip' },
    el('div', { class: 'strip-ends' }, el('span', {}, from), el('span', {}, to)),
    el('div', { class: 'strip-body' }, image, input));
  host.append(node);
  return {
    node,
    get held() { return held; },
    show(value, words) {
      if (!held) input.value = Math.round(value * 1000);
      input.setAttribute('aria-valuetext', words);
    },
    paint(url) {
      image.src = url;
    },
  };
}
