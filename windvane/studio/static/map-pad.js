// One map over the weights, for any number of objectives: a triangle, one strip, or a strip each.
// Its point is the page's weights and can be dragged there, too.

import { el } from './dom.js';
import { chooseWeights, listen, state } from './state.js';
import { createStrip } from './strip.js';
import { createTriangle } from './triangle.js';
import { lineOfTwo, stripPicture, trianglePicture } from './outcomes.js';
import { exact, inWords, rescale } from './weights.js';

/**
 * @param options objectives, title, testid, signal, onHover(weights|null)
 * @returns node, and paint(map, colours, hatched) which colours it
 */
export function createMapPad(host, { objectives, title, testid, signal, onHover, subtitle = '' }) {
  const caption = el('figcaption', {}, el('h2', { text: title }),
    subtitle ? el('span', { class: 'quiet', text: subtitle }) : null);
  const body = el('div', { class: 'map-body' });
  const node = el('figure', { class: 'map', 'data-testid': testid }, caption, body);
  host.append(node);
  const count = objectives.length;
  const pad = count === 3
    ? createTriangle(body, { objectives, onInput: chooseWeights, onHover, label: title })
    : createStrips(body, { objectives, onHover, title });
  const show = (weights) => weights?.length === count && !pad.held && pad.show(weights);
  show(state.weights);
  listen('weights', ({ values }) => show(values), signal);
  listen('theme', () => pad.recolour(), signal);
  signal.addEventListener('abort', () => pad.destroy?.());
  return {
    node, body,
    paint(map, colours, hatched) {
      if (count === 3 && map.resolution) pad.underlay(trianglePicture(map.resolution, colours, hatched));
      else if (count !== 3) pad.paint(map, colours, hatched);
      node.classList.add('painted');
    },
  };
}

function createStrips(host, { objectives, onHover, title }) {
  const two = objectives.length === 2;
  let weights = exact(objectives.map(() => 1 / objectives.length));
  const weightsAt = (i, value) => (two ? exact([1 - value, value]) : rescale(exact(objectives.map(() => 1)), i, value));
  const strips = (two ? [1] : objectives.map((_, i) => i)).map((i) => createStrip(host, {
    from: two ? objectives[0] : objectives[i], to: two ? objectives[1] : '',
    label: `${title}: weight of ${objectives[i]}`,
    onInput: (value, held) => {
      weights = two ? exact([1 - value, value]) : rescale(weights, i, value);
      chooseWeights(weights, held);
    },
    onHover: (value) => onHover?.(value === null ? null : weightsAt(i, value)),
  }));
  return {
    get held() { return false; },
    show(values) {
      weights = values;
      strips.forEach((strip, k) => strip.show(values[two ? 1 : k], inWords(objectives, values)));
    },
    recolour() {},
    paint(map, colours, hatched) {
      if (two) {
        strips[0].paint(lineOfTwo(map, colours, hatched));
        return;
      }
      const rows = map.weights.length / objectives.length;
      strips.forEach((strip, k) => {
        const part = (list) => list.slice(k * rows, (k + 1) * rows);
        strip.paint(stripPicture(part(colours), part(hatched)));
      });
    },
  };
}
