// Small charts drawn by hand in SVG: axes with round ticks, points and lines.

import { svg } from './dom.js';

/** Round numbers from low to high, about `count` of them. */
export function ticks(low, high, count = 5) {
  const raw = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-6; i += 1) found.push(i * step);
  return found;
}

/** A range with a little room around it. */
export function widened(values, room = 0.06) {
  const finite = values.filter(Number.isFinite);
  if (!finite.length) return [0, 1];
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const more = (high - low || Math.abs(high) || 1) * room;
  return [low - more, high + more];
}

const tickText = (value) => (Math.abs(value) >= 1e6 ? `${Number((value / 1e6).toPrecision(3))} M`
  : Math.abs(value) >= 1e4 ? `${Number((value / 1e3).toPrecision(3))} k`
    : `${Math.round(value * 1000) / 1000}`.replace('-', '−'));

/**
 * Axes in an SVG of the given size.
 * @returns node, the group `plot` to draw in, and the scales x and y
 */
export function axes({ width, height, xRange, yRange, xLabel, yLabel, label, most = 4, blank = false }) {
  const pad = { left: 46, right: 20, top: 26, bottom: 40 };
  const x = (v) => pad.left + ((v - xRange[0]) / (xRange[1] - xRange[0])) * (width - pad.left - pad.right);
  const y = (v) => height - pad.bottom - ((v - yRange[0]) / (yRange[1] - yRange[0])) * (height - pad.top - pad.bottom);
  const plot = svg('g');
  const node = svg('svg', { viewBox: `0 0 ${width} ${height}`, width, height, class: 'chart', role: 'img',
    'aria-label': label });
  for (const tick of blank ? [] : ticks(...yRange)) {
    node.append(svg('line', { x1: pad.left, x2: width - pad.right, y1: y(tick), y2: y(tick),
      class: Math.abs(tick) < 1e-12 ? 'grid zero' : 'grid' }),
      svg('text', { x: pad.left - 7, y: y(tick) + 3.5, class: 'tick', 'text-anchor': 'end', text: tickText(tick) }));
  }
  for (const tick of ticks(...xRange, most)) {
    node.append(svg('line', { x1: x(tick), x2: x(tick), y1: height - pad.bottom, y2: height - pad.bottom + 4,
      class: 'axis' }),
      svg('text', { x: x(tick), y: height - pad.bottom + 17, class: 'tick', 'text-anchor': 'middle',
        text: tickText(tick) }));
  }
  node.append(
    svg('line', { x1: pad.left, x2: width - pad.right, y1: height - pad.bottom, y2: height - pad.bottom,
      class: 'axis' }),
    svg('text', { x: width - pad.right, y: height - 5, class: 'axis-label', 'text-anchor': 'end', text: xLabel }),
    svg('text', { x: pad.left - 34, y: 12, class: 'axis-label', text: yLabel }), plot);
  return { node, plot, x, y };
}

export function line(xs, ys, x, y, attributes) {
  let d = '';
  let open = false;
  xs.forEach((value, i) => {
    if (!Number.isFinite(ys[i])) {
      open = false;
      return;
    }
    d += `${open ? 'L' : 'M'}${x(value).toFixed(1)} ${y(ys[i]).toFixed(1)}`;
    open = true;
  });
  return svg('path', { d, fill: 'none', ...attributes });
}
