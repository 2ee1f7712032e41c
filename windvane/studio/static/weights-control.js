// The weights control: a triangle or sliders, with the numbers below, bound to the page's weights.

import { el } from './dom.js';
import { objectiveColour } from './colours.js';
import { chooseWeights, listen, state } from './state.js';
import { createSliders } from './sliders.js';
import { createTriangle } from './triangle.js';
import { percents } from './weights.js';
import { announce } from './notices.js';
import { inWords } from './weights.js';

/** The numbers of the weights, as chips. */
export function createNumbers(objectives) {
  const values = objectives.map(() => el('b'));
  const chips = objectives.map((_, i) => el('span', { class: 'chip', 'data-objective': i }));
  const node = el('p', { class: 'numbers', 'data-testid': 'weights-text' },
    objectives.map((name, i) => el('span', { class: 'number-item' }, chips[i], `${name} `, values[i])));
  return {
    node,
    show(weights) {
      percents(weights).forEach((share, i) => (values[i].textContent = `${share}%`));
      chips.forEach((chip, i) => (chip.style.background = objectiveColour(i)));
    },
  };
}

/**
 * A control bound to the page's weights, or to `onInput` where it steers something else.
 * @param options objectives, signal, onInput(weights, held), label
 */
export function createWeightsControl(host, { objectives, signal, onInput, label = 'Weights', weights }) {
  const node = el('div', { class: 'weights-control', 'data-testid': 'weights-control' });
  host.append(node);
  const numbers = createNumbers(objectives);
  const create = objectives.length === 3 ? createTriangle : createSliders;
  const bound = !onInput;
  const control = create(node, {
    objectives, label, pointTestid: 'weights-point',
    onInput: (values, held) => {
      numbers.show(values);
      if (bound) chooseWeights(values, held);
      else onInput(values, held);
      if (!held) announce(inWords(objectives, values));
    },
  });
  // The controls show the numbers themselves; this is their text in one place.
  numbers.node.classList.add('hidden');
  node.append(numbers.node);
  const show = (values) => {
    if (values?.length !== objectives.length) return;
    numbers.show(values);
    if (!control.held) control.show(values);
  };
  show(bound ? state.weights : weights);
  if (bound) listen('weights', ({ values, from }) => (from === 'server' || !control.held) && show(values), signal);
  listen('theme', () => {
    control.recolour();
    if (bound) show(state.weights);
  }, signal);
  signal.addEventListener('abort', () => control.destroy());
  return { node, control, show };
}
