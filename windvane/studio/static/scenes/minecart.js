// Minecart as a calm, flat picture seen from above: the base with its weather vane, open pits with
// their ores, and a cart that glides, carries what it mined and leaves a trail in the weights' colours.

import { css, isDark, objectiveColour, weightsColour } from '../colours.js';
import { number } from '../weights.js';
import { vaneAngle } from '../vane.js';
import { backdrop, ease, gem, turn } from './drawing.js';
import { drawCart, drawHouse, drawLand } from './minecart-land.js';

const MARGIN = 0.15;
const MOST_TRAIL = 700;

export function createMinecart(spec, lane) {
  const land = backdrop((context, width) => drawLand(context, width, spec, toPicture(width)));
  let path = [[0, 0, 45]];
  let start = 0;
  let lasts = 0;
  let content = [0, 0];
  let shownContent = [0, 0];
  let trail = [];
  let old = { spots: [], ended: 0 };
  let sales = [];
  let action = null;
  let tint = '#888';
  let seen = false;
  let passed = 0; // poses of the path that are on the trail already
  let vane = null;

  function toPicture(width) {
    return (v) => (MARGIN + (1 - 2 * MARGIN) * v) * width;
  }

  // The time of a frame may lie just before the message that came since.
  const placeAt = (now) => (lasts > 0 ? Math.min(Math.max((now - start) / lasts, 0), 1) : 1) * (path.length - 1);

  function poseAt(now) {
    const at = placeAt(now);
    const index = Math.min(Math.floor(at), path.length - 2);
    if (path.length < 2) return path[0];
    const [from, to, part] = [path[index], path[index + 1], at - index];
    return [
      from[0] + (to[0] - from[0]) * part, from[1] + (to[1] - from[1]) * part,
      from[2] + turn(from[2], to[2]) * part,
    ];
  }

  /** Put the poses of the path up to `until` on the trail; the sharpest turns are among them. */
  function grow(until) {
    for (; passed <= until && passed < path.length; passed += 1) {
      const [x, y] = path[passed];
      const end = trail.at(-1);
      if (!end || Math.hypot(end.x - x, end.y - y) > 0.002) trail.push({ x, y, colour: tint });
    }
    trail = trail.slice(-MOST_TRAIL);
  }

  return {
    aspect: 1,
    ready: () => seen,
    stale: () => land.stale(),
    step(message, now, duration) {
      const poses = message.poses?.length ? message.poses : [path.at(-1)];
      const sold = (message.reward ?? []).slice(0, message.content?.length ?? 2);
      if (message.step === 0) {
        old = { spots: trail, ended: now };
        trail = [];
        path = [poses.at(-1)];
        shownContent = message.content ?? [0, 0];
      } else {
        grow(path.length - 1);
        path = seen ? [poseAt(now), ...poses] : poses;
        if (sold.some((ore) => ore > 0)) sales.push({ sold, time: now });
      }
      start = now;
      lasts = duration;
      // A path begins where the cart is drawn now, which the trail has already.
      passed = message.step === 0 ? 0 : 1;
      content = message.content ?? content;
      action = message.action === null ? null : lane.actions?.[message.action];
      seen = true;
    },
    draw(context, size, now, { weights, calm }) {
      const px = toPicture(size.width);
      const unit = px(1) - px(0);
      land.draw(context, size);
      const target = vaneAngle(weights);
      vane = vane === null || calm ? target : vane + turn(vane, target) * 0.12;
      drawHouse(context, px, unit, vane, weights);
      const pose = poseAt(now);
      const colour = weights.length ? css(weightsColour(weights)) : '#888';
      tint = colour;
      if (seen) grow(Math.floor(placeAt(now)));
      const fading = 1 - (now - old.ended) / 1200;
      if (fading > 0) drawTrail(context, old.spots, px, unit, 0.45 * fading);
      drawTrail(context, [...trail, { x: pose[0], y: pose[1], colour }], px, unit, 0.85);
      shownContent = shownContent.map((held, i) => (calm ? content[i] : held + ((content[i] ?? 0) - held) * 0.2));
      drawCart(context, px(pose[0]), px(pose[1]), pose[2], unit, {
        shares: shownContent.map((held) => held / spec.capacity), working: action === 'mine',
        pushing: action === 'accelerate', now, calm,
      });
      sales = sales.filter((sale) => now - sale.time < 2200);
      for (const sale of sales) drawSale(context, sale, px, unit, now);
    },
  };
}

function drawTrail(context, spots, px, unit, strength) {
  // Flat ends: round ones would overlap and show as beads.
  context.lineCap = 'butt';
  context.lineWidth = unit * 0.013;
  const count = spots.length;
  for (let i = 1; i < count; i += 1) {
    const age = (count - i) / Math.max(count, 120);
    context.globalAlpha = strength * (0.12 + 0.88 * (1 - age) ** 1.5);
    context.strokeStyle = spots[i].colour;
    context.beginPath();
    context.moveTo(px(spots[i - 1].x), px(spots[i - 1].y));
    context.lineTo(px(spots[i].x), px(spots[i].y));
    context.stroke();
  }
  context.globalAlpha = 1;
}

function drawSale(context, sale, px, unit, now) {
  const t = (now - sale.time) / 2200;
  const rise = ease(Math.min(t * 1.6, 1)) * unit * 0.06;
  const size = Math.max(unit * 0.03, 11);
  context.globalAlpha = Math.min(1, (1 - t) * 2.5);
  context.font = `700 ${size}px ui-sans-serif, system-ui, "DejaVu Sans", sans-serif`;
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  let row = 0;
  sale.sold.forEach((ore, i) => {
    if (!(ore > 0.004)) return;
    const [x, y] = [px(0.165), px(-0.02) - rise + row * size * 1.5];
    gem(context, x, y, size * 0.5, objectiveColour(i), 0.3);
    context.fillStyle = isDark() ? '#f0ede4' : '#33312b';
    context.fillText(`+${number(ore, 2)}`, x + size * 0.8, y + size * 0.05);
    row += 1;
  });
  context.globalAlpha = 1;
}
