// Sliders of weights: one for two objectives, one each for four or more.

import { el } from './dom.js';
import { objectiveColour } from './colours.js';
import { exact, inWords, percents, rescale, centre } from './weights.js';

export function createSliders(host, { objectives, onInput, label = 'Weights', pointTestid }) {
  const two = objectives.length === 2;
  let weights = centre(objectives.length);
  let held = false;
  const shown = two ? [1] : objectives.map((_, index) => index);
  const inputs = shown.map((index) => el('input', {
    type: 'range', min: 0, max: 1000, step: 10, 'data-testid': index === shown[0] ? pointTestid : null,
    'aria-label': two ? `${label}: from ${objectives[0]} to ${objectives[1]}` : `Weight of ${objectives[index]}`,
    on: {
      input: (event) => {
        const value = Number(event.target.value) / 1000;
        held = true;
        show(two ? exact([1 - value, value]) : rescale(weights, index, value));
        onInput?.(weights, true);
      },
      change: () => {
        held = false;
        onInput?.(weights, false);
      },
    },
  }));
  const image = el('img', { alt: '', class: 'strip-image', draggable: 'false' });
  const body = el('span', { class: 'slider-body' }, image, two ? inputs[0] : null);
  const share = () => el('span', { class: 'slider-share' });
  const shares = objectives.map(share);
  const chip = (index) => el('span', { class: 'chip', 'data-objective': index });
  const rows = two
    ? [el('div', { class: 'slider-row two' },
      el('span', { class: 'slider-end' }, chip(0), objectives[0], shares[0]),
      el('span', { class: 'slider-end' }, chip(1), objectives[1], shares[1]), body)]
    : shown.map((index) => el('label', { class: 'slider-row' },
      el('span', { class: 'slider-end' }, chip(index), objectives[index]), inputs[index], shares[index]));
  const node = el('div', { class: `sliders ${two ? 'of-two' : ''}`, role: 'group', 'aria-label': label }, rows);
  host.append(node);

  function show(values) {
    weights = values;
    const whole = percents(weights);
    shares.forEach((node, i) => (node.textContent = `${whole[i]}%`));
    inputs.forEach((input, i) => {
      const index = shown[i];
      const value = Math.round(weights[index] * 1000);
      if (Number(input.value) !== value) input.value = value;
      input.setAttribute('aria-valuetext', two ? inWords(objectives, weights) : `${whole[index]}%`);
      input.style.setProperty('--share', `${weights[index] * 100}%`);
      input.style.setProperty('--colour', objectiveColour(index));
      input.style.setProperty('--rest', two ? objectiveColour(0) : 'var(--line)');
    });
  }
  const recolour = () => {
    for (const dot of node.querySelectorAll('.chip')) {
      dot.style.background = objectiveColour(Number(dot.dataset.objective));
    }
    show(weights);
  };
  recolour();
  return {
    node, get held() { return held; },
    show, recolour, destroy() {},
    /** Lay a picture of outcomes under the one slider of two objectives. */
    underlay(url, opacity = 1) {
      image.src = url;
      image.style.opacity = opacity;
      body.classList.add('has-map');
    },
  };
}
