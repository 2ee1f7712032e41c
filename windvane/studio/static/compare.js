// The view Compare: two policies under the same weights and the same seed, and who is better where.

import { el } from './dom.js';
import { differenceColour, sideColours } from './colours.js';
import { emit, listen, policyOf, state } from './state.js';
import { openPolicies } from './connection.js';
import { createControls } from './controls.js';
import { createMapPad } from './map-pad.js';
import { createProgress } from './maps.js';
import { createStage } from './stage.js';
import { createWeightsControl } from './weights-control.js';
import { watchMap } from './map-store.js';
import { outcomeColour, ranges } from './outcomes.js';
import { centre, handleOf, isKnown, number } from './weights.js';

const NAMES = ['A', 'B'];

/** Two different policies of one group, or null. */
function choosePair() {
  const usable = state.library.policies.filter((policy) => !policy.problem);
  const first = policyOf(state.pair[0]) ?? policyOf(state.policy) ?? policyOf(state.library.default);
  const rivals = usable.filter((policy) => policy.group === first?.group && policy.id !== first.id);
  const wanted = [state.pair[1], state.library.compare, state.library.default];
  const second = wanted.map((id) => rivals.find((policy) => policy.id === id)).find(Boolean) ?? rivals[0];
  return second ? [first.id, second.id] : null;
}

export function showCompare(host, signal) {
  const pair = choosePair();
  if (!pair) {
    host.append(el('section', { class: 'full' },
      el('h1', { text: 'A comparison needs a second policy for the same problem.' }),
      el('p', {
        class: 'quiet', text: 'Train another agent or another seed on this environment, and it appears here.',
      })));
    return;
  }
  state.pair = pair;
  const objectives = policyOf(pair[0]).objectives;
  if (state.weights?.length !== objectives.length) state.weights = centre(objectives.length);
  const sides = NAMES.map((name, i) => el('section', {
    class: `side side-${name.toLowerCase()}`, 'data-testid': `compare-${name.toLowerCase()}`,
    'aria-label': `Policy ${name}`,
  },
    el('label', { class: 'picker' }, el('b', { class: 'badge', 'data-side': i, text: NAMES[i] }),
      createPicker(i, pair))));
  const middle = el('div', { class: 'compare-middle' });
  host.append(el('h1', { class: 'lead center', text: `Drag the ${handleOf(objectives.length)}. Both follow.` }),
    el('div', { class: 'compare' }, sides[0], middle, sides[1]));
  sides.forEach((side, lane) => {
    createStage(side, { lane, signal, testid: `stage-${NAMES[lane].toLowerCase()}`, caption: false });
    side.append(createStatus(lane, signal));
  });
  createWeightsControl(middle, { objectives, signal });
  createControls(middle, { signal, file: false });
  showDifference(host, pair, objectives, signal);
  openPolicies(pair);
  tint(host);
  listen('theme', () => tint(host), signal);
}

function tint(host) {
  for (const badge of host.querySelectorAll('[data-side]')) {
    badge.style.background = sideColours()[Number(badge.dataset.side)];
  }
}

function createPicker(side, pair) {
  const group = policyOf(pair[0]).group;
  const offered = state.library.policies.filter((policy) => !policy.problem && (side === 0 || policy.group === group));
  return el('select', {
    'aria-label': `Policy ${NAMES[side]}`,
    on: {
      change: (event) => {
        state.pair = side === 0 ? [event.target.value, pair[1] === event.target.value ? pair[0] : pair[1]]
          : [pair[0], event.target.value];
        if (state.pair[0] === state.pair[1]) state.pair = [pair[1], pair[0]];
        emit('route');
      },
    },
  }, offered.map((policy) => el('option', {
    value: policy.id, selected: policy.id === pair[side], text: `${policy.name} · ${policy.agent_label}`,
  })));
}

/** One line below a stage: what it chooses, and how its last episode went. */
function createStatus(lane, signal) {
  const chooses = el('b', { text: '…' });
  const past = el('span', { class: 'quiet' });
  const tell = (message) => {
    const action = state.lanes[lane]?.actions?.[message.action];
    if (message.lane === lane && action) chooses.textContent = action;
  };
  listen('step', tell, signal);
  listen('decision', tell, signal);
  listen('episode', (episode) => {
    if (episode.lane !== lane) return;
    const regret = isKnown(episode.regret) ? `, regret ${number(episode.regret)}` : '';
    past.textContent = episode.weights ? `Last: utility ${number(episode.utility)}${regret}` : 'Last: steered';
  }, signal);
  return el('p', { class: 'side-status' }, el('span', {}, 'Chooses ', chooses), past);
}

function showDifference(host, pair, objectives, signal) {
  const row = el('div', { class: 'map-row' });
  const summary = el('p', { class: 'compare-summary', 'data-testid': 'compare-summary', 'aria-live': 'polite' });
  host.append(summary, row);
  const titles = ['A: what it brings home', 'Who is better', 'B: what it brings home'];
  const pads = titles.map((title, i) => createMapPad(row, {
    objectives, title, signal, testid: ['map-a', 'map-difference', 'map-b'][i],
  }));
  const bars = [0, 2].map((i) => createProgress(pads[i].node));
  const maps = [null, null];
  const paint = () => {
    const known = maps.filter((map) => map?.state === 'done');
    const spans = ranges(known.map((map) => map.returns.filter((_, i) => !map.never_ends?.[i])), objectives.length);
    maps.forEach((map, i) => {
      if (map?.state !== 'done') return;
      pads[i * 2].paint(map, map.returns.map((returns) => outcomeColour(returns, spans)), map.never_ends);
    });
    if (known.length === 2) paintDifference(pads[1], maps, summary, pair);
    tint(host);
  };
  // The second map waits for the first: together they would only slow each other down.
  const follow = (i) => watchMap(pair[i], (map) => {
    maps[i] = map;
    bars[i].show(map);
    if (map.state === 'done') paint();
  }, signal);
  bars.forEach((bar) => bar.show({ state: 'running', done: 0, total: 0 }));
  summary.textContent = 'Both play episodes all over the map, to find out who is better where.';
  follow(0).then(() => !signal.aborted && follow(1));
  listen('theme', () => maps.some(Boolean) && paint(), signal);
}

function paintDifference(pad, [a, b], summary, pair) {
  if (a.weights.length !== b.weights.length) {
    summary.textContent = 'Their maps have different grids, so they cannot be compared point by point.';
    return;
  }
  const gaps = a.utility.map((value, i) => (isKnown(value) && isKnown(b.utility[i]) ? value - b.utility[i] : null));
  const finite = gaps.filter((gap) => gap !== null);
  const all = [...a.utility, ...b.utility].filter(isKnown);
  if (!finite.length) {
    summary.textContent = 'No episode of both has an outcome that could be compared.';
    return;
  }
  const span = Math.max(...all) - Math.min(...all) || 1;
  const most = Math.max(...finite.map(Math.abs), span * 0.05);
  const neither = a.never_ends.map((never, i) => never && b.never_ends[i]);
  pad.paint(a, gaps.map((gap) => (gap === null ? null : differenceColour(gap / most))), neither);
  // Half a percent of the range is nothing that anybody would notice.
  const least = span * 0.005;
  const won = [finite.filter((gap) => gap > least), finite.filter((gap) => gap < -least)];
  const part = (i) => {
    const mean = won[i].reduce((sum, gap) => sum + Math.abs(gap), 0) / won[i].length;
    const share = number((100 * won[i].length) / finite.length, 2);
    return won[i].length ? `${share}% of the weights, by ${number(mean)} on average` : null;
  };
  const badge = (i) => el('b', { class: 'badge', 'data-side': i, text: NAMES[i],
    title: policyOf(pair[i])?.name ?? '' });
  const leader = won[0].length >= won[1].length ? 0 : 1;
  const parts = [leader, 1 - leader].filter((i) => part(i));
  if (!parts.length) summary.textContent = 'They are as good as each other everywhere.';
  else {
    const equal = finite.length - won[0].length - won[1].length;
    summary.replaceChildren(badge(parts[0]), ` is better for ${part(parts[0])}.`,
      ...(parts[1] === undefined ? [] : [' ', badge(parts[1]), ` is better for ${part(parts[1])}.`]),
      ...(equal ? [` They are equal for ${number((100 * equal) / finite.length, 2)}%.`] : []));
  }
}
