// The small controls of a stage: pause, pace, restart, the market, and weights from a file.

import { el, svg } from './dom.js';
import { listen, objectives, state } from './state.js';
import { send } from './connection.js';
import { notice } from './notices.js';
import { parseSequence } from './csv.js';

const PACES = [['slow', 3], ['normal', 8], ['fast', 24]];
const MARKETS = [['off', 'off'], ['sparse', 'sudden changes'], ['regular', 'gradual drift']];
const ICONS = {
  pause: 'M6 4h3v12H6zM11 4h3v12h-3z',
  play: 'M6 3.6 16 10 6 16.4z',
  restart: 'M10 4a6 6 0 1 0 5.8 7.5h-2A4.1 4.1 0 1 1 10 5.9c1 0 2 .4 2.7 1L10.6 9H16V3.6l-1.9 1.9A6 6 0 0 0 10 4z',
};

export function icon(name) {
  return svg('svg', { viewBox: '0 0 20 20', class: 'icon', 'aria-hidden': 'true' }, svg('path', { d: ICONS[name] }));
}

export function createControls(host, { signal, file = true }) {
  const pause = el('button', { type: 'button', class: 'icon-button', 'data-testid': 'pause',
    on: { click: () => setPaused(!state.paused) } });
  const restart = el('button', {
    type: 'button', class: 'icon-button', 'data-testid': 'restart', 'aria-label': 'Restart the episode',
    title: 'Restart the episode',
    on: { click: () => send({ type: 'restart' }) },
  }, icon('restart'));
  const paces = el('div', { class: 'segments', role: 'group', 'aria-label': 'Pace' },
    PACES.map(([name, rate]) => el('button', {
    type: 'button', text: name, 'data-rate': rate,
    on: {
      click: () => {
        state.pace = rate;
        state.secondsPerStep = 1 / rate;
        send({ type: 'pace', steps_per_second: rate });
        showPace();
      },
    },
  })));
  const market = el('select', {
    'data-testid': 'market', 'aria-label': 'Market: let the weights move by themselves',
    on: { change: (event) => play({ type: 'market', kind: event.target.value }, event.target.value) },
  }, MARKETS.map(([value, text]) => el('option', { value, text })));
  const playing = el('span', { class: 'quiet playing', role: 'status' });
  const input = el('input', {
    type: 'file', accept: '.csv,.txt,text/csv', class: 'hidden-input', id: 'replay-file',
    'aria-label': 'Replay weights from a CSV file', on: { change: () => replay(input) },
  });
  const node = el('div', { class: 'controls', role: 'group', 'aria-label': 'Play' },
    el('div', { class: 'controls-row' }, pause, restart, paces),
    el('div', { class: 'controls-row' },
      el('label', { class: 'menu' }, el('span', { text: 'Market' }), market),
      file ? el('label', { class: 'button', for: 'replay-file', text: 'Replay weights…' }) : null,
      file ? input : null, playing));
  host.append(node);

  function play(message, kind) {
    send(message);
    state.playing = kind === 'off' ? null : kind;
    showPlaying();
  }
  async function replay(from) {
    const chosen = from.files[0];
    from.value = '';
    if (!chosen) return;
    try {
      const rows = parseSequence(await chosen.text(), objectives().length);
      play({ type: 'sequence', rows }, 'sequence');
    } catch (error) {
      notice(`${chosen.name}: ${error.message}`, 20);
    }
  }
  function setPaused(on) {
    state.paused = on;
    send({ type: 'pause', on });
    showPause();
  }
  function showPause() {
    pause.replaceChildren(icon(state.paused ? 'play' : 'pause'));
    pause.setAttribute('aria-label', state.paused ? 'Go on' : 'Pause');
    pause.title = state.paused ? 'Go on' : 'Pause';
  }
  function showPace() {
    for (const button of paces.children) {
      button.setAttribute('aria-pressed', String(Number(button.dataset.rate) === state.pace));
    }
  }
  function showPlaying() {
    market.value = ['sparse', 'regular'].includes(state.playing) ? state.playing : 'off';
    playing.textContent = state.playing === 'sequence' ? 'Replaying the file.' : '';
  }
  for (const type of ['weights', 'playing', 'opened']) listen(type, showPlaying, signal);
  showPause();
  showPace();
  showPlaying();
  return { node };
}
