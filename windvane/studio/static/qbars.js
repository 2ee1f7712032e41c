// What each action is worth to the agent right now: bars stacked from the weighted objectives,
// with the action that it chooses brought out.

import { el } from './dom.js';
import { objectiveColour } from './colours.js';
import { listen, state } from './state.js';
import { number } from './weights.js';

export function createQBars(host, { signal, lane: index = 0 }) {
  const chosen = el('b', { 'data-testid': 'chosen-action', text: '…' });
  const list = el('ul', { class: 'qrows', 'aria-label': 'Worth of each action' });
  const node = el('section', { class: 'qbars', 'data-testid': 'qbars',
    'aria-label': 'What it expects from each action' },
    el('div', { class: 'row-between' }, el('h2', {}, 'It chooses ', chosen),
      el('p', { class: 'quiet', text: 'What each action is worth' })), list);
  host.append(node);
  let rows = [];
  let reach = [0, 0];
  let last = null;

  function build(lane) {
    reach = [0, 0];
    last = null;
    rows = lane.actions.map((name) => {
      const track = el('span', { class: 'qtrack', 'aria-hidden': 'true' });
      const total = el('i', { class: 'qtotal' });
      const zero = el('i', { class: 'qzero' });
      const value = el('span', { class: 'qvalue' });
      track.append(zero, total);
      const row = el('li', { class: 'qrow' }, el('span', { class: 'qname', text: name, title: name }), track, value);
      return { row, track, total, zero, value, parts: [] };
    });
    list.replaceChildren(...rows.map((row) => row.row));
    list.classList.toggle('many', rows.length > 8);
  }

  function draw({ q, weights, action }) {
    const lane = state.lanes[index];
    if (!q || q.length !== rows.length || !lane) return;
    const count = lane.objectives.length;
    const split = q[0].length === count && count > 1;
    const shares = q.map((outputs) => (split ? outputs.map((value, i) => value * weights[i])
      : [outputs.reduce((a, b) => a + b, 0)]));
    const low = Math.min(0, ...shares.map((parts) => parts.reduce((sum, part) => sum + Math.min(part, 0), 0)));
    const high = Math.max(0, ...shares.map((parts) => parts.reduce((sum, part) => sum + Math.max(part, 0), 0)));
    // The scale grows at once and shrinks slowly: bars do not jump about.
    reach = [Math.min(low, reach[0] * 0.97), Math.max(high, reach[1] * 0.97)];
    const span = Math.max(reach[1] - reach[0], 1e-6) * 1.04;
    const zero = -reach[0] / span;
    rows.forEach((row, a) => drawRow(row, shares[a], zero, span, split, a === action));
    if (action !== null && action !== undefined) chosen.textContent = lane.actions[action] ?? `action ${action}`;
  }

  function drawRow(row, parts, zero, span, split, isChosen) {
    while (row.parts.length < parts.length) {
      const part = el('i', { class: 'qpart' });
      row.parts.push(part);
      row.track.insertBefore(part, row.zero);
    }
    let right = zero;
    let left = zero;
    parts.forEach((part, i) => {
      const width = Math.abs(part) / span;
      const from = part >= 0 ? right : left - width;
      if (part >= 0) right += width;
      else left -= width;
      const bar = row.parts[i].style;
      bar.left = `${from * 100}%`;
      bar.width = `${width * 100}%`;
      bar.background = split ? objectiveColour(i) : 'var(--muted)';
    });
    const total = parts.reduce((sum, part) => sum + part, 0);
    row.zero.style.left = `${zero * 100}%`;
    row.total.style.left = `${(zero + total / span) * 100}%`;
    row.value.textContent = number(total);
    row.row.classList.toggle('chosen', isChosen);
    if (isChosen) row.row.setAttribute('aria-current', 'true');
    else row.row.removeAttribute('aria-current');
  }

  const show = (message) => {
    if (message.lane !== index) return;
    last = message;
    if (message.action === null && message.q) {
      // Before the first action there is only the estimate: what is worth most will be chosen.
      const share = (outputs, i) => (outputs.length === message.weights.length ? message.weights[i] : 1);
      const totals = message.q.map((outputs) => outputs.reduce((sum, v, i) => sum + v * share(outputs, i), 0));
      last = { ...message, action: totals.indexOf(Math.max(...totals)) };
    }
    draw(last);
  };
  listen('opened', () => state.lanes[index] && build(state.lanes[index]), signal);
  listen('step', show, signal);
  listen('decision', show, signal);
  listen('theme', () => last && draw(last), signal);
  if (state.lanes[index]) build(state.lanes[index]);
  return { node };
}
