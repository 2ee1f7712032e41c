// The page: top bar, routes, the policy picker, the theme; each view lives in its own module.

import { el, svg } from './dom.js';
import { isDark } from './colours.js';
import { emit, listen, policyOf, state } from './state.js';
import { request, send, stayConnected } from './connection.js';
import { fullPage, notice } from './notices.js';
import { createMark } from './vane.js';
import { showSteer } from './steer.js';
import { showMaps } from './maps.js';
import { showCompare } from './compare.js';
import { showTraining } from './training.js';

const VIEWS = {
  steer: { name: 'Steer', show: showSteer, plays: true },
  understand: { name: 'Understand', show: showMaps },
  compare: { name: 'Compare', show: showCompare, plays: true },
  training: { name: 'Training', show: showTraining },
};
const MOON = 'M15.5 12.2A6.5 6.5 0 0 1 7.8 4.5a6.5 6.5 0 1 0 7.7 7.7z';
const SUN = 'M10 6.2a3.8 3.8 0 1 0 0 7.6 3.8 3.8 0 0 0 0-7.6zM9.2 1.5h1.6v2.6H9.2zM9.2 15.9h1.6v2.6H9.2z'
  + 'M1.5 9.2h2.6v1.6H1.5zM15.9 9.2h2.6v1.6h-2.6zM3.4 4.5l1.1-1.1 1.9 1.9-1.1 1.1z'
  + 'M13.6 14.7l1.1-1.1 1.9 1.9-1.1 1.1zM15.5 3.4l1.1 1.1-1.9 1.9-1.1-1.1zM5.3 13.6l1.1 1.1-1.9 1.9-1.1-1.1z';

const main = document.getElementById('main');
const nav = document.getElementById('nav');
const slot = document.getElementById('policy-slot');
let shown = null; // the AbortController of the view on the page
let refused = false;

const route = () => {
  const name = location.hash.slice(1);
  return VIEWS[name] && (name !== 'training' || state.library.runs.length) ? name : 'steer';
};

function showView() {
  if (refused || !state.library) return;
  const name = route();
  const view = VIEWS[name];
  shown?.abort();
  shown = new AbortController();
  main.replaceChildren();
  main.className = `view view-${name}`;
  for (const link of nav.children) {
    if (link.hash === `#${name}`) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  slot.hidden = name === 'compare' || name === 'training';
  document.title = `${view.name} · Windvane studio`;
  state.watched = Boolean(view.plays);
  if (state.lanes.length) send({ type: 'pause', on: !state.watched || state.paused });
  if (!policyOf(state.policy) && name !== 'training') {
    main.append(el('section', { class: 'full' }, el('h1', { text: 'There is no policy to show yet.' }),
      el('p', { class: 'quiet', text: 'Train one, for instance with windvane train minecart, and it appears here.' })));
    return;
  }
  view.show(main, shown.signal);
  stayConnected();
}

function showNav() {
  const names = Object.keys(VIEWS).filter((name) => name !== 'training' || state.library.runs.length);
  nav.replaceChildren(...names.map((name) => el('a',
    { href: `#${name}`, text: VIEWS[name].name, 'aria-current': route() === name ? 'page' : null })));
}

function showPicker() {
  const groups = Map.groupBy ? Map.groupBy(state.library.policies, (p) => p.env_label)
    : state.library.policies.reduce((all, p) => all.set(p.env_label, [...(all.get(p.env_label) ?? []), p]), new Map());
  const select = el('select', {
    'data-testid': 'policy-picker', 'aria-label': 'Policy',
    on: {
      change: () => {
        state.policy = select.value;
        state.pair = [null, null];
        showView();
      },
    },
  }, [...groups].map(([label, policies]) => el('optgroup', { label }, policies.map((policy) => el('option', {
    value: policy.id, selected: policy.id === state.policy, disabled: Boolean(policy.problem),
    title: policy.problem ?? policy.note,
    text: `${policy.name} · ${policy.agent_label}`
      + (policy.problem ? ' (cannot be opened)' : policy.state === 'training' ? ' (training)' : ''),
  })))));
  slot.querySelector('select')?.remove();
  slot.append(select);
}

async function loadLibrary() {
  const first = state.library === null;
  try {
    state.library = await request('/api/library');
  } catch (error) {
    if (first && !refused) {
      notice(error.message);
      setTimeout(loadLibrary, 2000);
    }
    return;
  }
  const had = policyOf(state.policy);
  if (!had) {
    const usable = state.library.policies.find((policy) => !policy.problem);
    state.policy = state.library.default ?? usable?.id ?? null;
  }
  showNav();
  showPicker();
  emit('library-loaded');
  if (first || !had) showView();
}

function createThemeToggle() {
  const button = document.getElementById('theme');
  const show = () => button.replaceChildren(svg('svg', { viewBox: '0 0 20 20', class: 'icon', 'aria-hidden': 'true' },
    svg('path', { d: isDark() ? SUN : MOON })));
  button.addEventListener('click', () => {
    const theme = isDark() ? 'light' : 'dark';
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem('windvane-theme', theme);
    } catch { /* The choice then holds for this visit. */ }
    emit('theme');
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => emit('theme'));
  listen('theme', show);
  show();
}

listen('forbidden', () => {
  refused = true;
  shown?.abort();
  fullPage('This page needs the link that windvane studio printed.');
});
listen('problem', (message) => notice(message.message));
listen('library', loadLibrary);
listen('route', showView);
listen('link', (link) => {
  if (!refused) document.getElementById('link-state').textContent = link === 'open' ? '' : 'Reconnecting…';
});
window.addEventListener('hashchange', () => {
  showView();
  main.focus({ preventScroll: true });
  window.scrollTo(0, 0);
});
// The address keeps the view: the link to the content only moves the focus.
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});
createMark(document.getElementById('mark'));
createThemeToggle();
loadLibrary();
