// The mark of the page: a weather vane that points where the weights pull.

import { svg } from './dom.js';
import { css, weightsColour } from './colours.js';
import { listen, state } from './state.js';
import { place } from './triangle.js';
import { turn } from './scenes/drawing.js';

/** The direction of weights in degrees: as the point lies from the middle of the triangle. */
export function vaneAngle(weights) {
  if (weights.length === 3) {
    const [x, y] = place(weights);
    const [cx, cy] = place([1 / 3, 1 / 3, 1 / 3]);
    return Math.hypot(x - cx, y - cy) < 1 ? -25 : (Math.atan2(y - cy, x - cx) * 180) / Math.PI;
  }
  if (weights.length === 2) return -180 + 180 * weights[1];
  const angles = weights.map((_, i) => (i / weights.length) * Math.PI * 2);
  const x = weights.reduce((sum, w, i) => sum + w * Math.cos(angles[i]), 0);
  const y = weights.reduce((sum, w, i) => sum + w * Math.sin(angles[i]), 0);
  return Math.hypot(x, y) < 1e-3 ? -25 : (Math.atan2(y, x) * 180) / Math.PI;
}

export function createMark(host) {
  const arrow = svg('path', { class: 'mark-arrow', d: 'M13 0 4.5-4.6V-1.6H-7L-11.5-5.4-9.5 0l-2 5.4L-7 1.6H4.5v3z' });
  const turning = svg('g', { class: 'mark-turning' }, arrow);
  host.append(svg('svg', { viewBox: '-16 -16 32 32', class: 'mark' },
    svg('circle', { r: 15, class: 'mark-ring' }),
    svg('path', { class: 'mark-post', d: 'M0-14v3M0 11v3M-14 0h3M11 0h3' }), turning));
  let angle = -25;
  const show = () => {
    if (!state.weights) return;
    // Turning on from where it is, the arrow never spins the long way round.
    angle += turn(angle, vaneAngle(state.weights));
    turning.style.transform = `rotate(${angle}deg)`;
    arrow.setAttribute('fill', css(weightsColour(state.weights)));
  };
  for (const type of ['weights', 'opened', 'theme']) listen(type, show);
  turning.style.transform = `rotate(${angle}deg)`;
}
