// The last episodes as they end: what each was worth, and how far that is from the best possible.

import { el, svg, onWidth } from './dom.js';
import { css, weightsColour } from './colours.js';
import { listen, state } from './state.js';
import { announce } from './notices.js';
import { inWords, isKnown, number } from './weights.js';

const MOST = 12;
const HEIGHT = 92;

export function createEpisodes(host, { signal }) {
  const chart = el('div', { class: 'episodes-chart', 'aria-hidden': 'true' });
  const list = el('ol', { class: 'hidden', 'aria-label': 'The last episodes' });
  const legend = el('p', { class: 'quiet' });
  const node = el('section', { class: 'episodes', 'data-testid': 'episodes', 'aria-label': 'The last episodes' },
    el('div', { class: 'row-between' }, el('h2', { text: 'Episodes' }), legend), chart, list);
  host.append(node);
  let episodes = [];
  let width = 0;

  const total = ({ utility, weights, returns }) => utility
    ?? (weights ? returns?.reduce((sum, value, i) => sum + value * weights[i], 0) : null);

  const outcomeOf = (episode) => episode && `${episode.weights} ${number(total(episode))} ${episode.steps}`;

  function inText(episode) {
    const name = `Episode ${episode.episode + 1}: `;
    if (!episode.weights) return `${name}steered, ${episode.steps} steps.`;
    const regret = isKnown(episode.regret) ? `, regret ${number(episode.regret)}` : '';
    return `${name}utility ${number(total(episode))}${regret}, ${episode.steps} steps.`;
  }

  function draw() {
    if (!width) return;
    list.replaceChildren(...episodes.map((episode) => el('li', { text: inText(episode) })));
    const known = episodes.some((e) => e.weights && isKnown(e.regret));
    legend.textContent = episodes.length === 0 ? 'The first one is under way.'
      : known ? 'Bar: utility. Dashed: the best possible. Number: regret, what is missing.'
        : 'Bar and number: the utility of each.';
    const tops = episodes.flatMap((e) => (e.weights ? [total(e), (total(e) ?? 0) + (e.regret ?? 0)] : []));
    const high = tops.length ? Math.max(0, ...tops) : 1;
    const low = Math.min(0, ...tops);
    const span = high - low || 1;
    const slot = width / MOST;
    const bar = Math.min(slot * 0.56, 38);
    const digits = slot > 42 ? 3 : 2;
    const room = HEIGHT - 34;
    const y = (value) => 8 + ((high - value) / span) * room;
    const columns = Array.from({ length: MOST }, (_, i) => {
      const x = slot * i + slot / 2;
      const episode = episodes[i];
      if (!episode) return svg('circle', { cx: x, cy: y(0), r: 1.6, class: 'ep-empty' });
      const names = state.lanes[0]?.objectives ?? [];
      const under = episode.weights ? ` Weights ${inWords(names, episode.weights)}.` : '';
      const group = svg('g', {}, svg('title', { text: inText(episode) + under }));
      if (!episode.weights) {
        group.append(
          svg('rect', { x: x - bar / 2, y: 8 + room * 0.35, width: bar, height: room * 0.3, rx: 3,
            class: 'ep-steered' }),
          svg('text', { x, y: HEIGHT - 8, class: 'ep-text', text: slot > 44 ? 'steered' : '~' }));
        return group;
      }
      const value = total(episode);
      const [from, to] = [y(Math.max(value, 0)), y(Math.min(value, 0))];
      // A hair of regret would only fray the bar's end.
      if ((episode.regret / span) * room > 2.5) {
        const best = y(value + episode.regret);
        group.append(svg('rect', { x: x - bar / 2, y: best, width: bar, height: y(value) - best, rx: 2,
          class: 'ep-best' }));
      }
      const below = known ? episode.regret && Math.max(episode.regret, 0) : value;
      group.append(
        svg('rect', {
          x: x - bar / 2, y: from, width: bar, height: Math.max(to - from, 2.5), rx: 2.5,
          fill: css(weightsColour(episode.weights)),
        }),
        svg('text', { x, y: HEIGHT - 8, class: 'ep-text', text: isKnown(below) ? number(below, digits) : '' }));
      return group;
    });
    chart.replaceChildren(svg('svg', { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT },
      svg('line', { x1: 0, x2: width, y1: y(0), y2: y(0), class: 'axis' }), columns));
  }

  listen('episode', (episode) => {
    if (episode.lane !== 0) return;
    // A screen reader hears of news, not of every repetition.
    const isNews = outcomeOf(episode) !== outcomeOf(episodes.at(-1));
    episodes = [...episodes, episode].slice(-MOST);
    draw();
    if (isNews) announce(inText(episode));
  }, signal);
  listen('opened', () => {
    episodes = [];
    draw();
  }, signal);
  listen('theme', draw, signal);
  onWidth(chart, (now) => {
    width = now;
    draw();
  }, signal);
  return { node };
}
