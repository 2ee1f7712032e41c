// The pieces of the Minecart picture: the land with its pits, the house on the base, and the cart.

import { css, isDark, objectiveColour, weightsColour } from '../colours.js';
import { chance, gem, ring } from './drawing.js';

const palette = () => (isDark()
  ? { land: '#242c30', contour: '#38434a', tuft: '#3d4c48', yard: '#4a3d38', yardEdge: '#7d6256',
      pit: ['#3f403e', '#353433', '#2a2928', '#1e1d1d'], wall: '#d9cdb8', roof: '#c0604a', roofDark: '#9d4a38',
      post: '#cfd6da',
      body: '#e9e5da', edge: '#0f1316', bin: '#2d3339', wheel: '#0d1012', lamp: '#ffe08a', shadow: 'rgb(0 0 0 / 0.4)' }
  : { land: '#f3eee2', contour: '#dfd6c2', tuft: '#c9cfac', yard: '#ead3c2', yardEdge: '#cf9f86',
      pit: ['#d9ceb8', '#c4b69c', '#aa9a80', '#8e7f69'], wall: '#fbf6ea', roof: '#c8614a', roofDark: '#a94c38',
      post: '#5a5a55',
      body: '#fffdf8', edge: '#45454a', bin: '#5c5f66', wheel: '#33353a', lamp: '#f7c948',
      shadow: 'rgb(70 55 30 / 0.2)' });

/** All that does not move. */
export function drawLand(context, width, spec, px) {
  const colours = palette();
  const unit = px(1) - px(0);
  const random = chance(7);
  context.fillStyle = colours.land;
  context.fillRect(0, 0, width, width);
  context.strokeStyle = colours.contour;
  context.lineWidth = Math.max(unit * 0.0022, 0.8);
  spec.mines.forEach((mine, index) => {
    for (let level = 1; level <= 5; level += 1) {
      context.globalAlpha = 0.85 - level * 0.16;
      ring(context, px(mine.x), px(mine.y), spec.mine_radius * unit * (1.05 + level * 0.3), index * 13 + 5,
        0.05 + 0.015 * level);
      context.stroke();
    }
  });
  context.globalAlpha = 1;
  const clear = (x, y) => Math.hypot(x, y) > spec.base_radius + 0.09
    && spec.mines.every((mine) => Math.hypot(x - mine.x, y - mine.y) > spec.mine_radius + 0.04);
  context.strokeStyle = colours.tuft;
  context.lineCap = 'round';
  context.lineWidth = Math.max(unit * 0.0035, 1);
  for (let i = 0; i < 90; i += 1) {
    const [x, y] = [random() * 1.4 - 0.2, random() * 1.4 - 0.2];
    if (clear(x, y)) drawTuft(context, px(x), px(y), unit * (0.008 + 0.006 * random()));
  }
  drawYard(context, px, unit, spec, colours);
  spec.mines.forEach((mine, index) => drawPit(context, px(mine.x), px(mine.y), spec.mine_radius * unit, mine.ores,
    index, colours));
}

function drawTuft(context, x, y, size) {
  context.beginPath();
  for (const lean of [-0.7, 0, 0.7]) {
    context.moveTo(x, y);
    context.quadraticCurveTo(x + lean * size * 0.3, y - size, x + lean * size, y - size * (1.5 - Math.abs(lean) * 0.4));
  }
  context.stroke();
}

function drawYard(context, px, unit, spec, colours) {
  const radius = spec.base_radius * unit;
  context.fillStyle = colours.yard;
  ring(context, px(0), px(0), radius, 3, 0);
  context.fill();
  context.strokeStyle = colours.yardEdge;
  context.lineWidth = Math.max(unit * 0.004, 1.2);
  context.setLineDash([unit * 0.018, unit * 0.014]);
  context.stroke();
  context.setLineDash([]);
}

function drawPit(context, x, y, radius, ores, index, colours) {
  const random = chance(index * 31 + 2);
  colours.pit.forEach((colour, level) => {
    ring(context, x, y, radius * (0.9 - level * 0.2), index * 7 + level, 0.045);
    context.fillStyle = colour;
    context.fill();
  });
  context.strokeStyle = colours.contour;
  context.lineWidth = Math.max(radius * 0.014, 0.8);
  context.setLineDash([radius * 0.06, radius * 0.06]);
  ring(context, x, y, radius, 0, 0);
  context.stroke();
  context.setLineDash([]);
  // One gem for every 0.025 of ore that a frame of mining yields: the pile tells what is worth the trip.
  const pieces = ores.flatMap((mean, ore) => Array(Math.min(Math.round(mean / 0.025), 12)).fill(ore));
  pieces.forEach((ore, i) => {
    const angle = (i / pieces.length) * Math.PI * 2 + index;
    const far = radius * (0.62 + 0.16 * (random() - 0.5));
    gem(context, x + Math.cos(angle) * far, y + Math.sin(angle) * far, radius * (0.088 + 0.03 * random()),
      objectiveColour(ore), random() * 6);
  });
}

/** The house beside the base, with the vane on its roof; `angle` is the vane's, in degrees. */
export function drawHouse(context, px, unit, angle, weights) {
  const colours = palette();
  const size = unit * 0.08;
  const [x, y] = [px(-0.048), px(-0.045)];
  context.save();
  context.translate(x, y);
  context.fillStyle = colours.shadow;
  context.beginPath();
  context.ellipse(size * 0.12, size * 0.1, size * 0.75, size * 0.16, 0, 0, Math.PI * 2);
  context.fill();
  context.fillStyle = colours.wall;
  context.fillRect(-size * 0.52, -size * 0.55, size * 1.04, size * 0.62);
  context.fillStyle = colours.roof;
  context.beginPath();
  context.moveTo(-size * 0.68, -size * 0.5);
  context.lineTo(0, -size * 1.02);
  context.lineTo(size * 0.68, -size * 0.5);
  context.closePath();
  context.fill();
  context.fillStyle = colours.roofDark;
  context.beginPath();
  context.moveTo(0, -size * 1.02);
  context.lineTo(size * 0.68, -size * 0.5);
  context.lineTo(size * 0.3, -size * 0.5);
  context.closePath();
  context.fill();
  context.fillStyle = colours.roofDark;
  context.beginPath();
  context.roundRect(-size * 0.16, -size * 0.3, size * 0.32, size * 0.37, [size * 0.16, size * 0.16, 0, 0]);
  context.fill();
  drawVane(context, size, angle, colours, weights);
  context.restore();
}

function drawVane(context, size, angle, colours, weights) {
  context.strokeStyle = colours.post;
  context.lineWidth = size * 0.06;
  context.beginPath();
  context.moveTo(0, -size * 0.98);
  context.lineTo(0, -size * 1.42);
  context.stroke();
  context.translate(0, -size * 1.42);
  context.rotate((angle * Math.PI) / 180);
  context.fillStyle = weights.length ? css(weightsColour(weights)) : colours.post;
  context.beginPath();
  context.moveTo(size * 0.52, 0);
  context.lineTo(size * 0.16, -size * 0.17);
  context.lineTo(size * 0.16, -size * 0.05);
  context.lineTo(-size * 0.3, -size * 0.05);
  context.lineTo(-size * 0.46, -size * 0.17);
  context.lineTo(-size * 0.38, 0);
  context.lineTo(-size * 0.46, size * 0.17);
  context.lineTo(-size * 0.3, size * 0.05);
  context.lineTo(size * 0.16, size * 0.05);
  context.lineTo(size * 0.16, size * 0.17);
  context.closePath();
  context.fill();
}

/** The cart from above; `shares` are the ores' shares of its capacity. */
export function drawCart(context, x, y, degrees, unit, { shares, working, pushing, now, calm }) {
  const colours = palette();
  const [length, width] = [unit * 0.112, unit * 0.076];
  const shake = working && !calm ? Math.sin(now / 28) * unit * 0.0018 : 0;
  context.save();
  context.translate(x + shake, y);
  context.rotate((degrees * Math.PI) / 180);
  const light = context.createRadialGradient(length * 0.5, 0, 0, length * 0.5, 0, length * 1.15);
  light.addColorStop(0, isDark() ? 'rgb(255 224 138 / 0.4)' : 'rgb(255 205 80 / 0.34)');
  light.addColorStop(1, 'rgb(255 210 110 / 0)');
  context.fillStyle = light;
  context.beginPath();
  context.moveTo(length * 0.46, 0);
  context.arc(length * 0.46, 0, length * 1.15, -0.5, 0.5);
  context.fill();
  if (pushing && !calm) {
    for (let i = 0; i < 3; i += 1) {
      const age = (now / 420 + i / 3) % 1;
      context.fillStyle = isDark() ? `rgb(200 205 208 / ${0.28 * (1 - age)})` : `rgb(120 110 95 / ${0.3 * (1 - age)})`;
      context.beginPath();
      context.arc(-length * (0.55 + age * 0.5), Math.sin(i * 4) * width * 0.2 * age, unit * (0.006 + 0.013 * age), 0,
        Math.PI * 2);
      context.fill();
    }
  }
  context.fillStyle = colours.shadow;
  context.beginPath();
  context.roundRect(-length * 0.47, -width * 0.42, length * 1.0, width * 1.04, width * 0.2);
  context.fill();
  context.fillStyle = colours.wheel;
  for (const [wx, wy] of [[-0.33, -0.53], [0.2, -0.53], [-0.33, 0.37], [0.2, 0.37]]) {
    context.beginPath();
    context.roundRect(wx * length, wy * width, length * 0.19, width * 0.17, width * 0.05);
    context.fill();
  }
  context.fillStyle = colours.body;
  context.strokeStyle = colours.edge;
  context.lineWidth = Math.max(unit * 0.0032, 1);
  context.beginPath();
  context.roundRect(-length * 0.5, -width * 0.45, length, width * 0.9,
    [width * 0.14, width * 0.42, width * 0.42, width * 0.14]);
  context.fill();
  context.stroke();
  context.fillStyle = colours.bin;
  context.beginPath();
  context.roundRect(-length * 0.41, -width * 0.33, length * 0.66, width * 0.66, width * 0.1);
  context.fill();
  context.fillStyle = colours.lamp;
  context.beginPath();
  context.arc(length * 0.39, 0, width * 0.12, 0, Math.PI * 2);
  context.fill();
  drawLoad(context, length, width, shares);
  context.restore();
}

function drawLoad(context, length, width, shares) {
  const [columns, rows] = [5, 4];
  const slots = columns * rows;
  let slot = 0;
  let sum = 0;
  shares.forEach((share, ore) => {
    sum += share;
    const until = Math.min(Math.round(sum * slots), slots);
    for (; slot < until; slot += 1) {
      const [column, row] = [Math.floor(slot / rows), slot % rows];
      const jitter = Math.sin(slot * 12.9) * 0.06;
      gem(context, -length * 0.41 + length * 0.66 * ((column + 0.5) / columns + jitter * 0.3),
        -width * 0.33 + width * 0.66 * ((row + 0.5) / rows + jitter * 0.4), width * 0.098, objectiveColour(ore),
        slot * 1.7);
    }
  });
}
