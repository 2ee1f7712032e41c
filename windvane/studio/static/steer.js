// The view Steer: the stage, the weights control, small controls, what actions are worth, episodes.

import { el } from './dom.js';
import { listen, objectives, policyOf, state } from './state.js';
import { openPolicies } from './connection.js';
import { createControls } from './controls.js';
import { createEpisodes } from './episodes.js';
import { createQBars } from './qbars.js';
import { createStage } from './stage.js';
import { createWeightsControl } from './weights-control.js';
import { mapOf, watchMap } from './map-store.js';
import { lineOfTwo, outcomeColours, trianglePicture } from './outcomes.js';
import { count, handleOf, number } from './weights.js';

const FOLLOWERS = { minecart: 'The cart', dst: 'The submarine' };
const WAIT_BEFORE_MAP = 3000;
let invited = false;

export function showSteer(host, signal) {
  const lead = el('h1', { class: 'lead' });
  const note = el('p', { class: 'note quiet' });
  const left = el('div', { class: 'steer-left' });
  const right = el('div', { class: 'steer-right' });
  const node = el('div', { class: 'steer' }, el('div', { class: 'steer-lead' }, lead), left, right);
  host.append(node);
  createStage(left, { lane: 0, signal, onShape: (aspect) => node.style.setProperty('--aspect', aspect) });
  createEpisodes(left, { signal });
  left.append(note);
  const slot = el('div', { class: 'control-slot' });
  right.append(slot);
  createControls(right, { signal });
  createQBars(right, { signal });
  let inner = null;
  let names = '';

  function open() {
    const lane = state.lanes[0];
    const policy = policyOf(state.policy);
    if (lane) {
      const who = FOLLOWERS[lane.scene.kind] ?? 'The agent';
      const action = el('span', { text: `Drag the ${handleOf(lane.objectives.length)}.` });
      lead.replaceChildren(action, ' ', el('span', { text: `${who} follows.` }));
    }
    if (policy) {
      const trained = policy.step ? `, trained for ${count(policy.step)} steps` : '';
      note.textContent = `${policy.agent_label} on ${policy.env_label}${trained}. ${policy.note ?? ''}`;
    }
    const list = objectives();
    if (!lane || names === `${state.policy}|${list.join('|')}`) return;
    names = `${state.policy}|${list.join('|')}`;
    inner?.abort();
    inner = new AbortController();
    slot.replaceChildren();
    const { control } = createWeightsControl(slot, { objectives: list, signal: inner.signal });
    if (!invited) control.invite?.();
    invited = true;
    if (list.length === 2 || list.length === 3) colourByOutcomes(control, slot, inner.signal);
  }
  signal.addEventListener('abort', () => inner?.abort());
  listen('opened', open, signal);
  open();
  openPolicies([state.policy]);
}

/** The inside of the triangle shows what the agent does, as soon as that is known. */
function colourByOutcomes(control, slot, signal) {
  const id = state.policy;
  const words = el('p', { class: 'quiet map-words' });
  slot.firstChild.append(words);
  const show = (map) => {
    if (map?.state === 'running') {
      const share = number((100 * map.done) / Math.max(map.total, 1), 2);
      words.textContent = `Finding out what it does elsewhere: ${share}%`;
    }
    if (map?.state !== 'done') return;
    const hatched = map.never_ends?.some(Boolean) ? ' Hatched: it does not come to an end.' : '';
    words.textContent = `The colours show what it brings home.${hatched}`;
    const colours = outcomeColours(map).agent;
    if (map.resolution) control.underlay(trianglePicture(map.resolution, colours, map.never_ends), 0.62);
    else control.underlay(lineOfTwo(map, colours), 0.8);
  };
  const kept = mapOf(id);
  listen('theme', () => show(mapOf(id)), signal);
  if (kept) return show(kept);
  // The first seconds belong to the stage: the map is computed after them.
  const timer = setTimeout(() => watchMap(id, show, signal, 1500), WAIT_BEFORE_MAP);
  signal.addEventListener('abort', () => clearTimeout(timer));
  return undefined;
}
