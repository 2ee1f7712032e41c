// The view Understand: what the agent does for every weight, what is optimal, and where it falls short.

import { el } from './dom.js';
import { objectiveColour, regretColour } from './colours.js';
import { listen, policyOf, state } from './state.js';
import { createFront } from './front.js';
import { createMapPad } from './map-pad.js';
import { createNumbers } from './weights-control.js';
import { watchMap } from './map-store.js';
import { nearestRow, outcomeColours } from './outcomes.js';
import { openPolicies } from './connection.js';
import { centre, isKnown, number } from './weights.js';

/** A bar that says how far the computation of a map is. */
export function createProgress(host, testid = 'map-progress') {
  const words = el('span', { class: 'quiet' });
  const bar = el('progress', { max: 1, value: 0, 'aria-label': 'Episodes played' });
  const node = el('div', { class: 'map-progress', 'data-testid': testid, role: 'status' }, bar, words);
  host.append(node);
  return {
    node,
    show(map) {
      node.hidden = map.state === 'done';
      bar.hidden = map.state === 'failed';
      bar.value = map.total ? map.done / map.total : 0;
      words.textContent = map.state === 'failed' ? map.problem
        : !map.done ? 'Getting ready to play.'
          : `${map.done.toLocaleString('en')} of ${(map.total ?? 0).toLocaleString('en')} `
            + `${map.what ?? 'episodes'} played`;
    },
  };
}

export function regrets(map) {
  if (!map.optimal) return null;
  return map.utility.map((value, i) => (isKnown(value) ? Math.max(map.optimal.utility[i] - value, 0) : null));
}

/** What the numbers are. */
function meaningOf(map) {
  const regret = map.optimal ? ' Regret: what is missing to the best possible utility.' : '';
  return `Numbers: the rewards of an episode, on average, ${map.unit}. Utility: their sum under the weights.${regret}`;
}

export function showMaps(host, signal) {
  const policy = policyOf(state.policy);
  const objectives = policy.objectives;
  if (state.weights?.length !== objectives.length) state.weights = centre(objectives.length);
  const key = el('p', { class: 'key quiet' });
  const place = el('div', { class: 'map-row' });
  host.append(el('div', { class: 'view-head' },
    el('h1', { class: 'lead', text: 'Each point is a choice of weights. The same colour means the same outcome.' }),
      key), place);
  const progress = createProgress(host);
  const readout = createReadout(host, objectives);
  const meaning = el('p', { class: 'note quiet meaning' });
  host.append(meaning);
  const front = createFront(host, { objectives, signal });
  let map = null;
  let hovered = null;
  const onHover = (weights) => {
    hovered = weights;
    tell();
  };
  const tell = () => map && readout.show(map, hovered ?? state.weights);
  const pad = (title, testid, subtitle) => createMapPad(place,
    { objectives, title, testid, signal, onHover, subtitle });
  const agent = pad('What the agent does', 'map-agent');
  const others = {};
  progress.show({ state: 'running', done: 0, total: 0 });
  key.append(...objectives.map((name, i) =>
    el('span', { class: 'number-item' }, el('span', { class: 'chip', 'data-objective': i }), name)));
  const recolourKey = () => {
    for (const chip of key.querySelectorAll('.chip')) {
      chip.style.background = objectiveColour(Number(chip.dataset.objective));
    }
  };
  recolourKey();

  function paint() {
    const colours = outcomeColours(map);
    agent.paint(map, colours.agent, map.never_ends);
    if (map.optimal) {
      others.optimal ??= pad('What is optimal', 'map-optimal');
      others.regret ??= pad('What it loses', 'map-regret');
      others.optimal.paint(map, colours.optimal, []);
      const lost = regrets(map);
      const span = Math.max(...map.optimal.utility) - Math.min(...map.optimal.utility);
      const most = Math.max(...lost.filter((v) => v !== null), 0.04 * span, 1e-9);
      others.regret.paint(map, lost.map((value) => (value === null ? null : regretColour(value / most))),
        map.never_ends);
      others.scale ??= others.regret.node.appendChild(el('p', { class: 'scale quiet' }));
      others.scale.replaceChildren('0 ', el('i', { class: 'ramp-regret', 'aria-hidden': 'true' }),
        ` ${number(most)} regret`);
    }
    if (map.never_ends?.some(Boolean)) {
      others.hatch ??= agent.node.appendChild(el('p', { class: 'scale quiet' },
        el('i', { class: 'hatch', 'aria-hidden': 'true' }), ' no episode ends here'));
    }
    front.draw(map, colours);
    meaning.textContent = meaningOf(map);
    readout.node.hidden = false;
    tell();
  }
  watchMap(state.policy, (answer) => {
    progress.show(answer);
    if (answer.state !== 'done') return;
    map = answer;
    paint();
    document.documentElement.dataset.ready = 'true';
  }, signal);
  listen('weights', () => {
    hovered = null;
    tell();
  }, signal);
  listen('theme', () => {
    recolourKey();
    if (map) paint();
  }, signal);
  openPolicies([state.policy]);
}

/** What is known about one point of the maps. */
function createReadout(host, objectives) {
  const numbers = createNumbers(objectives);
  numbers.node.removeAttribute('data-testid');
  const facts = el('dl', { class: 'facts' });
  const node = el('section', { class: 'readout', 'aria-live': 'polite', 'aria-label': 'At the point' }, numbers.node,
    facts);
  node.hidden = true;
  host.append(node);
  return {
    node,
    show(map, weights) {
      numbers.show(weights);
      const row = nearestRow(map, weights);
      const returns = map.returns[row];
      const fact = (name, value, wide) => el('div', { class: wide ? 'fact wide' : 'fact' }, el('dt', { text: name }),
        el('dd', {}, value));
      const list = [];
      if (map.never_ends?.[row]) list.push(fact('The agent', 'no episode ends', false));
      if (returns) list.push(...objectives.map((name, i) => fact(name, number(returns[i]))));
      list.push(fact('utility', number(map.utility[row])));
      if (map.optimal) list.push(fact('regret', number(regrets(map)[row])));
      const behaviour = map.optimal?.behaviours?.[map.optimal.behaviour?.[row]];
      if (behaviour) list.push(fact('optimal here', behaviour, true));
      facts.replaceChildren(...list);
    },
  };
}
