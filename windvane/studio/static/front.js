// The front: returns that the agent reaches beside the optimal ones, one panel per pair of objectives.

import { el, onWidth, svg } from './dom.js';
import { css } from './colours.js';
import { axes, widened } from './charts.js';
import { nearestRow } from './outcomes.js';
import { listen, state } from './state.js';

const MOST_PANELS = 6;

export function createFront(host, { objectives, signal }) {
  const panels = el('div', { class: 'panels' });
  const node = el('section', { class: 'front', 'data-testid': 'front', 'aria-label': 'The front' },
    el('div', { class: 'row-between' }, el('h2', { text: 'What it can reach' }),
      el('p', { class: 'quiet front-key' }, el('i', { class: 'key-dot' }), ' the agent ',
        el('i', { class: 'key-ring' }), ' optimal ', el('i', { class: 'key-now' }), ' now')), panels);
  node.hidden = true;
  host.append(node);
  const pairs = objectives.flatMap((_, i) => objectives.slice(i + 1).map((__, k) => [i, i + 1 + k]))
    .slice(0, MOST_PANELS);
  let known = null;
  let marks = [];

  function drawAll() {
    if (!known) return;
    const { map, colours } = known;
    const columns = panels.clientWidth < 560 ? 1 : Math.min(pairs.length, 3);
    const width = Math.floor((panels.clientWidth - 24 * (columns - 1)) / columns);
    if (width < 80) return;
    marks = [];
    panels.classList.toggle('single', pairs.length === 1);
    panels.style.gridTemplateColumns = pairs.length === 1 ? '' : `repeat(${columns}, minmax(0, 1fr))`;
    panels.replaceChildren(...pairs.map(([i, j]) => {
      const all = [...map.returns.filter((row, k) => row && !map.never_ends?.[k]), ...(map.optimal_front ?? [])];
      const chart = axes({
        width: pairs.length === 1 ? Math.min(width, 620) : width, height: Math.min(Math.round(width * 0.78), 300),
        xRange: widened(all.map((row) => row[i]), 0.08), yRange: widened(all.map((row) => row[j]), 0.08),
        xLabel: objectives[i], yLabel: objectives[j],
        label: `${objectives[j]} against ${objectives[i]}: returns reached, and the optimal front`,
      });
      const best = (map.optimal_front ?? []).map((row) => svg('circle', {
        cx: chart.x(row[i]), cy: chart.y(row[j]), r: 5, class: 'front-optimal',
      }));
      const reached = map.returns.map((row, k) => (row && !map.never_ends?.[k]
        ? svg('circle', { cx: chart.x(row[i]), cy: chart.y(row[j]), r: 3,
          fill: css(colours.agent[k] ?? [128, 128, 128]), class: 'front-point' }) : null));
      const mark = svg('circle', { r: 6.5, class: 'front-now' });
      marks.push({ mark, chart, i, j });
      chart.plot.append(...best, ...reached.filter(Boolean), mark);
      return chart.node;
    }));
    point();
  }

  function point() {
    if (!known || state.weights?.length !== objectives.length) return;
    const row = known.map.returns[nearestRow(known.map, state.weights)];
    for (const { mark, chart, i, j } of marks) {
      const shown = row && row.every(Number.isFinite);
      mark.classList.toggle('gone', !shown);
      if (shown) mark.style.transform = `translate(${chart.x(row[i])}px, ${chart.y(row[j])}px)`;
    }
  }
  onWidth(panels, drawAll, signal);
  listen('weights', point, signal);
  return {
    node,
    draw(map, colours) {
      if (objectives.length < 2) return;
      known = { map, colours };
      node.hidden = false;
      drawAll();
    },
  };
}
